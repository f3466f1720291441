"""Telemetry made up by the tests: a small file of each format, and what it has to come to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from prx_engine import Engine
from prx_engine.scoring.metrics import combine
from prx_engine.store import Store
from prx_engine.store.schema import Assignments, SessionReports, Sessions


class Sample(NamedTuple):
    """Lines of a format, and the raw metrics of each session that they tell of."""

    name: str
    lines: list[bytes]
    expected: dict[str, dict[str, Any]]

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.name}.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in self.lines))
        return path


def metrics(engine: Engine) -> dict[str, dict[str, Any]]:
    """The raw metrics of all sessions over all their sources, lists in order of size."""
    store = Store(engine.database)
    query = SessionReports.select().order_by(SessionReports.session_id, SessionReports.source)
    reports: dict[str, list[Any]] = {row["session_id"]: [] for row in store.rows(Sessions.select())}
    for row in store.rows(query):
        reports[row["session_id"]].append(json.loads(row["report"]))
    store.close()
    return {session: sorted_lists(combine(found)) for session, found in reports.items()}


def sorted_lists(report: Mapping[str, Any]) -> dict[str, Any]:
    return {name: sorted(value) if isinstance(value, list) else value for name, value in report.items()}


def starts(engine: Engine) -> dict[str, str]:
    store = Store(engine.database)
    rows = store.rows(Sessions.select(Sessions.session_id, Sessions.started_at))
    store.close()
    return {row["session_id"]: row["started_at"].isoformat() for row in rows}


def variants(engine: Engine) -> dict[tuple[str, str], str]:
    store = Store(engine.database)
    rows = store.rows(Assignments.select(Assignments.session_id, Assignments.layer, Assignments.variant))
    store.close()
    return {(row["session_id"], row["layer"]): row["variant"] for row in rows}


def dumped(records: Iterable[Mapping[str, Any]]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


def attributes(**values: Any) -> list[dict[str, Any]]:
    """Attributes in OTLP's JSON; ``__`` in a name is a dot."""
    return [{"key": key.replace("__", "."), "value": any_value(value)} for key, value in values.items()]


def any_value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [any_value(item) for item in value]}}
        case dict():
            pairs = [{"key": key, "value": any_value(item)} for key, item in value.items()]
            return {"kvlistValue": {"values": pairs}}
    return {"stringValue": value}


def span(number: int, trace: str = "0a" * 16, *, parent: int | None = None, **values: Any) -> dict[str, Any]:
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "parentSpanId": "" if parent is None else f"{parent:016x}",
        "name": "span",
        "startTimeUnixNano": str(1_748_000_000_000_000_000 + number * 1_000_000_000),
        "attributes": attributes(**values),
    }


def traces(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


def logs(*records: dict[str, Any]) -> dict[str, Any]:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": list(records)}]}]}


def event(name: str, at: int = 0, trace: str | None = None, **values: Any) -> dict[str, Any]:
    return {
        "eventName": name,
        "timeUnixNano": str(1_748_000_000_000_000_000 + at),
        **({} if trace is None else {"traceId": trace}),
        "attributes": attributes(**values),
    }


CHAT: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__conversation__id": "conv-1"}

OTLP = Sample(
    "otlp",
    dumped(
        [
            # The tool's span names no session; its trace does, in a later line.
            traces(span(2, parent=1, gen_ai__operation__name="execute_tool")),
            traces(
                span(
                    1,
                    **CHAT,
                    gen_ai__usage__input_tokens=100,
                    gen_ai__usage__output_tokens=20,
                    gen_ai__response__time_to_first_chunk=0.5,
                    gen_ai__response__id="resp-1",
                )
            ),
            traces(
                span(3, gen_ai__operation__name="execute_tool", error__type="timeout"),
                # An agent's span repeats the sum of its calls.
                span(4, gen_ai__operation__name="invoke_agent", gen_ai__conversation__id="conv-1",
                     gen_ai__usage__input_tokens=100, gen_ai__usage__output_tokens=20),
            ),
            logs(
                event(
                    "gen_ai.evaluation.result",
                    gen_ai__evaluation__name="Relevance",
                    gen_ai__evaluation__score__value=0.75,
                    gen_ai__response__id="resp-1",
                )
            ),
        ]
    ),
    {
        "conv-1": {
            "tokens": 120,
            "first_token_ms": [500.0],
            "tool_calls": 2,
            "tool_calls_succeeded": 1,
            "relevance": [0.75],
        }
    },
)  # fmt: skip


def codex_event(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-06-01T08:00:10.000Z", "type": kind, "payload": payload}


def token_count(total: int, last: int) -> dict[str, Any]:
    return codex_event(
        "event_msg",
        type="token_count",
        info={
            "total_token_usage": {"input_tokens": total, "cached_input_tokens": total, "total_tokens": total},
            "last_token_usage": {"input_tokens": last, "cached_input_tokens": last, "total_tokens": last},
        },
    )


def codex_output(call: str, output: Any) -> dict[str, Any]:
    return codex_event("response_item", type="function_call_output", call_id=call, output=output)


CODEX = Sample(
    "codex",
    dumped(
        [
            {
                "timestamp": "2026-06-01T08:00:00.000Z",
                "type": "session_meta",
                "payload": {"id": "codex-1", "timestamp": "2026-06-01T07:59:59.000Z"},
            },
            codex_event("event_msg", type="user_message", message="hello"),
            token_count(1000, 1000),
            token_count(1000, 1000),  # the same total again, with other rate limits
            codex_output("call-1", "Exit code: 0\nWall time: 1 s\nOutput:\nok"),
            codex_output("call-2", '{"output":"no","metadata":{"exit_code":2,"duration_seconds":0.1}}'),
            codex_output("call-3", "Plan updated"),
            codex_output("call-4", "exec command rejected by user"),
            token_count(1700, 700),
            codex_event("event_msg", type="task_complete", turn_id="turn-1", time_to_first_token_ms=640),
        ]
    ),
    {
        "codex-1": {
            "tokens": 1700,
            "first_token_ms": [640.0],
            "tool_calls": 3,
            "tool_calls_succeeded": 2,
            "thumbs_down": 1,
        }
    },
)


def claude_line(kind: str, uuid: str, message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "timestamp": "2026-06-01T08:00:00.000Z",
        "sessionId": "claude-1",
        "uuid": uuid,
        "message": message,
        **fields,
    }


def answer(uuid: str, message: str, output: int, **fields: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 200,
        "output_tokens": output,
    }
    content = {"id": message, "role": "assistant", "model": "m", "content": [], "usage": usage}
    return claude_line("assistant", uuid, content, requestId=f"req-{message}", **fields)


def result(uuid: str, call: str, text: str, *, error: bool = False) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": error}
    return claude_line("user", uuid, {"role": "user", "content": [block]})


REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file"
    " edit, the new_string was NOT written to the file)."
)

CLAUDE_CODE = Sample(
    "claude-code",
    dumped(
        [
            {"type": "summary", "summary": "About tests", "leafUuid": "u-9"},
            claude_line("user", "u-1", {"role": "user", "content": "hello"}),
            answer("u-2", "msg-1", 1),
            answer("u-3", "msg-1", 40),  # the same message, streamed further: 5 + 30 + 200 + 40 = 275
            result("u-4", "tool-1", "done"),
            result("u-5", "tool-2", "exit 1", error=True),
            result("u-6", "tool-3", REJECTED, error=True),
            answer("u-7", "msg-2", 10),  # 5 + 30 + 200 + 10 = 245
        ]
    ),
    {"claude-1": {"tokens": 520, "tool_calls": 2, "tool_calls_succeeded": 1, "thumbs_down": 1}},
)


def trace(
    identifier: str, session: str | None, observations: list[Any], scores: Iterable[Any] = ()
) -> dict[str, Any]:
    return {
        "id": identifier,
        "timestamp": "2026-06-01T08:00:00.000Z",
        "name": "turn",
        "sessionId": session,
        "observations": observations,
        "scores": list(scores),
    }


def observation(identifier: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": identifier,
        "type": kind,
        "startTime": "2026-06-01T08:00:01.000Z",
        "level": "DEFAULT",
        **fields,
    }


def langfuse_score(identifier: str, name: str, value: float, **fields: Any) -> dict[str, Any]:
    return {
        "id": identifier,
        "name": name,
        "value": value,
        "source": "EVAL",
        "dataType": "NUMERIC",
        **fields,
    }


LANGFUSE = Sample(
    "langfuse",
    dumped(
        [
            trace(
                "trace-1",
                "langfuse-1",
                [
                    observation("o-1", "AGENT", usageDetails={"total": 999}),
                    observation(
                        "o-2",
                        "GENERATION",
                        usageDetails={"input": "70", "output": "30", "total": 100},
                        timeToFirstToken=0.8,
                    ),
                    observation("o-3", "TOOL"),
                    observation("o-4", "TOOL", level="ERROR"),
                ],
                [
                    langfuse_score("s-1", "relevance", 0.5),
                    langfuse_score("s-2", "user-feedback", 1, source="API", dataType="BOOLEAN"),
                    langfuse_score("s-3", "toxicity", 17),
                ],
            ),
            trace(
                "trace-2", "langfuse-1", [observation("o-5", "GENERATION", usage={"input": 7, "output": 3})]
            ),
            trace("trace-3", None, [observation("o-6", "GENERATION", totalUsage=5)]),
        ]
    ),
    {
        "langfuse-1": {
            "tokens": 110,
            "first_token_ms": [800.0],
            "tool_calls": 2,
            "tool_calls_succeeded": 1,
            "relevance": [0.5],
            "thumbs_up": 1,
        },
        "trace-3": {"tokens": 5},
    },
)


def decision(session: str, at: str, **fields: Any) -> dict[str, Any]:
    return {
        "timestamp": f"2026-02-24T{at}+00:00",
        "experiment_id": "",
        "trace_id": session,
        "decision_type": "runtime_policy",
        "task_type": "planning",
        "outcome": "success",
        "tokens_used": 10,
        "latency_ms": 8,
        "user_correction": None,
        **fields,
    }


def memory_access(session: str, memory: str, useful: bool | None) -> dict[str, Any]:
    return {
        "timestamp": "2026-02-24T00:00:00+00:00",
        "trace_id": session,
        "action": "search",
        "memory_id": memory,
        "was_useful": useful,
        "tokens_consumed": 16,
    }


PRX = Sample(
    "prx",
    dumped(
        [
            decision("prx-1", "00:00:00"),
            decision("prx-1", "00:00:01", outcome="partial", user_correction="rather so"),
            decision("prx-1", "00:00:02", decision_type="tool_selection", outcome="failure", tokens_used=0),
            memory_access("prx-1", "m-1", True),
            memory_access("prx-1", "m-2", False),
            memory_access("prx-1", "m-3", None),
            {"timestamp": "2026-02-24T00:00:00Z", "action_taken": "noop"},
            {
                "id": "turn-1",
                "settlement_id": "turn-1",
                "usage": {"total_tokens": 1200, "timestamp": "2026-02-24T00:00:01Z"},
                "session_id": "chat-1",
            },
        ]
    ),
    {
        "prx-1": {
            "tasks": 2,
            "tasks_succeeded": 1,
            "tool_calls": 1,
            "tool_calls_succeeded": 0,
            "tokens": 20,
            "corrections": 1,
            "recall_relevance": [0.0, 1.0],
        },
        "chat-1": {"tokens": 1200},
    },
)

NATIVE = Sample(
    "native",
    dumped(
        [
            {"session_id": "s-1", "started_at": "2026-05-31T08:00:00Z", "tokens": 10, "relevance": 0.5},
            {"session_id": "s-1", "thumbs_up": 1},
            {"session_id": "s-1", "tokens": 7, "source": "billing"},
        ]
    ),
    {"s-1": {"tokens": 17, "relevance": [0.5], "thumbs_up": 1}},
)

SAMPLES = [OTLP, CODEX, CLAUDE_CODE, LANGFUSE, PRX, NATIVE]
