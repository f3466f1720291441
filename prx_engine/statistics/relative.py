"""The lift: how large the effect is relative to the control."""

from __future__ import annotations

import math


def lift(control: float, treatment: float) -> float:
    """Relative difference of the means, (treatment - control) / control.

    A control of 0 gives `inf` (`-inf`) for a treatment above (below) it and 0 for one of 0.
    """
    if control != 0.0:
        return (treatment - control) / control
    return math.copysign(math.inf, treatment) if treatment != 0.0 else 0.0
