from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from prx_engine.statistics import Histogram

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())

pairs_of_units = st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 30)), min_size=1, max_size=40)


def histogram_of(scores: list[float]) -> Histogram:
    values, counts = np.unique(np.array(scores), return_counts=True)
    return Histogram(values, counts.astype(np.int64))


@pytest.mark.parametrize("name", REFERENCE["welch_and_mann_whitney"])
def test_skewness_reproduces_the_reference(name: str) -> None:
    row = REFERENCE["welch_and_mann_whitney"][name]
    for arm, expected in zip(("control", "treatment"), row["skew_bias_corrected"], strict=True):
        assert histogram_of(row[arm]).skewness == pytest.approx(expected, rel=1e-10)


@given(pairs_of_units)
def test_statistics_equal_those_of_the_scores_written_out(pairs: list[tuple[int, int]]) -> None:
    histogram = Histogram.from_units(pairs)
    scores = np.repeat([unit for unit, _ in pairs], [count for _, count in pairs]) / 10_000
    assert histogram.n == scores.size
    assert histogram.mean == pytest.approx(scores.mean())
    assert histogram.second_central == pytest.approx(scores.var(), abs=1e-15)
    assert histogram.third_central == pytest.approx(np.mean((scores - scores.mean()) ** 3), abs=1e-15)
    if scores.size >= 3 and not histogram.constant:
        assert histogram.skewness == pytest.approx(stats.skew(scores, bias=False), rel=1e-9, abs=1e-9)


@given(pairs_of_units)
def test_the_order_of_arrival_does_not_matter(pairs: list[tuple[int, int]]) -> None:
    one = Histogram.from_units(pairs)
    other = Histogram.from_units(sorted(pairs))
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.counts, other.counts)


def test_scores_that_appear_again_are_merged() -> None:
    histogram = Histogram.from_units([(7000, 2), (100, 1), (7000, 3)])
    assert histogram.values.tolist() == [0.01, 0.7]
    assert histogram.counts.tolist() == [1, 5]


@pytest.mark.parametrize("count", [1, 3, 10_000_019])
def test_equal_scores_have_no_spread_at_all(count: int) -> None:
    histogram = Histogram.from_units([(3333, count)])
    assert histogram.constant
    assert histogram.mean == 0.3333
    assert histogram.second_central == histogram.third_central == histogram.skewness == 0.0


def test_skewness_of_two_scores_is_zero() -> None:
    assert Histogram.from_units([(0, 1), (9000, 1)]).skewness == 0.0


def test_one_different_score_among_millions_keeps_its_digits() -> None:
    n = 10_000_000
    histogram = Histogram.from_units([(5000, n - 1), (5001, 1)])
    share = 1 / n
    assert histogram.second_central == pytest.approx(1e-8 * share * (1 - share), rel=1e-9, abs=0)
    expected = 1e-12 * share * (1 - share) * (1 - 2 * share)
    assert histogram.third_central == pytest.approx(expected, rel=1e-9, abs=0)


def test_no_scores_have_no_mean() -> None:
    empty = Histogram.from_units([])
    assert empty.n == 0
    assert empty.skewness == 0.0
    with pytest.raises(ValueError, match="no scores"):
        _ = empty.mean


@pytest.mark.parametrize("pair", [(-1, 1), (10_001, 1), (5, 0), (5, -2)])
def test_impossible_scores_and_counts_are_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="must"):
        Histogram.from_units([pair])


@pytest.mark.parametrize(
    ("values", "counts"),
    [([0.1, 0.2], [1]), ([0.2, 0.1], [1, 1]), ([0.1, 0.1], [1, 1]), ([np.nan], [1]), ([0.1], [0])],
)
def test_inconsistent_histograms_are_refused(values: list[float], counts: list[int]) -> None:
    with pytest.raises(ValueError, match=r"need one count|must be"):
        Histogram(np.array(values), np.array(counts))
