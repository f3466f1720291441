"""The field that filters the list while somebody types."""

from __future__ import annotations

from typing import Protocol, cast

from textual import on
from textual.widgets import Input


class Filtered(Protocol):
    """A screen with something to filter."""

    def filter_to(self, text: str, *, done: bool) -> None:
        """Show only what fits a text; ``done`` gives the keys back to the list."""


class FilterBox(Input):
    """One line of text; enter keeps the filter, escape (the screen's) clears it."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            placeholder="id, hypothesis, layer, decision, status or outcome",
            id=id,
            compact=True,
            max_length=200,
        )
        self.cursor_blink = False

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        cast(Filtered, self.screen).filter_to(event.value, done=False)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        cast(Filtered, self.screen).filter_to(event.value, done=True)
