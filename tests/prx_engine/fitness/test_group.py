"""Fitness of a group: which dimensions count, how weights spread, and the variance against the formula."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.configuration import Weights
from prx_engine.dimensions import DIMENSIONS, UNIT, Dimension
from prx_engine.fitness.group import (
    counting,
    dimension_mean,
    dimension_mean_variance,
    effective_weights,
    fitness,
    fitness_score,
    group_fitness,
)
from prx_engine.fitness.moments import Moments, Scores
from prx_engine.records import FitnessScore, Window
from tests.support.reference import fitness_and_variance, table_of

WEIGHTS = Weights()
WINDOW = Window(start=datetime(2026, 6, 1, tzinfo=UTC), end=datetime(2026, 6, 2, tzinfo=UTC))
EXAMPLE: Scores = (8200, 7800, 6900, 6500, 7100, 6000)

SCORES = st.tuples(*[st.none() | st.integers(0, UNIT)] * len(DIMENSIONS))


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[Scores], tuple[Dimension, ...]]:
    """Sessions, and counted dimensions of which each has at least two observations."""
    counted = tuple(sorted(draw(st.sets(st.sampled_from(DIMENSIONS), min_size=1)), key=DIMENSIONS.index))
    full = [tuple(draw(st.integers(0, UNIT)) if d in counted else None for d in DIMENSIONS) for _ in range(2)]
    return full + draw(st.lists(SCORES, max_size=30)), counted


def record(sessions: list[Scores], counted: tuple[Dimension, ...] = DIMENSIONS) -> FitnessScore:
    return fitness_score(Moments.of(sessions), WEIGHTS, counted, WINDOW, 10)


def flags(counted: tuple[Dimension, ...]) -> list[bool]:
    return [name in counted for name in DIMENSIONS]


def test_the_documented_example_has_its_composite_and_contributions() -> None:
    score = record([EXAMPLE] * 10)
    assert score.composite == 0.7405
    assert [score.dimensions[name].contribution for name in DIMENSIONS] == [
        0.246,
        0.195,
        0.1035,  # shown half up, as 0.104
        0.065,
        0.071,
        0.06,
    ]
    assert [score.dimensions[name].score for name in DIMENSIONS] == [0.82, 0.78, 0.69, 0.65, 0.71, 0.6]
    assert (score.sessions, score.valid, score.standard_error) == (10, True, 0.0)


def test_a_score_is_valid_from_the_smallest_number_of_sessions_on() -> None:
    assert not record([EXAMPLE] * 9).valid
    assert record([EXAMPLE] * 10).valid


def test_a_group_without_sessions_has_no_fitness() -> None:
    score = record([], ())
    assert (score.composite, score.standard_error, score.sessions, score.valid) == (None, None, 0, False)
    for dimension in score.dimensions.values():
        assert (dimension.score, dimension.contribution, dimension.weight, dimension.sessions) == (
            None,
            None,
            0,
            0,
        )
    assert fitness(Moments(), WEIGHTS, ()) is None
    assert fitness(Moments(), WEIGHTS, DIMENSIONS) is None


def test_one_session_has_a_fitness_but_no_standard_error() -> None:
    score = record([EXAMPLE])
    assert (score.composite, score.standard_error) == (0.7405, None)


def test_a_counted_dimension_without_data_leaves_the_fitness_undefined() -> None:
    sessions: list[Scores] = [(5000, None, None, None, None, None)] * 3
    assert fitness(Moments.of(sessions), WEIGHTS, ("response_relevance", "task_completion")) is None
    score = record(sessions, ("response_relevance", "task_completion"))
    assert score.composite is None
    assert not score.dimensions["response_relevance"].counts


def test_dimensions_count_with_enough_observations_in_every_group() -> None:
    many = Moments.of([(1, 1, None, None, None, None)] * 30)
    few = Moments.of([(1, 1, 1, None, None, None)] * 29 + [(1, None, 1, None, None, None)])
    assert counting([many], WEIGHTS, 30) == ("response_relevance", "task_completion")
    assert counting([many, few], WEIGHTS, 30) == ("response_relevance",)
    assert counting([many, few], WEIGHTS, 29) == ("response_relevance", "task_completion")
    assert counting([many, Moments()], WEIGHTS, 1) == ()


def test_a_dimension_without_weight_never_counts() -> None:
    weights = Weights(
        response_relevance=0.0,
        task_completion=0.5,
        response_latency=0.5,
        token_efficiency=0.0,
        memory_precision=0.0,
        user_satisfaction=0.0,
    )
    group = Moments.of([EXAMPLE] * 50)
    assert counting([group], weights, 10) == ("task_completion", "response_latency")


def test_weights_of_dimensions_that_do_not_count_spread_in_proportion() -> None:
    used = effective_weights(WEIGHTS, ("response_relevance", "user_satisfaction"))
    assert used == (Fraction(3, 4), *[Fraction(0)] * 4, Fraction(1, 4))
    assert effective_weights(WEIGHTS, DIMENSIONS) == tuple(Fraction(n, 100) for n in (30, 25, 15, 10, 10, 10))


def test_the_record_shows_spread_and_configured_weights() -> None:
    score = record([EXAMPLE] * 10, ("response_relevance", "user_satisfaction"))
    relevance, latency = score.dimensions["response_relevance"], score.dimensions["response_latency"]
    assert (relevance.weight, relevance.configured_weight, relevance.contribution) == (0.75, 0.3, 0.615)
    assert (latency.weight, latency.configured_weight, latency.contribution) == (0.0, 0.15, None)
    assert (latency.score, latency.sessions) == (0.69, 10)
    assert score.composite == 0.765  # 0.75 · 0.82 + 0.25 · 0.60


@given(groups())
def test_weights_and_contributions_add_up(group: tuple[list[Scores], tuple[Dimension, ...]]) -> None:
    sessions, counted = group
    score = record(sessions, counted)
    assert sum(d.weight for d in score.dimensions.values()) == pytest.approx(1, abs=1e-15)
    contributions = sum(d.contribution or 0 for d in score.dimensions.values())
    assert score.composite == pytest.approx(contributions, abs=1e-15)
    assert {name for name, d in score.dimensions.items() if d.counts} == set(counted)


@given(groups())
def test_fitness_and_variance_equal_the_formula_on_arrays(
    group: tuple[list[Scores], tuple[Dimension, ...]],
) -> None:
    sessions, counted = group
    found = group_fitness(Moments.of(sessions), WEIGHTS, counted)
    mean, variance = fitness_and_variance(table_of(sessions), WEIGHTS.as_tuple(), flags(counted))
    assert found is not None
    assert found.mean == pytest.approx(mean, rel=1e-12, abs=1e-15)
    assert found.variance == pytest.approx(variance, rel=1e-10, abs=1e-15)
    assert found.mean == fitness(Moments.of(sessions), WEIGHTS, counted)


@pytest.mark.parametrize("seed", range(8))
def test_fitness_and_variance_equal_the_formula_to_twelve_digits_on_many_sessions(seed: int) -> None:
    random = np.random.default_rng(seed)
    missing = random.uniform(0, 0.9, size=6)
    sessions: list[Scores] = [
        tuple(None if random.random() < missing[d] else int(random.integers(0, UNIT + 1)) for d in range(6))
        for _ in range(500)
    ]
    group = Moments.of(sessions)
    counted = counting([group], WEIGHTS, 30)
    found = group_fitness(group, WEIGHTS, counted)
    mean, variance = fitness_and_variance(table_of(sessions), WEIGHTS.as_tuple(), flags(counted))
    assert found is not None
    assert found.mean == pytest.approx(mean, rel=1e-12)
    assert found.variance == pytest.approx(variance, rel=1e-12)


@given(st.lists(st.tuples(*[st.integers(0, UNIT)] * 6), min_size=2, max_size=40))
def test_without_missing_data_the_variance_is_that_of_the_mean_of_weighted_scores(
    sessions: list[Scores],
) -> None:
    found = group_fitness(Moments.of(sessions), WEIGHTS, DIMENSIONS)
    weighted = table_of(sessions) @ np.array(WEIGHTS.as_tuple())
    assert found is not None
    assert found.variance == pytest.approx(float(weighted.var(ddof=1)) / len(sessions), rel=1e-9, abs=1e-17)


def test_variance_is_zero_below_two_sessions_and_for_equal_scores() -> None:
    for sessions in ([EXAMPLE], [EXAMPLE] * 7):
        found = group_fitness(Moments.of(sessions), WEIGHTS, DIMENSIONS)
        assert found is not None
        assert found.variance == 0.0


@given(st.lists(SCORES, min_size=1, max_size=30), st.integers(0, 5))
def test_the_mean_of_one_dimension_has_its_own_variance(sessions: list[Scores], d: int) -> None:
    values = np.array([scores[d] for scores in sessions if scores[d] is not None], dtype=float) / UNIT
    moments = Moments.of(sessions)
    mean = dimension_mean(moments, d)
    assert (mean is None) == (len(values) == 0)
    if len(values):
        assert mean == pytest.approx(values.mean(), abs=1e-15)
    expected = values.var(ddof=1) / len(values) if len(values) > 1 else 0.0
    assert dimension_mean_variance(moments, d) == pytest.approx(expected, rel=1e-9, abs=1e-17)
