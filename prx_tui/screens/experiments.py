"""The list of experiments: what is live, what is in trouble, and what happens next."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.timer import Timer
from textual.widget import Widget

from prx_engine.records import Experiment
from prx_tui.screens.base import bindings
from prx_tui.screens.targeting import TargetScreen
from prx_tui.snapshot import MOST_OF_A_STATUS, Snapshot
from prx_tui.text import safe_text
from prx_tui.view import experiments as view
from prx_tui.view.columns import Row
from prx_tui.view.spans import Line, Span, fit, line, wrap
from prx_tui.view.status import ATTENTION_GLYPH
from prx_tui.view.story import story
from prx_tui.widgets.lines import Lines
from prx_tui.widgets.row_table import RowTable
from prx_tui.widgets.tab_bar import TabBar

_MARK_SECONDS = 3.0
_LEAST_ROWS = 6
_TALLEST_CHART = 24
_LOWEST_CHART = 6
_TALL = 30
_WIDE = 96
_ON_ROWS = frozenset({"filter", "next_tab", "previous_tab", "sort", "reverse"})


class ExperimentsScreen(TargetScreen):
    """The first screen."""

    PLACE = "experiments"
    BINDINGS: ClassVar[list[BindingType]] = bindings("experiments")
    AUTO_FOCUS = "RowTable"

    def __init__(self) -> None:
        super().__init__()
        self.tab: view.Tab = "active"
        self.order = view.Order()
        self.filter_text = ""
        self._essences: dict[str, tuple[str, ...]] | None = None
        self._unmark: Timer | None = None

    def body(self) -> ComposeResult:
        yield TabBar(id="tabs")
        yield RowTable(id="table")
        yield Lines(id="pane")

    @property
    def table(self) -> RowTable:
        """The list."""
        return self.query_one(RowTable)

    def pager(self) -> Widget:
        return self.table

    def target(self) -> Experiment | None:
        snapshot, key = self.dashboard.snapshot, self.table.cursor_key
        return snapshot.experiment(key) if snapshot is not None and key is not None else None

    def is_possible(self, action: str) -> bool:
        if action == "clear_filter":
            return bool(self.filter_text)
        snapshot = self.dashboard.snapshot
        if action in _ON_ROWS and (snapshot is None or not sum(snapshot.counts.values())):
            return False
        return super().is_possible(action)

    def keys_line(self, width: int) -> Line:
        if self.focused is not None and self.focused.id == "filter":
            return line(" ", Span("enter", "key"), " keep the filter  ", Span("esc", "key"), " clear it")
        return super().keys_line(width)

    # Showing

    def show(self, snapshot: Snapshot) -> None:
        now = self.clock_now or snapshot.now
        entries = view.shown(
            snapshot.experiments,
            snapshot.trends,
            now,
            enabled=snapshot.enabled,
            checking=self.dashboard.checking,
        )
        kept = [
            entry
            for entry in entries
            if view.in_tab(entry.experiment, self.tab) and view.matches(entry, self.filter_text)
        ]
        rows = view.rows(view.ordered(kept, self.order))
        self._show_tabs(snapshot, entries, len(rows))
        self.table.show(view.titles(self.tab, self.order), rows, self._empty_words(snapshot))
        self._mark_changes(snapshot)
        self._show_pane(snapshot, rows)
        self.refresh_keys()

    def _show_tabs(self, snapshot: Snapshot, entries: list[view.Shown], shown: int) -> None:
        counts = view.tab_counts(snapshot.counts)
        names = []
        for tab in view.TABS:
            needing = sum(bool(e.notices) for e in entries if view.in_tab(e.experiment, tab))
            names.append((tab, f"{counts[tab]}{f' {ATTENTION_GLYPH}{needing}' if needing else ''}"))
        read = sum(view.in_tab(entry.experiment, self.tab) for entry in entries)
        self.query_one(TabBar).show_tabs(
            names, self.tab, self.app.size.width - 2, self._note(counts[self.tab], read, shown)
        )

    def _note(self, count: int, read: int, shown: int) -> Line:
        if self.filter_text:
            older = f", {count - read} older not searched" if read < count else ""
            return line(Span(f"{shown} of {read} match “{self.filter_text}”{older}", "strong"))
        if shown < count and self.tab != "active":
            return line(Span(f"the newest {MOST_OF_A_STATUS} of a status", "dim"))
        if self.order.by == view.DEFAULT_ORDER:
            return line(
                Span("first what needs you" if not self.order.reverse else "last what needs you", "dim")
            )
        return line(Span(f"by {self.order.by}{', reversed' if self.order.reverse else ''}", "dim"))

    def _empty_words(self, snapshot: Snapshot) -> Line:
        if self.filter_text:
            words = "Nothing matches; esc clears the filter."
        elif sum(snapshot.counts.values()) == 0:
            words = "No experiment yet. `prx evolution experiments create` makes one"
            words += "; `prx demo` shows some." if self.app.size.width >= _WIDE else "."
        elif self.tab == "active":
            words = "No experiment is active. ] shows those that have ended."
        else:
            words = f"No {self.tab} experiment."
        return line("  ", Span(words, "dim"))

    def _mark_changes(self, snapshot: Snapshot) -> None:
        """Mark for a moment what has changed since the last snapshot."""
        essences = {one.experiment_id: view.essence(one) for one in snapshot.experiments}
        known, self._essences = self._essences, essences
        if known is None or known == essences:
            return
        active = {one.experiment_id for one in snapshot.active}
        # Ended ones that were not known before have only now been read: they are no news.
        changed = frozenset(
            key
            for key, essence in essences.items()
            if known.get(key) != essence and (key in known or key in active)
        )
        if not changed:
            return
        self.table.mark(changed)
        if self._unmark is not None:
            self._unmark.stop()
        self._unmark = self.set_timer(_MARK_SECONDS, lambda: self.table.mark(frozenset()))

    def _show_pane(self, snapshot: Snapshot, rows: list[Row]) -> None:
        """Show below the list what the experiment under the cursor is about, as far as there is room."""
        experiment = self.target()
        size = self.app.size
        room = size.height - 4 - max(min(len(rows), 12), _LEAST_ROWS if size.height >= 24 else 3)
        if experiment is None or room < 4 or not rows:
            self.lines("#pane").show(())
            return
        width = size.width - 4
        lines = self._pane_lines(snapshot, experiment, width, room)
        self.lines("#pane").show([line(" ", one) for one in lines[:room]])

    def _pane_lines(self, snapshot: Snapshot, experiment: Experiment, width: int, room: int) -> list[Line]:
        now = self.clock_now or snapshot.now
        head = line(Span(f"{experiment.layer} ", "dim"), Span(safe_text(experiment.hypothesis), "strong"))
        lines: list[Line] = [line(Span("─" * width, "dim")), fit(head, width)]
        paragraphs = story(
            experiment,
            now,
            enabled=snapshot.enabled,
            decides=snapshot.decides,
            checking=self.dashboard.checking,
            brief=self.app.size.height < _TALL,
        )
        for paragraph in paragraphs:
            lines += wrap(paragraph, width)
        height = min(room - len(lines) - 1, _TALLEST_CHART)
        points = snapshot.trends.get(experiment.experiment_id, ())
        if height >= _LOWEST_CHART and points:
            from prx_tui.view.course import fitness_chart

            lines += [(), *fitness_chart(experiment, points, width, height)]
        return lines

    # Keys

    @on(RowTable.Moved)
    def _moved(self) -> None:
        snapshot = self.dashboard.snapshot
        if snapshot is not None:
            self._show_pane(snapshot, list(self.table.rows))
            self.refresh_keys()

    def on_descendant_focus(self) -> None:
        self.refresh_keys()

    def on_descendant_blur(self) -> None:
        self.refresh_keys()

    @on(RowTable.Opened)
    def action_open(self) -> None:
        experiment = self.target_or_word()
        if experiment is not None:
            self.dashboard.open_experiment(experiment.experiment_id)

    @on(RowTable.HeadClicked)
    def _head_clicked(self, event: RowTable.HeadClicked) -> None:
        reverse = not self.order.reverse if event.column == self.order.by else False
        self._set_order(view.Order(event.column, reverse))

    @on(TabBar.Chosen)
    def _tab_clicked(self, event: TabBar.Chosen) -> None:
        self._set_tab(next(tab for tab in view.TABS if tab == event.name))

    def action_next_tab(self) -> None:
        self._set_tab(view.TABS[(view.TABS.index(self.tab) + 1) % len(view.TABS)])

    def action_previous_tab(self) -> None:
        self._set_tab(view.TABS[view.TABS.index(self.tab) - 1])

    def action_sort(self) -> None:
        # Only by what is in sight: the order of a hidden column would explain itself to nobody.
        choices = [view.DEFAULT_ORDER, *self.table.shown_columns]
        place = choices.index(self.order.by) if self.order.by in choices else 0
        self._set_order(view.Order(choices[(place + 1) % len(choices)]))

    def action_reverse(self) -> None:
        self._set_order(view.Order(self.order.by, not self.order.reverse))

    async def action_filter(self) -> None:
        from prx_tui.widgets.filter_box import FilterBox

        if not self.query("#filter"):
            await self.mount(FilterBox(id="filter"), after="#tabs")
        box = self.query_one("#filter", FilterBox)
        box.display = True
        box.focus()

    def action_clear_filter(self) -> None:
        self.filter_to("", done=True)
        for box in self.query("#filter"):
            box.remove()

    def filter_to(self, text: str, *, done: bool) -> None:
        """Show only what has all words of a text.

        Args:
            text: nothing shows everything.
            done: whether the keys belong to the list again.
        """
        self.filter_text = safe_text(text.strip())
        if done:
            self.table.focus()
            for box in self.query("#filter"):
                box.display = bool(self.filter_text)
        self.refresh_all()

    def action_down(self) -> None:
        self.table.move_by(1)

    def action_up(self) -> None:
        self.table.move_by(-1)

    def action_top(self) -> None:
        self.table.move_to_end(last=False)

    def action_bottom(self) -> None:
        self.table.move_to_end(last=True)

    def _set_tab(self, tab: view.Tab) -> None:
        self.tab = tab
        self.refresh_all()

    def _set_order(self, order: view.Order) -> None:
        self.order = order
        self.refresh_all()
