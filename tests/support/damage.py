"""Databases that fail: removed, overwritten, emptied, held by somebody else."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from prx_engine import Engine


def remove(database: Path) -> None:
    """Remove a SQLite database with its log."""
    for path in (database, *(database.with_name(database.name + suffix) for suffix in ("-wal", "-shm"))):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(database: Path) -> Iterator[None]:
    """Hold the write lock of a SQLite database."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@contextlib.contextmanager
def broken(engine: Engine, database: Path, damage: str) -> Iterator[None]:
    """Damage the database under an open engine: ``removed``, ``garbage``, ``emptied`` or ``locked``."""
    if damage == "locked":
        with locked(database):
            yield
        return
    if damage == "removed":
        remove(database)
    else:
        engine.close()
        database.write_bytes(b"no database " * 1000 if damage == "garbage" else b"")
    yield


def statement(database: Path, sql: str, *parameters: object) -> int:
    """Change a SQLite database behind the engine's back; return the number of rows changed."""
    with contextlib.closing(sqlite3.connect(database)) as other, other:
        return other.execute(sql, parameters).rowcount
