"""Totals: moments and assigned counts of arms, whole and by hour, and of the deployment by hour."""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import peewee

from prx_engine.dimensions import VARIANTS, VariantName
from prx_engine.fitness.arms import Arm, Arms, empty_arms
from prx_engine.fitness.moments import MOMENT_NAMES, MomentAccumulator, Moments, Scores
from prx_engine.store.database import Store
from prx_engine.store.schema import Assignments, DeploymentTotals, HourlyTotals, Totals

_ARM_COLUMNS: Final = ("experiment", "variant", "assigned", *MOMENT_NAMES)
_HOUR_COLUMNS: Final = ("experiment", "variant", "hour", "assigned", *MOMENT_NAMES)
_DEPLOYMENT_COLUMNS: Final = ("hour", *MOMENT_NAMES)
_ARM_WIDTH: Final = 1 + len(MOMENT_NAMES)
_NOTHING: Final = Moments()


ArmHour = tuple[int, VariantName, int]
"""An hour since its creation of an arm of an experiment."""

TotalsKey = int | ArmHour
"""Whose totals: a clock hour of the deployment, or an hour of an arm."""


class TotalsChange:
    """Differences to be added to the totals, collected over a batch of sessions.

    Sessions that change the same totals are summed up once for all of them.
    """

    def __init__(self) -> None:
        self._assigned: Counter[ArmHour] = Counter()
        self._sessions: defaultdict[tuple[TotalsKey, ...], MomentAccumulator] = defaultdict(MomentAccumulator)

    def assign(self, arm_hour: ArmHour) -> None:
        """Count one more session assigned to the arm."""
        self._assigned[arm_hour] += 1

    def rescore(self, totals: tuple[TotalsKey, ...], before: Scores, after: Scores) -> None:
        """Take a session's earlier scores out of some totals and put its new ones in."""
        if before != after:
            moments = self._sessions[totals]
            moments.add(before, -1)
            moments.add(after)

    def write(self, store: Store) -> None:
        """Add the differences to the totals, in the order of their keys, so that writers cannot deadlock."""
        deployment: defaultdict[int, Moments] = defaultdict(Moments)
        arm_hours: defaultdict[ArmHour, Moments] = defaultdict(Moments)
        for totals, accumulated in self._sessions.items():
            moments = accumulated.moments()
            for key in totals:
                if isinstance(key, int):
                    deployment[key] += moments
                else:
                    arm_hours[key] += moments
        changed = sorted(self._assigned.keys() | arm_hours.keys())
        changes = [(key, (self._assigned[key], *arm_hours[key].entries)) for key in changed]
        hours = [(key, values) for key, values in changes if any(values)]
        arms: defaultdict[tuple[int, VariantName], Sequence[int]] = defaultdict(lambda: [0] * _ARM_WIDTH)
        for (experiment, variant, _), values in hours:
            arms[experiment, variant] = list(map(operator.add, arms[experiment, variant], values))
        store.add_to(Totals, _ARM_COLUMNS, [(*key, *values) for key, values in sorted(arms.items())])
        store.add_to(HourlyTotals, _HOUR_COLUMNS, [(*key, *values) for key, values in hours])
        store.add_to(
            DeploymentTotals,
            _DEPLOYMENT_COLUMNS,
            [(hour, *m.entries) for hour, m in sorted(deployment.items()) if m != _NOTHING],
        )


def _fields(model: type[peewee.Model], names: Sequence[str]) -> list[Any]:
    return [getattr(model, name) for name in names]


def _sums(model: type[peewee.Model], names: Sequence[str]) -> list[Any]:
    return [peewee.fn.SUM(getattr(model, name)) for name in names]


def arm_totals(store: Store, experiments: Iterable[int]) -> dict[int, Arms]:
    """Return both arms of each experiment over all its sessions, by the experiment's number."""
    numbers = list(experiments)
    totals: dict[int, Arms] = {number: empty_arms() for number in numbers}
    query = Totals.select(*_fields(Totals, _ARM_COLUMNS)).where(Totals.experiment << numbers)
    for (number, variant), arm in _arms(store, query, 2):
        totals[number][variant] = arm
    return totals


def arms_between(store: Store, experiment: int, first: int, end: int) -> Arms:
    """Return both arms over the sessions of the hours ``first <= hour < end`` since creation."""
    query = (
        HourlyTotals.select(HourlyTotals.variant, *_sums(HourlyTotals, ("assigned", *MOMENT_NAMES)))
        .where(HourlyTotals.experiment == experiment, HourlyTotals.hour >= first, HourlyTotals.hour < end)
        .group_by(HourlyTotals.variant)
    )
    arms = empty_arms()
    for variant, assigned, *moments in store.tuples(query):
        arms[variant] = Arm(int(assigned), Moments(tuple(int(value) for value in moments)))
    return arms


def hourly_arms(store: Store, experiment: int) -> list[tuple[int, VariantName, Arm]]:
    """Return every hour of both arms of an experiment, in order of time."""
    query = (
        HourlyTotals.select(*_fields(HourlyTotals, _HOUR_COLUMNS))
        .where(HourlyTotals.experiment == experiment)
        .order_by(HourlyTotals.hour)
    )
    return [(hour, variant, arm) for (_, variant, hour), arm in _arms(store, query, 3)]


def all_arm_totals(store: Store) -> dict[tuple[Any, ...], Arm]:
    """Return all arms of all experiments, by experiment and variant."""
    return dict(_arms(store, Totals.select(*_fields(Totals, _ARM_COLUMNS)), 2))


def all_hourly_arms(store: Store) -> dict[tuple[Any, ...], Arm]:
    """Return all hours of all arms, by experiment, variant and hour."""
    return dict(_arms(store, HourlyTotals.select(*_fields(HourlyTotals, _HOUR_COLUMNS)), 3))


def _arms(store: Store, query: Any, keys: int) -> Iterator[tuple[tuple[Any, ...], Arm]]:
    for row in store.tuples(query):
        yield row[:keys], Arm(row[keys], Moments(row[keys + 1 :]))


def deployment_hours(store: Store, first: int, end: int) -> list[tuple[int, Moments]]:
    """Return the deployment's moments of the clock hours ``first <= hour < end``, in order of time."""
    query = (
        DeploymentTotals.select(*_fields(DeploymentTotals, _DEPLOYMENT_COLUMNS))
        .where(DeploymentTotals.hour >= first, DeploymentTotals.hour < end)
        .order_by(DeploymentTotals.hour)
    )
    return [(hour, Moments(tuple(moments))) for hour, *moments in store.tuples(query)]


def session_fitness_counts(
    store: Store, experiment: int, end: int
) -> dict[VariantName, list[tuple[int, int]]]:
    """Return how many sessions of the hours before ``end`` have each session fitness (in units), by arm."""
    count = peewee.fn.COUNT(peewee.SQL("*"))
    fitness = Assignments.fitness  # type: ignore[attr-defined]
    query = (
        Assignments.select(Assignments.variant, fitness, count)
        .where(
            Assignments.experiment == experiment,
            fitness.is_null(False),
            Assignments.hour < end,
        )
        .group_by(Assignments.variant, fitness)
        .order_by(Assignments.variant, fitness)
    )
    counts: dict[VariantName, list[tuple[int, int]]] = {name: [] for name in VARIANTS}
    for variant, value, sessions in store.tuples(query):
        counts[variant].append((value, sessions))
    return counts
