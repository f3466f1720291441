"""Schema versions: made once, migrated forward after a backup, newer ones refused."""

from __future__ import annotations

import contextlib
import sqlite3
import stat
from pathlib import Path

import pytest

from prx_engine import Engine
from prx_engine.errors import NewerSchema, StoreError
from prx_engine.store import Store, migrations
from prx_engine.store.database import connect
from prx_engine.store.schema import SCHEMA_VERSION
from tests.support.damage import statement

NEXT = SCHEMA_VERSION + 1


@pytest.fixture
def database(engine: Engine, tmp_path: Path) -> Path:
    """A database of the present version, with one session."""
    engine.record("s", tokens=1)
    engine.close()
    return tmp_path / "prx.db"


def version(database: Path) -> int:
    with contextlib.closing(sqlite3.connect(database)) as other:
        return int(other.execute("SELECT version FROM prx_schema").fetchone()[0])


def next_release(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Be the next release, whose migration runs a statement."""
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", NEXT)
    monkeypatch.setitem(
        migrations.MIGRATIONS, SCHEMA_VERSION, lambda store: store.database.execute_sql(step) and None
    )


def test_a_new_database_has_the_present_version(database: Path) -> None:
    assert version(database) == SCHEMA_VERSION


def test_opening_again_changes_nothing(database: Path) -> None:
    Store(str(database)).close()
    before = database.read_bytes()
    Store(str(database)).close()
    assert database.read_bytes() == before


def test_a_newer_schema_is_refused_and_left_alone(database: Path) -> None:
    statement(database, "UPDATE prx_schema SET version = ?", NEXT)
    with pytest.raises(NewerSchema) as caught:
        Store(str(database))
    assert f"written by a newer release (schema {NEXT}, this one knows {SCHEMA_VERSION})" in str(caught.value)
    assert str(caught.value).endswith("upgrade prx-experiments")
    assert version(database) == NEXT


def test_an_older_schema_is_migrated_after_a_backup(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    next_release(monkeypatch, "ALTER TABLE sessions ADD COLUMN mood TEXT")
    Store(str(database)).close()
    assert version(database) == NEXT
    with contextlib.closing(sqlite3.connect(database)) as other:
        assert other.execute("SELECT session_id, mood FROM sessions").fetchall() == [("s", None)]
    backup = database.with_name(f"prx.db.schema-{SCHEMA_VERSION}.backup")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert version(backup) == SCHEMA_VERSION
    with contextlib.closing(sqlite3.connect(backup)) as other:
        assert other.execute("SELECT session_id FROM sessions").fetchall() == [("s",)]


def test_a_migration_that_fails_changes_nothing(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(store: Store) -> None:
        store.database.execute_sql("DROP TABLE sessions")
        raise RuntimeError("half way")

    monkeypatch.setattr(migrations, "SCHEMA_VERSION", NEXT)
    monkeypatch.setitem(migrations.MIGRATIONS, SCHEMA_VERSION, fail)
    with pytest.raises(RuntimeError, match="half way"):
        Store(str(database))
    assert version(database) == SCHEMA_VERSION
    monkeypatch.undo()
    store = Store(str(database))
    assert store.database.execute_sql("SELECT count(*) FROM sessions").fetchone() == (1,)
    store.close()


def test_the_backup_is_private_from_its_first_byte(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    original = sqlite3.connect

    def watched(path: object, *arguments: object, **options: object) -> sqlite3.Connection:
        connection = original(path, *arguments, **options)  # type: ignore[call-overload]
        if str(path).endswith(".backup"):
            connection.execute("PRAGMA user_version").fetchone()
            modes.append(stat.S_IMODE(Path(str(path)).stat().st_mode))
        return connection  # type: ignore[no-any-return]

    monkeypatch.setattr("prx_engine.store.migrations.sqlite3.connect", watched)
    next_release(monkeypatch, "SELECT 1")
    Store(str(database)).close()
    assert modes == [0o600]


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_reading_an_empty_database_makes_nothing_in_it(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue("postgres_url") if kind == "postgresql" else str(tmp_path / "empty.db")
    if kind == "sqlite":
        Path(url).touch()
    with pytest.raises(StoreError) as caught:
        Store(url, create=False)
    assert str(caught.value) == (
        f"no experiments in database {url}; creating an experiment or recording a session makes them"
    )
    database = connect(url)
    assert database.get_tables() == []
    database.close()
    Store(url).close()
    Store(url, create=False).close()
