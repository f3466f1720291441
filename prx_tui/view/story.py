"""What happens next to an experiment and why, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from prx_tui.forecast import detectable_sentence, forecast_sentence
from prx_tui.formatting import half_up, hours, moment, p_value, percent
from prx_tui.text import safe_text
from prx_tui.view.spans import Line, Span, line
from prx_tui.view.status import CHECKED_ELSEWHERE, Checking, conclusion_words, notices

if TYPE_CHECKING:
    from prx_engine.records import Event, Experiment, ExperimentDetails, Look

_DAY: Final = timedelta(days=1)
_ENOUGH_FOR_A_RATE: Final = 5


def story(
    experiment: Experiment,
    now: datetime,
    *,
    enabled: bool = True,
    decides: bool = True,
    checking: Checking = CHECKED_ELSEWHERE,
    details: ExperimentDetails | None = None,
    brief: bool = False,
) -> list[Line]:
    """Return what happens next and why, the most urgent first; each line is a short paragraph.

    Args:
        experiment: as it stands.
        now: by the engine's clock.
        enabled: whether experiments are switched on.
        decides: whether a check may conclude alone.
        checking: how checks come about.
        details: say why an ended experiment ended and what the rest may bring, once they are read.
        brief: only the sentences that matter most, for a terminal without room for more.
    """
    found = [
        line(
            Span(f"▲ {notice.head} ", "attention"),
            notice.text if brief or not notice.more else f"{notice.text} {notice.more}",
        )
        for notice in notices(experiment, now, enabled=enabled, checking=checking)
    ]
    if not experiment.active:
        return [*found, *_ending(experiment, now, details, brief=brief)]
    if not enabled:
        off = (
            "Experiments are switched off in the configuration:"
            " nothing is checked, and all sessions get the defaults."
        )
        return [*found, line(Span(off, "attention"))]
    if experiment.held:
        return [*found, *_standing(experiment)]
    forecast = details.forecast if details else None
    outlook = forecast_sentence(forecast, experiment) if forecast else _rough_forecast(experiment, now)
    if experiment.blocked_by or now >= experiment.max_end_at:
        # What stands in the way has been said; chances would speak as if it were the sessions that lack,
        # and of a time to come that has gone by.
        outlook = ""
    fate = "" if brief and outlook else _fate(experiment, now, decides)
    return [
        *found,
        line(_next_check(experiment, now, checking), *_spaced(_standing(experiment))),
        line(Span(" ".join(filter(None, (outlook, fate))), "dim")),
    ]


def full_story(
    experiment: Experiment,
    now: datetime,
    *,
    enabled: bool,
    decides: bool,
    details: ExperimentDetails | None,
    checking: Checking = CHECKED_ELSEWHERE,
) -> list[Line]:
    """Return the whole story, and what more there is to say about the chances."""
    lines = story(experiment, now, enabled=enabled, decides=decides, checking=checking, details=details)
    forecast = details.forecast if details else None
    more = detectable_sentence(forecast) if forecast and now < experiment.max_end_at else None
    return [*lines, line(Span(more, "dim"))] if more else lines


def end_reason(events: Sequence[Event]) -> str:
    """Return why an experiment ended, from its log; empty if nobody said."""
    ended = next((event for event in events if event.action in ("converged", "cancelled")), None)
    return safe_text(ended.reason, 300) if ended else ""


# What happens next


def _next_check(experiment: Experiment, now: datetime, checking: Checking) -> str:
    due = experiment.next_check_at
    if due is None:
        return "No further check is due."
    if due > now:
        return f"Next check in {hours(due - now)}."
    return f"The check was due {moment(due)}." if checking.is_overdue(due, now) else "The check is due now."


def _standing(experiment: Experiment) -> list[Line]:
    """Return what the next look needs, or what the last one found."""
    look = experiment.last_look
    if look is None:
        return [line(_collecting(experiment))]
    lead = "leads by" if look.lift > 0 else "trails by"
    arms = f"Treatment {lead} {percent(abs(look.lift))}" if look.lift else "The arms are equal"
    level = p_value(look.alpha_threshold)
    if look.p_value is None:
        return [line(f"{arms}.")]
    if look.significant:
        small = percent(experiment.parameters.experiments.min_effect_size)
        enough = f"; at least {small} is worth a promotion" if experiment.active else ""
        return [
            line(f"{arms}, p = {p_value(look.p_value)} reaches the {level} needed at look {look.k}{enough}.")
        ]
    return [
        line(f"{arms} at look {look.k}, but p = {p_value(look.p_value)} had to reach {level}: not decided.")
    ]


def _collecting(experiment: Experiment) -> str:
    needed = experiment.parameters.experiments.min_sample_size
    control, treatment = experiment.control_fitness.sessions, experiment.treatment_fitness.sessions
    if min(control, treatment) >= needed:
        return f"Both arms have the {needed} scored sessions of a first look ({control} and {treatment})."
    return (
        f"A first look needs {needed} scored sessions in each arm;"
        f" control has {control}, treatment {treatment}."
    )


def _fate(experiment: Experiment, now: datetime, decides: bool) -> str:
    """Return what happens at the planned end, or what will now that it has passed."""
    planned, most = _date(experiment.planned_end_at), _date(experiment.max_end_at)
    if now >= experiment.max_end_at:
        words = f"The maximum, {most}, has passed: the next check decides; undecided, control stays."
    elif now >= experiment.planned_end_at:
        words = f"The planned end, {planned}, has passed: undecided at the next check, it is extended,"
        words += f" until {most} at most."
    elif experiment.planned_end_at < experiment.max_end_at:
        words = f"Planned end {planned}, in {hours(experiment.planned_end_at - now)};"
        words += f" undecided then, it is extended, until {most} at most."
    else:
        words = f"Planned end {planned}, in {hours(experiment.planned_end_at - now)}, the maximum;"
        words += " undecided then, control stays."
    if not decides:
        words += " A conclusion waits for you as a verdict: the engine may not decide alone."
    return words


def _rough_forecast(experiment: Experiment, now: datetime) -> str:
    """Return when both arms will have their sessions if they come as they did."""
    needed = experiment.parameters.experiments.min_sample_size
    scored = min(experiment.control_fitness.sessions, experiment.treatment_fitness.sessions)
    age = (now - experiment.created_at) / _DAY
    if scored >= needed or scored < _ENOUGH_FOR_A_RATE or age <= 0:
        return ""
    rate = scored / age
    there = now + (needed - scored) / rate * _DAY if rate else None
    if there is None or there > experiment.max_end_at:
        return f"At {_rate(rate)} sessions a day and arm {needed} are not reached before the maximum."
    return f"At {_rate(rate)} sessions a day and arm {needed} are reached on {_date(there)}."


def _rate(rate: float) -> str:
    return half_up(rate, 0 if rate >= 10 else 1)


def _ending(
    experiment: Experiment, now: datetime, details: ExperimentDetails | None, *, brief: bool
) -> list[Line]:
    assert experiment.converged_at is not None
    reason = end_reason(details.events) if details else ""
    ago = hours(now - experiment.converged_at)
    words = conclusion_words(experiment.conclusion)
    head = line(Span(f"{experiment.status.capitalize()} {ago} ago", "strong"))
    if experiment.status != "cancelled":
        head = line(head, Span(f": {words}", "strong"))
    lines = [line(head, f". {_sentence(reason)}" if reason else ".")]
    consequence = _consequence(experiment)
    if consequence:
        lines.append(line(consequence))
    watched = _watch(experiment, now, details.watch_looks if details else (), brief=brief)
    return [*lines, line(watched)] if watched else lines


def _watch(experiment: Experiment, now: datetime, looks: Sequence[Look], *, brief: bool) -> str:
    """Return how the watch over a promoted change stands; empty if nobody has to know."""
    found = f"Since the promotion {_watched(looks[-1])}." if looks else ""
    if experiment.promotion != "applied" or experiment.watch_ends_at is None:
        return found
    due = experiment.next_check_at
    next_look = f"; next look in {hours(due - now)}" if due is not None and due > now else ""
    words = f"Watched until {_date(experiment.watch_ends_at)}{next_look}."
    if found or brief:
        return " ".join(filter(None, (words, found)))
    return f"{words} Should all sessions turn out worse than control was, it is rolled back by itself."


def _watched(look: Look) -> str:
    change = f"fitness {half_up(look.control_fitness, 3)} → {half_up(look.treatment_fitness, 3)}"
    verdict = "worse beyond chance" if look.significant else "no regression"
    return f"{change} ({percent(look.lift, signed=True)}, {look.treatment_sessions} sessions): {verdict}"


def _sentence(text: str) -> str:
    """Return a reason as a sentence; a name in it may begin small, so only the first letter changes."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?', '…')) else '.'}"


def _consequence(experiment: Experiment) -> str:
    note = safe_text(experiment.promotion_note or "", 400)
    if experiment.promotion == "pending":
        why = note or "the agent's own host applies it"
        return f"The promotion is pending: {why}; p applies it now."
    if experiment.promotion == "applied":
        return f"The treatment is the default of {experiment.layer} now; R rolls it back."
    if experiment.promotion == "rolled_back":
        return "The promotion was rolled back: what was there before is the default again."
    if experiment.promotion == "conflict":
        return ""
    if experiment.winner == "treatment":
        return "There was nothing to write: the treatment changes no key and no file."
    return f"Nothing changes: {experiment.layer} stays as it was."


def _spaced(lines: Sequence[Line]) -> list[Line]:
    return [line(" ", one) for one in lines]


def _date(time: datetime) -> str:
    return time.strftime("%-d %b %H:%M")
