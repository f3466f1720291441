"""What all records share: their types, and how times and infinite numbers read in JSON."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, PlainSerializer

from prx_engine.clock import format_time

Status = Literal["running", "evaluating", "converged", "cancelled"]
Conclusion = Literal[
    "treatment_wins",
    "control_wins",
    "effect_too_small",
    "regression",
    "deferred",
    "operator_promoted",
    "operator_rejected",
    "cancelled",
]
PromotionState = Literal["none", "pending", "applied", "conflict", "rolled_back"]
Block = Literal["sample_ratio_mismatch", "attrition"]
MeansTest = Literal["welch", "robust"]
DecidingTest = Literal["welch", "robust", "clustered"]
"""The rule that gave a p-value: the pinned test of means, or, where sessions have clusters, Welch's with
the variance of the clusters."""

ACTIVE: frozenset[Status] = frozenset({"running", "evaluating"})


def _finite_or_null(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


Time = Annotated[datetime, PlainSerializer(format_time, return_type=str, when_used="json")]
"""A time in UTC; RFC 3339 in JSON."""

Real = Annotated[float, PlainSerializer(_finite_or_null, return_type=float | None, when_used="json")]
"""A number that may be infinite; null in JSON where it is."""


class Record(BaseModel):
    """Base of all records: immutable, compared by value."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
