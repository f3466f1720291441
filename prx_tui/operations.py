"""What an operator can do to an experiment: whether it is possible, what it means, and doing it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from prx_engine.engine import Engine
from prx_engine.ids import short
from prx_engine.records import Experiment
from prx_tui.formatting import hours
from prx_tui.jobs import Refused
from prx_tui.text import safe_text
from prx_tui.view.experiments import outcome
from prx_tui.view.status import conclusion_words

_HOUR: Final = timedelta(hours=1)
_NAME_LENGTH: Final = 60
_PROMOTABLE: Final = frozenset({"pending", "conflict"})


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for, frozen when the question was put.

    Attributes:
        operation: id of it.
        target: the experiment as the operator saw it.
        reason: why, in the operator's words.
        hours: of an extension.
    """

    operation: str
    target: Experiment
    reason: str = ""
    hours: int | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be done to an experiment.

    Attributes:
        id: name of the action.
        verb: what the engine calls it.
        refusal: why it is not possible now; empty if it is.
        question: what is asked, with what will happen.
        perform: does it.
        done: what is announced afterwards.
    """

    id: str
    verb: str
    refusal: Callable[[Experiment], str]
    question: Callable[[Experiment], str]
    perform: Callable[[Engine, Request], Experiment]
    done: Callable[[Experiment], str]


def name(experiment: Experiment) -> str:
    """Return how a message names an experiment."""
    hypothesis = safe_text(experiment.hypothesis, _NAME_LENGTH)
    return f"{experiment.layer} {hypothesis} (…{short(experiment.experiment_id)})"


def carried_out(engine: Engine, request: Request) -> str:
    """Do what was asked and return what to announce.

    Raises:
        Refused: if the experiment is not as the operator saw it.
        PrxError: if the engine refuses.
    """
    operation = OPERATIONS[request.operation]
    present = engine.experiment(request.target.experiment_id)
    if state(present) != state(request.target):
        raise Refused(
            f"Nothing was done: {name(present)} has changed meanwhile. It is now {state_words(present)}."
        )
    return operation.done(operation.perform(engine, request))


def state(experiment: Experiment) -> tuple[object, ...]:
    """Return what a decision about an experiment rests on; sessions come and go all the time."""
    return (
        experiment.status,
        experiment.conclusion,
        experiment.verdict,
        experiment.promotion,
        experiment.planned_end_at,
        tuple(experiment.blocked_by),
    )


def state_words(experiment: Experiment) -> str:
    """Return the state of an experiment in words."""
    if not experiment.active:
        return f"{experiment.status} ({outcome(experiment)})"
    verdict = f", verdict {conclusion_words(experiment.verdict)}" if experiment.verdict else ""
    blocks = "".join(f", {block.replace('_', ' ')}" for block in experiment.blocked_by)
    return f"{experiment.status}{verdict}{blocks}, planned end {experiment.planned_end_at:%Y-%m-%d %H:%M}"


def hours_left(experiment: Experiment, now: datetime) -> int:
    """Return by how many hours an experiment can be extended at most."""
    start = max(experiment.planned_end_at, now)
    return max((experiment.max_end_at - start) // _HOUR, 0)


def _only_active(verb: str) -> Callable[[Experiment], str]:
    def refusal(experiment: Experiment) -> str:
        if experiment.active:
            return ""
        return f"Cannot {verb} {name(experiment)}: it is {state_words(experiment)}."

    return refusal


def _promote_refusal(experiment: Experiment) -> str:
    if experiment.active or experiment.promotion in _PROMOTABLE:
        return ""
    return f"Cannot promote {name(experiment)}: it is {state_words(experiment)}."


def _rollback_refusal(experiment: Experiment) -> str:
    if experiment.promotion == "applied":
        return ""
    why = "no promotion of it is applied"
    return f"Cannot roll back {name(experiment)}: {why}; it is {state_words(experiment)}."


def _promote_question(experiment: Experiment) -> str:
    touched = _touched(experiment)
    if not experiment.active:
        again = f"The promotion that is {experiment.promotion} is tried again: {touched}."
        return f"Promote {name(experiment)}? {again}"
    warning = ""
    if experiment.blocked_by:
        blocks = " and ".join(block.replace("_", " ") for block in experiment.blocked_by)
        warning = f" The arms cannot be compared ({blocks})."
    elif experiment.last_look is None or not experiment.last_look.significant:
        warning = " The statistics have not decided for it."
    return (
        f"Promote {name(experiment)}? The experiment ends and the treatment becomes the default of"
        f" {experiment.layer}: {touched}.{warning}"
    )


def _touched(experiment: Experiment) -> str:
    treatment = experiment.treatment
    parts = []
    if treatment.config:
        parts.append(f"{len(treatment.config)} {'key' if len(treatment.config) == 1 else 'keys'}")
    if treatment.files:
        parts.append(f"{len(treatment.files)} {'file' if len(treatment.files) == 1 else 'files'}")
    return (
        f"{' and '.join(parts)} will be written" if parts else "nothing is written, it changes no key or file"
    )


def _cancel(engine: Engine, request: Request) -> Experiment:
    return engine.cancel(request.target.experiment_id, request.reason)


def _extend(engine: Engine, request: Request) -> Experiment:
    return engine.extend(request.target.experiment_id, request.hours, request.reason)


def _promote(engine: Engine, request: Request) -> Experiment:
    return engine.promote(request.target.experiment_id, request.reason)


def _reject(engine: Engine, request: Request) -> Experiment:
    return engine.reject(request.target.experiment_id, request.reason)


def _rollback(engine: Engine, request: Request) -> Experiment:
    return engine.rollback(request.target.experiment_id, request.reason)


def _promoted_words(experiment: Experiment) -> str:
    if experiment.promotion == "conflict":
        return f"Not promoted: {name(experiment)} is in conflict: {_note(experiment)}."
    if experiment.promotion == "pending":
        return f"Promoted {name(experiment)}; it has yet to be applied: {_note(experiment)}."
    if experiment.promotion == "none":
        return f"Promoted {name(experiment)}; there was nothing to write."
    return f"Promoted {name(experiment)}: its treatment is the default of {experiment.layer} now."


def _note(experiment: Experiment) -> str:
    return safe_text(experiment.promotion_note or "the agent's host has to do it", 400)


def _extended_words(experiment: Experiment) -> str:
    left = hours(experiment.max_end_at - experiment.planned_end_at)
    return (
        f"Extended {name(experiment)} to {experiment.planned_end_at:%Y-%m-%d %H:%M};"
        f" {left} are left until its maximum."
    )


OPERATIONS: Final = {
    one.id: one
    for one in (
        Operation(
            "cancel",
            "cancel",
            _only_active("cancel"),
            lambda it: f"Cancel {name(it)}? All traffic returns to control.",
            _cancel,
            lambda it: f"Cancelled {name(it)}: all traffic returns to control.",
        ),
        Operation(
            "extend",
            "extend",
            _only_active("extend"),
            lambda it: f"Extend {name(it)}?",
            _extend,
            _extended_words,
        ),
        Operation("promote", "promote", _promote_refusal, _promote_question, _promote, _promoted_words),
        Operation(
            "reject",
            "reject",
            _only_active("reject"),
            lambda it: f"Reject {name(it)}? The experiment ends, control stays the default.",
            _reject,
            lambda it: f"Rejected {name(it)}: control stays the default of {it.layer}.",
        ),
        Operation(
            "rollback",
            "roll back",
            _rollback_refusal,
            lambda it: (
                f"Roll back {name(it)}? What was there before its promotion becomes the default of"
                f" {it.layer} again."
            ),
            _rollback,
            lambda it: f"Rolled back {name(it)}: what was there before is the default of {it.layer} again.",
        ),
    )
}
