"""Experiments that are not running: planned ones and replayed ones."""

from __future__ import annotations

from prx_engine.configuration import Parameters
from prx_engine.records.analysis import CheckResult, ExperimentDetails
from prx_engine.records.base import Record
from prx_engine.records.sessions import Rejected


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
