"""Dashboards on deployments of the test's own, under a clock that stands still."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from prx_engine import Engine
from prx_tui.app import Dashboard
from tests.prx_tui.scenes import NOW, build
from tests.support.clock import ManualClock

POLL_SECONDS = 0.02


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a scene, built once a test process."""
    built: dict[str, Path] = {}

    def template(name: str) -> Path:
        if name not in built:
            folder = tmp_path_factory.mktemp(f"scene-{name}")
            build(name, folder).engine.close()
            built[name] = folder
        return built[name]

    return template


class Place:
    """A deployment and the dashboards on it.

    Attributes:
        folder: of database and configuration.
        clock: of every engine here.
        engine: another process, as it were.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock(NOW)
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            self._engine = self.open(create=True)
        return self._engine

    def open(self, *, create: bool = False) -> Engine:
        return Engine.open(
            self.folder / "prx.db",
            config=self.folder / "config.toml",
            clock=self.clock,
            actor="tester",
            create=create,
        )

    def dashboard(self, **options: Any) -> Dashboard:
        options = {"checks": False, "poll_seconds": POLL_SECONDS, **options}
        return Dashboard(self.open, **options)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()


class OpenPlace(Protocol):
    def __call__(self, scene: str = "busy") -> Place: ...


@pytest.fixture
def place(templates: Callable[[str], Path], tmp_path: Path) -> Iterator[OpenPlace]:
    """Copies of scenes."""
    opened: list[Place] = []

    def copy(scene: str = "busy") -> Place:
        folder = tmp_path / f"{scene}-{len(opened)}"
        shutil.copytree(templates(scene), folder)
        opened.append(Place(folder))
        return opened[-1]

    yield copy
    for one in opened:
        one.close()


async def until(pilot: Pilot[Any], condition: Callable[[], object], what: str = "") -> None:
    """Let the application run until something is so."""
    for _ in range(600):
        await pilot.pause(0.01)
        if condition():
            await pilot.pause()
            return
    raise AssertionError(f"never came: {what or condition}")


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys, and let the screens come and go that they open and close."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


def board_of(pilot: Pilot[Any]) -> Dashboard:
    assert isinstance(pilot.app, Dashboard)
    return pilot.app


async def settled(pilot: Pilot[Any]) -> None:
    """Let the dashboard read all that it wants to read, and paint it."""
    board = board_of(pilot)

    def is_settled() -> bool:
        snapshot = board.snapshot
        if snapshot is None:
            return False
        wanted = getattr(board.screen, "experiment_id", None)
        if wanted is not None and snapshot.details is None and snapshot.missing_id is None:
            return False
        return len(snapshot.trends) == len(snapshot.experiments)

    await until(pilot, is_settled, "a complete snapshot")


def shows(board: Dashboard, kind: type[Screen[Any]]) -> bool:
    """Tell whether a screen of a kind is in front; asking by ``isinstance`` would bind the type checker."""
    return isinstance(board.screen, kind)


def screen_text(board: Dashboard) -> str:
    """Return what stands on the screen, as text."""
    return "\n".join(strip.text for strip in board.screen._compositor.render_strips())


def dialog_text(board: Dashboard) -> str:
    """Return what stands in the frame of the dialog in front, as one line."""
    rows = [row.split("│") for row in screen_text(board).split("\n")]
    return " ".join(" ".join(row[1] for row in rows if len(row) == 3).split())


def told(board: Dashboard) -> str:
    """Return all announcements."""
    return "\n".join(notification.message for notification in board._notifications)
