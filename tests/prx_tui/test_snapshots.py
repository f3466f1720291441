"""Pictures of every screen: three sizes, light and dark, empty, busy and in trouble."""

from __future__ import annotations

from typing import Any, Protocol

import pytest
from textual.pilot import Pilot

from prx_tui.app import Dashboard
from tests.prx_tui.conftest import OpenPlace, press, settled

SIZES = [(80, 24), (120, 40), (200, 60)]
DARK, LIGHT = "textual-dark", "textual-light"
CASES = [
    (screen, scene, size, theme)
    for screen in ("experiments", "experiment", "fitness")
    for scene in ("empty", "busy", "trouble")
    for size in SIZES
    for theme in (DARK, LIGHT)
    if (screen, scene) != ("experiment", "empty") and (theme == DARK or size == (120, 40))
]


class Compare(Protocol):
    def __call__(self, app: Dashboard, *, terminal_size: tuple[int, int], run_before: Any) -> bool: ...


def case_name(case: tuple[str, str, tuple[int, int], str]) -> str:
    screen, scene, (width, height), theme = case
    return f"{screen}-{scene}-{width}x{height}-{theme.removeprefix('textual-')}"


@pytest.fixture
def compare(snap_compare: Any, monkeypatch: pytest.MonkeyPatch) -> Compare:
    # However slow the machine, the pictures say "just now".
    monkeypatch.setattr(Dashboard, "read_words", "just now")
    monkeypatch.setattr(Dashboard, "banner", ())
    return snap_compare  # type: ignore[no-any-return]


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_screen(place: OpenPlace, compare: Compare, case: tuple[str, str, tuple[int, int], str]) -> None:
    screen, scene, size, theme = case
    board = place(scene).dashboard()
    board.theme = theme

    async def prepare(pilot: Pilot[None]) -> None:
        await settled(pilot)
        if screen != "experiments":
            await press(pilot, "enter" if screen == "experiment" else "f")
            await settled(pilot)

    assert compare(board, terminal_size=size, run_before=prepare)


@pytest.mark.parametrize("keys", ["c", "e", "question_mark"])
def test_dialog(place: OpenPlace, compare: Compare, keys: str) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        await settled(pilot)
        await press(pilot, keys)

    assert compare(place("trouble").dashboard(), terminal_size=(80, 24), run_before=prepare)


@pytest.mark.parametrize("tab", [1, 2, 3])
def test_tab_of_an_experiment(place: OpenPlace, compare: Compare, tab: int) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        await settled(pilot)
        await press(pilot, "G", "enter")
        await settled(pilot)
        await press(pilot, *["]"] * tab)

    assert compare(place().dashboard(), terminal_size=(120, 40), run_before=prepare)
