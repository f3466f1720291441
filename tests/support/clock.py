"""A clock that tests move by hand."""

from __future__ import annotations

from datetime import datetime, timedelta

from prx_engine.clock import as_utc, parse_time


class ManualClock:
    """Stands still until somebody sets or advances it."""

    def __init__(self, start: datetime | str = "2026-06-01T00:00:00Z") -> None:
        self._now = _time(start)

    def now(self) -> datetime:
        return self._now

    def set(self, time: datetime | str) -> None:
        self._now = _time(time)

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        self._now += timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def _time(time: datetime | str) -> datetime:
    return parse_time(time) if isinstance(time, str) else as_utc(time, "time")
