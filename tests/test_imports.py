"""What an import may load: every module that is loaded for nothing makes a command slower to start."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCREEN = ("click", "prx_tui", "rich", "textual")
NUMBERS = ("numpy", "scipy")
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
