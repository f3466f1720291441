"""Fitness of the deployment."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget

from prx_tui.screens.base import LiveScreen, bindings
from prx_tui.snapshot import Snapshot, View
from prx_tui.view import fitness as view
from prx_tui.view.spans import Line, Span, line
from prx_tui.widgets.lines import Lines, Scroller
from prx_tui.widgets.tab_bar import TabBar

_LOWEST_CHART = 6
_TALLEST_CHART = 24
_TABLE_LINES = 10


class FitnessScreen(LiveScreen):
    """The figure, its history, and the dimensions behind it."""

    PLACE = "fitness"
    BINDINGS: ClassVar[list[BindingType]] = bindings("fitness")
    AUTO_FOCUS = "Scroller"

    def __init__(self) -> None:
        super().__init__()
        self.days = view.SPANS[1]

    def body(self) -> ComposeResult:
        yield Lines(id="headline")
        yield TabBar(id="tabs")
        yield Lines(id="chart")
        with Scroller():
            yield Lines(id="dimensions")

    def wanted(self) -> View:
        return View(days=self.days)

    def pager(self) -> Widget:
        return self.query_one(Scroller)

    def show(self, snapshot: Snapshot) -> None:
        width, height = self.app.size.width - 2, self.app.size.height
        headline = view.headline(snapshot.fitness, width)
        airy = height >= 30
        space: list[Line] = [()] if airy else []
        self.lines("#headline").show([line(" ", one) for one in [*space, *headline, *space]])
        note = line(Span("fitness by day", "dim"))
        names = [(f"{days} days", "") for days in view.SPANS]
        self.query_one(TabBar).show_tabs(names, f"{self.days} days", width, note)
        history = snapshot.history[-self.days :]
        room = height - len(headline) - _TABLE_LINES - (6 if airy else 3)
        chart = view.history_chart(
            history, snapshot.fitness.minimum_acceptable, width, min(max(room, _LOWEST_CHART), _TALLEST_CHART)
        )
        if not chart:
            chart = [line(Span("No day of this span has enough sessions for a figure yet.", "dim"))]
        self.lines("#chart").show([line(" ", one) for one in [*chart, *space]])
        rows = view.dimension_rows(snapshot.fitness, history, width - 2)
        self.lines("#dimensions").show([line(" ", one) for one in rows])

    @on(TabBar.Chosen)
    def _span_clicked(self, event: TabBar.Chosen) -> None:
        self._set_days(int(event.name.split()[0]))

    def action_next_tab(self) -> None:
        self._set_days(view.SPANS[(view.SPANS.index(self.days) + 1) % len(view.SPANS)])

    def action_previous_tab(self) -> None:
        self._set_days(view.SPANS[view.SPANS.index(self.days) - 1])

    def _set_days(self, days: int) -> None:
        self.days = days
        self.dashboard.show_wanted(self.wanted())
        self.refresh_all()
