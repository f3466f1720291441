"""Mann-Whitney's U from histograms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from prx_engine.statistics.histogram import Histogram


@dataclass(frozen=True, slots=True)
class RankResult:
    """Outcome of the Mann-Whitney test.

    Attributes:
        u: pairs of sessions in which treatment scores higher, ties counting one half.
        z: standardised u, positive if treatment tends to score higher.
        p_value: two-sided p, 0 to 1.
        p_less: p for treatment scoring lower than control, 0 to 1.
        superiority: u as a fraction of all pairs, 0 to 1.
    """

    u: float
    z: float
    p_value: float
    p_less: float
    superiority: float


def mann_whitney(control: Histogram, treatment: Histogram) -> RankResult:
    """Whether sessions of one arm tend to score higher than those of the other.

    Normal approximation with correction for ties and without continuity correction (Mann & Whitney,
    1947; Lehmann, 1975). With every score equal there is no evidence: z = 0 and both p's are 1.

    Raises:
        ValueError: if an arm has no session.
    """
    n_control, n_treatment = control.n, treatment.n
    if min(n_control, n_treatment) == 0:
        raise ValueError("both arms need at least one session")
    in_control, in_treatment = _align(control, treatment)
    lower = np.cumsum(in_control) - in_control
    twice_u = int(in_treatment @ (2 * lower + in_control))
    pairs = n_control * n_treatment
    u, superiority = twice_u / 2, twice_u / (2 * pairs)
    if in_control.size == 1:
        return RankResult(u, 0.0, 1.0, 1.0, superiority)
    # Σ t (N - t)(N + t) is N³ - Σ t³ without the cancellation that many ties would bring.
    total = n_control + n_treatment
    ties = (in_control + in_treatment).astype(np.float64)
    spread = float(np.sum(ties * (total - ties) * (total + ties)))
    deviation = math.sqrt(pairs / 12.0 * spread / (total * (total - 1)))
    z = (twice_u - pairs) / 2 / deviation
    p_value = 2.0 * float(special.ndtr(-abs(z)))
    return RankResult(u, z, p_value, float(special.ndtr(z)), superiority)


def _align(
    control: Histogram, treatment: Histogram
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Counts of both arms over all distinct scores of either, ascending."""
    values = np.union1d(control.values, treatment.values)
    in_control = np.zeros(values.size, dtype=np.int64)
    in_treatment = np.zeros(values.size, dtype=np.int64)
    in_control[np.searchsorted(values, control.values)] = control.counts
    in_treatment[np.searchsorted(values, treatment.values)] = treatment.counts
    return in_control, in_treatment
