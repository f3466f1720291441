"""Codex rollouts: one file a session, one event a line.

- Tokens: ``token_count`` events. ``total_token_usage`` grows over the session and is what identifies an
  event: the same total told again (with new rate limits, or in a copy of the session) is the same event.
  Its ``last_token_usage`` is what counts; cached tokens are inside the input, reasoning inside the output.
- Time to first token: ``task_complete``, one a turn.
- Tools: the outputs of calls. An exit code or an explicit success decides; an output that tells neither
  came from a tool that answered. A call that the user refused is dissatisfaction, no failure of the tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from prx_engine.configuration import TelemetrySettings
from prx_engine.errors import InvalidInput
from prx_engine.telemetry import values
from prx_engine.telemetry.formats import FormatName, Found, Piece, State
from prx_engine.telemetry.values import Record, fingerprint

_TYPES: Final = ("session_meta", "turn_context", "event_msg", "response_item", "compacted")
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")
_EXIT_CODE: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_REFUSED: Final = ("exec command rejected by user", "patch rejected by user")
_OPENING: Final = 2000
"""Characters of an output among which its exit code stands, before what the command printed."""


class Codex:
    """Rollouts of the Codex command line."""

    name: FormatName = "codex"

    def recognises(self, record: object) -> bool:
        """Tell whether a value is a line of a rollout."""
        return (
            isinstance(record, dict)
            and record.get("type") in _TYPES
            and isinstance(record.get("payload"), dict)
        )

    def reader(self, settings: TelemetrySettings, state: State) -> CodexReader:
        """Return a reader."""
        return CodexReader(state)


class CodexReader:
    """Reads one rollout; remembers the session, which only the first line names, and calls that failed."""

    def __init__(self, state: State) -> None:
        self._session: str | None = state.get("session")
        self._start: str | None = state.get("start")
        self._failed: set[str] = set(state.get("failed", ()))

    def state(self) -> State:
        """Return the session and the calls that have failed and whose output is still to come."""
        return {"session": self._session, "start": self._start, "failed": sorted(self._failed)}

    def read(self, line: bytes) -> Iterable[Found]:
        """Return what a line tells about the session."""
        record = values.record(values.parse(line), "line")
        kind, payload = record.get("type"), values.record(record.get("payload"), "payload")
        if kind == "session_meta":
            self._begin(record, payload)
            return ()
        found = list(self._found(kind, payload))
        if not found:
            return ()
        if self._session is None:
            raise InvalidInput("no session_meta before this line: it belongs to no session")
        at = values.time(self._start or record.get("timestamp"), "timestamp")
        return [Piece(source, fields, self._session, at=at) for source, fields in found]

    def _begin(self, record: Record, payload: Record) -> None:
        # A session made from another one repeats that one's first line after its own.
        if self._session is None:
            self._session = values.text(payload.get("id"), "payload.id")
            start = payload.get("timestamp") or record.get("timestamp")
            self._start = None if values.time(start, "timestamp") is None else start

    def _found(self, kind: object, payload: Record) -> Iterator[tuple[str, dict[str, Any]]]:
        event = payload.get("type")
        if kind == "response_item":
            if event in _OUTPUTS:
                yield from self._output(payload)
        elif kind != "event_msg":
            return
        elif event == "token_count":
            yield from _tokens(payload)
        elif event in ("task_complete", "turn_complete"):
            yield from _first_token(payload)
        elif event in ("exec_command_end", "mcp_tool_call_end", "patch_apply_end"):
            yield from self._ended(payload)

    def _output(self, payload: Record) -> Iterator[tuple[str, dict[str, Any]]]:
        call = values.text(payload.get("call_id"), "payload.call_id")
        if call is None:
            return
        output = payload.get("output")
        said = _text_of(output)
        if said.strip() in _REFUSED:
            yield f"codex:refused:{fingerprint(call)}", {"thumbs_down": 1}
            return
        succeeded = _success(output, said)
        if succeeded is None:
            succeeded = call not in self._failed
        self._failed.discard(call)
        yield _called(call, succeeded)

    def _ended(self, payload: Record) -> Iterator[tuple[str, dict[str, Any]]]:
        call = values.text(payload.get("call_id"), "payload.call_id")
        succeeded = _explicit(payload)
        if call is None or succeeded is None or payload.get("status") == "declined":
            return
        if not succeeded:
            self._failed.add(call)
        yield _called(call, succeeded)


def _called(call: str, succeeded: bool) -> tuple[str, dict[str, Any]]:
    return f"codex:call:{fingerprint(call)}", {"tool_calls": 1, "tool_calls_succeeded": int(succeeded)}


def _tokens(payload: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    info = values.record(payload.get("info"), "payload.info")
    total = values.record(info.get("total_token_usage"), "total_token_usage")
    last = values.record(info.get("last_token_usage"), "last_token_usage")
    tokens = values.count(last.get("total_tokens"), "last_token_usage.total_tokens")
    if tokens:
        yield f"codex:tokens:{fingerprint(total or last)}", {"tokens": tokens}


def _first_token(payload: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    first = values.number(payload.get("time_to_first_token_ms"), "time_to_first_token_ms")
    turn = payload.get("turn_id")
    if first is not None:
        yield f"codex:turn:{fingerprint(turn)}", {"first_token_ms": [first]}


def _explicit(payload: Record) -> bool | None:
    """Return whether an event says that a call succeeded; None if it does not say."""
    if payload.get("exit_code") is not None:
        return bool(payload["exit_code"] == 0)
    if isinstance(payload.get("success"), bool):
        return bool(payload["success"])
    result = payload.get("result")
    if isinstance(result, dict):
        return "Ok" in result and not values.record(result["Ok"], "result.Ok").get("is_error")
    return None


def _success(output: object, said: str) -> bool | None:
    """Return whether an output says that its call succeeded; None if it does not say."""
    if isinstance(output, dict) and isinstance(output.get("success"), bool):
        return bool(output["success"])
    code = _EXIT_CODE.search(said[:_OPENING])
    if code is not None:
        return int(code[1]) == 0
    if said.startswith('{"output":'):
        try:
            metadata = json.loads(said).get("metadata")
        except ValueError:
            return None
        return _explicit(metadata) if isinstance(metadata, dict) else None
    return None


def _text_of(output: object) -> str:
    if isinstance(output, dict):
        output = output.get("content")
    if isinstance(output, list):
        return "\n".join(str(part["text"]) for part in output if isinstance(part, dict) and "text" in part)
    return output if isinstance(output, str) else ""
