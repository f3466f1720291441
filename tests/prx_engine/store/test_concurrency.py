"""Many writers at once lose nothing: on sessions of their own, and on one and the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from prx_engine import Engine
from tests.support.engines import OpenEngine
from tests.support.processes import nursery

WRITERS = 16
CALLS = 6


def written_at_once(engine: Engine, folder: Path) -> None:
    experiment = engine.create_experiment("L2", "t", hypothesis="h").experiment_id
    arguments = (engine.database, folder / "config.toml")
    with nursery(folder) as processes:
        writers = [
            processes.start("tests.support.writer", *arguments, f"w{i}", CALLS) for i in range(WRITERS)
        ]
        assert [processes.wait(writer) for writer in writers] == [0] * WRITERS
    record = engine.experiment(experiment)
    assert record.control_sessions + record.treatment_sessions == WRITERS * CALLS
    assert record.control_fitness.sessions + record.treatment_fitness.sessions == WRITERS * CALLS
    fitness = engine.fitness().fitness
    assert fitness.sessions == WRITERS * CALLS + 1
    assert fitness.dimensions["task_completion"].score == 0.5
    assert fitness.dimensions["user_satisfaction"].sessions == WRITERS * CALLS + 1
    result = engine.verify()
    assert (result.sessions, result.assignments, result.problems) == (
        WRITERS * CALLS + 1,
        WRITERS * CALLS,
        [],
    )


def test_sixteen_processes_lose_no_increment_on_sqlite(engine: Engine, tmp_path: Path) -> None:
    written_at_once(engine, tmp_path)


def test_sixteen_processes_lose_no_increment_on_postgresql(
    postgres_url: str, open_engine: OpenEngine, tmp_path: Path
) -> None:
    written_at_once(open_engine(postgres_url), tmp_path)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_processes_that_make_the_same_database_at_once_all_succeed(
    kind: str, request: pytest.FixtureRequest, open_engine: OpenEngine, tmp_path: Path
) -> None:
    database = tmp_path / "new.db" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    arguments = ("tests.support.writer", database, tmp_path / "none.toml")
    with nursery(tmp_path) as processes:
        writers = [processes.start(*arguments, f"w{i}", 1) for i in range(8)]
        assert [processes.wait(writer) for writer in writers] == [0] * 8
    engine = open_engine(database)
    result = engine.verify()
    assert (result.sessions, result.problems) == (9, [])
