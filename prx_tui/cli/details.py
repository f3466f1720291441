"""Everything about one experiment, for reading."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from difflib import unified_diff
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from prx_tui.cli.listing import evidence, fitness, outlook, short, single_tests, standing
from prx_tui.cli.output import Column, put, put_fields, put_table, styled
from prx_tui.forecast import detectable_sentence, forecast_sentence
from prx_tui.formatting import NONE, half_up, moment, p_value, percent, words
from prx_tui.text import safe_lines, safe_text

if TYPE_CHECKING:
    from prx_engine.records import (
        Attrition,
        Change,
        Event,
        Experiment,
        ExperimentDetails,
        Interval,
        Look,
        SampleRatio,
        Snapshot,
        Variant,
    )

_LOOKS: Final = (
    Column("Look", right=True),
    Column("At (UTC)"),
    Column("Sessions", right=True),
    Column("Fitness"),
    Column("Lift", right=True),
    Column("Interval"),
    Column("p / needed"),
    Column("Alpha spent", right=True),
    Column("Outcome"),
)
_DIMENSIONS: Final = (
    Column("Dimension"),
    Column("Sessions", right=True),
    Column("Control", right=True),
    Column("Treatment", right=True),
    Column("Difference", right=True),
    Column("p", right=True),
    Column("p adjusted", right=True),
    Column("Counts"),
)
_SNAPSHOTS: Final = (
    Column("At (UTC)"),
    Column("Experiment"),
    Column("Replaced by"),
    Column("Version"),
    Column("SHA-256"),
    Column("File"),
)


def put_experiment(experiment: Experiment, now: datetime) -> None:
    """Write what is most important about an experiment."""
    put(styled(f"Experiment {experiment.experiment_id}", bold=True))
    put_fields(_summary(experiment, now))


def _summary(experiment: Experiment, now: datetime) -> Iterable[tuple[str, str]]:
    yield "Hypothesis", safe_lines(experiment.hypothesis)
    yield "Layer", experiment.layer
    yield "Status", standing(experiment)
    yield ("What next" if experiment.active else "Result"), outlook(experiment, now)
    yield (
        "Sessions",
        f"{experiment.control_sessions} control + {experiment.treatment_sessions} treatment assigned,"
        f" {experiment.control_fitness.sessions} + {experiment.treatment_fitness.sessions} scored",
    )
    yield "Fitness", f"{fitness(experiment)}  (control → treatment)"
    yield "Lift", percent(experiment.lift, signed=True)
    look = experiment.last_look
    yield "p / needed", evidence(look) + (f"  at look {look.k}" if look else "  (no look yet)")
    yield "Created", f"{moment(experiment.created_at)} UTC"
    if experiment.active:
        extended = f", extended {experiment.extensions} ×" if experiment.extensions else ""
        yield "Planned end", f"{moment(experiment.planned_end_at)} UTC{extended}"
        yield "At the latest", f"{moment(experiment.max_end_at)} UTC"
    else:
        yield "Ended", f"{moment(experiment.converged_at)} UTC"
        yield "Winner", experiment.winner or NONE
        yield "Promotion", _promotion(experiment)
        if experiment.watch_ends_at is not None:
            yield "Watched until", f"{moment(experiment.watch_ends_at)} UTC"
    if experiment.decision_id is not None:
        yield "Decision", safe_text(experiment.decision_id)


def put_details(details: ExperimentDetails, now: datetime) -> None:
    """Write an experiment with everything that led to where it stands."""
    experiment = details.experiment
    put_experiment(experiment, now)
    settings = experiment.parameters.experiments
    look = experiment.last_look
    put_fields(
        [
            ("Tests", (single_tests(look) if look else "") or NONE),
            (
                "Parameters",
                f"split {settings.traffic_split:g}, at least {settings.min_sample_size} sessions an arm,"
                f" confidence {percent(settings.confidence_level, 2)}, effect at least"
                f" {percent(settings.min_effect_size)}, a check every"
                f" {settings.auto_converge.check_interval_hours} h",
            ),
        ]
    )
    if details.forecast is not None and now < experiment.max_end_at:
        sentences = forecast_sentence(details.forecast, experiment), detectable_sentence(details.forecast)
        put_fields([("Forecast", "\n".join(filter(None, sentences)))])
    for variant in (experiment.control, experiment.treatment):
        _heading(variant.name.capitalize())
        _put_variant(variant)
    _heading("Difference")
    _put_changes(details.changes)
    _heading("Split and losses")
    put_fields(
        [("Sample ratio", _sample_ratio(details.sample_ratio)), ("Attrition", _attrition(details.attrition))]
    )
    _heading("Dimensions")
    put_table(_DIMENSIONS, _dimension_rows(details))
    looks = {"Looks": details.looks, "Looks for harm": details.harm_looks}
    if details.watch_looks:
        looks["Looks since the promotion"] = details.watch_looks
    for title, held in looks.items():
        _heading(title)
        _put_looks(held)
    _heading("Events")
    _put_events(details.events)


def _heading(title: str) -> None:
    put()
    put(styled(title, bold=True))


def _put_variant(variant: Variant) -> None:
    put(safe_lines(variant.description) or "(no description)")
    for key, value in variant.config.items():
        put(f"  {safe_text(key)} = {safe_text(json.dumps(value, ensure_ascii=False))}")
    for path, text in variant.files.items():
        lines = text.count("\n") + (not text.endswith("\n")) if text else 0
        put(f"  {safe_text(path)}: {lines} lines, {len(text)} characters")
    if not variant.changes_something:
        put("  changes nothing" if variant.name == "treatment" else "  as it is today")


def _promotion(experiment: Experiment) -> str:
    state: str = words(experiment.promotion)
    if experiment.promoted_at is not None:
        state = f"{state} (promoted {moment(experiment.promoted_at)} UTC)"
    return f"{state}: {safe_text(experiment.promotion_note, 400)}" if experiment.promotion_note else state


def _put_changes(changes: Sequence[Change]) -> None:
    """Write what the treatment changes: keys with both values, files line by line."""
    if not changes:
        put("none")
    for change in changes:
        if change.kind == "key":
            before = "(absent)" if change.before is None else safe_text(change.before, 200)
            put(f"{safe_text(change.name)}: {before} → {safe_text(change.after, 200)}")
            continue
        put(safe_text(change.name) + (" (new file)" if change.before is None else ""))
        lines = unified_diff((change.before or "").splitlines(), change.after.splitlines(), lineterm="")
        for line in islice(lines, 2, None):  # without the names of the two texts
            put(f"  {safe_text(line, 400)}")


def put_snapshots(snapshots: Sequence[Snapshot]) -> None:
    """Write what promotions and rollbacks have replaced."""
    put_table(
        _SNAPSHOTS,
        [
            (
                moment(one.created_at),
                short(one.experiment_id),
                one.action if one.state == "applied" else f"{one.action}, {one.state}",
                one.version_id,
                "(none)" if one.sha256 is None else one.sha256[:12],
                safe_text(one.path, 400),
            )
            for one in snapshots
        ],
    )


def _sample_ratio(ratio: SampleRatio) -> str:
    told = (
        f"{ratio.control} + {ratio.treatment} assigned, {percent(ratio.expected_treatment_share)} planned for"
        f" treatment; Bayes factor {ratio.bayes_factor:.2g} (a mismatch from 100 on),"
        f" p = {p_value(ratio.p_value)}"
    )
    return f"{told}: ! mismatch" if ratio.mismatch else told


def _attrition(attrition: Attrition) -> str:
    told = (
        f"scored {attrition.control_scored} of {attrition.control_assigned} control and"
        f" {attrition.treatment_scored} of {attrition.treatment_assigned} treatment sessions that are old"
        f" enough; p = {p_value(attrition.p_value)}"
    )
    return f"{told}: ! one arm loses more" if attrition.suspicious else told


def _dimension_rows(details: ExperimentDetails) -> Iterable[Sequence[str]]:
    for name, row in details.dimensions.items():
        yield (
            name,
            f"{row.control_sessions} + {row.treatment_sessions}",
            half_up(row.control, 3),
            half_up(row.treatment, 3),
            half_up(row.difference, 3, signed=True),
            p_value(row.p_value),
            p_value(row.p_adjusted),
            "yes" if row.counts else "no",
        )


def _put_looks(looks: Sequence[Look]) -> None:
    if not looks:
        put("none so far")
        return
    put_table(
        _LOOKS,
        [
            (
                str(look.k),
                moment(look.at),
                f"{look.control_sessions} + {look.treatment_sessions}",
                f"{half_up(look.control_fitness, 3)} → {half_up(look.treatment_fitness, 3)}",
                percent(look.lift, signed=True),
                interval(look.lift_interval),
                evidence(look),
                half_up(look.alpha_spent, 5),
                words(safe_text(look.outcome)),
            )
            for look in looks
        ],
    )


def interval(value: Interval | None) -> str:
    """Return a confidence interval of a relative difference."""
    if value is None:
        return NONE
    return f"{percent(value.lower, signed=True)} to {percent(value.upper, signed=True)}"


def _put_events(events: Sequence[Event]) -> None:
    for event in reversed(events):
        changes = ", ".join(
            f"{name} {_shown(event.before.get(name))} → {_shown(after)}"
            for name, after in event.after.items()
            if name in event.before
        )
        reason = f": {safe_text(event.reason)}" if event.reason else ""
        told = f"{moment(event.at)}  {safe_text(event.actor)}  {words(safe_text(event.action))}{reason}"
        put(f"{told} ({changes})" if changes else told)


def _shown(value: Any) -> str:
    return safe_text(value if isinstance(value, str) else json.dumps(value), 200)
