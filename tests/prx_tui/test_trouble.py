"""A database that cannot be used, and what needs attention."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from prx_engine import Engine
from prx_engine.records import ImportReport
from prx_engine.telemetry.following import TelemetryFollower
from prx_tui.app import Dashboard
from prx_tui.screens.experiments import ExperimentsScreen
from tests.prx_tui.conftest import POLL_SECONDS, OpenPlace, press, screen_text, settled, told, until


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prx_tui.worker._FIRST_PAUSE", 0.01)
    monkeypatch.setattr("prx_tui.worker._LONGEST_PAUSE", 0.05)


def banner(board: Dashboard) -> str:
    return " ".join(" ".join(board.banner).split())


async def test_a_missing_database_is_a_banner_until_there_is_one(tmp_path: Path) -> None:
    path = tmp_path / "prx.db"
    board = Dashboard(
        lambda: Engine.open(path, config=tmp_path / "none.toml", create=False), poll_seconds=POLL_SECONDS
    )
    async with board.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: board.banner, "the banner")
        await pilot.pause()
        assert "no database at" in screen_text(board)
        assert "tried again" in screen_text(board)
        assert "nothing to show yet" in screen_text(board)
        assert "reading" not in screen_text(board)
        assert screen_text(board).strip().endswith("^p palette  ^r read again  ? help  q quit")
        for key in ("enter", "c", "f", "escape", "v", "question_mark", "escape"):
            await press(pilot, key)
        Engine.open(path, config=tmp_path / "none.toml").close()
        await settled(pilot)
        await pilot.pause()
        assert not board.banner
        assert "No experiment yet" in screen_text(board)


async def test_a_database_that_vanishes_is_a_banner_and_its_return_ends_it(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        path = spot.folder / "prx.db"
        path.rename(spot.folder / "away.db")
        await until(pilot, lambda: board.banner, "the banner")
        assert "What you see is from before." in banner(board)
        assert "Route simple coding" in screen_text(board)
        await press(pilot, "c", "y")
        await until(pilot, lambda: "There is no database" in told(board), "the refusal")
        (spot.folder / "away.db").rename(path)
        await until(pilot, lambda: not board.banner, "recovery")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE schema_info SET version = 99", "upgrade prx-experiments"),
        ("garbage", "not a database of experiments, or damaged"),
    ],
)
async def test_a_newer_or_damaged_database_is_a_banner(place: OpenPlace, damage: str, words: str) -> None:
    spot = place()
    path = spot.folder / "prx.db"
    good = path.read_bytes()
    if damage == "garbage":
        path.write_bytes(b"this is no database" * 400)
    else:
        with sqlite3.connect(path) as connection:
            table = connection.execute(
                "SELECT name FROM sqlite_master WHERE name LIKE '%schema%' AND type = 'table'"
            ).fetchone()[0]
            connection.execute(damage.replace("schema_info", table))
        connection.close()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: board.banner, "the banner")
        assert words in banner(board)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.write_bytes(good)
        await until(pilot, lambda: board.snapshot and not board.banner, "recovery")


async def test_a_locked_database_is_a_banner_while_it_lasts(
    place: OpenPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prx_tui.app._SILENT_SECONDS", 0.05)
    spot = place()
    holder = sqlite3.connect(spot.folder / "prx.db", isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: board.banner, "the banner")
        board.on_tick()
        await pilot.pause()
        assert "does not answer" in screen_text(board)
        holder.close()
        await until(pilot, lambda: board.snapshot and not board.banner, "recovery")


async def test_a_broken_configuration_is_a_banner(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        config = spot.folder / "config.toml"
        config.write_text("[self_evolution.experiments]\ntraffic_split = 7\n")
        board.read_again()
        await until(pilot, lambda: board.banner, "the banner")
        assert "traffic_split" in banner(board)
        config.write_text("")
        await until(pilot, lambda: not board.banner, "recovery")


async def test_what_needs_attention_stands_out_and_says_what_it_is(place: OpenPlace) -> None:
    board = place("trouble").dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        text = screen_text(board)
        lines = text.split("\n")
        assert "3 need you" in lines[0]
        assert "below 0.50" in lines[0]
        assert "verdict: treatment wins" in lines[3]
        assert "ratio mismatch" in lines[4]
        assert "overdue" in lines[5]
        for row in lines[3:6]:
            assert "▲" in row
        for words in ("It waits for you", "p promotes"):
            assert words in text
        await press(pilot, "j")
        assert "sessions where 50 % : 50 % was planned" in " ".join(screen_text(board).split())
        await press(pilot, "j")
        assert "nothing concludes until a dashboard" in " ".join(screen_text(board).split())


async def test_a_check_that_this_dashboard_is_about_to_run_needs_nobody(
    place: OpenPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    spot = place("trouble")
    monkeypatch.setattr(Engine, "check", lambda self: [])
    board = spot.dashboard(checks=True)
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert "2 need you" in screen_text(board)
        assert "next check due now" in screen_text(board)
        spot.clock.advance(minutes=11)
        board.on_tick()
        await pilot.pause()
        assert "3 need you" in screen_text(board)
        assert "next check overdue" in screen_text(board)


async def test_read_only_has_no_dangerous_action_and_runs_no_check(place: OpenPlace) -> None:
    spot = place("trouble")
    events = len(spot.engine.events())
    board = Dashboard(spot.open, read_only=True, poll_seconds=POLL_SECONDS)
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        for key in "cepr":
            await press(pilot, key)
            assert board.screen is board.screen_stack[0], key
        assert told(board).count("read only: it changes nothing") == 4
        await press(pilot, "R", "question_mark")
        for title in ("Cancel the", "Extend the", "Promote the", "Reject the", "Roll the"):
            assert title not in screen_text(board)
        assert "Preview" in screen_text(board)
        await press(pilot, "escape")
        assert "read only" in screen_text(board)
        assert "cancel" not in screen_text(board).split("\n")[-1]
        await press(pilot, "ctrl+p")
        await until(pilot, lambda: "Open the experiment" in screen_text(board), "the palette")
        assert "Cancel the" not in screen_text(board)
        await press(pilot, "escape", "v")
        await until(pilot, lambda: "Hedges" in screen_text(board), "the preview")
    assert len(spot.engine.events()) == events
    assert any(
        one.next_check_at and one.next_check_at < spot.clock.now() for one in spot.engine.experiments()
    )


async def test_a_mere_look_is_marked_and_what_it_decides_is_announced(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard(checks=True)
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        screen = board.screen
        assert isinstance(screen, ExperimentsScreen)
        spot.clock.advance(hours=4)
        await until(pilot, lambda: screen.table.marked, "the mark of the looks")
        assert told(board) == ""
        spot.clock.advance(days=6)
        await until(pilot, lambda: "was extended" in told(board), "the announcement")


async def test_a_failing_check_is_shown_and_the_dashboard_goes_on(
    place: OpenPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    spot = place("trouble")
    calls: list[int] = []

    def fail(self: Engine) -> list[object]:
        calls.append(1)
        if len(calls) < 6:
            raise RuntimeError("no luck [/]")
        return []

    monkeypatch.setattr(Engine, "check", fail)
    monkeypatch.setattr("prx_tui.worker._LONGEST_CHECK_PAUSE", 0.02)
    board = spot.dashboard(checks=True)
    async with board.run_test(size=(120, 40)) as pilot:
        await until(
            pilot, lambda: "A check failed: RuntimeError: no luck [/]" in banner(board), "the failure"
        )
        await press(pilot, "j", "k")
        await until(pilot, lambda: len(calls) >= 6 and not board.banner, "recovery")


async def test_telemetry_that_cannot_be_followed_is_shown_and_what_it_refuses_is_told(
    place: OpenPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    spot = place()
    log = spot.folder / "agent.jsonl"
    (spot.folder / "config.toml").write_text(f'[[self_evolution.telemetry.sources]]\npath = "{log.name}"\n')
    log.write_text('{"session_id": "a", "thumbs_upp": 1}\n{"session_id": "b", "thumbs_upp": 1}\n')
    poll, failing = TelemetryFollower.poll, [True]

    def failing_poll(self: TelemetryFollower, *asked: Callable[[], bool]) -> ImportReport:
        if failing[0]:
            raise OSError("no luck [/]")
        return poll(self, *asked)

    monkeypatch.setattr(TelemetryFollower, "poll", failing_poll)
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "could not be followed: OSError: no luck [/]" in banner(board), "failure")
        failing[0] = False
        await press(pilot, "ctrl+r")
        await until(pilot, lambda: "agent.jsonl:1: thumbs_upp: no such field" in told(board), "the word")
        assert "(and 1 more)" in told(board)
        assert not board.banner
