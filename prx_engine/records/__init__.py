"""What the engine tells the outside: immutable records, by the names that text, database and JSON share.

Records are loaded on first use, so that a listing does not wait for those that it does not show.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prx_engine.records.analysis import (
        CheckOutcome,
        CheckResult,
        Comparison,
        DimensionComparison,
        ExperimentDetails,
        Forecast,
        PlannedLook,
        Preview,
        Prospect,
    )
    from prx_engine.records.base import (
        ACTIVE,
        Block,
        Conclusion,
        DecidingTest,
        MeansTest,
        PromotionState,
        Real,
        Record,
        Status,
        Time,
    )
    from prx_engine.records.experiments import (
        Attrition,
        Change,
        Event,
        Experiment,
        Interval,
        Look,
        SampleRatio,
        Snapshot,
        TrendPoint,
        Variant,
    )
    from prx_engine.records.fitness import DeploymentFitness, DimensionScore, FitnessScore, HistoryDay, Window
    from prx_engine.records.planning import Plan, PlannedCase, PlannedDay, Replay
    from prx_engine.records.sessions import Assignment, ImportReport, Rejected, Verification

__all__ = [
    "ACTIVE",
    "Assignment",
    "Attrition",
    "Block",
    "Change",
    "CheckOutcome",
    "CheckResult",
    "Comparison",
    "Conclusion",
    "DecidingTest",
    "DeploymentFitness",
    "DimensionComparison",
    "DimensionScore",
    "Event",
    "Experiment",
    "ExperimentDetails",
    "FitnessScore",
    "Forecast",
    "HistoryDay",
    "ImportReport",
    "Interval",
    "Look",
    "MeansTest",
    "Plan",
    "PlannedCase",
    "PlannedDay",
    "PlannedLook",
    "Preview",
    "PromotionState",
    "Prospect",
    "Real",
    "Record",
    "Rejected",
    "Replay",
    "SampleRatio",
    "Snapshot",
    "Status",
    "Time",
    "TrendPoint",
    "Variant",
    "Verification",
    "Window",
]

_CONTENTS = {
    "base": (
        "ACTIVE",
        "Block",
        "Conclusion",
        "DecidingTest",
        "MeansTest",
        "PromotionState",
        "Real",
        "Record",
        "Status",
        "Time",
    ),
    "fitness": ("DeploymentFitness", "DimensionScore", "FitnessScore", "HistoryDay", "Window"),
    "experiments": (
        "Attrition",
        "Change",
        "Event",
        "Experiment",
        "Interval",
        "Look",
        "SampleRatio",
        "Snapshot",
        "TrendPoint",
        "Variant",
    ),
    "analysis": (
        "CheckOutcome",
        "CheckResult",
        "Comparison",
        "DimensionComparison",
        "ExperimentDetails",
        "Forecast",
        "PlannedLook",
        "Preview",
        "Prospect",
    ),
    "planning": ("Plan", "PlannedCase", "PlannedDay", "Replay"),
    "sessions": ("Assignment", "ImportReport", "Rejected", "Verification"),
}
_MODULES = {name: module for module, names in _CONTENTS.items() for name in names}


def __getattr__(name: str) -> object:
    """Load the module that defines a record (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
