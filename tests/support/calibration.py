"""Whole experiments simulated through the engine's own analysis and decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prx_engine.configuration import Parameters
from prx_engine.dimensions import UNIT
from prx_engine.experiments.analysis import analyse
from tests.support.evidence import OneDimension, after, subject

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]


def normal(mean: float, sd: float, rng: np.random.Generator, n: int) -> Floats:
    """Session scores cut to 0–1."""
    return np.clip(rng.normal(mean, sd, n), 0.0, 1.0)


@dataclass(frozen=True)
class Scenario:
    """What is simulated.

    Attributes:
        settings: pinned parameters.
        control, treatment: draw scores of sessions, 0–1.
        control_a_day, treatment_a_day: expected sessions a day; they arrive at random.
    """

    settings: Parameters
    control: Draw
    treatment: Draw
    control_a_day: float
    treatment_a_day: float


@dataclass(frozen=True)
class Outcome:
    """How one experiment ended."""

    conclusion: str
    hours: float


def simulated(scenario: Scenario, seed: int) -> Outcome:
    """Run one experiment to its end, each scheduled time checked when it comes."""
    rng = np.random.default_rng(seed)
    maximum = scenario.settings.experiments.auto_converge.max_duration_hours
    evidence = OneDimension(
        _sessions(rng, scenario.control, scenario.control_a_day, maximum),
        _sessions(rng, scenario.treatment, scenario.treatment_a_day, maximum),
    )
    present = subject(scenario.settings)
    while True:
        hours = present.schedule.next()
        assert hours is not None
        found = analyse(present, evidence, hours)
        if found.decision.conclusion is not None:
            return Outcome(found.decision.conclusion, hours)
        present = after(present, found)


def _sessions(rng: np.random.Generator, draw: Draw, a_day: float, hours: int) -> tuple[Any, Any]:
    n = int(rng.poisson(a_day * hours / 24))
    at = np.sort(rng.integers(0, hours, n))
    return at, np.floor(draw(rng, n) * UNIT + 0.5).astype(np.int64)


def study(scenario: Scenario, runs: int, seed: int, processes: int = 1) -> tuple[Counter[str], float]:
    """Return how often each conclusion was reached, and the mean duration in days."""
    seeds = range(seed, seed + runs)
    if processes == 1:
        outcomes = [simulated(scenario, s) for s in seeds]
    else:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            outcomes = list(pool.map(partial(simulated, scenario), seeds, chunksize=20))
    return Counter(o.conclusion for o in outcomes), sum(o.hours for o in outcomes) / 24 / runs
