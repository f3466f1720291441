"""What the engine tells the outside: immutable records, by the names that text, database and JSON share."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

from prx_engine.clock import format_time
from prx_engine.configuration import Parameters
from prx_engine.dimensions import Dimension, Layer, VariantName

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


class Variant(Record):
    """One side of an experiment.

    Attributes:
        name: control (today's configuration) or treatment (the proposed one).
        description: what it is, for people.
        config: dotted TOML key → value that the variant sets in the promotion target.
        files: relative path in the workspace → the full text that the variant gives that file.
    """

    name: VariantName
    description: str = ""
    config: dict[str, Any] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)

    @property
    def changes_something(self) -> bool:
        """Tell whether promoting this variant would change anything."""
        return bool(self.config or self.files)


class Window(Record):
    """The sessions a figure is about: those with ``start <= started_at < end``."""

    start: Time
    end: Time


class DimensionScore(Record):
    """One dimension of a group of sessions.

    Attributes:
        score: mean over the sessions that have the dimension, 0–1; None without any.
        weight: weight that it carries in this composite, the weight of dimensions that do not
            count spread over those that do; 0 if it does not count itself.
        configured_weight: weight in the configuration, 0–1.
        contribution: weight × score, its part of the composite; None if it does not count.
        sessions: sessions with data on the dimension.
    """

    score: float | None
    weight: float
    configured_weight: float
    contribution: float | None
    sessions: int

    @property
    def counts(self) -> bool:
        """Tell whether the dimension is part of the composite."""
        return self.contribution is not None


class FitnessScore(Record):
    """Fitness of a group of sessions.

    Attributes:
        composite: weighted sum of the mean dimension scores, 0–1; None if no dimension counts.
        standard_error: of the composite; None with fewer than two sessions.
        dimensions: all six, those without data included.
        sessions: scored sessions in the group.
        window: the sessions' start times.
        valid: whether there are enough sessions (min_sessions_for_score) for the figure to mean something.
    """

    composite: float | None
    standard_error: float | None
    dimensions: dict[Dimension, DimensionScore]
    sessions: int
    window: Window
    valid: bool


class Interval(Record):
    """A confidence interval; an unbounded end is infinite (null in JSON)."""

    lower: Real
    upper: Real

    @property
    def bounded(self) -> bool:
        """Tell whether both ends are finite."""
        return math.isfinite(self.lower) and math.isfinite(self.upper)


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


class Look(Record):
    """One analysis that spent alpha, or a harm look.

    Attributes:
        series: ``efficacy`` (the two-sided looks that decide), ``harm``, or ``watch`` (all sessions
            since the promotion, as the treatment, against control).
        k: number in its series, from 1.
        at: scheduled time t_k; sessions that started before it are analysed.
        held: whether a check analysed it; a missed one is charged to the boundary only.
        information: τ, the variance of the score process, non-decreasing.
        boundary: critical value of z; infinite if this look cannot stop.
        alpha_threshold: level that p_value must reach, two-sided for efficacy, one-sided for harm.
        alpha_spent: cumulative alpha spent, this look included.
        test: the rule that gave ``p_value``; None for a missed or a harm look.
        outcome: what followed, or ``missed``; of a harm look, ``regression`` or ``no_harm``.
    """

    series: Literal["efficacy", "harm", "watch"]
    k: int
    at: Time
    held: bool
    control_sessions: int
    treatment_sessions: int
    information: float
    control_fitness: float
    treatment_fitness: float
    lift: Real
    lift_interval: Interval | None
    p_value: float | None
    p_welch: float | None
    p_mann_whitney: float | None
    p_hall: float | None
    z: Real | None
    boundary: Real
    alpha_threshold: float
    alpha_spent: float
    significant: bool
    test: DecidingTest | None = None
    outcome: str


class SampleRatio(Record):
    """Assigned counts against the planned split.

    Attributes:
        bayes_factor: for a mismatch, against the planned split; 100 or more is a mismatch.
        p_value: chi-square, for comparison.
        mismatch: whether a mismatch has ever been seen.
    """

    control: int
    treatment: int
    expected_treatment_share: float
    bayes_factor: Real
    p_value: float | None
    mismatch: bool


class Attrition(Record):
    """Share of assigned sessions that were ever scored, among those old enough to have been."""

    control_scored: int
    control_assigned: int
    treatment_scored: int
    treatment_assigned: int
    p_value: float
    suspicious: bool


class Experiment(Record):
    """One experiment, as it stands now (while active) or as it ended.

    Attributes:
        next_check_at: when the next check is due, of a promoted change the next look of its watch.
        promotion_note: why the promotion is still pending, in conflict, or cannot be taken back.
        promoted_at: when the change became the default.
        watch_ends_at: until when the promoted change is watched; None if it is not.
    """

    experiment_id: str
    decision_id: str | None
    layer: Layer
    hypothesis: str
    status: Status
    created_at: Time
    converged_at: Time | None
    planned_end_at: Time
    max_end_at: Time
    next_check_at: Time | None
    extensions: int
    control: Variant
    treatment: Variant
    control_sessions: int
    treatment_sessions: int
    control_fitness: FitnessScore
    treatment_fitness: FitnessScore
    lift: Real | None
    p_value: float | None
    last_look: Look | None
    winner: VariantName | None
    conclusion: Conclusion | None
    verdict: Conclusion | None
    blocked_by: list[Block]
    promotion: PromotionState
    promotion_note: str | None = None
    promoted_at: Time | None = None
    watch_ends_at: Time | None = None
    parameters: Parameters

    @property
    def active(self) -> bool:
        """Tell whether sessions still enter and checks still run."""
        return self.status in ACTIVE

    @property
    def held(self) -> bool:
        """Tell whether a verdict waits for an operator and checks leave the experiment alone."""
        return self.active and self.verdict is not None and self.next_check_at is None


class Event(Record):
    """One line of the append-only log.

    Attributes:
        experiment_id: the experiment it is about; None for the deployment.
        at: when, by the engine's clock.
        actor: who: ``engine``, or the operator's name.
        action: what.
        reason: why.
        before, after: the fields that changed.
    """

    experiment_id: str | None
    at: Time
    actor: str
    action: str
    reason: str
    before: dict[str, Any]
    after: dict[str, Any]


class Change(Record):
    """One key or file that the treatment sets.

    Attributes:
        kind: ``key`` of the promotion target, or ``file`` of the workspace.
        name: dotted key, or path.
        before: TOML literal or text when the experiment was created; None if there was none.
        after: TOML literal or text under the treatment.
    """

    kind: Literal["key", "file"]
    name: str
    before: str | None
    after: str


class Snapshot(Record):
    """What a promotion or a rollback replaced in one file.

    Attributes:
        version_id: id of this version of the file.
        created_at: when it was replaced.
        content: the old text; None if there was no file.
        sha256: of the old text.
        path: absolute.
        action: what replaced it.
        state: ``applied``, ``applying`` (now, or interrupted), or ``undone``.
    """

    version_id: str
    created_at: Time
    content: str | None
    sha256: str | None
    path: str
    experiment_id: str
    layer: Layer
    action: Literal["promotion", "rollback"]
    state: Literal["applying", "applied", "undone"]


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


class PlannedCase(Record):
    """How an experiment that is planned ends if a lift is the true one.

    Attributes:
        lift: true lift.
        treatment_wins, rejected, undecided: chance of each ending; rejected is control wins, effect too
            small, or regression.
        decided_by_plan: chance of a decision by the planned end.
        mean_hours: how long it lasts on average.
    """

    lift: float
    treatment_wins: float
    rejected: float
    undecided: float
    decided_by_plan: float
    mean_hours: float


class PlannedDay(Record):
    """What an experiment that is planned can tell by a scheduled time.

    Attributes:
        hours: since its creation.
        control_sessions, treatment_sessions: scored by then.
        alpha_threshold: level that p_value must reach; None if it is no look.
        detectable_lift: smallest true lift that wins by then with a chance of 80 %; None if none does.
        treatment_wins, decided: chances by then if the lift of the plan is the true one.
    """

    hours: int
    control_sessions: int
    treatment_sessions: int
    alpha_threshold: float | None
    detectable_lift: float | None
    treatment_wins: float
    decided: float


class Plan(Record):
    """What an experiment would do, before it is started.

    Attributes:
        sessions_a_day: scored sessions of both arms together.
        mean, standard_deviation: fitness of a session of control.
        measured: whether the last seven days of the deployment told these three, or the caller did.
        parameters: settings it would have.
        enough_sessions_hours: when both arms have min_sample_size; None if not before the maximum.
        lift: the true lift that ``days`` and ``sessions_a_day_needed`` are about.
        detectable_by_plan, detectable_by_maximum: smallest true lift that wins by then with a chance of 80 %.
        sessions_a_day_needed: for that lift to win by the planned end with a chance of 80 %; None if no
            traffic is enough.
        false_promotion: chance that a treatment without effect wins.
        cases: endings for some true lifts.
        days: scheduled times, those on full days if there are more.
    """

    sessions_a_day: float
    mean: float
    standard_deviation: float
    measured: bool
    parameters: Parameters
    enough_sessions_hours: float | None
    lift: float
    detectable_by_plan: float | None
    detectable_by_maximum: float | None
    sessions_a_day_needed: float | None
    false_promotion: float
    cases: list[PlannedCase]
    days: list[PlannedDay]


class ExperimentDetails(Record):
    """An experiment with everything that led to where it stands, and what may follow while it is active."""

    experiment: Experiment
    dimensions: dict[Dimension, DimensionComparison]
    looks: list[Look]
    harm_looks: list[Look]
    watch_looks: list[Look] = []
    changes: list[Change] = []
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
        reason: why, in words.
    """

    experiment_id: str
    at: Time
    missing: list[str]
    comparison: Comparison | None
    alpha_threshold: float | None
    significant: bool
    conclusion: Conclusion | None
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


class Assignment(Record):
    """The configuration that one session gets in one layer.

    Attributes:
        variant: None if the session is in no experiment of the layer.
        config: dotted key → value: the layer's promoted changes, then the variant's own.
        files: relative path → full text, likewise.
        reason: why: ``assigned`` (now), ``persisted`` (earlier), ``no_experiment``,
            ``started_before`` the experiment, ``past_maximum``, ``disabled``, ``error``.
    """

    layer: Layer
    variant: VariantName | None
    experiment_id: str | None
    config: dict[str, Any]
    files: dict[str, str]
    reason: str


class DeploymentFitness(Record):
    """Fitness of all recent sessions of the deployment.

    Attributes:
        fitness: of the present window.
        missing_sessions: how many sessions are missing until the figure is valid; 0 if it is.
        change: composite now − composite of the window 7 days before; None if either is not valid.
        trend: None without a change to judge.
        alert: whether a valid composite is below minimum_acceptable.
    """

    fitness: FitnessScore
    missing_sessions: int
    change: float | None
    trend: Literal["improving", "declining", "stable"] | None
    alert: bool
    minimum_acceptable: float


class HistoryDay(Record):
    """Fitness of the sessions of one UTC day."""

    day: str
    fitness: FitnessScore


class TrendPoint(Record):
    """Fitness of both arms of an experiment over the sessions up to a moment (cumulative)."""

    at: Time
    control: float | None
    treatment: float | None
    control_sessions: int
    treatment_sessions: int


class Rejected(Record):
    """A line of an import that was not taken, and why."""

    file: str
    line: int
    problem: str
    text: str


class ImportReport(Record):
    """What an import did.

    Attributes:
        lines: lines read, blank ones not counted.
        recorded: updates of sessions taken; a line may have several, or none.
        sessions: distinct sessions among them.
        without_experiment: sessions that stated a variant while their layer had no experiment.
        missing_dimensions: dimensions that no line had data for.
        rejected: the first 20 things that were wrong.
        refused: lines with anything wrong.
        waiting: updates whose session no record has named yet.
        format: of the file; None if nothing was recognised.
    """

    lines: int
    recorded: int
    sessions: int
    without_experiment: int
    missing_dimensions: list[Dimension]
    rejected: list[Rejected]
    refused: int = 0
    waiting: int = 0
    format: str | None = None


class Replay(Record):
    """What the engine makes of a recorded stream of sessions.

    Attributes:
        lines: that were read.
        rejected: lines that are no session lines.
        checks: what each scheduled check found, in order.
        details: the experiment at the end of the stream, with all its looks.
    """

    file: str
    lines: int
    rejected: list[Rejected]
    checks: list[CheckResult]
    details: ExperimentDetails


class Verification(Record):
    """Result of summing everything again.

    Attributes:
        sessions, assignments: rows read.
        problems: every total or score that is not what its parts say; empty if all is well.
    """

    sessions: int
    assignments: int
    problems: list[str]
