"""Opening and leaving the dashboard."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from prx_engine import Engine
from prx_tui.app import Dashboard, default_engine, run_dashboard
from tests.prx_tui.conftest import POLL_SECONDS, OpenPlace, screen_text, settled, until
from tests.support.terminals import Terminal, benchmark_environment, python


def test_a_clock_that_stands_still_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PRX_NOW", "2026-06-01T00:00:00Z")
    assert run_dashboard("nothing.db") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "PRX_NOW" in captured.err
    assert captured.err.count("\n") == 1


def test_the_dashboard_never_makes_a_database(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("none") / "prx.db"
    with pytest.raises(Exception, match="no database"):
        default_engine(path)()
    assert not path.exists()


def test_nothing_before_the_first_picture_needs_numpy_or_scipy(place: OpenPlace) -> None:
    path = place().folder / "prx.db"
    code = f"""
import asyncio, sys
from prx_engine import Engine
from prx_tui.app import Dashboard
async def main():
    board = Dashboard(lambda: Engine.open({str(path)!r}, create=False), checks=False)
    async with board.run_test(size=(120, 40)) as pilot:
        while board.snapshot is None:
            await pilot.pause(0.01)
        print([name for name in ("numpy", "scipy") if name in sys.modules])
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


async def test_leaving_takes_less_than_a_second_while_the_worker_is_busy(
    place: OpenPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    spot = place()
    release, entered = threading.Event(), threading.Event()

    def hang(self: Engine) -> list[object]:
        entered.set()
        release.wait(30)
        return []

    monkeypatch.setattr(Engine, "check", hang)
    board = Dashboard(spot.open, poll_seconds=POLL_SECONDS)
    async with board.run_test(size=(80, 24)) as pilot:
        await until(pilot, entered.is_set, "the check")
        await until(
            pilot, lambda: "Route simple" in screen_text(board), "the list: nothing waits for a check"
        )
        before = time.monotonic()
        board.exit()
        board.worker.stop()
        took = time.monotonic() - before
    release.set()
    assert took < 1.0


@pytest.mark.parametrize(("background", "dark"), [("15;0", True), ("0;15", False), ("", True)])
async def test_a_light_terminal_gets_a_light_theme(
    place: OpenPlace, monkeypatch: pytest.MonkeyPatch, background: str, dark: bool
) -> None:
    monkeypatch.setenv("COLORFGBG", background)
    board = place("empty").dashboard()
    async with board.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert board.current_theme.dark is dark


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", ["dashboard", "demo"])
def test_a_closed_terminal_or_a_request_to_end_closes_it(
    tmp_path: Path, command: str, number: signal.Signals
) -> None:
    Engine.open(tmp_path / "prx.db", config=tmp_path / "none.toml").close()
    environment = benchmark_environment(
        PRX_DATABASE_URL=str(tmp_path / "prx.db"), PRX_CONFIG=str(tmp_path / "none.toml")
    )
    program = python("import sys; from prx_tui.cli import main; main()", command)
    with Terminal(program, (100, 30), environment) as terminal:
        terminal.read_until("q quit")
        assert terminal.end_of(number) == 128 + number
