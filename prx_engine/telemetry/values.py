"""Values of foreign records: read as what they should be, or refused with the name of the field."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

from prx_engine.clock import parse_time
from prx_engine.errors import InvalidInput
from prx_engine.text import shown

Record = Mapping[str, Any]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST_NANOSECONDS: Final = 253_402_300_799 * 10**9
"""The last second of the year 9999, the last that a datetime can hold."""


def parse(line: bytes) -> Any:
    """Return the JSON value of a line.

    Raises:
        InvalidInput: if it is not JSON in UTF-8.
    """
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not UTF-8: byte 0x{line[error.start]:02x} at {error.start + 1}") from None
    except RecursionError:
        raise InvalidInput("not JSON that can be read: nested too deeply") from None
    except ValueError as error:
        raise InvalidInput(f"not JSON: {shown(str(error))}") from None


def record(value: object, name: str) -> Record:
    """Return an object; an empty one for null.

    Raises:
        InvalidInput: if it is anything else.
    """
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise _wrong(name, value, "an object")


def items(value: object, name: str) -> Sequence[Any]:
    """Return a list; an empty one for null.

    Raises:
        InvalidInput: if it is anything else.
    """
    if value is None:
        return ()
    if isinstance(value, list):
        return value
    raise _wrong(name, value, "a list")


def text(value: object, name: str) -> str | None:
    """Return a text; None for null and for the empty text.

    Raises:
        InvalidInput: if it is anything else.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    raise _wrong(name, value, "a text")


def number(value: object, name: str) -> float | None:
    """Return a finite number, or one written as a text; None for null.

    Raises:
        InvalidInput: if it is anything else.
    """
    if value is None:
        return None
    if isinstance(value, int | float | str):
        try:
            found = float(value)
        except (ValueError, OverflowError):
            found = math.nan
        if math.isfinite(found):
            return found
    raise _wrong(name, value, "a number")


def count(value: object, name: str) -> int | None:
    """Return a whole number from 0 on, or one written as a text; None for null.

    Raises:
        InvalidInput: if it is anything else.
    """
    found = None if isinstance(value, bool) else number(value, name)
    if found is None and value is None:
        return None
    if found is None or found < 0 or found != int(found):
        raise _wrong(name, value, "a whole number from 0 on")
    return int(found)


def share(value: object, name: str) -> float | None:
    """Return a number from 0 to 1, a truth value as 0 or 1; None for null.

    Raises:
        InvalidInput: if it is anything else.
    """
    found = number(value, name)
    if found is not None and not 0 <= found <= 1:
        raise _wrong(name, value, "a number from 0 to 1")
    return found


def time(value: object, name: str) -> datetime | None:
    """Return a time written in RFC 3339; None for null.

    Raises:
        InvalidInput: if it is anything else.
    """
    written = text(value, name)
    if written is None:
        return None
    try:
        return parse_time(written)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from None


def unix_time(value: object, name: str) -> datetime | None:
    """Return a time given in nanoseconds since 1970; None for null and 0, which stands for unknown.

    Raises:
        InvalidInput: if it is anything else.
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 30:
        value = int(value)
    nanoseconds = count(value, name)
    if not nanoseconds:
        return None
    if nanoseconds > _LARGEST_NANOSECONDS:
        raise _wrong(name, value, "nanoseconds since 1970")
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def fingerprint(*parts: object) -> str:
    """Return a short name for any values: the same one for the same values."""
    written = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return blake2b(written.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _wrong(name: str, value: object, allowed: str) -> InvalidInput:
    return InvalidInput(f"{name}: found {shown(value)}; allowed: {allowed}")
