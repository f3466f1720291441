"""Tests of the difference between two means, from summaries of the arms.

No result is ever NaN, and p-values come from survival functions, so that a p of 0 is one below 1e-300.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from prx_engine.statistics.histogram import Histogram
from prx_engine.statistics.ranks import RankResult, mann_whitney
from prx_engine.statistics.student import student_cdf

# Means are sums of a few rounded products: relative differences below this are rounding, not data.
_ROUNDING: Final = 1e-14

# A 95 % interval of the mean is good from this many sessions times the squared skewness on.
_SESSIONS_PER_SQUARED_SKEWNESS: Final = 355
_LARGEST_ARM_RATIO: Final = 3


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm of a comparison.

    Attributes:
        mean: estimated mean.
        variance: variance of that mean (not of a single score), at least 0.
        n: number of sessions behind it.

    Raises:
        ValueError: if mean or variance is not finite, or variance or n is negative.
    """

    mean: float
    variance: float
    n: int

    def __post_init__(self) -> None:
        """Refuse what no sample has."""
        if not (math.isfinite(self.mean) and 0.0 <= self.variance < math.inf and self.n >= 0):
            raise ValueError(f"not the mean, variance and size of a sample: {self}")


@dataclass(frozen=True, slots=True)
class WelchResult:
    """Outcome of a t test of treatment against control.

    Attributes:
        difference: treatment mean minus control mean.
        standard_error: standard error of the difference, at least 0.
        t: difference / standard_error; infinite if means differ without variance.
        df: degrees of freedom of t.
        p_value: two-sided p, 0 to 1.
        p_less: p for a treatment mean below that of control, 0 to 1.
    """

    difference: float
    standard_error: float
    t: float
    df: float
    p_value: float
    p_less: float


@dataclass(frozen=True, slots=True)
class HallResult:
    """Outcome of Hall's test.

    Attributes:
        t: Welch's t after the correction for skewness.
        p_value: two-sided p, 0 to 1.
        p_less: p for a treatment mean below that of control, 0 to 1.
    """

    t: float
    p_value: float
    p_less: float


@dataclass(frozen=True, slots=True)
class RobustResult:
    """Outcome of the three tests that must agree.

    Attributes:
        p_value: the largest two-sided p of the three, 1 unless all point the same way.
        p_less: the largest of their p's for treatment below control.
        welch: Welch's test, with the least variance of an arm whose scores are all equal.
        mann_whitney: Mann-Whitney's test.
        hall: Hall's test, with the same variances as `welch`.
    """

    p_value: float
    p_less: float
    welch: WelchResult
    mann_whitney: RankResult
    hall: HallResult


def welch(control: Arm, treatment: Arm) -> WelchResult:
    """Welch's t test (1947) with Satterthwaite's degrees of freedom (1946).

    Without variance in either arm, equal means give p = 1 and different ones p = 0, on n_C + n_T - 2
    degrees of freedom. Means that differ by rounding alone are equal.

    Raises:
        ValueError: if an arm has fewer than 2 sessions.
    """
    if min(control.n, treatment.n) < 2:
        raise ValueError(f"both arms need at least 2 sessions, got {control.n} and {treatment.n}")
    return t_test(
        mean_difference(control.mean, treatment.mean),
        control.variance + treatment.variance,
        _satterthwaite(control, treatment),
    )


def mean_difference(control: float, treatment: float) -> float:
    """Treatment mean minus control mean; exactly 0 if rounding alone sets them apart."""
    equal = math.isclose(treatment, control, rel_tol=_ROUNDING)
    return 0.0 if equal else treatment - control


def t_test(difference: float, variance: float, df: float) -> WelchResult:
    """Student's t test of a difference whose variance and degrees of freedom are known.

    Args:
        difference: treatment minus control.
        variance: variance of the difference, at least 0; without any, a difference of 0 gives p = 1
            on either side, another p = 0.
        df: degrees of freedom, at least 1.
    """
    standard_error = math.sqrt(variance)
    if difference == 0.0 == standard_error:
        return WelchResult(0.0, 0.0, 0.0, df, 1.0, 1.0)
    t = difference / standard_error if standard_error > 0.0 else math.copysign(math.inf, difference)
    return WelchResult(difference, standard_error, t, df, *_p_values(t, df))


def hall(control: Arm, treatment: Arm, control_scores: Histogram, treatment_scores: Histogram) -> HallResult:
    """Welch's test with the t statistic transformed to remove its skewness.

    g(t) = t + A t²/3 + A² t³/27 + A/6 (Hall, 1992) with A = (κ_T / n_T² - κ_C / n_C²) / V^1.5, κ the
    third central moments of the scores and V the variance of the difference (Zhou & Dinh, 2005). An arm
    whose scores are all equal to m is given the variance (max(m, 1 - m) / n)² of the mean, if its own is
    smaller.

    Raises:
        ValueError: if an arm has fewer than 2 sessions.
    """
    control = _with_least_variance(control, control_scores)
    treatment = _with_least_variance(treatment, treatment_scores)
    test = welch(control, treatment)
    if test.standard_error == 0.0:
        return HallResult(test.t, test.p_value, test.p_less)
    third_moment = (
        treatment_scores.third_central / treatment.n**2 - control_scores.third_central / control.n**2
    )
    skewness = third_moment / test.standard_error**3
    scaled = skewness * test.t / 3.0
    t = test.t * (1.0 + scaled * (1.0 + scaled / 3.0)) + skewness / 6.0
    return HallResult(t, *_p_values(t, test.df))


def robust(
    control: Arm, treatment: Arm, control_scores: Histogram, treatment_scores: Histogram
) -> RobustResult:
    """Welch, Mann-Whitney and Hall together: significant only if all three are, on the same side.

    Mann-Whitney alone tests something else than the mean, and Welch alone errs on few skewed sessions.
    Arms whose scores are all equal are treated as in `hall`.

    Raises:
        ValueError: if an arm has fewer than 2 sessions or no scores.
    """
    by_mean = welch(
        _with_least_variance(control, control_scores), _with_least_variance(treatment, treatment_scores)
    )
    by_rank = mann_whitney(control_scores, treatment_scores)
    by_shape = hall(control, treatment, control_scores, treatment_scores)
    signs = (by_mean.t, by_rank.z, by_shape.t)
    agree = all(sign > 0.0 for sign in signs) or all(sign < 0.0 for sign in signs)
    return RobustResult(
        p_value=max(by_mean.p_value, by_rank.p_value, by_shape.p_value) if agree else 1.0,
        p_less=max(by_mean.p_less, by_rank.p_less, by_shape.p_less),
        welch=by_mean,
        mann_whitney=by_rank,
        hall=by_shape,
    )


def needs_robust(
    control_scores: Histogram, treatment_scores: Histogram, n_control: int, n_treatment: int
) -> bool:
    """Whether the arms are too skewed or too unequal for Welch's test alone.

    Too skewed: fewer than 355 g² sessions in an arm, g the larger |skewness| (Kohavi et al., 2014, who
    recommend it for g above 1). Too unequal: one arm smaller than a third of the other.
    """
    smaller, larger = sorted((n_control, n_treatment))
    skewness = max(abs(control_scores.skewness), abs(treatment_scores.skewness))
    too_skewed = smaller < _SESSIONS_PER_SQUARED_SKEWNESS * skewness**2
    return too_skewed or _LARGEST_ARM_RATIO * smaller < larger


def _satterthwaite(control: Arm, treatment: Arm) -> float:
    variance = control.variance + treatment.variance
    if variance == 0.0:
        return float(control.n + treatment.n - 2)
    share = control.variance / variance
    return 1.0 / (share**2 / (control.n - 1) + (1.0 - share) ** 2 / (treatment.n - 1))


def _p_values(t: float, df: float) -> tuple[float, float]:
    return 2.0 * student_cdf(-abs(t), df), student_cdf(t, df)


def _with_least_variance(arm: Arm, scores: Histogram) -> Arm:
    """The arm; if its scores are all equal, with the variance that one session to the contrary would add."""
    if not scores.constant:
        return arm
    score = scores.mean
    return replace(arm, variance=max(arm.variance, (max(score, 1.0 - score) / arm.n) ** 2))
