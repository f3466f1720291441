"""Results of the study in a file, so that it can be cut short, continued and shown again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.study.simulation import Tally


class Results:
    """What has been simulated so far.

    Args:
        file: keeps it; None keeps it in memory alone.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._data: dict[str, Any] = {"scenarios": {}, "tables": {}}
        if file is not None and file.exists():
            self._data = json.loads(file.read_text())

    def tallies(self) -> dict[str, Tally]:
        """Return the finished scenarios."""
        return {
            name: Tally(**{**fields, "conclusions": Counter(fields["conclusions"])})
            for name, fields in self._data["scenarios"].items()
        }

    def keep(self, name: str, tally: Tally) -> None:
        """Add a scenario, or replace it."""
        self._data["scenarios"][name] = {
            **vars(tally),
            "conclusions": dict(tally.conclusions),
        }
        self._save()

    def rows(self, table: str) -> list[list[str]] | None:
        """Return the rows of another table; None if it was not made yet."""
        rows: list[list[str]] | None = self._data["tables"].get(table)
        return rows

    def keep_rows(self, table: str, rows: Sequence[Sequence[str]]) -> None:
        """Add another table."""
        self._data["tables"][table] = rows
        self._save()

    def _save(self) -> None:
        if self._file is not None:
            self._file.write_text(json.dumps(self._data, indent=1, ensure_ascii=False) + "\n")
