"""What forbids a promotion: arms of the wrong size, or one that loses more sessions than the other."""

from __future__ import annotations

from typing import Final

from prx_engine.fitness.arms import Arms
from prx_engine.records import Attrition, Block, SampleRatio
from prx_engine.statistics.sample_ratio import (
    attrition_chi_square,
    is_sample_ratio_mismatch,
    sample_ratio_bayes_factor,
    two_arm_chi_square,
)

ATTRITION_LEVEL: Final = 0.001
"""Below this p the arms do not lose sessions alike."""


def sample_ratio(arms: Arms, split: float, *, latched: bool) -> SampleRatio:
    """Compare the assigned counts with the planned split.

    Args:
        arms: both arms over all sessions.
        split: planned share of the treatment; nothing can mismatch at 0 or 1.
        latched: whether a mismatch was seen before; it stays one.
    """
    control, treatment = arms["control"].assigned, arms["treatment"].assigned
    tested = 0 < split < 1 and control + treatment > 0
    return SampleRatio(
        control=control,
        treatment=treatment,
        expected_treatment_share=split,
        bayes_factor=sample_ratio_bayes_factor(control, treatment, split),
        p_value=two_arm_chi_square((control, treatment), (1 - split, split)).p if tested else None,
        mismatch=latched or is_sample_ratio_mismatch(control, treatment, split),
    )


def attrition(old_enough: Arms) -> Attrition:
    """Compare the share of scored sessions of both arms.

    Args:
        old_enough: both arms over the sessions that have had time to be scored.
    """
    control, treatment = old_enough["control"], old_enough["treatment"]
    p_value = attrition_chi_square(
        control.moments.n, control.assigned, treatment.moments.n, treatment.assigned
    ).p
    return Attrition(
        control_scored=control.moments.n,
        control_assigned=control.assigned,
        treatment_scored=treatment.moments.n,
        treatment_assigned=treatment.assigned,
        p_value=p_value,
        suspicious=p_value < ATTRITION_LEVEL,
    )


def blocks(*, mismatch: bool, suspicious_attrition: bool) -> list[Block]:
    """Return the names of what blocks a promotion."""
    found: list[Block] = []
    if mismatch:
        found.append("sample_ratio_mismatch")
    if suspicious_attrition:
        found.append("attrition")
    return found
