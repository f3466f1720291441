from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from prx_engine.configuration.settings import (
    AutoConvergeSettings,
    EvaluationSettings,
    ExperimentSettings,
    FitnessSettings,
    Normalization,
    Parameters,
    SelfEvolution,
    TelemetrySettings,
    TelemetrySource,
    Weights,
)
from prx_engine.dimensions import DIMENSIONS

DEFAULTS: dict[str, Any] = {
    "database": None,
    "experiments": {
        "enabled": True,
        "default_duration_hours": 168,
        "min_sample_size": 100,
        "traffic_split": 0.5,
        "confidence_level": 0.95,
        "min_effect_size": 0.02,
        "auto_converge": {"enabled": True, "check_interval_hours": 24, "max_duration_hours": 720},
        "sequential": {"spending": "obrien_fleming", "planned_share": 0.8, "test": "auto"},
    },
    "fitness": {
        "evaluation_window_hours": 24,
        "min_sessions_for_score": 10,
        "weights": {
            "response_relevance": 0.30,
            "task_completion": 0.25,
            "response_latency": 0.15,
            "token_efficiency": 0.10,
            "memory_precision": 0.10,
            "user_satisfaction": 0.10,
        },
        "thresholds": {"minimum_acceptable": 0.50, "regression_delta": 0.05},
        "normalization": {
            "task_completion": "tool_calls",
            "latency_p50_ms": (500, 10_000),
            "latency_p95_ms": (1_000, 30_000),
            "tokens_per_task": (1_000, 50_000),
        },
    },
    "promotion": {"target": "config.toml", "workspace": "workspace"},
    "telemetry": {
        "sources": (),
        "transcript_latency": False,
        "evaluations": {
            "response_relevance": ("relevance", "answer_relevance", "response_relevance"),
            "memory_precision": ("memory_relevance", "context_relevance", "memory_precision"),
            "user_satisfaction": ("user_satisfaction", "user_feedback"),
        },
    },
}

HOURS = (1, 24, 87_600)
SHARE = (0, 0.5, 1, 1.0)
PAIR = ([1, 2], [0.001, 1e9])
ACCEPTED: dict[str, tuple[object, ...]] = {
    "database": ("x.db", "sqlite:///x", "postgresql://u@h/d"),
    "experiments.enabled": (True, False),
    "experiments.default_duration_hours": (1, 720),
    "experiments.min_sample_size": (2, 10**9),
    "experiments.traffic_split": SHARE,
    "experiments.confidence_level": (0.5, 0.9999),
    "experiments.min_effect_size": SHARE,
    "experiments.auto_converge.enabled": (True, False),
    "experiments.auto_converge.check_interval_hours": (1, 720),
    "experiments.auto_converge.max_duration_hours": (168, 87_600),
    "experiments.sequential.spending": ("obrien_fleming", "pocock"),
    "experiments.sequential.planned_share": SHARE,
    "experiments.sequential.test": ("auto", "welch", "robust"),
    "fitness.evaluation_window_hours": HOURS,
    "fitness.min_sessions_for_score": (2, 10**9),
    "fitness.thresholds.minimum_acceptable": SHARE,
    "fitness.thresholds.regression_delta": SHARE,
    "fitness.normalization.task_completion": ("tool_calls", "tasks"),
    "fitness.normalization.latency_p50_ms": PAIR,
    "fitness.normalization.latency_p95_ms": PAIR,
    "fitness.normalization.tokens_per_task": PAIR,
    "promotion.target": ("config.toml", "sub/x.toml"),
    "promotion.workspace": ("workspace", "."),
    "telemetry.transcript_latency": (True, False),
    "telemetry.evaluations.response_relevance": ([], ["quality", "relevance"]),
    "telemetry.sources": ([], [{"path": "a/*.jsonl"}], [{"path": "x", "format": "native"}]),
}

BAD_FLAG: tuple[object, ...] = (1, 0, "true", None, [])
BAD_HOURS = (0, -1, 1.0, 1.5, True, "1", None, 87_601, 10**12, 10**400)
BAD_COUNT = (1, 0, 2.0, True, "2", 10**9 + 1, 10**400)
BAD_SHARE = (-0.001, 1.001, 2, True, "0.5", math.nan, math.inf, -math.inf, None, 10**400)
BAD_TEXT: tuple[object, ...] = ("", 1, True, [], "a\0b", "a\nb", "a\n", "\x1b[2J", "\x7f", "\x85", "\udc80")
BAD_CHOICE = ("", "Pocock", 1, True, None)
BAD_PAIR = (
    [2, 1],
    [1, 1],
    [0, 1],
    [-1, 1],
    [1],
    [1, 2, 3],
    ["1", "2"],
    [True, 2],
    [1, math.inf],
    [math.nan, 1],
    1,
    "12",
)
REFUSED: dict[str, tuple[object, ...]] = {
    "database": BAD_TEXT,
    "experiments": (1, "x", []),
    "experiments.enabled": BAD_FLAG,
    "experiments.default_duration_hours": BAD_HOURS,
    "experiments.min_sample_size": BAD_COUNT,
    "experiments.traffic_split": BAD_SHARE,
    "experiments.confidence_level": (0.4999, 0.99991, 1, 0, True, "0.9", math.nan),
    "experiments.min_effect_size": BAD_SHARE,
    "experiments.auto_converge.enabled": BAD_FLAG,
    "experiments.auto_converge.check_interval_hours": (*BAD_HOURS, 721),
    "experiments.auto_converge.max_duration_hours": (*BAD_HOURS, 167),
    "experiments.sequential.spending": BAD_CHOICE,
    "experiments.sequential.planned_share": BAD_SHARE,
    "experiments.sequential.test": BAD_CHOICE,
    "fitness.evaluation_window_hours": BAD_HOURS,
    "fitness.min_sessions_for_score": BAD_COUNT,
    "fitness.thresholds.minimum_acceptable": BAD_SHARE,
    "fitness.thresholds.regression_delta": BAD_SHARE,
    "fitness.normalization.task_completion": BAD_CHOICE,
    "fitness.normalization.latency_p50_ms": BAD_PAIR,
    "fitness.normalization.latency_p95_ms": BAD_PAIR,
    "fitness.normalization.tokens_per_task": BAD_PAIR,
    "promotion.target": BAD_TEXT,
    "promotion.workspace": BAD_TEXT,
    "telemetry.transcript_latency": BAD_FLAG,
    "telemetry.evaluations.response_relevance": ({}, "x", [1], [""], ["a", "A"], ["user-feedback"]),
    "telemetry.sources": ({}, "x", [1], [{}], [{"path": ""}], [{"path": "a\0"}], [{"path": "x", "format": 1}],
                          [{"path": "x", "y": 1}]),
}  # fmt: skip


def nested(key: str, value: object) -> dict[str, Any]:
    for name in reversed(key.split(".")):
        value = {name: value}
    assert isinstance(value, dict)
    return value


def cases(table: dict[str, tuple[object, ...]]) -> list[tuple[str, object]]:
    return [(key, value) for key, values in table.items() for value in values]


def test_every_setting_has_the_documented_default() -> None:
    assert SelfEvolution().model_dump() == DEFAULTS
    assert SelfEvolution.model_validate({}) == SelfEvolution()


def test_the_defaults_satisfy_their_own_rules() -> None:
    assert SelfEvolution.model_validate(DEFAULTS) == SelfEvolution()


@pytest.mark.parametrize(("key", "value"), cases(ACCEPTED))
def test_a_value_in_range_is_accepted(key: str, value: object) -> None:
    SelfEvolution.model_validate(nested(key, value))


@pytest.mark.parametrize(("key", "value"), cases(REFUSED))
def test_a_value_out_of_range_or_of_another_type_is_refused(key: str, value: object) -> None:
    with pytest.raises(ValidationError):
        SelfEvolution.model_validate(nested(key, value))


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("value", BAD_SHARE)
def test_a_weight_is_a_number_from_0_to_1(dimension: str, value: object) -> None:
    zeros = dict.fromkeys(DIMENSIONS, 0.0)

    with pytest.raises(ValidationError):
        Weights.model_validate({**zeros, dimension: value})


@pytest.mark.parametrize(
    "table",
    ["", "experiments", "experiments.auto_converge", "experiments.sequential", "fitness", "fitness.weights",
     "fitness.thresholds", "fitness.normalization", "promotion", "telemetry"],
)  # fmt: skip
def test_a_key_that_does_not_exist_is_refused_in_every_table(table: str) -> None:
    with pytest.raises(ValidationError, match="extra_forbidden"):
        SelfEvolution.model_validate(nested(f"{table}.nonsense".removeprefix("."), 1))


def test_a_whole_number_may_stand_for_a_fraction() -> None:
    settings = ExperimentSettings(traffic_split=1)

    assert isinstance(settings.traffic_split, float)


def test_settings_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        SelfEvolution().experiments.traffic_split = 0.1  # type: ignore[misc]


def test_the_maximum_duration_holds_the_default_duration() -> None:
    longest = AutoConvergeSettings(max_duration_hours=1000)

    ExperimentSettings(default_duration_hours=1000, auto_converge=longest)
    with pytest.raises(ValidationError, match=r"auto_converge\.max_duration_hours: found 1000"):
        ExperimentSettings(default_duration_hours=1001, auto_converge=longest)


def test_the_key_that_outgrew_an_unstated_maximum_is_to_blame() -> None:
    with pytest.raises(ValidationError, match=r"default_duration_hours: found 721; .* 720"):
        ExperimentSettings(default_duration_hours=721)
    with pytest.raises(ValidationError, match=r"check_interval_hours: found 721; .* 720"):
        AutoConvergeSettings(check_interval_hours=721)


def test_the_maximum_duration_holds_the_check_interval() -> None:
    with pytest.raises(ValidationError, match=r"max_duration_hours: found 9; .* 10"):
        AutoConvergeSettings(check_interval_hours=10, max_duration_hours=9)


@pytest.mark.parametrize("excess", [-1e-10, 0.0, 1e-10])
def test_weights_may_miss_one_by_rounding(excess: float) -> None:
    Weights(response_relevance=0.3 + excess)


@pytest.mark.parametrize("excess", [-0.3, -2e-9, 2e-9, 0.1])
def test_weights_must_add_up_to_one(excess: float) -> None:
    with pytest.raises(ValidationError, match="a sum of"):
        Weights(response_relevance=0.3 + excess)


def test_weights_are_found_by_dimension_and_in_the_order_of_the_dimensions() -> None:
    weights = Weights()

    assert weights.as_tuple() == (0.30, 0.25, 0.15, 0.10, 0.10, 0.10)
    assert tuple(weights.of(dimension) for dimension in DIMENSIONS) == weights.as_tuple()
    assert tuple(Weights.model_fields) == DIMENSIONS


def test_a_source_recognises_its_format_unless_told() -> None:
    assert TelemetrySettings(sources=(TelemetrySource(path="x"),)).sources[0].format == "auto"


shares = st.floats(0, 1)
pairs = st.tuples(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300)).filter(lambda pair: pair[0] < pair[1])


@given(
    split=shares, effect=shares, confidence=st.floats(0.5, 0.9999), latency=pairs, minutes=st.integers(1, 720)
)
def test_parameters_are_the_same_after_a_trip_through_json(
    split: float, effect: float, confidence: float, latency: tuple[float, float], minutes: int
) -> None:
    parameters = Parameters(
        experiments=ExperimentSettings(
            traffic_split=split,
            min_effect_size=effect,
            confidence_level=confidence,
            default_duration_hours=minutes,
        ),
        fitness=FitnessSettings(normalization=Normalization(latency_p50_ms=latency)),
    )
    text = parameters.model_dump_json()

    again = Parameters.model_validate_json(text)

    assert again == parameters
    assert again.model_dump_json() == text


def test_parameters_are_pinned_from_the_settings_in_effect() -> None:
    settings = SelfEvolution.model_validate(nested("experiments.traffic_split", 0.1))

    parameters = Parameters(experiments=settings.experiments, fitness=settings.fitness)

    assert parameters.experiments.traffic_split == 0.1


def test_an_evaluation_is_found_whatever_its_spelling() -> None:
    evaluations = TelemetrySettings().evaluations
    assert evaluations.dimension_of("User-Feedback") == "user_satisfaction"
    assert evaluations.dimension_of("answer relevance ") == "response_relevance"
    assert evaluations.dimension_of("toxicity") is None


def test_a_name_of_an_evaluation_means_one_dimension() -> None:
    with pytest.raises(ValidationError, match='memory_precision: found "quality" again'):
        EvaluationSettings(response_relevance=("Quality",), memory_precision=("quality",))


def test_a_source_has_a_known_format() -> None:
    with pytest.raises(ValidationError):
        TelemetrySource.model_validate({"path": "log.jsonl", "format": "xml"})
