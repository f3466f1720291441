"""Importing telemetry: lines in, recorded batches out; what is wrong is reported beside what was taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from prx_engine.dimensions import DIMENSIONS
from prx_engine.errors import PrxError
from prx_engine.records import ImportReport, Rejected
from prx_engine.scoring.metrics import SessionUpdate, combine
from prx_engine.scoring.scores import RAW_FIELDS, Scorer
from prx_engine.sessions.recording import Recorder
from prx_engine.telemetry import native

_BATCH: Final = 500
"""Lines of one transaction: enough to make its cost small, few enough to let others write in between."""


def import_lines(
    name: str,
    lines: Iterable[bytes],
    recorder: Recorder,
    scorer: Scorer,
    on_rejected: Callable[[int, bytes], object] | None = None,
) -> ImportReport:
    """Record all session lines of one source of telemetry.

    Args:
        name: of the file, for messages.
        lines: raw lines.
        recorder: takes the updates.
        scorer: tells which dimensions an update has data for.
        on_rejected: called with number and raw bytes of each line that is refused.

    Raises:
        StoreError: if the database fails; what was recorded before stays.
    """
    importing = _Import(name, recorder, scorer, on_rejected)
    for number, update, line in native.read(lines):
        importing.take(number, update, line)
    return importing.finish()


class _Import:
    def __init__(
        self,
        name: str,
        recorder: Recorder,
        scorer: Scorer,
        on_rejected: Callable[[int, bytes], object] | None,
    ) -> None:
        self._name = name
        self._on_rejected = on_rejected
        self._recorder = recorder
        self._scorer = scorer
        self._batch: list[tuple[int, SessionUpdate, bytes]] = []
        self._lines = 0
        self._recorded = 0
        self._sessions: set[str] = set()
        self._without_experiment: set[str] = set()
        self._missing = set(range(len(DIMENSIONS)))
        self._telling = frozenset().union(*RAW_FIELDS)
        self._rejected: list[Rejected] = []

    def take(self, number: int, update: SessionUpdate | PrxError, line: bytes) -> None:
        self._lines += 1
        if isinstance(update, PrxError):
            self._reject(number, update, line)
            return
        self._batch.append((number, update, line))
        if len(self._batch) >= _BATCH:
            self._record()

    def finish(self) -> ImportReport:
        self._record()
        return ImportReport(
            lines=self._lines,
            recorded=self._recorded,
            sessions=len(self._sessions),
            without_experiment=len(self._without_experiment),
            missing_dimensions=[DIMENSIONS[d] for d in sorted(self._missing)],
            rejected=sorted(self._rejected, key=lambda rejected: rejected.line),
        )

    def _record(self) -> None:
        batch, self._batch = self._batch, []
        if not batch:
            return
        results = self._recorder.record([update for _, update, _ in batch])
        for (number, update, line), result in zip(batch, results, strict=True):
            if result.error is not None:
                self._reject(number, result.error, line)
                continue
            self._recorded += 1
            self._sessions.add(update.session_id)
            if result.without_experiment:
                self._without_experiment.add(update.session_id)
            if not self._telling.isdisjoint(update.model_fields_set):
                self._note_dimensions(update)

    def _note_dimensions(self, update: SessionUpdate) -> None:
        scores = self._scorer.scores(combine([update.report()]))
        self._missing = {d for d in self._missing if scores[d] is None}
        self._telling = frozenset().union(*(RAW_FIELDS[d] for d in self._missing))

    def _reject(self, number: int, error: PrxError, line: bytes) -> None:
        if self._on_rejected is not None:
            self._on_rejected(number, line)
        self._rejected.append(
            Rejected(file=self._name, line=number, problem=str(error), text=line.decode("utf-8", "replace"))
        )
