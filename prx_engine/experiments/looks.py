"""Looks: which scheduled times spend alpha, how much information each has, and what it must reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from prx_engine import statistics
from prx_engine.dimensions import UNIT
from prx_engine.fitness.clusters import Joint
from prx_engine.fitness.group import GroupFitness
from prx_engine.records import Look
from prx_engine.statistics.normal import normal_tail

INFORMATION_GROWTH: Final = 1.001
"""A look needs this many times the information of the one before."""

_ROUNDING_VARIANCE: Final = 1 / (12 * UNIT**2)
"""Variance of a score's rounding: scores that are all alike are not known better than this."""


@dataclass(frozen=True, slots=True)
class LookPoint:
    """A scheduled time at which both arms have a fitness.

    Attributes:
        hours: the time, in hours since creation.
        control, treatment: fitness of the sessions that started before it.
        joint: its variances from clusters, if any session belongs to one.
    """

    hours: float
    control: GroupFitness
    treatment: GroupFitness
    joint: Joint | None = None

    @property
    def variance(self) -> float:
        """Var(D̂), the variance of the difference of the two."""
        return self.joint.difference if self.joint else self.control.variance + self.treatment.variance

    @property
    def information(self) -> float:
        """τ = I² · Var(D̂), the variance of the score process I · D̂, with I = n_C n_T / (n_C + n_T).

        Unlike 1 / Var(D̂) it stays the right measure of progress when the variance of the sessions drifts.
        """
        n_control, n_treatment = self.control.n, self.treatment.n
        weight = n_control * n_treatment / (n_control + n_treatment)
        return weight**2 * max(self.variance, _ROUNDING_VARIANCE / weight)


@dataclass(frozen=True, slots=True)
class ChargedLook:
    """A look with its place in the sequence.

    Attributes:
        point: what is known at it.
        k: number in its series, from 1.
        information: τ, not below that of the look before.
        alpha_spent: cumulative.
        boundary: critical z; infinite if it cannot stop.
        alpha_threshold: the tail probability that the boundary stands for, both tails if two-sided.
    """

    point: LookPoint
    k: int
    information: float
    alpha_spent: float
    boundary: float
    alpha_threshold: float


def charge(
    points: Sequence[LookPoint],
    past: Sequence[Look],
    spending: Callable[[float], float],
    sides: Literal[1, 2],
) -> list[ChargedLook]:
    """Return the new looks of a series: the last point, and those before it that nobody held.

    Every one of them spends alpha, held or not: else whoever runs the checks could choose the looks
    by what they show. There is none if the last point has no more information than the last look. A
    missed point whose information lies within that growth of its neighbours' is part of the later one.

    Args:
        points: scheduled times since the last look, in order.
        past: earlier looks of the series.
        spending: hours since creation → cumulative alpha.
        sides: 2 for a symmetric two-sided boundary, 1 for an upper one.
    """
    if not points:
        return []
    before = past[-1].information if past else 0.0
    largest = max(before, *(point.information for point in points))
    if largest < before * INFORMATION_GROWTH:
        return []
    chosen: list[tuple[LookPoint, float]] = []
    last = before
    for point in points[:-1]:
        information = max(last, point.information)
        if information >= last * INFORMATION_GROWTH and largest >= information * INFORMATION_GROWTH:
            chosen.append((point, information))
            last = information
    chosen.append((points[-1], largest))
    informations = [look.information for look in past] + [information for _, information in chosen]
    spent = [look.alpha_spent for look in past]
    for point, _ in chosen:
        spent.append(max(spending(point.hours), spent[-1] if spent else 0.0))
    boundaries = statistics.group_sequential_boundaries(informations, spent, sides=sides)
    return [
        ChargedLook(
            point=point,
            k=k,
            information=information,
            alpha_spent=spent[k - 1],
            boundary=float(boundaries[k - 1]),
            alpha_threshold=sides * normal_tail(float(boundaries[k - 1])),
        )
        for k, (point, information) in enumerate(chosen, start=len(past) + 1)
    ]
