"""What an import may load: every module that is loaded for nothing makes a command slower to start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from prx_engine import Engine

SCREEN = ("click", "prx_tui", "rich", "textual")
NUMBERS = ("numpy", "scipy")
PLAIN_LISTING = """
import sys
sys.argv = ["prx", "evolution", "experiments", "--status", "all", "--database", "{database}"]
from prx_tui.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
"""
EVERY_STATISTIC = "import prx_engine.statistics as s; [getattr(s, name) for name in s.__all__]"


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after running the code."""
    script = f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import prx_engine", (*SCREEN, *NUMBERS)),
        ("import prx_engine.statistics", (*SCREEN, *NUMBERS)),
        ("import prx_engine.statistics.sample_ratio", (*SCREEN, *NUMBERS)),
        (EVERY_STATISTIC, ("scipy.stats", "peewee", "pydantic", *SCREEN)),
    ],
)
def test_an_import_loads_no_more_than_it_needs(code: str, unwanted: tuple[str, ...]) -> None:
    loaded = loaded_by(code)
    found = [name for name in unwanted if name in loaded]
    assert not found, f"{code!r} loads {', '.join(found)}"


def test_a_plain_listing_waits_neither_for_numbers_nor_for_a_screen(tmp_path: Path) -> None:
    database = tmp_path / "experiments.db"
    with Engine.open(database) as engine:
        engine.create_experiment("L2", "272 tokens", hypothesis="a shorter prompt is clearer")
    script = (
        f"{PLAIN_LISTING.format(database=database)}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *listing, modules = done.stdout.splitlines()
    assert "a shorter prompt is clearer" in listing[-1]
    assert not {"numpy", "scipy", "textual", "tomlkit"} & set(json.loads(modules))
