"""Experiment ids: UUIDv7 (RFC 9562), whose leading bits are the time of the engine's clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

IdSource = Callable[[datetime], str]
"""Gives a new, unique id for a thing created at the given time."""

SHORT_LENGTH: Final = 8
"""Displays show this many trailing characters: the leading ones are time and look alike."""


def uuid7(created_at: datetime) -> str:
    """Return a new UUIDv7 for the given time, in canonical text."""
    from uuid_utils import uuid7 as generate

    microseconds = round((created_at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1e6)
    return str(generate(nanoseconds=microseconds * 1000))


def short(identifier: str) -> str:
    """Return the part of an id that displays show."""
    return identifier[-SHORT_LENGTH:]
