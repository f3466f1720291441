"""Langfuse exports: traces with their observations and scores, as documents, lists or lines.

The session is the trace's ``sessionId``; a trace without one is a session of its own.

- Tokens and time to first token (seconds in the export): observations of type ``GENERATION``.
- Tools: observations of type ``TOOL``; level ``ERROR`` is a failure.
- Scores, by name: those of people (``ANNOTATION``, and ``API``, where applications send their users'
  feedback) may be thumbs; a judge (``EVAL``) is no user, so that what it says of satisfaction stays a score.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from prx_engine.configuration import TelemetrySettings
from prx_engine.errors import InvalidInput
from prx_engine.telemetry import values
from prx_engine.telemetry.formats import (
    FormatName,
    Found,
    JsonReader,
    Piece,
    Reader,
    State,
    evaluation,
    guarded,
)
from prx_engine.telemetry.values import Record, fingerprint
from prx_engine.text import shown

_THUMBS: Final = {"thumbs_up": 1.0, "thumbs_down": 0.0}


class Langfuse:
    """Exports of Langfuse."""

    name: FormatName = "langfuse"

    def recognises(self, record: object) -> bool:
        """Tell whether a value is a trace, or a document or a page of traces."""
        if not isinstance(record, dict):
            return False
        if isinstance(record.get("trace"), dict):
            return _is_trace(record["trace"])
        listed = record.get("data")
        if isinstance(listed, list) and listed and isinstance(listed[0], dict):
            return _is_trace(listed[0])
        return _is_trace(record)

    def reader(self, settings: TelemetrySettings, state: State) -> Reader:
        """Return a reader."""
        return LangfuseReader(settings, state)


class LangfuseReader(JsonReader):
    """Reads traces, each with everything that belongs to it."""

    def pieces(self, record: Record) -> Iterable[Found]:
        """Return what a trace, or a page of traces, tells about sessions."""
        if isinstance(record.get("data"), list):
            for trace in record["data"]:
                yield from guarded(self._trace(values.record(trace, "data"), ()))
        elif isinstance(record.get("trace"), dict):
            yield from self._trace(record["trace"], values.items(record.get("observations"), "observations"))
        else:
            yield from self._trace(record, ())

    def _trace(self, trace: Record, beside: Iterable[Any]) -> Iterator[Found]:
        session = values.text(trace.get("sessionId"), "sessionId") or values.text(trace.get("id"), "id")
        if session is None:
            raise InvalidInput("id: missing; a trace without sessionId and id belongs to no session")
        start = values.time(trace.get("timestamp"), "timestamp")
        # The same observation may stand inside the trace and, in full, beside it.
        listed = (*values.items(trace.get("observations"), "observations"), *beside)
        observations = {fingerprint(entry.get("id")): entry for entry in _whole(listed, "observation")}
        for observation in observations.values():
            yield from guarded(_observed(observation, session, start))
        for score in _whole(values.items(trace.get("scores"), "scores"), "score"):
            yield from guarded(self._scored(score, session, start))

    def _scored(self, score: Record, session: str, start: datetime | None) -> Iterator[Found]:
        fields = self._score(score)
        if fields:
            yield Piece(f"langfuse:score:{fingerprint(score.get('id'))}", fields, session, at=start)

    def _score(self, score: Record) -> dict[str, Any]:
        name = values.text(score.get("name"), "score name") or ""
        if score.get("dataType") == "CATEGORICAL":
            return {}
        fields = evaluation(self._settings, name, score.get("value"), f"value of {shown(name)}")
        if score.get("source") == "EVAL":
            for thumb in _THUMBS.keys() & fields.keys():
                return {"scores": {"user_satisfaction": _THUMBS[thumb]}}
        return fields


def _is_trace(record: Record) -> bool:
    return (
        "id" in record
        and "timestamp" in record
        and not record.keys().isdisjoint(("sessionId", "observations"))
    )


def _whole(entries: Iterable[Any], name: str) -> list[Record]:
    """Return the entries that are there; a list of traces names them only."""
    return [values.record(entry, name) for entry in entries if not isinstance(entry, str)]


def _observed(observation: Record, session: str, start: datetime | None) -> Iterator[Found]:
    fields = _observation(observation)
    if fields:
        at = values.time(observation.get("startTime"), "startTime")
        source = f"langfuse:observation:{fingerprint(observation.get('id'))}"
        yield Piece(source, fields, session, at=min(filter(None, (start, at)), default=None))


def _observation(observation: Record) -> dict[str, Any]:
    kind = observation.get("type")
    if kind == "TOOL":
        return {"tool_calls": 1, "tool_calls_succeeded": int(observation.get("level") != "ERROR")}
    if kind != "GENERATION":
        return {}
    fields: dict[str, Any] = {}
    tokens = _tokens(observation)
    if tokens is not None:
        fields["tokens"] = tokens
    seconds = values.number(observation.get("timeToFirstToken"), "timeToFirstToken")
    if seconds is not None:
        fields["first_token_ms"] = [seconds * 1000]
    return fields


def _tokens(generation: Record) -> int | None:
    """Return the tokens of a generation, from the newest of the forms in which exports have them."""
    for name in ("usageDetails", "usage"):
        usage = values.record(generation.get(name), name)
        total = values.count(usage.get("total"), f"{name}.total")
        if total is not None:
            return total
        counts = [values.count(usage.get(part), f"{name}.{part}") for part in ("input", "output")]
        if any(tokens is not None for tokens in counts):
            return sum(tokens or 0 for tokens in counts)
    return values.count(generation.get("totalUsage"), "totalUsage") or None
