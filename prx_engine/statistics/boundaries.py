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
from collections.abc import Sequence
from dataclasses import dataclass
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
        near_points = np.lib.stride_tricks.sliding_window_view(self.points, width)
        near_masses = np.lib.stride_tricks.sliding_window_view(self.masses, width)
        rows = max(_LARGEST_BLOCK // width, 1)
        for begin in range(0, points.size, rows):
            block = slice(begin, begin + rows)
            kernel = near_points[first[block]]
            kernel -= centres[block, np.newaxis]
            kernel *= kernel
            kernel *= -0.5 / step.deviation**2
            np.exp(kernel, out=kernel)
            density[block] = np.einsum("ij,ij->i", kernel, near_masses[first[block]])
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
    per_tail = np.diff(np.asarray(alpha_spent, dtype=np.float64), prepend=0.0) / sides
    farthest = _farthest_needed(per_tail)
    steps = _steps(information, drift=0.0, farthest=farthest)
    boundaries = np.full(len(steps), math.inf)
    survivors = _ORIGIN
    for k, step in enumerate(steps):
        root = math.sqrt(step.information)
        if per_tail[k] >= _SMALLEST_SPEND:
            boundaries[k] = _solve(survivors, step, float(per_tail[k]))
        if k + 1 < len(steps):
            high = min(boundaries[k], farthest[k]) * root
            low = -high if sides == 2 else -_FAR_BELOW * root
            scale = min(step.deviation, steps[k + 1].deviation)
            survivors = survivors.advance(low, high, step, scale)
    return boundaries


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
    steps = _steps(information, drift, np.full(len(information), _FAR))
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
    previous = 0.0
    for value in information:
        if not (previous < value < math.inf):
            raise ValueError(
                f"information must be finite, positive and increase, got {value} after {previous}"
            )
        previous = value


def _check_lengths(information: PerLook, other: PerLook) -> None:
    if len(information) != len(other):
        raise ValueError(f"one value is needed per look: {len(information)} looks, {len(other)} values")


def _check_alpha(alpha_spent: PerLook) -> None:
    previous = 0.0
    for value in alpha_spent:
        if not (previous <= value < 1.0):
            raise ValueError(
                f"cumulative alpha must lie within [0, 1) and never decrease, got {value} after {previous}"
            )
        previous = value


def _farthest_needed(per_tail: Floats) -> Floats:
    """How far from zero, as z, the paths that pass each look matter for the looks after it."""
    later = np.append(per_tail, 1.0)[1:]
    smallest = np.minimum.accumulate(np.where(later >= _SMALLEST_SPEND, later, 1.0)[::-1])[::-1]
    return np.minimum(-special.ndtri(_CUT_SHARE * smallest), _LARGEST_Z)


def _steps(information: PerLook, drift: float, farthest: Floats) -> list[_Step]:
    steps: list[_Step] = []
    previous = 0.0
    for value, z in zip(information, farthest, strict=True):
        current = max(float(value), previous * (1.0 + _LEAST_GROWTH))
        growth = current - previous
        deviation = math.sqrt(growth)
        # A path that is z out at this look was, most likely, already drifting that way at the last one.
        reach = _KERNEL_REACH + float(z) * deviation / math.sqrt(current)
        steps.append(_Step(current, deviation, drift * growth, reach))
        previous = current
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


def _solve(survivors: _Survivors, step: _Step, probability: float) -> float:
    """The z boundary that the score first exceeds, after the step, with the given probability.

    Newton's method on the logarithm of the exit probability. Truncation and convolution keep the density
    log-concave, so from the right of the solution it converges monotonically; the bracket guards against
    probabilities that underflow.
    """
    root = math.sqrt(step.information)
    quantile = -float(special.ndtri(probability))
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
        if exit_probability > 0.0 and density > 0.0:
            log_ratio = math.log(exit_probability / probability)
            candidate = boundary + exit_probability * log_ratio / (density * root)
        if abs(candidate - boundary) <= _SOLVER_TOLERANCE * max(1.0, abs(boundary)):
            return candidate
        if not left < candidate < right:
            candidate = 0.5 * (left + right) if math.isfinite(left) else boundary - stride
            stride *= 2.0
        boundary = candidate
    return boundary
