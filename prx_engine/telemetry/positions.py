"""The place up to which a followed file has been read, kept in the database beside what was read.

A file is known by its device and inode, and by its beginning: a file that was truncated and written anew, or
that got the inode of a removed one, begins differently.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from os import stat_result
from typing import IO, Any, Final

from prx_engine.store import Store
from prx_engine.store.schema import ImportPositions, dump_json, utc_text
from prx_engine.telemetry.formats import State

_HEAD: Final = 1024
"""Bytes of a beginning."""


@dataclass(frozen=True)
class Position:
    """A place in a file.

    Attributes:
        identity: device and inode.
        path: under which the file was found.
        offset: bytes that have been read.
        line: number of lines that have been read.
        reader: what the reader has to remember.
        head, head_length: digest and length of the beginning of the file.
        version: of a file that can only be read as a whole, when it was; None for one that grows by lines.
        stored: whether the database has it.
    """

    identity: str
    path: str
    offset: int = 0
    line: int = 0
    reader: State = field(default_factory=dict)
    head: str = ""
    head_length: int = 0
    version: str | None = None
    stored: bool = False

    def fits(self, file: IO[bytes], size: int) -> bool:
        """Tell whether a file is still the one, or grown from the one, in which this place is."""
        return size >= self.offset and _digest(file, self.head_length) == self.head

    def moved(self, file: IO[bytes], offset: int, line: int, reader: State) -> Position:
        """Return the place after further lines have been read."""
        length = min(offset, _HEAD)
        return replace(
            self, offset=offset, line=line, reader=reader, head=_digest(file, length), head_length=length
        )


class Positions:
    """Reads and writes positions.

    Args:
        store: the database.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def of_file(self, identity: str, path: str) -> Position:
        """Return the position in a file, the beginning if it is new."""
        row = self._store.row(ImportPositions.select().where(ImportPositions.identity == identity))
        if row is None:
            return Position(identity, path, head=_EMPTY)
        return Position(identity, path, row["bytes_read"], stored=True, **row["state"])

    def earlier(self, path: str, identity: str) -> list[str]:
        """Return the identities of other files that were followed under a path."""
        query = ImportPositions.select(ImportPositions.identity).where(ImportPositions.path == path)
        return [other for (other,) in self._store.tuples(query) if other != identity]

    def advance(self, before: Position, after: Position, now: datetime) -> bool:
        """Write a position, inside a write transaction; False if somebody else has moved it meanwhile."""
        query = ImportPositions.select(ImportPositions.bytes_read, ImportPositions.state)
        row = self._store.row(
            self._store.for_update(query.where(ImportPositions.identity == before.identity))
        )
        present = None if row is None else (row["bytes_read"], row["state"])
        if present != ((before.offset, _state(before)) if before.stored else None):
            return False
        self._store.insert_or_replace(
            ImportPositions,
            ("identity", "path", "bytes_read", "state", "updated_at"),
            [(after.identity, after.path, after.offset, dump_json(_state(after)), utc_text(now))],
        )
        return True


def identity_of(status: stat_result) -> str:
    """Return what tells a file from others, whatever its name."""
    return f"{status.st_dev}:{status.st_ino}"


def _state(position: Position) -> dict[str, Any]:
    names = ("line", "reader", "head", "head_length", "version")
    return {name: getattr(position, name) for name in names}


def _digest(file: IO[bytes], length: int) -> str:
    file.seek(0)
    return blake2b(file.read(length), digest_size=16).hexdigest()


_EMPTY: Final = blake2b(b"", digest_size=16).hexdigest()
