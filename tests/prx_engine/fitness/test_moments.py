"""Moments: whole numbers that add and subtract, equal to the matrix products they stand for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.dimensions import DIMENSIONS, UNIT
from prx_engine.fitness.moments import MISSING, MOMENT_NAMES, MomentAccumulator, Moments, Scores

D = range(len(DIMENSIONS))
SCORES = st.tuples(*[st.none() | st.integers(0, UNIT)] * len(DIMENSIONS))
SESSIONS = st.lists(SCORES, max_size=25)


def test_entries_are_a_count_two_symmetric_matrices_and_a_full_one() -> None:
    assert len(MOMENT_NAMES) == len(set(MOMENT_NAMES)) == 1 + 21 + 36 + 21
    assert Moments().entries == (0,) * 79


@given(SESSIONS)
def test_moments_are_the_products_of_scores_and_presence(sessions: Sequence[Scores]) -> None:
    table = np.array([[np.nan if x is None else x for x in scores] for scores in sessions], dtype=float)
    table = table.reshape(-1, len(DIMENSIONS))
    mask = (~np.isnan(table)).astype(int)
    values = np.nan_to_num(table).astype(int)
    moments = Moments.of(sessions)
    assert moments.n == int(mask.any(axis=1).sum())
    for products, entry in (
        (mask.T @ mask, moments.count),
        (values.T @ mask, moments.total),
        (values.T @ values, moments.product),
    ):
        assert products.tolist() == [[entry(d, e) for e in D] for d in D]
    assert np.diag(mask.T @ mask).tolist() == [moments.observations(d) for d in D]


@given(SESSIONS, SESSIONS)
def test_moments_of_two_groups_add_up_to_those_of_both(first: list[Scores], second: list[Scores]) -> None:
    together = Moments.of(first + second)
    assert Moments.of(first) + Moments.of(second) == together == Moments.of(second) + Moments.of(first)
    assert together - Moments.of(first) == Moments.of(second)


@given(SESSIONS, st.randoms())
def test_order_does_not_matter(sessions: list[Scores], random: object) -> None:
    shuffled = list(sessions)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert Moments.of(shuffled) == Moments.of(sessions)


@given(SESSIONS, SCORES, SCORES)
def test_a_correction_is_one_subtraction_and_one_addition(
    others: list[Scores], wrong: Scores, right: Scores
) -> None:
    accumulator = MomentAccumulator()
    for scores in (*others, wrong):
        accumulator.add(scores)
    accumulator.add(wrong, -1)
    accumulator.add(right)
    assert accumulator.moments() == Moments.of([*others, right])


def test_a_session_without_any_score_does_not_count() -> None:
    assert Moments.of([MISSING, MISSING]) == Moments()


def test_a_zero_counts_where_a_missing_score_does_not() -> None:
    moments = Moments.of([(0, None, None, None, None, None)])
    assert (moments.n, moments.observations(0), moments.observations(1)) == (1, 1, 0)


def test_moments_of_a_million_full_scores_stay_exact() -> None:
    million = Moments.of([(UNIT,) * 6])
    for _ in range(20):
        million = million + million
    assert million.n == 2**20
    assert million.product(0, 5) == 2**20 * UNIT**2


def test_moments_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Moments().entries = (1,)  # type: ignore[misc]
