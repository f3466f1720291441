"""Counting distinct names exactly, in memory that stays flat however many there are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

_IN_MEMORY: Final = 100_000


class Distinct:
    """A set of which only the size is asked; beyond some size it goes on in a temporary file."""

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._file: sqlite3.Connection | None = None

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def update(self, names: Iterable[str]) -> None:
        """Add names."""
        self._recent.update(map(hash, names))  # 64 bits: as good as different for different names
        if len(self._recent) >= _IN_MEMORY:
            self._spill()

    def count(self) -> int:
        """Return how many names there are."""
        if self._file is None:
            return len(self._recent)
        (count,) = self._spill().execute("SELECT count(*) FROM seen").fetchone()
        return int(count)

    def _spill(self) -> sqlite3.Connection:
        if self._file is None:
            # The empty name is a file that SQLite removes when the connection closes.
            self._file = sqlite3.connect("", isolation_level=None)
            self._file.execute("PRAGMA journal_mode = OFF")
            self._file.execute("CREATE TABLE seen (hash INTEGER PRIMARY KEY)")
        self._file.execute("BEGIN")
        self._file.executemany("INSERT OR IGNORE INTO seen VALUES (?)", ((h,) for h in sorted(self._recent)))
        self._file.execute("COMMIT")
        self._recent.clear()
        return self._file
