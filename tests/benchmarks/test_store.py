"""Budgets of taking sessions in, against SQLite doing the same work with nobody in between."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.fitness.moments import MOMENT_NAMES
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine
from tests.support.sessions import random_metrics

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

SESSIONS = 20_000
BATCH = 500
ASSIGNMENTS = 300
SMALLEST_SHARE = 0.25
TABLES = ("sessions", "session_reports", "assignments")
TOTALS = ("totals", "hourly_totals", "deployment_totals")


def lines_of(dimensions: int) -> list[bytes]:
    source = random.Random(dimensions)
    lines = []
    for i in range(SESSIONS):
        metrics = random_metrics(source, present=1) if dimensions == 6 else {"relevance": source.random()}
        metrics |= {
            "session_id": f"session-{i:06d}",
            "layer": "L2",
            "variant": source.choice(["control", "treatment"]),
            "started_at": f"2026-06-01T{source.randrange(24):02d}:{source.randrange(60):02d}:00Z",
        }
        lines.append(json.dumps(metrics).encode())
    return lines


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


@contextlib.contextmanager
def raw(database: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a database of the engine's, with the engine's durability."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = full")
        yield connection


def insertion(connection: sqlite3.Connection, table: str) -> str:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    return f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})"


def upsert(connection: sqlite3.Connection, table: str) -> str:
    info = connection.execute(f"PRAGMA table_info({table})").fetchall()
    keys = ", ".join(row[1] for row in info if row[5])
    added = ", ".join(f"{row[1]} = {table}.{row[1]} + excluded.{row[1]}" for row in info if not row[5])
    return f"{insertion(connection, table)} ON CONFLICT ({keys}) DO UPDATE SET {added}"


def insert_raw(
    connection: sqlite3.Connection,
    rows: dict[str, list[tuple[Any, ...]]],
    totals: dict[str, list[tuple[Any, ...]]],
) -> None:
    """Write the rows in as many transactions as the engine does, each with its share of the totals."""
    inserts = {table: insertion(connection, table) for table in rows}
    upserts = {table: upsert(connection, table) for table in totals}
    for first in range(0, SESSIONS, BATCH):
        connection.execute("BEGIN IMMEDIATE")
        for table, sql in inserts.items():
            connection.executemany(sql, rows[table][first : first + BATCH])
        for table, sql in upserts.items():
            connection.executemany(sql, totals[table])
        connection.execute("COMMIT")


def read(database: Path, tables: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
    with raw(database) as connection:
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables}


def with_experiment(open_engine: OpenEngine, database: Path) -> Engine:
    engine = open_engine(database)
    engine.create_experiment("L2", "t", hypothesis="h")
    return engine


@pytest.mark.parametrize("dimensions", [1, 6])
def test_an_import_takes_at_most_four_times_raw_inserts_of_its_rows(
    dimensions: int, open_engine: OpenEngine, clock: ManualClock, tmp_path: Path
) -> None:
    lines = lines_of(dimensions)
    engines = [with_experiment(open_engine, tmp_path / f"engine-{i}.db") for i in range(5)]
    clock.advance(days=2)
    engine_seconds, raw_seconds = [], []
    for i, engine in enumerate(engines):
        engine_seconds.append(seconds(lambda engine=engine: engine.import_lines(lines)))  # type: ignore[misc]
        rows, totals = (read(tmp_path / f"engine-{i}.db", tables) for tables in (TABLES, TOTALS))
        assert len(rows["sessions"]) == len(rows["assignments"]) == SESSIONS
        open_engine(tmp_path / f"raw-{i}.db").close()
        with raw(tmp_path / f"raw-{i}.db") as connection:
            raw_seconds.append(seconds(lambda c=connection, r=rows, t=totals: insert_raw(c, r, t)))  # type: ignore[misc]
    share = statistics.median(raw_seconds) / statistics.median(engine_seconds)
    print(
        f"import, {dimensions} dimensions: {SESSIONS / statistics.median(engine_seconds):,.0f} sessions/s,"
        f" {share:.2f} of raw SQLite"
    )
    assert share >= SMALLEST_SHARE


def test_an_assignment_takes_at_most_four_times_its_raw_transaction(
    open_engine: OpenEngine, clock: ManualClock, tmp_path: Path
) -> None:
    engine = with_experiment(open_engine, tmp_path / "engine.db")
    open_engine(tmp_path / "raw.db").close()
    clock.advance(hours=1)
    engine_seconds, raw_seconds = [], []
    with raw(tmp_path / "raw.db") as connection:
        time, moments, scores = "2026-06-01T01:00:00.000000Z", [0] * len(MOMENT_NAMES), [None] * 7
        inserts = {table: insertion(connection, table) for table in ("sessions", "assignments")}
        upserts = {table: upsert(connection, table) for table in ("totals", "hourly_totals")}

        def transaction(session: str) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(inserts["sessions"], [session, time, None, *scores])
            connection.execute(inserts["assignments"], [session, "L2", 1, "control", 1, time, *scores, None])
            connection.execute(upserts["totals"], [1, "control", 1, *moments])
            connection.execute(upserts["hourly_totals"], [1, "control", 1, 1, *moments])
            connection.execute("COMMIT")

        for i in range(ASSIGNMENTS):
            engine_seconds.append(seconds(lambda i=i: engine.assign(f"s-{i}")))  # type: ignore[misc]
            raw_seconds.append(seconds(lambda i=i: transaction(f"s-{i}")))  # type: ignore[misc]
    share = statistics.median(raw_seconds) / statistics.median(engine_seconds)
    print(f"assign: {1 / statistics.median(engine_seconds):,.0f} a second, {share:.2f} of raw SQLite")
    assert share >= SMALLEST_SHARE
