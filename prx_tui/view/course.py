"""The course of an experiment as charts: fitness of both arms, and the sequential picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from prx_tui.formatting import half_up, p_value
from prx_tui.view.chart import Axis, Scale, Series, chart
from prx_tui.view.spans import Line, Span, line, wrap

if TYPE_CHECKING:
    from prx_engine.records import Experiment, ExperimentDetails, Look, PlannedLook, TrendPoint

_DAY: Final = timedelta(days=1)
_LEAST_Z: Final = 3.5
_MOST_Z: Final = 6.0
_HELD: Final = "●"
_HARM: Final = "◦"
_BEYOND: Final = {True: "▲", False: "▼"}


def fitness_chart(
    experiment: Experiment, points: Sequence[TrendPoint], width: int, height: int
) -> list[Line]:
    """Return the course of both arms' fitness over time as a chart; empty if there is nothing to draw."""
    least = experiment.parameters.fitness.min_sessions_for_score
    # The means of a handful of sessions jump about and would set the scale for all that follows.
    steady = [p for p in points if min(p.control_sessions, p.treatment_sessions) >= least]
    points = steady if len(steady) > 1 else points
    if not points:
        return []
    created = experiment.created_at
    last = points[-1].at
    end = max(experiment.converged_at or min(experiment.planned_end_at, last + (last - created) / 2), last)
    series = [
        Series("control", [(_days(p.at, created), p.control) for p in points], "control", dash=2),
        Series("treatment", [(_days(p.at, created), p.treatment) for p in points], "treatment"),
    ]
    span = _days(end, created)
    days = [created + span * _DAY * share for share in (0.0, 0.5, 1.0)]
    form = "%-d %b %H:%M" if span < 3 else "%-d %b"
    axis = Axis(0.0, span, [(_days(day, created), day.strftime(form)) for day in days])
    return chart(series, axis, width, height)


def sequential_picture(
    details: ExperimentDetails, now: datetime, width: int, height: int, *, legend: bool = True
) -> list[Line]:
    """Return z of each look against its boundaries, those to come and that of harm included.

    Above the upper boundary the treatment wins, below the lower one control does; below that of harm
    the treatment is a regression, and stopped as early as that shows.

    Args:
        details: of an experiment.
        now: by the engine's clock.
        width: in cells.
        height: of everything, in lines.
        legend: whether to say below what the marks mean.
    """
    points = _Points(details, now)
    if not points.anything:
        return [line(Span("No look was held yet, and it is too early to tell those to come.", "dim"))]
    below = [piece for one in _legend(details, now) for piece in wrap(one, width, "  ")] if legend else []
    # An odd number of lines and the axis: zero is on a line of its own.
    tall = height - len(below) - (height - len(below)) % 2
    drawn = chart(points.series(), points.axis(), width, tall, Scale(-points.top, points.top, 1))
    return [*drawn, *below] if drawn else below


class _Points:
    """What the sequential picture is made of; x is in days since the creation."""

    def __init__(self, details: ExperimentDetails, now: datetime) -> None:
        self._experiment = details.experiment
        self._now = now if details.experiment.active else None
        self._looks = details.looks
        self._harm = details.harm_looks
        forecast = details.forecast if details.experiment.active else None
        self._to_come = forecast.looks if forecast else []
        self._harm_to_come = forecast.harm_looks if forecast else []
        held = [look.at for look in self._looks]
        self._early_harm = [look for look in self._harm if look.at not in held]
        heights = [abs(look.z) for look in (*self._looks, *self._early_harm) if look.z is not None]
        heights += [look.boundary for look in self._looks]
        needed = [math.ceil(2 * height + 0.5) / 2 for height in heights if math.isfinite(height)]
        self.top = min(max([_LEAST_Z, *needed]), _MOST_Z)
        times = [look.at for look in (*self._looks, *self._harm)]
        times += [look.at for look in (*self._to_come, *self._harm_to_come)]
        if self._now is not None:
            times.append(min(self._now, details.experiment.max_end_at))
        self.end = max([details.experiment.created_at + _DAY, *times])

    @property
    def anything(self) -> bool:
        return bool(self._looks or self._harm or self._to_come or self._harm_to_come)

    def series(self) -> list[Series]:
        lines = [Series("", [(0.0, 0.0), (self._at(self.end), 0.0)], "dim", dash=1)]
        for sign, name in ((1, "treatment wins"), (-1, "control wins")):
            lines += self._boundary(self._looks, self._to_come, sign, name, "strong", dash=2)
        lines += self._boundary(self._harm, self._harm_to_come, -1, "regression", "bad", dash=1)
        return [*lines, *self._marks()]

    def axis(self) -> Axis:
        experiment = self._experiment
        end = self.end
        # Long after the maximum the present lies beyond the picture.
        present = self._now if self._now is not None and self._now <= end else None
        mark = self._at(present) if present is not None else None
        ticks = [(0.0, experiment.created_at.strftime("%-d %b"))]
        if mark is not None:
            ticks.append((mark, "now"))
        if experiment.created_at < experiment.planned_end_at < end:
            ticks.append((self._at(experiment.planned_end_at), "planned end"))
        ticks.append((self._at(end), end.strftime("%-d %b")))
        return Axis(0.0, self._at(end), ticks, mark)

    def _boundary(
        self,
        past: Sequence[Look],
        to_come: Sequence[PlannedLook],
        sign: int,
        name: str,
        tone: str,
        *,
        dash: int,
    ) -> list[Series]:
        """Return the boundary of the looks so far, and, dimmed and broken, that of those to come."""
        so_far = [(self._at(look.at), self._drawn(sign * look.boundary)) for look in past]
        coming = [(self._at(look.at), self._drawn(sign * look.boundary)) for look in to_come]
        joined = so_far[-1:] + coming if coming else []
        return [
            Series(name if not joined else "", so_far, tone, dash=0 if dash == 2 else dash),  # type: ignore[arg-type]
            Series(name, joined, "dim", dash=dash),
        ]

    def _marks(self) -> list[Series]:
        # The z of a harm look counts the other way round: the more, the worse.
        harm = [(look, -look.z) for look in self._early_harm if look.z is not None]
        held = [(look, look.z) for look in self._looks if look.z is not None]
        return [
            self._mark(look.at, z, glyph, tone)
            for group, glyph, tone in ((harm, _HARM, "bad"), (held, _HELD, "treatment"))
            for look, z in group
        ]

    def _mark(self, at: datetime, z: float, glyph: str, tone: str) -> Series:
        shown = min(max(z, -self.top), self.top)
        return Series("", [(self._at(at), shown)], tone, mark=glyph if shown == z else _BEYOND[z > 0])  # type: ignore[arg-type]

    def _drawn(self, boundary: float) -> float | None:
        return boundary if abs(boundary) <= self.top else None

    def _at(self, time: datetime) -> float:
        return _days(time, self._experiment.created_at)


def _legend(details: ExperimentDetails, now: datetime) -> list[Line]:
    marks: list[Span] = []
    if details.looks:
        marks += [Span(_HELD, "treatment"), Span(" z of a look   ", "dim")]
    if details.harm_looks:
        marks += [Span(_HARM, "bad"), Span(" z of a look for harm only   ", "dim")]
    forecast = details.forecast
    words = "beyond a boundary the experiment ends"
    if forecast and (forecast.looks or forecast.harm_looks):
        words += "; right of now: boundaries to come at present traffic"
    return [line(*marks, Span(words, "dim")), *_next_boundary(details, now)]


def _next_boundary(details: ExperimentDetails, now: datetime) -> list[Line]:
    """Return what the last look found and what the next one needs, in figures."""
    parts: list[str] = []
    look = next((one for one in reversed(details.looks) if _is_finite(one.z)), None)
    if look is not None:
        z, boundary = half_up(look.z, 2, signed=True), half_up(look.boundary, 2)
        parts.append(f"Look {look.k}: z {z}, boundary ±{boundary}.")
    coming = [one for one in details.forecast.looks if one.at > now] if details.forecast else []
    if coming and math.isfinite(coming[0].boundary):
        boundary, level = half_up(coming[0].boundary, 2), p_value(coming[0].alpha_threshold)
        parts.append(f"Next look {coming[0].at:%-d %b}: ±{boundary} (p ≤ {level}).")
    return [line(" ".join(parts))] if parts else []


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _days(time: datetime, start: datetime) -> float:
    return (time - start) / _DAY
