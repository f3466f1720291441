from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.records import Experiment, Forecast, Prospect
from prx_tui.forecast import detectable_sentence, forecast_sentence, odds
from tests.support.clock import ManualClock
from tests.support.experiments import at, feed_both, start

START = datetime(2026, 6, 1, tzinfo=UTC)
PLANNED = Prospect(by=START + timedelta(days=7), decided=0.79, treatment_wins=0.78, detectable_lift=0.053)
MAXIMUM = Prospect(by=START + timedelta(days=30), decided=0.999, treatment_wins=0.99, detectable_lift=0.0275)


def forecast(**changes: Any) -> Forecast:
    fields: dict[str, Any] = {
        "at": START, "control_a_day": 41.2, "treatment_a_day": 40.1, "enough_sessions_at": START,
        "lift": 0.043, "planned": PLANNED, "maximum": MAXIMUM, "looks": [], "harm_looks": [],
    }  # fmt: skip
    return Forecast(**(fields | changes))


@pytest.fixture
def experiment(engine: Engine) -> Experiment:
    return start(engine)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            "At 41 sessions a day and arm, 4 in 5 that this is decided by 8 June, nearly certain by 1 July,"
            " if the present lift of +4.3 % is real.",
        ),
        (
            {"planned": None, "treatment_a_day": 4.5},
            "At 41 + 4.5 sessions a day, nearly certain that this is decided by 1 July, if the present lift"
            " of +4.3 % is real.",
        ),
        (
            {"planned": None, "maximum": None, "enough_sessions_at": START + timedelta(days=2)},
            "At 41 sessions a day and arm, both arms have enough sessions for a look by 3 June.",
        ),
        (
            {"enough_sessions_at": None},
            "At 41 sessions a day and arm, the arms do not reach 100 sessions before the end.",
        ),
        (
            {"control_a_day": 0.0, "treatment_a_day": 0.0},
            "No sessions are coming in: nothing will be decided.",
        ),
    ],
)
def test_a_forecast_is_one_plain_sentence(
    changes: dict[str, Any], sentence: str, experiment: Experiment
) -> None:
    assert forecast_sentence(forecast(**changes), experiment) == sentence


def test_what_can_be_found_is_told_by_both_ends() -> None:
    told = "A true lift of +5.3 % by 8 June, or of +2.8 % by 1 July, would win 4 times in 5."
    assert detectable_sentence(forecast()) == told
    assert detectable_sentence(forecast(planned=None, maximum=None)) is None


@pytest.mark.parametrize(
    ("chance", "said"),
    [(0.0, "hardly a chance"), (0.1, "1 in 10"), (0.5, "1 in 2"), (0.8, "4 in 5"), (1.0, "nearly certain")],
)
def test_odds_are_those_that_people_use(chance: float, said: str) -> None:
    assert odds(chance) == said


def test_an_active_experiment_has_a_forecast_and_an_ended_one_has_none(
    engine: Engine, clock: ManualClock, experiment: Experiment
) -> None:
    identifier = experiment.experiment_id
    clock.set(at(experiment, 72))
    feed_both(engine, experiment, 0.60, 0.62, 123, hours=72, spread=0.3)
    found = engine.forecast(identifier)
    assert found is not None
    assert found.control_a_day == pytest.approx(41)
    assert found.enough_sessions_at == clock.now()
    assert found.planned is not None
    assert found.maximum is not None
    assert found.planned.by == experiment.planned_end_at
    assert 0 < found.planned.decided < found.maximum.decided <= 1
    assert found.maximum.treatment_wins <= found.maximum.decided
    assert [look.at for look in found.looks][:2] == [at(experiment, 96), at(experiment, 120)]
    assert all(look.boundary > 1.9 for look in found.looks)
    assert len(found.harm_looks) >= len(found.looks)
    engine.cancel(identifier)
    assert engine.forecast(identifier) is None


def test_the_date_of_enough_sessions_follows_from_the_traffic(
    engine: Engine, clock: ManualClock, experiment: Experiment
) -> None:
    clock.set(at(experiment, 24))
    feed_both(engine, experiment, 0.60, 0.62, 40, hours=24, spread=0.3)
    found = engine.forecast(experiment.experiment_id)
    assert found is not None
    assert found.enough_sessions_at == at(experiment, 60)


def test_traffic_is_that_of_the_last_seven_days(
    engine: Engine, clock: ManualClock, experiment: Experiment
) -> None:
    clock.set(at(experiment, 240))
    feed_both(engine, experiment, 0.60, 0.601, 300, hours=24, spread=0.3)
    feed_both(engine, experiment, 0.60, 0.601, 70, first_hour=72, hours=168, spread=0.3)
    found = engine.forecast(experiment.experiment_id)
    assert found is not None
    assert found.treatment_a_day == pytest.approx(10)
    assert found.planned is None


def test_a_forecast_needs_a_few_sessions_in_each_arm(
    engine: Engine, clock: ManualClock, experiment: Experiment
) -> None:
    clock.set(at(experiment, 1))
    feed_both(engine, experiment, 0.60, 0.62, 9, hours=1)
    found = engine.forecast(experiment.experiment_id)
    assert found is not None
    assert found.maximum is None
    assert found.lift is None
    assert found.looks == []
