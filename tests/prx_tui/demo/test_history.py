from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import get_args

import pytest

from prx_engine.clock import HOUR
from prx_engine.dimensions import LAYERS
from prx_engine.engine import Engine
from prx_engine.records import Conclusion, Experiment, Status, Verification
from prx_tui.demo.agent import QUICK, Agent
from prx_tui.demo.cast import FIRST_DAY, HISTORY, NEXT
from prx_tui.demo.clock import DEMO_NOW
from prx_tui.demo.deployment import Deployment, throw_away_deployment
from prx_tui.demo.history import World, make_history
from prx_tui.demo.workload import Arrivals


@dataclass
class Told:
    """Everything that the tests ask about one demo, read before its agent goes on."""

    engine: Engine
    world: World
    arrivals: Arrivals
    deployment: Deployment
    experiments: dict[str, Experiment]
    picture: list[str]
    verification: Verification


def told(deployment: Deployment) -> Told:
    world = World(deployment.seed, HISTORY + NEXT)
    arrivals = make_history(deployment, world)
    engine = deployment.engine("agent")
    every = engine.experiments("all")
    picture = [record.model_dump_json() for record in (*every, engine.fitness(), *engine.history(46))]
    by_decision = {one.decision_id or "": one for one in every}
    return Told(engine, world, arrivals, deployment, by_decision, picture, engine.verify())


@pytest.fixture(scope="module")
def demo() -> Iterator[Told]:
    with throw_away_deployment(1) as deployment:
        made = told(deployment)
        with made.engine:
            yield made


def of(demo: Told, hypothesis: str) -> Experiment:
    (found,) = (one for one in demo.experiments.values() if one.hypothesis.startswith(hypothesis))
    return found


def test_every_status_layer_and_conclusion_is_there(demo: Told) -> None:
    every = demo.experiments.values()
    assert 15 <= len(every) <= 20
    assert {one.layer for one in every} == set(LAYERS)
    assert {one.status for one in every} == set(get_args(Status))
    assert {one.conclusion for one in every} == {*get_args(Conclusion), None}
    assert {"applied", "rolled_back", "none"} <= {one.promotion for one in every}
    assert {one.layer for one in every if one.active} == set(LAYERS)


def test_the_prompt_refinement_went_from_72_to_75_and_was_promoted(demo: Told) -> None:
    one = of(demo, "Refined system prompt")
    assert (one.layer, one.conclusion, one.promotion) == ("L2", "treatment_wins", "applied")
    assert one.control_fitness.composite == pytest.approx(0.72, abs=0.005)
    assert one.treatment_fitness.composite == pytest.approx(0.75, abs=0.005)


def test_the_routing_change_is_undecided_and_extended(demo: Told) -> None:
    one = of(demo, "Route simple coding to Sonnet")
    assert (one.layer, one.status, one.extensions) == ("L3", "evaluating", 1)
    assert one.last_look is not None
    assert not one.last_look.significant
    assert one.blocked_by == []


def test_the_mismatch_forbids_a_promotion_and_its_cause_is_told(demo: Told) -> None:
    one = of(demo, "Keep 30 memories")
    assert one.active
    assert one.blocked_by == ["sample_ratio_mismatch"]
    assert one.verdict == "treatment_wins"
    assert one.control_sessions > 1.8 * one.treatment_sessions
    assert "run as control" in one.treatment.description


def test_feedback_is_missing_where_the_treatment_stops_asking_for_it(demo: Told) -> None:
    one = of(demo, "Do not ask whether the answer helped")
    satisfaction = one.treatment_fitness.dimensions["user_satisfaction"]
    assert 0 < satisfaction.sessions < 30
    assert not satisfaction.counts
    assert satisfaction.configured_weight == 0.10


def test_a_regression_was_stopped_before_there_were_enough_sessions(demo: Told) -> None:
    one = of(demo, "Store tool results")
    assert (one.conclusion, one.winner) == ("regression", "control")
    assert one.treatment_sessions < one.parameters.experiments.min_sample_size


def test_who_cancels_says_why(demo: Told) -> None:
    cancelled = [one for one in demo.experiments.values() if one.status == "cancelled"]
    assert len(cancelled) == 3
    for one in cancelled:
        last = demo.engine.events(one.experiment_id, limit=1)[0]
        assert (last.actor, last.action) == ("dana", "cancelled")
        assert last.reason


def test_prompts_and_keys_are_what_the_treatments_change(demo: Told) -> None:
    for one in demo.experiments.values():
        assert one.treatment.changes_something, one.hypothesis
        assert one.decision_id
    live = of(demo, "Shorter system prompt")
    (text,) = live.treatment.files.values()
    assert text != demo.world.prompt
    assert "# Goal" in text  # what was promoted before is kept
    assert list(live.control.files.values()) == [demo.world.prompt]
    assert of(demo, "Keep 30 memories").control.config == {"memory.recall_limit": 50}


def test_fitness_improves_over_more_than_thirty_days(demo: Told) -> None:
    days = [day.fitness for day in demo.engine.history(46) if day.fitness.valid]
    assert len(days) > 40
    first, last = ([d.composite or 0.0 for d in part] for part in (days[:7], days[-7:]))
    assert sum(last) / 7 > sum(first) / 7 + 0.05
    assert demo.engine.fitness().fitness.valid


def test_nothing_is_wrong_with_the_totals(demo: Told) -> None:
    assert demo.verification.problems == []
    assert demo.verification.sessions > 5000


def test_another_seed_is_another_story(demo: Told) -> None:
    ids = {one.experiment_id for one in demo.experiments.values()}
    with throw_away_deployment(2) as deployment, deployment.engine() as engine:
        make_history(deployment, World(2, HISTORY), end=FIRST_DAY + timedelta(days=5))
        every = engine.experiments("all")
        assert {one.layer for one in every} == set(LAYERS)
        assert not ids & {one.experiment_id for one in every}
        fitness = [day.fitness.composite for day in engine.history(5)]
        assert fitness != [day.fitness.composite for day in demo.engine.history(46)][:5]


def test_the_same_seed_is_the_same_picture_and_a_treatment_wins_within_a_minute(demo: Told) -> None:
    with throw_away_deployment(1) as deployment:
        again = told(deployment)
        with again.engine as engine, deployment.engine("operator") as operator:
            assert again.picture == demo.picture
            agent = Agent(engine, again.world, again.arrivals, deployment.clock)
            watch(agent, deployment, engine, operator, of(again, "Keep 30 memories").experiment_id)
            assert agent.has_seen_a_win
            won = engine.experiment(of(again, "Shorter system prompt").experiment_id)
            assert (won.conclusion, won.promotion) == ("treatment_wins", "applied")
            assert not won.treatment_fitness.dimensions["user_satisfaction"].counts
            # A free layer gets the agent's next idea.
            assert [one.decision_id for one in engine.experiments("active", layer="L1")] == ["dec-0136"]
            assert engine.verify().problems == []


def watch(agent: Agent, deployment: Deployment, engine: Engine, operator: Engine, victim: str) -> None:
    """Let a minute pass, or less until a treatment wins; meanwhile an operator cancels an experiment."""
    step = timedelta(hours=2.5)
    for number in range(1, int(60 * QUICK * HOUR / step) + 1):
        deployment.clock.move_to(DEMO_NOW + number * step)
        if number == 2:
            operator.cancel(victim, "the split is broken")
        agent.step()
        engine.check()
        if agent.has_seen_a_win:
            return
