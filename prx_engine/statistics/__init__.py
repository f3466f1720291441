"""Statistics of experiments: tests of two arms, sequential boundaries, effect sizes, sample ratio.

Names are loaded on first use, so that importing one module does not load NumPy and SciPy for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prx_engine.statistics.boundaries import (
        CrossingProbabilities,
        crossing_probabilities,
        group_sequential_boundaries,
    )
    from prx_engine.statistics.histogram import Histogram
    from prx_engine.statistics.intervals import (
        Interval,
        bonferroni,
        difference_interval,
        fieller_interval,
        hedges_g,
    )
    from prx_engine.statistics.means import (
        Arm,
        HallResult,
        RobustResult,
        WelchResult,
        hall,
        mean_difference,
        needs_robust,
        robust,
        t_test,
        welch,
    )
    from prx_engine.statistics.normal import normal_quantile, normal_tail
    from prx_engine.statistics.ranks import RankResult, mann_whitney
    from prx_engine.statistics.relative import lift
    from prx_engine.statistics.sample_ratio import (
        SAMPLE_RATIO_LIMIT,
        ChiSquare,
        attrition_chi_square,
        is_sample_ratio_mismatch,
        sample_ratio_bayes_factor,
        two_arm_chi_square,
    )
    from prx_engine.statistics.spending import (
        Spending,
        harm_spending,
        lifetime_spending,
        obrien_fleming,
        pocock,
    )
    from prx_engine.statistics.student import student_cdf, t_quantile

__all__ = [
    "SAMPLE_RATIO_LIMIT",
    "Arm",
    "ChiSquare",
    "CrossingProbabilities",
    "HallResult",
    "Histogram",
    "Interval",
    "RankResult",
    "RobustResult",
    "Spending",
    "WelchResult",
    "attrition_chi_square",
    "bonferroni",
    "crossing_probabilities",
    "difference_interval",
    "fieller_interval",
    "group_sequential_boundaries",
    "hall",
    "harm_spending",
    "hedges_g",
    "is_sample_ratio_mismatch",
    "lifetime_spending",
    "lift",
    "mann_whitney",
    "mean_difference",
    "needs_robust",
    "normal_quantile",
    "normal_tail",
    "obrien_fleming",
    "pocock",
    "robust",
    "sample_ratio_bayes_factor",
    "student_cdf",
    "t_quantile",
    "t_test",
    "two_arm_chi_square",
    "welch",
]

_CONTENTS = {
    "boundaries": ("CrossingProbabilities", "crossing_probabilities", "group_sequential_boundaries"),
    "histogram": ("Histogram",),
    "intervals": (
        "Interval",
        "bonferroni",
        "difference_interval",
        "fieller_interval",
        "hedges_g",
    ),
    "means": (
        "Arm",
        "HallResult",
        "RobustResult",
        "WelchResult",
        "hall",
        "mean_difference",
        "needs_robust",
        "robust",
        "t_test",
        "welch",
    ),
    "normal": ("normal_quantile", "normal_tail"),
    "ranks": ("RankResult", "mann_whitney"),
    "relative": ("lift",),
    "sample_ratio": (
        "SAMPLE_RATIO_LIMIT",
        "ChiSquare",
        "attrition_chi_square",
        "is_sample_ratio_mismatch",
        "sample_ratio_bayes_factor",
        "two_arm_chi_square",
    ),
    "spending": ("Spending", "harm_spending", "lifetime_spending", "obrien_fleming", "pocock"),
    "student": ("student_cdf", "t_quantile"),
}
_MODULES = {name: module for module, names in _CONTENTS.items() for name in names}


def __getattr__(name: str) -> object:
    """Load the module that defines a public name (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
