from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from prx_engine.statistics import Histogram, mann_whitney

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())

pairs_of_units = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), min_size=1, max_size=30)


def histogram_of(scores: list[float]) -> Histogram:
    values, counts = np.unique(np.array(scores), return_counts=True)
    return Histogram(values, counts.astype(np.int64))


@pytest.mark.parametrize("name", REFERENCE["welch_and_mann_whitney"])
def test_mann_whitney_reproduces_the_reference(name: str) -> None:
    row = REFERENCE["welch_and_mann_whitney"][name]
    result = mann_whitney(histogram_of(row["control"]), histogram_of(row["treatment"]))
    expected = row["R_mwu_exactFALSE_correctFALSE"]
    assert result.u == expected["W"]
    assert result.p_value == pytest.approx(expected["p_two"], rel=1e-10, abs=0)
    assert 1.0 - result.p_less == pytest.approx(expected["p_greater"], rel=1e-10, abs=0)
    assert result.superiority == pytest.approx(row["P_superiority"], rel=1e-10)


@pytest.mark.parametrize("row", REFERENCE["degenerate"], ids=lambda row: row["case"])
def test_u_of_degenerate_samples_is_that_of_the_reference(row: dict[str, list[float]]) -> None:
    result = mann_whitney(histogram_of(row["control"]), histogram_of(row["treatment"]))
    assert result.u == row["mwu"][0]


@given(pairs_of_units, pairs_of_units)
def test_mann_whitney_equals_that_of_the_scores_written_out(
    control: list[tuple[int, int]], treatment: list[tuple[int, int]]
) -> None:
    one, other = Histogram.from_units(control), Histogram.from_units(treatment)
    result = mann_whitney(one, other)
    written_out = [np.repeat(arm.values, arm.counts) for arm in (one, other)]
    if one.constant and other.constant and one.mean == other.mean:
        assert (result.z, result.p_value, result.p_less, result.superiority) == (0.0, 1.0, 1.0, 0.5)
        return
    alternatives: tuple[Literal["two-sided", "less"], ...] = ("two-sided", "less")
    for alternative, p in zip(alternatives, (result.p_value, result.p_less), strict=True):
        expected = stats.mannwhitneyu(
            written_out[1],
            written_out[0],
            use_continuity=False,
            alternative=alternative,
            method="asymptotic",
        )
        assert result.u == expected.statistic
        assert p == pytest.approx(expected.pvalue, rel=1e-9, abs=0)


@given(pairs_of_units, pairs_of_units)
def test_swapping_the_arms_turns_the_sign(
    control: list[tuple[int, int]], treatment: list[tuple[int, int]]
) -> None:
    one = mann_whitney(Histogram.from_units(control), Histogram.from_units(treatment))
    other = mann_whitney(Histogram.from_units(treatment), Histogram.from_units(control))
    assert one.z == -other.z
    assert one.p_value == other.p_value
    assert one.superiority == pytest.approx(1.0 - other.superiority)


def test_ties_of_millions_lose_no_digits() -> None:
    n = 5_000_000
    result = mann_whitney(
        Histogram.from_units([(0, 2), (10_000, n - 2)]), Histogram.from_units([(0, 1), (10_000, n - 1)])
    )
    # For 0/1 scores it is the z of two proportions, times √((N - 1)/N).
    pooled, total = 3 / (2 * n), 2 * n
    expected = (1 / n) / np.sqrt(pooled * (1 - pooled) * 2 / n) * np.sqrt((total - 1) / total)
    assert result.z == pytest.approx(expected, rel=1e-9)


def test_far_tails_keep_their_digits() -> None:
    result = mann_whitney(Histogram.from_units([(0, 600)]), Histogram.from_units([(10_000, 600)]))
    assert result.z == pytest.approx(np.sqrt(1199), rel=1e-12)
    assert result.p_value == pytest.approx(2 * stats.norm.sf(result.z), rel=1e-9, abs=0)
    assert 0.0 < result.p_value < 1e-200


def test_an_empty_arm_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one session"):
        mann_whitney(Histogram.from_units([]), Histogram.from_units([(1, 1)]))
