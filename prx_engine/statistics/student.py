"""Student's t distribution, accurate in tails as far as a double reaches."""

from __future__ import annotations

import math
from typing import Final

from scipy import special

# From this multiple of sqrt(df) on, the first term of the tail's series is exact to double precision,
# and the general routines begin to overflow.
_POWER_LAW_FROM: Final = 1e8


def student_cdf(t: float, df: float) -> float:
    """P(T <= t) for T with `df` degrees of freedom; full relative accuracy in the lower tail.

    Args:
        t: any number, infinities included.
        df: degrees of freedom, at least 1; need not be whole.
    """
    if -math.inf < t < -_POWER_LAW_FROM * math.sqrt(df):
        log_ratio = math.log(df) - 2.0 * math.log(-t)
        return 0.5 * math.exp(0.5 * df * log_ratio - _log_scale(df))
    return float(special.stdtr(df, t))


def t_quantile(alpha: float, df: float) -> float:
    """The t that |T| exceeds with probability `alpha`: half the width of a two-sided interval.

    Args:
        alpha: two-sided tail probability, 0 to 1.
        df: degrees of freedom, at least 1; need not be whole.

    Returns:
        0 at alpha = 1, `inf` at alpha = 0.

    Raises:
        ValueError: for arguments outside their range.
    """
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must lie within 0 and 1, got {alpha}")
    if not df >= 1.0:
        raise ValueError(f"degrees of freedom must be at least 1, got {df}")
    if alpha == 0.0:
        return math.inf
    log_ratio = (math.log(alpha) + _log_scale(df)) / (0.5 * df)
    if log_ratio < -2.0 * math.log(_POWER_LAW_FROM):
        return math.sqrt(df) * math.exp(-0.5 * log_ratio)
    return abs(float(special.stdtrit(df, 0.5 * alpha)))


def _log_scale(df: float) -> float:
    """log(a B(a, 1/2)) for a = df/2: P(|T| > t) tends to (df / t²)^a / (a B(a, 1/2)).

    The first term of the incomplete beta function's power series (Abramowitz & Stegun, 1964, 26.5.4).
    """
    return math.log(0.5 * df) + float(special.betaln(0.5 * df, 0.5))
