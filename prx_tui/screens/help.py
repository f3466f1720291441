"""All keys of a screen, and what the signs on it mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from prx_tui.actions import Action
from prx_tui.view.keys import help_paragraphs
from prx_tui.widgets.lines import Paragraphs, Scroller


class HelpScreen(ModalScreen[None]):
    """The page behind ``?``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q,question_mark", "close", "close", show=False),
        Binding("j", "down", show=False),
        Binding("k", "up", show=False),
    ]

    def __init__(self, actions: Sequence[Action]) -> None:
        super().__init__()
        self._actions = actions

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="wide"), Scroller():
            yield Paragraphs(id="help")

    def on_mount(self) -> None:
        self.query_one(Paragraphs).show(help_paragraphs(self._actions))
        self.query_one(Scroller).focus()

    def action_close(self) -> None:
        self.dismiss(None)

    def action_down(self) -> None:
        self.query_one(Scroller).scroll_down(animate=False)

    def action_up(self) -> None:
        self.query_one(Scroller).scroll_up(animate=False)
