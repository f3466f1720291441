"""Fitness of the whole deployment: now, its trend, and its history by day."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from prx_engine.clock import clock_hour, start_of_clock_hour
from prx_engine.configuration import FitnessSettings
from prx_engine.fitness.group import counting, fitness_score, group_fitness
from prx_engine.fitness.moments import Moments
from prx_engine.records import DeploymentFitness, FitnessScore, HistoryDay, Window
from prx_engine.store import Store
from prx_engine.store.totals import deployment_hours

TREND_HOURS: Final = 7 * 24
_HOURS_A_DAY: Final = 24
_SMALLEST_CHANGE: Final = 0.005
_ROUNDING: Final = 1e-12
_TREND_STANDARD_ERRORS: Final = 1.96

Trend = Literal["improving", "declining", "stable"]


def deployment_fitness(store: Store, settings: FitnessSettings, now: datetime) -> DeploymentFitness:
    """Return the fitness of the sessions of the last ``evaluation_window_hours``.

    The window is whole clock hours, the present one included.
    """
    end = clock_hour(now) + 1
    present = _window(store, settings, end)
    past = _window(store, settings, end - TREND_HOURS)
    score = _score(present, settings, end - settings.evaluation_window_hours, end)
    change, trend = _change(present, past, settings)
    minimum = settings.thresholds.minimum_acceptable
    return DeploymentFitness(
        fitness=score,
        missing_sessions=max(settings.min_sessions_for_score - present.n, 0),
        change=change,
        trend=trend,
        alert=score.valid and score.composite is not None and score.composite < minimum,
        minimum_acceptable=minimum,
    )


def history(store: Store, settings: FitnessSettings, now: datetime, days: int) -> list[HistoryDay]:
    """Return the fitness of each of the last UTC days, today included, the oldest first."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = clock_hour(today - timedelta(days=days - 1))
    by_day = [Moments() for _ in range(days)]
    for hour, moments in deployment_hours(store, first, first + days * _HOURS_A_DAY):
        day = (hour - first) // _HOURS_A_DAY
        by_day[day] = by_day[day] + moments
    return [
        HistoryDay(
            day=start_of_clock_hour(start).date().isoformat(),
            fitness=_score(moments, settings, start, start + _HOURS_A_DAY),
        )
        for start, moments in zip(
            range(first, first + days * _HOURS_A_DAY, _HOURS_A_DAY), by_day, strict=True
        )
    ]


def _window(store: Store, settings: FitnessSettings, end: int) -> Moments:
    hours = deployment_hours(store, end - settings.evaluation_window_hours, end)
    return sum((moments for _, moments in hours), Moments())


def _score(moments: Moments, settings: FitnessSettings, first: int, end: int) -> FitnessScore:
    counted = counting([moments], settings.weights, settings.min_sessions_for_score)
    window = Window(start=start_of_clock_hour(first), end=start_of_clock_hour(end))
    return fitness_score(moments, settings.weights, counted, window, settings.min_sessions_for_score)


def _change(present: Moments, past: Moments, settings: FitnessSettings) -> tuple[float | None, Trend | None]:
    """Return the change between two windows over the dimensions that count in both, and what it means."""
    counted = counting([present, past], settings.weights, settings.min_sessions_for_score)
    if min(present.n, past.n) < settings.min_sessions_for_score or not counted:
        return None, None
    now, then = _fitness(present, settings, counted), _fitness(past, settings, counted)
    change = now[0] - then[0]
    if abs(change) - _ROUNDING <= max(_SMALLEST_CHANGE, _TREND_STANDARD_ERRORS * math.sqrt(now[1] + then[1])):
        return change, "stable"
    return change, "improving" if change > 0 else "declining"


def _fitness(moments: Moments, settings: FitnessSettings, counted: Sequence[str]) -> tuple[float, float]:
    group = group_fitness(moments, settings.weights, counted)  # type: ignore[arg-type]
    assert group is not None
    return group.mean, group.variance
