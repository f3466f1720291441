"""How large the effect is: intervals, lift and standardised difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from prx_engine.statistics.means import Arm, WelchResult, mean_difference


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval; an end is infinite where the data set no bound.

    Attributes:
        lower: lower end, at most `upper`.
        upper: upper end.
    """

    lower: float
    upper: float


_EVERYTHING = Interval(-math.inf, math.inf)


def difference_interval(test: WelchResult, q: float) -> Interval:
    """Interval of the difference of the means: difference ± q standard errors.

    Args:
        test: a t test.
        q: quantile of its t distribution, at least 0; `inf` gives an unbounded interval.
    """
    if math.isinf(q):
        return _EVERYTHING
    margin = q * test.standard_error
    return Interval(test.difference - margin, test.difference + margin)


def fieller_interval(control: Arm, treatment: Arm, q: float, covariance: float = 0.0) -> Interval:
    """Interval of the lift r: all r with (T - (1 + r) C)² <= q² Var(T - (1 + r) C) (Fieller, 1954).

    T and C are the means, V_T and V_C their variances, K their covariance; the variance on the right is
    V_T - 2 (1 + r) K + (1 + r)² V_C. If C is not distinguishable from 0 the set is
    unbounded: the whole line, or two rays. Of two rays the one that contains the observed lift is
    returned; the other consists of negative ratios of the means, which fitness cannot have. So 0 lies in
    the interval exactly if the difference T - C is within q standard errors.

    Args:
        control: control arm; its mean may be 0.
        treatment: treatment arm.
        q: quantile of the t distribution, at least 0; `inf` gives the whole line.
        covariance: of the two means, 0 for independent arms.

    Returns:
        The interval. With C and V_C both 0 no finite lift is possible once T differs from 0: both ends
        are then the infinity of T's sign.
    """
    if math.isinf(q):
        return _EVERYTHING
    c, t = control.mean, treatment.mean
    # With x = 1 + r the set is a x² - 2 h x + b <= 0.
    squared, k = q * q, covariance
    a = c * c - squared * control.variance
    h = t * c - squared * k
    b = t * t - squared * treatment.variance
    discriminant = squared * (
        treatment.variance * a + control.variance * t * t - 2.0 * t * c * k + squared * k * k
    )
    if a > 0.0:
        low, high = _roots(a, h, b, max(discriminant, 0.0))
        return Interval(low - 1.0, high - 1.0)
    if a == 0.0:
        return _without_square(h, t, b)
    if discriminant <= 0.0:
        return _EVERYTHING
    low, high = _roots(a, h, b, discriminant)
    upwards = h > 0.0 or (h == 0.0 and t > 0.0)
    return Interval(high - 1.0, math.inf) if upwards else Interval(-math.inf, low - 1.0)


def hedges_g(
    control_mean: float,
    treatment_mean: float,
    control_sd: float,
    treatment_sd: float,
    n_control: int,
    n_treatment: int,
) -> float:
    """Difference of the means in pooled standard deviations, without small-sample bias (Hedges, 1981).

    The bias is removed by his approximation 1 - 3 / (4 df - 1), good to 0.02 % from 20 sessions on.

    Args:
        control_mean: mean score of control.
        treatment_mean: mean score of treatment.
        control_sd: standard deviation of single scores (with n - 1) in control, at least 0.
        treatment_sd: the same in treatment.
        n_control: sessions in control.
        n_treatment: sessions in treatment.

    Returns:
        g; without any variance 0 for equal means and an infinity of the difference's sign for others.

    Raises:
        ValueError: if an arm has fewer than 2 sessions.
    """
    if min(n_control, n_treatment) < 2:
        raise ValueError(f"both arms need at least 2 sessions, got {n_control} and {n_treatment}")
    df = n_control + n_treatment - 2
    difference = mean_difference(control_mean, treatment_mean)
    squares = (n_control - 1) * control_sd**2 + (n_treatment - 1) * treatment_sd**2
    pooled = math.sqrt(squares / df)
    if pooled == 0.0:
        return math.copysign(math.inf, difference) if difference != 0.0 else 0.0
    return (1.0 - 3.0 / (4.0 * df - 1.0)) * difference / pooled


def bonferroni(p_values: Sequence[float]) -> list[float]:
    """Each p times their number, at most 1 (Bonferroni, 1936; Dunn, 1961)."""
    return [min(1.0, p * len(p_values)) for p in p_values]


def _roots(a: float, half_b: float, c: float, discriminant: float) -> tuple[float, float]:
    """Roots of a x² - 2 half_b x + c in ascending order, without cancellation."""
    larger = half_b + math.copysign(math.sqrt(discriminant), half_b)
    if larger == 0.0:
        return 0.0, 0.0
    first, second = larger / a, c / larger
    return min(first, second), max(first, second)


def _without_square(product: float, treatment: float, b: float) -> Interval:
    """Fieller's set for a = 0, where it is the half-line 2 · product · x >= b, or all or nothing."""
    if product > 0.0:
        return Interval(b / (2.0 * product) - 1.0, math.inf)
    if product < 0.0:
        return Interval(-math.inf, b / (2.0 * product) - 1.0)
    if b <= 0.0:
        return _EVERYTHING
    infinity = math.copysign(math.inf, treatment)
    return Interval(infinity, infinity)
