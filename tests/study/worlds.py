"""Worlds to experiment in: how many sessions come when, and how they score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from prx_engine.configuration import Parameters
from tests.support.evidence import parameters

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, Floats], Floats]
"""Draws one score, 0–1, for each session from its start in days."""

Traffic = Callable[[Floats], Floats]
"""Traffic at times in days, relative to the average."""

Checks = Literal["all", "half missed", "only when treatment would win", "extended while it leads"]


@dataclass(frozen=True)
class Feedback:
    """Which sessions are also judged by their user, with thumbs up in six of ten.

    Attributes:
        control, treatment: share of each arm.
        from_day: day from which on users are asked.
    """

    control: float
    treatment: float
    from_day: float = 0.0


@dataclass(frozen=True)
class Scenario:
    """What is simulated.

    Attributes:
        name: for the table.
        control, treatment: draw the scores of sessions.
        effect: true lift of the mean, None if it is not the question.
        a_day: expected sessions a day in control and treatment.
        traffic: how they spread over time.
        feedback: a second dimension that few sessions have.
        checks: who runs them when.
        settings: pinned parameters.
        reference: name of the row of an independent simulation to compare with.
        runs_share: part of the usual number of runs, for scenarios with many looks.
    """

    name: str
    control: Draw
    treatment: Draw
    effect: float = 0.0
    a_day: tuple[float, float] = (40, 40)
    traffic: Traffic | None = None
    feedback: Feedback | None = None
    checks: Checks = "all"
    settings: Parameters = field(default_factory=parameters)
    reference: str | None = None
    runs_share: float = 1.0


def normal(mean: float = 0.72, sd: float = 0.18) -> Draw:
    """Scores around a mean, cut to 0–1."""
    return lambda rng, days: np.clip(rng.normal(mean, sd, days.size), 0.0, 1.0)


def drifting(first: float, last: float, mean: float = 0.72) -> Draw:
    """Normal scores whose standard deviation moves over thirty days."""
    return lambda rng, days: np.clip(rng.normal(mean, first + (last - first) * days / 30), 0.0, 1.0)


def binary(mean: float = 0.8) -> Draw:
    """Successes and failures."""
    return lambda rng, days: (rng.random(days.size) < mean).astype(np.float64)


def beta(a: float, b: float) -> Draw:
    """Scores of a beta distribution: skewed, or U-shaped with both below 1."""
    return lambda rng, days: rng.beta(a, b, days.size)


def growing(days: Floats) -> Floats:
    """Ten times as much on the last day as on the first."""
    return 2 / 11 + (18 / 11) * days / 30


def decaying(days: Floats) -> Floats:
    """Less by a tenth each day, beginning with three times the average."""
    return 3.1 * np.exp(-days / 9.5)


def stopping(days: Floats) -> Floats:
    """Nothing after ten days."""
    return np.where(days < 10, 1.0, 0.0)
