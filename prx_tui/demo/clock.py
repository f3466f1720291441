"""The demo's time: it starts at a fixed instant, stands still while history is made, then runs fast."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

DEMO_NOW: Final = datetime(2026, 6, 18, 8, 30, tzinfo=UTC)
"""The moment at which the dashboard opens, whatever the wall clock says: the same picture every time."""

GRACE: Final = timedelta(hours=12)
"""A check that is due for so long is overdue; at the demo's speed that is a quarter of a minute."""


class DemoClock:
    """A clock that is moved by hand, or runs at so many demo hours a real second.

    Safe to share between threads.

    Args:
        start: the time that it shows first, standing still.
        monotonic: real seconds.
    """

    def __init__(self, start: datetime, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._base = start
        self._since = monotonic()
        self._speed = 0.0

    def now(self) -> datetime:
        """Return the demo's present time."""
        with self._lock:
            return self._now()

    def move_to(self, moment: datetime) -> None:
        """Go on from another, later moment at the same pace."""
        with self._lock:
            self._base, self._since = max(moment, self._now()), self._monotonic()

    def run(self, hours_a_second: float) -> None:
        """Go on from the present moment at another pace; 0 stands still."""
        with self._lock:
            self._base, self._since = self._now(), self._monotonic()
            self._speed = hours_a_second

    def _now(self) -> datetime:
        return self._base + timedelta(hours=(self._monotonic() - self._since) * self._speed)
