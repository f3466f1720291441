"""Actions on an experiment: asked about, refused when stale, announced."""

from __future__ import annotations

import sqlite3

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from prx_engine.ids import short
from prx_engine.records import Experiment
from prx_tui.app import Dashboard
from prx_tui.screens.dialogs import Confirm, Extend, Question
from prx_tui.screens.experiments import ExperimentsScreen
from prx_tui.view.spans import plain
from prx_tui.widgets.lines import Paragraphs
from tests.prx_tui.conftest import OpenPlace, Place, board_of, dialog_text, press, settled, shows, told, until


def now_of(place: Place, experiment_id: str) -> Experiment:
    return place.engine.experiment(experiment_id)


def question(board: Dashboard) -> str:
    return written(board, "#question")


def answers(board: Dashboard) -> str:
    return written(board, "#answers")


def written(board: Dashboard, place: str) -> str:
    return " ".join(plain(one) for one in board.screen.query_one(place, Paragraphs).wrapped(1000))


def cursor_of(pilot: Pilot[None]) -> str:
    screen = board_of(pilot).screen_stack[0]
    assert isinstance(screen, ExperimentsScreen)
    assert screen.table.cursor_key is not None
    return screen.table.cursor_key


async def test_the_question_says_what_will_happen_and_only_y_does_it(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        target = cursor_of(pilot)
        await press(pilot, "c")
        assert question(board).endswith(f"(…{short(target)})? All traffic returns to control.")
        await press(pilot, "enter")
        assert shows(board, Confirm)
        assert now_of(spot, target).status == "running"
        await press(pilot, "escape", "c", "n", "c")
        assert now_of(spot, target).status == "running"
        await press(pilot, "y")
        await until(pilot, lambda: "Cancelled" in told(board), "the announcement")
        assert now_of(spot, target).status == "cancelled"
        await until(pilot, lambda: board.snapshot and len(board.snapshot.active) == 2, "the news")


async def test_the_key_that_asks_does_not_also_answer(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        target = cursor_of(pilot)
        await press(pilot, "c", "c", "c", "enter", "space", "escape")
        assert shows(board, ExperimentsScreen)
        assert now_of(spot, target).active


@pytest.mark.parametrize(
    ("key", "conclusion", "words"),
    [("p", "operator_promoted", "Promoted"), ("r", "operator_rejected", "Rejected")],
)
async def test_promote_and_reject(place: OpenPlace, key: str, conclusion: str, words: str) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        target = cursor_of(pilot)
        await press(pilot, key, "y")
        await until(pilot, lambda: words in told(board), "the announcement")
        assert now_of(spot, target).conclusion == conclusion


async def test_a_reason_goes_to_the_log(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        target = cursor_of(pilot)
        await press(pilot, "c", "w", *"my", "enter", "y")
        await until(pilot, lambda: "Cancelled" in told(board), "the announcement")
        assert spot.engine.events(target)[0].reason == "my"


async def test_extending_asks_for_hours_and_says_how_many_are_left(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        target = cursor_of(pilot)
        before = now_of(spot, target).planned_end_at
        await press(pilot, "e")
        assert "552 hours are left" in question(board)
        assert board.screen.query_one("#hours", Input).value == "168"
        await press(pilot, *("backspace",) * 3, *"600", "y")
        assert shows(board, Extend)
        assert "a whole number from 1 to 552 is possible" in answers(board)
        await press(pilot, *("backspace",) * 3)
        assert "is possible" not in answers(board)
        await press(pilot, *"48", "enter")
        assert shows(board, Extend)
        await press(pilot, "y")
        await until(pilot, lambda: "Extended" in told(board), "the announcement")
        assert (now_of(spot, target).planned_end_at - before).total_seconds() == 48 * 3600


@pytest.mark.parametrize("key", ["c", "e", "p", "r"])
async def test_a_low_terminal_shows_how_to_answer_and_scrolls_the_question(
    place: OpenPlace, key: str
) -> None:
    board = place().dashboard()
    async with board.run_test(size=(40, 10)) as pilot:
        await settled(pilot)
        await press(pilot, key, *("down",) * 9)
        text = dialog_text(board)
        assert text.endswith("n or esc leave it w say why")
        assert question(board).split()[-1] in text


@pytest.mark.parametrize("typed", ["1e9", "4.5", "-3", "²", "", "9" * 40])
async def test_what_is_no_number_of_hours_is_seen_and_refused(place: OpenPlace, typed: str) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "e", *("backspace",) * 3, *typed, "y")
        assert shows(board, Extend)
        assert board.screen.query_one("#hours", Input).value == typed
        assert "a whole number from 1 to 552 is possible" in answers(board)


async def test_letters_of_a_reason_do_not_answer_an_extension(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "e", "w", *"wyny")
        assert shows(board, Extend)
        assert board.screen.query_one("#reason", Input).value == "wyny"
        assert "y extend" not in answers(board)
        assert "enter or esc leaves the field" in answers(board)
        await press(pilot, "escape")
        assert shows(board, Extend)
        assert "y extend" in answers(board)
        await press(pilot, "n")
        assert shows(board, ExperimentsScreen)


async def test_a_stale_target_is_refused_with_the_news(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        target = cursor_of(pilot)
        await press(pilot, "p")
        spot.engine.cancel(target, "another operator was faster")
        await until(pilot, lambda: board.snapshot and len(board.snapshot.active) == 2, "the news")
        dialog = board.screen
        assert isinstance(dialog, Question)
        assert dialog.target.experiment_id == target
        await press(pilot, "y")
        await until(pilot, lambda: "Nothing was done" in told(board), "the refusal")
        assert "It is now cancelled" in told(board)
        assert now_of(spot, target).conclusion == "cancelled"


async def test_the_target_stays_when_the_list_moves_below_the_question(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        first, second = (row.key for row in board.screen.query_one("#table").rows[:2])  # type: ignore[attr-defined]
        await press(pilot, "j", "c")
        spot.engine.cancel(first)
        await until(pilot, lambda: board.snapshot and len(board.snapshot.active) == 2, "the news")
        await press(pilot, "y")
        await until(pilot, lambda: "Cancelled" in told(board), "the announcement")
        assert now_of(spot, second).status == "cancelled"
        assert len(spot.engine.experiments("active")) == 1


async def test_refusals_are_explained(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "]", "]", "c", "e", "p", "r", "R")
        assert shows(board, ExperimentsScreen)
        for verb in ("cancel", "extend", "promote", "reject", "roll back"):
            assert f"Cannot {verb} L1 Twenty memories are enough" in told(board)
        assert "it is cancelled" in told(board)


async def test_what_fails_is_announced_and_the_dashboard_goes_on(
    place: OpenPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)

        def fail(*_: object) -> None:
            raise RuntimeError("[/] wrong")

        monkeypatch.setattr(type(board.engine), "cancel", fail)
        await press(pilot, "c", "y")
        await until(pilot, lambda: "RuntimeError: [/] wrong" in told(board), "the failure")
        await press(pilot, "j")
        assert board.is_running


async def test_a_write_that_has_to_wait_says_so_and_is_done_later(
    place: OpenPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prx_tui.app._PATIENCE_SECONDS", 0.05)
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        holder = sqlite3.connect(spot.folder / "prx.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        await press(pilot, "c", "y")
        await until(pilot, lambda: "Waiting for the database" in told(board), "the word")
        await press(pilot, "j", "k")
        holder.close()
        await until(pilot, lambda: "Cancelled" in told(board), "the announcement")
