"""Did the sessions reach the arms, and the scores the sessions, in the proportions they should?

Pure standard library: listings show these verdicts and must not wait for NumPy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

SAMPLE_RATIO_LIMIT: Final = 100.0
"""Bayes factor from which the assigned counts contradict the split: at most 1 % false alarms."""

_PRIOR_SESSIONS: Final = 100.0


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A chi-square test with one degree of freedom.

    Attributes:
        statistic: Pearson's chi-square, at least 0, possibly infinite.
        p: probability of a statistic at least this large under the hypothesis, 0 to 1.
    """

    statistic: float
    p: float


def sample_ratio_bayes_factor(control: int, treatment: int, split: float) -> float:
    """Evidence that sessions are assigned in another ratio than the split says.

    Beta-binomial marginal likelihood with the prior Beta(100 f, 100 (1 - f)) on the probability of
    treatment, over the likelihood of f itself. Under the split its expectation is 1 at any time, so
    that it ever reaches b with probability at most 1/b, however often one looks (Ville, 1939; a test of
    this kind is that of Lindon & Malek, 2022). What such a mismatch means: Fabijan et al. (2019).

    Args:
        control: sessions assigned to control.
        treatment: sessions assigned to treatment.
        split: fraction f of the sessions meant for treatment, 0 to 1.

    Returns:
        The Bayes factor, 0 to `inf`; 1 at a split of 0 or 1, where there is nothing to compare.

    Raises:
        ValueError: for negative counts or a split outside 0 to 1.
    """
    _check_counts(control, treatment)
    if not 0.0 <= split <= 1.0:
        raise ValueError(f"split must lie within 0 and 1, got {split}")
    if split in (0.0, 1.0):
        return 1.0
    prior_treatment, prior_control = _PRIOR_SESSIONS * split, _PRIOR_SESSIONS * (1.0 - split)
    log_factor = (
        _log_beta(prior_treatment + treatment, prior_control + control)
        - _log_beta(prior_treatment, prior_control)
        - treatment * math.log(split)
        - control * math.log1p(-split)
    )
    try:
        return math.exp(log_factor)
    except OverflowError:
        return math.inf


def is_sample_ratio_mismatch(control: int, treatment: int, split: float) -> bool:
    """Whether the assigned counts contradict the split; arguments as of `sample_ratio_bayes_factor`."""
    return sample_ratio_bayes_factor(control, treatment, split) >= SAMPLE_RATIO_LIMIT


def two_arm_chi_square(observed: tuple[int, int], weights: tuple[float, float]) -> ChiSquare:
    """Goodness of fit of two counts to a ratio (Pearson, 1900).

    Args:
        observed: counts of the two arms.
        weights: the ratio they should have, in any unit.

    Returns:
        The test; statistic 0 and p = 1 without counts or with a weight of 0, where nothing is tested.

    Raises:
        ValueError: for negative counts, weights that are negative or not finite, or two weights of 0.
    """
    _check_counts(*observed)
    total_weight = sum(weights)
    if min(weights) < 0.0 or not 0.0 < total_weight < math.inf:
        raise ValueError(f"weights must be finite, not negative and not both 0, got {weights}")
    total = sum(observed)
    if total == 0 or min(weights) == 0.0:
        return ChiSquare(0.0, 1.0)
    expected = [total * weight / total_weight for weight in weights]
    return _chi_square(sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True)))


def attrition_chi_square(
    scored_control: int, assigned_control: int, scored_treatment: int, assigned_treatment: int
) -> ChiSquare:
    """Whether the arms differ in the share of assigned sessions that were scored.

    Pearson's chi-square (1900) of the 2 x 2 table of scored and unscored sessions, without continuity
    correction.

    Returns:
        The test; statistic 0 and p = 1 if an arm is empty or all or none of the sessions were scored.

    Raises:
        ValueError: for negative counts, or more sessions scored than assigned.
    """
    _check_counts(scored_control, scored_treatment)
    if scored_control > assigned_control or scored_treatment > assigned_treatment:
        raise ValueError("more sessions scored than assigned")
    scored = scored_control + scored_treatment
    assigned = assigned_control + assigned_treatment
    margins = scored * (assigned - scored) * assigned_control * assigned_treatment
    if margins == 0:
        return ChiSquare(0.0, 1.0)
    imbalance = scored_control * assigned_treatment - scored_treatment * assigned_control
    return _chi_square(assigned * imbalance**2 / margins)


def _check_counts(*counts: int) -> None:
    if min(counts) < 0:
        raise ValueError(f"counts must not be negative, got {', '.join(map(str, counts))}")


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _chi_square(statistic: float) -> ChiSquare:
    return ChiSquare(statistic, math.erfc(math.sqrt(statistic / 2.0)))
