from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prx_engine.experiments.outlook import Outlook, Spread, Standing, times_ahead
from tests.prx_engine.experiments.test_looks import recorded
from tests.study.simulation import simulate
from tests.support.evidence import parameters, subject

REFERENCE = json.loads((Path(__file__).parents[1] / "statistics" / "reference.json").read_text())[
    "power_exit_probabilities"
]
A_HOUR = 1000.0
SPREAD = Spread(0.72, 0.0324, 0.0324)


def spread_of_study() -> Spread:
    """Normal scores of mean 0.72 and standard deviation 0.18 that are cut to 0–1."""
    scores = np.clip(np.random.default_rng(1).normal(0.72, 0.18, 1_000_000), 0, 1)
    return Spread(float(scores.mean()), float(scores.var()), float(scores.var()))


@pytest.mark.parametrize(
    "row", REFERENCE, ids=lambda row: f"{row['spending']}-{len(row['t'])}-{row['drift_at_t1']}"
)
def test_chances_are_the_exit_probabilities_of_the_reference(row: dict[str, Any]) -> None:
    looks = len(row["t"])
    settings = parameters(
        duration=24 * looks, maximum=24 * looks, min_effect_size=0.0,
        spending="obrien_fleming" if row["spending"] == "OF" else "pocock",
        fitness={"thresholds": {"regression_delta": 1.0}},
    )  # fmt: skip
    outlook = Outlook(subject(settings), SPREAD, Standing(), (A_HOUR, A_HOUR))
    n = A_HOUR * 24 * looks
    difference = row["drift_at_t1"] * math.sqrt((SPREAD.control + SPREAD.treatment) / n)
    chances = outlook.chances(difference)
    np.testing.assert_allclose(chances.wins + chances.rejected, row["exit_prob"], atol=1e-6)
    assert chances.decided_by(24 * looks) == pytest.approx(row["power"], abs=1e-6)
    hours = sum(p * t for p, t in zip(row["exit_prob"], row["t"], strict=True)) + 1 - row["power"]
    assert chances.expected_hours(24 * looks) == pytest.approx(hours * 24 * looks, rel=1e-6)


@pytest.mark.parametrize("lift", [-0.04, 0.0, 0.05])
def test_chances_are_the_frequencies_of_simulated_experiments(lift: float) -> None:
    runs = 150
    name = {-0.04: "lift −4 %", 0.0: "no effect", 0.05: "lift +5 %"}[lift] + ", normal, 40 a day"
    found = simulate(name, runs)
    outlook = Outlook(subject(parameters()), spread_of_study(), Standing(), (40 / 24, 40 / 24))
    # The cut at 1 takes some of the lift away.
    treated = np.clip(np.random.default_rng(2).normal(0.72 * (1 + lift), 0.18, 1_000_000), 0, 1).mean()
    chances = outlook.chances(float(treated) - spread_of_study().mean)
    won = chances.won_by(720)
    expected = {"wins": won, "decided": chances.decided_by(720), "by plan": chances.decided_by(168)}
    decided = runs - found.conclusions["deferred"]
    counts = {"wins": found.conclusions["treatment_wins"], "decided": decided, "by plan": found.by_plan}
    for what, chance in expected.items():
        error = math.sqrt(max(chance * (1 - chance), 0.002) / runs)
        assert abs(counts[what] / runs - chance) <= 3.5 * error, (what, counts[what] / runs, chance)
    assert found.days / runs == pytest.approx(chances.expected_hours(720) / 24, abs=1.5)


def test_without_effect_half_of_alpha_is_promoted_at_most() -> None:
    outlook = Outlook(subject(parameters(min_effect_size=0.0)), SPREAD, Standing(), (2, 2))
    assert outlook.chances(0.0).won_by(720) == pytest.approx(0.025, abs=2e-4)


def test_the_detectable_lift_is_found_with_a_chance_of_four_in_five() -> None:
    outlook = Outlook(subject(parameters()), SPREAD, Standing(), (40 / 24, 40 / 24))
    for hours in (168, 720):
        lift = outlook.detectable(hours)
        assert lift is not None
        assert outlook.chances(lift * SPREAD.mean).won_by(hours) == pytest.approx(0.8, abs=0.002)
    assert outlook.detectable(24) is None


def test_what_is_known_already_changes_the_chances() -> None:
    settings = parameters()
    half_way = replace(subject(settings), schedule=replace(subject(settings).schedule, closed=72))
    rates = (40 / 24, 40 / 24)
    leads = Outlook(half_way, SPREAD, Standing(80, 133, 133, 0.04), rates)
    lags = Outlook(half_way, SPREAD, Standing(80, 133, 133, -0.04), rates)
    assert leads.chances(0.02).won_by(168) > 0.3
    assert lags.chances(0.02).won_by(168) < 0.05
    assert leads.detectable(168) < lags.detectable(168)  # type: ignore[operator]


def test_the_walk_from_here_is_that_from_the_start_given_what_happened() -> None:
    settings = parameters(duration=48, maximum=48, min_sample_size=30, min_effect_size=0.0)
    start = Outlook(subject(settings), SPREAD, Standing(), (2, 2))
    first = start.looks[0]
    closed = replace(subject(settings), schedule=replace(subject(settings).schedule, closed=24))
    later = replace(closed, looks=(recorded(first),))
    difference = 0.03
    outlook = Outlook(later, SPREAD, Standing(24, 48, 48, difference), (2, 2))
    last = outlook.looks[-1]
    assert last.boundary == pytest.approx(start.looks[-1].boundary, abs=1e-9)
    # One look is left: the score needed, less the score there is, over the deviation of the rest.
    score, growth = 24 * difference, last.point.information - first.point.information
    needed = last.boundary * math.sqrt(last.point.information) - score
    tail = 0.5 * math.erfc((needed - 0.01 * 24) / math.sqrt(2 * growth))
    assert outlook.chances(0.01).won_by(48) == pytest.approx(tail, rel=1e-6)


def test_a_blocked_experiment_cannot_win() -> None:
    blocked = Outlook(replace(subject(parameters()), blocked=True), SPREAD, Standing(), (2, 2))
    assert blocked.chances(0.2).won_by(720) == 0
    assert blocked.detectable(720) is None


def test_without_traffic_nothing_is_decided() -> None:
    outlook = Outlook(subject(parameters()), SPREAD, Standing(24, 50, 50, 0.1), (0, 0))
    assert outlook.looks == []
    assert outlook.chances(0.1).decided_by(720) == 0


def test_times_ahead_have_the_ends_of_extensions_in_them() -> None:
    settings = parameters(duration=100, maximum=250)
    assert times_ahead(subject(settings), 50) == [72, 96, 100, 120, 144, 168, 192, 200, 216, 240, 250]
