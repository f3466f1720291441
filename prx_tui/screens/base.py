"""What all screens have in common: the header, the banner, the footer, and how news reaches them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widget import Widget

from prx_tui.actions import Action, Place, available
from prx_tui.snapshot import Snapshot, View
from prx_tui.view.header import header
from prx_tui.view.keys import footer
from prx_tui.view.spans import Line, Span, line, wrap
from prx_tui.widgets.lines import Lines

if TYPE_CHECKING:
    from prx_tui.app import Dashboard

_ON_DATA: Final = frozenset({"fitness", "filter", "next_tab", "previous_tab", "sort", "reverse"})


def bindings(place: Place) -> list[BindingType]:
    """Return the key bindings of a screen, from the registry."""
    return [
        Binding(one.key, one.id, one.label or one.title, show=False, id=f"{place}.{one.id}")
        for one in available(place, read_only=False)
        if one.id != "command_palette"
    ]


class LiveScreen(Screen[None]):
    """A screen that shows the present snapshot."""

    PLACE: ClassVar[Place]

    @property
    def dashboard(self) -> Dashboard:
        """The application."""
        return cast("Dashboard", self.app)

    @property
    def actions(self) -> list[Action]:
        """What can be done here."""
        return available(self.PLACE, read_only=self.dashboard.read_only)

    @property
    def possible_actions(self) -> list[Action]:
        """What of that can be done now: the other keys only say why they cannot."""
        return [one for one in self.actions if self.is_possible(one.id)]

    def is_possible(self, action: str) -> bool:
        """Tell whether an action has something to act on now."""
        return self.dashboard.snapshot is not None or action not in _ON_DATA

    @property
    def clock_now(self) -> datetime | None:
        """The present time by the engine's clock."""
        return self.dashboard.clock_now

    def compose(self) -> ComposeResult:
        yield Lines(id="header")
        yield Lines(id="banner")
        yield from self.body()
        yield Lines(id="keys")

    def body(self) -> ComposeResult:
        """Yield what stands between banner and footer."""
        raise NotImplementedError

    def wanted(self) -> View:
        """Return what has to be read for this screen."""
        return View()

    def show(self, snapshot: Snapshot) -> None:
        """Show a snapshot; called on arrival, on resize, and when time has changed what is shown."""
        raise NotImplementedError

    # News

    def on_mount(self) -> None:
        self.refresh_all()

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        self.dashboard.show_wanted(self.wanted())
        self.dashboard.announce_untold()
        self.refresh_all()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.refresh_all)

    def refresh_all(self) -> None:
        """Bring everything on the screen up to date."""
        try:
            with self.app.batch_update():
                self.refresh_frame()
                if self.dashboard.snapshot is not None:
                    self.show(self.dashboard.snapshot)
        except NoMatches:
            # News for a screen that is being put together or taken apart: it reads all when it resumes.
            return

    def refresh_ages(self) -> None:
        """Bring what counts on by itself up to date."""
        try:
            self.refresh_frame()
        except NoMatches:
            return

    def refresh_frame(self) -> None:
        """Bring header, banner and footer up to date."""
        width = self.app.size.width
        board = self.dashboard
        self.lines("#header").show(
            [
                line(
                    " ",
                    header(
                        board.snapshot,
                        width - 2,
                        now=board.clock_now,
                        checking=board.checking,
                        read=board.read_words,
                        read_only=board.read_only,
                        busy=board.busy_words,
                        problem=board.in_trouble,
                    ),
                )
            ]
        )
        self._show_banner(board.banner, width)
        self.refresh_keys()

    def refresh_keys(self) -> None:
        """Bring the footer up to date."""
        for keys in self.query("#keys").results(Lines):
            keys.show([self.keys_line(self.app.size.width)])

    def keys_line(self, width: int) -> Line:
        """Return the footer."""
        return footer(self.possible_actions, width)

    def lines(self, selector: str) -> Lines:
        """Return one of the screen's lines."""
        return self.query_one(selector, Lines)

    def _show_banner(self, texts: Sequence[str], width: int) -> None:
        shown: list[Line] = []
        for index, text in enumerate(texts):
            spans = line(Span(f"▲ {text}", "attention") if index == 0 else Span(f"  {text}"))
            shown += [line(" ", one) for one in wrap(spans, width - 2, "  ")]
        banner = self.lines("#banner")
        banner.display = bool(shown)
        banner.show(shown)

    # Actions of every screen

    def action_back(self) -> None:
        if len(self.app.screen_stack) > 1:
            self.app.pop_screen()

    def action_fitness(self) -> None:
        if self.is_possible("fitness"):
            self.dashboard.open_fitness()
        else:
            self.dashboard.announce("There is no fitness to show: no database was read yet.", problem=True)

    def action_reread(self) -> None:
        self.dashboard.read_again()

    def action_help(self) -> None:
        self.dashboard.open_help(self.actions)

    def action_quit(self) -> None:
        self.app.exit()

    def pager(self) -> Widget:
        """Return the widget that moves with the keys of a pager."""
        raise NotImplementedError

    def action_down(self) -> None:
        self.pager().scroll_down(animate=False)

    def action_up(self) -> None:
        self.pager().scroll_up(animate=False)

    def action_top(self) -> None:
        self.pager().scroll_home(animate=False)

    def action_bottom(self) -> None:
        self.pager().scroll_end(animate=False)
