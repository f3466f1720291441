from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from prx_engine.statistics import (
    Arm,
    Interval,
    bonferroni,
    difference_interval,
    fieller_interval,
    hedges_g,
    lift,
    t_quantile,
    welch,
)

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())

means = st.floats(1e-3, 1.0)
variances = st.floats(1e-8, 0.1)
arms = st.builds(Arm, means, variances, st.integers(2, 1000))
quantiles = st.floats(0.0, 40.0)
EVERYTHING = Interval(-math.inf, math.inf)


def arm_of(scores: list[float]) -> Arm:
    return Arm(float(np.mean(scores)), float(np.var(scores, ddof=1)) / len(scores), len(scores))


def slack(control: Arm, treatment: Arm, q: float, ratio: float) -> float:
    """Fieller's condition for a ratio of the means: at most 0 inside the set, relative to its terms."""
    distance = (treatment.mean - ratio * control.mean) ** 2
    allowed = q**2 * (treatment.variance + ratio**2 * control.variance)
    return (distance - allowed) / (distance + allowed)


@pytest.mark.parametrize("name", REFERENCE["welch_and_mann_whitney"])
def test_difference_interval_reproduces_the_reference(name: str) -> None:
    row = REFERENCE["welch_and_mann_whitney"][name]
    test = welch(arm_of(row["control"]), arm_of(row["treatment"]))
    interval = difference_interval(test, t_quantile(0.05, test.df))
    assert interval.lower == pytest.approx(row["R_welch"]["ci95_lo"], rel=1e-10)
    assert interval.upper == pytest.approx(row["R_welch"]["ci95_hi"], rel=1e-10)


@pytest.mark.parametrize("name", REFERENCE["welch_and_mann_whitney"])
def test_hedges_g_reproduces_the_reference(name: str) -> None:
    row = REFERENCE["welch_and_mann_whitney"][name]
    control, treatment = row["control"], row["treatment"]
    g = hedges_g(
        float(np.mean(control)),
        float(np.mean(treatment)),
        float(np.std(control, ddof=1)),
        float(np.std(treatment, ddof=1)),
        len(control),
        len(treatment),
    )
    assert g == pytest.approx(row["hedges_g"], rel=1e-10)


@pytest.mark.parametrize("row", REFERENCE["bonferroni"], ids=lambda row: row["method"])
def test_bonferroni_reproduces_the_reference(row: dict[str, list[float]]) -> None:
    assert bonferroni(row["p"]) == pytest.approx(row["adjusted"])


def test_bonferroni_never_exceeds_one() -> None:
    assert bonferroni([0.4, 0.9, 0.0]) == [1.0, 1.0, 0.0]
    assert bonferroni([]) == []


@given(arms, arms, st.floats(1e-12, 1.0))
def test_interval_of_the_difference_excludes_zero_exactly_if_significant(
    control: Arm, treatment: Arm, alpha: float
) -> None:
    test = welch(control, treatment)
    assume(abs(test.p_value / alpha - 1.0) > 1e-6)
    interval = difference_interval(test, t_quantile(alpha, test.df))
    assert (interval.lower > 0.0 or interval.upper < 0.0) == (test.p_value < alpha)


def test_an_infinite_quantile_bounds_nothing() -> None:
    certain = welch(Arm(0.5, 0.0, 5), Arm(0.6, 0.0, 5))
    assert difference_interval(certain, math.inf) == EVERYTHING
    assert fieller_interval(Arm(0.5, 0.0, 5), Arm(0.6, 0.0, 5), math.inf) == EVERYTHING


@given(arms, arms, quantiles)
def test_fieller_excludes_no_lift_exactly_if_the_means_differ_by_q_errors(
    control: Arm, treatment: Arm, q: float
) -> None:
    difference = abs(treatment.mean - control.mean)
    margin = q * math.sqrt(control.variance + treatment.variance)
    assume(abs(difference - margin) > 1e-9)
    interval = fieller_interval(control, treatment, q)
    assert (interval.lower > 0.0 or interval.upper < 0.0) == (difference > margin)


@given(arms, arms, quantiles)
def test_fieller_ends_lie_on_the_edge_of_the_set_and_enclose_the_lift(
    control: Arm, treatment: Arm, q: float
) -> None:
    interval = fieller_interval(control, treatment, q)
    estimate = lift(control.mean, treatment.mean)
    tolerance = 1e-9 * max(1.0, abs(estimate))
    assert interval.lower - tolerance <= estimate <= interval.upper + tolerance
    if q > 1e-3:
        for end in (interval.lower, interval.upper):
            if abs(end) < 1e6:
                assert slack(control, treatment, q, 1.0 + end) == pytest.approx(0.0, abs=1e-6)


@given(arms, arms, quantiles)
def test_fieller_is_bounded_exactly_if_control_is_clear_of_zero(
    control: Arm, treatment: Arm, q: float
) -> None:
    margin = q * math.sqrt(control.variance)
    assume(abs(margin / control.mean - 1.0) > 1e-9)
    interval = fieller_interval(control, treatment, q)
    assert (math.isfinite(interval.lower) and math.isfinite(interval.upper)) == (margin < control.mean)


def test_fieller_with_a_certain_control_is_the_scaled_interval_of_treatment() -> None:
    interval = fieller_interval(Arm(0.5, 0.0, 10), Arm(0.6, 0.0001, 10), 2.0)
    assert (interval.lower, interval.upper) == pytest.approx((0.58 / 0.5 - 1, 0.62 / 0.5 - 1))


def test_fieller_of_a_control_lost_in_noise_has_one_bound() -> None:
    interval = fieller_interval(Arm(0.01, 0.01, 10), Arm(0.9, 0.0001, 10), 2.0)
    assert 0.0 < interval.lower < math.inf
    assert interval.upper == math.inf
    mirrored = fieller_interval(Arm(-0.01, 0.01, 10), Arm(0.9, 0.0001, 10), 2.0)
    assert mirrored.lower == -math.inf
    assert mirrored.upper == pytest.approx(-interval.lower - 2.0)


def test_fieller_of_two_arms_lost_in_noise_is_everything() -> None:
    assert fieller_interval(Arm(0.01, 0.01, 10), Arm(0.02, 0.5, 10), 2.0) == EVERYTHING


def test_fieller_where_control_touches_zero_is_a_half_line() -> None:
    interval = fieller_interval(Arm(0.5, 0.0625, 10), Arm(0.75, 0.0625, 10), 2.0)
    assert interval == Interval((0.75**2 - 0.25) / (2 * 0.75 * 0.5) - 1.0, math.inf)
    mirrored = fieller_interval(Arm(-0.5, 0.0625, 10), Arm(0.75, 0.0625, 10), 2.0)
    assert mirrored == Interval(-math.inf, -interval.lower - 2.0)


def test_fieller_of_a_control_at_zero_leaves_no_finite_lift_once_treatment_differs() -> None:
    zero = Arm(0.0, 0.0, 10)
    assert fieller_interval(zero, Arm(0.5, 0.0001, 10), 2.0) == Interval(math.inf, math.inf)
    assert fieller_interval(zero, Arm(0.01, 0.0001, 10), 2.0) == EVERYTHING
    assert fieller_interval(zero, zero, 2.0) == EVERYTHING


def test_fieller_of_a_treatment_at_zero_is_total_loss() -> None:
    assert fieller_interval(Arm(0.5, 0.0001, 10), Arm(0.0, 0.0, 10), 2.0) == Interval(-1.0, -1.0)


@pytest.mark.parametrize(
    ("control", "treatment", "expected"),
    [(0.5, 0.6, 0.2), (0.5, 0.0, -1.0), (0.0, 0.1, math.inf), (0.0, -0.1, -math.inf), (0.0, 0.0, 0.0)],
)
def test_lift_is_never_undefined(control: float, treatment: float, expected: float) -> None:
    assert lift(control, treatment) == pytest.approx(expected)


def test_hedges_g_without_variance_is_all_or_nothing() -> None:
    assert hedges_g(0.5, 0.5, 0.0, 0.0, 5, 5) == 0.0
    assert hedges_g(0.5, 0.6, 0.0, 0.0, 5, 5) == math.inf
    assert hedges_g(0.6, 0.5, 0.0, 0.0, 5, 5) == -math.inf


def test_hedges_g_of_a_single_session_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 sessions"):
        hedges_g(0.5, 0.6, 0.1, 0.1, 1, 5)
