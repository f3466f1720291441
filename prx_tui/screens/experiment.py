"""One experiment."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget

from prx_engine.records import Experiment, ExperimentDetails
from prx_tui.screens.base import bindings
from prx_tui.screens.targeting import TargetScreen
from prx_tui.snapshot import Snapshot, View
from prx_tui.view import experiment as view
from prx_tui.view.spans import Line, Span, fit, line, wrap
from prx_tui.view.status import notices
from prx_tui.widgets.lines import Lines, Scroller
from prx_tui.widgets.tab_bar import TabBar

TABS: Final = ("dimensions", "looks", "changes", "events")
_WIDE: Final = 150
_CHART_SHARE: Final = 3
_LOWEST_CHART: Final = 5
_TALLEST_CHART: Final = 20
_LEAST_TAB_LINES: Final = 8


class ExperimentScreen(TargetScreen):
    """Where an experiment stands, what happens next and why, and everything that led there."""

    PLACE = "experiment"
    BINDINGS: ClassVar[list[BindingType]] = bindings("experiment")
    AUTO_FOCUS = "Scroller"

    def __init__(self, experiment_id: str) -> None:
        super().__init__()
        self.experiment_id = experiment_id
        self.tab = TABS[0]

    def body(self) -> ComposeResult:
        yield Lines(id="title")
        yield Lines(id="story")
        yield Lines(id="chart")
        yield TabBar(id="tabs")
        with Scroller():
            yield Lines(id="content")

    def wanted(self) -> View:
        return View(open_id=self.experiment_id)

    def pager(self) -> Widget:
        return self.query_one(Scroller)

    def target(self) -> Experiment | None:
        snapshot = self.dashboard.snapshot
        return snapshot.experiment(self.experiment_id) if snapshot is not None else None

    # Showing

    def show(self, snapshot: Snapshot) -> None:
        experiment = snapshot.experiment(self.experiment_id)
        if experiment is None:
            gone = "This experiment is not in the database any more; esc goes back."
            text = gone if snapshot.missing_id == self.experiment_id else "Reading…"
            self.lines("#title").show([line(" ", Span(text, "dim"))])
            return
        details = self._details(snapshot)
        width = self.app.size.width - 2
        top = self._top(snapshot, experiment, details, width)
        self.lines("#title").show([line(" ", one) for one in top[:2]])
        self.lines("#story").show([line(" ", one) for one in top[2:]])
        self._show_chart(snapshot, experiment, details, len(top), width)
        self.query_one(TabBar).show_tabs([(name, "") for name in TABS], self.tab, width)
        self.lines("#content").show(self._content(experiment, details, width))

    def _details(self, snapshot: Snapshot) -> ExperimentDetails | None:
        details = snapshot.details
        return details if details and details.experiment.experiment_id == self.experiment_id else None

    def _top(
        self, snapshot: Snapshot, experiment: Experiment, details: ExperimentDetails | None, width: int
    ) -> list[Line]:
        now = self.clock_now or snapshot.now
        found = notices(experiment, now, enabled=snapshot.enabled)
        lines = [view.title(experiment, found, width), view.lifecycle_bar(experiment, now, width)]
        if self.app.size.height >= 30:
            lines.append(())
        paragraphs = view.story(
            experiment, now, enabled=snapshot.enabled, decides=snapshot.decides, details=details
        )
        for paragraph in paragraphs:
            lines += wrap(paragraph, width)
        return lines

    def _show_chart(
        self,
        snapshot: Snapshot,
        experiment: Experiment,
        details: ExperimentDetails | None,
        above: int,
        width: int,
    ) -> None:
        height = self.app.size.height
        room = height - above - _LEAST_TAB_LINES - 4
        chart_height = min(max(height // _CHART_SHARE, _LOWEST_CHART), _TALLEST_CHART, room)
        points = snapshot.trends.get(experiment.experiment_id, ())
        lines: list[Line] = []
        if chart_height >= _LOWEST_CHART:
            lines = self._charts(experiment, details, points, width, chart_height)
        airy = height >= 30
        self.lines("#chart").show([*([()] if airy and lines else []), *lines, *([()] if airy else [])])

    def _charts(
        self,
        experiment: Experiment,
        details: ExperimentDetails | None,
        points: object,
        width: int,
        height: int,
    ) -> list[Line]:
        looks = details.looks if details else []
        if width < _WIDE:
            return view.fitness_chart(experiment, points, width, height)  # type: ignore[arg-type]
        left = width * 3 // 5
        fitness = view.fitness_chart(experiment, points, left, height)  # type: ignore[arg-type]
        boundary = view.boundary_chart(looks, width - left - 2, height)
        if not boundary:
            return view.fitness_chart(experiment, points, width, height)  # type: ignore[arg-type]
        return [
            line(fit(a, left), "  ", b)
            for a, b in zip(fitness or [()] * len(boundary), boundary, strict=False)
        ]

    def _content(self, experiment: Experiment, details: ExperimentDetails | None, width: int) -> list[Line]:
        width -= 2
        if self.tab == "changes":
            lines: list[Line] = []
            for change in view.change_lines(
                experiment.control, experiment.treatment, details.changes if details else ()
            ):
                lines += wrap(change, width, "  ")
        elif details is None:
            lines = [line(Span("Reading…", "dim"))]
        elif self.tab == "dimensions":
            sessions: list[Line] = []
            for paragraph in view.sessions_line(experiment, details):
                sessions += wrap(paragraph, width, "  ")
            lines = [*view.dimension_lines(details, width), (), *sessions]
        elif self.tab == "looks":
            lines = view.look_lines(details, width)
        else:
            lines = view.event_lines(details.events, width)
        return [line(" ", one) for one in lines]

    # Keys

    @on(TabBar.Chosen)
    def _tab_clicked(self, event: TabBar.Chosen) -> None:
        self._set_tab(event.name)

    def action_next_tab(self) -> None:
        self._set_tab(TABS[(TABS.index(self.tab) + 1) % len(TABS)])

    def action_previous_tab(self) -> None:
        self._set_tab(TABS[TABS.index(self.tab) - 1])

    def _set_tab(self, tab: str) -> None:
        self.tab = tab
        self.query_one(Scroller).scroll_home(animate=False)
        self.refresh_all()
