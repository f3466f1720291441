"""The sample files of PRX_SAMPLES: what each has to come to, worked out by hand from the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.dimensions import DIMENSIONS
from prx_engine.telemetry.places import has_telemetry, places
from tests.support.clock import ManualClock
from tests.support.telemetry import metrics, sorted_lists, starts

TRACE = "019520b0-5678-7000-8000-00000000000"
CHAT = "7b0c8e0e-0000-4000-8000-000000000000"

# file → format, raw metrics of each session, start of one
EXPECTED: list[tuple[str, str, dict[str, dict[str, Any]], str]] = [
    (
        # One chat span: 31 input and 19 output tokens. One execute_tool span, without error.type and without
        # status; it names no conversation, but its trace is that of the chat. 1748000000 s is the start.
        "otlp/otlp_genai_fixture_a.otlp.jsonl",
        "otlp",
        {"conv-7f3a": {"tokens": 50, "tool_calls": 1, "tool_calls_succeeded": 1}},
        "2025-05-23T11:33:20+00:00",
    ),
    (
        # The same with legacy message events on the span, which say nothing of a score.
        "otlp/otlp_genai_fixture_c.otlp.jsonl",
        "otlp",
        {"conv-7f3a": {"tokens": 50, "tool_calls": 1, "tool_calls_succeeded": 1}},
        "2025-05-23T11:33:20+00:00",
    ),
    # A server's span and a browser's event, pretty-printed documents: OTLP, but nothing of an agent.
    ("otlp/otlp_trace_example.json", "otlp", {}, ""),
    ("otlp/otlp_events_example.json", "otlp", {}, ""),
    (
        # One token_count, total = last = 22,549 (of 22,539 input tokens 20,864 were cached: they are inside).
        # task_complete has time_to_first_token_ms 5828. No tools. Start: session_meta's own timestamp.
        "codex/codex_rollout_real_session-01.jsonl",
        "codex",
        {"019e9625-802f-7e91-840a-cfe88d14117a": {"tokens": 22_549, "first_token_ms": [5828.0]}},
        "2026-06-05T04:58:20.593000+00:00",
    ),
    (
        # One answer: 6 input + 1,045 written to the cache + 3,057 read from it + 16 output = 4,124.
        "claude_code/claude-code_real_session-01.jsonl",
        "claude-code",
        {"06090cb1-3e64-433a-bc7e-a621c0f596d2": {"tokens": 4124}},
        "2026-06-05T04:56:32.693000+00:00",
    ),
    (
        # Five answers: 25+120, 45+85, 78+95, 25+35, 45+110 = 145+130+173+60+155 = 663 tokens.
        # Two tool results, both with is_error false. The summary line names no session.
        "claude_code/claude-code_representative_messages.jsonl",
        "claude-code",
        {"test_session": {"tokens": 663, "tool_calls": 2, "tool_calls_succeeded": 2}},
        "2025-06-14T10:00:00+00:00",
    ),
    (
        # Two generations, 114 and 70 tokens in total; they stand in the trace and once more beside it. One
        # tool, level DEFAULT. timeToFirstToken is null. Scores toxicity and hallucination mean nothing here.
        # sessionId is null: the trace is the session.
        "langfuse/langfuse_openai-agents.trace.json",
        "langfuse",
        {
            "fee618f96dc31e0ca38b2f7b26eb8b29": {
                "tokens": 184,
                "tool_calls": 1,
                "tool_calls_succeeded": 1,
            }
        },
        "2025-09-30T09:03:59.962000+00:00",
    ),
    (
        # First line: a failed decision of 32 tokens. Second: a tool that succeeded, 128 tokens, and the
        # user's correction. Third: an old record without trace_id belongs to no session.
        "prx/self/evolution/decisions/hot/2026-02-24.jsonl",
        "prx",
        {
            f"{TRACE}1": {"tasks": 1, "tasks_succeeded": 0, "tokens": 32},
            f"{TRACE}2": {"tool_calls": 1, "tool_calls_succeeded": 1, "tokens": 128, "corrections": 1},
        },
        "2026-02-24T00:00:00+00:00",
    ),
    (
        # One useful memory; the second line is an old record without trace_id.
        "prx/self/evolution/memory_access/hot/2026-02-24.jsonl",
        "prx",
        {f"{TRACE}1": {"recall_relevance": [1.0]}},
        "2026-02-24T00:00:00+00:00",
    ),
    # What the evolution did to the agent is not what a session did.
    ("prx/self/evolution/evolution/hot/2026-02-24.jsonl", "prx", {}, ""),
    ("prx/.evolution/rollback/strategy/019520b0-5678-7000-8000-000000000043.json", "prx", {}, ""),
    # One settlement: 1,000 + 200 = 1,200 tokens.
    ("prx/state/costs.jsonl", "prx", {CHAT: {"tokens": 1200}}, "2026-02-24T00:00:01+00:00"),
]


@pytest.fixture(autouse=True)
def later(clock: ManualClock) -> None:
    clock.set("2026-07-01T00:00:00Z")


@pytest.mark.parametrize(
    ("file", "format_", "expected", "start"), EXPECTED, ids=lambda value: str(value)[:40]
)
def test_a_sample_comes_to_what_its_records_say(
    file: str, format_: str, expected: dict[str, dict[str, Any]], start: str, samples: Path, engine: Engine
) -> None:
    report = engine.import_file(samples / file)
    assert (report.format, report.refused, report.waiting) == (format_, 0, 0)
    assert report.sessions == len(expected)
    assert metrics(engine) == {session: sorted_lists(found) for session, found in expected.items()}
    if expected:
        assert min(starts(engine).values()) == start
    assert not engine.verify().problems


def test_the_prompt_stands_in_for_the_first_token_only_if_asked_for(samples: Path, open_engine: Any) -> None:
    # Asked at 04:56:32.812, answered at 04:56:35.619: 2,807 ms.
    engine = open_engine(config="[self_evolution.telemetry]\ntranscript_latency = true\n")
    engine.import_file(samples / "claude_code/claude-code_real_session-01.jsonl")
    (found,) = metrics(engine).values()
    assert found == {"tokens": 4124, "first_token_ms": [2807.0]}


def test_judged_pairs_are_one_session_a_line(samples: Path, engine: Engine) -> None:
    # 805 prompts × 2 models, one line each, every one with one relevance score; the first ones of each model
    # are 0.0 and 0.00257.
    report = engine.import_file(samples / "sessions/alpaca_eval.sessions.jsonl")
    assert (report.format, report.lines, report.sessions, report.refused) == ("native", 1610, 1610, 0)
    assert report.without_experiment == 1610
    assert report.missing_dimensions == [name for name in DIMENSIONS if name != "response_relevance"]
    found = metrics(engine)
    assert found["alpaca-a-0000"] == {"relevance": [0.0]}
    assert found["alpaca-b-0000"] == {"relevance": [0.00257]}


def test_runs_of_tasks_are_one_session_a_line(samples: Path, engine: Engine) -> None:
    # 50 tasks × 4 trials; the first line: 8 calls of which 7 succeeded, and the one task not solved.
    report = engine.import_file(samples / "sessions/tau_bench_airline.sessions.jsonl")
    assert (report.format, report.lines, report.sessions, report.refused) == ("native", 200, 200, 0)
    assert metrics(engine)["airline-00-0"] == {
        "tool_calls": 8,
        "tool_calls_succeeded": 7,
        "tasks": 1,
        "tasks_succeeded": 0,
    }


def test_the_folder_of_samples_is_read_as_one(samples: Path, engine: Engine) -> None:
    found = [place.path for place in places(str(samples)) if has_telemetry(place.path)]
    for path in found:
        assert engine.import_file(path).refused == 0
    # README.md is no telemetry, .evolution is hidden; both fixtures of OTLP are one and the same session.
    assert len(found) == 14
    assert len(metrics(engine)) == 1 + 1 + 2 + 1 + 2 + 1 + 1610 + 200
    assert metrics(engine)[f"{TRACE}1"] == {
        "tasks": 1,
        "tasks_succeeded": 0,
        "tokens": 32,
        "recall_relevance": [1.0],
    }
