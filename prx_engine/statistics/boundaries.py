"""Group sequential boundaries and crossing probabilities, by recursive numerical integration.

The score process S of an experiment has independent normal increments: between two looks with
information a < b it moves by a normal variable of variance b - a (and mean drift · (b - a)), and the
z statistic of a look is S / sqrt(information). The density of S on the paths that have crossed no
boundary so far is carried from look to look on a grid (Armitage, McPherson & Rowe, 1969; Jennison &
Turnbull, 2000, chapter 19). The grid is composite Gauss-Legendre, its panels as wide as the normal
kernel on either side of it allows, and the sums run only over the points the kernel can reach, so that
the cost of a look follows the width of the continuation region in standard deviations of one increment.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
PerLook = Sequence[float] | Floats

# Twenty points on seven standard deviations integrate a product of two normal shapes of that standard
# deviation to a relative 1e-11.
_PANEL_WIDTH: Final = 7.0
_GAUSS_POINTS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(20)

# Beyond this many standard deviations the normal kernel is below 1e-14 of its maximum.
_KERNEL_REACH: Final = 8.0

# A tail that is cut off holds at most this share of the smallest probability still to be resolved.
_CUT_SHARE: Final = 1e-10

# Not far below this a double loses digits; the standard normal quantile there is _LARGEST_Z.
_SMALLEST_SPEND: Final = 1e-300
_LARGEST_Z: Final = 37.0

# A later look that spends less than this after others have spent more loses relative accuracy.
_LEAST_SPEND_THAT_COUNTS: Final = 1e-12

# Paths this far from the mean, as z, hold too little (1e-23) to count in a crossing probability.
_FAR: Final = 10.0

# Paths this far below the mean are the least likely ones to cross an upper boundary later: leaving them
# out changes its exit probability by a share of 1e-12.
_FAR_BELOW: Final = 7.0

# A look whose information grows by less is treated as if it grew by this share; the grid would become
# finer without end.
_LEAST_GROWTH: Final = 1e-5

# Kernel values computed at a time, to bound the memory.
_LARGEST_BLOCK: Final = 2_000_000

_SOLVER_STEPS: Final = 200
_SOLVER_TOLERANCE: Final = 1e-12


@dataclass(frozen=True, slots=True)
class CrossingProbabilities:
    """Where a score process leaves the region between two boundaries.

    Attributes:
        upper: probability that the first crossing is of the upper boundary at this look, shape (looks,).
        lower: the same for the lower boundary.
    """

    upper: Floats
    lower: Floats


@dataclass(frozen=True, slots=True)
class _Step:
    """What happens to the score between two looks."""

    information: float
    """Information of the later look."""
    deviation: float
    """Standard deviation of the increment of the score."""
    shift: float
    """Mean of the increment."""
    reach: float
    """How far the points matter that lead to a given score, in standard deviations of the increment."""


@dataclass(frozen=True, slots=True)
class _Survivors:
    """Distribution of the score over the paths that have not crossed yet: masses at ascending points."""

    points: Floats
    masses: Floats

    def above(self, bound: float, step: _Step) -> tuple[float, float]:
        """Probability of a score above `bound` after the step, and its density at `bound`."""
        nearest = min(bound - step.shift, float(self.points[-1]))
        start = np.searchsorted(self.points, nearest - step.reach * step.deviation)
        distance = (bound - step.shift - self.points[start:]) / step.deviation
        masses = self.masses[start:]
        probability = float(masses @ special.ndtr(-distance))
        density = float(masses @ np.exp(-0.5 * distance * distance))
        return probability, density / (step.deviation * math.sqrt(2.0 * math.pi))

    def below(self, bound: float, step: _Step) -> float:
        """Probability of a score below `bound` after the step."""
        nearest = max(bound - step.shift, float(self.points[0]))
        end = np.searchsorted(self.points, nearest + step.reach * step.deviation)
        distance = (bound - step.shift - self.points[:end]) / step.deviation
        return float(self.masses[:end] @ special.ndtr(distance))

    def advance(self, low: float, high: float, step: _Step, scale: float) -> _Survivors:
        """The paths whose score lies between `low` and `high` after the step.

        Its grid resolves features as narrow as `scale`, a standard deviation.
        """
        points, weights = _grid(low, high, scale)
        return _Survivors(points, weights * self._density(points, step))

    def _density(self, points: Floats, step: _Step) -> Floats:
        """Density of the score at ascending `points` after the step."""
        density = np.zeros_like(points)
        if not points.size:
            return density
        centres = points - step.shift
        nearest = np.clip(centres, self.points[0], self.points[-1])
        reach = step.reach * step.deviation
        first = np.searchsorted(self.points, nearest - reach)
        width = int(np.max(np.searchsorted(self.points, nearest + reach) - first))
        first = np.minimum(first, self.points.size - width)
        offsets = np.arange(width)
        rows = max(_LARGEST_BLOCK // width, 1)
        for begin in range(0, points.size, rows):
            block = slice(begin, begin + rows)
            near = first[block, np.newaxis] + offsets
            kernel = self.points[near]
            kernel -= centres[block, np.newaxis]
            kernel *= kernel
            kernel *= -0.5 / step.deviation**2
            np.exp(kernel, out=kernel)
            density[block] = np.einsum("ij,ij->i", kernel, self.masses[near])
        density /= step.deviation * math.sqrt(2.0 * math.pi)
        return density


_ORIGIN: Final = _Survivors(np.zeros(1), np.ones(1))


def group_sequential_boundaries(information: PerLook, alpha_spent: PerLook, sides: int = 2) -> Floats:
    """Boundaries for the z statistics of successive looks that spend alpha exactly as prescribed.

    The boundary of look k solves P(first crossing at look k | no effect) = alpha_spent[k] -
    alpha_spent[k - 1] (Lan & DeMets, 1983). Crossing means z >= boundary, and with two sides also
    z <= -boundary.

    Args:
        information: statistical information at each look, in any unit, positive and increasing.
        alpha_spent: cumulative type I error to be spent by each look, within [0, 1) and never
            decreasing; the total of both tails with two sides.
        sides: 2 for boundaries on both sides, 1 for an upper boundary alone.

    Returns:
        One boundary per look; `inf` where a look cannot stop because it has less than 1e-300 to spend.
        Boundaries below 6 are good to about 1e-9. A look that adds less than 1e-5 of the
        information is computed as if it added that much.

    Raises:
        ValueError: for lengths that differ, information that does not increase, alpha that decreases
            or lies outside [0, 1), or sides other than 1 and 2.
    """
    if sides not in (1, 2):
        raise ValueError(f"sides must be 1 or 2, got {sides}")
    _check_information(information)
    _check_lengths(information, alpha_spent)
    _check_alpha(alpha_spent)
    looks = tuple(zip(map(float, information), map(float, alpha_spent), strict=True))
    sequence = _remembered.start_of(looks, sides)
    new = looks[len(sequence.looks) :]
    for look in new[:-1]:
        sequence = sequence.take(*look)
    for look in new[-1:]:
        # Kept as well, because a preview asks for another last look each time.
        _remembered.keep(sequence)
        sequence = sequence.take(*look)
        _remembered.keep(sequence)
    return np.array(sequence.boundaries)


@dataclass(frozen=True, slots=True)
class _Sequence:
    """The boundaries of the looks so far, and all that the next one needs to know of them."""

    sides: int
    looks: tuple[tuple[float, float], ...] = ()
    """Information and cumulative alpha of each."""
    boundaries: tuple[float, ...] = ()
    survivors: _Survivors = _ORIGIN
    """Paths that have crossed no boundary before the last look."""
    last: _Step | None = None

    def take(self, information: float, alpha_spent: float) -> _Sequence:
        """The sequence with one look more."""
        spent_before = self.looks[-1][1] if self.looks else 0.0
        probability = (alpha_spent - spent_before) / self.sides
        can_stop = probability >= _SMALLEST_SPEND
        quantile = -float(special.ndtri(probability)) if can_stop else 0.0
        step = _step(information, self.last.information if self.last else 0.0, 0.0, quantile)
        survivors = self._survivors_of_last(probability, step.deviation)
        boundary = _solve(survivors, step, probability, quantile) if can_stop else math.inf
        return _Sequence(
            self.sides, (*self.looks, (information, alpha_spent)), (*self.boundaries, boundary),
            survivors, step,
        )  # fmt: skip

    def _survivors_of_last(self, probability: float, next_deviation: float) -> _Survivors:
        """The paths that the last look did not stop, fit for a next look that is to stop some of them.

        They are computed only now because their grid and where it may be cut depend on that look.
        """
        if self.last is None:
            return self.survivors
        root = math.sqrt(self.last.information)
        far = _farthest_needed(probability)
        high = min(self.boundaries[-1], far) * root
        low = -high if self.sides == 2 else -_FAR_BELOW * root
        step = replace(self.last, reach=_reach(far, self.last))
        return self.survivors.advance(low, high, step, min(step.deviation, next_deviation))


class _Memory:
    """The last few sequences: an experiment's next look continues one instead of starting again."""

    def __init__(self, size: int) -> None:
        self._sequences: deque[_Sequence] = deque(maxlen=size)
        self._lock = Lock()

    def start_of(self, looks: tuple[tuple[float, float], ...], sides: int) -> _Sequence:
        """The longest known sequence that these looks begin with."""
        with self._lock:
            known = [
                sequence
                for sequence in self._sequences
                if sequence.sides == sides and sequence.looks == looks[: len(sequence.looks)]
            ]
        return max(known, key=lambda sequence: len(sequence.looks), default=_Sequence(sides))

    def keep(self, sequence: _Sequence) -> None:
        with self._lock:
            self._sequences.append(sequence)


_remembered: Final = _Memory(16)


def crossing_probabilities(
    information: PerLook, upper: PerLook, lower: PerLook, drift: float = 0.0
) -> CrossingProbabilities:
    """Probability, look by look, that a score process first crosses its upper or lower boundary there.

    Args:
        information: statistical information at each look, positive and increasing.
        upper: upper z boundary of each look; `inf` where it cannot be crossed.
        lower: lower z boundary of each look, at most the upper one; `-inf` where it cannot be crossed.
        drift: mean of the score per unit of information; the z statistic of a look has the expectation
            drift · sqrt(information).

    Returns:
        Probabilities with an absolute error of about 1e-11.

    Raises:
        ValueError: for lengths that differ, information that does not increase, boundaries that are
            crossed over or not numbers, or a drift that is not finite.
    """
    _check_information(information)
    _check_lengths(information, upper)
    _check_lengths(information, lower)
    if not all(bottom <= top for bottom, top in zip(lower, upper, strict=True)):
        raise ValueError("each lower boundary must be at most the upper one")
    if not math.isfinite(drift):
        raise ValueError(f"drift must be finite, got {drift}")
    steps = _steps(information, drift)
    result = CrossingProbabilities(np.zeros(len(steps)), np.zeros(len(steps)))
    survivors = _ORIGIN
    for k, step in enumerate(steps):
        if not survivors.points.size:
            break
        root = math.sqrt(step.information)
        result.upper[k] = survivors.above(upper[k] * root, step)[0]
        result.lower[k] = survivors.below(lower[k] * root, step)
        if k + 1 < len(steps):
            mean = drift * step.information
            high = min(upper[k] * root, mean + _FAR * root)
            low = max(lower[k] * root, mean - _FAR * root)
            scale = min(step.deviation, steps[k + 1].deviation)
            survivors = survivors.advance(low, high, step, scale)
    return result


def _check_information(information: PerLook) -> None:
    values = np.array([0.0, *information])
    fine = (values[:-1] < values[1:]) & (values[1:] < math.inf)
    if not fine.all():
        k = int(fine.argmin())
        raise ValueError(
            f"information must be finite, positive and increase, got {values[k + 1]} after {values[k]}"
        )


def _check_lengths(information: PerLook, other: PerLook) -> None:
    if len(information) != len(other):
        raise ValueError(f"one value is needed per look: {len(information)} looks, {len(other)} values")


def _check_alpha(alpha_spent: PerLook) -> None:
    values = np.array([0.0, *alpha_spent])
    fine = (values[:-1] <= values[1:]) & (values[1:] < 1.0)
    if not fine.all():
        k = int(fine.argmin())
        raise ValueError(
            f"cumulative alpha must lie within [0, 1) and never decrease, got {values[k + 1]} after"
            f" {values[k]}"
        )


def _farthest_needed(probability: float) -> float:
    """How far from zero, as z, the paths matter of which the next look is to stop `probability`.

    Looks after that one may stop fewer of them, down to a probability that no longer counts.
    """
    smallest = min(probability if probability >= _SMALLEST_SPEND else 1.0, _LEAST_SPEND_THAT_COUNTS)
    return min(-float(special.ndtri(_CUT_SHARE * smallest)), _LARGEST_Z)


def _step(information: float, previous: float, drift: float, z: float) -> _Step:
    """The step to `information`, of paths that matter as far as `z` out."""
    current = max(information, previous * (1.0 + _LEAST_GROWTH))
    growth = current - previous
    step = _Step(current, math.sqrt(growth), drift * growth, 0.0)
    return replace(step, reach=_reach(z, step))


def _reach(z: float, step: _Step) -> float:
    # A path that is z out at this look was, most likely, already drifting that way at the last one.
    return _KERNEL_REACH + z * step.deviation / math.sqrt(step.information)


def _steps(information: PerLook, drift: float) -> list[_Step]:
    steps: list[_Step] = []
    for value in information:
        steps.append(_step(float(value), steps[-1].information if steps else 0.0, drift, _FAR))
    return steps


def _grid(low: float, high: float, scale: float) -> tuple[Floats, Floats]:
    """Points and weights that integrate over [low, high] functions with features as narrow as `scale`."""
    if not low < high:
        return np.empty(0), np.empty(0)
    panels = math.ceil((high - low) / (_PANEL_WIDTH * scale))
    half = 0.5 * (high - low) / panels
    centres = low + half * np.arange(1, 2 * panels, 2)
    points = (centres[:, np.newaxis] + half * _GAUSS_POINTS).ravel()
    return points, np.tile(half * _GAUSS_WEIGHTS, panels)


def _solve(survivors: _Survivors, step: _Step, probability: float, quantile: float) -> float:
    """The z boundary that the score first exceeds, after the step, with the given probability.

    `quantile` is the z that an unstopped score exceeds with that probability.

    Newton's method on the normal quantile of the exit probability, which is nearly linear in the boundary;
    the bracket guards against probabilities that underflow.
    """
    root = math.sqrt(step.information)
    # Both bounds hold: no path is above the last point, and the unstopped score is standard normal.
    right = min(quantile, (float(survivors.points[-1]) + step.deviation * quantile) / root)
    left = -math.inf
    stride = step.deviation / root
    boundary = right
    for _ in range(_SOLVER_STEPS):
        exit_probability, density = survivors.above(boundary * root, step)
        if exit_probability > probability:
            left = boundary
        else:
            right = boundary
        candidate = -math.inf
        if exit_probability >= _SMALLEST_SPEND and density > 0.0:
            reached = -float(special.ndtri(exit_probability))
            slope = density * root * math.sqrt(2.0 * math.pi) * math.exp(0.5 * reached * reached)
            candidate = boundary + (quantile - reached) / slope
        if abs(candidate - boundary) <= _SOLVER_TOLERANCE * max(1.0, abs(boundary)):
            return candidate
        if not left < candidate < right:
            candidate = 0.5 * (left + right) if math.isfinite(left) else boundary - stride
            stride *= 2.0
        boundary = candidate
    return boundary
