from __future__ import annotations

import json
import math
import operator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from prx_engine.statistics import (
    attrition_chi_square,
    is_sample_ratio_mismatch,
    sample_ratio_bayes_factor,
    two_arm_chi_square,
)

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())

counts = st.integers(0, 10**7)
splits = st.floats(0.01, 0.99)


@pytest.mark.parametrize("row", REFERENCE["sample_ratio_mismatch"], ids=lambda row: str(row["counts"]))
def test_chi_square_reproduces_the_reference(row: dict[str, Any]) -> None:
    first, second = map(int, row["counts"])
    result = two_arm_chi_square((first, second), tuple(row["weights"]))
    assert result.statistic == pytest.approx(row["chisq"], rel=1e-10)
    assert result.p == pytest.approx(row["p"], rel=1e-10, abs=0)


@pytest.mark.parametrize(
    ("control", "treatment", "split", "expected"),
    [  # computed with 40 digits
        (1000, 1200, 0.5, 1261.8092415237873),
        (135, 115, 0.5, 0.9466851106811868),
        (900, 150, 0.1, 1736.2204305957396),
        (500_000, 503_000, 0.5, 0.88416354631762138),
    ],
)
def test_bayes_factor_is_exact(control: int, treatment: int, split: float, expected: float) -> None:
    assert sample_ratio_bayes_factor(control, treatment, split) == pytest.approx(expected, rel=1e-8)


def test_no_sessions_are_no_evidence() -> None:
    assert sample_ratio_bayes_factor(0, 0, 0.3) == pytest.approx(1.0)


@given(splits, st.integers(1, 60))
def test_bayes_factor_averages_to_one_under_the_split(split: float, sessions: int) -> None:
    chances = [float(stats.binom.pmf(k, sessions, split)) for k in range(sessions + 1)]
    factors = [sample_ratio_bayes_factor(sessions - k, k, split) for k in range(sessions + 1)]
    assert sum(map(operator.mul, chances, factors)) == pytest.approx(1.0)


@given(counts, counts, splits)
def test_bayes_factor_does_not_depend_on_which_arm_is_called_treatment(a: int, b: int, split: float) -> None:
    one = sample_ratio_bayes_factor(a, b, split)
    other = sample_ratio_bayes_factor(b, a, 1.0 - split)
    assert one == pytest.approx(other, rel=1e-5, abs=0)


def test_overwhelming_evidence_is_infinite() -> None:
    assert sample_ratio_bayes_factor(0, 10**6, 0.5) == math.inf


@pytest.mark.parametrize("split", [0.0, 1.0])
def test_a_split_without_a_second_arm_is_not_tested(split: float) -> None:
    assert sample_ratio_bayes_factor(70, 30, split) == 1.0
    assert two_arm_chi_square((70, 30), (1.0 - split, split)).p == 1.0


def test_mismatch_begins_at_the_limit() -> None:
    assert is_sample_ratio_mismatch(1000, 1200, 0.5)
    assert not is_sample_ratio_mismatch(1000, 1100, 0.5)


def test_chi_square_without_sessions_finds_nothing() -> None:
    assert two_arm_chi_square((0, 0), (0.5, 0.5)).p == 1.0


@given(
    st.tuples(st.integers(1, 500), st.integers(1, 500)), st.tuples(st.integers(1, 500), st.integers(1, 500))
)
def test_attrition_is_the_chi_square_of_the_table(scored: tuple[int, int], unscored: tuple[int, int]) -> None:
    assigned = [scored[0] + unscored[0], scored[1] + unscored[1]]
    result = attrition_chi_square(scored[0], assigned[0], scored[1], assigned[1])
    expected = stats.chi2_contingency([scored, unscored], correction=False)
    assert result.statistic == pytest.approx(expected.statistic, rel=1e-9, abs=1e-12)
    assert result.p == pytest.approx(expected.pvalue, rel=1e-9, abs=0)


@pytest.mark.parametrize("table", [(0, 0, 5, 9), (0, 4, 0, 9), (4, 4, 9, 9), (0, 0, 0, 0)])
def test_attrition_with_an_empty_margin_finds_nothing(table: tuple[int, int, int, int]) -> None:
    assert attrition_chi_square(*table).p == 1.0


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        sample_ratio_bayes_factor(-1, 3, 0.5)
    with pytest.raises(ValueError, match="negative"):
        two_arm_chi_square((3, -1), (1, 1))
    with pytest.raises(ValueError, match="more sessions scored"):
        attrition_chi_square(5, 4, 1, 2)


@pytest.mark.parametrize("split", [-0.1, 1.1, math.nan])
def test_impossible_splits_are_refused(split: float) -> None:
    with pytest.raises(ValueError, match="split"):
        sample_ratio_bayes_factor(1, 1, split)


@pytest.mark.parametrize("weights", [(0.0, 0.0), (-1.0, 2.0), (math.inf, 1.0)])
def test_impossible_weights_are_refused(weights: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        two_arm_chi_square((1, 1), weights)
