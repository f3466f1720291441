"""Sessions that belong together: the variance of a difference when users or tasks come back.

Sessions of one user or task are alike, within an arm and across the arms, so they are not independent
observations; their clusters are (Liang & Zeger, 1986).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from prx_engine.configuration import Weights
from prx_engine.dimensions import DIMENSIONS, UNIT, VARIANTS, Dimension, VariantName
from prx_engine.fitness.arms import Arms
from prx_engine.fitness.group import effective_weights, mean_covariance
from prx_engine.fitness.moments import Moments

_D: Final = len(DIMENSIONS)

ClusterRow = tuple[str, VariantName, int, Sequence[int], Sequence[int]]
"""Cluster, arm, its scored sessions there, how many have each dimension, and the sums of their scores."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterSums:
    """The scored sessions of both arms, summed by cluster.

    Attributes:
        sessions: scored sessions of each cluster, shape (clusters, arms).
        counts: of them those with each dimension, shape (clusters, arms, dimensions).
        sums: the sums of their scores in units, likewise.
        single: moments of the sessions without a cluster, each of which is one of its own.
    """

    sessions: NDArray[np.float64]
    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    single: Mapping[VariantName, Moments]

    @classmethod
    def of(cls, rows: Iterable[ClusterRow], single: Mapping[VariantName, Moments]) -> Self:
        """Return the sums of clusters, one row for each of their arms, in any order."""
        rows = list(rows)
        places = {name: place for place, name in enumerate(dict.fromkeys(row[0] for row in rows))}
        sessions = np.zeros((len(places), len(VARIANTS)))
        counts = np.zeros((len(places), len(VARIANTS), _D))
        sums = np.zeros((len(places), len(VARIANTS), _D))
        for cluster, variant, n, present, totals in rows:
            place = places[cluster], VARIANTS.index(variant)
            sessions[place] = n
            counts[place] = present
            sums[place] = totals
        return cls(sessions, counts, sums, single)


@dataclass(frozen=True, slots=True)
class Joint:
    """Variances of the two arms' fitness from clusters that may have sessions in both.

    Attributes:
        control, treatment: variance of each arm's fitness.
        covariance: of the two.
        df: degrees of freedom of the variance of their difference.
        clusters: how many there are.
    """

    control: float
    treatment: float
    covariance: float
    df: float
    clusters: int

    @property
    def difference(self) -> float:
        """Variance of treatment − control."""
        return max(self.control + self.treatment - 2 * self.covariance, 0.0)


def joint_variance(
    sums: ClusterSums, arms: Arms, weights: Weights, counted: Sequence[Dimension]
) -> Joint | None:
    """Return the variances from clusters; None with fewer than two clusters.

    Var(D̂) = G/(G − 1) · Σ_g (ψ_gT − ψ_gC)², with ψ_g the sum of φ_i / n over the sessions of cluster g
    in an arm and φ_i their influence on its fitness (Liang & Zeger, 1986). The degrees of freedom
    (Σ e_g)² / Σ e_g² − 1, at least 1, are those of clusters that contribute e_g to the variance
    of independent sessions (Satterthwaite, 1946; Carter, Schnepel & Steigerwald, 2017, for the count of
    effective clusters).
    """
    used = [(d, float(w)) for d, w in enumerate(effective_weights(weights, counted)) if w]
    return _joint_variance(sums, arms, used)


def dimension_joint_variance(sums: ClusterSums, arms: Arms, d: int) -> Joint | None:
    """Return the variances of the means of one dimension, likewise."""
    return _joint_variance(sums, arms, [(d, 1.0)])


def _joint_variance(sums: ClusterSums, arms: Arms, used: Sequence[tuple[int, float]]) -> Joint | None:
    psi = np.column_stack([_influences(sums, a, arms[name].moments, used) for a, name in enumerate(VARIANTS)])
    singles = {name: sums.single[name].n for name in VARIANTS}
    together = int(np.count_nonzero(sums.sessions.sum(axis=1)))
    clusters = together + sum(singles.values())
    if clusters < 2:
        return None
    correction = clusters / (clusters - 1)
    alone = [_single_variance(arms[name].moments, sums.single[name], used) for name in VARIANTS]
    control, treatment = (correction * (float(psi[:, a] @ psi[:, a]) + alone[a]) for a in range(2))
    covariance = correction * float(psi[:, 0] @ psi[:, 1])
    return Joint(control, treatment, covariance, _degrees_of_freedom(sums, arms, singles), clusters)


def _influences(
    sums: ClusterSums, a: int, group: Moments, used: Sequence[tuple[int, float]]
) -> NDArray[np.float64]:
    """Return ψ of every cluster in one arm."""
    psi = np.zeros(len(sums.sessions))
    for d, w in used:
        n_d = group.observations(d)
        mean = group.total(d, d) / n_d
        psi += w * (sums.sums[:, a, d] - mean * sums.counts[:, a, d]) / (n_d * UNIT)
    return psi


def _single_variance(group: Moments, single: Moments, used: Sequence[tuple[int, float]]) -> float:
    """Return Σ ψ² over the sessions that belong to no cluster."""
    return sum(w_d * w_e * mean_covariance(group, single, d, e) for d, w_d in used for e, w_e in used)


def _degrees_of_freedom(sums: ClusterSums, arms: Arms, singles: Mapping[VariantName, int]) -> float:
    n = np.array([arms[name].moments.n for name in VARIANTS], dtype=np.float64)
    shares = sums.sessions / n
    e = (shares[:, 1] - shares[:, 0]) ** 2 + (shares / n).sum(axis=1)
    total, squares = float(e.sum()), float(e @ e)
    for a, name in enumerate(VARIANTS):
        of_one = 2 / n[a] ** 2
        total += singles[name] * of_one
        squares += singles[name] * of_one**2
    return max(total**2 / squares - 1, 1.0)
