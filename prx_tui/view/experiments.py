"""The list of experiments: its columns, rows, order, tabs and filter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from prx_engine.ids import short
from prx_engine.records import Experiment, Status, TrendPoint
from prx_tui.formatting import NONE, half_up, hours, p_value, percent
from prx_tui.text import safe_text
from prx_tui.view.columns import Column, Row
from prx_tui.view.spans import Line, Span, line
from prx_tui.view.sparkline import Scale, common_scale, sparkline
from prx_tui.view.status import (
    CHECKED_ELSEWHERE,
    Checking,
    Notice,
    conclusion_words,
    notices,
    promotion_words,
    status_cell,
)

Tab = Literal["active", "converged", "cancelled", "all"]
TABS: Final[tuple[Tab, ...]] = ("active", "converged", "cancelled", "all")

_TREND_WIDTH: Final = 10
_HYPOTHESIS_LENGTH: Final = 200
_DAY: Final = timedelta(days=1)

DEFAULT_ORDER: Final = "attention"
"""Not a column: what needs attention first, then what is active, then the newest."""


class Order(NamedTuple):
    """How rows are sorted: by a column or the default order, and whether the other way round."""

    by: str = DEFAULT_ORDER
    reverse: bool = False


class Shown(NamedTuple):
    """An experiment with what the list needs to know beside its record."""

    experiment: Experiment
    notices: tuple[Notice, ...]
    trend: tuple[float | None, ...]
    now: datetime


COLUMNS: Final = (
    Column("status", "status", compact=1),
    Column("layer", ""),
    Column("hypothesis", "hypothesis", flexible=True),
    Column("sessions", "sessions C/T", importance=1),
    Column("fitness", "fitness C → T", importance=4),
    Column("lift", "lift", importance=2, right=True),
    Column("interval", "(interval)", importance=6),
    Column("p", "p / needs", importance=3),
    Column("trend", "trend", importance=7),
    Column("day", "day", importance=8),
    Column("age", "age", importance=9, right=True),
    Column("id", "id", importance=11),
    Column("decision", "decision", importance=10),
    Column("next", "what next"),
)


def shown(
    experiments: Iterable[Experiment],
    trends: Mapping[str, Sequence[TrendPoint]],
    now: datetime,
    *,
    enabled: bool,
    checking: Checking = CHECKED_ELSEWHERE,
) -> list[Shown]:
    """Return experiments with what needs attention about each and the course of the treatment's fitness."""
    return [
        Shown(
            experiment,
            tuple(notices(experiment, now, enabled=enabled, checking=checking)),
            steady_treatment(experiment, trends.get(experiment.experiment_id, ())),
            now,
        )
        for experiment in experiments
    ]


def steady_treatment(experiment: Experiment, points: Sequence[TrendPoint]) -> tuple[float | None, ...]:
    """Return the course of the treatment's fitness; its first sessions, which jump about, are left out."""
    least = experiment.parameters.fitness.min_sessions_for_score
    return tuple(point.treatment for point in points if point.treatment_sessions >= least)


def in_tab(experiment: Experiment, tab: Tab) -> bool:
    """Tell whether an experiment belongs under a tab."""
    return tab == "all" or (experiment.active if tab == "active" else experiment.status == tab)


def tab_counts(counts: Mapping[Status, int]) -> dict[Tab, int]:
    """Return how many experiments there are under each tab."""
    return {
        "active": counts["running"] + counts["evaluating"],
        "converged": counts["converged"],
        "cancelled": counts["cancelled"],
        "all": sum(counts.values()),
    }


def matches(entry: Shown, text: str) -> bool:
    """Tell whether all words of a filter are in what names an experiment, or what its row says of it."""
    experiment = entry.experiment
    haystack = " ".join(
        (
            experiment.experiment_id,
            experiment.hypothesis,
            experiment.layer,
            experiment.decision_id or "",
            experiment.status,
            outcome(experiment),
            *(notice.short for notice in entry.notices),
        )
    ).casefold()
    return all(word in haystack for word in text.casefold().split())


def ordered(entries: Sequence[Shown], order: Order) -> list[Shown]:
    """Return experiments in order; those without a value come last whichever way it runs."""
    if order.by == DEFAULT_ORDER:
        ranked = sorted(entries, key=_attention_key)
        return ranked[::-1] if order.reverse else ranked
    key = _SORT_KEYS[order.by]
    known = [entry for entry in entries if key(entry) is not None]
    unknown = [entry for entry in entries if key(entry) is None]
    return sorted(known, key=key, reverse=order.reverse) + unknown


def sortable() -> tuple[str, ...]:
    """Return all that the list can be sorted by, the default order first."""
    return (DEFAULT_ORDER, *(column.id for column in COLUMNS))


def rows(entries: Sequence[Shown]) -> list[Row]:
    """Return the rows of the list."""
    scale = common_scale(value for entry in entries for value in entry.trend)
    return [_row(entry, scale) for entry in entries]


def titles(tab: Tab, order: Order) -> tuple[Column, ...]:
    """Return the columns with heads that fit the tab and show the order."""
    last = {"active": "next check", "all": "next check or outcome"}.get(tab, "outcome")
    arrow = " ↓" if order.reverse else " ↑"
    return tuple(
        Column(
            column.id,
            (last if column.id == "next" else column.title) + (arrow if column.id == order.by else ""),
            column.importance,
            column.right,
            column.flexible,
            column.compact,
        )
        for column in COLUMNS
    )


def outcome(experiment: Experiment) -> str:
    """Return how an ended experiment ended, in a few words."""
    words = conclusion_words(experiment.conclusion)
    promotion = promotion_words(experiment)
    return f"{words} · {promotion}" if promotion else words


def _row(entry: Shown, scale: Scale) -> Row:
    experiment = entry.experiment
    cells: dict[str, Line] = {
        "status": status_cell(experiment, entry.notices),
        "layer": line(experiment.layer),
        "hypothesis": line(safe_text(experiment.hypothesis, _HYPOTHESIS_LENGTH)),
        "sessions": _sessions(experiment),
        "fitness": _fitness(experiment),
        "lift": _lift(experiment),
        "interval": _interval(experiment),
        "p": p_and_needs(experiment),
        "trend": line(sparkline(entry.trend, _TREND_WIDTH, scale)),
        "day": _day(experiment, entry.now),
        "age": line(Span(hours(entry.now - experiment.created_at), "dim")),
        "id": line(Span(f"…{short(experiment.experiment_id)}", "dim")),
        "decision": line(Span(safe_text(experiment.decision_id or NONE, 16), "dim")),
        "next": _next(entry),
    }
    return Row(experiment.experiment_id, tuple(cells[column.id] for column in COLUMNS), essence(experiment))


def essence(experiment: Experiment) -> tuple[str, ...]:
    """Return what must differ for an experiment to have changed; time alone changes none of it."""
    return tuple(
        str(value)
        for value in (
            experiment.status,
            experiment.control_sessions,
            experiment.treatment_sessions,
            experiment.control_fitness.composite,
            experiment.treatment_fitness.composite,
            experiment.planned_end_at,
            experiment.next_check_at,
            experiment.last_look and experiment.last_look.k,
            experiment.verdict,
            experiment.blocked_by,
            experiment.promotion,
        )
    )


def _sessions(experiment: Experiment) -> Line:
    control, treatment = experiment.control_sessions, experiment.treatment_sessions
    mismatch = experiment.active and "sample_ratio_mismatch" in experiment.blocked_by
    counts = Span(f"{control}/{treatment}", "attention" if mismatch else "")
    scored = min(experiment.control_fitness.sessions, experiment.treatment_fitness.sessions)
    needed = experiment.parameters.experiments.min_sample_size
    if experiment.active and scored < needed:
        return line(counts, Span(f" of {needed}", "dim"))
    return line(counts)


def _fitness(experiment: Experiment) -> Line:
    control, treatment = experiment.control_fitness.composite, experiment.treatment_fitness.composite
    if control is None and treatment is None:
        return line(Span(NONE, "dim"))
    return line(half_up(control, 3), Span(" → ", "dim"), half_up(treatment, 3))


def _lift(experiment: Experiment) -> Line:
    look = experiment.last_look
    if look is None:
        return line(Span(NONE, "dim"))
    return line(Span(percent(look.lift, signed=True), "strong" if look.significant else ""))


def _interval(experiment: Experiment) -> Line:
    look = experiment.last_look
    if look is None or look.lift_interval is None:
        return line(Span(NONE, "dim"))
    return line(Span(interval_words(look.lift_interval.lower, look.lift_interval.upper), "dim"))


def interval_words(lower: float, upper: float) -> str:
    """Return an interval of lifts in percent, ``(−0.2…+8.9)``."""
    return f"({_points(lower)}…{_points(upper)})"


def _points(value: float) -> str:
    return half_up(value * 100, 1, signed=True)


def p_and_needs(experiment: Experiment) -> Line:
    """Return the p-value of the last look beside the level that it had to reach."""
    look = experiment.last_look
    if look is None or look.p_value is None:
        return line(Span(NONE, "dim"))
    return line(
        Span(p_value(look.p_value), "strong" if look.significant else ""),
        Span(f" / {p_value(look.alpha_threshold)}", "dim"),
    )


def _day(experiment: Experiment, now: datetime) -> Line:
    end = experiment.converged_at or now
    day = max(math.ceil((end - experiment.created_at) / _DAY), 1)
    planned = math.ceil((experiment.planned_end_at - experiment.created_at) / _DAY)
    return line(f"{day} of {planned}" if experiment.active else Span(str(day), "dim"))


def _next(entry: Shown) -> Line:
    experiment = entry.experiment
    if entry.notices:
        return line(Span(entry.notices[0].short, "attention"))
    if not experiment.active:
        return line(outcome(experiment))
    if experiment.next_check_at is None:
        return line(Span(NONE, "dim"))
    if experiment.next_check_at <= entry.now:
        return line("now")
    return line(f"in {hours(experiment.next_check_at - entry.now)}")


def _attention_key(entry: Shown) -> tuple[int, bool, float]:
    rank = min((notice.rank for notice in entry.notices), default=9)
    return rank, not entry.experiment.active, -entry.experiment.created_at.timestamp()


def _look_value(name: str) -> Callable[[Shown], Any]:
    return lambda entry: getattr(entry.experiment.last_look, name, None)


_SORT_KEYS: Final[dict[str, Callable[[Shown], Any]]] = {
    "status": lambda entry: (not entry.notices, entry.experiment.status),
    "layer": lambda entry: entry.experiment.layer,
    "hypothesis": lambda entry: entry.experiment.hypothesis.casefold(),
    "sessions": lambda entry: entry.experiment.control_sessions + entry.experiment.treatment_sessions,
    "fitness": lambda entry: entry.experiment.treatment_fitness.composite,
    "lift": _look_value("lift"),
    "interval": lambda entry: (
        entry.experiment.last_look
        and entry.experiment.last_look.lift_interval
        and entry.experiment.last_look.lift_interval.lower
    ),
    "p": _look_value("p_value"),
    "trend": lambda entry: next((value for value in reversed(entry.trend) if value is not None), None),
    "day": lambda entry: entry.experiment.planned_end_at,
    "age": lambda entry: -entry.experiment.created_at.timestamp(),
    "id": lambda entry: entry.experiment.experiment_id[-8:],
    "decision": lambda entry: entry.experiment.decision_id,
    "next": lambda entry: entry.experiment.next_check_at or entry.experiment.converged_at,
}
