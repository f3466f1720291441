"""Tabs on one line, without the focus."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from prx_tui.view.header import tab_at, tabs
from prx_tui.view.spans import Line
from prx_tui.widgets.lines import Lines


class TabBar(Lines):
    """Names of tabs, one of them chosen; ``[`` and ``]`` of the screen change it, and the mouse."""

    class Chosen(Message):
        """Somebody clicked a tab."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._names: Sequence[tuple[str, str]] = ()

    def show_tabs(self, names: Sequence[tuple[str, str]], current: str, width: int, note: Line = ()) -> None:
        """Show tabs; see ``prx_tui.view.header.tabs``."""
        self._names = names
        self.show([tabs(names, current, width, note)])

    def on_click(self, event: events.Click) -> None:
        name = tab_at(self._names, event.x)
        if name is not None:
            self.post_message(self.Chosen(name))
