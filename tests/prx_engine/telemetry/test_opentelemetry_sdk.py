"""The OpenTelemetry SDK itself writes the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode

from prx_engine import Engine
from prx_engine.clock import SystemClock
from tests.support.engines import OpenEngine
from tests.support.telemetry import metrics


@pytest.fixture
def now(open_engine: OpenEngine) -> Engine:
    """An engine in the present, which is when the SDK says that its spans are."""
    return open_engine(clock=SystemClock())


def run_agent(path: Path, conversations: int) -> None:
    """An agent with one trace a turn: an agent's span around two model calls and three tools."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(FileSpanExporter(path), max_export_batch_size=5))
    tracer = provider.get_tracer("agent")
    for conversation in range(conversations):
        for _ in range(2):
            with tracer.start_as_current_span("invoke_agent") as agent:
                agent.set_attribute("gen_ai.operation.name", "invoke_agent")
                agent.set_attribute("gen_ai.conversation.id", f"sdk-{conversation}")
                agent.set_attribute("gen_ai.usage.input_tokens", 200)
                for number in range(2):
                    with tracer.start_as_current_span("chat model") as chat:
                        chat.set_attribute("gen_ai.operation.name", "chat")
                        chat.set_attribute("gen_ai.usage.input_tokens", 100)
                        chat.set_attribute("gen_ai.usage.output_tokens", conversation)
                        chat.set_attribute("gen_ai.response.time_to_first_chunk", 0.25 * (number + 1))
                        chat.add_event(
                            "gen_ai.evaluation.result",
                            {"gen_ai.evaluation.name": "relevance", "gen_ai.evaluation.score.value": 0.5},
                        )
                for number in range(3):
                    with tracer.start_as_current_span("execute_tool search") as tool:
                        tool.set_attribute("gen_ai.operation.name", "execute_tool")
                        if number == 2:
                            tool.set_status(Status(StatusCode.ERROR, "not found"))
    provider.shutdown()


def expected(conversation: int) -> dict[str, object]:
    return {
        "tokens": 4 * (100 + conversation),
        "first_token_ms": [250.0, 250.0, 500.0, 500.0],
        "relevance": [0.5] * 4,
        "tool_calls": 6,
        "tool_calls_succeeded": 4,
    }


def test_spans_of_the_sdk_arrive_as_sessions(now: Engine, tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    run_agent(path, 3)
    report = now.import_file(path)
    assert (report.format, report.sessions, report.refused) == ("otlp", 3, 0)
    assert metrics(now) == {f"sdk-{c}": expected(c) for c in range(3)}


def test_spans_of_the_sdk_arrive_while_it_writes(now: Engine, tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    follower = now.follow(str(path))
    for conversations in (1, 2, 3):  # each agent appends to what the one before has written
        run_agent(path, conversations)
        follower.poll()
    follower.close()
    # Every run makes new traces: sdk-0 ran three times, sdk-2 once.
    found = metrics(now)
    assert [found[f"sdk-{c}"]["tokens"] for c in range(3)] == [3 * 400, 2 * 404, 408]
    assert [found[f"sdk-{c}"]["tool_calls"] for c in range(3)] == [18, 12, 6]
