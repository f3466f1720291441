"""What a PostgreSQL server does that a file does not: it goes away, comes back, and runs writers at once."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from prx_engine import Engine
from prx_engine.errors import StoreError
from prx_engine.store import ChangeWatch, Store
from prx_engine.store.schema import Sessions
from tests.support.engines import OpenEngine
from tests.support.postgres import PostgresServer, PostgresUnavailable, running_server, terminate

COLUMNS = ("session_id", "started_at")


@pytest.fixture
def deployment(postgres_url: str, open_engine: OpenEngine) -> Engine:
    return open_engine(postgres_url)


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    store = Store(postgres_url)
    yield store
    store.close()


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that the test may stop."""
    try:
        with running_server() as server:
            yield server
    except PostgresUnavailable as error:
        pytest.skip(f"PostgreSQL tests skipped: {error}")


def add(store: Store, name: str) -> int:
    return store.insert_new(Sessions, COLUMNS, [(name, "2026-06-01T00:00:00.000000Z")])


def names(store: Store) -> list[str]:
    return sorted(name for (name,) in store.tuples(Sessions.select(Sessions.session_id)))


def test_a_transaction_is_repeated_on_a_new_connection(deployment: Engine) -> None:
    terminate(deployment.database)
    deployment.record("s", thumbs_up=1)
    terminate(deployment.database)
    assert deployment.assign("t", on_error="default")["L1"].reason != "error"
    terminate(deployment.database)
    assert deployment.verify().sessions == 2


def test_a_connection_may_be_lost_anywhere_in_a_transaction(store: Store) -> None:
    attempts = []

    def work() -> int:
        attempts.append(1)
        if len(attempts) == 1:
            terminate(store.url)
        added = add(store, "s")
        if len(attempts) == 2:
            terminate(store.url)
        elif len(attempts) == 3:
            terminate(store.url)
            raise ValueError("the work fails while nothing can be undone")
        return added

    assert store.write(work) == 1
    assert (len(attempts), names(store)) == (4, ["s"])


def test_single_questions_and_watches_get_a_new_connection(deployment: Engine) -> None:
    watch = deployment.watch()
    watch.changed()
    terminate(deployment.database)
    assert sum(deployment.counts().values()) == 0
    terminate(deployment.database)
    assert deployment.snapshots() == []
    terminate(deployment.database)
    assert not watch.changed()
    watch.close()


def test_a_server_may_restart(own_server: PostgresServer) -> None:
    with own_server.database() as url:
        store = Store(url)
        store.write(lambda: add(store, "before"))
        own_server.restart(seconds_away=1)
        store.write(lambda: add(store, "after"))
        assert names(store) == ["after", "before"]
        store.close()


def test_a_server_that_stays_away_is_named_soon(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prx_engine.store.database.RESTART_SECONDS", 0.5)
    store = Store(own_server.url())
    own_server.restart(seconds_away=4)
    began = time.monotonic()
    with pytest.raises(StoreError) as caught:
        store.write(lambda: add(store, "s"))
    with pytest.raises(StoreError):
        names(store)
    assert time.monotonic() - began < 10
    assert "\n" not in str(caught.value)
    store.close()


def test_a_commit_is_noticed_when_a_later_transaction_has_ended_before(store: Store) -> None:
    import psycopg

    watch = ChangeWatch(store)
    with psycopg.connect(store.url) as older, psycopg.connect(store.url) as later:
        insert = "INSERT INTO sessions (session_id, started_at) VALUES (%s, '')"
        older.execute(insert, ("older",))
        later.execute(insert, ("later",))
        later.commit()
        watch.changed()
        assert not watch.changed()
        older.commit()
        assert watch.changed()
    watch.close()


def test_an_operator_gets_a_turn_among_busy_writers(deployment: Engine) -> None:
    experiments = [
        deployment.create_experiment(layer, "t", hypothesis="h").experiment_id for layer in ("L1", "L2")
    ]
    ended = threading.Event()

    def write(worker: int) -> None:
        try:
            for i in itertools.count():
                if ended.is_set():
                    return
                deployment.assign(f"{worker}-{i}")
                deployment.record(f"{worker}-{i}", thumbs_up=1)
        finally:
            deployment.close()

    def operate() -> None:
        try:
            deployment.extend(experiments[0], hours=1)
            deployment.cancel(experiments[1], "enough")
        finally:
            deployment.close()

    with ThreadPoolExecutor(13) as pool:
        writers = [pool.submit(write, worker) for worker in range(12)]
        time.sleep(1)
        operator = pool.submit(operate)
        done, _ = wait([operator], timeout=5)
        ended.set()
        for future in (*writers, operator):
            future.result()
    assert done == {operator}
    assert deployment.verify().problems == []


def test_the_encoding_of_clients_is_of_no_importance(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    store = Store(postgres_url)
    store.write(lambda: add(store, "会话"))
    assert names(store) == ["会话"]
    store.close()


def test_a_database_of_another_encoding_is_refused(postgres_server: PostgresServer) -> None:
    with (
        postgres_server.database("ENCODING 'LATIN1' TEMPLATE template0") as url,
        pytest.raises(StoreError, match=r"its encoding is LATIN1, .*create it with ENCODING 'UTF8'"),
    ):
        Store(url)


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_half_a_character_is_refused(
    kind: str, request: pytest.FixtureRequest, open_engine: OpenEngine
) -> None:
    engine = open_engine(request.getfixturevalue("postgres_url") if kind == "postgresql" else None)
    with pytest.raises(StoreError, match="a text cannot be written as UTF-8"):
        engine._store.write(lambda: add(engine._store, "\ud800"))


def test_the_reason_why_there_is_no_connection_is_shown(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreError, match=r': FATAL:  database "none" does not exist$'):
        Store(postgres_server.url("none"))
    socket = f"/tmp/{'long' * 20}"
    with pytest.raises(StoreError, match=r"failed: No such file or directory$") as caught:
        Store(f"postgresql:///db?host={socket}")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("character", ["é", "会", "😀"])
def test_the_longest_names_are_stored_and_longer_ones_refused_alone(
    deployment: Engine, character: str
) -> None:
    # Of characters at random, since those of one kind are compressed.
    longest = random.Random(1).choices([chr(ord(character) + i) for i in range(64)], k=512)
    fitting = "".join(longest)[: 1000 // len(character.encode())]
    lines = [
        json.dumps({"session_id": name, "source": name, "cluster": name, "thumbs_up": 1}).encode()
        for name in (fitting, "".join(longest), "s")
    ]
    report = deployment.import_lines(lines)
    assert (report.recorded, report.refused) == (2, 1)
