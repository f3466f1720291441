from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest

from prx_engine.errors import StoreBusy
from prx_tui.demo.agent import Agent, AgentThread
from prx_tui.demo.cast import FIRST_DAY, HISTORY, NEXT
from prx_tui.demo.deployment import throw_away_deployment
from prx_tui.demo.history import World, propose
from prx_tui.demo.workload import Arrivals


def test_sessions_run_under_the_variant_that_the_engine_assigns() -> None:
    with throw_away_deployment(3) as deployment, deployment.engine("agent") as engine:
        world = World(3, HISTORY + NEXT)
        experiment = propose(engine, world, next(c for c in NEXT if c.layer == "L2"))
        agent = Agent(engine, world, Arrivals(3, FIRST_DAY), deployment.clock)
        deployment.clock.move_to(FIRST_DAY + timedelta(hours=10))
        agent.step()
        one = engine.experiment(experiment.experiment_id)
        assert one.control_sessions + one.treatment_sessions == engine.verify().sessions > 10
        assert min(one.control_sessions, one.treatment_sessions) > 0
        assert engine.assign("s-000001")["L2"].reason == "persisted"


def test_after_a_long_pause_no_more_is_written_than_a_laptop_enjoys() -> None:
    with throw_away_deployment(3) as deployment, deployment.engine("agent") as engine:
        agent = Agent(engine, World(3, NEXT), Arrivals(3, FIRST_DAY), deployment.clock)
        deployment.clock.move_to(FIRST_DAY + timedelta(days=10))
        agent.step()
        assert engine.verify().sessions == 60
        agent.step()
        assert engine.verify().sessions == 60


def test_an_engine_that_fails_is_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    with throw_away_deployment(3) as deployment, deployment.engine("agent") as engine:
        agent = Agent(engine, World(3, NEXT), Arrivals(3, FIRST_DAY), deployment.clock)

        def busy(*_: object) -> None:
            raise StoreBusy("busy")

        with monkeypatch.context() as patch:
            patch.setattr(engine, "assign", busy)
            patch.setattr(engine, "create_experiment", busy)
            deployment.clock.move_to(FIRST_DAY + timedelta(hours=9))
            agent.step()
        deployment.clock.move_to(FIRST_DAY + timedelta(hours=18))
        agent.step()
        assert engine.verify().sessions > 10
        assert {one.layer for one in engine.experiments()} == {"L1", "L2", "L3"}


def test_the_thread_works_and_stops_at_once() -> None:
    with throw_away_deployment(3) as deployment:
        thread = AgentThread(deployment, World(3, NEXT), Arrivals(3, FIRST_DAY))
        thread.start()
        started = time.monotonic()
        thread.stop()
        assert not thread.is_alive()
        assert time.monotonic() - started < 2


def use_and_fail(used: list[Path]) -> None:
    with throw_away_deployment(3) as deployment, deployment.engine() as engine:
        engine.record("s", tokens=1)
        used += deployment.folder.iterdir()
        raise KeyError


def test_the_folder_is_gone_afterwards_whatever_happens() -> None:
    used: list[Path] = []
    with pytest.raises(KeyError):
        use_and_fail(used)
    assert {"config.toml", "experiments.db"} <= {path.name for path in used}
    assert not used[0].parent.exists()
