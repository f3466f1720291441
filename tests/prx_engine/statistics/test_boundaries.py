from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from prx_engine.statistics import (
    crossing_probabilities,
    group_sequential_boundaries,
    lifetime_spending,
    obrien_fleming,
    pocock,
)

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())

sides = st.sampled_from([1, 2])


@st.composite
def schedules(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    """Information and cumulative alpha of a few looks, some of them close together or without spend."""
    growths = draw(st.lists(st.floats(1e-3, 5.0), min_size=1, max_size=8))
    looks = len(growths)
    spend = st.one_of(st.just(0.0), st.floats(1e-12, 0.02))
    increments = draw(st.lists(spend, min_size=looks, max_size=looks))
    information = list(itertools.accumulate((1.0 + growth for growth in growths), lambda a, b: a * b))
    return information, list(itertools.accumulate(increments))


def increments_of(spent: list[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.diff(np.array(spent), prepend=0.0)


@pytest.mark.parametrize(
    "row",
    REFERENCE["lan_demets"],
    ids=lambda row: f"{row['schedule']}-{row['spending']}-{row['alpha']}-{row['sides']}",
)
def test_boundaries_reproduce_the_reference(row: dict[str, Any]) -> None:
    boundaries = group_sequential_boundaries(row["information_fractions"], row["alpha_spent"], row["sides"])
    expected = np.array(row["boundaries_z"])
    reachable = expected < 6.0
    np.testing.assert_allclose(boundaries[reachable], expected[reachable], rtol=0, atol=1e-7)
    np.testing.assert_allclose(boundaries[~reachable], expected[~reachable], rtol=1e-6)


@pytest.mark.parametrize(
    "row",
    REFERENCE["power_exit_probabilities"],
    ids=lambda row: f"{row['spending']}-{len(row['t'])}-{row['drift_at_t1']}",
)
def test_crossing_probabilities_under_an_effect_reproduce_the_reference(row: dict[str, Any]) -> None:
    spending = obrien_fleming if row["spending"] == "OF" else pocock
    boundaries = group_sequential_boundaries(row["t"], [spending(t, row["alpha"]) for t in row["t"]])
    crossing = crossing_probabilities(row["t"], boundaries, -boundaries, row["drift_at_t1"])
    np.testing.assert_allclose(crossing.upper + crossing.lower, row["exit_prob"], rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "row", REFERENCE["naive_peeking_type1"], ids=lambda row: f"{row['K']}-{row['alpha']}"
)
def test_looking_repeatedly_without_boundaries_errs_as_known(row: dict[str, Any]) -> None:
    looks = row["K"]
    z = float(stats.norm.isf(row["alpha"] / 2))
    crossing = crossing_probabilities(range(1, looks + 1), [z] * looks, [-z] * looks)
    assert crossing.upper.sum() + crossing.lower.sum() == pytest.approx(row["fpr"], abs=1e-8)


@given(schedules(), sides)
def test_boundaries_spend_what_they_were_given(schedule: tuple[list[float], list[float]], sides: int) -> None:
    information, spent = schedule
    upper = group_sequential_boundaries(information, spent, sides)
    lower = -upper if sides == 2 else np.full_like(upper, -np.inf)
    crossing = crossing_probabilities(information, upper, lower)
    np.testing.assert_allclose(crossing.upper + crossing.lower, increments_of(spent), rtol=1e-8, atol=1e-15)


@given(schedules(), sides)
def test_a_look_with_nothing_to_spend_cannot_stop(
    schedule: tuple[list[float], list[float]], sides: int
) -> None:
    information, spent = schedule
    boundaries = group_sequential_boundaries(information, spent, sides)
    np.testing.assert_array_equal(np.isinf(boundaries), increments_of(spent) == 0.0)
    assert not np.isnan(boundaries).any()


@given(schedules(), sides, st.floats(1e-6, 1e6))
def test_the_unit_of_information_does_not_matter(
    schedule: tuple[list[float], list[float]], sides: int, unit: float
) -> None:
    information, spent = schedule
    one = group_sequential_boundaries(information, spent, sides)
    other = group_sequential_boundaries([unit * value for value in information], spent, sides)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)


@given(schedules())
def test_two_sides_are_wider_than_one(schedule: tuple[list[float], list[float]]) -> None:
    information, spent = schedule
    two = group_sequential_boundaries(information, spent, 2)
    one = group_sequential_boundaries(information, spent, 1)
    assert (two >= one - 1e-9).all()


@given(schedules(), st.integers(1, 7))
def test_a_boundary_depends_on_the_past_alone(schedule: tuple[list[float], list[float]], looks: int) -> None:
    information, spent = schedule
    whole = group_sequential_boundaries(information, spent)
    start = group_sequential_boundaries(information[:looks], spent[:looks])
    np.testing.assert_allclose(start, whole[:looks], rtol=0, atol=1e-8)


@pytest.mark.parametrize("sides", [1, 2])
def test_one_look_is_the_plain_quantile(sides: int) -> None:
    for alpha in (1e-290, 1e-100, 1e-4, 0.05, 0.2):
        boundary = group_sequential_boundaries([3.0], [alpha], sides)[0]
        assert boundary == pytest.approx(stats.norm.isf(alpha / sides), rel=1e-12, abs=0)


def test_spend_below_what_a_double_holds_cannot_stop_and_loses_no_path() -> None:
    boundaries = group_sequential_boundaries([1.0, 2.0, 3.0], [0.0, 5e-324, 0.05])
    assert np.isinf(boundaries[:2]).all()
    assert boundaries[2] == pytest.approx(stats.norm.isf(0.025), abs=1e-9)


@pytest.mark.parametrize("alpha", [1e-4, 0.05, 0.2])
@pytest.mark.parametrize("information", [np.arange(1, 721), 1.001 ** np.arange(720)], ids=["even", "close"])
def test_hundreds_of_looks_spend_exactly(alpha: float, information: np.ndarray[Any, Any]) -> None:
    spent = [
        lifetime_spending(k, 168, 720, alpha=alpha, planned_share=0.8, kind="obrien_fleming")
        for k in range(1, 721)
    ]
    boundaries = group_sequential_boundaries(information.tolist(), spent)
    crossing = crossing_probabilities(information.tolist(), boundaries, -boundaries)
    np.testing.assert_allclose(crossing.upper, increments_of(spent) / 2, rtol=1e-7, atol=1e-17)


@pytest.mark.parametrize("growth", [1e-5, 1e-9, 1e-15])
def test_information_that_hardly_grows_leaves_one_test(growth: float) -> None:
    information = 1.0 + growth * np.arange(20)
    spent = 0.0025 * np.arange(1, 21)
    boundaries = group_sequential_boundaries(information.tolist(), spent.tolist(), 2)
    # Perfectly dependent looks: crossing by look k is being above its own two-sided quantile.
    np.testing.assert_allclose(boundaries, stats.norm.isf(spent / 2), rtol=0, atol=2e-3)


def test_independent_looks_multiply() -> None:
    boundaries = group_sequential_boundaries([1.0, 1e12], [0.03, 0.05])
    assert boundaries[1] == pytest.approx(stats.norm.isf(0.02 / 0.97 / 2), abs=1e-5)


@given(schedules(), st.floats(-3.0, 3.0))
def test_turning_the_effect_round_swaps_the_sides(
    schedule: tuple[list[float], list[float]], drift: float
) -> None:
    information, spent = schedule
    upper = group_sequential_boundaries(information, spent)
    lower = [-2.0] * len(information)
    one = crossing_probabilities(information, upper, lower, drift)
    other = crossing_probabilities(information, [2.0] * len(information), -upper, -drift)
    np.testing.assert_allclose(one.upper, other.lower, rtol=0, atol=1e-10)
    np.testing.assert_allclose(one.lower, other.upper, rtol=0, atol=1e-10)


@given(schedules(), st.floats(-3.0, 3.0), st.floats(-1.0, 3.0))
def test_boundaries_that_meet_at_the_end_stop_every_path(
    schedule: tuple[list[float], list[float]], drift: float, last: float
) -> None:
    information, _ = schedule
    upper = [3.0] * (len(information) - 1) + [last]
    lower = [-math.inf] * (len(information) - 1) + [last]
    crossing = crossing_probabilities(information, upper, lower, drift)
    assert crossing.upper.sum() + crossing.lower.sum() == pytest.approx(1.0, abs=1e-10)


def test_one_look_under_an_effect_is_plain_power() -> None:
    crossing = crossing_probabilities([4.0], [1.5], [-math.inf], drift=0.75)
    assert crossing.upper[0] == pytest.approx(stats.norm.sf(1.5 - 0.75 * 2.0), rel=1e-12)
    assert crossing.lower[0] == 0.0


def test_nothing_is_crossed_after_every_path_has_stopped() -> None:
    crossing = crossing_probabilities([1.0, 2.0, 3.0], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5])
    assert crossing.upper[1:].tolist() == crossing.lower[1:].tolist() == [0.0, 0.0]


def test_no_looks_have_no_boundaries() -> None:
    assert group_sequential_boundaries([], []).shape == (0,)
    assert crossing_probabilities([], [], []).upper.shape == (0,)


@pytest.mark.parametrize("information", [[0.0, 1.0], [-1.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, math.inf]])
def test_information_that_does_not_increase_is_refused(information: list[float]) -> None:
    with pytest.raises(ValueError, match="information must be finite, positive and increase"):
        group_sequential_boundaries(information, [0.01, 0.05])


@pytest.mark.parametrize("spent", [[-0.01, 0.05], [0.05, 0.04], [0.05, 1.0], [math.nan, 0.05]])
def test_alpha_that_decreases_or_is_no_probability_is_refused(spent: list[float]) -> None:
    with pytest.raises(ValueError, match="cumulative alpha must lie within"):
        group_sequential_boundaries([1.0, 2.0], spent)


@pytest.mark.parametrize("sides", [0, 3])
def test_other_numbers_of_sides_are_refused(sides: int) -> None:
    with pytest.raises(ValueError, match="sides must be 1 or 2"):
        group_sequential_boundaries([1.0], [0.05], sides)


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="2 looks, 1 values"):
        group_sequential_boundaries([1.0, 2.0], [0.05])
    with pytest.raises(ValueError, match="1 looks, 2 values"):
        crossing_probabilities([1.0], [2.0], [-2.0, -2.0])


def test_impossible_regions_are_refused() -> None:
    with pytest.raises(ValueError, match="at most the upper one"):
        crossing_probabilities([1.0], [1.0], [2.0])
    with pytest.raises(ValueError, match="drift must be finite"):
        crossing_probabilities([1.0], [1.0], [-1.0], math.nan)


@given(schedules(), sides)
def test_one_look_after_the_other_gives_what_all_at_once_give(
    schedule: tuple[list[float], list[float]], sides: int
) -> None:
    information, spent = schedule
    whole = group_sequential_boundaries(information, spent, sides)
    for looks in range(1, len(spent) + 1):
        np.testing.assert_array_equal(
            group_sequential_boundaries(information[:looks], spent[:looks], sides), whole[:looks]
        )


def test_another_last_look_does_not_continue_the_one_before() -> None:
    first = group_sequential_boundaries([1.0, 2.0], [0.01, 0.02])
    other = group_sequential_boundaries([1.0, 3.0], [0.01, 0.02])
    assert other[0] == first[0]
    crossing = crossing_probabilities([1.0, 3.0], other, -other)
    assert crossing.upper[1] + crossing.lower[1] == pytest.approx(0.01, abs=1e-10)
