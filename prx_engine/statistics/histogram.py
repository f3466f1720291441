"""Session scores as counts of distinct values: what ranks and skewness need, at any number of sessions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

_UNIT: Final = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """How often each score occurs in one arm.

    Attributes:
        values: distinct scores in ascending order, shape (k,); 0 to 1 for session fitness.
        counts: sessions with each score, at least 1, shape (k,).

    Raises:
        ValueError: if the shapes differ, the values are not finite and ascending, or a count is below 1.
    """

    values: NDArray[np.float64]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Check what the computations rely on."""
        if self.values.ndim != 1 or self.values.shape != self.counts.shape:
            raise ValueError(f"need one count per value, got {self.counts.shape} for {self.values.shape}")
        if not np.isfinite(self.values).all() or (np.diff(self.values) <= 0.0).any():
            raise ValueError("values must be finite and ascending")
        if (self.counts < 1).any():
            raise ValueError("counts must be at least 1")

    @classmethod
    def from_units(cls, pairs: Iterable[tuple[int, int]]) -> Self:
        """Histogram of stored scores.

        Args:
            pairs: score in units of 1/10000 and the number of sessions that have it, in any order; a
                score that appears again adds to its count.

        Raises:
            ValueError: for a score outside 0 to 10000 or a count below 1.
        """
        table = np.fromiter(chain.from_iterable(pairs), dtype=np.int64).reshape(-1, 2)
        units, counts = table[:, 0], table[:, 1]
        if ((units < 0) | (units > _UNIT)).any():
            raise ValueError(f"scores must lie within 0 and {_UNIT} units")
        if (counts < 1).any():
            raise ValueError("counts must be at least 1")
        totals = np.zeros(_UNIT + 1, dtype=np.int64)
        np.add.at(totals, units, counts)
        present = np.flatnonzero(totals)
        return cls(present / _UNIT, totals[present])

    @property
    def n(self) -> int:
        """Number of sessions."""
        return int(self.counts.sum())

    @property
    def constant(self) -> bool:
        """Whether all sessions have the same score."""
        return self.values.size == 1

    @property
    def mean(self) -> float:
        """Mean score.

        Raises:
            ValueError: without sessions.
        """
        if not self.values.size:
            raise ValueError("no scores")
        if self.constant:
            return float(self.values[0])
        return float(self.counts @ self.values) / self.n

    @property
    def second_central(self) -> float:
        """Population variance of the scores: the mean of (x - mean)², 0 if all are equal."""
        return self._central_moment(2)

    @property
    def third_central(self) -> float:
        """Population third central moment of the scores: the mean of (x - mean)³, 0 if all are equal."""
        return self._central_moment(3)

    @property
    def skewness(self) -> float:
        """Bias-corrected skewness G1 = √(n(n - 1)) / (n - 2) · m3 / m2^1.5 (Joanes & Gill, 1998).

        0 for fewer than 3 sessions or when all have the same score.
        """
        n = self.n
        if n < 3 or self.constant:
            return 0.0
        variance = self.second_central
        g1 = self.third_central / (variance * math.sqrt(variance))
        return math.sqrt(n * (n - 1)) / (n - 2) * g1

    def _central_moment(self, order: int) -> float:
        deviations = self.values - self.mean
        # The rounding of the mean is itself averaged out (Chan, Golub & LeVeque, 1983).
        deviations -= float(self.counts @ deviations) / self.n
        return float(self.counts @ deviations**order) / self.n
