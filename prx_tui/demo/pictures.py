"""Pictures of the demo's screens, the same to the last byte for the same seed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from textual.pilot import Pilot

from prx_tui import app as app_module
from prx_tui.app import Dashboard
from prx_tui.demo.agent import Agent
from prx_tui.demo.cast import HISTORY, NEXT
from prx_tui.demo.clock import DEMO_NOW, GRACE
from prx_tui.demo.deployment import Deployment, throw_away_deployment
from prx_tui.demo.history import World, make_history

STEPS: Final = 10
STEP: Final = timedelta(hours=1, minutes=15)
"""The agent runs so many steps before the clock stops for the pictures."""

LIGHT: Final = "textual-light"
_DARK: Final = "textual-dark"
_POLL_SECONDS: Final = 0.05
_SAME_LOOKS: Final = 5
_LONGEST_WAIT_SECONDS: Final = 30.0
_VARIABLES_OF_TASTE: Final = ("COLORFGBG", "FORCE_COLOR", "NO_COLOR", "TEXTUAL_COLOR_SYSTEM", "TEXTUAL_THEME")


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture.

    Attributes:
        name: of the file, without its ending.
        keys: pressed from the first screen on.
        size: columns and rows.
        theme: colours.
    """

    name: str
    keys: tuple[str, ...] = ()
    size: tuple[int, int] = (120, 40)
    theme: str = _DARK


PICTURES: Final = (
    Picture("experiments"),
    Picture("experiments-light", theme=LIGHT),
    Picture("experiments-narrow", size=(80, 24)),
    Picture("experiments-wide", size=(200, 60)),
    Picture("converged", ("]",)),
    Picture("experiment", ("enter",)),
    Picture("experiment-light", ("enter",), theme=LIGHT),
    Picture("experiment-narrow", ("enter",), size=(80, 24)),
    Picture("experiment-wide", ("j", "j", "enter"), size=(200, 60)),
    Picture("experiment-narrow-fitness", ("enter", "]"), size=(80, 24)),
    Picture("experiment-narrow-boundary", ("j", "j", "enter", "]", "]"), size=(80, 24)),
    Picture("boundary", ("j", "j", "enter", "]")),
    Picture("looks", ("j", "j", "enter", "]", "]")),
    Picture("changes", ("j", "enter", "]", "]", "]")),
    Picture("events", ("enter", "]", "]", "]", "]")),
    Picture("fitness", ("f",)),
    Picture("fitness-light", ("f",), theme=LIGHT),
    Picture("fitness-narrow", ("f",), size=(80, 24)),
    Picture("confirmation", ("c",)),
    Picture("preview", ("v",)),
    Picture("help", ("question_mark",)),
)


class _StillDashboard(Dashboard):
    """The dashboard without the words that depend on how fast this machine is."""

    # A subclass would look for it beside itself.
    CSS_PATH = str(Path(app_module.__file__).with_name("styles.tcss"))

    @property
    def read_words(self) -> str:
        return "just now"

    @property
    def busy_words(self) -> str:
        return ""


def take_pictures(folder: Path, seed: int, pictures: tuple[Picture, ...] = PICTURES) -> list[Path]:
    """Write pictures of the demo as SVG files and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    with throw_away_deployment(seed) as deployment, _plain_environment():
        _prepare(deployment)
        return [_taken(deployment, picture, folder) for picture in pictures]


def _prepare(deployment: Deployment) -> None:
    """Make the history, let the agent run its steps, and leave the clock where it then stands."""
    world = World(deployment.seed, HISTORY + NEXT)
    arrivals = make_history(deployment, world)
    with deployment.engine("agent") as engine:
        agent = Agent(engine, world, arrivals, deployment.clock)
        for step in range(1, STEPS + 1):
            deployment.clock.move_to(DEMO_NOW + step * STEP)
            agent.step()
            engine.check()


def _taken(deployment: Deployment, picture: Picture, folder: Path) -> Path:
    path = folder / f"{picture.name}.svg"
    path.write_text(asyncio.run(_drawn(deployment, picture)), encoding="utf-8")
    return path


async def _drawn(deployment: Deployment, picture: Picture) -> str:
    app = _StillDashboard(deployment.engine, checks=False, poll_seconds=_POLL_SECONDS, grace=GRACE)
    async with app.run_test(size=picture.size) as pilot:
        app.theme = picture.theme
        await _settled(app, pilot)
        for key in picture.keys:
            await pilot.press(key)
            await _settled(app, pilot)
        return app.export_screenshot(title="prx")


async def _settled(app: Dashboard, pilot: Pilot[Any]) -> None:
    """Wait until everything is read and several looks at the screen in a row are the same."""
    last, same, waited = "", 0, 0.0
    while same < _SAME_LOOKS and waited < _LONGEST_WAIT_SECONDS:
        await pilot.pause(_POLL_SECONDS)
        waited += _POLL_SECONDS
        look = app.export_screenshot(title="prx")
        ready = app.snapshot is not None and app.worker.phase == "idle"
        same = same + 1 if look == last and ready else 0
        last = look


@contextmanager
def _plain_environment() -> Iterator[None]:
    """Leave out what a person has set for colours."""
    kept = {name: os.environ.pop(name) for name in _VARIABLES_OF_TASTE if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)
