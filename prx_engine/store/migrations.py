"""Schema versions: forward only, in one transaction, after a backup copy."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import peewee

from prx_engine.errors import NewerSchema, StoreError
from prx_engine.store.locks import Lock
from prx_engine.store.schema import SCHEMA_VERSION, TABLES, SchemaInfo

if TYPE_CHECKING:
    from prx_engine.store.database import Store

MIGRATIONS: Final[dict[int, Callable[[Store], None]]] = {}
"""Version → the step that leads from it to the next one."""


class _PostgresqlSchema(peewee.SchemaManager):
    """Leaves out what only SQLite understands."""

    def create_table(self, safe: bool = True, **options: Any) -> None:
        """Create the table."""
        statement, parameters = self._create_table(safe=safe, **options).query()  # type: ignore[attr-defined]
        self.database.execute_sql(statement.removesuffix(" WITHOUT ROWID"), parameters)


def migrate(store: Store, *, create: bool) -> None:
    """Bring the database to this release's schema; make it if it is empty and ``create``.

    Raises:
        StoreError: if it is empty, unless ``create``.
        NewerSchema: if a newer release has written it.
    """
    version = _version(store)
    if version == SCHEMA_VERSION:
        return
    if version is None and not create:
        raise StoreError(
            f"no experiments in {store.name}; creating an experiment or recording a session makes them"
        )
    store.write(lambda: _migrate_locked(store))


def _migrate_locked(store: Store) -> None:
    store.hold(Lock.SCHEMA)
    version = _version(store)
    if version is None:
        for model in TABLES:
            manager = _PostgresqlSchema if store.postgresql else peewee.SchemaManager
            manager(model, database=store.database).create_all(safe=True)
        store.execute(SchemaInfo.insert(id=1, version=SCHEMA_VERSION))
        return
    if version > SCHEMA_VERSION:
        raise NewerSchema(
            f"{store.name}: written by a newer release (schema {version}, this one knows"
            f" {SCHEMA_VERSION}); upgrade prx-experiments"
        )
    if version < SCHEMA_VERSION:
        _back_up(store, version)
        for step in range(version, SCHEMA_VERSION):
            MIGRATIONS[step](store)
        store.execute(SchemaInfo.update(version=SCHEMA_VERSION))


def _version(store: Store) -> int | None:
    if not store.database.table_exists(SchemaInfo._meta.table_name):
        return None
    row = store.row(SchemaInfo.select(SchemaInfo.version))
    return row["version"] if row else None


def _back_up(store: Store, version: int) -> None:
    if store.postgresql:
        return
    source = Path(store.database.database)
    target = source.with_name(f"{source.name}.schema-{version}.backup")
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    target.chmod(0o600)
    # A second connection: the present one is inside the migration's transaction.
    with closing(sqlite3.connect(source)) as present, closing(sqlite3.connect(target)) as copy:
        present.backup(copy)
