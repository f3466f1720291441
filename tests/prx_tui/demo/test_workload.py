from __future__ import annotations

from collections import Counter
from datetime import timedelta
from statistics import fmean

import pytest

from prx_engine.configuration import FitnessSettings
from prx_engine.dimensions import DIMENSIONS
from prx_engine.scoring.metrics import SessionUpdate
from prx_engine.scoring.scores import Scorer
from prx_tui.demo.cast import FIRST_DAY
from prx_tui.demo.workload import BASE, SESSIONS_AN_HOUR, Arrival, Arrivals, Behaviour, lines, measured


def test_arrivals_are_the_same_however_they_are_asked_for() -> None:
    at_once = list(Arrivals(1, FIRST_DAY).until(FIRST_DAY + timedelta(days=2)))
    arrivals = Arrivals(1, FIRST_DAY)
    in_steps = [a for hour in range(49) for a in arrivals.until(FIRST_DAY + timedelta(hours=hour))]
    assert in_steps == at_once
    assert list(Arrivals(2, FIRST_DAY).until(FIRST_DAY + timedelta(days=2))) != at_once


def test_days_are_busier_than_nights_and_weekends() -> None:
    arrivals = list(Arrivals(1, FIRST_DAY).until(FIRST_DAY + timedelta(weeks=4)))
    by_day = Counter(a.started_at.weekday() for a in arrivals)
    working_day = fmean(by_day[day] for day in range(5)) / 4
    assert working_day == pytest.approx(SESSIONS_AN_HOUR * 24, rel=0.1)
    assert max(by_day[5], by_day[6]) < min(by_day[day] for day in range(5))
    by_hour = Counter(a.started_at.hour for a in arrivals)
    assert by_hour[3] < by_hour[10] / 4


def test_what_was_skipped_never_comes() -> None:
    arrivals = Arrivals(1, FIRST_DAY)
    arrivals.skip_to(FIRST_DAY + timedelta(days=3))
    later = list(arrivals.until(FIRST_DAY + timedelta(days=4)))
    assert later
    assert all(a.started_at >= FIRST_DAY + timedelta(days=3) for a in later)
    assert later[0].session_id == "s-000001"


def test_raw_metrics_earn_the_scores_of_the_behaviour() -> None:
    scorer = Scorer(FitnessSettings())
    wanted = Behaviour(0.7, 0.75, 0.6, 0.5, 0.65, 0.7, 1.0)
    reports = [
        SessionUpdate.of({"session_id": "s", **metrics}).report
        for number in range(2000)
        if (metrics := measured(1, f"s-{number}", wanted))
    ]
    assert 1920 < len(reports) < 1990
    scores = [scorer.scores(report) for report in reports]
    for index, name in enumerate(DIMENSIONS):
        mean = fmean(score for row in scores if (score := row[index]) is not None) / 10_000
        expected = (0.7, 0.75, 0.6, 0.5, 0.65, 0.7)[index]
        assert mean == pytest.approx(expected, abs=0.015), name


def test_a_session_measures_the_same_whenever_it_is_asked() -> None:
    assert measured(1, "s-1", BASE) == measured(1, "s-1", BASE)
    assert measured(1, "s-1", BASE) != measured(2, "s-1", BASE)
    better = measured(1, "s-1", BASE + Behaviour(efficiency=0.2))
    assert better["tokens"] < measured(1, "s-1", BASE)["tokens"]


def test_lines_name_each_layer_once_and_the_metrics_once() -> None:
    arrival = Arrival("s-1", FIRST_DAY)
    written = list(lines(arrival, {"tokens": 7}, [("L1", "control"), ("L3", "treatment")]))
    assert [line.get("layer") for line in written] == ["L1", "L3"]
    assert [line.get("tokens") for line in written] == [7, None]
    assert list(lines(arrival, {"tokens": 7}, [])) == [
        {"session_id": "s-1", "started_at": FIRST_DAY.isoformat(), "tokens": 7}
    ]
