"""One check of one experiment, from evidence to decision.

No database and no clock: what goes in decides what comes out, so that a simulation runs the very code
that decides about real experiments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from prx_engine import statistics
from prx_engine.configuration import Parameters
from prx_engine.dimensions import Dimension
from prx_engine.experiments.comparison import Histograms, arm_fitness, as_arm, compare
from prx_engine.experiments.decision import Decision, Findings, decide
from prx_engine.experiments.looks import ChargedLook, LookPoint, charge
from prx_engine.experiments.schedule import Schedule
from prx_engine.fitness.arms import Arms
from prx_engine.fitness.group import counting
from prx_engine.records import Comparison, Look, MeansTest
from prx_engine.statistics.normal import normal_quantile

PINNED_MINIMUM: Final = 30
"""Observations in both arms that a dimension needs at the first look to count from then on: the mean of
a handful is too far from normal for a test that may stop."""


class Evidence(Protocol):
    """The sessions of an experiment, as far as a check may ask about them."""

    def arms(self, end: float) -> Arms:
        """Return both arms over the sessions that started before ``end`` hours since creation."""
        ...

    def session_fitness(self, end: float) -> Histograms:
        """Return the distribution of the sessions' own fitness in both arms, likewise."""
        ...


@dataclass(frozen=True, slots=True)
class Pinned:
    """What the first look settles for all later ones."""

    dimensions: tuple[Dimension, ...]
    test: MeansTest


@dataclass(frozen=True, slots=True)
class Subject:
    """An experiment as a check needs it.

    Attributes:
        created_at: when it was created.
        parameters: pinned at creation.
        schedule: its scheduled times, and which of them are closed.
        looks, harm_looks: all earlier ones, in order.
        pinned: settled at the first look; None before.
        blocked: whether a promotion is forbidden.
    """

    created_at: datetime
    parameters: Parameters
    schedule: Schedule
    looks: tuple[Look, ...] = ()
    harm_looks: tuple[Look, ...] = ()
    pinned: Pinned | None = None
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a check found.

    Attributes:
        hours: the time analysed, in hours since creation.
        arms: both arms over the sessions up to then.
        counted: dimensions that count.
        comparison: of the arms; None if this is not a look.
        look: the look held; None if this is not one.
        looks, harm_looks: the new ones in order, the missed ones included.
        pinned: what is settled from now on; None before the first look.
        missing: what a look still lacks, in words.
        decision: what follows.
    """

    hours: float
    arms: Arms
    counted: tuple[Dimension, ...]
    comparison: Comparison | None
    look: Look | None
    looks: tuple[Look, ...]
    harm_looks: tuple[Look, ...]
    pinned: Pinned | None
    missing: tuple[str, ...]
    decision: Decision


def analyse(subject: Subject, evidence: Evidence, hours: float) -> Analysis:
    """Analyse an experiment as of a time.

    Args:
        subject: the experiment.
        evidence: its sessions.
        hours: hours since creation: a scheduled time for a check, any time for a preview.
    """
    times = [*(t for t in subject.schedule.until(math.floor(hours)) if t < hours), hours]
    arms = {time: evidence.arms(time) for time in times}
    charged, missing = _charged_looks(subject, arms)
    pinned = subject.pinned
    if charged and pinned is None:
        pinned = _pin(subject.parameters, arms[hours], evidence.session_fitness(hours))
    comparison = _compare(charged[-1], pinned, evidence) if charged and pinned else None
    looks = _look_records(subject, charged, comparison)
    harm_looks = _harm_looks(subject, arms, pinned, evidence)
    findings = Findings(
        hours=hours,
        planned_end=subject.schedule.planned_end,
        comparison=comparison,
        significant=bool(looks) and looks[-1].significant,
        harm=bool(harm_looks) and _is_harm(subject.parameters, harm_looks[-1]),
        blocked=subject.blocked,
    )
    return Analysis(
        hours=hours,
        arms=arms[hours],
        counted=pinned.dimensions if pinned else provisional(subject.parameters, arms[hours]),
        comparison=comparison,
        look=looks[-1] if looks else None,
        looks=looks,
        harm_looks=harm_looks,
        pinned=pinned,
        missing=missing,
        decision=decide(findings, subject.parameters),
    )


def provisional(parameters: Parameters, arms: Arms) -> tuple[Dimension, ...]:
    """Return the dimensions that count before the first look has pinned them."""
    return counting(
        [arm.moments for arm in arms.values()],
        parameters.fitness.weights,
        parameters.fitness.min_sessions_for_score,
    )


def _charged_looks(subject: Subject, arms: dict[float, Arms]) -> tuple[list[ChargedLook], tuple[str, ...]]:
    """Return the new looks, the one of this check last; or none, and what is missing for one."""
    parameters = subject.parameters
    present = arms[max(arms)]
    weights = parameters.fitness.weights
    counted = (
        subject.pinned.dimensions
        if subject.pinned
        else counting([arm.moments for arm in present.values()], weights, PINNED_MINIMUM)
    )
    minimum = parameters.experiments.min_sample_size
    missing = [
        f"{name} has {arm.moments.n} of {minimum} scored sessions"
        for name, arm in present.items()
        if arm.moments.n < minimum
    ]
    if not counted:
        missing.append(f"no dimension has {PINNED_MINIMUM} sessions with data in both arms")
    elif arm_fitness(present, weights, counted) is None:
        missing.append("a dimension that counted has lost its data")
    if missing:
        return [], tuple(missing)
    points = _points(subject, arms, minimum, lambda _: counted)
    charged = charge(points, subject.looks, lambda hours: _spent(parameters, hours), sides=2)
    return charged, () if charged else ("next to nothing is new since the last look",)


def _points(
    subject: Subject,
    arms: dict[float, Arms],
    minimum: int,
    counted: Callable[[Arms], tuple[Dimension, ...]],
) -> list[LookPoint]:
    """Return the times at which both arms have enough scored sessions and a fitness."""
    points = []
    for hours, group in arms.items():
        fitness = arm_fitness(group, subject.parameters.fitness.weights, counted(group))
        if fitness is not None and all(arm.moments.n >= minimum for arm in group.values()):
            points.append(LookPoint(hours, *fitness))
    return points


def _spent(parameters: Parameters, hours: float) -> float:
    settings = parameters.experiments
    return statistics.lifetime_spending(
        hours,
        settings.default_duration_hours,
        settings.auto_converge.max_duration_hours,
        alpha=1 - settings.confidence_level,
        planned_share=settings.sequential.planned_share,
        kind=settings.sequential.spending,
    )


def _harm_spent(parameters: Parameters, hours: float) -> float:
    settings = parameters.experiments
    return statistics.harm_spending(
        hours, settings.auto_converge.max_duration_hours, alpha=1 - settings.confidence_level
    )


def _pin(parameters: Parameters, arms: Arms, histograms: Histograms) -> Pinned:
    counted = counting([arm.moments for arm in arms.values()], parameters.fitness.weights, PINNED_MINIMUM)
    rule = parameters.experiments.sequential.test
    if rule != "auto":
        return Pinned(counted, rule)
    skewed = statistics.needs_robust(
        histograms["control"],
        histograms["treatment"],
        arms["control"].moments.n,
        arms["treatment"].moments.n,
    )
    return Pinned(counted, "robust" if skewed else "welch")


def _compare(charged: ChargedLook, pinned: Pinned, evidence: Evidence) -> Comparison:
    point = charged.point
    return compare(
        point.control,
        point.treatment,
        pinned.test,
        charged.alpha_threshold,
        lambda: evidence.session_fitness(point.hours),
    )


def _look_records(
    subject: Subject, charged: Sequence[ChargedLook], comparison: Comparison | None
) -> tuple[Look, ...]:
    records = [_record(subject, "efficacy", look) for look in charged]
    if comparison is not None:
        last = charged[-1]
        records[-1] = records[-1].model_copy(
            update={
                "held": True,
                "lift_interval": comparison.lift_interval,
                "p_value": comparison.p_value,
                "p_welch": comparison.p_welch,
                "p_mann_whitney": comparison.p_mann_whitney,
                "p_hall": comparison.p_hall,
                "z": math.copysign(normal_quantile(comparison.p_value / 2), comparison.difference),
                # A look that cannot stop does not, not even for arms without any variance (p = 0).
                "significant": last.alpha_threshold > 0 and comparison.p_value <= last.alpha_threshold,
            }
        )
    return tuple(records)


def _harm_looks(
    subject: Subject, arms: dict[float, Arms], pinned: Pinned | None, evidence: Evidence
) -> tuple[Look, ...]:
    """Return the new harm looks, the one of this check last; they pin nothing and move no status."""
    parameters = subject.parameters
    points = _points(
        subject,
        arms,
        parameters.fitness.min_sessions_for_score,
        lambda group: pinned.dimensions if pinned else provisional(parameters, group),
    )
    present = max(arms)
    if not points or points[-1].hours != present:
        return ()
    charged = charge(points, subject.harm_looks, lambda hours: _harm_spent(parameters, hours), sides=1)
    records = [_record(subject, "harm", look) for look in charged]
    if charged:
        records[-1] = records[-1].model_copy(update={"held": True} | _harm_test(charged[-1], evidence))
    return tuple(records)


def _harm_test(charged: ChargedLook, evidence: Evidence) -> dict[str, object]:
    arms = as_arm(charged.point.control), as_arm(charged.point.treatment)
    welch = statistics.welch(*arms)
    p_value, p_mann_whitney, p_hall = welch.p_less, None, None
    if p_value <= charged.alpha_threshold:
        # The ranks are read only where they could still matter: all three tests must agree.
        scores = evidence.session_fitness(charged.point.hours)
        robust = statistics.robust(*arms, scores["control"], scores["treatment"])
        p_value, p_mann_whitney, p_hall = robust.p_less, robust.mann_whitney.p_less, robust.hall.p_less
    return {
        "p_value": p_value,
        "p_welch": welch.p_less,
        "p_mann_whitney": p_mann_whitney,
        "p_hall": p_hall,
        "z": normal_quantile(p_value),
        "significant": charged.alpha_threshold > 0 and p_value <= charged.alpha_threshold,
    }


def _is_harm(parameters: Parameters, look: Look) -> bool:
    limit = look.control_fitness * (1 - parameters.fitness.thresholds.regression_delta)
    return look.significant and look.treatment_fitness <= limit


def _record(subject: Subject, series: str, look: ChargedLook) -> Look:
    control, treatment = look.point.control, look.point.treatment
    return Look.model_validate(
        {
            "series": series,
            "k": look.k,
            "at": subject.created_at + timedelta(hours=look.point.hours),
            "held": False,
            "control_sessions": control.n,
            "treatment_sessions": treatment.n,
            "information": look.information,
            "control_fitness": control.mean,
            "treatment_fitness": treatment.mean,
            "lift": statistics.lift(control.mean, treatment.mean),
            "lift_interval": None,
            "p_value": None,
            "p_welch": None,
            "p_mann_whitney": None,
            "p_hall": None,
            "z": None,
            "boundary": look.boundary,
            "alpha_threshold": look.alpha_threshold,
            "alpha_spent": look.alpha_spent,
            "significant": False,
            "outcome": "missed",
        }
    )
