from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from scipy import stats

from prx_engine import Engine
from prx_engine.errors import StoreError
from prx_engine.records import CheckResult, Experiment
from prx_engine.store import Store
from prx_engine.store.schema import Experiments
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine
from tests.support.experiments import actions, around, at, feed, feed_both, log, start


def check(engine: Engine, clock: ManualClock, experiment: Experiment, hours: float) -> CheckResult:
    """Check an experiment at a moment in hours since its creation."""
    clock.set(at(experiment, hours))
    (result,) = engine.check(experiment.experiment_id)
    return result


def now(engine: Engine, experiment: Experiment) -> Experiment:
    return engine.experiment(experiment.experiment_id)


Logged = tuple[str, str, dict[str, object], dict[str, object]]

CREATED: Logged = ("created", "tester", {}, {"status": "running"})
EVALUATING: Logged = ("evaluating", "engine", {"status": "running"}, {"status": "evaluating"})


def converged(ended: str, conclusion: str, winner: str | None, **more: str) -> Logged:
    before: dict[str, object] = {"status": "evaluating", "converged_at": None, "conclusion": None}
    after: dict[str, object] = {"status": "converged", "converged_at": ended, "conclusion": conclusion}
    if winner:
        before["winner"], after["winner"] = None, winner
    if more:
        before["promotion"], after["promotion"] = "none", more["promotion"]
    return "converged", "engine", before, after


# Each conclusion, end to end


def test_a_better_treatment_wins_and_becomes_the_default(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=47)
    result = check(engine, clock, experiment, 48.5)
    assert (result.outcome, result.conclusion, result.winner) == ("concluded", "treatment_wins", "treatment")
    assert result.at == at(experiment, 48)
    end = now(engine, experiment)
    assert (end.status, end.conclusion, end.winner) == ("converged", "treatment_wins", "treatment")
    assert end.converged_at == at(experiment, 48.5)
    assert end.promotion == "applied"
    assert end.next_check_at == at(experiment, 48.5 + 24)  # of the watch
    assert log(engine, experiment) == [
        CREATED,
        EVALUATING,
        converged("2026-06-03T00:30:00Z", "treatment_wins", "treatment", promotion="pending"),
        (
            "promoted",
            "engine",
            {"promotion": "pending", "promoted_at": None},
            {"promotion": "applied", "promoted_at": "2026-06-03T00:30:00Z"},
        ),
    ]
    assert engine.assign("fresh")["L2"].config == {"agent.prompt": "short"}
    assert engine.assign("fresh")["L2"].variant is None


def test_a_winner_that_changes_nothing_has_nothing_to_promote(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine, treatment="the same in other words")
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=47)
    check(engine, clock, experiment, 48)
    end = now(engine, experiment)
    assert (end.conclusion, end.promotion) == ("treatment_wins", "none")
    assert actions(engine, experiment) == ["created", "evaluating", "converged"]


def test_a_worse_treatment_loses(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.68, 400, hours=47, spread=0.06)
    check(engine, clock, experiment, 48)
    end = now(engine, experiment)
    assert (end.status, end.conclusion, end.winner, end.promotion) == (
        "converged",
        "control_wins",
        "control",
        "none",
    )
    assert log(engine, experiment)[1:] == [
        EVALUATING,
        converged("2026-06-03T00:00:00Z", "control_wins", "control"),
    ]


def test_an_effect_too_small_is_given_up_at_the_planned_end_and_not_before(
    engine: Engine, clock: ManualClock
) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 168))
    feed_both(engine, experiment, 0.70, 0.7001, 2000, hours=167)
    assert check(engine, clock, experiment, 167.9).outcome == "look"
    assert now(engine, experiment).status == "evaluating"
    result = check(engine, clock, experiment, 168)
    assert (result.outcome, result.conclusion) == ("concluded", "effect_too_small")
    end = now(engine, experiment)
    assert (end.status, end.winner, end.promotion) == ("converged", "control", "none")
    assert engine.assign("fresh")["L2"].config == {}


def test_great_harm_ends_it_before_min_sample_size(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 24))
    feed_both(engine, experiment, 0.80, 0.30, 20)
    result = check(engine, clock, experiment, 24)
    assert (result.outcome, result.conclusion, result.winner) == ("concluded", "regression", "control")
    assert result.look is None
    end = now(engine, experiment)
    assert (end.status, end.winner) == ("converged", "control")
    assert end.next_check_at is None
    assert end.control_fitness.composite == pytest.approx(0.80, abs=0.01)
    assert end.last_look is not None
    assert end.last_look.series == "harm"
    assert end.p_value == end.last_look.p_value
    details = engine.details(experiment.experiment_id)
    assert details.looks == []
    assert [look.outcome for look in details.harm_looks] == ["regression"]
    # It never was a look: the status goes to its end directly.
    assert log(engine, experiment)[1:] == [
        (
            "converged",
            "engine",
            {"status": "running", "converged_at": None, "conclusion": None, "winner": None},
            {
                "status": "converged",
                "converged_at": "2026-06-02T00:00:00Z",
                "conclusion": "regression",
                "winner": "control",
            },
        )
    ]


def test_what_stays_undecided_is_extended_and_deferred_at_the_maximum(
    engine: Engine, clock: ManualClock
) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 720))
    feed_both(engine, experiment, 0.60, 0.606, 720, hours=720, spread=0.3)
    seen = {}
    for hours in range(24, 721, 24):
        seen[hours] = check(engine, clock, experiment, hours).outcome
        state = now(engine, experiment)
        if hours < 720:
            assert state.status == (
                "running" if hours < 120 or hours in (168, 336, 504, 672) else "evaluating"
            )
    assert {hours for hours, outcome in seen.items() if outcome == "extended"} == {168, 336, 504, 672}
    assert {hours for hours, outcome in seen.items() if outcome == "waiting"} == {24, 48, 72, 96}
    assert seen[720] == "concluded"
    end = now(engine, experiment)
    assert (end.status, end.conclusion, end.winner, end.extensions) == ("converged", "deferred", None, 4)
    assert end.planned_end_at == end.max_end_at
    assert log(engine, experiment)[:4] == [
        CREATED,
        EVALUATING,
        (
            "extended",
            "engine",
            {"status": "evaluating", "planned_end_at": "2026-06-08T00:00:00Z", "extensions": 0},
            {"status": "running", "planned_end_at": "2026-06-15T00:00:00Z", "extensions": 1},
        ),
        EVALUATING,
    ]
    assert log(engine, experiment)[-1] == converged("2026-07-01T00:00:00Z", "deferred", None)
    assert actions(engine, experiment) == ["created"] + ["evaluating", "extended"] * 4 + [
        "evaluating",
        "converged",
    ]
    assert engine.assign("fresh")["L2"].config == {}


def test_the_planned_end_without_enough_sessions_extends(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 168))
    feed_both(engine, experiment, 0.70, 0.72, 99, hours=167)
    result = check(engine, clock, experiment, 170)
    assert result.outcome == "extended"
    assert result.missing == [
        "control has 99 of 100 scored sessions",
        "treatment has 99 of 100 scored sessions",
    ]
    state = now(engine, experiment)
    assert (state.status, state.planned_end_at, state.extensions) == ("running", at(experiment, 336), 1)
    assert actions(engine, experiment) == ["created", "evaluating", "extended"]


def test_nobody_looked_for_weeks_and_everything_happens_in_one_check(
    engine: Engine, clock: ManualClock
) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 500))
    feed_both(engine, experiment, 0.60, 0.606, 500, hours=499, spread=0.3)
    result = check(engine, clock, experiment, 500.7)
    assert (result.outcome, result.at) == ("extended", at(experiment, 480))
    state = now(engine, experiment)
    assert (state.planned_end_at, state.extensions) == (at(experiment, 504), 2)
    assert state.next_check_at == at(experiment, 504)
    looks = engine.details(experiment.experiment_id).looks
    assert [look.held for look in looks] == [False] * (len(looks) - 1) + [True]
    assert [look.at for look in looks] == [at(experiment, h) for h in range(120, 481, 24)]


def test_a_maximum_off_the_grid_is_the_last_look(open_engine: OpenEngine, clock: ManualClock) -> None:
    engine = open_engine(
        config="[self_evolution.experiments]\ndefault_duration_hours = 30\n"
        "[self_evolution.experiments.auto_converge]\nmax_duration_hours = 50\n"
    )
    experiment = start(engine)
    assert now(engine, experiment).next_check_at == at(experiment, 24)
    assert check(engine, clock, experiment, 24).next_check_at == at(experiment, 30)
    result = check(engine, clock, experiment, 30)
    assert (result.outcome, result.next_check_at) == ("extended", at(experiment, 48))
    assert now(engine, experiment).planned_end_at == at(experiment, 50)
    assert check(engine, clock, experiment, 48).next_check_at == at(experiment, 50)
    assert check(engine, clock, experiment, 50).conclusion == "deferred"


# When checks act


def test_before_the_first_scheduled_time_nothing_is_due(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 23))
    feed_both(engine, experiment, 0.70, 0.90, 300, hours=22)
    result = check(engine, clock, experiment, 23.99)
    assert (result.outcome, result.at, result.next_check_at) == ("not_due", None, at(experiment, 24))
    assert now(engine, experiment).status == "running"


def test_checks_without_consequence_make_no_event(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 96))
    feed_both(engine, experiment, 0.60, 0.61, 200, hours=96, spread=0.3)
    assert [check(engine, clock, experiment, h).outcome for h in (24, 48, 72, 96)] == [
        "waiting",
        "look",
        "look",
        "look",
    ]
    assert actions(engine, experiment) == ["created", "evaluating"]


def test_checking_twice_changes_nothing(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.60, 0.61, 200, hours=47, spread=0.3)
    assert check(engine, clock, experiment, 48).outcome == "look"
    before = now(engine, experiment), engine.details(experiment.experiment_id), engine.events()
    for _ in range(3):
        assert check(engine, clock, experiment, 48).outcome == "not_due"
    assert (now(engine, experiment), engine.details(experiment.experiment_id), engine.events()) == before


def test_a_check_every_minute_finds_what_punctual_checks_find(
    open_engine: OpenEngine, clock: ManualClock, tmp_path: Path
) -> None:
    config = "[self_evolution.experiments.auto_converge]\ncheck_interval_hours = 1\n"
    busy, lazy = open_engine(config=config), open_engine(tmp_path / "lazy.db")
    experiments = [start(busy), start(lazy)]
    for engine, experiment in zip((busy, lazy), experiments, strict=True):
        clock.set(at(experiment, 3))
        feed_both(engine, experiment, 0.60, 0.61, 600, hours=3, spread=0.3)
    for minutes in range(3 * 60 + 1):
        clock.set(at(experiments[0], minutes / 60))
        busy.check()
        if minutes % 60 == 0:
            lazy.check()
    looks = [
        engine.details(experiment.experiment_id).looks
        for engine, experiment in zip((busy, lazy), experiments, strict=True)
    ]
    assert looks[0] == looks[1]
    assert len(looks[0]) == 3
    assert actions(busy, experiments[0]) == actions(lazy, experiments[1])


def test_all_active_experiments_are_checked(engine: Engine, clock: ManualClock) -> None:
    first = start(engine)
    second = engine.create_experiment("L3", "another", hypothesis="another layer")
    clock.set(at(first, 24))
    assert [result.experiment_id for result in engine.check()] == [first.experiment_id, second.experiment_id]
    engine.cancel(first.experiment_id)
    assert [result.experiment_id for result in engine.check()] == [second.experiment_id]
    assert engine.check(first.experiment_id)[0].reason == "it is cancelled"


def test_an_experiment_that_cannot_be_checked_keeps_no_other_from_it(
    engine: Engine, clock: ManualClock
) -> None:
    damaged = engine.create_experiment("L1", "another", hypothesis="another layer")
    fine = start(engine)
    clock.set(at(fine, 48))
    feed_both(engine, fine, 0.70, 0.80, 200, hours=47)
    store = Store(engine.database)
    store.execute(
        Experiments.update(parameters="{").where(Experiments.experiment_id == damaged.experiment_id)
    )
    store.close()
    with pytest.raises(StoreError, match="damaged"):
        engine.check()
    assert now(engine, fine).conclusion == "treatment_wins"


def test_without_experiments_enabled_no_check_runs(open_engine: OpenEngine, clock: ManualClock) -> None:
    engine = open_engine()
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=47)
    open_engine(config="[self_evolution.experiments]\nenabled = false\n")
    result = check(engine, clock, experiment, 48)
    assert result.outcome == "not_due"
    assert "switched off" in result.reason
    assert now(engine, experiment).status == "running"
    open_engine(config="")
    assert check(engine, clock, experiment, 48).conclusion == "treatment_wins"


# What counts


def test_late_data_counts_at_the_next_look_only(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 24))
    feed_both(engine, experiment, 0.60, 0.61, 150, hours=23, spread=0.3)
    first = check(engine, clock, experiment, 24).look
    feed(engine, experiment, "control", around(0.5, 50), first_hour=1, hours=20, name="late")
    assert check(engine, clock, experiment, 47).outcome == "not_due"
    details = engine.details(experiment.experiment_id)
    assert [look.control_sessions for look in details.looks] == [150]
    second = check(engine, clock, experiment, 48).look
    assert first is not None
    assert second is not None
    assert (first.control_sessions, second.control_sessions) == (150, 200)
    assert engine.details(experiment.experiment_id).looks[0] == details.looks[0]


def test_a_late_check_analyses_the_sessions_before_the_scheduled_time(
    engine: Engine, clock: ManualClock
) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 40))
    feed_both(engine, experiment, 0.60, 0.61, 120, hours=24, spread=0.3)
    feed_both(engine, experiment, 0.60, 0.95, 500, first_hour=24, hours=10)
    result = check(engine, clock, experiment, 40)
    assert result.at == at(experiment, 24)
    assert result.look is not None
    assert (result.look.control_sessions, result.look.treatment_sessions) == (120, 120)
    assert result.outcome == "look"


def test_the_ranks_too_are_those_of_the_sessions_before_the_scheduled_time(
    open_engine: OpenEngine, clock: ManualClock
) -> None:
    engine = open_engine(config='[self_evolution.experiments.sequential]\ntest = "robust"\n')
    experiment = start(engine)
    clock.set(at(experiment, 40))
    control, treatment = around(0.60, 120, 0.3), around(0.62, 130, 0.3)
    feed(engine, experiment, "control", control)
    feed(engine, experiment, "treatment", treatment)
    feed_both(engine, experiment, 0.60, 0.85, 500, first_hour=24, hours=10)
    look = check(engine, clock, experiment, 40).look
    assert look is not None
    expected = stats.mannwhitneyu(treatment, control, use_continuity=False, method="asymptotic").pvalue
    assert look.p_mann_whitney == pytest.approx(expected, rel=1e-9)
    preview = engine.preview(experiment.experiment_id).comparison
    assert preview is not None
    assert preview.p_mann_whitney is not None
    assert preview.p_mann_whitney < expected / 1000


def test_sessions_after_the_end_are_kept_and_not_counted(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=47)
    check(engine, clock, experiment, 48)
    end = now(engine, experiment)
    looks = engine.details(experiment.experiment_id).looks
    clock.set(at(experiment, 60))
    engine.record("after", layer="L2", variant="control", scores={"response_relevance": 0.1})
    engine.record("s-control-0-0", source="other", scores={"task_completion": 0.1})
    assert now(engine, experiment) == end
    assert engine.details(experiment.experiment_id).looks == looks
    assert engine.fitness().fitness.sessions > 0
    assert engine.verify().problems == []


def test_fitness_and_p_value_are_those_of_the_deciding_look(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 60))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=48)
    feed_both(engine, experiment, 0.10, 0.10, 200, first_hour=48, hours=11)
    active = now(engine, experiment)
    assert active.control_fitness.composite == pytest.approx(0.4, abs=0.01)
    result = check(engine, clock, experiment, 60)
    assert result.conclusion == "treatment_wins"
    assert result.look is not None
    end = now(engine, experiment)
    assert end.control_fitness.composite == result.look.control_fitness == pytest.approx(0.70, abs=0.01)
    assert end.treatment_fitness.composite == result.look.treatment_fitness == pytest.approx(0.80, abs=0.01)
    assert end.p_value == result.look.p_value
    assert end.control_fitness.sessions == 200
    assert end.control_fitness.window.end == at(experiment, 48)
    assert (end.control_sessions, end.treatment_sessions) == (400, 400)


def test_while_active_fitness_is_of_now_and_p_of_the_last_look(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 30))
    feed_both(engine, experiment, 0.60, 0.61, 150, hours=24, spread=0.3)
    look = check(engine, clock, experiment, 30).look
    assert look is not None
    feed_both(engine, experiment, 0.60, 0.90, 150, first_hour=24, hours=5)
    state = now(engine, experiment)
    assert state.p_value == look.p_value
    assert state.treatment_fitness.composite == pytest.approx(0.755, abs=0.01)


def test_every_look_is_kept_with_its_outcome(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 168))
    feed_both(engine, experiment, 0.60, 0.605, 1400, hours=168, spread=0.3)
    results = [check(engine, clock, experiment, h) for h in (24, 72, 168)]
    looks = engine.details(experiment.experiment_id).looks
    assert [(look.k, look.outcome) for look in looks] == [
        (1, "look"), (2, "missed"), (3, "look"), (4, "missed"), (5, "missed"), (6, "missed"), (7, "extended"),
    ]  # fmt: skip
    for result in results:
        assert result.look is not None
        (kept,) = [look for look in looks if look.k == result.look.k]
        assert kept.model_copy(update={"outcome": "missed"}) == result.look.model_copy(
            update={"outcome": "missed"}
        )


# Parameters are pinned


def test_a_later_edit_of_the_configuration_changes_nothing_but_the_switches(
    open_engine: OpenEngine, clock: ManualClock
) -> None:
    engine = open_engine()
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=47)
    open_engine(
        config="[self_evolution.experiments]\nmin_sample_size = 5000\nmin_effect_size = 0.9\n"
        "confidence_level = 0.999\ndefault_duration_hours = 1\n"
        "[self_evolution.experiments.auto_converge]\ncheck_interval_hours = 1\n"
        "[self_evolution.fitness]\nmin_sessions_for_score = 5000\n"
        "[self_evolution.fitness.weights]\nresponse_relevance = 0.0\ntask_completion = 0.55\n"
    )
    assert now(engine, experiment).parameters == experiment.parameters
    result = check(engine, clock, experiment, 49)
    assert result.at == at(experiment, 48)
    assert result.conclusion == "treatment_wins"


# A verdict for an operator

MANUAL = "[self_evolution.experiments.auto_converge]\nenabled = false\n"


@pytest.fixture
def manual(open_engine: OpenEngine) -> Engine:
    """An engine that may not conclude by itself."""
    return open_engine(config=MANUAL)


def with_verdict(engine: Engine, clock: ManualClock) -> Experiment:
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=47)
    result = check(engine, clock, experiment, 48)
    assert (result.outcome, result.conclusion) == ("verdict", "treatment_wins")
    return experiment


def test_what_may_not_be_decided_alone_is_kept_as_a_verdict(manual: Engine, clock: ManualClock) -> None:
    experiment = with_verdict(manual, clock)
    state = now(manual, experiment)
    assert (state.status, state.verdict, state.conclusion, state.winner) == (
        "evaluating",
        "treatment_wins",
        None,
        None,
    )
    assert state.held
    assert state.next_check_at is None
    assert state.promotion == "none"
    assert log(manual, experiment)[1:] == [
        (
            "verdict",
            "engine",
            {"verdict": None, "held": False, "status": "running"},
            {"verdict": "treatment_wins", "held": True, "status": "evaluating"},
        )
    ]


def test_later_checks_leave_a_verdict_alone(
    manual: Engine, clock: ManualClock, open_engine: OpenEngine
) -> None:
    experiment = with_verdict(manual, clock)
    clock.set(at(experiment, 71))
    feed_both(manual, experiment, 0.90, 0.10, 500, first_hour=48, hours=20)
    state, looks = now(manual, experiment), manual.details(experiment.experiment_id).looks
    assert check(manual, clock, experiment, 720).outcome == "held"
    open_engine(config="")
    assert check(manual, clock, experiment, 721).outcome == "held"
    after = now(manual, experiment)
    assert (after.status, after.verdict, after.planned_end_at) == (
        state.status,
        state.verdict,
        state.planned_end_at,
    )
    assert manual.details(experiment.experiment_id).looks == looks
    assert actions(manual, experiment) == ["created", "verdict"]


def test_an_operator_promotes_a_verdict(manual: Engine, clock: ManualClock) -> None:
    experiment = with_verdict(manual, clock)
    end = manual.promote(experiment.experiment_id, "I agree")
    assert (end.status, end.conclusion, end.winner, end.promotion, end.verdict) == (
        "converged",
        "operator_promoted",
        "treatment",
        "applied",
        None,
    )


def test_an_operator_rejects_a_verdict(manual: Engine, clock: ManualClock) -> None:
    experiment = with_verdict(manual, clock)
    end = manual.reject(experiment.experiment_id, "I do not")
    assert (end.status, end.conclusion, end.winner, end.promotion, end.verdict) == (
        "converged",
        "operator_rejected",
        "control",
        "none",
        None,
    )


def test_an_operator_cancels_a_verdict(manual: Engine, clock: ManualClock) -> None:
    experiment = with_verdict(manual, clock)
    end = manual.cancel(experiment.experiment_id, "never mind")
    assert (end.status, end.conclusion, end.winner, end.verdict) == ("cancelled", "cancelled", None, None)


def test_an_extension_clears_a_verdict_and_the_checks_go_on(manual: Engine, clock: ManualClock) -> None:
    experiment = with_verdict(manual, clock)
    extended = manual.extend(experiment.experiment_id, 24)
    assert (extended.status, extended.verdict, extended.held) == ("running", None, False)
    assert extended.next_check_at == at(experiment, 72)
    assert log(manual, experiment)[-1] == (
        "extended",
        "tester",
        {
            "status": "evaluating",
            "planned_end_at": "2026-06-08T00:00:00Z",
            "extensions": 0,
            "verdict": "treatment_wins",
            "held": True,
        },
        {
            "status": "running",
            "planned_end_at": "2026-06-09T00:00:00Z",
            "extensions": 1,
            "verdict": None,
            "held": False,
        },
    )
    assert check(manual, clock, experiment, 72).outcome == "waiting"


def test_without_deciding_alone_experiments_are_still_extended(manual: Engine, clock: ManualClock) -> None:
    experiment = start(manual)
    assert check(manual, clock, experiment, 168).outcome == "extended"
    assert check(manual, clock, experiment, 720).outcome == "verdict"
    assert now(manual, experiment).verdict == "deferred"


# Blocks


def mismatched(engine: Engine, clock: ManualClock) -> Experiment:
    """Treatment is better, but far more sessions went to control."""
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed(engine, experiment, "control", around(0.70, 400), hours=47)
    feed(engine, experiment, "treatment", around(0.80, 200), hours=47)
    return experiment


def test_a_sample_ratio_mismatch_forbids_the_win_and_checks_go_on(engine: Engine, clock: ManualClock) -> None:
    experiment = mismatched(engine, clock)
    result = check(engine, clock, experiment, 48)
    assert (result.outcome, result.conclusion) == ("look", None)
    state = now(engine, experiment)
    assert (state.status, state.verdict, state.blocked_by) == (
        "evaluating",
        "treatment_wins",
        ["sample_ratio_mismatch"],
    )
    assert not state.held
    assert state.next_check_at == at(experiment, 72)
    assert log(engine, experiment)[1:] == [
        (
            "sample_ratio_mismatch",
            "engine",
            {"sample_ratio_mismatch": False},
            {"sample_ratio_mismatch": True},
        ),
        (
            "verdict",
            "engine",
            {"verdict": None, "status": "running"},
            {"verdict": "treatment_wins", "status": "evaluating"},
        ),
    ]
    clock.set(at(experiment, 72))
    feed_both(engine, experiment, 0.70, 0.80, 50, first_hour=48, hours=23)
    assert check(engine, clock, experiment, 72).outcome == "look"
    assert actions(engine, experiment) == ["created", "sample_ratio_mismatch", "verdict"]


def test_a_mismatch_is_noticed_between_looks_and_stays(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 12))
    feed(engine, experiment, "control", around(0.7, 120), hours=11)
    feed(engine, experiment, "treatment", around(0.7, 40), hours=11)
    assert check(engine, clock, experiment, 12).outcome == "not_due"
    assert now(engine, experiment).blocked_by == ["sample_ratio_mismatch"]
    feed(engine, experiment, "treatment", around(0.8, 80), hours=11, name="more")
    state = now(engine, experiment)
    assert (state.control_sessions, state.treatment_sessions) == (120, 120)
    assert state.blocked_by == ["sample_ratio_mismatch"]
    assert engine.details(experiment.experiment_id).sample_ratio.bayes_factor < 1
    check(engine, clock, experiment, 13)
    assert actions(engine, experiment) == ["created", "sample_ratio_mismatch"]
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, first_hour=13, hours=34)
    result = check(engine, clock, experiment, 48)
    assert (result.outcome, result.conclusion) == ("look", None)
    assert now(engine, experiment).verdict == "treatment_wins"


def test_a_preview_of_a_blocked_win_does_not_announce_it(engine: Engine, clock: ManualClock) -> None:
    experiment = mismatched(engine, clock)
    preview = engine.preview(experiment.experiment_id)
    assert preview.significant
    assert (preview.conclusion, preview.blocked_by) == (None, ["sample_ratio_mismatch"])
    assert preview.reason.startswith("treatment would have won but for a block")


def test_an_operator_promotes_what_is_blocked(engine: Engine, clock: ManualClock) -> None:
    experiment = mismatched(engine, clock)
    check(engine, clock, experiment, 48)
    end = engine.promote(experiment.experiment_id, "the splitter was broken, the data are fine")
    assert (end.status, end.conclusion, end.winner, end.promotion) == (
        "converged",
        "operator_promoted",
        "treatment",
        "applied",
    )
    assert end.blocked_by == ["sample_ratio_mismatch"]


def test_a_blocked_verdict_stays_through_checks_that_are_no_look(engine: Engine, clock: ManualClock) -> None:
    experiment = mismatched(engine, clock)
    check(engine, clock, experiment, 48)
    assert check(engine, clock, experiment, 72).outcome == "waiting"
    assert now(engine, experiment).verdict == "treatment_wins"
    assert check(engine, clock, experiment, 168).outcome == "extended"
    assert now(engine, experiment).verdict == "treatment_wins"
    assert actions(engine, experiment) == [
        "created",
        "sample_ratio_mismatch",
        "verdict",
        "extended",
    ]


def test_a_blocked_verdict_goes_when_a_look_no_longer_supports_it(engine: Engine, clock: ManualClock) -> None:
    experiment = mismatched(engine, clock)
    check(engine, clock, experiment, 48)
    clock.set(at(experiment, 72))
    feed_both(engine, experiment, 0.70, 0.645, 250, first_hour=48, hours=23, spread=0.2)
    result = check(engine, clock, experiment, 72)
    assert result.conclusion is None
    assert now(engine, experiment).verdict is None
    assert log(engine, experiment)[-1][2:] == ({"verdict": "treatment_wins"}, {"verdict": None})


def test_a_block_does_not_keep_a_worse_treatment_alive(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed(engine, experiment, "control", around(0.70, 800), hours=47)
    feed(engine, experiment, "treatment", around(0.67, 400), hours=47)
    assert check(engine, clock, experiment, 48).conclusion == "control_wins"
    assert now(engine, experiment).blocked_by == ["sample_ratio_mismatch"]


def test_a_blocked_win_is_deferred_at_the_maximum(engine: Engine, clock: ManualClock) -> None:
    experiment = mismatched(engine, clock)
    result = check(engine, clock, experiment, 720)
    assert (result.conclusion, result.winner) == ("deferred", None)
    assert now(engine, experiment).promotion == "none"


def attrited(engine: Engine, clock: ManualClock) -> Experiment:
    """Treatment is better, but a third of its sessions were never scored."""
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed(engine, experiment, "control", around(0.70, 300), hours=23)
    kept: list[float | None] = [*around(0.80, 200), *[None] * 100]
    feed(engine, experiment, "treatment", kept, hours=23)
    return experiment


def test_attrition_forbids_the_win_and_checks_go_on(engine: Engine, clock: ManualClock) -> None:
    experiment = attrited(engine, clock)
    result = check(engine, clock, experiment, 48)
    assert (result.outcome, result.conclusion) == ("look", None)
    state = now(engine, experiment)
    assert (state.blocked_by, state.verdict, state.held) == (["attrition"], "treatment_wins", False)
    assert log(engine, experiment)[1] == ("attrition", "engine", {"attrition": False}, {"attrition": True})


def test_sessions_that_may_still_be_scored_are_no_attrition(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 24))
    feed(engine, experiment, "control", around(0.70, 300), hours=23)
    kept: list[float | None] = [*around(0.80, 200), *[None] * 100]
    feed(engine, experiment, "treatment", kept, hours=23)
    check(engine, clock, experiment, 24)
    assert now(engine, experiment).blocked_by == []


def test_attrition_is_not_latched(engine: Engine, clock: ManualClock) -> None:
    experiment = attrited(engine, clock)
    check(engine, clock, experiment, 48)
    for i in range(200, 300):
        engine.record(f"s-treatment-0-{i}", scores={"response_relevance": 0.8})
    feed_both(engine, experiment, 0.70, 0.80, 5, first_hour=47, hours=1)
    result = check(engine, clock, experiment, 72)
    assert now(engine, experiment).blocked_by == []
    assert result.conclusion == "treatment_wins"


# Preview


def test_a_preview_shows_the_analysis_of_a_look_and_changes_nothing(
    engine: Engine, clock: ManualClock
) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=47.9)
    before = now(engine, experiment), engine.details(experiment.experiment_id), engine.events()
    preview = engine.preview(experiment.experiment_id)
    assert (now(engine, experiment), engine.details(experiment.experiment_id), engine.events()) == before
    result = check(engine, clock, experiment, 48)
    assert result.look is not None
    assert preview.comparison is not None
    assert preview.comparison.p_value == result.look.p_value
    assert preview.comparison.lift_interval.lower == pytest.approx(
        result.look.lift_interval.lower if result.look.lift_interval else 0, rel=1e-6
    )
    assert preview.alpha_threshold == pytest.approx(result.look.alpha_threshold, rel=1e-6)
    assert preview.conclusion == result.conclusion == "treatment_wins"
    assert preview.significant


def test_a_preview_takes_the_sessions_of_this_very_moment(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 10.5))
    feed_both(engine, experiment, 0.60, 0.61, 110, hours=10.4, spread=0.3)
    preview = engine.preview(experiment.experiment_id)
    assert preview.missing == []
    assert preview.comparison is not None
    assert preview.comparison.degrees_of_freedom == pytest.approx(218, abs=1)
    assert preview.conclusion is None
    assert preview.at == at(experiment, 10.5)
    assert check(engine, clock, experiment, 24).outcome == "look"


def test_a_preview_says_what_is_missing(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 5))
    feed(engine, experiment, "control", around(0.7, 100), hours=4)
    preview = engine.preview(experiment.experiment_id)
    assert preview.missing[0] == "treatment has 0 of 100 scored sessions"
    assert preview.comparison is None
    assert not preview.significant


def test_previews_do_not_move_the_boundaries_of_looks(
    open_engine: OpenEngine, clock: ManualClock, tmp_path: Path
) -> None:
    curious, calm = open_engine(), open_engine(tmp_path / "calm.db")
    looks = []
    for engine in (curious, calm):
        clock.set("2026-06-01T00:00:00Z")
        experiment = start(engine)
        clock.set(at(experiment, 71))
        feed_both(engine, experiment, 0.60, 0.61, 300, hours=70, spread=0.3)
        for hours in (24, 48, 72):
            for minutes in range(-20, 0):
                clock.set(at(experiment, hours) + timedelta(minutes=minutes))
                if engine is curious:
                    engine.preview(experiment.experiment_id)
            check(engine, clock, experiment, hours)
        looks.append(engine.details(experiment.experiment_id).looks)
    assert looks[0] == looks[1]
