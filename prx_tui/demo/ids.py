"""Experiment ids of the demo: UUIDv7 whose random bits come from the seed."""

from __future__ import annotations

import random
from datetime import datetime
from uuid import UUID


class SeededIds:
    """An id source that gives the same ids for the same seed and times.

    Args:
        seed: of the demo.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"ids {seed}")

    def __call__(self, created_at: datetime) -> str:
        """Return a new UUIDv7 (RFC 9562) for the given time."""
        milliseconds = int(created_at.timestamp() * 1000)
        low = (0b10 << 62) | self._random.getrandbits(62)
        middle = (0x7 << 12) | self._random.getrandbits(12)
        return str(UUID(int=(milliseconds << 80) | (middle << 64) | low))
