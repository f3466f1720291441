"""OTLP in JSON: traces, logs and metrics of the OpenTelemetry protocol, with the GenAI conventions.

The session is ``gen_ai.conversation.id`` (older: ``session.id``). A span without it belongs to the session of
its parent, an event to that of the span or response that it is about; where that stays unknown, to the one
session of the trace. Ids are hexadecimal, int64 may be texts, earlier names of attributes are read too.

- Tokens and time to first token: model calls (``chat`` and its kin). What agents and workflows around them
  report is the sum of these and is not counted again.
- Tools: ``execute_tool`` spans; one with ``error.type`` or status error has failed.
- Relevance: ``gen_ai.evaluation.result`` events, by name; one with ``error.type`` is no score.
- Memory: scores of documents that a retrieval found, of records that a memory search found.
- Variants: ``feature_flag.evaluation`` events whose flag is a layer.

Metrics are recognised and tell nothing: they are sums that name no session.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from prx_engine.configuration import TelemetrySettings
from prx_engine.dimensions import LAYERS
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

PROVIDER_NAME: Final = "prx-experiments"
"""Name of our own flag provider: its context id is a session id."""

_MODEL_CALLS: Final = ("chat", "text_completion", "generate_content", "completion")
_EVALUATIONS: Final = ("gen_ai.evaluation.result",)
_FLAGS: Final = ("feature_flag.evaluation", "feature_flag")
_SESSION: Final = ("gen_ai.conversation.id", "session.id")
_OPERATION: Final = ("gen_ai.operation.name", "llm.request.type")
_INPUT: Final = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens")
_OUTPUT: Final = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.usage.completion_tokens",
)
_FIRST_TOKEN: Final = ("gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token")
_RETRIEVED: Final = {"retrieval": "gen_ai.retrieval.documents", "search_memory": "gen_ai.memory.records"}
_VARIANT: Final = ("feature_flag.result.variant", "feature_flag.variant")
_PROVIDER: Final = ("feature_flag.provider.name", "feature_flag.provider_name", "feature_flag.system")
_STATUS_ERROR: Final = (2, "2", "STATUS_CODE_ERROR")
_PREFIXES: Final = ("gen_ai.", "feature_flag", "session.id", "error.type", "event.name", "llm.")

_Attributes = dict[str, Any]


class Otlp:
    """Files of the OpenTelemetry protocol."""

    name: FormatName = "otlp"

    def recognises(self, record: object) -> bool:
        """Tell whether a value is an export of traces, logs or metrics."""
        return isinstance(record, dict) and not record.keys().isdisjoint(
            ("resourceSpans", "resourceLogs", "resourceMetrics")
        )

    def reader(self, settings: TelemetrySettings, state: State) -> Reader:
        """Return a reader."""
        return OtlpReader(settings, state)


class OtlpReader(JsonReader):
    """Reads exports, one a line; what belongs together across lines is found by keys."""

    def pieces(self, record: Record) -> Iterable[Found]:
        """Return what an export tells about sessions."""
        for resource, span in _entries(record, "resourceSpans", "scopeSpans", "spans"):
            yield from guarded(self._span(resource, span))
        for resource, log in _entries(record, "resourceLogs", "scopeLogs", "logRecords"):
            yield from guarded(self._log(resource, log))

    def _span(self, resource: _Attributes, span: Record) -> Iterator[Found]:
        attributes = _attributes(span.get("attributes"))
        whose = _Whose(resource, attributes, span.get("traceId"), span.get("spanId"))
        at = values.unix_time(span.get("startTimeUnixNano"), "startTimeUnixNano")
        identity = (whose.trace, whose.span) if whose.span else (span,)
        fields = _span_fields(attributes, span)
        # An agent's span counts nothing, but what is below it belongs to its session.
        if fields or attributes.keys() & {*_SESSION, *_OPERATION}:
            source = f"otlp:span:{fingerprint(*identity)}"
            yield whose.of_span(span.get("parentSpanId")).piece(source, fields, at)
        for event in values.items(span.get("events"), "events"):
            found = values.record(event, "event")
            name = found.get("name")
            if name in _EVALUATIONS or name in _FLAGS:
                about = _attributes(found.get("attributes"))
                whose = _Whose(resource, attributes | about, span.get("traceId"), span.get("spanId"))
                yield from self._event(whose, about, name, identity, found)

    def _log(self, resource: _Attributes, log: Record) -> Iterator[Found]:
        attributes = _attributes(log.get("attributes"))
        name = log.get("eventName") or attributes.get("event.name")
        if name in _EVALUATIONS or name in _FLAGS:
            whose = _Whose(resource, attributes, log.get("traceId"), log.get("spanId"))
            identity = (whose.trace, whose.span)
            yield from self._event(whose, attributes, name, identity, log)

    def _event(
        self, whose: _Whose, attributes: _Attributes, name: str, identity: tuple[object, ...], event: Record
    ) -> Iterator[Found]:
        written = event.get("timeUnixNano") or event.get("observedTimeUnixNano")
        at = values.unix_time(written, "timeUnixNano")
        if attributes.get("error.type") is not None and name in _EVALUATIONS:
            return
        if name in _EVALUATIONS:
            fields = self._evaluation(attributes)
        else:
            fields = _flag(attributes)
            whose = whose.of_flag(attributes)
        if fields:
            source = f"otlp:event:{fingerprint(name, *identity, str(written), attributes)}"
            yield whose.piece(source, fields, at)

    def _evaluation(self, attributes: _Attributes) -> dict[str, Any]:
        name = values.text(attributes.get("gen_ai.evaluation.name"), "gen_ai.evaluation.name")
        score = attributes.get("gen_ai.evaluation.score.value")
        return evaluation(
            self._settings, name or "", score, f"gen_ai.evaluation.score.value of {shown(name)}"
        )


class _Whose:
    """To which session a record belongs: by its name, or by what it has in common with others."""

    def __init__(self, resource: _Attributes, attributes: _Attributes, trace: object, span: object) -> None:
        self.trace = _hexadecimal(trace)
        self.span = _hexadecimal(span)
        named = _first(attributes, _SESSION) or _first(resource, _SESSION)
        self._session = values.text(named, _SESSION[0])
        response = attributes.get("gen_ai.response.id")
        self._response = response and f"response:{fingerprint(response)}"
        self._trace = self.trace and f"trace:{fingerprint(self.trace)}"
        self._own: tuple[str | None, ...] = ()
        self._asks: tuple[str | None, ...] = (self._response, self._span_key(self.span))

    def of_span(self, parent: object) -> _Whose:
        """Return the same for a span: it has names of its own, and belongs where its parent does."""
        self._own = (self._response, self._span_key(self.span))
        self._asks = (self._span_key(_hexadecimal(parent)),)
        return self

    def of_flag(self, attributes: _Attributes) -> _Whose:
        """Return the same for the evaluation of a flag, whose context may be the session."""
        context = values.text(attributes.get("feature_flag.context.id"), "feature_flag.context.id")
        alone = not any((*self._asks, self._trace))
        if self._session is None and (alone or _first(attributes, _PROVIDER) == PROVIDER_NAME):
            self._session = context
        return self

    def piece(self, source: str, fields: _Attributes, at: datetime | None) -> Piece:
        """Return what the record tells about its session."""
        own = tuple(key for key in self._own if key)
        if self._session is not None:
            # Only what names its session itself says that the trace is that session's.
            keys = (*own, self._trace) if self._own and self._trace else own
            return Piece(source, fields, self._session, keys, at=at)
        asks = tuple(key for key in self._asks if key) or ((self._trace,) if self._trace else ())
        return Piece(source, fields, None, own, asks, self._trace, at)

    def _span_key(self, span: str | None) -> str | None:
        return span and f"span:{fingerprint(self.trace, span)}"


def _entries(
    export: Record, resources: str, scopes: str, entries: str
) -> Iterator[tuple[_Attributes, Record]]:
    for resource in values.items(export.get(resources), resources):
        found = values.record(resource, resources)
        attributes = _attributes(values.record(found.get("resource"), "resource").get("attributes"))
        for scope in values.items(found.get(scopes, found.get("instrumentationLibrarySpans")), scopes):
            for entry in values.items(values.record(scope, scopes).get(entries), entries):
                yield attributes, values.record(entry, entries)


def _attributes(listed: object) -> _Attributes:
    """Return the attributes that mean something here."""
    found: _Attributes = {}
    for attribute in values.items(listed, "attributes"):
        entry = values.record(attribute, "attribute")
        key = entry.get("key")
        if isinstance(key, str) and key.startswith(_PREFIXES):
            found[key] = _plain(entry.get("value"))
    return found


def _plain(value: object) -> Any:
    """Return the plain value of an AnyValue."""
    wrapped = values.record(value, "attribute value")
    for kind in ("stringValue", "intValue", "doubleValue", "boolValue"):
        if kind in wrapped:
            return wrapped[kind]
    if "arrayValue" in wrapped:
        listed = values.record(wrapped["arrayValue"], "arrayValue")
        return [_plain(item) for item in values.items(listed.get("values"), "values")]
    if "kvlistValue" in wrapped:
        pairs = values.items(values.record(wrapped["kvlistValue"], "kvlistValue").get("values"), "values")
        return {
            str(values.record(pair, "pair").get("key")): _plain(values.record(pair, "pair").get("value"))
            for pair in pairs
        }
    return None


def _span_fields(attributes: _Attributes, span: Record) -> dict[str, Any]:
    operation = _first(attributes, _OPERATION)
    if operation is None and attributes and isinstance(span.get("name"), str):
        operation = span["name"].partition(" ")[0]
    if not isinstance(operation, str):
        return {}
    if operation in _MODEL_CALLS:
        return _model_call(attributes)
    if operation == "execute_tool":
        return {"tool_calls": 1, "tool_calls_succeeded": int(not _failed(attributes, span))}
    if operation in _RETRIEVED:
        return _retrieved(attributes.get(_RETRIEVED[operation]), _RETRIEVED[operation])
    return {}


def _model_call(attributes: _Attributes) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    counts = [
        values.count(_first(attributes, names), names[0])
        for names in (_INPUT, _OUTPUT)
        if _first(attributes, names) is not None
    ]
    if counts:
        fields["tokens"] = sum(tokens or 0 for tokens in counts)
    seconds = values.number(_first(attributes, _FIRST_TOKEN), _FIRST_TOKEN[0])
    if seconds is not None:
        fields["first_token_ms"] = [seconds * 1000]
    return fields


def _failed(attributes: _Attributes, span: Record) -> bool:
    status = values.record(span.get("status"), "status").get("code")
    return attributes.get("error.type") is not None or status in _STATUS_ERROR


def _retrieved(listed: object, name: str) -> dict[str, Any]:
    """Return the scores of what a retrieval found; those that state none say nothing."""
    entries = [_decoded(entry) for entry in values.items(_decoded(listed), name)]
    scores = [
        values.share(entry.get("score"), f"{name} score") for entry in entries if isinstance(entry, dict)
    ]
    found = [score for score in scores if score is not None]
    return {"recall_relevance": found} if found else {}


def _decoded(value: object) -> object:
    """Return a value that may be written as JSON; null if that was cut off, as exporters may do."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _flag(attributes: _Attributes) -> dict[str, Any]:
    """Return the variant that the evaluation of a flag stands for; none if the flag is no layer."""
    layer, variant = attributes.get("feature_flag.key"), _first(attributes, _VARIANT)
    if layer not in LAYERS or variant is None or attributes.get("feature_flag.result.reason") == "error":
        return {}
    return {"layer": layer, "variant": variant}


def _first(attributes: _Attributes, names: Iterable[str]) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def _hexadecimal(identifier: object) -> str | None:
    written = values.text(identifier, "id")
    return written and written.lower()
