"""Following telemetry: what files gain is recorded, and the place in each is kept in the same transaction.

So a process that is killed, at whatever moment, goes on where the database says; and since every record is
identified by its content (see ``formats``), even reading a file again from its start counts nothing twice.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from io import BufferedReader, FileIO
from pathlib import Path
from typing import IO, Final, NamedTuple

from prx_engine.configuration import TelemetrySettings, TelemetrySource
from prx_engine.errors import InvalidInput
from prx_engine.records import ImportReport
from prx_engine.telemetry.importing import Intake, Target, chunks, contents
from prx_engine.telemetry.naming import Naming
from prx_engine.telemetry.places import Place, has_telemetry, places
from prx_engine.telemetry.positions import Position, Positions, identity_of
from prx_engine.telemetry.reading import LONGEST_LINE, is_document, kind_of, numbered
from prx_engine.telemetry.registry import FileReader
from prx_engine.text import storable

_CHUNK_LINES: Final = 500
_CHUNK_BYTES: Final = 4 * 1024 * 1024
_BLOCK: Final = 1024 * 1024
_OPEN_FILES: Final = 64
"""Files that stay open: what is written to one just before it is rotated away and compressed is not lost."""

_LATE_POLLS: Final = 10
"""How often a file is looked at after it was rotated away, for its writer may still have it open."""

_PATIENCE: Final = timedelta(minutes=1)
"""How long a span waits for the one above it: it is written when it ends, after those below it."""

_TIDY_EVERY: Final = timedelta(hours=1)


class _Late(NamedTuple):
    """A file that was rotated away: where it is now, and where it was, or would have been, followed."""

    path: Path
    followed: Path
    source: TelemetrySource
    polls: int


class _Beside(NamedTuple):
    """A file in the folder of a followed one."""

    path: Path
    modified: int


class TelemetryFollower:
    """Follows sources of telemetry; ``poll`` records what is new. Not for several threads at once.

    Args:
        target: gives where it goes, under the present configuration.
        settings: gives the present configuration of telemetry.
        base: what relative paths are relative to.
        sources: what to follow; the sources of the configuration if not given.
    """

    def __init__(
        self,
        target: Callable[[], Target],
        settings: Callable[[], TelemetrySettings],
        base: Path,
        sources: Sequence[TelemetrySource] | None = None,
    ) -> None:
        self._target = target
        self._settings = settings
        self._base = base
        self._sources = sources
        self._unchanged: dict[Path, str] = {}
        self._foreign: dict[Path, str] = {}
        self._damaged: dict[Path, str] = {}
        self._current: dict[Path, str] = {}
        self._absent: dict[Path, int] = {}
        self._open: OrderedDict[str, FileIO] = OrderedDict()
        self._late: dict[str, _Late] = {}
        self._tidied: datetime | None = None
        self.is_behind = False
        """Whether the last poll had enough before all was recorded."""

    def poll(
        self, stop: Callable[[], bool] = lambda: False, enough: Callable[[], bool] = lambda: False
    ) -> ImportReport:
        """Record what the sources have gained since the last poll, of whatever process.

        Args:
            stop: asked between transactions; what is left then is for the next poll.
            enough: asked behind each transaction; the rest of a file that has lines to go on from is then
                for the next poll, and ``is_behind`` tells so. Each file gets on by one transaction anyway.

        Raises:
            StoreError: if the database fails; what was recorded before stays.
        """
        settings, target = self._settings(), self._target()
        run = _Run(self, settings, target, stop, enough)
        self.is_behind = False
        for source in self._present_sources():
            for place in places(source.path, self._base):
                if stop():
                    return run.report()
                self._follow(run, place, source)
        self._follow_late(run)
        run.settle()
        self._tidy(target)
        return run.report()

    def absent(self) -> list[str]:
        """Return the sources that no file fits at present."""
        return [source.path for source in self._present_sources() if not self._is_there(source)]

    def _is_there(self, source: TelemetrySource) -> bool:
        return any(place.path.exists() for place in places(source.path, self._base))

    def _present_sources(self) -> Sequence[TelemetrySource]:
        return self._settings().sources if self._sources is None else self._sources

    def close(self) -> None:
        """Close the files that are open."""
        while self._open:
            self._open.popitem()[1].close()

    def _follow(self, run: _Run, place: Place, source: TelemetrySource) -> None:
        path = place.path
        try:
            status = os.stat(path)
        except OSError:
            self._rotated(run, path, "", source)
            return
        identity, version = identity_of(status), _version(path, status)
        if place.named:  # in a folder, rotated files are found by themselves
            self._rotated(run, path, identity, source)
        if self._unchanged.get(path) == version or self._foreign.get(path) == version:
            return
        if (
            not place.named
            and not run.positions.of_file(identity, _text(path)).stored
            and not has_telemetry(path)
        ):
            self._foreign[path] = version
            return
        if not os.access(path, os.R_OK):
            run.refuse(path, "cannot be read: no permission")
            self._unchanged[path] = version
            return
        file = self._opened(identity, path)
        if file is not None and run.read(file, path, identity, version, source):
            self._unchanged[path] = version

    def _rotated(self, run: _Run, path: Path, identity: str, source: TelemetrySource) -> None:
        """Remember the files that were followed under a path which now is another file's, or nobody's."""
        before = self._current.get(path)
        if before == identity:
            return
        self._current[path] = identity
        earlier = [before] if before else run.positions.earlier(_text(path), identity)
        since = [self._absent.pop(path)] if path in self._absent else []
        if not identity:
            self._absent[path] = time.time_ns()
        if not earlier and not since:
            return
        beside = _beside(path)
        for other in earlier:
            rotated = beside.get(other)
            self._late[other] = _Late(rotated.path if rotated else path, path, source, _LATE_POLLS)
            modified = rotated.modified if rotated else self._modified(other)
            since += [] if modified is None else [modified]
        # Files that came and went between two polls are no older than the one that was followed before.
        for other, file in sorted(beside.items(), key=lambda item: item[1].modified):
            known = other == identity or other in self._late
            if since and file.modified >= min(since) and not known and has_telemetry(file.path):
                self._late[other] = _Late(file.path, path, source, polls=1)

    def _modified(self, identity: str) -> int | None:
        """Return when an open file was modified, for it may have no name any more."""
        file = self._open.get(identity)
        return None if file is None else os.fstat(file.fileno()).st_mtime_ns

    def _follow_late(self, run: _Run) -> None:
        """Read the ends of files that were rotated away."""
        for identity, late in list(self._late.items()):
            file = self._opened(identity, late.path)
            if file is not None:
                run.read(file, late.path, identity, None, late.source, late.followed)
            self._late[identity] = late._replace(polls=late.polls - 1)
            if late.polls <= 1:
                del self._late[identity]
                self._close(identity)

    def _opened(self, identity: str, path: Path) -> FileIO | None:
        """Return a file; None if its name has become another file's, or nobody's."""
        file = self._open.get(identity)
        if file is None:
            try:
                file = FileIO(path)
            except OSError:
                return None
            if identity_of(os.fstat(file.fileno())) != identity:
                file.close()
                return None
            self._open[identity] = file
        self._open.move_to_end(identity)
        if len(self._open) > _OPEN_FILES:
            self._close(next(iter(self._open)))
        return file

    def _close(self, identity: str) -> None:
        file = self._open.pop(identity, None)
        if file is not None:
            file.close()

    def is_settled(self, path: Path, version: str) -> bool:
        """Tell whether a file that could not be read as a whole is the same as at the last poll."""
        settled = self._damaged.get(path) == version
        self._damaged[path] = version
        return settled

    def _tidy(self, target: Target) -> None:
        now = target.clock.now()
        if self._tidied is None or now - self._tidied > _TIDY_EVERY:
            target.store.write(lambda: Naming(target.store).forget(now))
            self._tidied = now


class _Run:
    """One poll."""

    def __init__(
        self,
        follower: TelemetryFollower,
        settings: TelemetrySettings,
        target: Target,
        stop: Callable[[], bool],
        enough: Callable[[], bool],
    ) -> None:
        self._follower = follower
        self._settings = settings
        self._target = target
        self._stop = stop
        self._enough = enough
        self._intake = Intake("", target)
        self.positions = Positions(target.store)

    def refuse(self, path: Path, problem: str) -> None:
        """Report a file."""
        self._intake.rename(_text(path))
        self._intake.refuse(0, InvalidInput(problem))
        self._intake.record()

    def settle(self) -> None:
        """Give up waiting for the parents of spans that should have come by now."""
        self._intake.settle(_PATIENCE)

    def report(self) -> ImportReport:
        """Return the account of the poll."""
        return self._intake.report(None)

    def read(
        self,
        opened: FileIO,
        path: Path,
        identity: str,
        version: str | None,
        source: TelemetrySource,
        followed: Path | None = None,
    ) -> bool:
        """Record what a file has gained; tell whether all of it was read.

        Args:
            opened: the file.
            path: where it is.
            identity: of the file.
            version: of its content, if that is known.
            source: the source that it is of.
            followed: under which path it is followed, if that is another one.
        """
        self._intake.rename(_text(path))
        stored = self.positions.of_file(identity, _text(followed or path))
        # A buffer of its own: one that outlives the poll would hide that the file was written anew.
        file = BufferedReader(opened)
        try:
            status = os.fstat(file.fileno())
            if _is_whole(file):
                return self._whole(file, path, stored, version or _version(path, status), source)
            return self._lines(file, stored, source, anew=not stored.fits(file, status.st_size))
        finally:
            file.detach()

    def _lines(self, file: IO[bytes], stored: Position, source: TelemetrySource, *, anew: bool) -> bool:
        """Record the lines behind a position; behind the beginning if the file was written anew."""
        position = replace(stored, offset=0, line=0, reader={}) if anew else stored
        while True:
            chunk = list(_complete_lines(file, position.offset))
            if not chunk:
                return True
            if self._stop():
                return False
            reader = FileReader(source.format, self._settings, position.reader)
            self._intake.take(list(numbered((content for content, _ in chunk), position.line + 1)), reader)
            after = position.moved(file, chunk[-1][1], position.line + len(chunk), reader.state())
            if not self._commit(stored, after):
                return False
            stored = position = replace(after, stored=True)
            if self._enough():
                self._follower.is_behind = True
                return False

    def _whole(
        self, file: IO[bytes], path: Path, stored: Position, version: str, source: TelemetrySource
    ) -> bool:
        """Record a file that has no lines to go on from: a compressed one, a document, a database."""
        if stored.version == version:
            return True
        reader = FileReader(source.format, self._settings)
        file.seek(0)
        try:
            for lines in chunks(contents(path, file)):
                self._intake.take(lines, reader)
                if self._stop():
                    return False
        except InvalidInput as error:
            # It may be half written: only one that stays as it is is damaged.
            if not self._follower.is_settled(path, version):
                return False
            self._intake.refuse(0, error)
        return self._commit(stored, replace(stored, version=version))

    def _commit(self, before: Position, after: Position) -> bool:
        now = self._target.clock.now()
        return self._intake.record(lambda: self.positions.advance(before, after, now))


def _text(path: Path) -> str:
    """Return a path as a database can hold it: names of files may be no text at all."""
    return storable(str(path))


def _version(path: Path, status: os.stat_result) -> str:
    """Return what changes whenever the content of a file does."""
    parts = [identity_of(status), status.st_size, status.st_mtime_ns]
    if path.suffix == ".db":
        with suppress(OSError):
            log = os.stat(f"{path}-wal")  # what is new in a database may still be beside it
            parts += [log.st_size, log.st_mtime_ns]
    return ":".join(map(str, parts))


def _beside(path: Path) -> dict[str, _Beside]:
    """Return, by their identities, the files beside one whose names begin alike."""
    found: dict[str, _Beside] = {}
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if entry.name.startswith(path.stem) and entry.name != path.name and entry.is_file():
                status = entry.stat()
                found[identity_of(status)] = _Beside(Path(entry.path), status.st_mtime_ns)
    return found


def _is_whole(file: IO[bytes]) -> bool:
    file.seek(0)
    opening = file.read(16)
    file.seek(0)
    if kind_of(opening) != "plain":
        return True
    if opening[:1] not in (b"{", b"["):
        return False
    head = [line for line in (file.readline(LONGEST_LINE + 1) for _ in range(10)) if line.endswith(b"\n")]
    return is_document(head)


def _complete_lines(file: IO[bytes], offset: int) -> Iterator[tuple[bytes, int]]:
    """Return up to a chunk of complete lines from an offset on, each with the offset behind it."""
    file.seek(offset)
    start = offset
    for _ in range(_CHUNK_LINES):
        line = file.readline(LONGEST_LINE + 1)
        offset += len(line)
        if not line.endswith(b"\n"):
            if len(line) <= LONGEST_LINE:
                return
            rest = _rest_of_line(file)
            if rest is None:
                return
            offset += rest
            line += b"\n"
        yield line, offset
        if offset - start >= _CHUNK_BYTES:
            return


def _rest_of_line(file: IO[bytes]) -> int | None:
    """Return the number of bytes up to the end of a line and pass over them; None if it has no end yet."""
    passed = 0
    while block := file.readline(_BLOCK):
        passed += len(block)
        if block.endswith(b"\n"):
            return passed
    return None
