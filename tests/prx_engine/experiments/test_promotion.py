from __future__ import annotations

from pathlib import Path

import pytest

from prx_engine import Engine
from prx_engine.errors import WrongState
from prx_engine.ids import short
from tests.support.clock import ManualClock
from tests.support.experiments import actions, at, feed_both, log, start


def test_a_promotion_that_a_dead_process_left_pending_is_applied_by_the_next_check(
    engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=47)
    with monkeypatch.context() as patch:
        patch.setattr(engine._promotion, "apply", lambda *_, **__: None)
        engine.check(experiment.experiment_id)
    assert engine.experiment(experiment.experiment_id).promotion == "pending"
    assert engine.assign("early")["L2"].config == {}
    clock.advance(hours=1)
    engine.check()
    assert engine.experiment(experiment.experiment_id).promotion == "applied"
    assert engine.assign("late")["L2"].config == {"agent.prompt": "short"}
    assert log(engine, experiment)[-1][1:] == (
        "engine",
        {"promotion": "pending", "promoted_at": None},
        {"promotion": "applied", "promoted_at": "2026-06-03T01:00:00Z"},
    )


def test_a_pending_promotion_can_be_retried_by_an_operator(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = start(engine)
    with monkeypatch.context() as patch:
        patch.setattr(engine._promotion, "apply", lambda *_, **__: None)
        assert engine.promote(experiment.experiment_id).promotion == "pending"
    assert engine.promote(experiment.experiment_id, "again").promotion == "applied"
    assert actions(engine, experiment) == ["created", "converged", "promoted"]


def test_an_applied_promotion_is_not_applied_again(engine: Engine) -> None:
    experiment = start(engine)
    engine.promote(experiment.experiment_id)
    with pytest.raises(WrongState) as refused:
        engine.promote(experiment.experiment_id)
    assert str(refused.value) == (
        f"cannot promote {short(experiment.experiment_id)}: it is converged, promotion applied;"
        " possible now: rollback"
    )
    assert actions(engine, experiment) == ["created", "converged", "promoted"]


@pytest.mark.parametrize("end", ["cancel", "reject"])
@pytest.mark.parametrize("verb", ["promote", "rollback"])
def test_there_is_nothing_to_promote_where_treatment_did_not_win(engine: Engine, end: str, verb: str) -> None:
    experiment = start(engine)
    getattr(engine, end)(experiment.experiment_id)
    with pytest.raises(WrongState, match=f"cannot {verb} .*promotion none; possible now: nothing"):
        getattr(engine, verb)(experiment.experiment_id)


def test_an_active_experiment_cannot_be_rolled_back(engine: Engine) -> None:
    experiment = start(engine)
    with pytest.raises(
        WrongState, match="running, promotion none; possible now: cancel, extend, promote, rej"
    ):
        engine.rollback(experiment.experiment_id)


def test_a_rollback_takes_the_change_back_once(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    engine.promote(experiment.experiment_id)
    clock.advance(hours=1)
    assert engine.assign("with")["L2"].config == {"agent.prompt": "short"}
    end = engine.rollback(experiment.experiment_id, "users complain")
    assert (end.status, end.promotion, end.winner) == ("converged", "rolled_back", "treatment")
    clock.advance(hours=1)
    assert engine.assign("without")["L2"].config == {}
    assert log(engine, experiment)[-1] == (
        "rolled_back",
        "tester",
        {"promotion": "applied"},
        {"promotion": "rolled_back"},
    )
    with pytest.raises(WrongState, match="rolled_back; possible now: nothing"):
        engine.rollback(experiment.experiment_id)


def test_later_promotions_build_on_earlier_ones(engine: Engine, clock: ManualClock) -> None:
    for changes in ({"agent.a": 1, "agent.b": 1}, {"agent.b": 2}, {"agent.c": 3}):
        experiment = start(engine, treatment={"config": changes})
        clock.advance(hours=1)
        engine.promote(experiment.experiment_id)
    clock.advance(hours=1)
    assert engine.assign("new")["L2"].config == {"agent.a": 1, "agent.b": 2, "agent.c": 3}
    assert engine.assign("new")["L1"].config == {}


def test_what_is_promoted_goes_into_the_configuration_file_whatever_its_name(
    clock: ManualClock, tmp_path: Path
) -> None:
    configuration = tmp_path / "agent.toml"
    configuration.write_text("[agent]\nx = 1\n")
    with Engine.open(tmp_path / "prx.db", config=configuration, clock=clock) as engine:
        experiment = engine.create_experiment("L1", {"config": {"agent.x": 2}}, hypothesis="h")
        engine.promote(experiment.experiment_id)
    assert configuration.read_text() == "[agent]\nx = 2\n"
    assert not (tmp_path / "config.toml").exists()
