"""Sessions by cluster: read from the assignments, since few deployments name a user or task."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from typing import Any, Final

import peewee

from prx_engine.dimensions import DIMENSIONS, VARIANTS, VariantName
from prx_engine.fitness.clusters import ClusterRow
from prx_engine.fitness.moments import Moments
from prx_engine.store.database import Store
from prx_engine.store.schema import Assignments


def _total(expression: Any) -> Any:
    return peewee.fn.COALESCE(peewee.fn.SUM(expression), 0)


_CLUSTER: Final = Assignments.cluster  # type: ignore[attr-defined]
_SCORES: Final = [getattr(Assignments, name) for name in DIMENSIONS]
_SCORED: Final = peewee.fn.COUNT(peewee.fn.COALESCE(*_SCORES))
_PAIRS: Final = list(combinations_with_replacement(_SCORES, 2))
# An operation with a missing score is itself missing, and neither counted nor summed.
_MOMENTS: Final = [
    *(peewee.fn.COUNT(first * second) for first, second in _PAIRS),
    *(_total(first + 0 * second) for first, second in product(_SCORES, repeat=2)),
    *(_total(first * second) for first, second in _PAIRS),
]
"""The entries of moments but the first, in the order of MOMENT_NAMES."""


def has_clusters(store: Store, experiment: int) -> bool:
    """Tell whether any session of an experiment belongs to a cluster."""
    query = (
        Assignments.select(peewee.SQL("1"))
        .where(Assignments.experiment == experiment, _CLUSTER.is_null(False))
        .limit(1)
    )
    return bool(store.tuples(query))


def cluster_sums(store: Store, experiment: int, end: int) -> list[ClusterRow]:
    """Return the scored sessions of the hours before ``end`` by cluster and arm."""
    query = (
        Assignments.select(
            _CLUSTER,
            Assignments.variant,
            _SCORED,
            *(peewee.fn.COUNT(score) for score in _SCORES),
            *(_total(score) for score in _SCORES),
        )
        .where(Assignments.experiment == experiment, _CLUSTER.is_null(False), Assignments.hour < end)
        .group_by(_CLUSTER, Assignments.variant)
        .having(_SCORED > 0)
        .order_by(_CLUSTER, Assignments.variant)
    )
    return [
        (cluster, variant, n, numbers[: len(_SCORES)], [int(value) for value in numbers[len(_SCORES) :]])
        for cluster, variant, n, *numbers in store.tuples(query)
    ]


def single_moments(store: Store, experiment: int, end: int) -> dict[VariantName, Moments]:
    """Return the moments of the sessions of the hours before ``end`` that belong to no cluster."""
    query = (
        Assignments.select(Assignments.variant, _SCORED, *_MOMENTS)
        .where(Assignments.experiment == experiment, _CLUSTER.is_null(True), Assignments.hour < end)
        .group_by(Assignments.variant)
    )
    found = dict.fromkeys(VARIANTS, Moments())
    for variant, *entries in store.tuples(query):
        found[variant] = Moments(tuple(int(value) for value in entries))
    return found
