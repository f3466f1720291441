"""PRX's own records: decision and memory logs, costs, and saved chat sessions.

- ``self/evolution/{decisions,memory_access}/{hot,warm,cold}/DATE.jsonl``: the session is the ``trace_id``.
  Files move between the tiers while they are read, so a line is identified by its content. A decision is a
  task, one of a tool a tool call; a correction by the user is one; a memory is relevant if it was useful.
  ``latency_ms`` is the time of the whole decision and says nothing of the first token.
- ``state/costs.jsonl``: tokens of sessions, one settlement a line.
- ``memory/brain.db``: its saved chat sessions, read as lines of ``{"chat_session": …}``.

Records that name no session, those of the evolution itself, and rollback documents tell nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from prx_engine.configuration import TelemetrySettings
from prx_engine.errors import InvalidInput
from prx_engine.telemetry import values
from prx_engine.telemetry.formats import FormatName, Found, JsonReader, Piece, Reader, State
from prx_engine.telemetry.values import Record, fingerprint
from prx_engine.text import shown

_LOGGED: Final = frozenset({"action_taken", "decision_type", "memory_id", "was_useful", "change_type"})
_CHAT_SESSIONS: Final = (
    "SELECT content FROM memories WHERE key GLOB 'chat_session:*' ORDER BY created_at, key"
)


class Prx:
    """Records of PRX."""

    name: FormatName = "prx"

    def recognises(self, record: object) -> bool:
        """Tell whether a value is a line of a log or of the costs, a rollback document, or a chat session."""
        if not isinstance(record, dict):
            return False
        keys = record.keys()
        return (
            ("timestamp" in keys and not keys.isdisjoint(_LOGGED))
            or ("usage" in keys and "session_id" in keys)
            or {"version_id", "created_at", "content"} <= keys
            or "chat_session" in keys
        )

    def reader(self, settings: TelemetrySettings, state: State) -> Reader:
        """Return a reader."""
        return PrxReader(settings, state)


class PrxReader(JsonReader):
    """Reads records, each complete in itself."""

    def pieces(self, record: Record) -> Iterable[Found]:
        """Return what a record tells about its session."""
        if "chat_session" in record:
            yield _chat(values.record(record["chat_session"], "chat_session"))
        elif "usage" in record:
            yield from _cost(record)
        else:
            session = values.text(record.get("trace_id"), "trace_id")
            fields = _memory(record) if "memory_id" in record else _decision(record)
            if session is not None and fields:
                at = values.time(record.get("timestamp"), "timestamp")
                yield Piece(f"prx:{fingerprint(record)}", fields, session, at=at)


def chat_sessions(database: Path) -> Iterator[bytes]:
    """Return the chat sessions of PRX's memory, a line each; the file is opened read-only.

    Raises:
        InvalidInput: if the database cannot be read.
    """
    uri = f"file:{quote(str(database.resolve()))}?mode=ro"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=5)
        try:
            for (content,) in connection.execute(_CHAT_SESSIONS):
                line = str(content).replace("\n", " ")
                yield b'{"chat_session":' + line.encode("utf-8", "surrogatepass") + b"}"
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise InvalidInput(f"cannot be read as a memory of PRX: {shown(str(error))}") from None


def _decision(record: Record) -> dict[str, Any]:
    outcome = record.get("outcome")
    fields: dict[str, Any] = {}
    if outcome in ("success", "failure", "partial", "rolled_back"):
        succeeded = int(outcome == "success")
        if record.get("decision_type") == "tool_selection" or record.get("task_type") == "tool_call":
            fields = {"tool_calls": 1, "tool_calls_succeeded": succeeded}
        else:
            fields = {"tasks": 1, "tasks_succeeded": succeeded}
    tokens = values.count(record.get("tokens_used"), "tokens_used")
    if tokens:
        fields["tokens"] = tokens
    if values.text(record.get("user_correction"), "user_correction"):
        fields["corrections"] = 1
    return fields


def _memory(record: Record) -> dict[str, Any]:
    useful = record.get("was_useful")
    if useful is None:
        return {}
    if not isinstance(useful, bool):
        raise InvalidInput(f"was_useful: found {shown(useful)}; allowed: true, false or null")
    return {"recall_relevance": [float(useful)]}


def _cost(record: Record) -> Iterator[Found]:
    session = values.text(record.get("session_id"), "session_id")
    usage = values.record(record.get("usage"), "usage")
    tokens = values.count(usage.get("total_tokens"), "usage.total_tokens")
    if session is not None and tokens is not None:
        identity = record.get("settlement_id") or record.get("id")
        at = values.time(usage.get("timestamp"), "usage.timestamp")
        yield Piece(f"prx:cost:{fingerprint(identity or record)}", {"tokens": tokens}, session, at=at)


def _chat(chat: Record) -> Piece:
    session = values.text(chat.get("id"), "id")
    if session is None:
        raise InvalidInput("id: missing; the chat session has no name")
    calls = [
        values.record(call, "tool call")
        for turn in values.items(chat.get("turns"), "turns")
        for call in values.items(values.record(turn, "turn").get("tool_calls"), "tool_calls")
    ]
    usage = [
        values.count(values.record(entry, "token usage").get("total_tokens"), "total_tokens")
        for entry in values.items(chat.get("token_usage_records"), "token_usage_records")
    ]
    fields: dict[str, Any] = {}
    if calls:
        succeeded = sum(call.get("success") is True for call in calls)
        fields = {"tool_calls": len(calls), "tool_calls_succeeded": succeeded}
    if usage:
        fields["tokens"] = sum(tokens or 0 for tokens in usage)
    return Piece("prx:chat", fields, session, at=values.time(chat.get("created_at"), "created_at"))
