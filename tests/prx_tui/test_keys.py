"""Every key on every screen."""

from __future__ import annotations

import pytest
from textual.command import CommandPalette

from prx_tui.actions import ACTIONS, available
from prx_tui.app import Dashboard
from prx_tui.screens.dialogs import Confirm, Extend
from prx_tui.screens.experiment import ExperimentScreen
from prx_tui.screens.experiments import ExperimentsScreen
from prx_tui.screens.fitness import FitnessScreen
from prx_tui.screens.help import HelpScreen
from prx_tui.screens.preview import PreviewScreen
from prx_tui.view.spans import plain
from prx_tui.widgets.lines import Paragraphs
from tests.prx_tui.conftest import (
    OpenPlace,
    board_of,
    dialog_text,
    press,
    screen_text,
    settled,
    shows,
    told,
    until,
)


async def test_the_list_has_the_focus_and_its_keys_move_in_it(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        screen = board.screen
        assert isinstance(screen, ExperimentsScreen)
        assert screen.table.has_focus
        keys = [row.key for row in screen.table.rows]
        for key, place_in_list in (("j", 1), ("down", 2), ("k", 1), ("up", 0), ("G", 2), ("g", 0),
                                     ("end", 2), ("home", 0), ("pagedown", 2), ("pageup", 0)):  # fmt: skip
            await press(pilot, key)
            assert screen.table.cursor_key == keys[place_in_list], key


async def test_tabs_sort_and_reverse(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        screen = board.screen
        assert isinstance(screen, ExperimentsScreen)
        for tab, rows in (("converged", 2), ("cancelled", 1), ("all", 6), ("active", 3)):
            await press(pilot, "]")
            assert (screen.tab, len(screen.table.rows)) == (tab, rows)
        await press(pilot, "[")
        assert len(screen.table.rows) == 6
        await press(pilot, "s", "s")
        assert screen.order.by == "layer"
        layers = [row.cells[1][0].text for row in screen.table.rows]
        assert layers == sorted(layers)
        await press(pilot, "S")
        assert [row.cells[1][0].text for row in screen.table.rows] == layers[::-1]
        assert "↓" in screen_text(board)


async def test_sorting_goes_through_all_that_is_in_sight_and_back(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(200, 60)) as pilot:
        await settled(pilot)
        screen = board.screen
        assert isinstance(screen, ExperimentsScreen)
        seen = [screen.order.by]
        for _ in screen.table.shown_columns:
            await press(pilot, "s")
            seen.append(screen.order.by)
        assert len(set(seen)) == len(seen) > 10
        await press(pilot, "s")
        assert screen.order.by == "attention"


async def test_the_filter_filters_while_typing_and_gives_the_keys_back(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        screen = board.screen
        assert isinstance(screen, ExperimentsScreen)
        await press(pilot, "]", "]", "]", "/", *"sonnet")
        assert [row.cells[1][0].text for row in screen.table.rows] == ["L3"]
        assert "1 of 6 match" in screen_text(board)
        await press(pilot, "enter")
        assert screen.table.has_focus
        assert "1 of 6 match" in screen_text(board)
        await press(pilot, "escape")
        assert len(screen.table.rows) == 6
        await press(pilot, "/", *"decision-0031", "escape")
        assert len(screen.table.rows) == 6
        assert screen.table.has_focus
        await press(pilot, "/", *"zzz")
        assert "Nothing matches" in screen_text(board)


async def test_a_filter_says_what_it_did_not_search(
    place: OpenPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prx_tui.snapshot.MOST_OF_A_STATUS", 1)
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "right_square_bracket")
        await until(pilot, lambda: "the newest" in screen_text(board), "one of the two that converged")
        await press(pilot, "slash", *"two")
        await until(pilot, lambda: "0 of 1 match “two”, 1 older not searched" in screen_text(board))


async def test_a_letter_in_the_filter_is_a_letter(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "/", *"cepqfv?")
        screen = board.screen
        assert isinstance(screen, ExperimentsScreen)
        assert screen.filter_text == "cepqfv?"


async def test_screens_open_and_close(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "escape")
        assert shows(board, ExperimentsScreen)
        await press(pilot, "enter")
        await settled(pilot)
        assert shows(board, ExperimentScreen)
        await press(pilot, "f")
        assert shows(board, FitnessScreen)
        await press(pilot, "escape")
        assert shows(board, ExperimentScreen)
        await press(pilot, "escape")
        assert shows(board, ExperimentsScreen)
        await press(pilot, "question_mark")
        assert shows(board, HelpScreen)
        await press(pilot, "j", "k", "escape")
        assert shows(board, ExperimentsScreen)
        await press(pilot, "ctrl+p")
        assert shows(board, CommandPalette)


async def test_the_tabs_of_an_experiment_and_scrolling_in_them(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "G", "enter")
        await settled(pilot)
        screen = board.screen
        assert isinstance(screen, ExperimentScreen)
        assert "response_relevance" in screen_text(board)
        for tab, shown in (
            ("fitness", "┤"),
            ("boundary", "control wins"),
            ("looks", "p / needs"),
            ("changes", "router.retries"),
            ("why", "it is extended, until"),
            ("events", "by engine"),
        ):
            await press(pilot, *(["["] if tab == "events" else ["]", "]"] if tab == "why" else ["]"]))
            await pilot.pause()
            assert screen.tab == tab
            assert shown in screen_text(board), tab
        await press(pilot, "]", "]")
        assert screen.tab == "dimensions"
        pager = screen.pager()
        await press(pilot, "j", "j")
        assert pager.scroll_offset.y == 2
        await press(pilot, "k")
        assert pager.scroll_offset.y == 1
        await press(pilot, "G")
        assert pager.scroll_offset.y > 2
        await press(pilot, "g")
        assert pager.scroll_offset.y == 0
        # A larger terminal shows above the tabs what had one of its own.
        await press(pilot, "]")
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert screen.tab == "dimensions"
        assert " ".join(screen.tabs) == "dimensions boundary looks changes events"
        await pilot.resize_terminal(200, 60)
        await pilot.pause()
        assert " ".join(screen.tabs) == "dimensions looks changes events"
        assert "control wins" in screen_text(board)


async def test_the_span_of_the_history(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "f")
        screen = board.screen
        assert isinstance(screen, FitnessScreen)
        for days in (90, 7, 30):
            await press(pilot, "]")
            assert screen.days == days
        await press(pilot, "[")
        assert screen.days == 7
        await press(pilot, "[")
        await until(pilot, lambda: board.snapshot and len(board.snapshot.history) == 90, "90 days")
        assert "11 Mar" in screen_text(board)


async def test_copying_the_id_uses_the_terminal_and_says_so(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "y")
        screen = board.screen
        assert isinstance(screen, ExperimentsScreen)
        assert board.clipboard == screen.table.cursor_key
        assert board.clipboard in told(board)


async def test_reading_again(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        before = board.snapshot
        await press(pilot, "ctrl+r")
        await until(pilot, lambda: board.snapshot is not before, "another snapshot")
        assert "Reading again" in told(board)


@pytest.mark.parametrize("from_detail", [False, True])
async def test_actions_on_one_experiment_open_their_dialogs(place: OpenPlace, from_detail: bool) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        if from_detail:
            await press(pilot, "enter")
            await settled(pilot)
        home = board.screen
        for key, kind in (
            ("c", Confirm),
            ("p", Confirm),
            ("r", Confirm),
            ("e", Extend),
            ("v", PreviewScreen),
        ):
            await press(pilot, key)
            assert shows(board, kind), key
            await press(pilot, "escape")
            assert board.screen is home, key
        await press(pilot, "R")
        assert board.screen is home
        assert "no promotion of it is applied" in told(board)


async def test_announcements_cover_no_question_and_are_not_lost(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(80, 24), notifications=True) as pilot:
        await settled(pilot)
        await press(pilot, "y", "y", "y")
        await until(pilot, lambda: "Copied" in screen_text(board), "the announcement")
        await press(pilot, "p")
        board.announce("News of the meantime")
        await pilot.pause()
        for part in board.screen.query("#question, #answers").results(Paragraphs):
            lines = map(plain, part.wrapped(part.content_size.width))
            assert [one for one in lines if one not in screen_text(board)] == []
        assert "News" not in screen_text(board)
        await press(pilot, "n")
        await until(pilot, lambda: "News of the meantime" in screen_text(board), "the news")


async def test_a_preview_shows_what_a_look_would_find(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "j", "v")
        await until(pilot, lambda: "Hedges" in screen_text(board), "the preview")
        assert "nothing was written or decided" in screen_text(board)


async def test_a_preview_of_what_has_ended_is_refused(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "]", "v")
        assert shows(board, ExperimentsScreen)
        assert "Cannot preview" in told(board)


async def test_actions_without_an_experiment_say_so(place: OpenPlace) -> None:
    board = place("empty").dashboard()
    async with board.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        for key in "cevprRy":
            await press(pilot, key)
            assert shows(board, ExperimentsScreen), key
        await press(pilot, "enter")
        assert shows(board, ExperimentsScreen)
        assert told(board).count("no experiment here") == 8
        assert "No experiment yet" in screen_text(board)
        assert footer(board) == "f fitness  ^p palette  ^r read again  ? help  q quit"


async def test_quitting(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "q")
        await until(pilot, lambda: not board.is_running, "the end")


@pytest.mark.parametrize("where", ["experiments", "experiment", "fitness"])
async def test_help_has_every_action_and_the_palette_what_is_possible(place: OpenPlace, where: str) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 60)) as pilot:
        await settled(pilot)
        if where != "experiments":
            await press(pilot, "enter" if where == "experiment" else "f")
        actions = available(where, read_only=False)  # type: ignore[arg-type]
        await press(pilot, "question_mark")
        await pilot.pause()
        text = screen_text(board)
        assert [one.title for one in actions if one.title not in text] == []
        await press(pilot, "escape", "ctrl+p")
        await until(pilot, lambda: actions[0].title in screen_text(board), "the palette")
        text = screen_text(board)
        missing = {one.id for one in actions if one.palette and one.title not in text}
        assert missing <= {"rollback", "clear_filter"}


@pytest.mark.parametrize("width", [80, 40])
async def test_help_loses_nothing_on_a_narrow_terminal(place: OpenPlace, width: int) -> None:
    board = place("empty").dashboard()
    async with board.run_test(size=(width, 120)) as pilot:
        await settled(pilot)
        await press(pilot, "question_mark")
        text = dialog_text(board)
        for meaning in (
            *(one.title for one in available("experiments", read_only=False)),
            "control (today's configuration) and treatment (the proposed one)",
            "assigned to each arm; “of 100” while fewer than 100 are scored",
            "what z, the lead in standard errors, has to cross for an experiment to end",
        ):
            assert meaning in text


async def test_the_footer_offers_what_is_possible_under_the_cursor(place: OpenPlace) -> None:
    spot = place()
    for one in spot.engine.experiments("active"):
        if one.layer == "L1":
            spot.engine.cancel(one.experiment_id)
    made = spot.engine.create_experiment("L1", {"config": {"a.b": 1}}, hypothesis="b is 1")
    promoted = spot.engine.promote(made.experiment_id)
    assert promoted.promotion == "applied"
    board = spot.dashboard()
    async with board.run_test(size=(200, 40)) as pilot:
        await settled(pilot)
        for words in ("c cancel", "e extend", "v preview", "p promote", "r reject"):
            assert words in footer(board)
        assert "R roll back" not in footer(board)
        await press(pilot, "]", "/", *"promoted")
        assert footer(board) == "enter keep the filter  esc clear it"
        await press(pilot, "enter")
        screen = board.screen
        assert isinstance(screen, ExperimentsScreen)
        screen.table.move_to(made.experiment_id)
        await pilot.pause()
        assert "R roll back" in footer(board)
        assert "y copy id" in footer(board)
        for words in ("c cancel", "e extend", "v preview", "p promote", "r reject"):
            assert words not in footer(board)
        await press(pilot, "ctrl+p")
        await until(pilot, lambda: "Roll the promotion back" in screen_text(board), "the palette")
        assert "Cancel the experiment" not in screen_text(board)
        await press(pilot, "escape", "enter")
        await settled(pilot)
        assert shows(board, ExperimentScreen)
        assert "R roll back" in footer(board)
        assert "c cancel" not in footer(board)


@pytest.mark.parametrize("name", ["light", "dark"])
async def test_the_palette_finds_light_and_dark_first(place: OpenPlace, name: str) -> None:
    spot = place("empty")
    spot.engine.create_experiment("L1", "light dark", hypothesis="light dark light dark")
    board = spot.dashboard()
    board.theme = "nord"
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "ctrl+p", *name)
        await until(pilot, lambda: "Open L1 light dark" in screen_text(board), "the rivals")
        await press(pilot, "enter")
        await until(pilot, lambda: board.theme == f"textual-{name}", "the theme")


async def test_the_palette_runs_actions_and_opens_experiments(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "ctrl+p", *"fitness of")
        await until(pilot, lambda: "Fitness of the deployment" in screen_text(board), "the command")
        await press(pilot, "enter")
        await until(pilot, lambda: shows(board, FitnessScreen), "the fitness screen")
        await press(pilot, "ctrl+p", *"simple coding")
        await until(pilot, lambda: "Route simple coding to Sonnet" in screen_text(board), "the experiment")
        await press(pilot, "enter")
        await until(pilot, lambda: shows(board_of(pilot), ExperimentScreen), "its screen")


def footer(board: Dashboard) -> str:
    return screen_text(board).rstrip("\n").split("\n")[-1].strip()


def test_keys_are_not_given_twice() -> None:
    for where in ("experiments", "experiment", "fitness"):
        keys = [key for one in ACTIONS if where in one.places for key in one.key.split(",")]
        assert len(keys) == len(set(keys))
