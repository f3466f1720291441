"""Fitness of a group of sessions, and the variance of that fitness, from moments alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from prx_engine.configuration import Weights
from prx_engine.dimensions import DIMENSIONS, UNIT, Dimension
from prx_engine.fitness.moments import Moments
from prx_engine.records import DimensionScore, FitnessScore, Window


@lru_cache(maxsize=256)
def exact_weights(weights: tuple[float, ...]) -> tuple[Fraction, ...]:
    """Return weights as the decimal numbers that they are written as (0.1 is one tenth)."""
    return tuple(Fraction(repr(weight)) for weight in weights)


def counting(groups: Sequence[Moments], weights: Weights, minimum: int) -> tuple[Dimension, ...]:
    """Return the dimensions of positive weight with at least ``minimum`` observations in every group."""
    return tuple(
        dimension
        for d, dimension in enumerate(DIMENSIONS)
        if weights.as_tuple()[d] > 0 and all(group.observations(d) >= minimum for group in groups)
    )


def effective_weights(weights: Weights, counted: Sequence[Dimension]) -> tuple[Fraction, ...]:
    """Return the weight of each dimension, those that do not count spread over the others in proportion."""
    return _effective_weights(weights.as_tuple(), tuple(counted))


@lru_cache(maxsize=256)
def _effective_weights(weights: tuple[float, ...], counted: tuple[Dimension, ...]) -> tuple[Fraction, ...]:
    exact = exact_weights(weights)
    total = sum((w for w, name in zip(exact, DIMENSIONS, strict=True) if name in counted), Fraction(0))
    return tuple(
        w / total if name in counted else Fraction(0) for w, name in zip(exact, DIMENSIONS, strict=True)
    )


@dataclass(frozen=True, slots=True)
class GroupFitness:
    """Fitness of a group over the dimensions that count.

    Attributes:
        mean: composite fitness, 0–1.
        variance: of that mean (not of a session); 0 with fewer than two sessions.
        n: scored sessions.
    """

    mean: float
    variance: float
    n: int


def fitness(moments: Moments, weights: Weights, counted: Sequence[Dimension]) -> float | None:
    """Return Σ w_d · m_d over the counted dimensions, exactly rounded; None if one of them has no data."""
    return _mean(moments, effective_weights(weights, counted), counted)


def group_fitness(moments: Moments, weights: Weights, counted: Sequence[Dimension]) -> GroupFitness | None:
    """Return the fitness of a group with its variance; None where the fitness is undefined.

    The variance is that of a weighted sum of means of partly missing data, from each session's
    influence φ_i = Σ_d w_d · (n / n_d) · [x_id − m_d if present] (Hampel 1974), with the sum of
    squares of each dimension divided by n_d − 1 instead of n − 1. Without missing data it is the
    ordinary variance of the mean of the sessions' weighted scores. Where few sessions have two
    negatively related dimensions together the sum can fall below zero; it is taken as 0 then.
    """
    used = effective_weights(weights, counted)
    mean = _mean(moments, used, counted)
    if mean is None:
        return None
    return GroupFitness(mean, _variance(moments, used), moments.n)


def _mean(moments: Moments, used: Sequence[Fraction], counted: Sequence[Dimension]) -> float | None:
    """Return Σ w_d · m_d as one quotient of whole numbers, which is rounded once."""
    if not counted or any(moments.observations(DIMENSIONS.index(name)) == 0 for name in counted):
        return None
    numerator, denominator = 0, 1
    for d, w in enumerate(used):
        if w:
            below = w.denominator * moments.observations(d)
            numerator = numerator * below + w.numerator * moments.total(d, d) * denominator
            denominator *= below
    return numerator / (denominator * UNIT)


def _variance(moments: Moments, used: Sequence[Fraction]) -> float:
    """Return the variance from terms that are exact until they are divided, so that none is all rounding."""
    n = moments.n
    if n < 2:
        return 0.0
    terms = [(d, float(w)) for d, w in enumerate(used) if w]
    total = 0.0
    for i, (d, w_d) in enumerate(terms):
        total += w_d * w_d * dimension_mean_variance(moments, d)
        for e, w_e in terms[i + 1 :]:
            total += 2 * w_d * w_e * n / (n - 1) * mean_covariance(moments, moments, d, e)
    return max(total, 0.0)


def mean_covariance(group: Moments, part: Moments, d: int, e: int) -> float:
    """Return Σ (x_d − m_d)(x_e − m_e) / (n_d n_e) over the sessions of ``part`` that have both dimensions.

    Means and numbers are those of the whole ``group``.
    """
    n_d, n_e = group.observations(d), group.observations(e)
    sum_d, sum_e = group.total(d, d), group.total(e, e)
    numerator = (
        n_d * n_e * part.product(d, e)
        - n_d * sum_e * part.total(d, e)
        - n_e * sum_d * part.total(e, d)
        + sum_d * sum_e * part.count(d, e)
    )
    return numerator / (n_d * n_d * n_e * n_e * UNIT**2)


def dimension_mean(moments: Moments, d: int) -> float | None:
    """Return the mean of one dimension, 0–1; None without data."""
    n_d = moments.observations(d)
    return moments.total(d, d) / (n_d * UNIT) if n_d else None


def dimension_mean_variance(moments: Moments, d: int) -> float:
    """Return s_d²/n_d, the variance of the mean of one dimension; 0 below two values."""
    n_d = moments.observations(d)
    if n_d < 2:
        return 0.0
    numerator = n_d * moments.product(d, d) - moments.total(d, d) ** 2
    return numerator / (n_d * n_d * (n_d - 1) * UNIT**2)


def fitness_score(
    moments: Moments,
    weights: Weights,
    counted: Sequence[Dimension],
    window: Window,
    minimum_sessions: int,
) -> FitnessScore:
    """Return the public record of a group's fitness."""
    group = group_fitness(moments, weights, counted)
    used = effective_weights(weights, counted)
    dimensions = {
        name: _dimension_score(
            moments, d, used[d], weights.as_tuple()[d], name in counted and group is not None
        )
        for d, name in enumerate(DIMENSIONS)
    }
    return FitnessScore(
        composite=group.mean if group else None,
        standard_error=math.sqrt(group.variance) if group and group.n >= 2 else None,
        dimensions=dimensions,
        sessions=moments.n,
        window=window,
        valid=group is not None and moments.n >= minimum_sessions,
    )


def _dimension_score(
    moments: Moments, d: int, weight: Fraction, configured: float, counts: bool
) -> DimensionScore:
    n_d = moments.observations(d)
    mean = Fraction(moments.total(d, d), n_d * UNIT) if n_d else None
    return DimensionScore(
        score=None if mean is None else float(mean),
        weight=float(weight) if counts else 0.0,
        configured_weight=configured,
        contribution=float(weight * mean) if counts and mean is not None else None,
        sessions=n_d,
    )
