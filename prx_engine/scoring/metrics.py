"""What agents report about a session, and how the reports of several sources combine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple, Required, cast

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from prx_engine.clock import as_utc, parse_time
from prx_engine.dimensions import DIMENSIONS, Dimension, Layer, VariantName
from prx_engine.errors import InvalidInput
from prx_engine.text import nearest, shown

_LARGEST_COUNT: Final = 10**15
_LONGEST_NAME: Final = 512
_LONGEST_NAME_BYTES: Final = 1000
"""PostgreSQL indexes no row of more than 2704 bytes, and the key of a report is two names."""
_WHOLE_AND_PART: Final = (("tool_calls", "tool_calls_succeeded"), ("tasks", "tasks_succeeded"))
_WITHOUT_NUL: Final = r"^[^\x00]*$"

Report = dict[str, Any]
"""Raw fields of one source, those it gave only; as kept in the database."""


def _listed(value: object) -> object:
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else value


def _time(value: object) -> object:
    if isinstance(value, str):
        return parse_time(value)
    if isinstance(value, datetime):
        return as_utc(value, "time")
    if value is not None:
        # A bare number could be seconds or milliseconds, a date any hour: neither is guessed at.
        raise ValueError("an RFC 3339 time is a text such as 2026-06-01T08:00:00Z")
    return value


_Name = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME, pattern=_WITHOUT_NUL, strict=True)]
_Unit = Annotated[float, Field(ge=0, le=1, strict=True, allow_inf_nan=False)]
_Milliseconds = Annotated[float, Field(ge=0, le=1e12, strict=True, allow_inf_nan=False)]
_Units = Annotated[list[_Unit] | None, BeforeValidator(_listed)]
_Times = Annotated[list[_Milliseconds] | None, BeforeValidator(_listed)]
_Count = Annotated[int | None, Field(ge=0, le=_LARGEST_COUNT, strict=True)]


@with_config(ConfigDict(extra="forbid", defer_build=True))
class SessionLine(TypedDict, total=False):
    """A native session line; everything but the session id is optional, and what is not given is missing.

    Attributes:
        session_id: the agent's own name of the session.
        layer, experiment_id, variant: stated only by an agent that splits its own traffic.
        started_at: when the session started; the time of the call if not given.
        cluster: the user or task that the session belongs to.
        source: who reports, ``native`` if not given; a later report of the same source replaces its
            earlier fields.
        relevance: judge scores of the responses, one or many, each 0–1.
        tool_calls, tool_calls_succeeded: counts.
        tasks, tasks_succeeded: counts.
        first_token_ms: times to the first token of responses, one or many, milliseconds.
        tokens: tokens used, a count.
        recall_relevance: relevance of recalled memories, one or many, each 0–1.
        thumbs_up, thumbs_down, corrections: counts of feedback.
        scores: ready-made scores, dimension → 0–1; they stand instead of the raw fields.
    """

    session_id: Required[_Name]
    layer: Layer | None
    experiment_id: _Name | None
    variant: VariantName | None
    started_at: Annotated[datetime | None, BeforeValidator(_time)]
    cluster: _Name | None
    source: _Name
    relevance: _Units
    tool_calls: _Count
    tool_calls_succeeded: _Count
    tasks: _Count
    tasks_succeeded: _Count
    first_token_ms: _Times
    tokens: _Count
    recall_relevance: _Units
    thumbs_up: _Count
    thumbs_down: _Count
    corrections: _Count
    scores: dict[Dimension, _Unit] | None


_LINES: Final = TypeAdapter(SessionLine)


class SessionUpdate(NamedTuple):
    """One report about one session: a session line that has been checked.

    Attributes:
        report: the raw metrics that are given.
        session_id, started_at, layer, experiment_id, variant, cluster, source: as in the line.
    """

    session_id: str
    report: Report
    started_at: datetime | None = None
    layer: Layer | None = None
    experiment_id: str | None = None
    variant: VariantName | None = None
    cluster: str | None = None
    source: str = "native"

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> SessionUpdate:
        """Return the update that the fields describe.

        Raises:
            InvalidInput: naming the field and the value.
        """
        try:
            return _update(_LINES.validate_python(dict(fields)))
        except ValidationError as error:
            raise InvalidInput(_one_line(error)) from None

    @classmethod
    def of_json(cls, line: str | bytes) -> SessionUpdate:
        """Return the update that one line of JSON describes.

        Raises:
            InvalidInput: naming the field and the value, or what is wrong with the JSON.
        """
        try:
            return _update(_LINES.validate_json(line))
        except ValidationError as error:
            raise InvalidInput(_one_line(error)) from None


def _update(line: SessionLine) -> SessionUpdate:
    fields = cast(dict[str, Any], line)
    take = fields.pop
    session_id, started_at = take("session_id"), take("started_at", None)
    layer, experiment_id, variant = take("layer", None), take("experiment_id", None), take("variant", None)
    cluster, source = take("cluster", None), take("source", "native")
    for name in (session_id, source, cluster, experiment_id):
        if name and not name.isascii():
            _refuse_long(session_id=session_id, source=source, cluster=cluster, experiment_id=experiment_id)
    if variant is None and (layer or experiment_id):
        raise InvalidInput("variant: missing beside layer or experiment_id; state it, or neither")
    if variant is not None and not (layer or experiment_id):
        raise InvalidInput("layer: missing beside variant; state layer or experiment_id")
    report = {name: value for name, value in fields.items() if value or value == 0}
    return SessionUpdate(session_id, report, started_at, layer, experiment_id, variant, cluster, source)


def _refuse_long(**names: str | None) -> None:
    for field, name in names.items():
        if name and len(name.encode()) > _LONGEST_NAME_BYTES:
            found = shown(repr(name[:100]))
            raise InvalidInput(
                f"{field}: found {found}; allowed: at most {_LONGEST_NAME_BYTES} bytes of UTF-8"
            )


def _one_line(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    kind, message, found = first["type"], first["msg"], first["input"]
    name = ".".join(str(part) for part in first["loc"] if part != "[key]") or "line"
    if kind == "json_invalid":
        return f"not JSON: {message.removeprefix('Invalid JSON: ')}"
    if kind == "dict_type" and not first["loc"]:
        return f"not a JSON object, but {shown(found)}"
    if kind == "missing":
        return f"{name}: missing"
    if kind == "extra_forbidden":
        return _unknown(name, "field", name, SessionLine.__annotations__)
    if first["loc"][-1:] == ("[key]",):
        return _unknown(name, "dimension", str(found), DIMENSIONS)
    if kind in ("string_pattern_mismatch", "string_unicode"):
        message = "a NUL character or half a surrogate pair"
    if kind == "list_type":
        message = "a number or a list of numbers is allowed"
    message = message.removeprefix("Value error, ")
    quoted = repr(found[:100]) if isinstance(found, str) else found
    return f"{shown(name)}: found {shown(quoted)}; {message[0].lower()}{message[1:]}"


def _unknown(where: str, what: str, name: str, known: Iterable[str]) -> str:
    meant = nearest(name, known)
    return f"{shown(where)}: no such {what}" + (f"; did you mean {meant}?" if meant else "")


def combine(reports: Sequence[Report]) -> Report:
    """Return the reports of all sources as one: counts add, lists join, in any order alike.

    The answer is not to be changed: where there is nothing to combine it is the only report itself.

    Raises:
        InvalidInput: if more succeeded than there were.
    """
    if len(reports) == 1 and "scores" not in reports[0]:
        refuse_contradiction(reports[0])
        return reports[0]
    combined: Report = {}
    for report in reports:
        for name, value in report.items():
            if name == "scores":
                scores = combined.setdefault(name, {})
                for dimension, score in value.items():
                    scores.setdefault(dimension, []).append(score)
            elif name in combined:
                combined[name] += value
            else:
                combined[name] = list(value) if isinstance(value, list) else value
    refuse_contradiction(combined)
    return combined


def counts_of(report: Report) -> dict[str, int]:
    """Return those of the raw fields that can contradict each other."""
    return {name: report[name] for pair in _WHOLE_AND_PART for name in pair if name in report}


def refuse_contradiction(report: Mapping[str, Any]) -> None:
    """Refuse raw fields that cannot all be true.

    Raises:
        InvalidInput: if more succeeded than there were.
    """
    for whole, part in _WHOLE_AND_PART:
        if whole in report and report.get(part, 0) > report[whole]:
            raise InvalidInput(f"{part}: found {report[part]}; allowed: at most {whole} = {report[whole]}")


def replace(earlier: Report, later: Report) -> Report:
    """Return a source's report after a later one of its own: later fields replace earlier ones."""
    merged = {**earlier, **later}
    if "scores" in earlier and "scores" in later:
        merged["scores"] = {**earlier["scores"], **later["scores"]}
    return merged
