"""Claude Code transcripts: messages of sessions, one a line.

- Tokens: the usage of a message is repeated on each of its streamed lines; the last one for a message id and
  request id counts. Input that was read from or written to the cache is not inside ``input_tokens``.
- Tools: results of calls, successful unless ``is_error``. A call that the user rejected never ran: it is
  dissatisfaction, not a failure of the tool.
- Time to first token is not in a transcript. The time from a prompt to the first line of its answer stands in
  for it if the configuration asks for that (``transcript_latency``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from prx_engine.clock import format_time, parse_time
from prx_engine.configuration import TelemetrySettings
from prx_engine.telemetry import values
from prx_engine.telemetry.formats import FormatName, Found, Piece, State
from prx_engine.telemetry.values import Record, fingerprint

_WITH_SESSION: Final = frozenset({"user", "assistant", "system", "attachment", "progress", "queue-operation"})
_WITHOUT_SESSION: Final = frozenset({"summary", "file-history-snapshot", "last-prompt", "custom-title"})
_USAGE: Final = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
)
_REJECTED: Final = ("The user doesn't want to proceed with this tool use.", "User rejected tool use")
_NO_MODEL: Final = "<synthetic>"
"""Stands as the model of messages that the program made up itself, such as errors."""


class ClaudeCode:
    """Transcripts of Claude Code."""

    name: FormatName = "claude-code"

    def recognises(self, record: object) -> bool:
        """Tell whether a value is a line of a transcript."""
        if not isinstance(record, dict):
            return False
        kind = record.get("type")
        if not isinstance(kind, str):
            return False
        return kind in _WITHOUT_SESSION or (kind in _WITH_SESSION and "sessionId" in record)

    def reader(self, settings: TelemetrySettings, state: State) -> ClaudeCodeReader:
        """Return a reader."""
        return ClaudeCodeReader(settings, state)


class ClaudeCodeReader:
    """Reads one transcript; remembers when its session started, and the prompt that waits for its answer."""

    def __init__(self, settings: TelemetrySettings, state: State) -> None:
        self._latency = settings.transcript_latency
        self._session: str | None = state.get("session")
        self._start: str | None = state.get("start")
        self._prompt: list[str] | None = state.get("prompt")

    def state(self) -> State:
        """Return the session with its start, and the prompt that waits for its answer."""
        return {"session": self._session, "start": self._start, "prompt": self._prompt}

    def read(self, line: bytes) -> Iterable[Found]:
        """Return what a line tells about its session."""
        record = values.record(values.parse(line), "line")
        session = values.text(record.get("sessionId"), "sessionId")
        # A branched session begins with copies of what its origin has reported already.
        if session is None or record.get("forkedFrom"):
            return ()
        start = self._started(session, record)
        if record.get("type") not in ("user", "assistant"):
            return ()
        message = values.record(record.get("message"), "message")
        found = self._user if record["type"] == "user" else self._assistant
        return [Piece(source, fields, session, at=start) for source, fields in found(record, message)]

    def _started(self, session: str, record: Record) -> datetime | None:
        """Return the time of the first line of the session."""
        at = values.time(record.get("timestamp"), "timestamp")
        if session != self._session:
            self._session, self._start = session, None
        if self._start is None and at is not None:
            self._start = format_time(at)
        return parse_time(self._start) if self._start else None

    def _user(self, record: Record, message: Record) -> Iterator[tuple[str, dict[str, Any]]]:
        content = message.get("content")
        results = [
            block
            for block in (content if isinstance(content, list) else ())
            if isinstance(block, dict) and block.get("type") == "tool_result"
        ]
        for block in results:
            yield _result(block, record.get("toolUseResult"))
        if not results and not record.get("isMeta") and not record.get("isSidechain"):
            self._prompted(record)

    def _assistant(self, record: Record, message: Record) -> Iterator[tuple[str, dict[str, Any]]]:
        if message.get("model") == _NO_MODEL:
            return
        yield from self._answered(record)
        usage = values.record(message.get("usage"), "message.usage")
        counts = [values.count(usage.get(name), f"usage.{name}") for name in _USAGE]
        if any(tokens is not None for tokens in counts):
            yield _message(record, message), {"tokens": sum(tokens or 0 for tokens in counts)}

    def _prompted(self, record: Record) -> None:
        at = values.time(record.get("timestamp"), "timestamp")
        if self._latency and at is not None:
            self._prompt = [fingerprint(record.get("uuid"), record["timestamp"]), format_time(at)]

    def _answered(self, record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
        at = values.time(record.get("timestamp"), "timestamp")
        if self._prompt is None or at is None or record.get("isSidechain"):
            return
        (prompt, asked), self._prompt = self._prompt, None
        waited = (at - parse_time(asked)).total_seconds() * 1000
        if waited >= 0:
            yield f"claude-code:prompt:{prompt}", {"first_token_ms": [waited]}


def _message(record: Record, message: Record) -> str:
    identity = (message.get("id"), record.get("requestId"))
    return f"claude-code:message:{fingerprint(*(identity if any(identity) else (record.get('uuid'),)))}"


def _result(block: Record, summary: object) -> tuple[str, dict[str, Any]]:
    call = fingerprint(block.get("tool_use_id"))
    failed = bool(block.get("is_error"))
    said = summary if isinstance(summary, str) else ""
    if failed and (_text_of(block.get("content")).startswith(_REJECTED) or said.startswith(_REJECTED)):
        return f"claude-code:rejected:{call}", {"thumbs_down": 1}
    return f"claude-code:tool:{call}", {"tool_calls": 1, "tool_calls_succeeded": int(not failed)}


def _text_of(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
    return content if isinstance(content, str) else ""
