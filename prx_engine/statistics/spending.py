"""How much type I error may have been spent by a given time (Lan & DeMets, 1983).

Pure standard library. All functions return cumulative alpha, which never decreases with time.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

Spending = Literal["obrien_fleming", "pocock"]


def obrien_fleming(t: float, alpha: float) -> float:
    """Alpha of both tails spent by fraction `t` in the manner of O'Brien & Fleming: late.

    4 · (1 - Φ(Φ⁻¹(1 - alpha/4) / √t)), each tail spending 2 · (1 - Φ(z / √t)) of its alpha/2
    (Lan & DeMets, 1983, after O'Brien & Fleming, 1979).

    Args:
        t: elapsed fraction, 0 to 1.
        alpha: total to spend, both tails together, 0 to 1.

    Returns:
        0 at t = 0, `alpha` at t = 1.

    Raises:
        ValueError: for arguments outside their range.
    """
    _check_fraction("t", t)
    _check_fraction("alpha", alpha)
    if t == 0.0 or alpha == 0.0:
        return 0.0
    z = -NormalDist().inv_cdf(alpha / 4.0)
    return min(alpha, 2.0 * math.erfc(z / math.sqrt(2.0 * t)))


def pocock(t: float, alpha: float) -> float:
    """Alpha spent by fraction `t` in the manner of Pocock, almost evenly: alpha · ln(1 + (e - 1) t).

    Lan & DeMets (1983), after Pocock (1977). Linear in alpha: one tail with alpha/2 spends half.

    Args:
        t: elapsed fraction, 0 to 1.
        alpha: total to spend, 0 to 1.

    Returns:
        0 at t = 0, `alpha` at t = 1.

    Raises:
        ValueError: for arguments outside their range.
    """
    _check_fraction("t", t)
    _check_fraction("alpha", alpha)
    return alpha * min(1.0, math.log1p((math.e - 1.0) * t))


def lifetime_spending(
    elapsed: float,
    planned: float,
    maximum: float,
    *,
    alpha: float,
    planned_share: float,
    kind: Spending,
) -> float:
    """Alpha of both tails spent by `elapsed` over the whole life of an experiment.

    The share `planned_share` is spent by the planned end along the curve of `kind`, the rest evenly from
    there to the maximum. Calendar time drives it (Lan & DeMets, 1989); extensions leave it as it is.

    Args:
        elapsed: time since creation, at least 0, in the unit of the next two.
        planned: planned duration, positive.
        maximum: longest possible duration, at least `planned`.
        alpha: total to spend, 0 to 1.
        planned_share: fraction of alpha for the planned duration, 0 to 1; counts as 1 if there is no
            time after it.
        kind: "obrien_fleming" or "pocock".

    Raises:
        ValueError: for numbers outside their range.
        KeyError: for another kind.
    """
    if not (elapsed >= 0.0 and 0.0 < planned <= maximum < math.inf):
        raise ValueError(
            f"need elapsed >= 0 and 0 < planned <= maximum, got {elapsed}, {planned} and {maximum}"
        )
    _check_fraction("alpha", alpha)
    _check_fraction("planned_share", planned_share)
    if elapsed >= maximum:
        return alpha
    early = alpha * planned_share if planned < maximum else alpha
    if elapsed <= planned:
        return _CURVES[kind](elapsed / planned, early)
    return min(alpha, early + (alpha - early) * (elapsed - planned) / (maximum - planned))


def harm_spending(elapsed: float, maximum: float, *, alpha: float) -> float:
    """Alpha spent by `elapsed` in the one tail of harm, Pocock type: alpha/2 · ln(1 + (e - 1) s/M).

    Args:
        elapsed: time since creation, at least 0; all is spent from `maximum` on.
        maximum: longest possible duration, positive.
        alpha: the two-sided total of which the harm tail gets one half on top, 0 to 1.

    Raises:
        ValueError: for arguments outside their range.
    """
    if not (elapsed >= 0.0 and 0.0 < maximum < math.inf):
        raise ValueError(f"need elapsed >= 0 and maximum > 0, got {elapsed} and {maximum}")
    return pocock(min(1.0, elapsed / maximum), alpha / 2.0)


def _check_fraction(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must lie within 0 and 1, got {value}")


_CURVES = {"obrien_fleming": obrien_fleming, "pocock": pocock}
