"""Noticing that somebody else has written, without reading anything."""

from __future__ import annotations

import os
from typing import Any

import peewee

from prx_engine.errors import StoreError
from prx_engine.store.database import Store, connect, sqlite_path
from prx_engine.text import shown


class ChangeWatch:
    """Tells whether the database has changed since the last question.

    On SQLite it owns one connection that lives as long as the watch: ``data_version`` is told to
    each connection relative to what that connection saw before, so a fresh one never sees a change.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: object = None
        self._path = None if store.postgresql else sqlite_path(store.url)
        self._file = self._identity()
        self._database = None if store.postgresql else connect(store.url)

    def changed(self) -> bool:
        """Tell whether anything was written since the last call; the first call says yes.

        Raises:
            StoreError: if the database cannot be asked, or its file is gone or another one now.
        """
        token = self._token()
        changed = bool(token != self._seen)
        self._seen = token
        return changed

    def _token(self) -> object:
        database = self._database
        if database is None:
            return self._store.often(_snapshot)
        if self._identity() != self._file:
            # SQLite would go on reading the deleted file, and nothing would ever change in it.
            raise StoreError(f"database {shown(str(self._path))}: its file was removed or replaced")
        return self._store.translated(lambda: database.execute_sql("PRAGMA data_version").fetchone())

    def _identity(self) -> tuple[int, int] | None:
        """Return what tells the present file from another one of the same name; None if there is none."""
        if self._path is None:
            return None
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def close(self) -> None:
        """Close the watch's own connection."""
        if self._database is not None and not self._database.is_closed():
            self._database.close()


def _snapshot(_: Store) -> Any:
    return peewee.Select([], [peewee.SQL("pg_current_snapshot()::text")])
