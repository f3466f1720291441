"""The life of an experiment on PostgreSQL, by the same code."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from prx_engine import Engine
from prx_engine.dimensions import DIMENSIONS
from prx_engine.errors import LayerOccupied
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine

CHANGE = {"description": "shorter", "config": {"agent.style": "short"}}


@pytest.fixture
def deployment(postgres_url: str, open_engine: OpenEngine) -> Engine:
    return open_engine(postgres_url)


def sessions(count: int, day: int, control: float = 0.5, treatment: float = 0.7) -> list[bytes]:
    """Lines of sessions of one day, both variants alike often, with a clear difference."""
    return [
        json.dumps(
            {
                "session_id": f"{day}-{i}",
                "started_at": f"2026-06-{day:02d}T{i % 24:02d}:00:00Z",
                "layer": "L2",
                "variant": "treatment" if i % 2 else "control",
                "scores": dict.fromkeys(DIMENSIONS, (treatment if i % 2 else control) + (i // 2 % 5) / 50),
            }
        ).encode()
        for i in range(count)
    ]


def test_an_experiment_lives_from_its_creation_to_its_rollback(
    deployment: Engine, open_engine: OpenEngine, clock: ManualClock
) -> None:
    experiment = deployment.create_experiment("L2", CHANGE, hypothesis="better", min_sample_size=20)
    identifier = experiment.experiment_id
    with pytest.raises(LayerOccupied, match=identifier[-8:]):
        open_engine(deployment.database).create_experiment("L2", "t", hypothesis="other")

    variant = deployment.assign("s")["L2"].variant
    assert deployment.assign("s")["L2"].variant == variant is not None
    deployment.record("s", tokens=5210, thumbs_up=1)
    deployment.record("s", source="judge", relevance=[0.5, 0.7])
    deployment.record("s", source="judge", relevance=[0.6])

    for day in range(1, 8):
        clock.set(f"2026-06-{day:02d}T23:30:00Z")
        report = deployment.import_lines(sessions(60, day))
        assert (report.recorded, report.sessions, report.without_experiment) == (60, 60, 0)
    watch = deployment.watch()
    watch.changed()
    assert not watch.changed()
    clock.set("2026-06-08T00:00:00Z")
    (result,) = deployment.check()
    assert (result.outcome, result.conclusion, result.winner) == ("concluded", "treatment_wins", "treatment")
    assert watch.changed()
    watch.close()
    ended = deployment.experiment(identifier)
    assert ended.control_sessions + ended.treatment_sessions == 421
    assert ended.treatment_fitness.composite is not None
    details = deployment.details(identifier)
    assert [event.action for event in details.events][-1] == "created"
    assert deployment.verify().problems == []

    if ended.promotion == "pending":
        deployment.promote(identifier)
    clock.advance(hours=1)
    assert deployment.assign("later")["L2"].config == {"agent.style": "short"}
    assert deployment.rollback(identifier).promotion == "rolled_back"
    assert deployment.assign("latest")["L2"].config == {}
    assert deployment.fitness().fitness.sessions > 0
    assert len(deployment.history(days=10)) == 10
    assert deployment.verify().problems == []


def test_refusals_are_the_same(deployment: Engine) -> None:
    identifier = deployment.create_experiment("L1", "t", hypothesis="h").experiment_id
    assert deployment.experiment(identifier[:13]).experiment_id == identifier
    deployment.cancel(identifier, "enough")
    deployment.create_experiment("L1", "t", hypothesis="h")
    assert {e.status for e in deployment.experiments("all")} == {"cancelled", "running"}


def test_threads_record_one_and_the_same_session(deployment: Engine) -> None:
    deployment.create_experiment("L2", "t", hypothesis="h", traffic_split=1.0)

    def work(worker: int) -> None:
        try:
            for i in range(8):
                deployment.assign(f"{worker}-{i}")
                deployment.record("shared", source=f"{worker}-{i}", thumbs_up=1, thumbs_down=1)
        finally:
            deployment.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert deployment.verify().problems == []
    fitness = deployment.fitness().fitness
    assert (fitness.sessions, fitness.dimensions["user_satisfaction"].score) == (1, 0.5)
