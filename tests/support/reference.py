"""Fitness and its variance straight from the formulas, on arrays: the slow way that the engine must equal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]
"""One row a session, one column a dimension, 0–1; NaN where missing."""


def table_of(sessions: Sequence[Sequence[int | None]]) -> Table:
    """Scores in units of 1/10000 as a table."""
    rows = [[np.nan if score is None else score / 10_000 for score in session] for session in sessions]
    return np.array(rows, dtype=np.float64).reshape(-1, 6)


def spread_weights(weights: Sequence[float], counted: Sequence[bool]) -> NDArray[np.float64]:
    """The weights of the counted dimensions, in proportion, with sum 1."""
    kept = np.where(counted, np.array(weights), 0.0)
    return np.asarray(kept / kept.sum())


def fitness_and_variance(
    table: Table, weights: Sequence[float], counted: Sequence[bool]
) -> tuple[float, float]:
    """Σ w_d m_d, and Σ φ_i² / (n(n − 1)) + Σ w_d² (s_d²/n_d − n/(n − 1) · Σ_i (x_id − m_d)² / n_d²)."""
    table = table[~np.isnan(table).all(axis=1)]
    w = spread_weights(weights, counted)
    present = ~np.isnan(table)
    n, n_d = len(table), present.sum(axis=0)
    used = [d for d in range(6) if w[d] > 0]
    means = np.array([table[present[:, d], d].mean() if d in used else 0.0 for d in range(6)])
    deviations = np.where(present, table - means, 0.0)
    influence = sum(w[d] * n / n_d[d] * deviations[:, d] for d in used)
    variance = float(np.sum(np.square(influence))) / (n * (n - 1))
    for d in used:
        squares = float(np.sum(deviations[:, d] ** 2))
        own = squares / (n_d[d] - 1) / n_d[d]
        variance += w[d] ** 2 * (own - n / (n - 1) * squares / n_d[d] ** 2)
    return float(w @ means), variance
