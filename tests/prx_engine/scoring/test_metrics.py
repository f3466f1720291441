"""What agents may report, what is refused and how the refusal reads, and how sources combine."""

from __future__ import annotations

import itertools
import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.errors import InvalidInput
from prx_engine.scoring.metrics import Report, SessionUpdate, combine, replace
from tests.support.sessions import metrics

COUNTS = [
    "tool_calls",
    "tool_calls_succeeded",
    "tasks",
    "tasks_succeeded",
    "tokens",
    "thumbs_up",
    "thumbs_down",
    "corrections",
]
JUDGED = ["relevance", "recall_relevance"]
NAMES = ["session_id", "cluster", "source"]


def refusal(**fields: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        SessionUpdate.of({"session_id": "s", **fields})
    return one_line(caught.value)


def refusal_of_json(line: str | bytes) -> str:
    with pytest.raises(InvalidInput) as caught:
        SessionUpdate.of_json(line)
    return one_line(caught.value)


def one_line(error: InvalidInput) -> str:
    text = str(error)
    assert text.isprintable(), "control characters in a message"
    assert len(text) < 300
    return text


def test_a_field_that_is_no_text_at_all_is_refused_in_one_line() -> None:
    with pytest.raises(InvalidInput) as refused:
        SessionUpdate.of({"session_id": "s", "\ud800": 1})
    assert "\n" not in str(refused.value)


def test_everything_but_the_session_id_is_optional() -> None:
    update = SessionUpdate.of({"session_id": "s-17"})
    assert (update.report, update.source, update.started_at) == ({}, "native", None)


def test_the_documented_line_is_read() -> None:
    update = SessionUpdate.of_json(
        '{"session_id": "s-17", "started_at": "2026-06-01T08:00:00Z", "relevance": [0.9, 0.7],'
        ' "tool_calls": 6, "tool_calls_succeeded": 5, "first_token_ms": [420, 610], "tokens": 5210,'
        ' "tasks_succeeded": 1, "recall_relevance": [0.8], "thumbs_up": 1}'
    )
    assert update.started_at == datetime(2026, 6, 1, 8, tzinfo=UTC)
    assert update.report == {
        "relevance": [0.9, 0.7],
        "tool_calls": 6,
        "tool_calls_succeeded": 5,
        "first_token_ms": [420, 610],
        "tokens": 5210,
        "tasks_succeeded": 1,
        "recall_relevance": [0.8],
        "thumbs_up": 1,
    }


@pytest.mark.parametrize("name", [*JUDGED, "first_token_ms"])
def test_one_value_may_stand_for_a_list_of_one(name: str) -> None:
    assert SessionUpdate.of({"session_id": "s", name: 1}).report == {name: [1.0]}


@pytest.mark.parametrize("nothing", [None, []])
def test_null_and_empty_lists_are_missing(nothing: object) -> None:
    assert SessionUpdate.of({"session_id": "s", "relevance": nothing}).report == {}


@pytest.mark.parametrize("name", COUNTS)
def test_zero_is_given_not_missing(name: str) -> None:
    assert SessionUpdate.of({"session_id": "s", name: 0}).report == {name: 0}


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize("value", [1.0000001, -0.0001, math.nan, math.inf, -math.inf, 10**400])
def test_judge_scores_outside_zero_to_one_are_refused(name: str, value: float) -> None:
    assert refusal(**{name: [0.5, value]}).startswith(f"{name}.1: found {str(value)[:50]}")


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 1e13])
def test_times_below_zero_or_not_finite_are_refused(value: float) -> None:
    assert refusal(first_token_ms=[value]).startswith(f"first_token_ms.0: found {value}; ")


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [-1, 10**15 + 1, 10**400, 1.0, math.nan, math.inf, "5", True, [1]])
def test_counts_are_whole_numbers_from_zero(name: str, value: object) -> None:
    assert refusal(**{name: value}).startswith(f"{name}: found {repr(value)[:40]}")


@pytest.mark.parametrize("name", [*JUDGED, "first_token_ms"])
@pytest.mark.parametrize("value", [True, "0.5", {"a": 1}])
def test_what_is_no_number_is_refused(name: str, value: object) -> None:
    assert refusal(**{name: value}) == (f"{name}: found {value!r}; a number or a list of numbers is allowed")
    assert refusal(**{name: [value]}).startswith(f"{name}.0: found {value!r}; ")


@pytest.mark.parametrize("value", [1.5, -0.1, math.nan, True, None, "1"])
def test_ready_made_scores_are_checked_too(value: object) -> None:
    text = refusal(scores={"task_completion": value})
    assert text.startswith(f"scores.task_completion: found {value!r}; ")


def test_misspelt_names_are_answered_with_the_nearest() -> None:
    assert refusal(thumbs_upp=1) == "thumbs_upp: no such field; did you mean thumbs_up?"
    assert refusal(scores={"relevance": 1}) == (
        "scores.relevance: no such dimension; did you mean response_relevance?"
    )
    assert refusal(qqq=1) == "qqq: no such field"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("", "''; string should have at least 1 character"),
        ("a\0b", r"'a\x00b'; a NUL character"),
        ("a\ud800", r"'a\ud800'; a NUL character or half a surrogate pair"),
        ("x" * 513, "'xxxx"),
        ("x" * 1_000_000, "'xxxx"),
        (5, "5; input should be a valid string"),
        (True, "True; input should be a valid string"),
        (b"s", "b's'; input should be a valid string"),
    ],
)
def test_bad_names_are_refused(name: str, value: object, shown: str) -> None:
    assert refusal(**{name: value}).startswith(f"{name}: found {shown}")


def test_names_of_any_script_up_to_512_characters_are_taken() -> None:
    for name in ("会话-17", "سجل", "😀", "x" * 512, "a\nb", " "):
        assert SessionUpdate.of({"session_id": name}).session_id == name


@pytest.mark.parametrize("name", [*NAMES, "experiment_id"])
def test_names_are_at_most_1000_bytes_long(name: str) -> None:
    for taken in ("é" * 500, "会" * 333, "😀" * 250):
        assert getattr(SessionUpdate.of({"session_id": "s", name: taken, **beside(name)}), name) == taken
    for value in ("é" * 501, "会" * 334, "😀" * 251):
        text = refusal(**{name: value, **beside(name)})
        assert text.startswith(f"{name}: found '{value[:9]}")
        assert text.endswith("…; allowed: at most 1000 bytes of UTF-8")


def beside(name: str) -> dict[str, str]:
    return {"variant": "control"} if name == "experiment_id" else {}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("yesterday", "not an RFC 3339 time"),
        ("2026-06-01T08:00:00", "not an RFC 3339 time"),
        (datetime(2026, 6, 1), "no time zone"),
        (date(2026, 6, 1), "an RFC 3339 time is a text"),
        (1_780_300_800, "an RFC 3339 time is a text"),  # seconds? milliseconds?
        (1_780_300_800_000, "an RFC 3339 time is a text"),
        (True, "an RFC 3339 time is a text"),
        (math.nan, "an RFC 3339 time is a text"),
    ],
)
def test_a_start_that_is_not_certain_is_refused(value: object, problem: str) -> None:
    text = refusal(started_at=value)
    assert text.startswith("started_at: found ")
    assert problem in text


def test_a_start_with_any_offset_is_kept_in_utc() -> None:
    east = datetime(2026, 6, 1, 10, tzinfo=timezone(timedelta(hours=2)))
    for value in (east, "2026-06-01T10:00:00+02:00"):
        started_at = SessionUpdate.of({"session_id": "s", "started_at": value}).started_at
        assert started_at == datetime(2026, 6, 1, 8, tzinfo=UTC)
        assert started_at is not None
        assert started_at.tzinfo is UTC


@pytest.mark.parametrize(
    ("stated", "problem"),
    [
        ({"layer": "L2"}, "variant: missing beside layer or experiment_id; state it, or neither"),
        ({"experiment_id": "e"}, "variant: missing beside layer or experiment_id; state it, or neither"),
        ({"variant": "control"}, "layer: missing beside variant; state layer or experiment_id"),
        ({"layer": "L4", "variant": "control"}, "layer: found 'L4'; input should be 'L1', 'L2' or 'L3'"),
        ({"layer": "L2", "variant": "b"}, "variant: found 'b'; input should be 'control' or 'treatment'"),
    ],
)
def test_a_stated_variant_is_complete_or_refused(stated: dict[str, str], problem: str) -> None:
    assert refusal(**stated) == problem


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", "not JSON: "),
        (b"{", "not JSON: "),
        (b'{"session_id": "s", "tok', "not JSON: "),
        (b'{"session_id": "s"} x', "not JSON: trailing characters"),
        (b'{"session_id": "\xff"}', "not JSON: "),
        (b'{"session_id": "\\ud800"}', "not JSON: "),
        (b"[" * 100_000, "not JSON: recursion limit exceeded"),
        ('{"session_id": "s"}'.encode("utf-16"), "not JSON: "),
        (b'{"session_id": "s", "tokens": ' + b"9" * 5000 + b"}", "not JSON: number out of range"),
        (b"[]", "not a JSON object, but []"),
        (b'[{"session_id": "s"}]', "not a JSON object, but [{'session_id': 's'}]"),
        (b"17", "not a JSON object, but 17"),
        (b"null", "not a JSON object, but None"),
        (b'"' + b"x" * 1_000_000 + b'"', "not a JSON object, but xxxx"),
        (b"{}", "session_id: missing"),
        (b'{"session_id": "s\\u0000"}', r"session_id: found 's\x00'; a NUL character"),
        (b'{"session_id": "s", "relevance": NaN}', "relevance.0: found nan; "),
        (b'{"session_id": "s", "relevance": [0.1, -Infinity]}', "relevance.1: found -inf; "),
        (b'{"session_id": "s", "relevance": 1e999}', "relevance.0: found inf; "),
        (b'{"session_id": "s", "tokens": 1e3}', "tokens: found 1000.0; "),
        (b'{"session_id": "s", "tokens": true}', "tokens: found True; "),
        (b'{"session_id": "s", "started_at": 1780300800}', "started_at: found 1780300800; "),
        (b'{"session_id": "s", "a\\u001b[31mb": 1}', r"a\x1b[31mb: no such field"),
        (b'{"session_id": "s", "source": "' + b"x" * 1_000_000 + b'"}', "source: found 'xxxx"),
        (b'{"session_id": "s", "' + b"x" * 1_000_000 + b'": 1}', "xxxx"),
    ],
)
def test_bad_lines_are_refused_in_one_line(line: bytes, problem: str) -> None:
    assert refusal_of_json(line).startswith(problem)


def test_more_successes_than_attempts_are_refused_by_name() -> None:
    for whole in ("tool_calls", "tasks"):
        with pytest.raises(InvalidInput) as caught:
            combine([{whole: 2, f"{whole}_succeeded": 3}])
        assert str(caught.value) == f"{whole}_succeeded: found 3; allowed: at most {whole} = 2"


def test_more_successes_than_attempts_are_refused_across_sources() -> None:
    with pytest.raises(InvalidInput, match=r"tool_calls_succeeded: found 5; allowed: at most tool_calls = 4"):
        combine([{"tool_calls": 4, "tool_calls_succeeded": 3}, {"tool_calls_succeeded": 2}])


def test_successes_alone_are_no_contradiction() -> None:
    assert combine([{"tasks_succeeded": 3}]) == {"tasks_succeeded": 3}


def test_across_sources_counts_add_and_lists_join() -> None:
    reports: list[Report] = [
        {"tokens": 100, "relevance": [0.5], "scores": {"task_completion": 0.4}},
        {"tokens": 20, "relevance": [0.7, 0.9], "thumbs_up": 1},
        {"scores": {"task_completion": 0.6, "memory_precision": 0.1}},
    ]
    assert combine(reports) == {
        "tokens": 120,
        "relevance": [0.5, 0.7, 0.9],
        "scores": {"task_completion": [0.4, 0.6], "memory_precision": [0.1]},
        "thumbs_up": 1,
    }


@given(st.lists(metrics(), max_size=4))
def test_combining_leaves_the_reports_as_they_are(reports: list[dict[str, Any]]) -> None:
    before = json.dumps(reports)
    combine(reports)
    assert json.dumps(reports) == before


@given(st.lists(metrics(), max_size=3))
def test_sources_combine_alike_in_any_order(reports: list[dict[str, Any]]) -> None:
    def canonical(combined: dict[str, Any]) -> dict[str, Any]:
        scores = {name: sorted(values) for name, values in combined.get("scores", {}).items()}
        plain = {name: sorted(v) if isinstance(v, list) else v for name, v in combined.items()}
        return plain | {"scores": scores}

    results = [canonical(combine(order)) for order in itertools.permutations(reports)]
    assert all(result == results[0] for result in results)


def test_within_a_source_later_fields_replace_earlier_ones() -> None:
    earlier = {"tokens": 100, "relevance": [0.5, 0.6], "thumbs_up": 1, "scores": {"task_completion": 0.4}}
    later = {"tokens": 90, "relevance": [0.7], "scores": {"memory_precision": 0.2}}
    assert replace(earlier, later) == {
        "tokens": 90,
        "relevance": [0.7],
        "thumbs_up": 1,
        "scores": {"task_completion": 0.4, "memory_precision": 0.2},
    }
    assert replace(earlier, {"scores": {"task_completion": 0.5}})["scores"] == {"task_completion": 0.5}


def test_numbers_of_other_libraries_are_numbers() -> None:
    update = SessionUpdate.of({"session_id": "s", "relevance": np.float64(0.5)})
    assert update.report == {"relevance": [0.5]}
