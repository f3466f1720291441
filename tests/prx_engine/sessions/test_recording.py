"""Recording: what is kept of a session, what it means to an experiment, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.dimensions import DIMENSIONS
from prx_engine.errors import InvalidInput, NotFound
from prx_engine.records import FitnessScore
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine


def create(engine: Engine, **options: Any) -> str:
    return engine.create_experiment(options.pop("layer", "L2"), "t", hypothesis="h", **options).experiment_id


def scored(engine: Engine, experiment: str) -> tuple[int, int]:
    record = engine.experiment(experiment)
    return record.control_fitness.sessions, record.treatment_fitness.sessions


def assigned(engine: Engine, experiment: str) -> tuple[int, int]:
    record = engine.experiment(experiment)
    return record.control_sessions, record.treatment_sessions


def present(engine: Engine) -> FitnessScore:
    return engine.fitness().fitness


def means(score: FitnessScore) -> dict[str, float]:
    return {name: d.score for name, d in score.dimensions.items() if d.score is not None}


def test_a_session_recorded_without_assignment_counts_for_the_deployment_alone(engine: Engine) -> None:
    experiment = create(engine)
    engine.record("s", thumbs_up=1)
    assert (assigned(engine, experiment), scored(engine, experiment)) == ((0, 0), (0, 0))
    assert present(engine).sessions == 1


def test_scores_of_an_assigned_session_count_for_its_arm(engine: Engine) -> None:
    experiment = create(engine, traffic_split=1.0)
    engine.assign("s")
    assert (assigned(engine, experiment), scored(engine, experiment)) == ((0, 1), (0, 0))
    engine.record("s", thumbs_up=1)
    assert (assigned(engine, experiment), scored(engine, experiment)) == ((0, 1), (0, 1))


def test_a_session_without_any_score_is_assigned_but_not_scored(engine: Engine) -> None:
    experiment = create(engine)
    engine.record("s", layer="L2", variant="control", tool_calls=0, tool_calls_succeeded=0)
    assert (assigned(engine, experiment), scored(engine, experiment)) == ((1, 0), (0, 0))
    assert present(engine).sessions == 0


def test_the_same_thing_twice_changes_nothing(engine: Engine) -> None:
    report: dict[str, Any] = {"relevance": [0.4, 0.6], "tokens": 5210, "thumbs_up": 2}
    engine.record("s", **report)
    before = present(engine)
    engine.record("s", **report)
    assert present(engine) == before


def test_within_a_source_later_fields_replace_earlier_ones(engine: Engine) -> None:
    engine.record("s", relevance=[0.4], thumbs_up=1)
    engine.record("s", relevance=[0.8, 1.0])
    assert means(present(engine)) == {"response_relevance": 0.9, "user_satisfaction": 1.0}


def test_across_sources_counts_add_and_lists_join(engine: Engine) -> None:
    engine.record("s", source="judge", relevance=[0.4], tool_calls=3, tool_calls_succeeded=1)
    engine.record("s", source="agent", relevance=[0.8, 0.9], tool_calls=1, tool_calls_succeeded=1)
    assert means(present(engine)) == {"response_relevance": 0.7, "task_completion": 0.5}


def test_a_correction_is_told_to_the_experiment_without_drift(engine: Engine) -> None:
    experiment = create(engine, traffic_split=0.0)
    engine.assign("s")
    for value in (0.1, 0.7, 0.3, 0.2):
        engine.record("s", relevance=value)
    control = engine.experiment(experiment).control_fitness
    assert control.dimensions["response_relevance"].score == 0.2
    assert engine.verify().problems == []


def test_the_first_call_fixes_the_start(engine: Engine, clock: ManualClock) -> None:
    early = clock.now() - timedelta(hours=30)
    engine.record("s", started_at=early, thumbs_up=1)
    engine.record("s", started_at=clock.now(), thumbs_up=2)
    assert present(engine).sessions == 0
    clock.set(early)
    assert present(engine).sessions == 1


def test_without_a_start_the_session_starts_with_its_first_call(engine: Engine, clock: ManualClock) -> None:
    engine.assign("s")
    clock.advance(days=3)
    engine.record("s", thumbs_up=1)
    assert present(engine).sessions == 0
    clock.advance(days=-3)
    assert present(engine).sessions == 1


def test_a_start_may_be_five_minutes_ahead_and_no_more(engine: Engine, clock: ManualClock) -> None:
    engine.record("s", started_at=clock.now() + timedelta(minutes=5), thumbs_up=1)
    with pytest.raises(InvalidInput) as caught:
        engine.record("t", started_at=clock.now() + timedelta(minutes=5, microseconds=1))
    assert str(caught.value) == (
        "started_at: found 2026-06-01T00:05:00.000001Z; allowed: at most 5 minutes after the clock,"
        " 2026-06-01T00:00:00Z"
    )


def test_a_stated_variant_enters_the_experiment_active_at_the_start(
    engine: Engine, clock: ManualClock
) -> None:
    old = create(engine)
    clock.advance(hours=10)
    engine.cancel(old)
    clock.advance(hours=10)
    new = create(engine)
    clock.advance(hours=10)
    for hours in (25, 15, 5):  # during the old one, between them, during the new one
        engine.record(
            f"s-{hours}", layer="L2", variant="treatment", started_at=clock.now() - timedelta(hours=hours)
        )
    assert assigned(engine, old) == (0, 0)  # ended: kept and not counted
    assert assigned(engine, new) == (0, 1)


@pytest.mark.parametrize("by", ["layer", "experiment_id"])
def test_an_agent_that_splits_its_own_traffic_states_layer_or_experiment(engine: Engine, by: str) -> None:
    experiment = create(engine)
    stated = {"layer": "L2", "experiment_id": experiment}[by]
    engine.record("s", **{by: stated}, variant="treatment", thumbs_up=1)
    engine.record("s", **{by: stated}, variant="treatment", thumbs_up=1)
    assert (assigned(engine, experiment), scored(engine, experiment)) == ((0, 1), (0, 1))


def test_an_unknown_experiment_is_refused(engine: Engine) -> None:
    with pytest.raises(NotFound, match="experiment_id: no experiment 0197285e"):
        engine.record("s", experiment_id="0197285e", variant="control")


def test_an_experiment_stated_with_another_layer_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match="layer: found L1; the stated experiment is of L2"):
        engine.record("s", experiment_id=create(engine), layer="L1", variant="control")


def test_a_different_variant_stated_later_is_refused(engine: Engine) -> None:
    experiment = create(engine)
    engine.record("s", layer="L2", variant="control")
    with pytest.raises(InvalidInput) as caught:
        engine.record("s", layer="L2", variant="treatment", thumbs_up=1)
    assert str(caught.value) == (
        "variant: found treatment in L2; session s is assigned to control in L2 already"
    )
    assert (assigned(engine, experiment), scored(engine, experiment)) == ((1, 0), (0, 0))


def test_a_different_variant_than_the_assigned_one_is_refused(engine: Engine) -> None:
    create(engine, traffic_split=1.0)
    engine.assign("s")
    with pytest.raises(
        InvalidInput, match="variant: found control in L2; session s is assigned to treatment"
    ):
        engine.record("s", layer="L2", variant="control")


@pytest.mark.parametrize("hours_later", [0, 40])
def test_a_different_variant_is_refused_after_the_experiment_too(
    engine: Engine, clock: ManualClock, hours_later: int
) -> None:
    experiment = create(engine)
    engine.record("s", layer="L2", variant="control")
    clock.advance(hours=1)
    engine.cancel(experiment)
    clock.advance(hours=hours_later)
    engine.record("s", layer="L2", variant="control")
    with pytest.raises(InvalidInput, match="assigned to control"):
        engine.record("s", layer="L2", variant="treatment")


def test_another_experiment_of_the_layer_is_refused_for_a_session_that_has_one(
    engine: Engine, clock: ManualClock
) -> None:
    first = create(engine)
    engine.record("s", layer="L2", variant="control")
    engine.cancel(first)
    clock.advance(hours=1)
    second = create(engine)
    with pytest.raises(InvalidInput, match=f"found control in L2, experiment {second[-8:]}"):
        engine.record("s", experiment_id=second, variant="control")


def test_a_session_from_the_maximum_on_does_not_enter(engine: Engine, clock: ManualClock) -> None:
    experiment = create(engine)
    clock.set(engine.experiment(experiment).max_end_at)
    engine.record("late", layer="L2", variant="control", thumbs_up=1)
    engine.record(
        "in time", layer="L2", variant="control", thumbs_up=1, started_at=clock.now() - timedelta(seconds=1)
    )
    assert assigned(engine, experiment) == (1, 0)


def test_a_session_recorded_after_the_end_is_kept_and_not_counted(engine: Engine, clock: ManualClock) -> None:
    experiment = create(engine)
    clock.advance(hours=1)
    engine.cancel(experiment)
    engine.record("s", layer="L2", variant="control", thumbs_up=1)
    engine.record("t", experiment_id=experiment, variant="control", thumbs_up=1)
    assert (assigned(engine, experiment), scored(engine, experiment)) == ((0, 0), (0, 0))
    assert present(engine).sessions == 2


def test_scores_freeze_with_the_end_of_the_experiment(engine: Engine, clock: ManualClock) -> None:
    experiment = create(engine)
    for i in range(24):
        variant = ("control", "treatment")[i % 2]
        engine.record(f"s-{i}", layer="L2", variant=variant, relevance=0.5)
    clock.advance(hours=1)
    frozen = engine.cancel(experiment)
    for i in range(24):
        engine.record(f"s-{i}", relevance=0.9)
    assert engine.experiment(experiment) == frozen
    assert frozen.control_fitness.composite == 0.5
    (point,) = engine.trend(experiment)
    assert (point.control, point.treatment) == (0.5, 0.5)
    assert means(present(engine)) == {"response_relevance": 0.9}
    assert engine.verify().problems == []


def test_an_experiment_scores_by_what_was_configured_at_its_creation(
    engine: Engine, open_engine: OpenEngine, clock: ManualClock
) -> None:
    experiment = create(engine, traffic_split=0.0)
    later = open_engine(
        config="[self_evolution.fitness.normalization]\n"
        'task_completion = "tasks"\ntokens_per_task = [1, 5210]\n'
    )
    for i in range(10):
        later.assign(f"s-{i}")
        later.record(f"s-{i}", tool_calls=4, tool_calls_succeeded=1, tasks=2, tasks_succeeded=1, tokens=5210)
    assert means(later.experiment(experiment).control_fitness) == {
        "task_completion": 0.25,
        "token_efficiency": 0.5781,
    }
    assert means(present(later)) == {"task_completion": 0.5, "token_efficiency": 0.0}
    assert later.verify().problems == []


def test_one_session_may_be_in_an_experiment_of_every_layer(engine: Engine) -> None:
    experiments = [create(engine, layer=layer, traffic_split=1.0) for layer in ("L1", "L2", "L3")]
    engine.assign("s")
    engine.record("s", thumbs_down=1)
    for experiment in experiments:
        assert scored(engine, experiment) == (0, 1)
        fitness = engine.experiment(experiment).treatment_fitness
        assert fitness.dimensions["user_satisfaction"].score == 0.0


def test_a_refused_report_leaves_no_trace(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match=r"relevance\.0: found 2"):
        engine.record("s", relevance=2, thumbs_up=1)
    with pytest.raises(InvalidInput, match="tool_calls_succeeded: found 2"):
        engine.record("s", tool_calls=1, tool_calls_succeeded=2)
    result = engine.verify()
    assert (result.sessions, result.problems) == (0, [])


def test_a_contradiction_between_sources_is_refused_and_the_first_one_stays(engine: Engine) -> None:
    engine.record("s", source="a", tool_calls=2, tool_calls_succeeded=1)
    with pytest.raises(InvalidInput, match="tool_calls_succeeded: found 3; allowed: at most tool_calls = 2"):
        engine.record("s", source="b", tool_calls_succeeded=2)
    with pytest.raises(InvalidInput, match="tool_calls_succeeded: found 5; allowed: at most tool_calls = 2"):
        engine.record("s", source="a", tool_calls_succeeded=5)
    assert means(present(engine)) == {"task_completion": 0.5}


def test_all_dimensions_of_the_documented_line(engine: Engine) -> None:
    engine.record(
        "s-17",
        relevance=[0.9, 0.7],
        tool_calls=6,
        tool_calls_succeeded=5,
        first_token_ms=[420, 610],
        tokens=5210,
        tasks_succeeded=1,
        recall_relevance=[0.8],
        thumbs_up=1,
    )
    expected = (0.8, 0.8333, 0.9951, 0.5781, 0.8, 1.0)
    assert means(present(engine)) == dict(zip(DIMENSIONS, expected, strict=True))
