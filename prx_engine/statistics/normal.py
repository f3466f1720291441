"""The standard normal distribution's upper tail, exact far out."""

from __future__ import annotations

from scipy.special import ndtr, ndtri


def normal_tail(z: float) -> float:
    """Return 1 − Φ(z), without cancellation; 0 for infinite z."""
    return float(ndtr(-z))


def normal_quantile(p: float) -> float:
    """Return the z whose upper tail is ``p``, 0–1; infinite at the ends."""
    return float(-ndtri(p))
