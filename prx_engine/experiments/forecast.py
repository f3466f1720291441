"""The forecast of an active experiment, from the traffic of its last days."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from prx_engine.clock import HOUR
from prx_engine.dimensions import VARIANTS, Dimension
from prx_engine.experiments.analysis import Subject, provisional
from prx_engine.experiments.blocks import blocks
from prx_engine.experiments.catalog import Catalog, Row
from prx_engine.experiments.comparison import arm_fitness
from prx_engine.experiments.evidence import StoredEvidence, stored_subject
from prx_engine.experiments.looks import ChargedLook
from prx_engine.experiments.outlook import Chances, Outlook, Spread, Standing
from prx_engine.fitness.arms import Arms
from prx_engine.fitness.clusters import joint_variance
from prx_engine.fitness.group import GroupFitness
from prx_engine.records import ACTIVE, Forecast, PlannedLook, Prospect
from prx_engine.statistics.relative import lift
from prx_engine.store import Store
from prx_engine.store.totals import arm_totals, arms_between

TRAFFIC_HOURS: Final = 7 * 24
_HOURS_A_DAY: Final = 24


@dataclass(frozen=True, slots=True)
class _Present:
    """Where the experiment stands, and what its sessions are like."""

    standing: Standing
    spread: Spread
    lift: float


def forecast(store: Store, catalog: Catalog, row: Row, now: datetime, *, mismatch: bool) -> Forecast | None:
    """Return the forecast of an experiment; None if no check will look at it again.

    Args:
        store: the database.
        catalog: finds the looks.
        row: of the experiment.
        now: the present time.
        mismatch: whether its arms are of the wrong size.
    """
    if row["status"] not in ACTIVE or row["held"]:
        return None
    blocked = bool(blocks(mismatch=mismatch, suspicious_attrition=row["attrition"]))
    subject = stored_subject(catalog, row, blocked=blocked)
    hours = _quarters((now - row["created_at"]) / HOUR)
    arms = arm_totals(store, [row["number"]])[row["number"]]
    a_hour = _traffic(store, row["number"], arms, hours)
    counted = subject.pinned.dimensions if subject.pinned else provisional(subject.parameters, arms)
    present = _present(subject, arms, counted, StoredEvidence(store, row["number"]), hours)
    figures = _figures(subject, present, a_hour) if present else _Figures()
    return Forecast(
        at=now,
        control_a_day=a_hour[0] * _HOURS_A_DAY,
        treatment_a_day=a_hour[1] * _HOURS_A_DAY,
        enough_sessions_at=_enough_at(subject, arms, a_hour, now),
        lift=present.lift if present else None,
        planned=figures.planned,
        maximum=figures.maximum,
        looks=list(figures.looks),
        harm_looks=list(figures.harm_looks),
    )


@dataclass(frozen=True, slots=True)
class _Figures:
    """What the looks to come may bring."""

    planned: Prospect | None = None
    maximum: Prospect | None = None
    looks: tuple[PlannedLook, ...] = ()
    harm_looks: tuple[PlannedLook, ...] = ()


@lru_cache(maxsize=64)
def _figures(subject: Subject, present: _Present, a_hour: tuple[float, float]) -> _Figures:
    """Return the figures; they are kept, since a page is read more often than it changes."""
    schedule = subject.schedule
    outlook = Outlook(subject, present.spread, present.standing, a_hour)
    chances = outlook.chances(present.standing.difference)
    ahead = present.standing.hours < schedule.planned_end
    return _Figures(
        _prospect(outlook, chances, subject.created_at, schedule.planned_end) if ahead else None,
        _prospect(outlook, chances, subject.created_at, schedule.maximum),
        _planned(subject, outlook.looks),
        _planned(subject, outlook.harm_looks),
    )


def _quarters(hours: float) -> float:
    """Return a time down to the quarter of an hour, so that figures stand still meanwhile."""
    return max(math.floor(hours * 4) / 4, 0.25)


def _traffic(store: Store, number: int, arms: Arms, hours: float) -> tuple[float, float]:
    """Return the scored sessions of control and treatment an hour, over the last seven days."""
    first = max(math.floor(hours) - TRAFFIC_HOURS, 0)
    before = arms_between(store, number, 0, first)
    elapsed = hours - first
    control, treatment = ((arms[name].moments.n - before[name].moments.n) / elapsed for name in VARIANTS)
    return control, treatment


def _present(
    subject: Subject, arms: Arms, counted: Sequence[Dimension], evidence: StoredEvidence, hours: float
) -> _Present | None:
    """Return where the experiment stands; None without enough sessions to tell."""
    settings = subject.parameters.fitness
    groups = arm_fitness(arms, settings.weights, counted)
    if groups is None or min(group.n for group in groups) < settings.min_sessions_for_score:
        return None
    clusters = evidence.clusters(math.inf)
    control, treatment = groups
    effect = 1.0
    if clusters is not None:
        joint = joint_variance(clusters, arms, settings.weights, counted)
        independent = control.variance + treatment.variance
        if joint is None:
            return None
        effect = joint.difference / independent if independent else 1.0
    return _Present(
        Standing(hours, control.n, treatment.n, treatment.mean - control.mean),
        Spread(control.mean, _of_a_session(control, effect), _of_a_session(treatment, effect)),
        lift(control.mean, treatment.mean),
    )


def _of_a_session(group: GroupFitness, design_effect: float) -> float:
    return group.n * group.variance * design_effect


def _enough_at(subject: Subject, arms: Arms, a_hour: tuple[float, float], now: datetime) -> datetime | None:
    """Return when both arms have min_sample_size: now if they have it already."""
    minimum = subject.parameters.experiments.min_sample_size
    wait = 0.0
    for name, rate in zip(VARIANTS, a_hour, strict=True):
        missing = minimum - arms[name].moments.n
        if missing > 0:
            wait = max(wait, missing / rate if rate else math.inf)
    left = subject.created_at + subject.schedule.maximum * HOUR - now
    return now + wait * HOUR if wait <= left / HOUR else None


def _prospect(outlook: Outlook, chances: Chances, created_at: datetime, hours: int) -> Prospect:
    return Prospect(
        by=created_at + hours * HOUR,
        decided=chances.decided_by(hours),
        treatment_wins=chances.won_by(hours),
        detectable_lift=outlook.detectable(hours),
    )


def _planned(subject: Subject, looks: Sequence[ChargedLook]) -> tuple[PlannedLook, ...]:
    return tuple(
        PlannedLook(
            at=subject.created_at + look.point.hours * HOUR,
            boundary=look.boundary,
            alpha_threshold=look.alpha_threshold,
        )
        for look in looks
    )
