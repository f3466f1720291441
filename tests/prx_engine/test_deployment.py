"""Fitness of the deployment: whole clock hours, trend against a week ago, history by day, alert."""

from __future__ import annotations

from datetime import timedelta

import pytest

from prx_engine import Engine
from prx_engine.dimensions import DIMENSIONS
from prx_engine.errors import InvalidInput
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine

EXAMPLE = (0.82, 0.78, 0.69, 0.65, 0.71, 0.60)


def fill(engine: Engine, name: str, values: tuple[float, ...] | float, count: int = 10) -> None:
    """Record sessions that start now, with the given scores in the order of the dimensions."""
    scores = (values,) * 6 if isinstance(values, float) else values
    for i in range(count):
        engine.record(f"{name}-{i}", scores=dict(zip(DIMENSIONS, scores, strict=False)))


def test_the_documented_example(engine: Engine) -> None:
    fill(engine, "s", EXAMPLE)
    result = engine.fitness()
    assert result.fitness.composite == 0.7405
    assert [d.contribution for d in result.fitness.dimensions.values()] == [
        0.246,
        0.195,
        0.1035,
        0.065,
        0.071,
        0.06,
    ]
    assert (result.missing_sessions, result.change, result.trend, result.alert) == (0, None, None, False)


def test_without_sessions_there_is_nothing_to_say(engine: Engine) -> None:
    result = engine.fitness()
    assert (result.fitness.composite, result.fitness.sessions, result.fitness.valid) == (None, 0, False)
    assert (result.missing_sessions, result.change, result.trend, result.alert) == (10, None, None, False)


def test_below_the_smallest_number_it_says_how_many_are_missing(engine: Engine) -> None:
    fill(engine, "s", 0.2, count=7)
    result = engine.fitness()
    assert (result.fitness.valid, result.missing_sessions, result.alert) == (False, 3, False)


def test_a_dimension_with_few_observations_does_not_count(engine: Engine) -> None:
    fill(engine, "s", (0.5, 0.5), count=10)
    fill(engine, "t", (0.5, 0.5, 1.0), count=9)
    fitness = engine.fitness().fitness
    assert {name for name, d in fitness.dimensions.items() if d.counts} == {
        "response_relevance",
        "task_completion",
    }
    assert fitness.composite == 0.5
    assert fitness.dimensions["response_latency"].sessions == 9


def test_the_window_is_whole_clock_hours_with_the_present_one(engine: Engine, clock: ManualClock) -> None:
    clock.set("2026-06-01T00:59:59Z")
    fill(engine, "old", 0.5)
    clock.set("2026-06-01T01:00:00Z")
    fill(engine, "first", 0.6)
    clock.set("2026-06-02T00:00:00Z")
    fill(engine, "now", 0.7)
    clock.set("2026-06-02T00:59:59.999999Z")
    fitness = engine.fitness().fitness
    assert (fitness.sessions, fitness.composite) == (20, 0.65)
    assert fitness.window.start == clock.now().replace(microsecond=0) - timedelta(
        hours=23, minutes=59, seconds=59
    )
    assert fitness.window.end == fitness.window.start + timedelta(hours=24)


def test_a_longer_window_can_be_configured(open_engine: OpenEngine, clock: ManualClock) -> None:
    engine = open_engine(
        config="[self_evolution.fitness]\nevaluation_window_hours = 48\nmin_sessions_for_score = 2\n"
    )
    fill(engine, "s", 0.5, count=2)
    clock.advance(hours=47)
    assert engine.fitness().fitness.valid
    clock.advance(hours=1)
    assert not engine.fitness().fitness.valid


@pytest.mark.parametrize(
    ("before", "after", "trend"),
    [
        (0.71, 0.74, "improving"),
        (0.74, 0.71, "declining"),
        (0.74, 0.74, "stable"),
        (0.74, 0.745, "stable"),
        (0.74, 0.7451, "improving"),
        (0.745, 0.74, "stable"),
    ],
)
def test_trend_compares_with_the_window_a_week_ago(
    engine: Engine, clock: ManualClock, before: float, after: float, trend: str
) -> None:
    fill(engine, "before", before)
    clock.advance(days=7)
    fill(engine, "after", after)
    result = engine.fitness()
    assert result.change == pytest.approx(after - before, abs=1e-12)
    assert result.trend == trend


def test_a_change_within_the_noise_is_stable(engine: Engine, clock: ManualClock) -> None:
    for level, day in ((0.50, 0), (0.53, 7)):
        for i in range(10):
            score = level + (0.2 if i % 2 else -0.2)
            engine.record(f"{day}-{i}", scores=dict.fromkeys(DIMENSIONS, score))
        clock.advance(days=7)
    clock.advance(days=-7)
    result = engine.fitness()
    # The standard error of the difference is sqrt(2 · 0.2² / 9) = 0.094.
    assert result.change == pytest.approx(0.03)
    assert result.trend == "stable"


def test_a_change_beyond_the_noise_is_one(engine: Engine, clock: ManualClock) -> None:
    for level, day in ((0.50, 0), (0.53, 7)):
        for i in range(200):
            score = level + (0.05 if i % 2 else -0.05)
            engine.record(f"{day}-{i}", scores=dict.fromkeys(DIMENSIONS, score))
        clock.advance(days=7)
    clock.advance(days=-7)
    assert engine.fitness().trend == "improving"


@pytest.mark.parametrize("sessions", [0, 9])
def test_without_a_valid_window_a_week_ago_there_is_no_trend(
    engine: Engine, clock: ManualClock, sessions: int
) -> None:
    fill(engine, "before", 0.7, count=sessions)
    clock.advance(days=7)
    fill(engine, "after", 0.8)
    result = engine.fitness()
    assert (result.change, result.trend) == (None, None)


def test_trend_uses_the_dimensions_that_count_in_both_windows(engine: Engine, clock: ManualClock) -> None:
    fill(engine, "before", (0.5,))
    clock.advance(days=7)
    fill(engine, "after", (0.5, 1.0))
    result = engine.fitness()
    assert result.fitness.composite == pytest.approx((0.3 * 0.5 + 0.25) / 0.55)
    assert (result.change, result.trend) == (0.0, "stable")


@pytest.mark.parametrize(("level", "alert"), [(0.4999, True), (0.5, False)])
def test_fitness_below_the_acceptable_minimum_is_an_alert(engine: Engine, level: float, alert: bool) -> None:
    fill(engine, "s", level)
    result = engine.fitness()
    assert (result.alert, result.minimum_acceptable) == (alert, 0.5)


def test_history_has_one_row_for_each_utc_day(engine: Engine, clock: ManualClock) -> None:
    clock.set("2026-06-01T23:59:59Z")
    fill(engine, "first", 0.5)
    clock.set("2026-06-02T00:00:00Z")
    fill(engine, "second", 0.6)
    clock.set("2026-06-04T12:00:00Z")
    fill(engine, "today", 0.7, count=3)
    days = engine.history(days=4)
    assert [day.day for day in days] == ["2026-06-01", "2026-06-02", "2026-06-03", "2026-06-04"]
    assert [day.fitness.sessions for day in days] == [10, 10, 0, 3]
    assert [day.fitness.composite for day in days] == [0.5, 0.6, None, None]
    assert [day.fitness.valid for day in days] == [True, True, False, False]
    assert engine.history(days=1) == days[-1:]


@pytest.mark.parametrize("days", [0, -1, 3661])
def test_a_history_of_no_days_or_too_many_is_refused(engine: Engine, days: int) -> None:
    with pytest.raises(InvalidInput, match=rf"days: found {days}; allowed: 1 to 3660"):
        engine.history(days=days)


def test_a_history_of_ten_years_is_answered(engine: Engine) -> None:
    assert len(engine.history(days=3660)) == 3660
