"""Scores of one session from raw metrics: formulas by hand, exact rounding, missing never zero."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.configuration import FitnessSettings
from prx_engine.dimensions import DIMENSIONS, Dimension
from prx_engine.scoring.scores import Scorer, falling, mean_units, percentile, ratio_units, units

DEFAULT = Scorer(FitnessSettings())


def score(dimension: Dimension, _scorer: Scorer = DEFAULT, /, **report: Any) -> int | None:
    """The session's score of one dimension, after making sure that the report gives no other."""
    scores = dict(zip(DIMENSIONS, _scorer.scores(report), strict=True))
    assert {name for name, value in scores.items() if value is not None} <= {dimension}
    return scores[dimension]


def settings(**normalization: Any) -> Scorer:
    return Scorer(FitnessSettings.model_validate({"normalization": normalization}))


def test_a_session_without_metrics_has_no_score() -> None:
    assert DEFAULT.scores({}) == (None,) * 6
    assert DEFAULT.fitness((None,) * 6) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.9, 0.7], 8000),
        ([1.0], 10_000),
        ([0.0], 0),
        ([0.1, 0.2, 0.2], 1667),
        ([0.52, 0.69, 0.757, 0.62], 6468),
    ],
)
def test_relevance_of_responses_and_of_memories_is_the_mean(values: list[float], expected: int) -> None:
    assert score("response_relevance", relevance=values) == expected
    assert score("memory_precision", recall_relevance=values) == expected


@pytest.mark.parametrize(
    ("succeeded", "calls", "expected"),
    [(5, 6, 8333), (2, 3, 6667), (0, 4, 0), (4, 4, 10_000), (1, 20_000, 1), (1, 20_001, 0)],
)
def test_task_completion_is_the_share_that_succeeded(succeeded: int, calls: int, expected: int) -> None:
    assert score("task_completion", tool_calls=calls, tool_calls_succeeded=succeeded) == expected


@pytest.mark.parametrize(
    "report", [{"tool_calls": 0, "tool_calls_succeeded": 0}, {"tool_calls": 3}, {"tool_calls_succeeded": 3}]
)
def test_task_completion_is_missing_without_calls_or_without_their_outcome(report: dict[str, Any]) -> None:
    assert score("task_completion", **report) is None


def test_task_completion_counts_tasks_where_the_configuration_says_so() -> None:
    by_tasks = settings(task_completion="tasks")
    report = {"tool_calls": 10, "tool_calls_succeeded": 1, "tasks": 4, "tasks_succeeded": 3}
    assert score("task_completion", **report) == 1000
    assert score("task_completion", by_tasks, **report) == 7500
    assert score("task_completion", by_tasks, tool_calls=10, tool_calls_succeeded=1) is None


def test_latency_is_half_median_and_half_95th_percentile() -> None:
    # One time is both percentiles: s50 = ln(10000/1000)/ln(20) = 0.768622, s95 = 1 at its first bound.
    assert score("response_latency", first_token_ms=[1000.0]) == 8843
    # p50 = 515, p95 = 600.5 (below 1000): s50 = ln(10000/515)/ln(20) = 0.990133.
    assert score("response_latency", first_token_ms=[420, 610]) == 9951
    # p50 = 3000 → 0.401894; p95 = 3000 + 0.9 · 7000 = 9300 → ln(30000/9300)/ln(30) = 0.344343.
    assert score("response_latency", first_token_ms=[10_000, 1000, 3000]) == 3731
    assert score("response_latency", first_token_ms=[1e9]) == 0
    assert score("response_latency", first_token_ms=[0]) == 10_000


def test_token_efficiency_falls_with_tokens_for_each_successful_task() -> None:
    # s(5210) = ln(50000/5210)/ln(50) = 0.578075
    assert score("token_efficiency", tokens=5210) == 5781
    assert score("token_efficiency", tokens=10_420, tasks_succeeded=2) == 5781
    assert score("token_efficiency", tokens=10_420, tasks=5, tasks_succeeded=2) == 5781
    assert score("token_efficiency", tokens=1000) == score("token_efficiency", tokens=0) == 10_000
    assert score("token_efficiency", tokens=50_000) == score("token_efficiency", tokens=10**15) == 0


def test_token_efficiency_is_zero_if_no_task_succeeded_and_missing_if_nobody_knows() -> None:
    assert score("token_efficiency", tokens=10, tasks=3, tasks_succeeded=0) == 0
    assert score("token_efficiency", tokens=10, tasks_succeeded=0) == 0
    assert score("token_efficiency", tokens=10, tasks=3) is None
    assert score("token_efficiency", tasks=3, tasks_succeeded=2) is None


@pytest.mark.parametrize(
    ("feedback", "expected"),
    [
        ({"thumbs_up": 1}, 10_000),
        ({"thumbs_down": 2}, 0),
        ({"corrections": 1}, 0),
        ({"thumbs_up": 3, "thumbs_down": 1, "corrections": 2}, 5000),
        ({"thumbs_up": 2, "thumbs_down": 1}, 6667),
        ({"thumbs_up": 0, "thumbs_down": 0, "corrections": 0}, None),
    ],
)
def test_user_satisfaction_is_the_share_of_thumbs_up(feedback: dict[str, Any], expected: int | None) -> None:
    assert score("user_satisfaction", **feedback) == expected


def test_zero_is_a_score_and_missing_is_none() -> None:
    assert DEFAULT.scores({"relevance": [0.0], "thumbs_down": 1}) == (0, None, None, None, None, 0)


def test_ready_made_scores_stand_instead_of_raw_fields() -> None:
    report = {"scores": {"response_relevance": [0.82]}, "relevance": [0.1], "thumbs_up": 1}
    assert DEFAULT.scores(report) == (8200, None, None, None, None, 10_000)


def test_ready_made_scores_of_several_sources_are_averaged() -> None:
    assert DEFAULT.scores({"scores": {"memory_precision": [0.5737, 0.99]}})[4] == 7819  # 0.78185


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.00005, 1),
        (0.00004999999999999999, 0),
        (0.00015, 2),
        (0.29995, 3000),
        (0.29994999999999994, 2999),
        (0.99995, 10_000),
        (0.99994999999999, 9999),
        (1.005e-4, 1),
        (0.0, 0),
        (-0.0, 0),
        (1.0, 10_000),
        (5e-324, 0),
    ],
)
def test_scores_are_rounded_half_up_as_their_digits_read(value: float, expected: int) -> None:
    assert units(value) == expected


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_means_are_rounded_half_up_exactly(values: list[float]) -> None:
    exact = sum(Fraction(repr(value)) for value in values) / len(values)
    assert mean_units(values) == math.floor(exact * 10_000 + Fraction(1, 2))


@given(st.lists(st.integers(0, 100_000).map(lambda n: n / 100_000), min_size=1, max_size=6))
def test_ties_between_two_units_go_up_whatever_floating_point_says(values: list[float]) -> None:
    exact = sum(Fraction(repr(value)) for value in values) / len(values)
    assert mean_units(values) == math.floor(exact * 10_000 + Fraction(1, 2))


@given(st.integers(0, 10**15), st.integers(1, 10**15))
def test_shares_are_rounded_half_up_exactly(part: int, whole: int) -> None:
    part = min(part, whole)
    assert ratio_units(part, whole) == math.floor(Fraction(part, whole) * 10_000 + Fraction(1, 2))


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=30),
    st.sampled_from([0.0, 0.05, 0.5, 0.95, 1.0]),
)
def test_percentiles_are_numpys(values: list[float], share: float) -> None:
    expected = float(np.percentile(values, share * 100))
    assert percentile(sorted(values), share) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    ("x", "expected"),
    [(0, 1.0), (999, 1.0), (1000, 1.0), (50_000, 0.0), (50_001, 0.0), (1e300, 0.0), (math.sqrt(5e7), 0.5)],
)
def test_a_falling_score_is_one_up_to_its_first_bound_and_zero_from_its_second(
    x: float, expected: float
) -> None:
    assert falling(x, (1000.0, 50_000.0)) == pytest.approx(expected, abs=1e-15)


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_falling_score_stays_between_zero_and_one_and_never_rises(x: float, y: float) -> None:
    low, high = sorted((x, y))
    assert 1 >= falling(low, (500.0, 10_000.0)) >= falling(high, (500.0, 10_000.0)) >= 0


@pytest.mark.parametrize("bound", [500.0, 10_000.0])
def test_a_falling_score_has_no_jump_at_its_bounds(bound: float) -> None:
    around = [
        falling(x, (500.0, 10_000.0)) for x in (math.nextafter(bound, 0), bound, math.nextafter(bound, 1e9))
    ]
    assert max(around) - min(around) < 1e-14


def test_a_sessions_own_fitness_is_the_weighted_mean_of_what_it_has() -> None:
    assert DEFAULT.fitness((8200, 7800, 6900, 6500, 7100, 6000)) == 7405
    assert DEFAULT.fitness((None, None, None, None, None, 6000)) == 6000
    # (0.30 · 0.8 + 0.10 · 0.5) / 0.40
    assert DEFAULT.fitness((8000, None, None, None, 5000, None)) == 7250
    # (0.30 · 0 + 0.25 · 0.0001) / 0.55 = 0.45 of a unit; with latency (0.25 + 0.15) / 0.70 = 0.57
    assert DEFAULT.fitness((0, 1, None, None, None, None)) == 0
    assert DEFAULT.fitness((0, 1, 1, None, None, None)) == 1
    assert DEFAULT.fitness((None, None, None, 0, 1, None)) == 1  # a tie goes up


def test_a_dimension_without_weight_has_no_part_in_a_sessions_fitness() -> None:
    weights = {"response_relevance": 1.0} | dict.fromkeys(DIMENSIONS[1:], 0.0)
    scorer = Scorer(FitnessSettings.model_validate({"weights": weights}))
    assert scorer.fitness((4000, 9000, None, None, None, 1)) == 4000
    assert scorer.fitness((None, 9000, None, None, None, 1)) is None
