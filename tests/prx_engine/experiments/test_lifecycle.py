from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.errors import InvalidInput, LayerOccupied, NotFound, WrongState
from prx_engine.ids import short
from prx_engine.records import Experiment
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine
from tests.support.experiments import actions, around, at, feed, feed_both, log, start

# Creation


def test_a_new_experiment_runs(engine: Engine) -> None:
    experiment = start(engine, decision_id="d-42")
    assert (experiment.status, experiment.conclusion, experiment.winner, experiment.verdict) == (
        "running",
        None,
        None,
        None,
    )
    assert experiment.planned_end_at == at(experiment, 168)
    assert experiment.max_end_at == at(experiment, 720)
    assert experiment.next_check_at == at(experiment, 24)
    assert (experiment.extensions, experiment.promotion, experiment.decision_id) == (0, "none", "d-42")
    assert log(engine, experiment) == [("created", "tester", {}, {"status": "running"})]


def test_a_layer_has_one_active_experiment_and_the_refusal_names_it(engine: Engine) -> None:
    first = start(engine)
    with pytest.raises(LayerOccupied) as refused:
        start(engine)
    assert short(first.experiment_id) in str(refused.value)
    assert "a shorter prompt" in str(refused.value)
    assert "running" in str(refused.value)
    assert len(engine.experiments("all")) == 1
    assert len(engine.events()) == 1


def test_other_layers_and_ended_experiments_leave_a_layer_free(engine: Engine) -> None:
    first = start(engine)
    engine.create_experiment("L1", "more memory", hypothesis="memory")
    engine.create_experiment("L3", "another route", hypothesis="routing")
    engine.cancel(first.experiment_id)
    second = start(engine)
    engine.reject(second.experiment_id)
    assert start(engine).status == "running"


# An operator ends it


def test_cancelling_returns_all_traffic_to_the_default_at_once(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine, traffic_split=1.0)
    assert engine.assign("before")["L2"].variant == "treatment"
    clock.advance(hours=1)
    end = engine.cancel(experiment.experiment_id, "bad idea")
    assert (end.status, end.conclusion, end.winner, end.promotion) == ("cancelled", "cancelled", None, "none")
    assert end.converged_at == clock.now()
    assert end.next_check_at is None
    assert engine.assign("after")["L2"].variant is None
    assert engine.assign("after")["L2"].config == {}
    assert engine.assign("before")["L2"].variant == "treatment"
    (event,) = engine.events(experiment.experiment_id, limit=1)
    assert (event.action, event.actor, event.reason) == ("cancelled", "tester", "bad idea")
    assert event.before == {"status": "running", "converged_at": None, "conclusion": None}
    assert event.after == {
        "status": "cancelled",
        "converged_at": "2026-06-01T01:00:00Z",
        "conclusion": "cancelled",
    }


def test_promoting_ends_it_in_favour_of_treatment(engine: Engine) -> None:
    experiment = start(engine)
    end = engine.promote(experiment.experiment_id, "trust me")
    assert (end.status, end.conclusion, end.winner, end.promotion) == (
        "converged",
        "operator_promoted",
        "treatment",
        "applied",
    )
    assert actions(engine, experiment) == ["created", "converged", "promoted"]
    assert all(event.actor == "tester" for event in engine.events(experiment.experiment_id))
    assert engine.assign("after")["L2"].config == {"agent.prompt": "short"}


def test_rejecting_ends_it_in_favour_of_control(engine: Engine) -> None:
    experiment = start(engine)
    end = engine.reject(experiment.experiment_id, "no")
    assert (end.status, end.conclusion, end.winner, end.promotion) == (
        "converged",
        "operator_rejected",
        "control",
        "none",
    )


def test_an_operators_end_freezes_the_fitness_of_that_moment(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 10.5))
    feed_both(engine, experiment, 0.7, 0.8, 33, hours=10)
    end = engine.reject(experiment.experiment_id)
    assert end.control_fitness.composite == pytest.approx(0.7, abs=0.01)
    assert end.control_fitness.sessions == 33
    assert end.control_fitness.window.end == clock.now()
    clock.advance(hours=5)
    assert engine.experiment(experiment.experiment_id).control_fitness == end.control_fitness


@pytest.mark.parametrize("verb", ["cancel", "reject", "promote"])
def test_an_evaluating_experiment_can_be_ended_too(engine: Engine, clock: ManualClock, verb: str) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 25))
    feed_both(engine, experiment, 0.6, 0.61, 110, spread=0.3)
    engine.check()
    assert engine.experiment(experiment.experiment_id).status == "evaluating"
    assert not getattr(engine, verb)(experiment.experiment_id).active


# Extension


def test_an_extension_moves_the_planned_end_and_lets_it_run(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 30))
    feed_both(engine, experiment, 0.6, 0.61, 110, spread=0.3)
    engine.check()
    extended = engine.extend(experiment.experiment_id, 50, "more data")
    assert (extended.status, extended.planned_end_at, extended.extensions) == (
        "running",
        at(experiment, 218),
        1,
    )
    assert log(engine, experiment)[-1] == (
        "extended",
        "tester",
        {"status": "evaluating", "planned_end_at": "2026-06-08T00:00:00Z", "extensions": 0},
        {"status": "running", "planned_end_at": "2026-06-10T02:00:00Z", "extensions": 1},
    )


def test_an_extension_is_one_default_duration_if_nobody_says_otherwise(
    open_engine: OpenEngine, engine: Engine
) -> None:
    experiment = start(engine)
    open_engine(config="[self_evolution.experiments]\ndefault_duration_hours = 5\n")
    assert engine.extend(experiment.experiment_id).planned_end_at == at(experiment, 336)


@pytest.mark.parametrize(
    ("now", "expected"), [(167.99, 178), (168, 178), (168.01, 179), (169, 179), (200.5, 211)]
)
def test_an_extension_counts_from_the_planned_end_or_from_now_up_to_the_next_hour(
    engine: Engine, clock: ManualClock, now: float, expected: int
) -> None:
    experiment = start(engine)
    clock.set(at(experiment, now))
    assert engine.extend(experiment.experiment_id, 10).planned_end_at == at(experiment, expected)


def test_an_extension_up_to_the_maximum_is_possible_and_no_further(engine: Engine) -> None:
    experiment = start(engine)
    with pytest.raises(InvalidInput, match="by 553 hours: 552 hours are left until its maximum, 2026-07-01"):
        engine.extend(experiment.experiment_id, 553)
    assert engine.extend(experiment.experiment_id, 552).planned_end_at == experiment.max_end_at
    with pytest.raises(InvalidInput, match="by 1 hours: 0 hours are left"):
        engine.extend(experiment.experiment_id, 1)
    assert actions(engine, experiment) == ["created", "extended"]


def test_past_the_maximum_nothing_is_left(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 1000))
    with pytest.raises(InvalidInput, match=": 0 hours are left"):
        engine.extend(experiment.experiment_id, 1)


@pytest.mark.parametrize("hours", [0, -5, 1.5, True, float("nan"), "5"])
def test_an_extension_goes_forward_by_whole_hours(engine: Engine, hours: Any) -> None:
    experiment = start(engine)
    with pytest.raises(InvalidInput, match=f"hours: found {hours}; allowed: a whole number from 1 on"):
        engine.extend(experiment.experiment_id, hours)


@pytest.mark.parametrize("verb", ["cancel", "reject", "promote", "extend"])
def test_a_reason_that_no_database_holds_is_kept_as_far_as_it_can_be(engine: Engine, verb: str) -> None:
    experiment = start(engine)
    getattr(engine, verb)(experiment.experiment_id, reason="a\0b\udcff")
    assert "a\ufffdb\ufffd" in [event.reason for event in engine.events()]


# What is not possible

Ending = Callable[[Engine, Experiment], object]

ENDS: dict[str, tuple[Ending, str, str]] = {
    "cancelled": (lambda e, x: e.cancel(x.experiment_id), "cancelled", "nothing, it has ended"),
    "rejected": (lambda e, x: e.reject(x.experiment_id), "converged", "nothing, it has ended"),
    "promoted": (lambda e, x: e.promote(x.experiment_id), "converged", "rollback"),
}
VERBS = ("cancel", "extend", "reject", "preview")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("verb", VERBS)
def test_what_has_ended_stays_ended(engine: Engine, end: str, verb: str) -> None:
    experiment = start(engine)
    ending, status, possible = ENDS[end]
    ending(engine, experiment)
    before = engine.experiment(experiment.experiment_id), engine.events()
    with pytest.raises(WrongState) as refused:
        getattr(engine, verb)(experiment.experiment_id)
    assert str(refused.value) == (
        f"cannot {verb} {short(experiment.experiment_id)}: it is {status}; possible now: {possible}"
    )
    assert (engine.experiment(experiment.experiment_id), engine.events()) == before


@pytest.mark.parametrize("verb", [*VERBS, "promote", "rollback", "check"])
def test_what_does_not_exist_is_not_found(engine: Engine, verb: str) -> None:
    with pytest.raises(NotFound):
        getattr(engine, verb)("0123456789")


def test_each_transition_is_one_transaction_with_its_event(
    engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=47)
    before = engine.experiment(experiment.experiment_id), engine.details(experiment.experiment_id)

    def fail(*_: object) -> None:
        raise RuntimeError("the power went out")

    with monkeypatch.context() as patch:
        patch.setattr(engine._lifecycle, "_log", fail)
        for act in (engine.cancel, engine.extend, engine.reject, engine.promote, engine.check):
            with pytest.raises(RuntimeError):
                act(experiment.experiment_id)
    assert (engine.experiment(experiment.experiment_id), engine.details(experiment.experiment_id)) == before
    (result,) = engine.check(experiment.experiment_id)
    assert result.conclusion == "treatment_wins"


def test_scores_freeze_with_the_end(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 1))
    feed(engine, experiment, "control", around(0.7, 20), hours=1)
    engine.cancel(experiment.experiment_id)
    before = engine.details(experiment.experiment_id).dimensions
    engine.record("s-control-0-3", source="late", scores={"response_relevance": 0.0})
    assert engine.details(experiment.experiment_id).dimensions == before
