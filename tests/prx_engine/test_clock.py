"""Time: one injected clock, RFC 3339 in text, always UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.clock import (
    FixedClock,
    SystemClock,
    as_utc,
    clock_from_environment,
    clock_hour,
    format_time,
    parse_time,
    start_of_clock_hour,
)
from prx_engine.errors import InvalidInput

EIGHT = datetime(2026, 6, 1, 8, tzinfo=UTC)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-06-01T08:00:00Z", EIGHT),
        ("2026-06-01t08:00:00z", EIGHT),
        ("2026-06-01 08:00:00Z", EIGHT),
        ("2026-06-01T10:00:00+02:00", EIGHT),
        ("2026-05-31T22:30:00-09:30", EIGHT),
        ("2026-06-01T08:00:00.25Z", EIGHT + timedelta(microseconds=250_000)),
        ("2026-06-01T08:00:00.123456789Z", EIGHT + timedelta(microseconds=123_456)),
    ],
)
def test_rfc_3339_is_read_as_utc(text: str, time: datetime) -> None:
    assert parse_time(text) == time
    assert parse_time(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-06-01",
        "2026-06-01T08:00:00",  # no offset
        "2026-06-01T08:00Z",
        "20260601T080000Z",
        "2026-W23-1T08:00:00Z",
        "2026-02-30T08:00:00Z",
        "2026-06-01T25:00:00Z",
        "2026-06-01T08:00:00+25:00",
        "0001-01-01T00:00:00+01:00",  # before year 1 in UTC
        " 2026-06-01T08:00:00Z",
        "٢٠٢٦-06-01T08:00:00Z",
        "1780300800",
        "x" * 100_000,
    ],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"not an RFC 3339 time such as 2026-06-01T08:00:00Z") as caught:
        parse_time(text)
    assert len(str(caught.value)) < 150


@given(TIMES)
def test_text_of_a_time_reads_as_the_same_time(time: datetime) -> None:
    assert parse_time(format_time(time)) == time


def test_times_are_written_in_utc_with_a_fraction_only_if_they_have_one() -> None:
    assert format_time(EIGHT.astimezone(timezone(timedelta(hours=2)))) == "2026-06-01T08:00:00Z"
    assert format_time(EIGHT + timedelta(microseconds=250)) == "2026-06-01T08:00:00.000250Z"


def test_a_time_without_zone_is_refused_by_name() -> None:
    assert as_utc(EIGHT.astimezone(timezone(timedelta(hours=-3))), "started_at").tzinfo is UTC
    with pytest.raises(InvalidInput, match="started_at: 2026-06-01T08:00:00 has no time zone"):
        as_utc(datetime(2026, 6, 1, 8), "started_at")


@given(TIMES)
def test_a_clock_hour_holds_the_times_from_its_start_to_the_next(time: datetime) -> None:
    hour = clock_hour(time)
    assert start_of_clock_hour(hour) <= time < start_of_clock_hour(hour + 1)


def test_clock_hours_count_from_1970() -> None:
    assert clock_hour(datetime(1970, 1, 1, 0, 59, 59, 999_999, tzinfo=UTC)) == 0
    assert clock_hour(datetime(1970, 1, 1, 1, tzinfo=UTC)) == 1
    assert clock_hour(datetime(1969, 12, 31, 23, 59, tzinfo=UTC)) == -1


def test_prx_now_replaces_the_clock() -> None:
    clock = clock_from_environment({"PRX_NOW": "2026-06-01T10:00:00+02:00"})
    assert clock == FixedClock(EIGHT)
    assert clock.now() == EIGHT


def test_without_prx_now_the_clock_is_the_systems() -> None:
    for environment in ({}, {"PRX_NOW": ""}):
        clock = clock_from_environment(environment)
        assert isinstance(clock, SystemClock)
        assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=1)
        assert clock.now().tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:30:00+01:00", "3000-01-01T00:00:00Z",
     "9999-12-31T23:59:59Z"],
)  # fmt: skip
def test_prx_now_is_in_years_that_can_be_computed_with(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"PRX_NOW: .* is not in the years 1970 to 2999"):
        clock_from_environment({"PRX_NOW": text})


@pytest.mark.parametrize("text", ["1970-01-01T00:00:00Z", "2999-12-31T23:59:59Z"])
def test_prx_now_may_be_at_either_end_of_them(text: str) -> None:
    assert clock_from_environment({"PRX_NOW": text}) == FixedClock(parse_time(text))


def test_a_bad_prx_now_is_named() -> None:
    with pytest.raises(InvalidInput, match="PRX_NOW: 'yesterday' is not"):
        clock_from_environment({"PRX_NOW": "yesterday"})
