"""Budgets of a check: its cost does not grow with the number of sessions, and the interpreter stays free."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import peewee
import pytest

from prx_engine import Engine
from prx_engine.dimensions import DIMENSIONS, VARIANTS
from prx_engine.fitness.moments import MOMENT_NAMES
from prx_engine.statistics import group_sequential_boundaries, lifetime_spending
from prx_engine.store.database import connect
from tests.support.clock import ManualClock

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

SESSIONS_AN_ARM = 1_000_000
HOURS = 160
WEIGHTS = np.array([30, 25, 15, 10, 10, 10])


def median_seconds(action: Callable[[], object], runs: int = 5) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, ManualClock]]:
    """An experiment with a million scored sessions in each arm."""
    folder = tmp_path_factory.mktemp("big")
    clock = ManualClock()
    with Engine.open(folder / "prx.db", config=folder / "config.toml", clock=clock) as engine:
        engine.create_experiment("L2", "proposed", hypothesis="nothing changes")
        fill(connect(str(folder / "prx.db")), folder)
        yield engine, clock


def fill(database: peewee.Database, folder: Path) -> None:
    rng = np.random.default_rng(1)
    hour = np.arange(SESSIONS_AN_ARM) * HOURS // SESSIONS_AN_ARM
    connection = database.connection()
    connection.execute("BEGIN")
    for variant in VARIANTS:
        scores = np.clip(rng.normal(0.72, 0.18, (SESSIONS_AN_ARM, 6)), 0, 1)
        units = np.rint(scores * 10_000).astype(int)
        fitness = np.rint(units @ WEIGHTS / WEIGHTS.sum()).astype(int)
        connection.executemany(
            "INSERT INTO assignments (session_id, layer, experiment, variant, hour, assigned_at,"
            f" {', '.join(DIMENSIONS)}, fitness) VALUES (?, 'L2', 1, ?, ?, '', ?, ?, ?, ?, ?, ?, ?)",
            (
                (f"{variant}-{i}", variant, int(hour[i]), *units[i].tolist(), int(fitness[i]))
                for i in range(SESSIONS_AN_ARM)
            ),
        )
        for h in range(HOURS):
            entries = moment_entries(units[hour == h])
            connection.execute(
                f"INSERT INTO hourly_totals (experiment, variant, hour, assigned, {', '.join(MOMENT_NAMES)})"
                f" VALUES (1, ?, ?, ?, {', '.join('?' * len(MOMENT_NAMES))})",
                (variant, h, entries[0], *entries),
            )
    connection.execute("COMMIT")
    database.close()


def moment_entries(units: np.ndarray) -> list[int]:
    sums, products = units.sum(axis=0), units.T @ units
    values = {"n": len(units)}
    for d in range(6):
        for e in range(6):
            values[f"s_{d}{e}"] = int(sums[d])
            values[f"n_{d}{e}"] = len(units)
            values[f"q_{d}{e}"] = int(products[d, e])
    return [values[name] for name in MOMENT_NAMES]


def test_a_check_with_welch_and_all_dimensions_takes_50_ms_whatever_the_number_of_sessions(
    big: tuple[Engine, ManualClock],
) -> None:
    engine, clock = big
    clock.set("2026-06-02T00:00:00Z")
    (first,) = engine.check()  # Pins the test, and pays for the imports.
    assert first.outcome == "look"
    times = []
    for day in range(3, 7):
        clock.set(f"2026-06-0{day}T00:00:00Z")
        start = time.perf_counter()
        (result,) = engine.check()
        times.append(time.perf_counter() - start)
        assert result.look is not None
        assert result.look.p_mann_whitney is None
    assert np.median(times) <= 0.050


def test_reading_the_ranks_of_a_million_sessions_an_arm_takes_a_second_and_leaves_the_interpreter_free(
    big: tuple[Engine, ManualClock],
) -> None:
    from prx_engine.store.totals import session_fitness_counts

    engine, _ = big
    store = engine._store
    longest = watched_pause(lambda: session_fitness_counts(store, 1, HOURS))
    assert median_seconds(lambda: session_fitness_counts(store, 1, HOURS), runs=3) <= 1.0
    assert longest <= 0.1


def watched_pause(action: Callable[[], object]) -> float:
    """Return the longest time for which another thread could not run meanwhile."""
    done = threading.Event()
    pauses = [0.0]

    def tick() -> None:
        last = time.perf_counter()
        while not done.wait(0.001):
            now = time.perf_counter()
            pauses.append(now - last)
            last = now

    thread = threading.Thread(target=tick)
    thread.start()
    action()
    done.set()
    thread.join()
    return max(pauses)


@pytest.mark.parametrize(("looks", "seconds"), [(30, 0.050), (720, 1.0)])
@pytest.mark.parametrize("sides", [1, 2])
def test_boundaries_are_computed_within_their_budget(looks: int, seconds: float, sides: int) -> None:
    units = itertools.count(1)
    spent = [
        lifetime_spending(k, 0.25 * looks, looks, alpha=0.05, planned_share=0.8, kind="obrien_fleming")
        for k in range(1, looks + 1)
    ]

    def from_the_first_look_on() -> None:
        unit = next(units)  # in a unit of its own each time, or a remembered sequence would be continued
        group_sequential_boundaries([unit * float(k) for k in range(1, looks + 1)], spent, sides=sides)

    assert median_seconds(from_the_first_look_on) <= seconds
