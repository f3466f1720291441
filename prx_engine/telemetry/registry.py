"""The formats there are, and the recognition of one by the content of a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pydantic import ValidationError

from prx_engine.configuration import TelemetrySettings, TelemetrySource
from prx_engine.errors import InvalidInput
from prx_engine.telemetry import values
from prx_engine.telemetry.claude_code import ClaudeCode
from prx_engine.telemetry.codex import Codex
from prx_engine.telemetry.formats import Format, FormatName, Found, Reader, State
from prx_engine.telemetry.langfuse import Langfuse
from prx_engine.telemetry.native import Native
from prx_engine.telemetry.otlp import Otlp
from prx_engine.telemetry.prx import Prx
from prx_engine.text import shown

AUTO: Final = "auto"

FORMATS: Final[tuple[Format, ...]] = (Otlp(), Codex(), ClaudeCode(), Langfuse(), Prx(), Native())
"""All formats; the first that recognises a record reads its file."""


FORMAT_NAMES: Final = (AUTO, *(known.name for known in FORMATS))
"""What may be asked for."""


def recognised(record: object) -> Format | None:
    """Return the format of a record, if it has one of them."""
    return next((known for known in FORMATS if known.recognises(record)), None)


class FileReader:
    """Reads a file in its format, whatever that is; the first line that is recognised decides.

    Args:
        name: of the format, or ``auto``.
        settings: of telemetry.
        state: of an earlier reader of the same file.

    Raises:
        InvalidInput: if there is no such format.
    """

    def __init__(self, name: str, settings: TelemetrySettings, state: State | None = None) -> None:
        self._settings = settings
        known: dict[str, Format] = {known.name: known for known in FORMATS}
        chosen = (state or {}).get("format") or name
        if chosen not in FORMAT_NAMES:
            raise InvalidInput(f"format: found {shown(chosen)}; allowed: {', '.join(FORMAT_NAMES)}")
        self._reader: Reader | None = None
        self.format: Format | None = known.get(chosen)
        if self.format is not None:
            self._reader = self.format.reader(settings, (state or {}).get("reader", {}))

    @property
    def format_name(self) -> FormatName | None:
        """Name of the format; None as long as nothing has been recognised."""
        return None if self.format is None else self.format.name

    def read(self, line: bytes) -> Iterable[Found]:
        """Return what a line tells about sessions.

        Raises:
            InvalidInput: if the line as a whole is wrong.
        """
        if self._reader is None:
            self._recognise(values.parse(line))
        assert self._reader is not None  # or recognising it would have failed
        return self._reader.read(line)

    def state(self) -> State:
        """Return what another reader needs to go on from here."""
        if self.format is None or self._reader is None:
            return {}
        return {"format": self.format.name, "reader": self._reader.state()}

    def _recognise(self, record: object) -> None:
        found = recognised(record)
        if found is None:
            raise InvalidInput("of no known format; a native session line would have a session_id")
        self.format, self._reader = found, found.reader(self._settings, {})


def source(path: str, name: str) -> TelemetrySource:
    """Return the source that a path and the name of a format stand for.

    Raises:
        InvalidInput: if there is no such format.
    """
    if name not in FORMAT_NAMES:
        raise InvalidInput(f"format: found {shown(name)}; allowed: {', '.join(FORMAT_NAMES)}")
    try:
        return TelemetrySource.model_validate({"path": path, "format": name})
    except ValidationError:
        raise InvalidInput(f"path: {shown(path)} cannot be followed by its name; name its folder") from None
