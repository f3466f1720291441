"""The first line of every screen, and the tabs below it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from prx_engine.records import DeploymentFitness, HistoryDay
from prx_tui.formatting import change, half_up
from prx_tui.snapshot import Snapshot
from prx_tui.view.spans import Line, Span, fit, join_fitting, line, width_of
from prx_tui.view.sparkline import common_scale, sparkline
from prx_tui.view.status import ATTENTION_GLYPH, Checking, notices

_SPARK_DAYS: Final = 14
_FRESH_SECONDS: Final = 10
_LEAST_NOTE: Final = 22
_TREND_GLYPHS: Final = {"improving": "↗ ", "declining": "↘ ", "stable": ""}
"""An arrow before a number that hardly changes would read as what the fitness will be."""


def needing_attention(snapshot: Snapshot, now: datetime, checking: Checking) -> int:
    """Return how many experiments need somebody."""
    return sum(
        bool(notices(one, now, enabled=snapshot.enabled, checking=checking)) for one in snapshot.experiments
    )


def age_words(seconds: float) -> str:
    """Return how long ago something was, coarsely: a label that changes seldom is painted seldom."""
    if seconds < _FRESH_SECONDS:
        return "just now"
    if seconds < 60:
        return f"{int(seconds // 10) * 10} s ago"
    if seconds < 3600:
        return f"{int(seconds // 60)} m ago"
    return f"{int(seconds // 3600)} h ago"


def header(
    snapshot: Snapshot | None,
    width: int,
    *,
    now: datetime | None,
    checking: Checking,
    read: str,
    read_only: bool,
    busy: str,
    problem: bool = False,
) -> Line:
    """Return the header.

    Args:
        snapshot: None before the first one.
        width: of the terminal.
        now: by the engine's clock; None before a database was ever open.
        checking: how checks come about.
        read: when the data was read, in words.
        read_only: whether the dashboard only watches.
        busy: what the worker does at this moment, if that is worth a word.
        problem: whether the database cannot be used.
    """
    name = line(Span("prx", "strong"))
    if snapshot is None:
        return join_fitting(
            [(0, name), (0, line(Span("nothing to show yet" if problem else "reading…", "dim")))], width
        )
    now = now or snapshot.now
    left: list[tuple[int, Line]] = [(0, name), (1, fitness_words(snapshot.fitness, snapshot.history))]
    active = len(snapshot.active)
    left.append((0, line(Span(f"{active} active"), *_needs(needing_attention(snapshot, now, checking)))))
    if not snapshot.enabled:
        left.append((0, line(Span("experiments are off", "attention"))))
    if read_only:
        left.append((2, line(Span("read only", "dim"))))
    right: list[tuple[int, Line]] = [(4, line(Span(f"read {read}", "dim")))]
    if busy:
        right.append((3, line(Span(busy, "strong"))))
    elif snapshot.enabled and snapshot.next_check_at is not None:
        due = snapshot.next_check_at
        late = checking.is_overdue(due, now)
        words = f"next check {checking.words(due, now)}"
        right.append((1 if late else 3, line(Span(words, "attention" if late else "dim"))))
    return _justified(left, right, width)


def fitness_words(deployment: DeploymentFitness, history: Sequence[HistoryDay]) -> Line:
    """Return fitness with its sparkline and trend."""
    fitness = deployment.fitness
    if deployment.missing_sessions:
        wanted = fitness.sessions + deployment.missing_sessions
        return line("fitness ", Span(f"– ({fitness.sessions} of {wanted} sessions)", "dim"))
    tone = "attention" if deployment.alert else "strong"
    days = [day.fitness.composite if day.fitness.valid else None for day in history[-_SPARK_DAYS:]]
    blocks = sparkline(days, 7, common_scale(days)).strip()
    parts: list[Line | Span | str] = [
        "fitness ",
        Span(half_up(fitness.composite, 2), tone),  # type: ignore[arg-type]
        Span(f" {blocks}" if blocks else "", "treatment"),
    ]
    if deployment.alert:
        parts.append(
            Span(f" {ATTENTION_GLYPH} below {half_up(deployment.minimum_acceptable, 2)}", "attention")
        )
    if deployment.trend and deployment.change is not None:
        glyph = _TREND_GLYPHS[deployment.trend]
        parts.append(f" {glyph}{change(deployment.change, 2)} over 7 d")
    return line(*parts)


def tabs(names: Sequence[tuple[str, str]], current: str, width: int, note: Line = ()) -> Line:
    """Return a row of tabs.

    Args:
        names: each tab's name and what stands behind it (a count, a mark).
        current: name of the chosen one.
        width: cells to fill.
        note: stands at the right end.
    """
    parts: list[Span] = []
    for index, (name, extra) in enumerate(names):
        if index:
            parts.append(Span(" │ ", "dim"))
        chosen = name == current
        parts.append(Span(f"[{name}]" if chosen else f" {name} ", "strong" if chosen else ""))
        if extra:
            parts.append(Span(f" {extra}", "attention" if ATTENTION_GLYPH in extra else "dim"))
    left = tuple(parts)
    room = width - width_of(left) - 2
    if not note or room < min(width_of(note), _LEAST_NOTE):
        return fit(left, width)
    return line(left, "  ", fit(note, room, right=True))


def tab_at(names: Sequence[tuple[str, str]], x: int) -> str | None:
    """Return the tab that stands at a column of what ``tabs`` returned."""
    start = 0
    for name, extra in names:
        end = start + len(name) + 2 + (len(extra) + 1 if extra else 0)
        if start <= x < end:
            return name
        start = end + 3
    return None


def _needs(count: int) -> list[Span]:
    if not count:
        return []
    return [
        Span(" · ", "dim"),
        Span(f"{ATTENTION_GLYPH} {count} need{'s' if count == 1 else ''} you", "attention"),
    ]


def _justified(left: list[tuple[int, Line]], right: list[tuple[int, Line]], width: int) -> Line:
    """Return pieces at both ends of a line; the least important leave first."""
    both = [(importance, piece, False) for importance, piece in left]
    both += [(importance, piece, True) for importance, piece in right]
    gap = "   "
    while len(both) > 1 and sum(width_of(piece) for _, piece, _ in both) + 3 * (len(both) - 1) > width:
        del both[max(range(len(both)), key=lambda i: (both[i][0], i))]
    before = join_fitting([(i, piece) for i, piece, is_right in both if not is_right], width, gap)
    after = (
        join_fitting([(i, piece) for i, piece, is_right in both if is_right], width, gap)
        if any(is_right for _, _, is_right in both)
        else ()
    )
    return line(fit(before, max(width - width_of(after), 1)), after)
