"""What an analysis of an experiment finds, now and in prospect."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prx_engine.dimensions import Dimension, Layer, VariantName
from prx_engine.records.base import Block, Conclusion, DecidingTest, Real, Record, Time
from prx_engine.records.experiments import (
    Attrition,
    Change,
    Event,
    Experiment,
    Interval,
    Look,
    SampleRatio,
)


class DimensionComparison(Record):
    """The two arms on one dimension.

    Attributes:
        control, treatment: mean scores, 0–1; None without data.
        difference: treatment − control; None if an arm has no data.
        p_value: two-sided Welch; None with fewer than two observations in an arm.
        p_adjusted: p_value × number of dimensions compared, at most 1 (Bonferroni).
        control_sessions, treatment_sessions: sessions with data.
        counts: whether the dimension is part of the fitness.
    """

    control: float | None
    treatment: float | None
    difference: float | None
    p_value: float | None
    p_adjusted: float | None
    control_sessions: int
    treatment_sessions: int
    counts: bool


class Comparison(Record):
    """The two arms' fitness compared at one moment.

    Attributes:
        test: rule that gives ``p_value``: Welch, robust (the largest of three), or Welch with the variance
            of clusters.
        p_value: two-sided, 0–1.
        p_welch, p_mann_whitney, p_hall: the single tests; None where the rule did not need them.
        difference: treatment − control, with its interval at this look's level.
        lift: relative difference, with its Fieller interval at this look's level.
        hedges_g: standardised difference.
        degrees_of_freedom: Welch–Satterthwaite.
        variance: of the difference.
        clusters: users or tasks that the sessions belong to, a session without one counting as its own;
            None if no session has one.
    """

    test: DecidingTest
    p_value: float
    p_welch: float
    p_mann_whitney: float | None
    p_hall: float | None
    difference: float
    difference_interval: Interval
    lift: Real
    lift_interval: Interval
    hedges_g: Real
    degrees_of_freedom: Real
    variance: float
    clusters: int | None = None


class PlannedLook(Record):
    """A look to come, as far as present traffic tells.

    Attributes:
        at: scheduled time.
        boundary: critical value of z; infinite if this look cannot stop.
        alpha_threshold: level that p_value must reach, two-sided for efficacy, one-sided for harm.
    """

    at: Time
    boundary: Real
    alpha_threshold: float


class Prospect(Record):
    """What an experiment may have found by a time.

    Attributes:
        by: the time.
        decided: chance of a conclusion by then, if the true lift is the present one.
        treatment_wins: chance that it is a win.
        detectable_lift: smallest true lift that wins by then with a chance of 80 %; None if none does.
    """

    by: Time
    decided: float
    treatment_wins: float
    detectable_lift: float | None


class Forecast(Record):
    """What the rest of an active experiment may bring, at the traffic of the last seven days.

    Attributes:
        control_a_day, treatment_a_day: scored sessions a day in each arm.
        enough_sessions_at: when both arms have min_sample_size; None if not before the maximum.
        lift: present one, taken to be true.
        planned, maximum: by the planned end (None once it has passed) and by the maximum; None without
            enough sessions to tell.
        looks, harm_looks: those to come.
    """

    at: Time
    control_a_day: float
    treatment_a_day: float
    enough_sessions_at: Time | None
    lift: Real | None
    planned: Prospect | None
    maximum: Prospect | None
    looks: list[PlannedLook]
    harm_looks: list[PlannedLook]


class ExperimentDetails(Record):
    """An experiment with everything that led to where it stands, and what may follow while it is active."""

    experiment: Experiment
    dimensions: dict[Dimension, DimensionComparison]
    looks: list[Look]
    harm_looks: list[Look]
    watch_looks: list[Look] = Field(default_factory=list)
    changes: list[Change] = Field(default_factory=list)
    sample_ratio: SampleRatio
    attrition: Attrition
    forecast: Forecast | None = None
    events: list[Event]


class Preview(Record):
    """The analysis of a look held now: shown, never acted on.

    Attributes:
        at: moment of the analysis; all sessions known by then are in it.
        missing: what a look still lacks, in words; empty if one could be held.
        comparison: None while there is nothing to compare.
        alpha_threshold: level that a look held now would have to reach.
        conclusion: what the engine would conclude if this were a scheduled look; None if it would go on.
        blocked_by: what forbids it to conclude that treatment wins.
        reason: why, in words.
    """

    experiment_id: str
    at: Time
    missing: list[str]
    comparison: Comparison | None
    alpha_threshold: float | None
    significant: bool
    conclusion: Conclusion | None
    blocked_by: list[Block]
    reason: str


CheckOutcome = Literal[
    "concluded",
    "verdict",
    "extended",
    "look",
    "waiting",
    "not_due",
    "busy",
    "held",
    "watched",
    "rolled_back",
]


class CheckResult(Record):
    """What one check found and did.

    Attributes:
        at: the scheduled time analysed; None if none was due.
        outcome: ``concluded``; ``verdict`` (conclusive, left to an operator); ``extended``; ``look``
            (analysed, goes on); ``waiting`` (not a look: ``missing`` says why); ``not_due``;
            ``busy`` (another process has claimed it); ``held`` (a verdict waits for an operator);
            ``watched`` (the promoted change was looked at, and stays); ``rolled_back``.
    """

    experiment_id: str
    layer: Layer
    hypothesis: str
    at: Time | None
    outcome: CheckOutcome
    conclusion: Conclusion | None
    winner: VariantName | None
    missing: list[str]
    look: Look | None
    reason: str
    next_check_at: Time | None
