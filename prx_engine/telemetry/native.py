"""Native session lines: one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prx_engine.errors import InvalidInput
from prx_engine.scoring.metrics import SessionUpdate

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of a line; a longer one is refused without being parsed."""


def read(lines: Iterable[bytes]) -> Iterator[tuple[int, SessionUpdate | InvalidInput, bytes]]:
    """Return for each line its number from 1, the update in it or what is wrong with it, and the line.

    Blank lines are passed over.
    """
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line:
            yield number, _parsed(line), line


def _parsed(line: bytes) -> SessionUpdate | InvalidInput:
    if len(line) > LONGEST_LINE:
        return InvalidInput(f"longer than {LONGEST_LINE // 1024 // 1024} MiB")
    try:
        return SessionUpdate.of_json(line)
    except InvalidInput as error:
        return error
