from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from prx_engine.configuration.explain import (
    MAX_SHOWN,
    InvalidConfiguration,
    Problem,
    allowed_values,
    dotted,
    problems_in,
    settings_of,
    shown,
    table_at,
)
from prx_engine.configuration.locator import KeyPath
from prx_engine.configuration.settings import (
    ExperimentSettings,
    SelfEvolution,
    TelemetrySettings,
    TelemetrySource,
)
from prx_engine.errors import ConfigurationError


def problems(data: dict[str, Any]) -> list[str]:
    with pytest.raises(ValidationError) as refused:
        SelfEvolution.model_validate(data)
    return [str(problem) for problem in problems_in(refused.value, SelfEvolution, data)]


@pytest.mark.parametrize(
    ("key", "allowed"),
    [
        ("database", "a text, not empty, without control characters"),
        ("experiments.enabled", "true or false"),
        ("experiments.default_duration_hours", "a whole number from 1 to 87600"),
        ("experiments.traffic_split", "a number from 0 to 1"),
        ("experiments.confidence_level", "a number from 0.5 to 0.9999"),
        ("experiments.auto_converge.max_duration_hours",
         "a whole number from 1 to 87600, "
         "not below default_duration_hours or auto_converge.check_interval_hours"),
        ("experiments.sequential.test", '"auto" or "welch" or "robust"'),
        ("fitness.weights.task_completion", "a number from 0 to 1, the six weights together 1.0"),
        ("fitness.normalization.latency_p50_ms",
         "a list of 2, each a number above 0, the first below the second"),
        ("telemetry.sources", "a list, each a table of path, format"),
    ],
)  # fmt: skip
def test_allowed_values_are_told_from_the_constraints(key: str, allowed: str) -> None:
    fields = {".".join(path): field for path, field in settings_of(SelfEvolution)}

    assert allowed_values(fields[key]) == allowed


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"experiments": {"traffic_split": 1.2}},
         "experiments.traffic_split: found 1.2; allowed: a number from 0 to 1"),
        ({"experiments": {"enabled": 1}}, "experiments.enabled: found 1; allowed: true or false"),
        ({"promotion": 3}, "promotion: found 3; allowed: a table of target, workspace"),
        ({"fitness": {"normalization": {"tokens_per_task": [0, -1]}}},
         "fitness.normalization.tokens_per_task: found [0, -1]; allowed: "
         "a list of 2, each a number above 0, the first below the second"),
        ({"telemetry": {"sources": [{"path": "x"}, {"format": "otlp"}]}},
         "telemetry.sources[1].path: found nothing; allowed: a text, not empty, without control characters"),
        ({"telemetry": {"sources": ["x"]}},
         'telemetry.sources[0]: found "x"; allowed: a table of path, format'),
        ({"telemetry": {"sources": [{"path": "x", "fromat": "y"}]}},
         "telemetry.sources[0].fromat: no such key; did you mean format?"),
        ({"experiments": {"auto_converge": {"max_duration_hours": 100}}},
         "experiments.auto_converge.max_duration_hours: found 100; "
         "allowed: at least default_duration_hours, which is 168"),
        ({"fitness": {"weights": {"task_completion": 0.3}}},
         "fitness.weights: found a sum of 1.05;"
         " allowed: the six weights together 1.0; set them as one table"),
        ({"experiments": {"min_sampel_size": 3}},
         "experiments.min_sampel_size: no such key; did you mean min_sample_size?"),
        ({"promotion": {"zzz": 3}}, "promotion.zzz: no such key; allowed: target, workspace"),
    ],
)  # fmt: skip
def test_a_problem_says_what_was_found_and_what_is_allowed(data: dict[str, Any], expected: str) -> None:
    assert problems(data) == [expected]


def test_every_bad_key_is_one_problem() -> None:
    data = {"experiments": {"enabled": 1, "traffic_split": 2, "sequential": {"test": "t"}}}

    assert len(problems(data)) == 3


def test_the_error_is_one_line_about_the_first_problem_and_counts_the_others() -> None:
    first, second = Problem(("a",), "wrong", "c.toml", 3), Problem(("b",), "wrong", "c.toml", 4)

    assert str(InvalidConfiguration((first,))) == "c.toml:3: a: wrong"
    error = InvalidConfiguration((first, second))
    assert str(error) == "c.toml:3: a: wrong (and 1 more)"
    assert error.problems == (first, second)
    assert isinstance(error, ConfigurationError)


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem(("a", "b"), "wrong"), "a.b: wrong"),
        (Problem(("a",), "wrong", "c.toml"), "c.toml: a: wrong"),
        (Problem((), "wrong", "c.toml", 2), "c.toml:2: wrong"),
        (Problem((), "wrong", "a\nb.toml"), "a\\nb.toml: wrong"),
    ],
)
def test_a_problem_names_what_is_known_of_its_place(problem: Problem, text: str) -> None:
    assert str(problem) == text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("a", "b-1", "c_2"), "a.b-1.c_2"),
        (("a", 0, "b"), "a[0].b"),
        (("a", "b c", "d.e"), 'a."b c"."d.e"'),
        (("a\x1b[31m",), '"a\\u001b[31m"'),
    ],
)
def test_a_key_is_shown_as_it_would_be_written(path: KeyPath, text: str) -> None:
    assert dotted(path) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1, "1"),
        (0.5, "0.5"),
        (float("nan"), "nan"),
        ('say "hi"\n', '"say \\"hi\\"\\n"'),
        ("\u202eabc\x9b", '"\\u202eabc\\x9b"'),
        ("schön 😀", '"schön 😀"'),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        ({"a": [1, "x"], "b c": False}, '{a = [1, "x"], "b c" = false}'),
    ],
)
def test_a_value_is_shown_as_toml_would_write_it(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    "value",
    ["x" * 10_000, list(range(1000)), 10**5000, -(10**5000), 10**50],
    ids=["text", "list", "huge", "negative", "large"],
)
def test_a_long_value_is_shortened(value: object) -> None:
    assert len(shown(value)) <= MAX_SHOWN


@given(st.recursive(st.text() | st.floats() | st.integers(), st.lists))
def test_a_shown_value_is_one_printable_line(value: object) -> None:
    assert shown(value).isprintable()


def test_a_table_is_found_at_its_path() -> None:
    assert table_at(SelfEvolution, ()) is SelfEvolution
    assert table_at(SelfEvolution, ("experiments",)) is ExperimentSettings
    assert table_at(SelfEvolution, ("telemetry",)) is TelemetrySettings
    assert table_at(SelfEvolution, ("telemetry", "sources", 3)) is TelemetrySource
    for path in [("nonsense",), ("experiments", "enabled"), ("telemetry", "sources"), ("database", "x")]:
        assert table_at(SelfEvolution, path) is None
