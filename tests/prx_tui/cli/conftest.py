from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from prx_tui.cli.call import Call
from prx_tui.cli.program import prx

START = "2026-06-01T00:00:00Z"
WEEK_LATER = "2026-06-08T00:00:00Z"


class Prx:
    """Runs commands on one database, at a time that a test sets."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.database = folder / "experiments.db"
        self.config = folder / "config.toml"
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("PRX_DATABASE_URL", str(self.database))
        monkeypatch.setenv("PRX_CONFIG", str(self.config))
        self.now(START)

    def now(self, time: str | None) -> None:
        if time is None:
            self._monkeypatch.delenv("PRX_NOW", raising=False)
        else:
            self._monkeypatch.setenv("PRX_NOW", time)

    def __call__(self, *args: str, input: str | bytes | None = None, call: Call | None = None) -> Result:
        return CliRunner().invoke(prx, args, prog_name="prx", input=input, obj=call)

    def done(self, *args: str, input: str | bytes | None = None, call: Call | None = None) -> str:
        """The data of a command that must succeed."""
        result = self("evolution", *args, input=input, call=call)
        assert result.exit_code == 0, result.output
        assert result.exception is None
        return result.stdout

    def json(self, *args: str) -> Any:
        return json.loads(self.done(*args, "--json"))

    def refused(self, *args: str, code: int = 1, input: str | bytes | None = None) -> str:
        """The one line that a command says when it is refused."""
        result = self("evolution", *args, input=input)
        assert result.exit_code == code, result.output
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        assert line.startswith("prx: ")
        assert "Traceback" not in line
        return line

    def create(self, layer: str = "L2", hypothesis: str = "a shorter prompt is clearer", *more: str) -> str:
        return self.done(
            "experiments",
            "create",
            "--layer",
            layer,
            "--hypothesis",
            hypothesis,
            "--treatment",
            "272 tokens",
            *more,
        ).strip()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prx:
    return Prx(tmp_path, monkeypatch)


def session_lines(
    count: int,
    variant: str,
    score: Callable[[int], float],
    layer: str = "L2",
    day: str = "2026-06-01",
) -> str:
    return "".join(
        json.dumps(
            {
                "session_id": f"{layer}-{variant}-{i}",
                "layer": layer,
                "variant": variant,
                "started_at": f"{day}T{i * 20 // count + 1:02}:00:00Z",
                "relevance": [score(i)],
            }
        )
        + "\n"
        for i in range(count)
    )
