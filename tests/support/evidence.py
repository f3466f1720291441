"""Sessions made up by a test, in the form in which an analysis asks for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prx_engine.configuration import Parameters
from prx_engine.dimensions import DIMENSIONS, UNIT, Dimension, VariantName
from prx_engine.experiments.analysis import Analysis, Pinned, Subject
from prx_engine.experiments.comparison import Histograms
from prx_engine.experiments.schedule import Schedule
from prx_engine.fitness.arms import Arm, Arms
from prx_engine.fitness.clusters import ClusterSums
from prx_engine.fitness.moments import MOMENT_NAMES, Moments, Scores
from prx_engine.scoring.scores import Scorer
from prx_engine.statistics import Histogram

CREATED = datetime(2026, 6, 1, tzinfo=UTC)

Arrivals = Sequence[tuple[int, Scores]]
"""Sessions of one arm: the hour since creation in which each started, and its scores in units."""


def parameters(
    *,
    confidence_level: float = 0.95,
    duration: int = 168,
    maximum: int = 720,
    interval: int = 24,
    min_sample_size: int = 100,
    spending: str = "obrien_fleming",
    planned_share: float = 0.8,
    test: str = "auto",
    fitness: Mapping[str, Any] | None = None,
    **experiments: Any,
) -> Parameters:
    """Pinned parameters, the defaults where nothing is given."""
    return Parameters.model_validate(
        {
            "experiments": {
                "confidence_level": confidence_level,
                "default_duration_hours": duration,
                "min_sample_size": min_sample_size,
                "auto_converge": {"check_interval_hours": interval, "max_duration_hours": maximum},
                "sequential": {"spending": spending, "planned_share": planned_share, "test": test},
                **experiments,
            },
            "fitness": dict(fitness or {}),
        }
    )


def subject(settings: Parameters, **changes: Any) -> Subject:
    """An experiment that nobody has checked yet."""
    schedule = Schedule(
        interval=settings.experiments.auto_converge.check_interval_hours,
        planned_end=settings.experiments.default_duration_hours,
        maximum=settings.experiments.auto_converge.max_duration_hours,
        closed=0,
    )
    return replace(Subject(created_at=CREATED, parameters=settings, schedule=schedule), **changes)


def after(before: Subject, analysis: Analysis) -> Subject:
    """The experiment after a check has written what it found."""
    planned_end = analysis.decision.planned_end or before.schedule.planned_end
    return replace(
        before,
        schedule=replace(before.schedule, closed=int(analysis.hours), planned_end=planned_end),
        looks=(*before.looks, *analysis.looks),
        harm_looks=(*before.harm_looks, *analysis.harm_looks),
        pinned=analysis.pinned,
    )


def scores(**by_dimension: float) -> Scores:
    """Scores of a session in units, missing where not given."""
    return tuple(round(by_dimension[d] * UNIT) if d in by_dimension else None for d in DIMENSIONS)


def arrivals(
    hours: Iterable[int], values: Iterable[float], dimension: Dimension = "response_relevance"
) -> list[tuple[int, Scores]]:
    """Sessions with one dimension."""
    return [(int(h), scores(**{dimension: float(v)})) for h, v in zip(hours, values, strict=True)]


def values(sessions: Arrivals, end: float, dimension: Dimension = "response_relevance") -> NDArray[Any]:
    """The scores of one dimension up to a time, for computations beside the engine."""
    d = DIMENSIONS.index(dimension)
    present = [s[d] for h, s in sessions if h < end]
    return np.array([units / UNIT for units in present if units is not None])


class SyntheticEvidence:
    """Evidence from lists of sessions; notes when it was asked."""

    def __init__(self, control: Arrivals, treatment: Arrivals, settings: Parameters) -> None:
        self.sessions: dict[VariantName, Arrivals] = {"control": control, "treatment": treatment}
        self.asked: list[float] = []
        self._scorer = Scorer(settings.fitness)

    def arms(self, end: float) -> Arms:
        self.asked.append(end)
        return {
            name: Arm(sum(h < end for h, _ in sessions), Moments.of(s for h, s in sessions if h < end))
            for name, sessions in self.sessions.items()
        }

    def clusters(self, end: float) -> ClusterSums | None:
        return None

    def session_fitness(self, end: float) -> Histograms:
        return {
            name: Histogram.from_units(self._counted(sessions, end).items())
            for name, sessions in self.sessions.items()
        }

    def _counted(self, sessions: Arrivals, end: float) -> Counter[int]:
        found = (self._scorer.fitness(s) for h, s in sessions if h < end)
        return Counter(fitness for fitness in found if fitness is not None)


class OneDimension:
    """Evidence of many sessions that have response_relevance alone, quick enough for simulations."""

    def __init__(
        self,
        control: tuple[NDArray[np.int64], NDArray[np.int64]],
        treatment: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> None:
        self._hours = {"control": control[0], "treatment": treatment[0]}
        self._units = {"control": control[1], "treatment": treatment[1]}
        self._sums = {name: np.cumsum(units) for name, units in self._units.items()}
        self._squares = {name: np.cumsum(units**2) for name, units in self._units.items()}

    def arms(self, end: float) -> Arms:
        return {"control": self._arm("control", end), "treatment": self._arm("treatment", end)}

    def clusters(self, end: float) -> ClusterSums | None:
        return None

    def session_fitness(self, end: float) -> Histograms:
        return {"control": self._histogram("control", end), "treatment": self._histogram("treatment", end)}

    def _arm(self, name: VariantName, end: float) -> Arm:
        n = int(np.searchsorted(self._hours[name], end))
        if not n:
            return Arm()
        total, square = int(self._sums[name][n - 1]), int(self._squares[name][n - 1])
        filled = {"n": n, "n_00": n, "s_00": total, "q_00": square}
        return Arm(n, Moments(tuple(filled.get(entry, 0) for entry in MOMENT_NAMES)))

    def _histogram(self, name: VariantName, end: float) -> Histogram:
        n = int(np.searchsorted(self._hours[name], end))
        found, counts = np.unique(self._units[name][:n], return_counts=True)
        return Histogram(found / UNIT, counts.astype(np.int64))


def pinned(*dimensions: Dimension, test: Any = "welch") -> Pinned:
    """What an earlier look has settled."""
    return Pinned(dimensions, test)
