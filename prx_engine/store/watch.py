"""Noticing that somebody else has written, without reading anything."""

from __future__ import annotations

from prx_engine.store.database import Store, connect


class ChangeWatch:
    """Tells whether the database has changed since the last question.

    It owns one connection that lives as long as the watch: SQLite's ``data_version`` is told to
    each connection relative to what that connection saw before, so a fresh one never sees a change.
    """

    def __init__(self, store: Store) -> None:
        self._database = connect(store.url)
        self._statement = (
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
            if store.postgresql
            else "PRAGMA data_version"
        )
        self._seen: object = None
        self._store = store

    def changed(self) -> bool:
        """Tell whether anything was written since the last call; the first call says yes.

        Raises:
            StoreError: if the database cannot be asked.
        """
        token = self._store.translated(lambda: self._database.execute_sql(self._statement).fetchone()[0])
        changed = bool(token != self._seen)
        self._seen = token
        return changed

    def close(self) -> None:
        """Close the connection."""
        if not self._database.is_closed():
            self._database.close()
