from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.statistics import (
    Arm,
    Histogram,
    hall,
    mann_whitney,
    needs_robust,
    robust,
    student_cdf,
    t_test,
    welch,
)

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())

arms = st.builds(Arm, st.floats(0.0, 1.0), st.floats(0.0, 0.1), st.integers(2, 10**6))
score_lists = st.lists(st.integers(0, 10_000), min_size=2, max_size=30)


def arm_of(scores: list[float]) -> Arm:
    return Arm(float(np.mean(scores)), float(np.var(scores, ddof=1)) / len(scores), len(scores))


def sample_of(units: list[int]) -> tuple[Arm, Histogram]:
    histogram = Histogram.from_units((unit, 1) for unit in units)
    n = histogram.n
    return Arm(histogram.mean, histogram.second_central / (n - 1), n), histogram


@pytest.mark.parametrize("name", REFERENCE["welch_and_mann_whitney"])
def test_welch_reproduces_the_reference(name: str) -> None:
    row = REFERENCE["welch_and_mann_whitney"][name]
    result, expected = welch(arm_of(row["control"]), arm_of(row["treatment"])), row["R_welch"]
    assert result.difference == pytest.approx(expected["mean_diff"], rel=1e-10)
    assert result.t == pytest.approx(expected["t"], rel=1e-10)
    assert result.df == pytest.approx(expected["df"], rel=1e-10)
    assert result.p_value == pytest.approx(expected["p_two"], rel=1e-10, abs=0)
    assert 1.0 - result.p_less == pytest.approx(expected["p_greater"], rel=1e-10, abs=0)


def test_one_constant_arm_is_tested_as_in_the_reference() -> None:
    row = next(row for row in REFERENCE["degenerate"] if row["case"] == "one arm constant")
    result = welch(arm_of(row["control"]), arm_of(row["treatment"]))
    assert [result.t, result.p_value] == pytest.approx(row["welch"], rel=1e-10)


def test_equal_means_without_variance_are_no_evidence() -> None:
    result = welch(Arm(0.5, 0.0, 5), Arm(0.5, 0.0, 5))
    assert (result.t, result.p_value, result.p_less) == (0.0, 1.0, 1.0)


@pytest.mark.parametrize(("treatment", "t", "p_less"), [(0.6, math.inf, 1.0), (0.4, -math.inf, 0.0)])
def test_different_means_without_variance_are_certain(treatment: float, t: float, p_less: float) -> None:
    result = welch(Arm(0.5, 0.0, 5), Arm(treatment, 0.0, 5))
    assert (result.t, result.p_value, result.p_less) == (t, 0.0, p_less)


def test_rounding_of_equal_means_is_not_certainty() -> None:
    control, treatment = 0.1 * 0.1 + 0.2 * 0.4, 0.1 * 0.3 + 0.2 * 0.3
    assert control != treatment
    assert welch(Arm(control, 0.0, 50), Arm(treatment, 0.0, 50)).p_value == 1.0
    assert welch(Arm(control, 1e-40, 50), Arm(treatment, 1e-40, 50)).p_value == 1.0


@given(arms, arms)
def test_swapping_the_arms_turns_the_sign_and_keeps_p(control: Arm, treatment: Arm) -> None:
    one, other = welch(control, treatment), welch(treatment, control)
    assert one.t == -other.t
    assert one.p_value == pytest.approx(other.p_value, rel=1e-9, abs=0)


@given(arms, arms)
def test_results_are_numbers_and_probabilities(control: Arm, treatment: Arm) -> None:
    result = welch(control, treatment)
    assert not any(map(math.isnan, (result.t, result.df, result.p_value, result.p_less)))
    assert 0.0 <= result.p_value <= 1.0
    assert 0.0 <= result.p_less <= 1.0


@given(arms, arms)
def test_degrees_of_freedom_lie_between_the_smaller_arm_and_both(control: Arm, treatment: Arm) -> None:
    df = welch(control, treatment).df
    smallest, largest = min(control.n, treatment.n) - 1, control.n + treatment.n - 2
    assert smallest * (1 - 1e-12) <= df <= largest * (1 + 1e-12)


def test_t_test_takes_variance_and_degrees_of_freedom_as_given() -> None:
    result = t_test(-0.03, 0.0001, 12.5)
    assert result.t == pytest.approx(-3.0)
    assert result.p_value == pytest.approx(2 * student_cdf(-3.0, 12.5))
    assert result.p_less == pytest.approx(student_cdf(-3.0, 12.5))


def test_extreme_differences_underflow_only_below_what_a_double_holds() -> None:
    assert 0.0 < welch(Arm(0.5, 1e-6, 10**6), Arm(0.537, 1e-12, 10**6)).p_value < 1e-250
    assert welch(Arm(0.0, 1e-12, 10**6), Arm(1.0, 1e-12, 10**6)).p_value == 0.0


@pytest.mark.parametrize("n", [0, 1])
def test_a_single_session_has_no_variance(n: int) -> None:
    with pytest.raises(ValueError, match="at least 2 sessions"):
        welch(Arm(0.5, 0.0, n), Arm(0.5, 0.1, 5))


@pytest.mark.parametrize("values", [(math.nan, 0.1, 5), (0.5, -0.1, 5), (0.5, math.inf, 5), (0.5, 0.1, -1)])
def test_impossible_arms_are_refused(values: tuple[float, float, int]) -> None:
    with pytest.raises(ValueError, match="not the mean, variance and size"):
        Arm(*values)


@given(score_lists, score_lists)
def test_hall_follows_its_formula(control: list[int], treatment: list[int]) -> None:
    (one, scores_one), (other, scores_other) = sample_of(control), sample_of(treatment)
    if scores_one.constant or scores_other.constant:
        return
    test = welch(one, other)
    third = scores_other.third_central / other.n**2 - scores_one.third_central / one.n**2
    a = third / (one.variance + other.variance) ** 1.5
    expected = test.t + a * test.t**2 / 3 + a**2 * test.t**3 / 27 + a / 6
    result = hall(one, other, scores_one, scores_other)
    assert result.t == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert result.p_value == pytest.approx(2 * student_cdf(-abs(result.t), test.df), rel=1e-12, abs=0)
    assert result.p_less == pytest.approx(student_cdf(result.t, test.df), rel=1e-12, abs=0)


def test_hall_without_skewness_is_welch() -> None:
    (control, control_scores), (treatment, treatment_scores) = (
        sample_of([10, 20, 30]),
        sample_of([25, 30, 35]),
    )
    result = hall(control, treatment, control_scores, treatment_scores)
    assert result.t == pytest.approx(welch(control, treatment).t)


def test_hall_tempers_what_a_rare_failure_hides() -> None:
    # Treatment lacks the rare low score that sessions like these have: its mean is likely too high.
    control, control_scores = sample_of([9000] * 40)
    treatment, treatment_scores = sample_of([9000] * 2 + [9500] * 38)
    welch_alone = welch(control, treatment).p_value
    assert hall(control, treatment, control_scores, treatment_scores).p_value > 1e6 * welch_alone


@given(score_lists, score_lists)
def test_robust_needs_all_three_tests(control: list[int], treatment: list[int]) -> None:
    (one, scores_one), (other, scores_other) = sample_of(control), sample_of(treatment)
    result = robust(one, other, scores_one, scores_other)
    parts = (result.welch, result.mann_whitney, result.hall)
    assert result.p_less == max(part.p_less for part in parts)
    signs = {np.sign(result.welch.t), np.sign(result.mann_whitney.z), np.sign(result.hall.t)}
    agree = signs in ({1.0}, {-1.0})
    assert result.p_value == (max(part.p_value for part in parts) if agree else 1.0)
    assert result.mann_whitney == mann_whitney(scores_one, scores_other)
    assert result.hall == hall(one, other, scores_one, scores_other)


@given(score_lists, score_lists)
def test_robust_treats_the_arms_alike(control: list[int], treatment: list[int]) -> None:
    (one, scores_one), (other, scores_other) = sample_of(control), sample_of(treatment)
    forth = robust(one, other, scores_one, scores_other)
    back = robust(other, one, scores_other, scores_one)
    assert forth.p_value == pytest.approx(back.p_value, rel=1e-6, abs=0)
    assert forth.hall.t == pytest.approx(-back.hall.t, rel=1e-9, abs=1e-12)


def test_tests_that_point_apart_are_no_evidence() -> None:
    control, control_scores = sample_of([5000] * 60 + [4000] * 40)
    treatment, treatment_scores = sample_of([5100] * 97 + [0] * 30)
    result = robust(control, treatment, control_scores, treatment_scores)
    assert result.welch.t < 0.0 < result.mann_whitney.z
    assert result.mann_whitney.p_value < 1e-6
    assert result.p_value == 1.0


def test_an_arm_of_equal_scores_is_given_the_variance_of_one_session_to_the_contrary() -> None:
    control, control_scores = sample_of([5000] * 5)
    treatment, treatment_scores = sample_of([6000] * 5)
    result = robust(control, treatment, control_scores, treatment_scores)
    assert result.welch.standard_error == pytest.approx(math.hypot(0.5 / 5, 0.6 / 5))
    assert result.p_value == result.welch.p_value > 0.5


def test_a_variance_from_the_influences_that_is_larger_stays() -> None:
    control_scores, treatment_scores = sample_of([5000] * 5)[1], sample_of([6000] * 5)[1]
    result = robust(Arm(0.5, 0.04, 5), Arm(0.6, 0.05, 5), control_scores, treatment_scores)
    assert result.welch.standard_error == pytest.approx(0.3)


def test_identical_constants_are_no_evidence_under_robust() -> None:
    arm, scores = sample_of([5000] * 5)
    result = robust(arm, arm, scores, scores)
    assert (result.p_value, result.p_less) == (1.0, 1.0)


def test_hall_without_variance_decides_as_welch() -> None:
    scores = sample_of([4000, 6000])[1]
    result = hall(Arm(0.5, 0.0, 2), Arm(0.6, 0.0, 2), scores, scores)
    assert (result.t, result.p_value, result.p_less) == (math.inf, 0.0, 1.0)


@pytest.mark.parametrize(
    ("control", "treatment", "expected"),
    [
        ([4000, 5000, 6000], [4000, 5000, 6000], False),
        ([4000, 5000, 6000], [4000, 5000, 9000], True),
        ([5000] * 3, [5000] * 3, False),
        ([4000, 6000], [4000, 6000] * 3, False),
        ([4000, 6000], [4000, 6000] * 3 + [5000], True),
    ],
    ids=["symmetric", "skewed", "constant", "a third", "less than a third"],
)
def test_robust_is_needed_for_skewed_or_unequal_arms(
    control: list[int], treatment: list[int], expected: bool
) -> None:
    (one, scores_one), (other, scores_other) = sample_of(control), sample_of(treatment)
    assert needs_robust(scores_one, scores_other, one.n, other.n) is expected


def test_skewness_stops_mattering_as_sessions_grow() -> None:
    pairs = [(3000, 10), (7000, 20)]
    scores: Any = Histogram.from_units(pairs)
    limit = 355 * scores.skewness**2
    assert needs_robust(scores, scores, math.floor(limit), math.floor(limit))
    assert not needs_robust(scores, scores, math.ceil(limit), math.ceil(limit))
