"""The looks to come: where their boundaries will lie, and how likely each of them is to decide.

The score S = I · D̂ of an experiment moves by independent normal increments (see ``statistics.boundaries``),
and each rule of the decision that can end it is a bound on S. So the chance of every ending is the chance
that a random walk, from where it stands now, first leaves the region between two such bounds at each look:
computed exactly by the recursion that also gives the boundaries (Jennison & Turnbull, 2000, chapter 19),
given that traffic and spread stay as they are. The test is taken to be Welch's; vetoes of the robust
one are not foreseen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prx_engine import statistics
from prx_engine.experiments.analysis import Subject, harm_spent, spent
from prx_engine.experiments.looks import ChargedLook, LookPoint, charge
from prx_engine.fitness.group import GroupFitness
from prx_engine.statistics.normal import normal_quantile

POWER: Final = 0.8
"""Chance of finding a lift that is called detectable."""

_SOLVER_STEPS: Final = 30
_SOLVER_TOLERANCE: Final = 1e-4
_SURE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Spread:
    """What single sessions are like.

    Attributes:
        mean: fitness of control.
        control, treatment: variance of a session's fitness in each arm.
    """

    mean: float
    control: float
    treatment: float


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an experiment stands.

    Attributes:
        hours: since its creation.
        control, treatment: scored sessions.
        difference: of the arms' fitness so far.
    """

    hours: float = 0.0
    control: float = 0.0
    treatment: float = 0.0
    difference: float = 0.0

    @property
    def weight(self) -> float:
        """I = n_C n_T / (n_C + n_T)."""
        both = self.control * self.treatment
        return both / (self.control + self.treatment) if both else 0.0


@dataclass(frozen=True, slots=True)
class Chances:
    """The chance of each ending at each look to come.

    Attributes:
        hours: of the looks, since creation.
        wins: that treatment wins there.
        rejected: that it is rejected there: control wins, effect too small, or regression.
    """

    hours: NDArray[np.float64]
    wins: NDArray[np.float64]
    rejected: NDArray[np.float64]

    def won_by(self, hours: float) -> float:
        """Return the chance that treatment has won by a time."""
        return min(float(self.wins[self.hours <= hours].sum()), 1.0)

    def decided_by(self, hours: float) -> float:
        """Return the chance of a decision by a time."""
        return min(self.won_by(hours) + float(self.rejected[self.hours <= hours].sum()), 1.0)

    def expected_hours(self, maximum: float) -> float:
        """Return the mean time of the end, which is the maximum at the latest."""
        ends = self.wins + self.rejected
        return float(ends @ self.hours) + max(1.0 - float(ends.sum()), 0.0) * maximum


class Outlook:
    """The rest of an experiment's life, at a given traffic.

    Args:
        subject: the experiment; its schedule tells the planned end.
        spread: what its sessions are like.
        standing: where it stands.
        a_hour: scored sessions that control and treatment get an hour.

    Attributes:
        looks, harm_looks: those to come, with their boundaries.
    """

    def __init__(
        self, subject: Subject, spread: Spread, standing: Standing, a_hour: tuple[float, float]
    ) -> None:
        self._parameters = subject.parameters
        self._blocked = subject.blocked
        self._spread = spread
        self._standing = standing
        self._a_hour = a_hour
        points = [self._point(hours) for hours in times_ahead(subject, standing.hours)]
        parameters = subject.parameters
        self.looks = _charged(
            points,
            parameters.experiments.min_sample_size,
            lambda enough: charge(enough, subject.looks, lambda h: spent(parameters, h), sides=2),
        )
        self.harm_looks = _charged(
            points,
            parameters.fitness.min_sessions_for_score,
            lambda enough: charge(enough, subject.harm_looks, lambda h: harm_spent(parameters, h), sides=1),
        )

    def _point(self, hours: float) -> LookPoint:
        """Return what will be known at a time, whole sessions or not."""
        n = self._sessions(hours)
        return LookPoint(
            hours,
            GroupFitness(self._spread.mean, self._spread.control / max(n[0], 1), math.floor(n[0])),
            GroupFitness(self._spread.mean, self._spread.treatment / max(n[1], 1), math.floor(n[1])),
        )

    def _sessions(self, hours: float) -> tuple[float, float]:
        ahead = hours - self._standing.hours
        return (
            self._standing.control + self._a_hour[0] * ahead,
            self._standing.treatment + self._a_hour[1] * ahead,
        )

    def chances(self, difference: float, until: float = math.inf) -> Chances:
        """Return the chances, up to a time, if the true difference of the fitness is this."""
        looks = {look.point.hours: look for look in self.looks}
        harm = {look.point.hours: look for look in self.harm_looks}
        points = _growing(
            [
                looks.get(hours) or harm[hours]
                for hours in sorted(looks.keys() | harm.keys())
                if hours <= until
            ],
            self._information_now(),
        )
        hours = np.array([look.point.hours for look in points])
        if not points:
            return Chances(hours, np.zeros(0), np.zeros(0))
        growth = np.array([look.point.information for look in points]) - self._information_now()
        weights = np.array([_weight(look.point) for look in points])
        score = self._standing.weight * self._standing.difference
        lower = np.array([self._lower(looks.get(h), harm.get(h)) for h in hours])
        upper = np.array([self._upper(looks.get(h)) for h in hours])
        moved = float(weights[-1] - self._standing.weight)
        crossing = statistics.crossing_probabilities(
            growth, (upper - score) / np.sqrt(growth), (lower - score) / np.sqrt(growth),
            drift=difference * moved / float(growth[-1]),
        )  # fmt: skip
        return Chances(hours, crossing.upper, crossing.lower)

    def detectable(self, hours: float) -> float | None:
        """Return the smallest true lift that wins by a time with a chance of 80 %; None if none does."""
        looks = [look for look in self.looks if look.point.hours <= hours and math.isfinite(look.boundary)]
        if not looks or self._blocked or self._spread.mean <= 0:
            return None
        # One look alone at the last time, to begin with.
        score = self._standing.weight * self._standing.difference
        moved = _weight(looks[-1].point) - self._standing.weight
        growth = looks[-1].point.information - self._information_now()
        if moved <= 0 or growth <= 0:
            return None
        wanted = -normal_quantile(POWER)
        slope = moved / math.sqrt(growth)
        difference = (self._upper(looks[-1]) - score) / moved + wanted / slope
        for _ in range(_SOLVER_STEPS):
            chance = min(max(self.chances(difference, until=hours).won_by(hours), _SURE), 1 - _SURE)
            # The normal quantile of the chance is nearly linear in the difference.
            step = (wanted + normal_quantile(chance)) / slope
            difference += step
            if abs(step) <= _SOLVER_TOLERANCE * self._spread.mean:
                break
        possible = self._spread.mean + difference <= 1
        return max(difference, 0.0) / self._spread.mean if possible else None

    def _information_now(self) -> float:
        standing = self._standing
        if not standing.weight:
            return 0.0
        return self._point(standing.hours).information

    def _upper(self, look: ChargedLook | None) -> float:
        """Return the score from which on treatment wins at a look."""
        if look is None or self._blocked:
            return math.inf
        smallest = self._parameters.experiments.min_effect_size * self._spread.mean
        return max(look.boundary * math.sqrt(look.point.information), smallest * _weight(look.point))

    def _lower(self, look: ChargedLook | None, harm: ChargedLook | None) -> float:
        """Return the score up to which treatment is rejected at a time."""
        bounds = [-math.inf]
        if look is not None:
            bounds.append(-look.boundary * math.sqrt(look.point.information))
            if look.point.hours >= self._parameters.experiments.default_duration_hours:
                bounds.append(self._too_small(look))
        if harm is not None:
            loss = self._parameters.fitness.thresholds.regression_delta * self._spread.mean
            bounds.append(
                min(-harm.boundary * math.sqrt(harm.point.information), -loss * _weight(harm.point))
            )
        return max(bounds)

    def _too_small(self, look: ChargedLook) -> float:
        """Return the score below which the interval of the lift ends below min_effect_size."""
        if math.isinf(look.boundary):
            return -math.inf
        smallest = self._parameters.experiments.min_effect_size
        point = look.point
        variance = point.treatment.variance + (1 + smallest) ** 2 * point.control.variance
        bound = smallest * self._spread.mean - look.boundary * math.sqrt(variance)
        return bound * _weight(point)


def times_ahead(subject: Subject, hours: float) -> list[float]:
    """Return the scheduled times to come, those included that extensions will add."""
    schedule, duration = subject.schedule, subject.parameters.experiments.default_duration_hours
    ends = range(schedule.planned_end, schedule.maximum, duration)
    times: set[int] = set()
    for end in ends or (schedule.planned_end,):
        times |= set(replace(schedule, planned_end=end).until(schedule.maximum))
    return [float(time) for time in sorted(times) if time > hours]


def _charged(
    points: Sequence[LookPoint], minimum: int, charge_them: Callable[[list[LookPoint]], list[ChargedLook]]
) -> list[ChargedLook]:
    enough = [point for point in points if min(point.control.n, point.treatment.n) >= max(minimum, 2)]
    return charge_them(enough)


def _growing(looks: Sequence[ChargedLook], information: float) -> list[ChargedLook]:
    """Return the looks before which information grows at all."""
    found: list[ChargedLook] = []
    for look in looks:
        if look.point.information > information * (1 + _SURE):
            found.append(look)
            information = look.point.information
    return found


def _weight(point: LookPoint) -> float:
    return point.control.n * point.treatment.n / (point.control.n + point.treatment.n)
