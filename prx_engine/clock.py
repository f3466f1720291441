"""Time as the engine sees it: one injected clock, always UTC, RFC 3339 in text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from prx_engine.errors import InvalidInput

HOUR: Final = timedelta(hours=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 2999
_RFC_3339: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)


class Clock(Protocol):
    """Anything that tells the present time."""

    def now(self) -> datetime:
        """Return the present time, aware and in UTC."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the present time in UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True)
class FixedClock:
    """A clock that stands still, for replays and tests."""

    time: datetime

    def now(self) -> datetime:
        """Return the fixed time."""
        return self.time


def clock_from_environment(environment: Mapping[str, str]) -> Clock:
    """Return the clock that ``PRX_NOW`` fixes, or the system's.

    Raises:
        InvalidInput: if ``PRX_NOW`` is set and is not an RFC 3339 time of the years 1970 to 2999.
    """
    text = environment.get("PRX_NOW")
    if not text:
        return SystemClock()
    try:
        time = parse_time(text)
    except InvalidInput as error:
        raise InvalidInput(f"PRX_NOW: {error}") from None
    if not _FIRST_YEAR <= time.year <= _LAST_YEAR:  # with room for every window before and plan after it
        raise InvalidInput(f"PRX_NOW: {text!r} is not in the years {_FIRST_YEAR} to {_LAST_YEAR}")
    return FixedClock(time)


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time with its offset, as UTC.

    Raises:
        InvalidInput: if the text is anything else.
    """
    if _RFC_3339.fullmatch(text):
        try:
            return datetime.fromisoformat(text.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise InvalidInput(f"{text[:60]!r} is not an RFC 3339 time such as 2026-06-01T08:00:00Z")


def format_time(time: datetime) -> str:
    """Write a time as RFC 3339 in UTC, with a fraction only if it has one."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def as_utc(time: datetime, name: str) -> datetime:
    """Return an aware time in UTC.

    Raises:
        InvalidInput: if the time has no offset or is none of the calendar's, naming the value as ``name``.
    """
    if time.tzinfo is None:
        raise InvalidInput(f"{name}: {time.isoformat()} has no time zone; give one, UTC for instance")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{name}: {time.isoformat()} is out of the calendar in UTC") from None


def clock_hour(time: datetime) -> int:
    """Return the number of whole clock hours between 1970 and ``time``."""
    return (time - _EPOCH) // HOUR


def start_of_clock_hour(hour: int) -> datetime:
    """Return the time at which a clock hour, counted from 1970, begins."""
    return _EPOCH + hour * HOUR
