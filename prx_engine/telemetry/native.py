"""Native session lines: one JSON object a line, in the words of the engine itself."""

from __future__ import annotations

from collections.abc import Iterable

from prx_engine.configuration import TelemetrySettings
from prx_engine.scoring.metrics import SessionUpdate
from prx_engine.telemetry.formats import FormatName, Found, State


class Native:
    """The project's own format; the lines name their source themselves."""

    name: FormatName = "native"

    def recognises(self, record: object) -> bool:
        """Tell whether a value names a session."""
        return isinstance(record, dict) and "session_id" in record

    def reader(self, settings: TelemetrySettings, state: State) -> NativeReader:
        """Return a reader."""
        return NativeReader()


class NativeReader:
    """Reads session lines; nothing has to be remembered."""

    def read(self, line: bytes) -> Iterable[Found]:
        """Return the update that a line is."""
        return (SessionUpdate.of_json(line),)

    def state(self) -> State:
        """Return nothing to remember."""
        return {}
