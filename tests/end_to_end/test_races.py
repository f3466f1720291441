"""Two processes at once: exactly one acts, whatever the order."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.clock import FixedClock, format_time
from prx_engine.errors import LayerOccupied, StoreError
from prx_engine.experiments import convergence
from prx_engine.experiments.analysis import Analysis
from prx_engine.records import Experiment
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine
from tests.support.experiments import actions, around, at, feed, feed_both, start

WON = ["created", "evaluating", "converged", "promoted"]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return str(tmp_path / "prx.db")


def due(engine: Engine, clock: ManualClock) -> Experiment:
    """An experiment whose next check finds that treatment wins."""
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=47)
    return experiment


def interrupt(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something once, after the next check has claimed and analysed and before it writes."""
    original = convergence.Convergence._written
    done: list[bool] = []

    def written(self: Any, row: Any, owner: str, analysis: Analysis, losses: Any) -> Any:
        if not done:
            done.append(True)
            act()
        return original(self, row, owner, analysis, losses)

    monkeypatch.setattr(convergence.Convergence, "_written", written)


def check_in_a_process(database: str, config: str, now: str, ready: Barrier, answers: Any) -> None:
    clock = ManualClock(now)
    with Engine.open(database, config, clock=FixedClock(clock.now()), actor="tester") as engine:
        ready.wait(30)
        answers.put([result.outcome for result in engine.check()])


def create_in_a_process(database: str, config: str, ready: Barrier, answers: Any) -> None:
    with Engine.open(database, config, actor="tester") as engine:
        ready.wait(30)
        try:
            engine.create_experiment("L2", "new", hypothesis="at the same time")
            answers.put("created")
        except LayerOccupied as error:
            answers.put("refused" if "active experiment" in str(error) else str(error))


def in_processes(target: Callable[..., None], arguments: tuple[Any, ...], number: int) -> list[Any]:
    context = get_context("spawn")
    ready, answers = context.Barrier(number), context.Queue()
    processes = [context.Process(target=target, args=(*arguments, ready, answers)) for _ in range(number)]
    for process in processes:
        process.start()
    found = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    return found


def test_two_processes_that_check_at_once_reach_one_conclusion(
    open_engine: OpenEngine, clock: ManualClock, database: str, tmp_path: Path
) -> None:
    engine = open_engine(database)
    experiment = due(engine, clock)
    outcomes = in_processes(
        check_in_a_process, (database, str(tmp_path / "config.toml"), format_time(clock.now())), 2
    )
    flat = Counter(outcome for answer in outcomes for outcome in answer)
    assert flat["concluded"] == 1
    assert set(flat) <= {"concluded", "busy", "not_due"}
    assert actions(engine, experiment) == WON
    assert len(engine.details(experiment.experiment_id).looks) == 2


def test_many_threads_that_check_at_once_reach_one_conclusion(
    open_engine: OpenEngine, clock: ManualClock, database: str
) -> None:
    engine = open_engine(database)
    experiment = due(engine, clock)
    ready = threading.Barrier(6)

    def work(_: int) -> str:
        ready.wait(30)
        outcome = engine.check(experiment.experiment_id)[0].outcome
        engine.close()
        return outcome

    with ThreadPoolExecutor(6) as pool:
        outcomes = Counter(pool.map(work, range(6)))
    assert outcomes["concluded"] == 1
    assert set(outcomes) <= {"concluded", "busy", "not_due"}
    assert actions(engine, experiment) == WON


def test_a_second_check_while_the_first_analyses_finds_it_busy(
    open_engine: OpenEngine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, other = open_engine(), open_engine()
    experiment = due(engine, clock)
    seen = []
    interrupt(monkeypatch, lambda: seen.extend(other.check(experiment.experiment_id)))
    (result,) = engine.check(experiment.experiment_id)
    assert [(r.outcome, r.look) for r in seen] == [("busy", None)]
    assert result.outcome == "concluded"
    assert actions(engine, experiment) == WON


@pytest.mark.parametrize("verb", ["cancel", "reject", "extend", "promote"])
def test_an_operator_between_claim_and_write_wins(
    open_engine: OpenEngine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, database: str, verb: str
) -> None:
    engine, operator = open_engine(database), open_engine(database)
    experiment = due(engine, clock)
    interrupt(monkeypatch, lambda: getattr(operator, verb)(experiment.experiment_id))
    (result,) = engine.check(experiment.experiment_id)
    assert (result.outcome, result.conclusion) == ("busy", None)
    state = engine.experiment(experiment.experiment_id)
    expected = {
        "cancel": ("cancelled", "cancelled", ["created", "cancelled"]),
        "reject": ("converged", "operator_rejected", ["created", "converged"]),
        "extend": ("running", None, ["created", "extended"]),
        "promote": ("converged", "operator_promoted", ["created", "converged", "promoted"]),
    }[verb]
    assert (state.status, state.conclusion, actions(engine, experiment)) == expected
    assert engine.details(experiment.experiment_id).looks == []
    if verb == "extend":
        assert engine.check(experiment.experiment_id)[0].conclusion == "treatment_wins"


def test_sessions_recorded_during_a_check_do_not_stop_it(
    open_engine: OpenEngine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, agent = open_engine(), open_engine()
    experiment = due(engine, clock)

    def work() -> None:
        agent.record("s-control-0-0", source="late", scores={"response_relevance": 0.0})
        agent.assign("new")

    interrupt(monkeypatch, work)
    (result,) = engine.check(experiment.experiment_id)
    assert result.conclusion == "treatment_wins"
    end = engine.experiment(experiment.experiment_id)
    assert result.look is not None
    assert end.control_fitness.composite == result.look.control_fitness
    assert engine.verify().problems == []


@pytest.mark.parametrize(("minutes", "outcome"), [(4.99, "busy"), (5, "concluded")])
def test_the_claim_of_a_process_that_died_lasts_five_minutes(
    open_engine: OpenEngine,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    minutes: float,
    outcome: str,
) -> None:
    engine = open_engine()
    experiment = due(engine, clock)
    with monkeypatch.context() as patch:
        patch.setattr(convergence.Convergence, "_release", lambda *_: None)
        patch.setattr(convergence, "analyse", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            engine.check(experiment.experiment_id)
    clock.advance(minutes=minutes)
    assert engine.check(experiment.experiment_id)[0].outcome == outcome


def test_a_process_that_wakes_up_after_its_claim_was_taken_over_writes_nothing(
    open_engine: OpenEngine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper, other = open_engine(), open_engine()
    experiment = due(sleeper, clock)
    seen = []

    def work() -> None:
        clock.advance(minutes=6)
        seen.extend(other.check(experiment.experiment_id))

    interrupt(monkeypatch, work)
    (result,) = sleeper.check(experiment.experiment_id)
    assert [r.outcome for r in seen] == ["concluded"]
    assert result.outcome == "busy"
    assert actions(sleeper, experiment) == WON


def test_a_take_over_by_a_look_without_any_event_is_noticed_too(
    open_engine: OpenEngine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper, other = open_engine(), open_engine()
    experiment = start(sleeper)
    clock.set(at(experiment, 47))
    feed_both(sleeper, experiment, 0.60, 0.61, 400, hours=46, spread=0.3)
    sleeper.check()
    clock.set(at(experiment, 48))

    def work() -> None:
        clock.advance(minutes=6)
        assert other.check(experiment.experiment_id)[0].outcome == "look"

    interrupt(monkeypatch, work)
    assert sleeper.check(experiment.experiment_id)[0].outcome == "busy"
    assert [look.k for look in sleeper.details(experiment.experiment_id).looks] == [1, 2]


def test_a_claim_is_given_back_after_a_failure(
    open_engine: OpenEngine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine()
    experiment = due(engine, clock)
    with monkeypatch.context() as patch:

        def fail(*_: object) -> None:
            raise StoreError("the disk is full")

        patch.setattr(convergence, "analyse", fail)
        with pytest.raises(StoreError, match="the disk is full"):
            engine.check(experiment.experiment_id)
    assert engine.check(experiment.experiment_id)[0].outcome == "concluded"


def test_of_two_processes_that_create_in_one_layer_one_is_refused(
    open_engine: OpenEngine, database: str, tmp_path: Path
) -> None:
    engine = open_engine(database)
    answers = in_processes(create_in_a_process, (database, str(tmp_path / "config.toml")), 2)
    assert sorted(answers) == ["created", "refused"]
    assert len(engine.experiments("all")) == 1
    assert [event.action for event in engine.events()] == ["created"]


def test_a_second_creation_that_saw_a_free_layer_is_refused_by_the_database(
    open_engine: OpenEngine, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(database)
    start(engine, treatment="in words")
    original = engine._lifecycle._refuse_occupied
    calls: list[str] = []

    def blind_at_first(layer: Any) -> None:
        calls.append(layer)
        if len(calls) > 1:
            original(layer)

    monkeypatch.setattr(engine._lifecycle, "_refuse_occupied", blind_at_first)
    with pytest.raises(LayerOccupied, match="a shorter prompt"):
        start(engine, treatment="in words")
    assert len(engine.experiments("all")) == 1
    assert [event.action for event in engine.events()] == ["created"]


def test_an_operator_who_cancels_while_a_mismatch_is_noticed_wins(
    open_engine: OpenEngine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, operator = open_engine(), open_engine()
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed(engine, experiment, "control", around(0.80, 400), hours=47)
    feed(engine, experiment, "treatment", around(0.30, 200), hours=47)
    original = convergence.Convergence.losses
    cancelled: list[bool] = []

    def losses(self: Any, row: Any) -> Any:
        found = original(self, row)
        if not cancelled:
            cancelled.append(True)
            operator.cancel(experiment.experiment_id)
        return found

    monkeypatch.setattr(convergence.Convergence, "losses", losses)
    (result,) = engine.check(experiment.experiment_id)
    assert result.conclusion is None
    assert engine.experiment(experiment.experiment_id).status == "cancelled"
    assert actions(engine, experiment) == ["created", "cancelled"]
