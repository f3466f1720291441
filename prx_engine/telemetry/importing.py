"""Importing telemetry: lines in, recorded batches out; what is wrong is reported beside what was taken."""

from __future__ import annotations

import gc
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Final, NamedTuple, Protocol

from prx_engine.clock import Clock
from prx_engine.dimensions import DIMENSIONS
from prx_engine.errors import InvalidInput, PrxError
from prx_engine.records import ImportReport, Rejected
from prx_engine.scoring.metrics import SessionUpdate, combine
from prx_engine.scoring.scores import RAW_FIELDS, Scorer
from prx_engine.sessions.recording import Recorded, Recorder
from prx_engine.store import Store
from prx_engine.telemetry.distinct import Distinct
from prx_engine.telemetry.formats import Found, Piece
from prx_engine.telemetry.naming import Naming
from prx_engine.telemetry.prx import chat_sessions
from prx_engine.telemetry.reading import LONGEST_LINE, Line, decompressed, is_sqlite, lines_of, numbered
from prx_engine.telemetry.registry import FileReader

_BATCH: Final = 500
"""Updates of one transaction: enough to make its cost small, few enough to let others write in between."""

_BATCH_BYTES: Final = 8 * 1024 * 1024
"""Bytes of the lines of one transaction, which are in memory until it is over."""

_SHOWN: Final = 20
"""Refused lines that a report has; the others are counted."""

_SHOWN_BYTES: Final = 4096
"""Bytes of a refused line that a report has."""

_UNNAMED: Final = "?"
"""Stands for the session of a piece while its other fields are checked."""

OnRejected = Callable[[int, bytes], object]


def import_lines(
    name: str,
    lines: Iterable[bytes],
    reader: FileReader,
    target: Target,
    on_rejected: OnRejected | None = None,
) -> ImportReport:
    """Record what lines tell about sessions.

    Args:
        name: of the file, for messages.
        lines: raw lines.
        reader: of their format.
        target: where it goes.
        on_rejected: called with number and raw bytes of each line that is refused.

    Raises:
        StoreError: if the database fails; what was recorded before stays.
    """
    intake = Intake(name, target, on_rejected)
    for chunk in chunks(numbered(lines)):
        intake.take(chunk, reader)
    return intake.finish(reader.format_name)


def import_file(
    path: Path,
    name: str,
    reader: FileReader,
    target: Target,
    on_rejected: OnRejected | None = None,
    on_progress: Callable[[int], object] | None = None,
) -> ImportReport:
    """Record what a file tells about sessions, whatever its compression and layout.

    Args:
        path: the file.
        name: of the file, for messages.
        reader: of its format.
        target: where it goes.
        on_rejected: called with number and raw bytes of each line that is refused.
        on_progress: called now and then with the number of bytes of the file that have been read.

    Raises:
        OSError: if the file cannot be read.
        StoreError: if the database fails; what was recorded before stays.
    """
    intake = Intake(name, target, on_rejected)
    with open(path, "rb") as file:
        try:
            for chunk in chunks(contents(path, file)):
                intake.take(chunk, reader)
                if on_progress is not None:
                    on_progress(file.tell())
        except InvalidInput as error:
            intake.refuse(0, error)
    return intake.finish(reader.format_name)


def contents(path: Path, file: IO[bytes]) -> Iterator[Line]:
    """Return the lines of an opened file, or what stands for them.

    Raises:
        InvalidInput: if the file as a whole is damaged, or nothing that can be read.
    """
    if is_sqlite(file):
        yield from numbered(chat_sessions(path))
        return
    try:
        yield from lines_of(decompressed(file))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput(f"damaged: {error}") from None


def chunks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Return lines in lists of as many as fit in a transaction.

    Raises:
        Exception: that the lines end in, behind the lines before it.
    """
    chunk: list[Line] = []
    size = 0
    try:
        for line in lines:
            chunk.append(line)
            size += len(line.content)
            if len(chunk) >= _BATCH or size >= _BATCH_BYTES:
                yield chunk
                chunk, size = [], 0
    except InvalidInput:
        yield chunk
        raise
    yield chunk


class LineReader(Protocol):
    """Anything that finds something in lines."""

    def read(self, line: bytes) -> Iterable[Found]:
        """Return what a line tells about sessions."""
        ...


class Target(NamedTuple):
    """Where what is imported goes.

    Attributes:
        store: the database.
        recorder: takes the updates.
        scorer: tells which dimensions an update has data for.
        clock: the engine's clock.
    """

    store: Store
    recorder: Recorder
    scorer: Scorer
    clock: Clock


class _Entry(NamedTuple):
    """One thing found in a line.

    Attributes:
        line: where it was found; its content may be shortened.
        update: of a session; None if that is not known yet, if there is nothing to record, or if it is wrong.
        piece: from which the update was made, or will be; None if the line was an update.
        error: what is wrong with it.
    """

    line: Line
    update: SessionUpdate | None = None
    piece: Piece | None = None
    error: PrxError | None = None


class _Stale(Exception):
    """Somebody else has recorded this batch already."""


class Intake:
    """Takes the lines of one file, records what they tell in batches, and keeps account of it.

    Args:
        name: of the file, for messages.
        target: where it goes.
        on_rejected: called with number and raw bytes of each line that is refused, in their order.
    """

    def __init__(self, name: str, target: Target, on_rejected: OnRejected | None = None) -> None:
        self._name = name
        self._target = target
        self._naming = Naming(target.store)
        self._on_rejected = on_rejected
        self._batch: list[_Entry] = []
        self._bytes = 0
        self._lines = 0
        self._recorded = 0
        self._waiting = 0
        self._refused = 0
        self._sessions = Distinct()
        self._without_experiment = Distinct()
        self._missing = set(range(len(DIMENSIONS)))
        self._telling = frozenset().union(*RAW_FIELDS)
        self._rejected: list[Rejected] = []
        self._last_refused: Line | None = None

    def rename(self, name: str) -> None:
        """Go on with another file."""
        self._name = name
        self._last_refused = None

    def take(self, chunk: Sequence[Line], reader: LineReader) -> None:
        """Read lines, and record what they tell as soon as that is enough for a transaction."""
        self._lines += len(chunk)
        with _uncollected():
            for line in chunk:
                self._take_line(line, reader)
            self._bytes += sum([len(line.content) for line in chunk])
            self._record_if_full()

    def _take_line(self, line: Line, reader: LineReader) -> None:
        # One object for all that is found in the line: that tells it from others of the same number.
        kept = line
        if self._on_rejected is None and len(line.content) > _SHOWN_BYTES:
            kept = line._replace(content=line.content[:_SHOWN_BYTES])
        try:
            if line.cut:
                raise InvalidInput(f"longer than {LONGEST_LINE // 1024 // 1024} MiB")
            for found in reader.read(line.content):
                self._batch.append(_entry(kept, found))
                if len(self._batch) >= _BATCH:
                    self.record()
        except InvalidInput as error:
            self._batch.append(_Entry(kept, error=error))

    def refuse(self, number: int, error: PrxError) -> None:
        """Report a line, or a whole file, that cannot be read at all."""
        self._lines += 1
        self._batch.append(_Entry(Line(number, b""), error=error))
        self._record_if_full()

    def record(self, alongside: Callable[[], bool] | None = None, settle: datetime | None = None) -> bool:
        """Record what has been taken, in one transaction.

        Args:
            alongside: run first within the transaction; False gives the batch up.
            settle: what waits for its session since then or longer gets that of its trace.

        Returns:
            Whether it was recorded.
        """
        batch, self._batch, self._bytes = self._batch, [], 0
        if not batch and alongside is None and settle is None:
            return True
        try:
            with _uncollected():
                results = self._target.store.write(lambda: self._write(batch, alongside, settle))
        except _Stale:
            return False
        self._note(results)
        return True

    def finish(self, format_: str | None) -> ImportReport:
        """Record what is left, and return the account."""
        self.record()
        self.settle(timedelta(0))
        self._target.store.write(lambda: self._naming.forget(self._target.clock.now()))
        return self.report(format_)

    def settle(self, patience: timedelta) -> None:
        """Record what has waited for its session for so long, if its trace has one session."""
        since = self._target.clock.now() - patience
        if self._target.store.read(lambda: self._naming.waits(since)):
            before = self._recorded
            self.record(settle=since)
            self._waiting = max(0, self._waiting - (self._recorded - before))

    def report(self, format_: str | None) -> ImportReport:
        """Return the account of what has been recorded so far, in a file of some format."""
        return ImportReport(
            lines=self._lines,
            recorded=self._recorded,
            sessions=self._sessions.count(),
            without_experiment=self._without_experiment.count(),
            missing_dimensions=[DIMENSIONS[d] for d in sorted(self._missing)],
            rejected=list(self._rejected),
            refused=self._refused,
            waiting=self._waiting,
            format=format_,
        )

    def _record_if_full(self) -> None:
        if len(self._batch) >= _BATCH or self._bytes >= _BATCH_BYTES:
            self.record()

    def _write(
        self, batch: Sequence[_Entry], alongside: Callable[[], bool] | None, settle: datetime | None
    ) -> list[tuple[_Entry, Recorded | None]]:
        """Record a batch; return what became of each entry, None where there was nothing to record."""
        if alongside is not None and not alongside():
            raise _Stale
        entries = list(batch)
        pieces = [entry.piece for entry in batch if entry.piece is not None]
        if pieces or settle is not None:
            entries = self._with_sessions(batch, pieces, settle)
        results = iter(
            self._target.recorder.record_within([e.update for e in entries if e.update is not None])
        )
        return [(entry, next(results) if entry.update is not None else None) for entry in entries]

    def _with_sessions(
        self, batch: Sequence[_Entry], pieces: Sequence[Piece], settle: datetime | None
    ) -> list[_Entry]:
        """Return the entries of a batch with their sessions, and those that need not wait any more."""
        named, released = self._naming.sessions(pieces, self._target.clock.now(), settle)
        sessions = iter(named)
        entries = [entry if entry.piece is None else _named(entry, next(sessions)) for entry in batch]
        line = batch[-1].line if batch else Line(0, b"")
        entries += [_named(_Entry(line, piece=piece), piece.session_id) for piece in released]
        starts = _starts(entries)
        return [_started(entry, starts) for entry in entries]

    def _note(self, results: Sequence[tuple[_Entry, Recorded | None]]) -> None:
        recorded = [(e.update, result) for e, result in results if e.update and result and not result.error]
        self._recorded += len(recorded)
        self._sessions.update([update.session_id for update, _ in recorded])
        self._without_experiment.update([u.session_id for u, result in recorded if result.without_experiment])
        self._note_dimensions([update for update, _ in recorded])
        for entry, result in results:
            error = result.error if result else entry.error
            if error is not None:
                self._reject(entry.line, error)
            elif result is None:
                self._waiting += bool(entry.piece and entry.piece.fields)

    def _note_dimensions(self, updates: Iterable[SessionUpdate]) -> None:
        for update in updates:
            if not self._missing:
                return
            if not self._telling.isdisjoint(update.report):
                scores = self._target.scorer.scores(combine([update.report]))
                self._missing = {d for d in self._missing if scores[d] is None}
                self._telling = frozenset().union(*(RAW_FIELDS[d] for d in self._missing))

    def _reject(self, line: Line, error: PrxError) -> None:
        if len(self._rejected) < _SHOWN:
            problem, text = str(error), line.content[:_SHOWN_BYTES].decode("utf-8", "replace")
            self._rejected.append(Rejected(file=self._name, line=line.number, problem=problem, text=text))
        if line is self._last_refused:  # several values of a document may be of one line
            return
        self._last_refused = line
        self._refused += 1
        if self._on_rejected is not None:
            self._on_rejected(line.number, line.content)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the cycle collector from walking through a batch again and again: all of it is in use."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _entry(line: Line, found: Found) -> _Entry:
    if isinstance(found, SessionUpdate):
        return _Entry(line, update=found)
    if isinstance(found, InvalidInput):
        return _Entry(line, error=found)
    try:
        update = found.update(found.session_id or _UNNAMED)
    except InvalidInput as error:
        return _Entry(line, error=error)
    # A piece without fields is recorded by nobody: it only makes its session known by other names.
    return _Entry(line, update if found.session_id is not None and found.fields else None, found)


def _named(entry: _Entry, session_id: str | None) -> _Entry:
    """Return the entry with its update, now that its session is known."""
    if entry.update is not None or entry.piece is None or session_id is None or not entry.piece.fields:
        return entry
    return entry._replace(update=entry.piece.update(session_id))


def _starts(entries: Iterable[_Entry]) -> dict[str, datetime]:
    """Return the earliest start among the pieces of each session, for the order in a batch means nothing."""
    first: dict[str, datetime] = {}
    for entry in entries:
        if entry.update is not None and entry.piece is not None and entry.piece.at is not None:
            session = entry.update.session_id
            first[session] = min(first.get(session, entry.piece.at), entry.piece.at)
    return first


def _started(entry: _Entry, starts: Mapping[str, datetime]) -> _Entry:
    if entry.update is None:
        return entry
    start = starts.get(entry.update.session_id)
    if start is None or start == entry.update.started_at:
        return entry
    return entry._replace(update=entry.update._replace(started_at=start))
