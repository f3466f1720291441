"""What others do shows, and moves nothing that the operator holds."""

from __future__ import annotations

import pytest

from prx_tui.screens.experiment import ExperimentScreen
from prx_tui.screens.experiments import ExperimentsScreen
from prx_tui.widgets.lines import Scroller
from tests.prx_tui.conftest import OpenPlace, press, screen_text, settled, shows, told, until


async def test_changes_of_another_process_show_and_are_marked(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        screen = board.screen
        assert isinstance(screen, ExperimentsScreen)
        assert screen.table.marked == frozenset()
        await press(pilot, "G")
        held = screen.table.cursor_key
        changed = screen.table.rows[1].key
        spot.engine.extend(changed, 24)
        await until(pilot, lambda: screen.table.marked == {changed}, "the mark")
        assert screen.table.cursor_key == held
        assert screen._unmark is not None
        screen._unmark._interval = 0.0
        screen.table.mark(frozenset())
        assert screen.table.marked == frozenset()


async def test_the_cursor_stays_when_its_neighbours_end(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        screen = board.screen
        assert isinstance(screen, ExperimentsScreen)
        await press(pilot, "j")
        first, held = screen.table.rows[0].key, screen.table.cursor_key
        spot.engine.cancel(first)
        await until(pilot, lambda: len(screen.table.rows) == 2, "the news")
        assert screen.table.cursor_key == held
        assert held is not None
        spot.engine.cancel(held)
        await until(pilot, lambda: len(screen.table.rows) == 1, "the news")
        assert screen.table.cursor_key == screen.table.rows[0].key
        await press(pilot, "]", "]")
        assert screen.table.cursor_key == screen.table.rows[0].key


async def test_nothing_is_painted_when_nothing_changed(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        painted: list[object] = []
        for widget in board.screen.query("*"):
            widget.refresh = lambda *regions, **_: painted.append(regions)  # type: ignore[assignment,method-assign]
        board.refresh_screens()
        board.on_tick()
        before = board.snapshot
        board.worker.read_again()
        await until(pilot, lambda: board.snapshot is not before, "another snapshot")
        assert painted == []


async def test_an_unchanged_database_is_not_read_again(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        before = board.snapshot
        for _ in range(10):
            await pilot.pause(0.02)
        assert board.snapshot is before


async def test_scroll_and_tab_of_an_open_experiment_stay_when_it_changes(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "G", "enter")
        await settled(pilot)
        screen = board.screen
        assert isinstance(screen, ExperimentScreen)
        await press(pilot, "]", "[", "j", "j", "j")
        spot.engine.extend(screen.experiment_id, 24, "more time")
        target = screen.experiment_id

        def extended() -> bool:
            experiment = board.snapshot.experiment(target) if board.snapshot else None
            return experiment is not None and experiment.extensions == 2

        await until(pilot, extended, "the news")
        assert screen.tab == "dimensions"
        assert screen.query_one(Scroller).scroll_offset.y == 3


async def test_an_open_experiment_that_is_not_there_says_so(place: OpenPlace) -> None:
    board = place().dashboard()
    async with board.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        board.open_experiment("00000000-0000-7000-8000-000000000000")
        await until(pilot, lambda: "not in the database any more" in screen_text(board), "the word")
        await press(pilot, "c", "escape")
        assert "no experiment here" in told(board)
        assert shows(board, ExperimentsScreen)


async def test_ages_count_on(place: OpenPlace) -> None:
    spot = place()
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert "next check in 3 h 21 m" in screen_text(board)
        spot.clock.advance(minutes=30)
        board.on_tick()
        await pilot.pause()
        assert "next check in 2 h 51 m" in screen_text(board)
        assert "in 2 h 51 m" in screen_text(board).split("\n")[4]
        board._read_at -= 125
        board.on_tick()
        await pilot.pause()
        assert "read 2 m ago" in screen_text(board)


async def test_experiments_that_are_switched_off_are_said_to_be(place: OpenPlace) -> None:
    spot = place()
    (spot.folder / "config.toml").write_text("[self_evolution.experiments]\nenabled = false\n")
    board = spot.dashboard()
    async with board.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert "experiments are off" in screen_text(board).split("\n")[0]
        assert "switched off in the configuration" in screen_text(board)


@pytest.mark.parametrize("size", [(40, 10), (60, 15), (20, 5)])
async def test_a_tiny_terminal_is_no_reason_to_fail(place: OpenPlace, size: tuple[int, int]) -> None:
    board = place("trouble").dashboard()
    async with board.run_test(size=size) as pilot:
        await settled(pilot)
        await press(pilot, "enter")
        await settled(pilot)
        await press(pilot, "]", "]", "]", "c", "escape", "f", "question_mark", "escape", "escape", "escape")
        assert shows(board, ExperimentsScreen)
        await pilot.resize_terminal(200, 60)
        await pilot.pause()
        assert "A terse style saves tokens" in screen_text(board)
