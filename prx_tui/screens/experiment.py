"""One experiment."""

from __future__ import annotations

from collections.abc import Sequence
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
from prx_tui.view.course import fitness_chart, sequential_picture
from prx_tui.view.spans import Line, Span, fit, line, wrap
from prx_tui.view.status import notices
from prx_tui.view.story import full_story, story
from prx_tui.widgets.lines import Lines, Scroller
from prx_tui.widgets.tab_bar import TabBar

TABS: Final = ("dimensions", "fitness", "boundary", "looks", "changes", "events", "why")
_IN_SIGHT: Final = frozenset({"fitness", "why"})
"""What a terminal of some height shows above the tabs."""

_WIDE: Final = 150
_TALL: Final = 30
_CHART_SHARE: Final = 3
_LOWEST_CHART: Final = 5
_TALLEST_CHART: Final = 26
_ENOUGH_BESIDE_CHART: Final = 34
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
        charts = self._charts(snapshot, experiment, details, len(top), width) if self._is_tall else []
        space: list[Line] = [()] if self._is_tall else []
        chart = self.lines("#chart")
        chart.display = self._is_tall
        chart.show([*(space if charts else []), *charts, *space])
        if self.tab not in self.tabs:
            self.tab = TABS[0]
        self.query_one(TabBar).show_tabs([(name, "") for name in self.tabs], self.tab, width)
        self.lines("#content").show(self._content(snapshot, experiment, details, width))

    @property
    def tabs(self) -> tuple[str, ...]:
        """The tabs: what has no room above them has one of its own."""
        above = _IN_SIGHT if self._is_tall else frozenset()
        if self._is_tall and self._is_wide:
            above |= {"boundary"}
        return tuple(tab for tab in TABS if tab not in above)

    @property
    def _is_tall(self) -> bool:
        return self.app.size.height >= _TALL

    @property
    def _is_wide(self) -> bool:
        return self.app.size.width >= _WIDE

    def _details(self, snapshot: Snapshot) -> ExperimentDetails | None:
        details = snapshot.details
        return details if details and details.experiment.experiment_id == self.experiment_id else None

    def _top(
        self, snapshot: Snapshot, experiment: Experiment, details: ExperimentDetails | None, width: int
    ) -> list[Line]:
        now = self.clock_now or snapshot.now
        found = notices(experiment, now, enabled=snapshot.enabled, checking=self.dashboard.checking)
        lines = [view.title(experiment, found, width), view.lifecycle_bar(experiment, now, width)]
        if self._is_tall:
            lines.append(())
        paragraphs = story(
            experiment,
            now,
            enabled=snapshot.enabled,
            decides=snapshot.decides,
            checking=self.dashboard.checking,
            details=details,
            brief=not self._is_tall,
        )
        for paragraph in paragraphs:
            lines += wrap(paragraph, width)
        return lines

    def _charts(
        self,
        snapshot: Snapshot,
        experiment: Experiment,
        details: ExperimentDetails | None,
        above: int,
        width: int,
    ) -> list[Line]:
        """Return the charts above the tabs; nothing without room for them."""
        size = self.app.size.height
        height = max(size // _CHART_SHARE, size - _ENOUGH_BESIDE_CHART)
        height = min(height, _TALLEST_CHART, size - above - _LEAST_TAB_LINES - 4)
        points = snapshot.trends.get(experiment.experiment_id, ())
        if height < _LOWEST_CHART:
            return []
        if not self._is_wide or details is None:
            return fitness_chart(experiment, points, width, height)
        left = width * 11 // 20
        now = self.clock_now or snapshot.now
        fitness = fitness_chart(experiment, points, left, height)
        picture = sequential_picture(details, now, width - left - 3, height)
        padded = [*fitness, *[()] * (len(picture) - len(fitness))]
        picture += [()] * (len(padded) - len(picture))
        return [line(fit(one, left), "   ", other) for one, other in zip(padded, picture, strict=True)]

    def _content(
        self, snapshot: Snapshot, experiment: Experiment, details: ExperimentDetails | None, width: int
    ) -> list[Line]:
        width -= 2
        now = self.clock_now or snapshot.now
        height = min(self.query_one(Scroller).size.height or self.app.size.height // 2, _TALLEST_CHART)
        if self.tab == "changes":
            changes = details.changes if details else ()
            lines = _wrapped(view.change_lines(experiment.control, experiment.treatment, changes), width)
        elif self.tab == "fitness":
            points = snapshot.trends.get(experiment.experiment_id, ())
            lines = fitness_chart(experiment, points, width, height)
            lines = lines or [line(Span("No session was scored yet.", "dim"))]
        elif self.tab == "why":
            paragraphs = full_story(
                experiment,
                now,
                enabled=snapshot.enabled,
                decides=snapshot.decides,
                checking=self.dashboard.checking,
                details=details,
            )
            lines = [piece for one in paragraphs for piece in [*wrap(one, width), ()]]
        elif details is None:
            lines = [line(Span("Reading…", "dim"))]
        elif self.tab == "dimensions":
            sessions = _wrapped(view.sessions_line(experiment, details), width)
            lines = [*view.dimension_lines(details, width), (), *sessions]
        elif self.tab == "boundary":
            lines = sequential_picture(details, now, width, height)
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
        self._set_tab(self.tabs[(self.tabs.index(self.tab) + 1) % len(self.tabs)])

    def action_previous_tab(self) -> None:
        self._set_tab(self.tabs[self.tabs.index(self.tab) - 1])

    def _set_tab(self, tab: str) -> None:
        self.tab = tab
        self.query_one(Scroller).scroll_home(animate=False)
        self.refresh_all()


def _wrapped(lines: Sequence[Line], width: int) -> list[Line]:
    return [piece for one in lines for piece in wrap(one, width, "  ")]
