"""Experiments as they stand, and what has happened to them."""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import Field

from prx_engine.configuration import Parameters
from prx_engine.dimensions import Layer, VariantName
from prx_engine.records.base import (
    ACTIVE,
    Block,
    Conclusion,
    DecidingTest,
    PromotionState,
    Real,
    Record,
    Status,
    Time,
)
from prx_engine.records.fitness import FitnessScore


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


class Interval(Record):
    """A confidence interval; an unbounded end is infinite (null in JSON)."""

    lower: Real
    upper: Real

    @property
    def bounded(self) -> bool:
        """Tell whether both ends are finite."""
        return math.isfinite(self.lower) and math.isfinite(self.upper)


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


class TrendPoint(Record):
    """Fitness of both arms of an experiment over the sessions up to a moment (cumulative)."""

    at: Time
    control: float | None
    treatment: float | None
    control_sessions: int
    treatment_sessions: int
