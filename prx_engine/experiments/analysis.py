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
from prx_engine.configuration import Parameters, Weights
from prx_engine.dimensions import Dimension
from prx_engine.experiments.comparison import Histograms, arm_fitness, as_arm, compare, means_test
from prx_engine.experiments.decision import Decision, Findings, decide
from prx_engine.experiments.looks import ChargedLook, LookPoint, charge
from prx_engine.experiments.schedule import Schedule
from prx_engine.fitness.arms import Arms
from prx_engine.fitness.clusters import ClusterSums, joint_variance
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

    def clusters(self, end: float) -> ClusterSums | None:
        """Return the same sessions by cluster; None if none of them belongs to one."""
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
    sessions = _Sessions(subject.parameters.fitness.weights, evidence, times)
    arms = sessions.arms[hours]
    charged, missing = _charged_looks(subject, sessions)
    pinned = subject.pinned
    if charged and pinned is None:
        pinned = _pin(subject.parameters, arms, sessions.histograms())
    comparison = _compare(charged[-1], pinned, sessions) if charged and pinned else None
    looks = _look_records(subject, charged, comparison)
    harm_looks = _harm_looks(subject, sessions, pinned)
    findings = Findings(
        hours=hours,
        planned_end=subject.schedule.planned_end,
        comparison=comparison,
        significant=bool(looks) and looks[-1].significant,
        harm=bool(harm_looks) and is_harm(subject.parameters, harm_looks[-1]),
        blocked=subject.blocked,
    )
    return Analysis(
        hours=hours,
        arms=arms,
        counted=pinned.dimensions if pinned else provisional(subject.parameters, arms),
        comparison=comparison,
        look=looks[-1] if looks else None,
        looks=looks,
        harm_looks=harm_looks,
        pinned=pinned,
        missing=missing,
        decision=decide(findings, subject.parameters),
    )


class _Sessions:
    """The sessions of one analysis: whatever is asked about them is read and worked out once.

    Args:
        weights: of the fitness.
        evidence: where they come from.
        times: those that the analysis is about, in order; the last is the present one.
    """

    def __init__(self, weights: Weights, evidence: Evidence, times: Sequence[float]) -> None:
        self.arms = {time: evidence.arms(time) for time in times}
        self.present = times[-1]
        self._weights = weights
        self._evidence = evidence
        self._points: dict[tuple[float, tuple[Dimension, ...]], LookPoint | None] = {}
        self._clusters: dict[float, ClusterSums | None] = {}
        self._histograms: Histograms | None = None

    def histograms(self) -> Histograms:
        """Return the distribution of session fitness at the present time."""
        if self._histograms is None:
            self._histograms = self._evidence.session_fitness(self.present)
        return self._histograms

    def point(self, hours: float, counted: tuple[Dimension, ...]) -> LookPoint | None:
        """Return what is known at a time over some dimensions; None if that is not enough for a test."""
        key = hours, counted
        if key not in self._points:
            self._points[key] = self._measured(hours, counted)
        return self._points[key]

    def _measured(self, hours: float, counted: tuple[Dimension, ...]) -> LookPoint | None:
        arms = self.arms[hours]
        fitness = arm_fitness(arms, self._weights, counted)
        if fitness is None:
            return None
        if hours not in self._clusters:
            self._clusters[hours] = self._evidence.clusters(hours)
        clusters = self._clusters[hours]
        if clusters is None:
            return LookPoint(hours, *fitness)
        joint = joint_variance(clusters, arms, self._weights, counted)
        return None if joint is None else LookPoint(hours, *fitness, joint)


def provisional(parameters: Parameters, arms: Arms) -> tuple[Dimension, ...]:
    """Return the dimensions that count before the first look has pinned them."""
    return counting(
        [arm.moments for arm in arms.values()],
        parameters.fitness.weights,
        parameters.fitness.min_sessions_for_score,
    )


def _charged_looks(subject: Subject, sessions: _Sessions) -> tuple[list[ChargedLook], tuple[str, ...]]:
    """Return the new looks, the one of this check last; or none, and what is missing for one."""
    parameters = subject.parameters
    present = sessions.arms[sessions.present]
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
    elif sessions.point(sessions.present, counted) is None:
        lost = arm_fitness(present, weights, counted) is None
        missing.append(
            "a dimension that counted has lost its data" if lost else "all sessions belong to one cluster"
        )
    if missing:
        return [], tuple(missing)
    points = _points(sessions, minimum, lambda _: counted)
    charged = charge(points, subject.looks, lambda hours: spent(parameters, hours), sides=2)
    return charged, () if charged else ("next to nothing is new since the last look",)


def _points(
    sessions: _Sessions, minimum: int, counted: Callable[[Arms], tuple[Dimension, ...]]
) -> list[LookPoint]:
    """Return the times at which both arms have enough scored sessions and a fitness."""
    points = [
        sessions.point(hours, counted(arms))
        for hours, arms in sessions.arms.items()
        if all(arm.moments.n >= minimum for arm in arms.values())
    ]
    return [point for point in points if point is not None]


def spent(parameters: Parameters, hours: float) -> float:
    """Return the cumulative two-sided alpha that may be spent by a time."""
    settings = parameters.experiments
    return statistics.lifetime_spending(
        hours,
        settings.default_duration_hours,
        settings.auto_converge.max_duration_hours,
        alpha=1 - settings.confidence_level,
        planned_share=settings.sequential.planned_share,
        kind=settings.sequential.spending,
    )


def harm_spent(parameters: Parameters, hours: float) -> float:
    """Return the cumulative one-sided alpha that harm looks may spend by a time."""
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


def _compare(charged: ChargedLook, pinned: Pinned, sessions: _Sessions) -> Comparison:
    point = charged.point
    return compare(
        point.control,
        point.treatment,
        pinned.test,
        charged.alpha_threshold,
        sessions.histograms,
        point.joint,
    )


def _look_records(
    subject: Subject, charged: Sequence[ChargedLook], comparison: Comparison | None
) -> tuple[Look, ...]:
    records = [look_record(subject, "efficacy", look) for look in charged]
    if comparison is not None:
        last = charged[-1]
        records[-1] = records[-1].model_copy(
            update={
                "held": True,
                "test": comparison.test,
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


def _harm_looks(subject: Subject, sessions: _Sessions, pinned: Pinned | None) -> tuple[Look, ...]:
    """Return the new harm looks, the one of this check last; they pin nothing and move no status."""
    parameters = subject.parameters
    points = _points(
        sessions,
        parameters.fitness.min_sessions_for_score,
        lambda arms: pinned.dimensions if pinned else provisional(parameters, arms),
    )
    if not points or points[-1].hours != sessions.present:
        return ()
    charged = charge(points, subject.harm_looks, lambda hours: harm_spent(parameters, hours), sides=1)
    records = [look_record(subject, "harm", look) for look in charged]
    if charged:
        records[-1] = with_harm_test(records[-1], charged[-1], sessions.histograms)
    return tuple(records)


def with_harm_test(record: Look, charged: ChargedLook, histograms: Callable[[], Histograms]) -> Look:
    """Return the record of a harm look that is held, with the one-sided test for a loss.

    Args:
        record: of the look so far.
        charged: the look.
        histograms: reads the session fitness of both arms; called only where it could still matter.
    """
    point = charged.point
    welch = means_test(point.control, point.treatment, point.joint)
    p_value, p_mann_whitney, p_hall = welch.p_less, None, None
    if point.joint is None and p_value <= charged.alpha_threshold:
        scores = histograms()  # all three tests must agree
        arms = as_arm(point.control), as_arm(point.treatment)
        robust = statistics.robust(*arms, scores["control"], scores["treatment"])
        p_value, p_mann_whitney, p_hall = robust.p_less, robust.mann_whitney.p_less, robust.hall.p_less
    return record.model_copy(
        update={
            "held": True,
            "p_value": p_value,
            "p_welch": welch.p_less,
            "p_mann_whitney": p_mann_whitney,
            "p_hall": p_hall,
            "z": normal_quantile(p_value),
            "significant": charged.alpha_threshold > 0 and p_value <= charged.alpha_threshold,
        }
    )


def is_harm(parameters: Parameters, look: Look) -> bool:
    """Tell whether a harm look shows a loss of regression_delta or more, beyond chance."""
    limit = look.control_fitness * (1 - parameters.fitness.thresholds.regression_delta)
    return look.significant and look.treatment_fitness <= limit


def look_record(subject: Subject, series: str, look: ChargedLook) -> Look:
    """Return the record of a look that nobody has held (yet)."""
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
