from __future__ import annotations

import pytest

from prx_engine import Engine
from tests.support.clock import ManualClock
from tests.support.experiments import around, at, feed, feed_both, start


def test_everything_about_an_experiment_is_told_together(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 49))
    feed_both(engine, experiment, 0.60, 0.61, 240, hours=48, spread=0.3)
    feed(engine, experiment, "control", around(0.5, 20), hours=48, dimension="task_completion", name="t")
    engine.check()
    details = engine.details(experiment.experiment_id)
    assert details.experiment == engine.experiment(experiment.experiment_id)
    assert [look.k for look in details.looks] == [1, 2]
    assert [look.series for look in details.harm_looks] == ["harm", "harm"]
    relevance, completion = (
        details.dimensions["response_relevance"],
        details.dimensions["task_completion"],
    )
    assert relevance.counts
    assert relevance.difference == pytest.approx(0.01, abs=0.002)
    assert (completion.counts, completion.control_sessions, completion.p_value) == (False, 20, None)
    assert (details.sample_ratio.control, details.sample_ratio.treatment) == (260, 240)
    assert details.attrition.control_scored == details.attrition.control_assigned == 136
    assert [event.action for event in details.events] == ["evaluating", "created"]


def test_an_experiment_without_sessions_has_details(engine: Engine) -> None:
    details = engine.details(start(engine).experiment_id)
    assert details.looks == details.harm_looks == []
    assert all(d.control is None and not d.counts for d in details.dimensions.values())
    assert not details.attrition.suspicious
    assert details.experiment.lift is None
    assert details.experiment.p_value is None


def test_infinite_figures_are_null_in_json(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 24))
    feed_both(engine, experiment, 0.0, 0.0, 150, spread=0.0)
    feed(engine, experiment, "treatment", [0.5] * 150, name="more")
    engine.check()
    text = engine.details(experiment.experiment_id).model_dump_json()
    assert "Infinity" not in text
    assert "NaN" not in text
    assert engine.experiment(experiment.experiment_id).model_dump(mode="json")["lift"] is None


def test_looks_come_back_from_the_database_to_the_last_bit(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 24))
    feed_both(engine, experiment, 0.61, 0.612, 333, spread=0.3)
    (result,) = engine.check()
    assert engine.details(experiment.experiment_id).looks == [result.look]
