from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from prx_tui.formatting import change, half_up, hours, moment, p_value, percent, until, words

NOW = datetime(2026, 6, 1, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (0.1035, 3, "0.104"),
        (0.0645, 3, "0.065"),
        (2.5, 0, "3"),
        (-0.5, 0, "−1"),
        (-0.0004, 3, "0.000"),
        (1e-9, 3, "0.000"),
        (None, 2, "–"),
        (math.inf, 2, "∞"),
        (-math.inf, 2, "−∞"),
        (math.nan, 2, "–"),
    ],
)
def test_numbers_are_rounded_half_up(value: float | None, digits: int, shown: str) -> None:
    assert half_up(value, digits) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.03, "+0.03"), (-0.03, "−0.03"), (0.0, "0.00"), (math.inf, "+∞")]
)
def test_signed_numbers(value: float, shown: str) -> None:
    assert half_up(value, 2, signed=True) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.03, "+0.03"), (-0.03, "−0.03"), (0.0, "±0.00"), (-0.004, "±0.00"), (None, "–"), (-math.inf, "−∞")],
)
def test_a_change_reads_as_one(value: float | None, shown: str) -> None:
    assert change(value, 2) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0425, "4.3 %"), (0.285, "28.5 %"), (-0.05, "−5.0 %"), (None, "–"), (math.inf, "∞ %")],
)
def test_percentages(value: float | None, shown: str) -> None:
    assert percent(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0, "0"),
        (1, "1"),
        (0.0314, ".031"),
        (0.00812, ".0081"),
        (0.5, ".5"),
        (0.996, "1"),
        (0.0001, ".0001"),
        (0.00009, "9.0e-05"),
        (8.4e-95, "8.4e-95"),
    ],
)
def test_p_values(value: float | None, shown: str) -> None:
    assert p_value(value) == shown


@pytest.mark.parametrize(
    ("duration", "shown"),
    [
        (timedelta(days=5, hours=4, minutes=3), "5 d 4 h"),
        (timedelta(days=5), "5 d"),
        (timedelta(hours=3, minutes=12), "3 h 12 m"),
        (timedelta(hours=3), "3 h"),
        (timedelta(minutes=12, seconds=40), "12 m"),
        (timedelta(seconds=45), "45 s"),
        (timedelta(seconds=-1), "0 s"),
    ],
)
def test_durations(duration: timedelta, shown: str) -> None:
    assert hours(duration) == shown


def test_times_ahead_and_overdue() -> None:
    assert until(NOW + timedelta(hours=3), NOW) == "in 3 h"
    assert until(NOW - timedelta(hours=2), NOW) == "overdue 2 h"
    assert until(NOW, NOW) == "due now"
    assert until(None, NOW) == "–"


def test_moments() -> None:
    assert moment(NOW) == "2026-06-01 08:00"
    assert moment(None) == "–"


def test_words() -> None:
    assert words("treatment_wins") == "treatment wins"
