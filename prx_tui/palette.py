"""The command palette: what can be done on the screen below, every experiment by name, light and dark."""

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
_FIRST = 1000.0
"""Added to the score of what was asked for by its own word."""

_THEMES = {"light": "textual-light", "dark": "textual-dark"}


class ActionCommands(Provider):
    """What can be done now, under its full name."""

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
            for one in screen.possible_actions
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


class ThemeCommands(Provider):
    """Light and dark, the two that people ask for by name."""

    async def discover(self) -> Hits:
        for name, theme in _THEMES.items():
            yield DiscoveryHit(f"Theme: {name}", partial(self._change, theme))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, theme in _THEMES.items():
            title = f"Theme: {name}"
            score = matcher.match(title)
            if score > 0:
                meant = name.startswith(query.strip().casefold())
                yield Hit(
                    score + _FIRST if meant else score,
                    matcher.highlight(title),
                    partial(self._change, theme),
                    text=title,
                )

    def _change(self, theme: str) -> None:
        self.app.theme = theme


def _name(experiment: Experiment) -> str:
    hypothesis = safe_text(experiment.hypothesis, _NAME_LENGTH)
    return f"Open {experiment.layer} {hypothesis} (…{short(experiment.experiment_id)}, {experiment.status})"


def _run(screen: LiveScreen, action: str) -> None:
    # The palette has to be gone first: an action may open a screen of its own.
    screen.call_after_refresh(getattr(screen, f"action_{action}"))
