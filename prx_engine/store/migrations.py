"""Schema versions: forward only, in one transaction, after a backup copy."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import peewee

from prx_engine.errors import NewerSchema
from prx_engine.store.schema import SCHEMA_VERSION, TABLES, SchemaInfo

if TYPE_CHECKING:
    from prx_engine.store.database import Store

_ADVISORY_LOCK: Final = 0x707278

MIGRATIONS: Final[dict[int, Callable[[Store], None]]] = {}
"""Version → the step that leads from it to the next one."""


def migrate(store: Store) -> None:
    """Bring the database to this release's schema; make it if it is empty.

    Raises:
        NewerSchema: if a newer release has written it.
    """
    if _version(store) == SCHEMA_VERSION:
        return
    store.write(lambda: _migrate_locked(store))


def _migrate_locked(store: Store) -> None:
    if store.postgresql:
        store.database.execute_sql("SELECT pg_advisory_xact_lock(%s)", (_ADVISORY_LOCK,))
    version = _version(store)
    if version is None:
        for model in TABLES:
            peewee.SchemaManager(model, database=store.database).create_all(safe=True)
        store.execute(SchemaInfo.insert(id=1, version=SCHEMA_VERSION))
        return
    if version > SCHEMA_VERSION:
        raise NewerSchema(
            f"database {store.url}: written by a newer release (schema {version}, this one knows"
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
    # A second connection: the present one is inside the migration's transaction.
    with sqlite3.connect(source) as present, sqlite3.connect(target) as copy:
        present.backup(copy)
    target.chmod(0o600)
