"""What is promised about errors, and how often experiments end how, by simulation.

The expected rates come from an independent simulator: one dimension, session score with mean 0.72 and
standard deviation 0.18 cut to 0–1 (or 0/1), Poisson arrivals, daily checks, default settings.
"""

from __future__ import annotations

import math
import os
from functools import partial

import numpy as np
import pytest

from tests.support.calibration import Draw, Floats, Scenario, normal, study
from tests.support.evidence import parameters

DEFAULTS = parameters()
MEAN, SD = 0.72, 0.18


def binary(mean: float, rng: np.random.Generator, n: int) -> Floats:
    return (rng.random(n) < mean).astype(float)


def beta(a: float, b: float, rng: np.random.Generator, n: int) -> Floats:
    return rng.beta(a, b, n)


def scenario(
    lift: float = 0.0, a_day: float = 40, draw: Draw | None = None, treatment_a_day: float | None = None
) -> Scenario:
    control = draw or partial(normal, MEAN, SD)
    treatment = draw or partial(normal, MEAN * (1 + lift), SD)
    return Scenario(DEFAULTS, control, treatment, a_day, treatment_a_day or a_day)


def close(count: int, runs: int, rate: float, reference_runs: int) -> bool:
    """Whether a frequency agrees with another simulation's within Monte-Carlo error (z < 3.5)."""
    pooled = (count + rate * reference_runs) / (runs + reference_runs)
    error = math.sqrt(pooled * (1 - pooled) * (1 / runs + 1 / reference_runs))
    return abs(count / runs - rate) <= 3.5 * error + 1 / runs


def at_most(count: int, runs: int, rate: float) -> bool:
    """Whether a frequency is compatible with a probability of at most ``rate`` (z < 3)."""
    return count / runs <= rate + 3 * math.sqrt(rate * (1 - rate) / runs)


ROWS = {
    "no effect": (
        scenario(),
        8000,
        {
            "treatment_wins": 0.0238,
            "control_wins": 0.0171,
            "regression": 0.0059,
            "effect_too_small": 0.2915,
            "deferred": 0.6617,
        },
        25.0,
    ),
    "no effect, 0/1": (
        scenario(draw=partial(binary, 0.8)),
        8000,
        {
            "treatment_wins": 0.025,
            "control_wins": 0.0165,
            "regression": 0.0069,
            "effect_too_small": 0.0664,
            "deferred": 0.8852,
        },
        27.9,
    ),
    "no effect, split 0.1": (
        scenario(a_day=72, treatment_a_day=8),
        8000,
        {
            "treatment_wins": 0.0213,
            "control_wins": 0.0149,
            "regression": 0.0095,
            "effect_too_small": 0.1276,
            "deferred": 0.8267,
        },
        27.5,
    ),
    "no effect, 8 a day": (
        scenario(a_day=8),
        8000,
        {
            "treatment_wins": 0.0256,
            "control_wins": 0.0154,
            "regression": 0.0119,
            "effect_too_small": 0.0757,
            "deferred": 0.8714,
        },
        28.1,
    ),
    "no effect, 200 a day": (
        scenario(a_day=200),
        4000,
        {
            "treatment_wins": 0.0208,
            "control_wins": 0.023,
            "regression": 0.004,
            "effect_too_small": 0.9273,
            "deferred": 0.025,
        },
        11.7,
    ),
    "-8 %": (
        scenario(-0.08),
        3000,
        {"treatment_wins": 0.0, "control_wins": 0.3037, "regression": 0.651, "effect_too_small": 0.0453},
        4.4,
    ),
    "-4 %": (
        scenario(-0.04),
        3000,
        {"treatment_wins": 0.0, "control_wins": 0.2657, "regression": 0.138, "effect_too_small": 0.595},
        8.2,
    ),
    "+2 %": (
        scenario(0.02),
        3000,
        {"treatment_wins": 0.3083, "effect_too_small": 0.022, "deferred": 0.6683},
        24.8,
    ),
    "+3 %": (
        scenario(0.03),
        3000,
        {"treatment_wins": 0.635, "effect_too_small": 0.0053, "deferred": 0.359},
        20.3,
    ),
    "+5 %": (scenario(0.05), 3000, {"treatment_wins": 0.985, "control_wins": 0.0, "deferred": 0.0147}, 10.2),
}


def reproduced(row: str, runs: int, seed: int, processes: int = 1) -> None:
    simulated, reference_runs, rates, days = ROWS[row]
    counts, mean_days = study(simulated, runs, seed, processes)
    told = f"{row}: {dict(counts)} of {runs}, {mean_days:.2f} days"
    for conclusion, rate in rates.items():
        assert close(counts[conclusion], runs, rate, reference_runs), f"{conclusion} {rate}; {told}"
    assert mean_days == pytest.approx(days, abs=0.06 + 3.5 * 11 / math.sqrt(runs)), told
    if row.startswith("no effect"):
        assert at_most(counts["treatment_wins"], runs, 0.025), told
        assert at_most(counts["treatment_wins"] + counts["control_wins"], runs, 0.05), told
        assert at_most(counts["regression"], runs, 0.025), told


@pytest.mark.parametrize(
    ("row", "runs"), [("no effect", 150), ("-8 %", 300), ("+5 %", 200), ("no effect, 200 a day", 100)]
)
def test_experiments_end_as_often_as_an_independent_simulator_says(row: str, runs: int) -> None:
    reproduced(row, runs, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("row", ROWS)
def test_all_operating_characteristics_are_those_of_an_independent_simulator(row: str) -> None:
    reproduced(row, 4000, seed=10_000, processes=os.cpu_count() or 1)


@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock"])
def test_a_change_without_effect_wins_in_at_most_half_of_alpha(spending: str) -> None:
    settings = parameters(
        confidence_level=0.6,
        duration=72,
        maximum=168,
        planned_share=0.7,
        min_sample_size=30,
        spending=spending,
        min_effect_size=0.0,
    )
    draw = partial(normal, MEAN, SD)
    runs = 300
    counts, _ = study(Scenario(settings, draw, draw, 60, 60), runs, seed=5)
    assert at_most(counts["treatment_wins"], runs, 0.2), counts
    assert at_most(counts["treatment_wins"] + counts["control_wins"], runs, 0.4), counts
    # Nearly all of it is used, unless a loss was called a regression first.
    assert counts["treatment_wins"] / runs > 0.2 - 3.5 * math.sqrt(0.16 / runs), counts


def test_equal_means_of_different_shapes_are_rarely_promoted() -> None:
    runs = 100
    different = Scenario(DEFAULTS, partial(beta, 0.5, 3), partial(beta, 2, 12), 40, 40)
    counts, _ = study(different, runs, seed=7)
    assert at_most(counts["treatment_wins"], runs, 0.025), counts
