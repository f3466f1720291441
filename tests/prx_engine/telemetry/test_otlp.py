from __future__ import annotations

import json
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from prx_engine import Engine
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine
from tests.support.telemetry import (
    CHAT,
    attributes,
    dumped,
    event,
    logs,
    metrics,
    span,
    starts,
    traces,
    variants,
)

TRACE = "0a" * 16


def take(engine: Engine, *records: dict[str, Any]) -> Any:
    return engine.import_lines(dumped(records), format="otlp")


def test_legacy_names_are_read(engine: Engine) -> None:
    take(
        engine,
        traces(
            span(
                1,
                gen_ai__operation__name="chat",
                session__id="old-1",
                gen_ai__usage__prompt_tokens=10,
                gen_ai__usage__completion_tokens=5,
                gen_ai__server__time_to_first_token=0.25,
            )
        ),
    )
    assert metrics(engine) == {"old-1": {"tokens": 15, "first_token_ms": [250.0]}}


def test_a_span_without_operation_is_known_by_its_name(engine: Engine) -> None:
    chat = span(1, gen_ai__conversation__id="c", gen_ai__usage__input_tokens=3) | {"name": "chat gpt-4o"}
    take(engine, traces(chat))
    assert metrics(engine) == {"c": {"tokens": 3}}


@pytest.mark.parametrize("status", [{"code": 2}, {"code": "2"}, {"code": "STATUS_CODE_ERROR"}])
def test_a_tool_with_an_error_status_has_failed(status: dict[str, Any], engine: Engine) -> None:
    tool: dict[str, Any] = {"gen_ai__operation__name": "execute_tool", "gen_ai__conversation__id": "c"}
    take(engine, traces(span(1, **tool) | {"status": status}, span(2, **tool) | {"status": {"code": 1}}))
    assert metrics(engine) == {"c": {"tool_calls": 2, "tool_calls_succeeded": 1}}


def test_sums_of_agents_and_workflows_are_not_counted_again(engine: Engine) -> None:
    usage: dict[str, Any] = {"gen_ai__usage__input_tokens": 7, "gen_ai__conversation__id": "c"}
    take(
        engine,
        traces(
            span(1, gen_ai__operation__name="invoke_workflow", **usage),
            span(2, parent=1, gen_ai__operation__name="invoke_agent", **usage),
            span(3, parent=2, gen_ai__operation__name="chat", **usage),
        ),
    )
    assert metrics(engine) == {"c": {"tokens": 7}}


def test_evaluations_count_by_name_and_not_if_they_failed(open_engine: OpenEngine) -> None:
    engine = open_engine(
        config='[self_evolution.telemetry.evaluations]\nresponse_relevance = ["quality"]\n'
        'memory_precision = ["recall"]\nuser_satisfaction = ["smile"]\n'
    )

    def judged(name: str, value: Any, **more: Any) -> dict[str, Any]:
        return event(
            "gen_ai.evaluation.result",
            gen_ai__conversation__id="c",
            gen_ai__evaluation__name=name,
            gen_ai__evaluation__score__value=value,
            **more,
        )

    report = take(
        engine,
        logs(
            judged("Quality", 0.5),
            judged("quality", 1),
            judged("relevance", 0.1),  # no longer in the mapping
            judged("recall", 0.25),
            judged("smile", 1.0),
            judged("smile", 0),
            judged("smile", 0.5),
            judged("quality", 0.9, error__type="timeout"),
        ),
        logs(judged("quality", 4.5)),
    )
    assert metrics(engine)["c"] == {
        "relevance": [0.5, 1.0],
        "recall_relevance": [0.25],
        "thumbs_up": 1,
        "thumbs_down": 1,
        "scores": {"user_satisfaction": [0.5]},
    }
    (bad,) = report.rejected
    assert (bad.line, report.refused) == (2, 1)
    assert bad.problem == (
        "gen_ai.evaluation.score.value of quality: found 4.5; allowed: a number from 0 to 1"
    )


def test_an_evaluation_on_the_span_that_it_judges_counts(engine: Engine) -> None:
    judged = {
        "name": "gen_ai.evaluation.result",
        "timeUnixNano": "1748000002000000000",
        "attributes": attributes(gen_ai__evaluation__name="relevance", gen_ai__evaluation__score__value=0.5),
    }
    # That the call failed is no failure of the judge.
    take(
        engine, traces(span(1, **CHAT, error__type="x", gen_ai__usage__input_tokens=1) | {"events": [judged]})
    )
    assert metrics(engine) == {"conv-1": {"tokens": 1, "relevance": [0.5]}}


def test_scores_of_documents_and_memories_count(engine: Engine) -> None:
    found = [{"id": "a", "score": 0.5}, {"id": "b", "score": 1.0}, {"id": "c"}]
    conversation: dict[str, Any] = {"gen_ai__conversation__id": "c"}
    take(
        engine,
        traces(
            span(1, **conversation, gen_ai__operation__name="retrieval", gen_ai__retrieval__documents=found),
            span(
                2,
                **conversation,
                gen_ai__operation__name="search_memory",
                gen_ai__memory__records=json.dumps([{"id": "m", "score": 0.25}]),
            ),
            # What is written to the memory was not recalled; what was cut off cannot be read.
            span(3, **conversation, gen_ai__operation__name="upsert_memory", gen_ai__memory__records=found),
            span(4, **conversation, gen_ai__operation__name="search_memory", gen_ai__memory__records='[{"id'),
        ),
    )
    assert metrics(engine) == {"c": {"recall_relevance": [0.25, 0.5, 1.0]}}


def test_a_bad_record_spoils_none_of_the_others_of_its_line(engine: Engine) -> None:
    report = take(
        engine,
        traces(
            span(1, **CHAT, gen_ai__usage__input_tokens="many"),
            span(2, **CHAT, gen_ai__usage__input_tokens=5),
            span(3, **CHAT, gen_ai__usage__input_tokens=-5),
        ),
    )
    assert metrics(engine) == {"conv-1": {"tokens": 5}}
    assert [bad.problem for bad in report.rejected] == [
        "gen_ai.usage.input_tokens: found many; allowed: a number",
        "gen_ai.usage.input_tokens: found -5; allowed: a whole number from 0 on",
    ]
    assert (report.refused, report.recorded) == (1, 1)


@pytest.mark.parametrize("seed", range(10))
def test_spans_of_many_traces_find_their_sessions_in_any_order(seed: int, open_engine: OpenEngine) -> None:
    spans: list[dict[str, Any]] = []
    for number in range(30):
        trace = f"{number:032x}"
        spans.append(
            span(3 * number, trace, gen_ai__operation__name="chat", gen_ai__usage__input_tokens=number)
        )
        spans.append(span(3 * number + 1, trace, gen_ai__operation__name="execute_tool"))
        # Only the span of the agent names the conversation; ten conversations of three traces each.
        spans.append(
            span(
                3 * number + 2,
                trace,
                gen_ai__operation__name="invoke_agent",
                gen_ai__conversation__id=f"c-{number % 10}",
            )
        )
    random.Random(seed).shuffle(spans)
    waiting = 0
    for start in range(0, 90, 7):  # each portion another file, read by another process
        waiting += take(open_engine(), traces(*spans[start : start + 7])).waiting
    assert waiting > 0
    assert metrics(open_engine()) == {
        f"c-{c}": {"tokens": 3 * c + 30, "tool_calls": 3, "tool_calls_succeeded": 3} for c in range(10)
    }


def benchmark() -> list[dict[str, Any]]:
    """Ten conversations in one trace, below a span of none: only the agents' spans name theirs."""
    spans = [span(1) | {"name": "run all"}]
    for number in range(10):
        agent, chat, tool = (10 * number + place for place in (10, 11, 12))
        spans += [
            span(
                agent,
                parent=1,
                gen_ai__operation__name="invoke_agent",
                gen_ai__conversation__id=f"c-{number}",
            ),
            span(chat, parent=agent, gen_ai__operation__name="chat", gen_ai__usage__input_tokens=number),
            span(tool, parent=chat, gen_ai__operation__name="execute_tool"),
        ]
    return spans


BENCHMARK = {f"c-{n}": {"tokens": n, "tool_calls": 1, "tool_calls_succeeded": 1} for n in range(10)}


@pytest.mark.parametrize("seed", range(5))
def test_spans_below_different_sessions_of_one_trace_are_kept_apart(
    seed: int, engine: Engine, tmp_path: Path
) -> None:
    spans = benchmark()
    random.Random(seed).shuffle(spans)
    report = engine.import_lines(dumped(map(traces, spans)), format="otlp")
    assert report.waiting == 0
    assert metrics(engine) == BENCHMARK


@pytest.mark.parametrize("seed", range(5))
def test_they_are_kept_apart_while_they_are_followed(
    seed: int, open_engine: OpenEngine, tmp_path: Path
) -> None:
    spans = benchmark()
    random.Random(seed).shuffle(spans)
    path = tmp_path / "spans.jsonl"
    for one in spans:
        with path.open("ab") as file:
            file.write(dumped([traces(one)])[0] + b"\n")
        follower = open_engine().follow(str(path))
        follower.poll()
        follower.close()
    assert metrics(open_engine()) == BENCHMARK


def test_a_span_whose_parent_never_comes_gets_the_session_of_its_trace(
    engine: Engine, clock: ManualClock, tmp_path: Path
) -> None:
    path = tmp_path / "spans.jsonl"
    tool = span(2, parent=99, gen_ai__operation__name="execute_tool")
    lines = dumped([traces(tool), traces(span(3, **CHAT, gen_ai__usage__input_tokens=1))])
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    follower = engine.follow(str(path))
    follower.poll()
    assert metrics(engine) == {"conv-1": {"tokens": 1}}
    clock.advance(minutes=2)
    follower.poll()
    follower.close()
    assert metrics(engine) == {"conv-1": {"tokens": 1, "tool_calls": 1, "tool_calls_succeeded": 1}}


def test_a_span_below_none_in_a_trace_of_several_sessions_belongs_to_none(engine: Engine) -> None:
    tool = span(2, parent=99, gen_ai__operation__name="execute_tool")
    chats = [
        span(
            n,
            gen_ai__operation__name="chat",
            gen_ai__conversation__id=f"c-{n}",
            gen_ai__usage__input_tokens=1,
        )
        for n in (3, 4)
    ]
    report = take(engine, traces(*chats, tool))
    assert report.waiting == 1
    assert metrics(engine) == {"c-3": {"tokens": 1}, "c-4": {"tokens": 1}}


def test_what_waits_for_its_session_for_a_week_is_given_up(engine: Engine, clock: ManualClock) -> None:
    def tool(number: int, trace: str) -> dict[str, Any]:
        return traces(span(number, trace, gen_ai__operation__name="execute_tool"))

    def named(number: int, trace: str) -> dict[str, Any]:
        return traces(span(number, trace, **CHAT, gen_ai__usage__input_tokens=1))

    take(engine, tool(1, "aa"), tool(2, "bb"))
    clock.advance(days=6)
    take(engine, named(3, "aa"))
    clock.advance(days=2)
    take(engine)
    take(engine, named(4, "bb"))
    assert metrics(engine) == {"conv-1": {"tokens": 2, "tool_calls": 1, "tool_calls_succeeded": 1}}


def test_a_session_starts_with_the_first_of_the_records_that_come_together(engine: Engine) -> None:
    spans = [span(n, **CHAT, gen_ai__usage__input_tokens=1) for n in (5, 2, 9)]
    take(engine, traces(*spans))
    assert starts(engine) == {"conv-1": "2025-05-23T11:33:22+00:00"}


def flagged(name: str = "feature_flag.evaluation", trace: str | None = None, **values: Any) -> dict[str, Any]:
    return event(name, trace=trace, **values)


def test_evaluations_of_flags_state_the_variant(engine: Engine, clock: ManualClock) -> None:
    engine.create_experiment("L1", "new memory", hypothesis="better")
    engine.create_experiment("L2", "new prompt", hypothesis="better")
    clock.advance(hours=1)
    at = int((clock.now() - timedelta(minutes=1)).timestamp()) * 1_000_000_000 - 1_748_000_000_000_000_000
    current: dict[str, Any] = {"feature_flag__key": "L2", "feature_flag__result__variant": "treatment"}
    older: dict[str, Any] = {"feature_flag__key": "L1", "feature_flag__variant": "control"}
    take(
        engine,
        # By conversation, by trace, by the context of our own provider, and by the context alone.
        logs(event("feature_flag.evaluation", at, **current, gen_ai__conversation__id="c-1")),
        logs(event("feature_flag.evaluation", at, TRACE, **older, feature_flag__context__id="user-1")),
        logs(
            event(
                "feature_flag.evaluation",
                at,
                "bb" * 16,
                **current,
                feature_flag__context__id="c-2",
                feature_flag__provider__name="prx-experiments",
            )
        ),
        logs(event("feature_flag.evaluation", at, **older, feature_flag__context__id="c-3")),
        # Other flags, other events, and evaluations that failed say nothing.
        logs(
            event("feature_flag.evaluation", at, **current | {"feature_flag__key": "dark-mode"}),
            event("feature_flag.evaluation", at, **current, error__type="general"),
            event("click", at, **current),
        ),
        traces(
            span(1, **CHAT, gen_ai__usage__input_tokens=1)
            | {"startTimeUnixNano": str(1_748_000_000_000_000_000 + at)}
        ),
    )
    assert variants(engine) == {
        ("c-1", "L2"): "treatment",
        ("conv-1", "L1"): "control",
        ("c-2", "L2"): "treatment",
        ("c-3", "L1"): "control",
    }


def test_a_variant_that_is_none_is_refused(engine: Engine) -> None:
    report = take(
        engine,
        logs(
            flagged(
                feature_flag__key="L2", feature_flag__result__variant="blue", gen_ai__conversation__id="c"
            )
        ),
    )
    (bad,) = report.rejected
    assert bad.problem.startswith("variant: found 'blue'")


def test_metrics_are_recognised_and_tell_nothing(engine: Engine) -> None:
    report = engine.import_lines([b'{"resourceMetrics": [{"scopeMetrics": []}]}'], format="auto")
    assert (report.format, report.recorded, report.refused) == ("otlp", 0, 0)


def test_ids_are_the_same_in_capitals(engine: Engine) -> None:
    upper = span(10, "AB" * 16, **CHAT, gen_ai__usage__input_tokens=4) | {"spanId": "00000000000000FA"}
    lower = upper | {"traceId": "ab" * 16, "spanId": "00000000000000fa"}
    take(engine, traces(upper), traces(lower))
    assert metrics(engine) == {"conv-1": {"tokens": 4}}
