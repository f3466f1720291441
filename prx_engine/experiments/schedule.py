"""When looks happen: scheduled times only, counted in whole hours from an experiment's creation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from prx_engine.clock import HOUR


@dataclass(frozen=True, slots=True)
class Schedule:
    """The scheduled times of an experiment, in hours since its creation.

    Attributes:
        interval: hours between two checks.
        planned_end: the present planned end, extensions included.
        maximum: the end that no extension passes.
        closed: the latest time that a finished check has closed; 0 before the first.
    """

    interval: int
    planned_end: int
    maximum: int
    closed: int

    def until(self, hours: int) -> list[int]:
        """Return the times after ``closed`` up to ``hours``, in order."""
        end = min(hours, self.maximum)
        times = set(range(self.interval, end + 1, self.interval))
        times |= {time for time in (self.planned_end, self.maximum) if time <= end}
        return sorted(time for time in times if time > self.closed)

    def next(self) -> int | None:
        """Return the first time that is not closed; None after the last."""
        grid = (self.closed // self.interval + 1) * self.interval
        ahead = [
            time for time in (grid, self.planned_end, self.maximum) if self.closed < time <= self.maximum
        ]
        return min(ahead, default=None)


def whole_hours(created_at: datetime, time: datetime) -> int:
    """Return the whole hours from an experiment's creation to a time."""
    return (time - created_at) // HOUR


def hours_rounded_up(created_at: datetime, time: datetime) -> int:
    """Return the hours from an experiment's creation to a time, up to the next whole one."""
    return -((created_at - time) // HOUR)
