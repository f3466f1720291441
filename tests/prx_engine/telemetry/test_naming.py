"""Two processes that import related files at once find the same sessions as one after the other."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from prx_engine.store import Store
from prx_engine.store.schema import SessionKeys, WaitingPieces
from prx_engine.telemetry.formats import Piece
from prx_engine.telemetry.naming import Naming

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    store = Store(postgres_url)
    yield store
    store.close()


def named_at_once(store: Store, *pieces: Piece) -> list[str | None]:
    """Name pieces in transactions of their own, each of which commits when all have named, or soon."""
    together = threading.Barrier(len(pieces))

    def name(piece: Piece) -> str | None:
        def work() -> str | None:
            (session,), released = Naming(store).sessions([piece], NOW)
            # It breaks when the others wait for this transaction.
            with contextlib.suppress(threading.BrokenBarrierError):
                together.wait(0.5)
            return next((found.session_id for found in released), session)

        try:
            return store.write(work)
        finally:
            store.close()

    with ThreadPoolExecutor(len(pieces)) as pool:
        return list(pool.map(name, pieces))


def test_a_trace_of_two_sessions_names_none(store: Store) -> None:
    named_at_once(
        store,
        Piece("a", {}, "one", keys=("span:a", "trace")),
        Piece("b", {}, "two", keys=("span:b", "trace")),
    )
    assert dict(store.tuples(SessionKeys.select(SessionKeys.key, SessionKeys.session_id))) == {
        "span:a": "one",
        "span:b": "two",
        "trace": "",
    }


def test_a_child_finds_a_parent_that_comes_at_the_same_time(store: Store) -> None:
    child = Piece("child", {"tokens": 1}, None, keys=("span:child",), asks=("span:parent",))
    found = named_at_once(store, Piece("parent", {}, "s", keys=("span:parent",)), child)
    assert "s" in found
    assert store.tuples(WaitingPieces.select()) == []
