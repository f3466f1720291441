"""What a format is: lines in, updates of sessions out. One module a format; FORMATS lists them.

**Nothing counts twice.** Every record is a source of its own within its session, named after what identifies
the record in its format: a span by trace and span id, a message by message and request id, a line of a log
by its content. What the recorder does with sources does the rest: the same record again, from another file or
after a restart, replaces itself, and different ones add up, in whatever order they come.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, Protocol

from prx_engine.configuration import TelemetrySettings
from prx_engine.errors import InvalidInput
from prx_engine.scoring.metrics import SessionUpdate
from prx_engine.telemetry import values

FormatName = Literal["native", "otlp", "codex", "claude-code", "langfuse", "prx"]
"""Names of the formats, as the command line and the configuration have them."""

State = dict[str, Any]
"""What a reader has to remember of the lines before, in the types of JSON; kept with the place in a file."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What one record tells about one session.

    Attributes:
        source: identifies the record within its session.
        fields: of the update of the session: metrics, layer, variant.
        session_id: the session; None if the record does not name it.
        keys: other names by which the session is known as soon as that of the piece is.
        asks: names of the session, if the piece does not name it itself; the first that is known decides.
        fallback: a name that several sessions may have; it decides if none of the others is known in time.
        at: when it happened; the session starts then if it is new.
    """

    source: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    session_id: str | None = None
    keys: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    fallback: str | None = None
    at: datetime | None = None

    def update(self, session_id: str) -> SessionUpdate:
        """Return the update of a session.

        Raises:
            InvalidInput: naming the field that is wrong.
        """
        return SessionUpdate.of(
            {**self.fields, "session_id": session_id, "source": self.source, "started_at": self.at}
        )


Found = SessionUpdate | Piece | InvalidInput
"""One thing found in a line; an error is a part of the line that is wrong while others are not."""


class Reader(Protocol):
    """Reads one file, line after line."""

    def read(self, line: bytes) -> Iterable[Found]:
        """Return what a line tells about sessions, nothing if that is nothing.

        Raises:
            InvalidInput: if the line as a whole is wrong.
        """
        ...

    def state(self) -> State:
        """Return what another reader needs to go on from here."""
        ...


class Format(Protocol):
    """A format of telemetry."""

    name: FormatName

    def recognises(self, record: object) -> bool:
        """Tell from its content whether a JSON value is of this format."""
        ...

    def reader(self, settings: TelemetrySettings, state: State) -> Reader:
        """Return a reader that starts at the beginning of a file or goes on after ``state``."""
        ...


class JsonReader(ABC):
    """A reader of one JSON value a line that remembers nothing; subclasses say what a value tells."""

    def __init__(self, settings: TelemetrySettings, state: State) -> None:
        self._settings = settings

    def read(self, line: bytes) -> Iterable[Found]:
        """Return what the value of a line tells about sessions."""
        return self.pieces(values.record(values.parse(line), "line"))

    @abstractmethod
    def pieces(self, record: values.Record) -> Iterable[Found]:
        """Return what a record tells about sessions."""

    def state(self) -> State:
        """Return nothing to remember."""
        return {}


def guarded(found: Iterator[Found]) -> Iterator[Found]:
    """Return what is found in one of several records of a line; what is wrong with it spoils no other."""
    try:
        yield from found
    except InvalidInput as error:
        yield error


_SCORE_FIELDS: Final = {"response_relevance": "relevance", "memory_precision": "recall_relevance"}


def evaluation(settings: TelemetrySettings, name: str, score: object, where: str) -> dict[str, Any]:
    """Return the metrics that a named evaluation stands for, none if the configuration knows no such name.

    Args:
        settings: maps names of evaluations to dimensions.
        name: of the evaluation.
        score: found in the record.
        where: name of the score, for messages.

    Raises:
        InvalidInput: if the score of a known evaluation is not a number from 0 to 1.
    """
    dimension = settings.evaluations.dimension_of(name)
    value = None if dimension is None else values.share(score, where)
    if dimension is None or value is None:
        return {}
    if dimension in _SCORE_FIELDS:
        return {_SCORE_FIELDS[dimension]: [value]}
    if value in (0, 1):
        return {"thumbs_up" if value else "thumbs_down": 1}
    return {"scores": {dimension: value}}
