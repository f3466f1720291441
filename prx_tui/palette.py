"""The command palette: every action of the screen below, and every experiment by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from prx_engine.ids import short
from prx_engine.records import Experiment
from prx_tui.screens.base import LiveScreen
from prx_tui.text import safe_text

if TYPE_CHECKING:
    from prx_tui.app import Dashboard

_NAME_LENGTH = 100


class ActionCommands(Provider):
    """What the footer and the help page list, under its full name."""

    async def discover(self) -> Hits:
        for title, command in self._commands():
            yield DiscoveryHit(Content(title), command, text=title)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, command in self._commands():
            score = matcher.match(title)
            if score > 0:
                yield Hit(score, matcher.highlight(title), command, text=title)

    def _commands(self) -> list[tuple[str, partial[None]]]:
        screen = self.screen
        if not isinstance(screen, LiveScreen):
            return []
        return [
            (f"{one.title}  ({one.key_words})", partial(_run, screen, one.id))
            for one in screen.actions
            if one.palette
        ]


class ExperimentCommands(Provider):
    """Open an experiment by a part of its name."""

    async def search(self, query: str) -> Hits:
        board = cast("Dashboard", self.app)
        if board.snapshot is None:
            return
        matcher = self.matcher(query)
        for experiment in board.snapshot.experiments:
            name = _name(experiment)
            score = matcher.match(name)
            if score > 0:
                # Plain content, not the matcher's: what is highlighted there has been read as markup.
                open_it = partial(board.open_experiment, experiment.experiment_id)
                yield Hit(score, Content(name), open_it, text=name)


def _name(experiment: Experiment) -> str:
    hypothesis = safe_text(experiment.hypothesis, _NAME_LENGTH)
    return f"Open {experiment.layer} {hypothesis} (…{short(experiment.experiment_id)}, {experiment.status})"


def _run(screen: LiveScreen, action: str) -> None:
    # The palette has to be gone first: an action may open a screen of its own.
    screen.call_after_refresh(getattr(screen, f"action_{action}"))
