"""Evidence from sampled sessions, quick enough to be asked thousands of times."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from prx_engine.dimensions import DIMENSIONS, UNIT, VARIANTS, Dimension
from prx_engine.experiments.comparison import Histograms
from prx_engine.fitness.arms import Arm, Arms
from prx_engine.fitness.clusters import ClusterSums
from prx_engine.fitness.moments import MOMENT_NAMES, Moments
from prx_engine.statistics import Histogram
from tests.study.worlds import Draw, Scenario

Ints = NDArray[np.int64]

_SCORE: Dimension = "response_relevance"
_THUMBS: Dimension = "user_satisfaction"
_HOURS = 24
_THUMBS_UP = 0.6


class SampledArm:
    """The sessions of one arm, in the order of their start.

    Args:
        hours: hour in which each started.
        columns: scores by dimension, in units; -1 where missing.
        fitness: of each session by itself, in units.
    """

    def __init__(self, hours: Ints, columns: dict[Dimension, Ints], fitness: Ints) -> None:
        self._hours = hours
        self._fitness = fitness
        self._positions, entries = _entries(columns, hours.size)
        self._sums = np.zeros((hours.size + 1, len(entries)), dtype=np.int64)
        np.cumsum(np.column_stack(entries), axis=0, out=self._sums[1:])

    def at(self, end: float) -> Arm:
        """Return the arm over the sessions that started before a time."""
        n = int(np.searchsorted(self._hours, end))
        filled = [0] * len(MOMENT_NAMES)
        for position, value in zip(self._positions, self._sums[n].tolist(), strict=True):
            filled[position] = value
        return Arm(n, Moments(tuple(filled)))

    def histogram(self, end: float) -> Histogram:
        """Return the distribution of their fitness."""
        n = int(np.searchsorted(self._hours, end))
        values, counts = np.unique(self._fitness[:n], return_counts=True)
        return Histogram(values / UNIT, counts.astype(np.int64))


def _entries(columns: dict[Dimension, Ints], n: int) -> tuple[list[int], list[Ints]]:
    """Return where in the moments the sums belong that are not all zero, and what each session adds."""
    present = {DIMENSIONS.index(name): (units >= 0).astype(np.int64) for name, units in columns.items()}
    scores = {DIMENSIONS.index(name): np.maximum(units, 0) for name, units in columns.items()}
    entries = {"n": np.ones(n, dtype=np.int64)}
    for d, e in combinations_with_replacement(sorted(present), 2):
        entries[f"n_{d}{e}"] = present[d] * present[e]
        entries[f"q_{d}{e}"] = scores[d] * scores[e]
    for d, e in product(present, repeat=2):
        entries[f"s_{d}{e}"] = scores[d] * present[e]
    return [MOMENT_NAMES.index(name) for name in entries], list(entries.values())


class SampledEvidence:
    """Evidence of one simulated experiment.

    Args:
        scenario: what it is like.
        rng: the source of chance.
    """

    def __init__(self, scenario: Scenario, rng: np.random.Generator) -> None:
        draws = scenario.control, scenario.treatment
        self._arms = {
            name: _sampled(scenario, draw, arm, rng)
            for arm, (name, draw) in enumerate(zip(VARIANTS, draws, strict=True))
        }

    def arms(self, end: float) -> Arms:
        return {name: arm.at(end) for name, arm in self._arms.items()}

    def session_fitness(self, end: float) -> Histograms:
        return {name: arm.histogram(end) for name, arm in self._arms.items()}

    def clusters(self, end: float) -> ClusterSums | None:
        return None


def _sampled(scenario: Scenario, draw: Draw, arm: int, rng: np.random.Generator) -> SampledArm:
    hours = arrivals(scenario, scenario.a_day[arm], rng)
    score = units(draw(rng, hours / _HOURS))
    if scenario.feedback is None:
        return SampledArm(hours, {_SCORE: score}, score)
    feedback = scenario.feedback
    share = feedback.treatment if arm else feedback.control
    asked = (rng.random(hours.size) < share) & (hours >= feedback.from_day * _HOURS)
    up = rng.random(hours.size) < _THUMBS_UP
    thumbs = np.where(asked, np.where(up, UNIT, 0), -1)
    weights = scenario.settings.fitness.weights
    both = weights.of(_SCORE) * score + weights.of(_THUMBS) * thumbs
    both = both / (weights.of(_SCORE) + weights.of(_THUMBS))
    fitness = np.where(asked, np.floor(both + 0.5), score).astype(np.int64)
    return SampledArm(hours, {_SCORE: score, _THUMBS: thumbs}, fitness)


def arrivals(scenario: Scenario, a_day: float, rng: np.random.Generator) -> Ints:
    """Return the hours in which the sessions of an arm start, a Poisson process, in order."""
    hours = np.arange(scenario.settings.experiments.auto_converge.max_duration_hours)
    rate = a_day / _HOURS
    rates = rate * scenario.traffic(hours / _HOURS) if scenario.traffic else np.full(hours.size, rate)
    return np.repeat(hours, rng.poisson(rates))


def units(scores: NDArray[np.float64]) -> Ints:
    """Return scores as they are stored: whole units, half up."""
    return np.floor(scores * UNIT + 0.5).astype(np.int64)
