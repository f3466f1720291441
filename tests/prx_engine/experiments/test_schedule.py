from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.experiments.schedule import Schedule, hours_rounded_up, whole_hours

CREATED = datetime(2026, 6, 1, 8, 17, 3, 250_000, tzinfo=UTC)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    maximum = draw(st.integers(1, 1000))
    return Schedule(
        interval=draw(st.integers(1, maximum)),
        planned_end=draw(st.integers(1, maximum)),
        maximum=maximum,
        closed=draw(st.integers(0, maximum)),
    )


def test_looks_fall_on_multiples_of_the_interval() -> None:
    assert Schedule(24, 168, 720, 0).until(100) == [24, 48, 72, 96]


def test_a_time_has_come_at_its_very_hour() -> None:
    assert Schedule(24, 168, 720, 0).until(23) == []
    assert Schedule(24, 168, 720, 0).until(24) == [24]


def test_the_planned_end_and_the_maximum_are_looks_even_off_the_grid() -> None:
    assert Schedule(48, 100, 250, 0).until(1000) == [48, 96, 100, 144, 192, 240, 250]


def test_a_planned_end_on_the_grid_is_one_time_only() -> None:
    assert Schedule(24, 48, 48, 0).until(48) == [24, 48]


def test_an_interval_longer_than_the_plan_leaves_the_planned_end_and_the_maximum() -> None:
    assert Schedule(500, 168, 720, 0).until(720) == [168, 500, 720]


def test_nothing_is_scheduled_after_the_maximum() -> None:
    assert Schedule(24, 48, 72, 0).until(10_000) == [24, 48, 72]
    assert Schedule(24, 48, 72, 72).until(10_000) == []
    assert Schedule(24, 48, 72, 72).next() is None


def test_closed_times_do_not_come_back() -> None:
    assert Schedule(24, 168, 720, 48).until(100) == [72, 96]


def test_a_planned_end_off_the_grid_is_next_after_the_times_before_it() -> None:
    assert Schedule(48, 100, 250, 96).next() == 100
    assert Schedule(48, 100, 250, 100).next() == 144
    assert Schedule(48, 100, 250, 240).next() == 250


def test_a_moved_planned_end_is_a_new_time() -> None:
    assert Schedule(48, 203, 250, 192).until(210) == [203]


@given(schedules(), st.integers(0, 1200))
def test_times_ascend_after_what_is_closed_up_to_now_and_never_pass_the_maximum(
    schedule: Schedule, hours: int
) -> None:
    times = schedule.until(hours)
    assert times == sorted(set(times))
    assert all(schedule.closed < time <= min(hours, schedule.maximum) for time in times)
    assert all(
        time % schedule.interval == 0 or time in (schedule.planned_end, schedule.maximum) for time in times
    )


@given(schedules())
def test_next_is_the_first_of_the_times_to_come(schedule: Schedule) -> None:
    assert schedule.next() == next(iter(schedule.until(schedule.maximum)), None)


@given(schedules(), st.integers(0, 1200), st.integers(0, 1200))
def test_waiting_only_adds_times_at_the_end(schedule: Schedule, first: int, second: int) -> None:
    earlier, later = sorted((first, second))
    times = schedule.until(later)
    assert times[: len(schedule.until(earlier))] == schedule.until(earlier)


@given(schedules(), st.integers(0, 1200))
def test_checking_early_and_often_visits_the_times_of_one_late_check(schedule: Schedule, now: int) -> None:
    visited = []
    present = schedule
    for hours in range(now + 1):
        due = present.until(hours)
        if due:
            visited += due
            present = Schedule(schedule.interval, schedule.planned_end, schedule.maximum, due[-1])
    assert visited == schedule.until(now)


@pytest.mark.parametrize(
    ("after", "whole", "up"),
    [
        (timedelta(0), 0, 0),
        (timedelta(microseconds=1), 0, 1),
        (timedelta(hours=1) - timedelta(microseconds=1), 0, 1),
        (timedelta(hours=1), 1, 1),
        (timedelta(hours=168, microseconds=1), 168, 169),
    ],
)
def test_hours_count_from_the_very_moment_of_creation(after: timedelta, whole: int, up: int) -> None:
    assert whole_hours(CREATED, CREATED + after) == whole
    assert hours_rounded_up(CREATED, CREATED + after) == up
