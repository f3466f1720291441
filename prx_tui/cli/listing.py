"""How experiments read in a line or a few: in listings, after an action, in the status."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from prx_tui.cli.output import Column, put_table
from prx_tui.formatting import NONE, half_up, moment, p_value, percent, until, words
from prx_tui.text import safe_text

if TYPE_CHECKING:
    from prx_engine.records import Comparison, Experiment, Look

_COLUMNS: Final = (
    Column("Id"),
    Column("Layer"),
    Column("Status"),
    Column("Sessions", right=True),
    Column("Fitness"),
    Column("Lift", right=True),
    Column("p / needed"),
    Column("Next check"),
    Column("Hypothesis"),
)


def short(experiment_id: str) -> str:
    """Return the part of an id that displays show: the last 8 characters, since the first are time."""
    return experiment_id[-8:]


def put_listing(experiments: Sequence[Experiment], now: datetime) -> None:
    """Write a table of experiments."""
    put_table(_COLUMNS, [_row(experiment, now) for experiment in experiments])


def _row(experiment: Experiment, now: datetime) -> list[str]:
    return [
        short(experiment.experiment_id),
        experiment.layer,
        standing(experiment),
        sessions(experiment),
        fitness(experiment),
        percent(experiment.lift, signed=True),
        evidence(experiment.last_look),
        until(experiment.next_check_at, now) if experiment.active else NONE,
        safe_text(experiment.hypothesis),
    ]


def standing(experiment: Experiment) -> str:
    """Return status and conclusion; behind a ``!`` what needs an operator."""
    text: str = experiment.status
    if experiment.conclusion is not None and experiment.conclusion != "cancelled":
        text += f" ({words(experiment.conclusion)})"
    needs = [words(block) for block in experiment.blocked_by] if experiment.active else []
    if experiment.active and experiment.verdict is not None:
        needs.append(f"verdict {words(experiment.verdict)}")
    if experiment.promotion in ("pending", "conflict"):
        needs.append(f"promotion {experiment.promotion}")
    elif experiment.promotion == "rolled_back":
        text += ", rolled back"
    return f"{text} !{', '.join(needs)}" if needs else text


def sessions(experiment: Experiment) -> str:
    """Return the sessions assigned to control and treatment."""
    return f"{experiment.control_sessions} + {experiment.treatment_sessions}"


def fitness(experiment: Experiment) -> str:
    """Return the fitness of control and treatment."""
    control = experiment.control_fitness.composite
    treatment = experiment.treatment_fitness.composite
    if control is None and treatment is None:
        return NONE
    return f"{half_up(control, 3)} → {half_up(treatment, 3)}"


def evidence(look: Look | None) -> str:
    """Return the p-value of a look and the level that it had to reach."""
    return NONE if look is None else f"{p_value(look.p_value)} / {p_value(look.alpha_threshold)}"


def single_tests(look: Look | Comparison) -> str:
    """Return the p-values of the single tests behind a look or a preview, of those that were made."""
    tests = {"Welch": look.p_welch, "Mann–Whitney": look.p_mann_whitney, "Hall": look.p_hall}
    return ", ".join(f"{name} {p_value(p)}" for name, p in tests.items() if p is not None)


def outlook(experiment: Experiment, now: datetime) -> str:
    """Return what happens next with an experiment, and why."""
    if not experiment.active:
        return _ended(experiment)
    settings = experiment.parameters.experiments
    if experiment.held:
        assert experiment.verdict is not None
        return (
            f"the verdict is {words(experiment.verdict)}; auto_converge is off, so it waits for you to"
            " promote, reject, extend or cancel"
        )
    parts = []
    if experiment.next_check_at is not None:
        parts.append(
            f"next check {moment(experiment.next_check_at)} UTC, {until(experiment.next_check_at, now)}"
        )
        if experiment.next_check_at <= now:
            parts.append("checks run while a dashboard or `watch` is open, or from cron")
    if experiment.blocked_by:
        blocks = " and ".join(words(block) for block in experiment.blocked_by)
        parts.append(f"{blocks}: it cannot be promoted unless you do it by hand")
    missing = [
        f"{settings.min_sample_size - score.sessions} of {settings.min_sample_size} {name} sessions"
        for name, score in (
            ("control", experiment.control_fitness),
            ("treatment", experiment.treatment_fitness),
        )
        if score.sessions < settings.min_sample_size
    ]
    if now >= experiment.max_end_at:
        parts.append(
            f"its maximum, {moment(experiment.max_end_at)} UTC, has passed: the next check decides;"
            " undecided, control stays"
        )
    elif missing:
        parts.append(f"a decision still needs {' and '.join(missing)} with scores")
    return "; ".join(parts)


def _ended(experiment: Experiment) -> str:
    if experiment.status == "cancelled":
        return "it was cancelled; all sessions get the default"
    assert experiment.conclusion is not None
    if experiment.winner != "treatment":
        return f"{words(experiment.conclusion)}; control stays"
    effect = {
        "none": "the treatment changes nothing that could be promoted",
        "pending": "the promotion is pending",
        "applied": "the treatment is the default now",
        "conflict": "the promotion is in conflict with a change made meanwhile; promote again or leave it",
        "rolled_back": "the promotion was rolled back",
    }
    told = f"{words(experiment.conclusion)}; {effect[experiment.promotion]}"
    return f"{told}: {safe_text(experiment.promotion_note, 400)}" if experiment.promotion_note else told
