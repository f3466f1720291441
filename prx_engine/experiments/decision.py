"""The decision: what one check's findings mean for an experiment. The first rule that holds decides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from prx_engine.configuration import Parameters
from prx_engine.dimensions import VariantName
from prx_engine.records import Comparison, Conclusion


@dataclass(frozen=True, slots=True)
class Findings:
    """What a check found at one scheduled time.

    Attributes:
        hours: the time analysed, in hours since creation.
        planned_end: the present planned end, likewise.
        comparison: of the look; None if this is not a look.
        significant: whether the look crossed its boundary.
        harm: whether the treatment is worse by regression_delta or more, and the harm look significant.
        blocked: whether a mismatch or attrition forbids a promotion.
    """

    hours: float
    planned_end: int
    comparison: Comparison | None
    significant: bool
    harm: bool
    blocked: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from a check.

    Attributes:
        action: conclude, extend, or go on.
        conclusion, winner: of a conclusion.
        blocked_win: whether the treatment would have won but for a block.
        planned_end: the new planned end of an extension, in hours since creation.
        reason: why, for people.
    """

    action: Literal["conclude", "extend", "continue"]
    reason: str
    conclusion: Conclusion | None = None
    winner: VariantName | None = None
    blocked_win: bool = False
    planned_end: int | None = None


def decide(findings: Findings, parameters: Parameters) -> Decision:
    """Return what a check's findings mean under the experiment's pinned parameters."""
    settings = parameters.experiments
    duration, maximum = settings.default_duration_hours, settings.auto_converge.max_duration_hours
    look = findings.comparison
    won = look is not None and findings.significant and look.lift >= settings.min_effect_size
    if findings.harm:
        return Decision("conclude", _harm_reason(parameters), "regression", "control")
    if look is not None and won and not findings.blocked:
        return Decision("conclude", f"treatment is better: {_effect(look)}", "treatment_wins", "treatment")
    if look is not None and findings.significant and look.lift < 0:
        return Decision("conclude", f"treatment is worse: {_effect(look)}", "control_wins", "control")
    if look is not None and findings.hours >= duration and _too_small(look, settings.min_effect_size):
        return Decision(
            "conclude",
            f"treatment gains {_percent(look.lift_interval.upper)} at most, less than the"
            f" {_percent(settings.min_effect_size)} that a promotion is worth",
            "effect_too_small",
            "control",
        )
    if findings.hours >= maximum:
        return Decision(
            "conclude", f"undecided after the maximum of {maximum} hours; control stays", "deferred",
            blocked_win=won,
        )  # fmt: skip
    if findings.hours >= findings.planned_end:
        end = extended_end(findings.planned_end, findings.hours, duration, maximum)
        return Decision(
            "extend",
            f"undecided at the planned end; extended by {end - findings.planned_end} hours",
            blocked_win=won,
            planned_end=end,
        )
    return Decision("continue", _progress(findings, blocked_win=won), blocked_win=won)


def extended_end(planned_end: int, hours: float, duration: int, maximum: int) -> int:
    """Return the planned end after as many extensions as lead past a time, the maximum at the latest."""
    extensions = math.floor((hours - planned_end) / duration) + 1
    return min(planned_end + extensions * duration, maximum)


def _too_small(look: Comparison, min_effect_size: float) -> bool:
    return look.lift_interval.bounded and look.lift_interval.upper < min_effect_size


def _progress(findings: Findings, *, blocked_win: bool) -> str:
    if findings.comparison is None:
        return "not enough data for a look"
    if blocked_win:
        return f"treatment would have won but for a block: {_effect(findings.comparison)}"
    return f"undecided: {_effect(findings.comparison)}"


def _harm_reason(parameters: Parameters) -> str:
    delta = parameters.fitness.thresholds.regression_delta
    return f"treatment is worse by {_percent(delta)} or more, beyond chance"


def _effect(look: Comparison) -> str:
    return f"lift {_percent(look.lift, signed=True)}, p = {look.p_value:.2g}"


def _percent(value: float, *, signed: bool = False) -> str:
    if math.isinf(value):
        return "unbounded"
    return f"{value * 100:{'+' if signed else ''}.1f} %"
