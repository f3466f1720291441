"""Experiment ids of the demo: UUIDv7 whose random bits come from the seed."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime
from uuid import UUID


class SeededIds:
    """An id source that gives the same ids for the same seed and times.

    An id depends on its own time alone, not on how many were given before: whatever else comes to need
    ids, the experiments keep theirs, and with them the assignment of their sessions.

    Args:
        seed: of the demo.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._given: Counter[datetime] = Counter()

    def __call__(self, created_at: datetime) -> str:
        """Return a new UUIDv7 (RFC 9562) for the given time."""
        self._given[created_at] += 1
        draw = random.Random(f"ids {self._seed} {created_at.isoformat()} {self._given[created_at]}")
        milliseconds = int(created_at.timestamp() * 1000)
        low = (0b10 << 62) | draw.getrandbits(62)
        middle = (0x7 << 12) | draw.getrandbits(12)
        return str(UUID(int=(milliseconds << 80) | (middle << 64) | low))
