"""How the fitness of both arms of an experiment developed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prx_engine.clock import HOUR
from prx_engine.experiments.catalog import counted_dimensions
from prx_engine.fitness.arms import Arm, Arms, added, empty_arms
from prx_engine.fitness.group import fitness
from prx_engine.records import TrendPoint
from prx_engine.store import Store
from prx_engine.store.pinned import load_parameters
from prx_engine.store.totals import hourly_arms


def trend(store: Store, row: Mapping[str, Any], points: int) -> list[TrendPoint]:
    """Return the cumulative fitness of both arms at up to ``points`` moments, evenly spread over its hours.

    Both arms use the dimensions that count now, so that all points can be compared.
    """
    hours = hourly_arms(store, row["number"])
    if not hours:
        return []
    last = hours[-1][0] + 1
    step = max(-(-last // points), 1)
    buckets: dict[int, Arms] = {}
    for hour, variant, arm in hours:
        bucket = buckets.setdefault(hour // step, empty_arms())
        bucket[variant] = bucket[variant] + arm
    total = empty_arms()
    ends: list[tuple[int, Arms]] = []
    for index in sorted(buckets):
        total = added(total, buckets[index])
        ends.append((min((index + 1) * step, last), total))
    counted = counted_dimensions(row, total)
    weights = load_parameters(row["parameters"]).fitness.weights

    def value(arm: Arm) -> float | None:
        return fitness(arm.moments, weights, counted)

    return [
        TrendPoint(
            at=row["created_at"] + end * HOUR,
            control=value(arms["control"]),
            treatment=value(arms["treatment"]),
            control_sessions=arms["control"].moments.n,
            treatment_sessions=arms["treatment"].moments.n,
        )
        for end, arms in ends
    ]
