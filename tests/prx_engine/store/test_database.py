"""The store: one durable file, write transactions that wait their turn, errors in one line."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.errors import KeyTaken, LayerOccupied, PrxError, StoreBusy, StoreError
from prx_engine.store import Store, default_database, is_postgresql, without_password
from prx_engine.store.schema import Experiments
from tests.support.clock import ManualClock
from tests.support.damage import locked, remove, statement
from tests.support.engines import OpenEngine

ORDINARY_USER = 65_534


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(str(tmp_path / "prx.db"))
    yield store
    store.close()


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Permissions mean nothing to root: be somebody else for the test."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(ORDINARY_USER)
    try:
        yield
    finally:
        os.seteuid(0)


def one_line(error: PrxError) -> str:
    text = str(error)
    assert "\n" not in text
    assert len(text) < 250
    return text


def refusal(url: object, **options: Any) -> str:
    with pytest.raises(StoreError) as caught:
        Store(str(url), **options)
    return one_line(caught.value)


def session_count(database: Path) -> int:
    with contextlib.closing(sqlite3.connect(database)) as other:
        return int(other.execute("SELECT count(*) FROM sessions").fetchone()[0])


def test_sqlite_is_opened_durable(store: Store) -> None:
    pragmas = ("journal_mode", "foreign_keys", "synchronous")
    values = [store.database.execute_sql(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    assert values == ["wal", 1, 2]


def test_nobody_else_may_read_the_files(store: Store, tmp_path: Path) -> None:
    store.write(lambda: store.execute(Experiments.delete()))
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["prx.db", "prx.db-shm", "prx.db-wal"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_names_of_databases(tmp_path: Path) -> None:
    for url in (f"{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"):
        Store(url).close()
    assert {path.name for path in tmp_path.iterdir() if path.suffix == ".db"} == {"a.db", "b.db"}
    assert is_postgresql("postgresql://host/db")
    assert is_postgresql("postgres://host/db")
    assert not is_postgresql("/tmp/postgresql://")


def test_the_default_database_is_in_the_users_data_folder(empty_home: Path) -> None:
    path = Path(default_database())
    assert path.is_relative_to(empty_home)
    assert (path.parent.name, path.name) == ("openprx", "experiments.db")


def test_the_default_folder_is_made_and_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prx_engine.store.database.default_database", lambda: str(tmp_path / "d" / "e.db"))
    Store(str(tmp_path / "d" / "e.db")).close()
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    assert refusal(tmp_path).endswith(f"{tmp_path.name}: a folder, not a file")


def test_an_unknown_scheme_is_refused() -> None:
    assert refusal("mysql://host/db") == (
        "database mysql://host/db: unknown scheme; give a path, sqlite:///PATH or postgresql://…"
    )


def test_a_missing_database_is_not_made_by_reading(tmp_path: Path) -> None:
    text = refusal(tmp_path / "x.db", create=False)
    assert text.startswith("no database at ")
    assert text.endswith("creating an experiment or recording a session makes one")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none" / "x.db").endswith(": No such file or directory")


def test_a_file_of_something_else_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("<html>" * 1000)
    assert "not a database of experiments, or damaged" in refusal(tmp_path / "x.db")
    assert (tmp_path / "x.db").read_text() == "<html>" * 1000


def test_a_folder_that_may_not_be_written_is_named(ordinary_user: None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o500)
        assert refusal(Path(folder) / "x.db").endswith("x.db: Permission denied")


def test_a_folder_that_may_not_be_entered_is_named(ordinary_user: None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o000)
        assert refusal(Path(folder) / "x.db").endswith("x.db: Permission denied")
        os.chmod(folder, 0o700)


def test_a_database_that_may_not_be_written_says_so(ordinary_user: None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        with Engine.open(path, config=Path(folder) / "none.toml") as engine:
            engine.record("s", tokens=1)
        path.chmod(0o400)
        os.chmod(folder, 0o500)
        with (
            pytest.raises(StoreError) as caught,
            Engine.open(path, config=Path(folder) / "none.toml") as engine,
        ):
            engine.record("s", tokens=2)
        os.chmod(folder, 0o700)
        assert (
            "readonly" in one_line(caught.value)
            or "read-only" in one_line(caught.value)
            or "unable to open" in one_line(caught.value)
        )


def test_a_full_disk_is_named_and_nothing_is_half_written(engine: Engine, tmp_path: Path) -> None:
    engine.record("before", tokens=1)
    database = engine._store.database
    pages = database.execute_sql("PRAGMA page_count").fetchone()[0]
    database.execute_sql(f"PRAGMA max_page_count = {pages}")
    lines = [f'{{"session_id": "{i}-{"x" * 480}", "thumbs_up": 1}}'.encode() for i in range(400)]
    with pytest.raises(StoreError, match="the disk is full; nothing was written"):
        engine.import_lines(lines)
    database.execute_sql("PRAGMA max_page_count = 1000000")
    engine.record("after", tokens=1)
    assert engine.verify().problems == []


def test_writing_waits_for_the_other_writer(engine: Engine, tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "prx.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(1) as pool:
            recorded = pool.submit(recorded_in_a_thread, engine)
            assert not recorded.done()
            other.execute("COMMIT")
            recorded.result(timeout=20)
    assert session_count(tmp_path / "prx.db") == 1


def recorded_in_a_thread(engine: Engine) -> None:
    try:
        engine.record("s", tokens=1)
    finally:
        engine.close()


def test_work_is_repeated_while_the_database_is_busy(store: Store) -> None:
    attempts = []

    def work() -> str:
        attempts.append(1)
        if len(attempts) < 4:
            raise sqlite3.OperationalError("database is locked")
        return "done"

    assert store.write(work) == "done"
    assert len(attempts) == 4


def test_a_database_that_stays_busy_is_named(impatient: None, engine: Engine, tmp_path: Path) -> None:
    with locked(tmp_path / "prx.db"):
        with pytest.raises(StoreBusy) as caught:
            engine.record("s", tokens=1)
        assert one_line(caught.value).endswith("busy for too long; another process holds it, try again")
        assert engine.experiments() == []  # readers do not wait
    engine.record("s", tokens=1)


def test_an_error_inside_a_write_undoes_all_of_it(store: Store) -> None:
    def work() -> None:
        store.insert_new(Experiments, ("experiment_id",), [])
        store.database.execute_sql("INSERT INTO sessions (session_id, started_at) VALUES ('s', 't')")
        raise RuntimeError("agent failed")

    with pytest.raises(RuntimeError, match="agent failed"):
        store.write(work)
    assert session_count(Path(store.url)) == 0


def test_the_constraint_allows_one_active_experiment_a_layer(engine: Engine, tmp_path: Path) -> None:
    engine.create_experiment("L2", "t", hypothesis="h")
    ended = engine.create_experiment("L1", "t", hypothesis="h")
    engine.cancel(ended.experiment_id)
    engine.create_experiment("L1", "t", hypothesis="h")
    with pytest.raises(sqlite3.IntegrityError, match=r"UNIQUE constraint failed: experiments\.layer"):
        statement(
            tmp_path / "prx.db",
            "UPDATE experiments SET layer = 'L2' WHERE layer = 'L1' AND status = 'running'",
        )
    with pytest.raises(sqlite3.IntegrityError):
        statement(
            tmp_path / "prx.db", "UPDATE experiments SET status = 'evaluating' WHERE status = 'cancelled'"
        )
    statement(tmp_path / "prx.db", "UPDATE experiments SET layer = 'L2' WHERE status = 'cancelled'")


def test_an_experiment_that_came_in_between_is_named(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer is asked for before and after it is taken by somebody else."""
    first = engine.create_experiment("L2", "t", hypothesis="mine").experiment_id
    catalog = engine._catalog
    answers = iter([None])
    present = catalog.active_row
    monkeypatch.setattr(catalog, "active_row", lambda layer: next(answers, present(layer)))
    with pytest.raises(LayerOccupied, match=first[-8:]):
        engine.create_experiment("L2", "t", hypothesis="other")


def test_a_taken_key_is_an_error_of_its_own(store: Store) -> None:
    def insert() -> None:
        store.database.execute_sql("INSERT INTO sessions (session_id, started_at) VALUES ('s', 't')")

    store.write(insert)
    with pytest.raises(KeyTaken):
        store.write(insert)


def test_new_rows_are_counted_and_old_ones_left_alone(store: Store) -> None:
    from prx_engine.store.schema import Sessions

    columns = ("session_id", "started_at")
    assert store.write(lambda: store.insert_new(Sessions, columns, [("a", "1"), ("b", "1")])) == 2
    assert store.write(lambda: store.insert_new(Sessions, columns, [("b", "2"), ("c", "2")])) == 1
    rows = store.database.execute_sql("SELECT session_id, started_at FROM sessions ORDER BY 1").fetchall()
    assert rows == [("a", "1"), ("b", "1"), ("c", "2")]


def test_a_query_that_is_asked_often_is_made_once(store: Store) -> None:
    from prx_engine.store.schema import Sessions

    made = []

    def named(store: Store) -> Any:
        made.append(store)
        return (
            Sessions.select(Sessions.started_at)
            .where(store.among(Sessions.session_id))
            .order_by(Sessions.started_at)
        )

    store.write(lambda: store.insert_new(Sessions, ("session_id", "started_at"), [("a", "1"), ("'b", "2")]))
    assert store.often(named, store.texts(["a"])) == [("1",)]
    assert store.often(named, store.texts(["'b", "a", "c"])) == [("1",), ("2",)]
    assert store.often(named, store.texts([])) == []
    assert made == [store]


def test_a_removed_database_is_not_written_to(engine: Engine, tmp_path: Path) -> None:
    engine.record("s", tokens=1)
    remove(tmp_path / "prx.db")
    with pytest.raises(StoreError, match="it was there and is gone"):
        engine.record("t", tokens=1)


def test_a_replaced_database_is_used_from_then_on(
    engine: Engine, open_engine: OpenEngine, tmp_path: Path
) -> None:
    engine.record("s", tokens=1)
    other = open_engine(tmp_path / "other.db")
    other.record("t", tokens=1)
    other.close()
    remove(tmp_path / "prx.db")
    (tmp_path / "other.db").rename(tmp_path / "prx.db")
    engine.record("u", tokens=1)
    assert engine.verify().sessions == 2


def test_threads_share_one_engine(engine: Engine, clock: ManualClock) -> None:
    experiment = engine.create_experiment("L2", "t", hypothesis="h").experiment_id

    def work(worker: int) -> None:
        try:
            for i in range(10):
                engine.assign(f"{worker}-{i}")
                engine.record(f"{worker}-{i}", thumbs_up=1)
                engine.record("shared", source=f"{worker}-{i}", thumbs_up=1)
        finally:
            engine.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    record = engine.experiment(experiment)
    assert record.control_sessions + record.treatment_sessions == 60
    assert engine.verify().problems == []
    assert engine.fitness().fitness.sessions == 61


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_an_engine_survives_a_fork(engine: Engine) -> None:
    engine.create_experiment("L2", "t", hypothesis="h")
    engine.assign("before")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for i in range(20):
                engine.assign(f"child-{i}")
                engine.record(f"child-{i}", thumbs_up=1)
            os.write(writer, b"done")
            code = 0
        finally:
            engine.close()
            os._exit(code)
    for i in range(20):
        engine.record(f"parent-{i}", thumbs_up=1)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(reader, 4) == b"done"
    os.close(reader)
    os.close(writer)
    result = engine.verify()
    assert (result.sessions, result.problems) == (41, [])


def test_threads_keep_connections_of_their_own(store: Store) -> None:
    connections = [store.database.connection()]

    def look() -> None:
        connections.append(store.database.connection())
        store.close()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert connections[0] is not connections[1]


@pytest.mark.parametrize(
    ("url", "displayed"),
    [
        ("/home/me/p:w@h.db", "/home/me/p:w@h.db"),
        ("sqlite:////tmp/p:w@h.db", "sqlite:////tmp/p:w@h.db"),
        ("postgresql:///d", "postgresql:///d"),
        ("postgresql://u@h/d?sslmode=require", "postgresql://u@h/d?sslmode=require"),
        ("postgres://u:secret@[::1]:5432,h/d", "postgres://u:***@[::1]:5432,h/d"),
        ("postgresql://u:secret?x=1@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:secret:@h/d", "postgresql://u:***@h/d"),
        (
            "postgresql://u@h/d?password=secret&user=a&sslpassword=secret",
            "postgresql://u@h/d?password=***&user=a&sslpassword=***",
        ),
        ("postgresql://u@h/d?%50assword=secret", "postgresql://u@h/d?%50assword=***"),
        ("postgresql://u@h/d?secret", "postgresql://u@h/d?***"),
        ("postgresql://h:1/d?password=secret@secret", "postgresql://***"),
        ("postgresql://u:secret/secret@h/d", "postgresql://***@h/d"),
        ("postgresql://u:secret@secret@h/d", "postgresql://***@h/d"),
        ("postgresql://u:1/secret?x=secret@h/d", "postgresql://***"),
        ("postgresql://u:secret/secret?x", "postgresql://***"),
        ("postgresql://[::1/secret", "postgresql://***"),
        ("mysql://u:secret@h/d", "mysql://u:***@h/d"),
    ],
)
def test_a_password_is_not_shown(url: str, displayed: str) -> None:
    assert without_password(url) == displayed


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:secret@127.0.0.1:1/db",
        "postgresql://u:secret/secret@127.0.0.1:1/db",
        "postgresql://u:secret%zz@127.0.0.1:1/db",
        "postgresql://u@127.0.0.1:1/db?password=secret",
        "postgresql://u@127.0.0.1:1/db?secret",
        "postgresql://[::1/secret",
        "mysql://u:secret@127.0.0.1:1/db",
        "postgresql:/u:secret@127.0.0.1:1/db",
        "dbname=db password=secret",
    ],
)
def test_no_refusal_shows_a_password(url: str) -> None:
    assert "secret" not in refusal(url, create=False)


def test_a_malformed_url_is_refused() -> None:
    assert refusal("postgresql://u:p/w@h/d") == (
        "database postgresql://***@h/d: malformed; write it as postgresql://USER:PASSWORD@HOST:PORT/NAME,"
        " with special characters as %XX"
    )
