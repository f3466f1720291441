"""An experiment in the database, as an analysis asks for it."""

from __future__ import annotations

from typing import Final

from prx_engine import statistics
from prx_engine.dimensions import VARIANTS
from prx_engine.experiments.analysis import Pinned, Subject
from prx_engine.experiments.catalog import Catalog, Row, schedule_of
from prx_engine.experiments.comparison import Histograms
from prx_engine.fitness.arms import Arms, added, empty_arms
from prx_engine.fitness.clusters import ClusterSums
from prx_engine.store import Store
from prx_engine.store.clusters import cluster_sums, has_clusters, single_moments
from prx_engine.store.pinned import load_parameters
from prx_engine.store.totals import arm_totals, arms_between, session_fitness_counts

_END: Final = 2**31 - 1


def stored_subject(catalog: Catalog, row: Row, *, blocked: bool) -> Subject:
    """Return an experiment with its looks so far."""
    pinned = None
    if row["pinned_dimensions"] is not None:
        pinned = Pinned(tuple(row["pinned_dimensions"]), row["pinned_test"])
    return Subject(
        created_at=row["created_at"],
        parameters=load_parameters(row["parameters"]),
        schedule=schedule_of(row),
        looks=tuple(catalog.looks(row["number"], "efficacy")),
        harm_looks=tuple(catalog.looks(row["number"], "harm")),
        pinned=pinned,
        blocked=blocked,
    )


class StoredEvidence:
    """The sessions of one experiment in the database, read on the caller's snapshot.

    Args:
        store: the database.
        number: the experiment.
    """

    def __init__(self, store: Store, number: int) -> None:
        self._store = store
        self._number = number
        self._end = 0
        self._arms = empty_arms()

    def arms(self, end: float) -> Arms:
        """Return both arms over the sessions that started before ``end`` hours since creation."""
        if not float(end).is_integer():
            return arm_totals(self._store, [self._number])[self._number]
        if end < self._end:
            return arms_between(self._store, self._number, 0, int(end))
        # Times are asked for in order: each hour is summed once, however many looks were missed.
        self._arms = added(self._arms, arms_between(self._store, self._number, self._end, int(end)))
        self._end = int(end)
        return self._arms

    def session_fitness(self, end: float) -> Histograms:
        """Return the distribution of session fitness in both arms, likewise."""
        hours = _whole(end)
        counts = session_fitness_counts(self._store, self._number, hours)
        return {name: statistics.Histogram.from_units(counts[name]) for name in VARIANTS}

    def clusters(self, end: float) -> ClusterSums | None:
        """Return the same sessions by cluster; None if none of them belongs to one."""
        if not has_clusters(self._store, self._number):
            return None
        hours = _whole(end)
        return ClusterSums.of(
            cluster_sums(self._store, self._number, hours), single_moments(self._store, self._number, hours)
        )


def _whole(end: float) -> int:
    """Return the hour that a time cuts off at: none for the present moment, which is no scheduled time."""
    return int(end) if float(end).is_integer() else _END
