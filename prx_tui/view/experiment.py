"""One experiment: where it stands, what happens next and why, and what led there."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from prx_engine.dimensions import DIMENSIONS, Dimension
from prx_engine.ids import short
from prx_engine.records import (
    Change,
    DimensionScore,
    Event,
    Experiment,
    ExperimentDetails,
    FitnessScore,
    Look,
    Variant,
)
from prx_tui.formatting import NONE, half_up, moment, p_value, percent
from prx_tui.text import safe_lines, safe_text
from prx_tui.view.columns import GAP
from prx_tui.view.experiments import interval_words
from prx_tui.view.spans import Line, Span, Tone, fit, join_fitting, line, width_of, wrap
from prx_tui.view.status import (
    Notice,
    status_cell,
)

_DAY: Final = timedelta(days=1)
_STAGES: Final = ("create", "run", "evaluate", "converge")
_LONGEST_DIFF: Final = 2_000
_LONGEST_LINE: Final = 1_000
_ENOUGH_FOR_A_RATE: Final = 5
_ROOMY_TABLE: Final = 100
_LESS_IMPORTANT_LOOKS: Final = (4, 7, 2, 6)
"""On a narrow terminal the interval gives way, then the sum of alpha, the sessions, and z."""

_NOTABLE: Final = 0.05
_SAME_WEIGHT: Final = 0.005


def title(experiment: Experiment, found: Sequence[Notice], width: int) -> Line:
    """Return the first line: hypothesis at the left, layer, ids and status at the right."""
    right = join_fitting(
        [
            (0, line(Span(experiment.layer, "strong"))),
            (1, line(Span(f"…{short(experiment.experiment_id)}", "dim"))),
            (2, line(Span(_decision(experiment), "dim"))),
            (0, status_cell(experiment, found)),
        ],
        max(width * 2 // 3, 24),
        " · ",
    )
    hypothesis = line(Span(safe_text(experiment.hypothesis), "strong"))
    left = max(width - width_of(right) - 2, 1)
    return line(fit(hypothesis, left), "  ", right)


def lifecycle_bar(experiment: Experiment, now: datetime, width: int) -> Line:
    """Return create → run → evaluate → converge with where it stands, the day and the look."""
    bar = _stages(experiment)
    look = experiment.last_look
    pieces = [(0, bar), (1, line(_day_words(experiment, now)))]
    if look is not None:
        pieces.append((2, line(f"look {look.k}")))
    if experiment.extensions:
        times = "once" if experiment.extensions == 1 else f"{experiment.extensions} times"
        pieces.append((3, line(f"extended {times}")))
    return join_fitting(pieces, width)


def sessions_line(experiment: Experiment, details: ExperimentDetails | None) -> list[Line]:
    """Return how many sessions each arm has, and whether the arms are comparable."""
    needed = experiment.parameters.experiments.min_sample_size
    arms = [
        line(Span(f"{score_name} ", tone), f"{score.sessions} scored of {assigned} assigned")
        for score_name, tone, score, assigned in _arms(experiment)
    ]
    lines = [line("Sessions: ", arms[0], " · ", arms[1], Span(f" · each needs {needed}", "dim"))]
    if details is None:
        return lines
    ratio, losses = details.sample_ratio, details.attrition
    planned = f"planned share {half_up(ratio.expected_treatment_share, 2)}"
    share = ratio.treatment / (ratio.control + ratio.treatment) if ratio.control + ratio.treatment else None
    tone: Tone = "attention" if ratio.mismatch else ""
    lines.append(
        line(
            "Sample ratio: ",
            Span("mismatch" if ratio.mismatch else "as planned", tone),
            f": treatment has {half_up(share, 2)}, {planned};"
            f" Bayes factor {_factor(ratio.bayes_factor)} (100 is a mismatch), p {p_value(ratio.p_value)}",
        )
    )
    lines.append(
        line(
            "Attrition: ",
            Span(
                "the arms differ" if losses.suspicious else "alike", "attention" if losses.suspicious else ""
            ),
            f": scored {losses.control_scored} of {losses.control_assigned} in control,"
            f" {losses.treatment_scored} of {losses.treatment_assigned} in treatment;"
            f" p {p_value(losses.p_value)} (below .001 they differ)",
        )
    )
    return lines


def _arms(experiment: Experiment) -> list[tuple[str, Tone, FitnessScore, int]]:
    return [
        ("control", "control", experiment.control_fitness, experiment.control_sessions),
        ("treatment", "treatment", experiment.treatment_fitness, experiment.treatment_sessions),
    ]


# Tabs


def dimension_lines(details: ExperimentDetails, width: int) -> list[Line]:
    """Return a table of the dimensions: both arms, difference, p, weight, data, and what does not count."""
    roomy = width >= _ROOMY_TABLE
    heads = ("dimension", "control", "treatment", "diff", "p × n", "weight", "with data")
    table = [_dimension_row(details, name, roomy=roomy) for name in DIMENSIONS]
    lines = _table(heads, table, width, right={1, 2, 3, 4, 5})
    left_out = [name for name in DIMENSIONS if not details.dimensions[name].counts]
    if left_out and not roomy:
        reasons = "; ".join(f"{name}: {_why_not(details, name)}" for name in left_out)
        lines += wrap(line(Span(f"Not counted: {reasons}.", "attention")), width, "  ")
    compared = sum(one.p_adjusted is not None for one in details.dimensions.values())
    note = f"p × n is Welch's p times the {compared} dimensions compared, at most 1 (Bonferroni)."
    if left_out:
        note += " The weight of what does not count is spread over the others, alike in both arms."
    return [*lines, (), *wrap(line(Span(note, "dim")), width)]


def _dimension_row(details: ExperimentDetails, name: Dimension, *, roomy: bool) -> list[Line]:
    one = details.dimensions[name]
    weight = details.experiment.control_fitness.dimensions[name]
    tone: Tone = "strong" if one.p_adjusted is not None and one.p_adjusted < _NOTABLE else ""
    why_not = "" if one.counts or not roomy else f"  not counted: {_why_not(details, name)}"
    return [
        line(Span(name, "" if one.counts else "dim")),
        line(half_up(one.control, 3)),
        line(half_up(one.treatment, 3)),
        line(Span(half_up(one.difference, 3, signed=True), tone)),
        line(Span(p_value(one.p_adjusted), tone)),
        line(_weight_words(weight, roomy=roomy)),
        line(f"{one.control_sessions}/{one.treatment_sessions}", Span(why_not, "attention")),
    ]


def look_lines(details: ExperimentDetails, width: int) -> list[Line]:
    """Return all looks: p against the level, z against the boundary, and what followed; harm looks below."""
    lines = (
        _looks_table(details.looks, width) if details.looks else [line(Span("No look was held yet.", "dim"))]
    )
    if details.harm_looks:
        heading = "Harm: is the treatment worse? One-sided; it may stop the experiment before the first look."
        lines = [
            *lines,
            (),
            *wrap(line(Span(heading, "dim")), width),
            *_looks_table(details.harm_looks, width),
        ]
    if details.watch_looks:
        heading = "Since the promotion: are all sessions worse than control was? One-sided; it may roll back."
        lines = [
            *lines,
            (),
            *wrap(line(Span(heading, "dim")), width),
            *_looks_table(details.watch_looks, width),
        ]
    return lines


def change_lines(control: Variant, treatment: Variant, changes: Sequence[Change] = ()) -> list[Line]:
    """Return what the treatment changes: keys old → new, files as a unified diff.

    Args:
        control: today's configuration.
        treatment: the proposed one.
        changes: what was in the agent's files at creation, once it is read.
    """
    keys = {one.name: one.before or "absent" for one in changes if one.kind == "key"}
    texts = {one.name: one.before for one in changes if one.kind == "file" and one.before is not None}
    lines: list[Line] = []
    for name, variant in (("control", control), ("treatment", treatment)):
        if variant.description:
            tone: Tone = "control" if name == "control" else "treatment"
            lines.append(line(Span(f"{name}: ", tone), safe_text(variant.description)))
    if not treatment.changes_something:
        return [
            *lines,
            line(Span("The treatment changes no key and no file: the agent itself knows it.", "dim")),
        ]
    if treatment.config:
        lines += [(), *_config_lines(control.config | keys, treatment.config)]
    for path, text in treatment.files.items():
        lines += [(), *_file_lines(path, texts.get(path, control.files.get(path)), text)]
    return lines


def event_lines(events: Sequence[Event], width: int) -> list[Line]:
    """Return the log, the newest first: when, who, what, why, and what changed."""
    lines: list[Line] = []
    for event in events:
        head = line(
            Span(moment(event.at), "dim"),
            "  ",
            Span(safe_text(event.action.replace("_", " "), 40), "strong"),
            Span(f"  by {safe_text(event.actor, 40)}", "dim"),
            f"  {safe_text(event.reason, 400)}" if event.reason else "",
        )
        lines += wrap(head, width, " " * 18)
        for name in event.after:
            before, after = _value(event.before.get(name)), _value(event.after[name])
            change = line(Span(f"{safe_text(name, 60)}: ", "dim"), before, Span(" → ", "dim"), after)
            lines += [line(" " * 18, piece) for piece in wrap(change, max(width - 18, 20), "  ")]
    return lines or [line(Span("Nothing has happened yet.", "dim"))]


# The bar


def _decision(experiment: Experiment) -> str:
    name = safe_text(experiment.decision_id or NONE, 24)
    return name if name.casefold().startswith("decision") else f"decision {name}"


def _stages(experiment: Experiment) -> Line:
    at = {"running": 1, "evaluating": 2, "converged": 3, "cancelled": 3}[experiment.status]
    spans: list[Span] = []
    for index, name in enumerate(_STAGES):
        word = "cancelled" if index == 3 and experiment.status == "cancelled" else name
        if index:
            spans.append(Span(" ─── " if index <= at else " ┄┄┄ ", "" if index <= at else "dim"))
        if index == at:
            spans.append(Span(f"● {word}", "strong"))
        else:
            spans.append(Span(word, "" if index < at else "dim"))
    return tuple(spans)


def _day_words(experiment: Experiment, now: datetime) -> str:
    end = experiment.converged_at or now
    day = max(math.ceil((end - experiment.created_at) / _DAY), 1)
    planned = math.ceil((experiment.planned_end_at - experiment.created_at) / _DAY)
    most = math.ceil((experiment.max_end_at - experiment.created_at) / _DAY)
    if experiment.active and now >= experiment.max_end_at:
        return f"day {most} of at most {most}, overdue"
    return f"day {day} of {planned} (at most {most})"


# Tables


def _table(heads: Sequence[str], table: Sequence[Sequence[Line]], width: int, right: set[int]) -> list[Line]:
    """Return a table whose last column takes what is left and is cut with a mark."""
    widths = [max([len(head), *(width_of(row[index]) for row in table)]) for index, head in enumerate(heads)]
    widths[-1] = max(width - sum(widths[:-1]) - GAP * (len(widths) - 1), len(heads[-1]))
    gap = " " * GAP

    def joined(cells: Sequence[Line]) -> Line:
        fitted = [fit(cell, widths[i], right=i in right) for i, cell in enumerate(cells)]
        parts: list[Line | str] = []
        for index, cell in enumerate(fitted):
            parts.extend((gap, cell) if index else (cell,))
        return fit(line(*parts), width)

    return [joined([line(Span(head, "dim")) for head in heads]), *map(joined, table)]


def _looks_table(looks: Sequence[Look], width: int) -> list[Line]:
    heads = [
        *("look", "when", "sessions", "lift", "(interval)", "p / needs", "z / boundary", "α spent"),
        "what followed",
    ]
    rows = [_look_cells(look) for look in looks]
    kept = list(range(len(heads)))
    for index in _LESS_IMPORTANT_LOOKS:
        natural = [max([len(heads[i]), *(width_of(cells[i]) for cells in rows)]) for i in kept]
        if sum(natural) + GAP * (len(kept) - 1) <= width:
            break
        kept.remove(index)
    table = [[cells[index] for index in kept] for cells in rows]
    right = {place for place, index in enumerate(kept) if index in (0, 3)}
    return _table([heads[index] for index in kept], table, width, right)


def _look_cells(look: Look) -> list[Line]:
    interval = look.lift_interval
    followed = safe_text(look.outcome.replace("_", " "), 40)
    return [
        line(str(look.k)),
        line(look.at.strftime("%m-%d %H:%M")),
        line(f"{look.control_sessions}/{look.treatment_sessions}"),
        line(percent(look.lift, signed=True)),
        line(Span(interval_words(interval.lower, interval.upper) if interval else NONE, "dim")),
        line(
            Span(p_value(look.p_value), "strong" if look.significant else ""),
            Span(f" / {p_value(look.alpha_threshold)}", "dim"),
        ),
        line(half_up(look.z, 2, signed=True), Span(f" / {half_up(look.boundary, 2)}", "dim")),
        line(p_value(look.alpha_spent)),
        line(Span("goes on" if followed == "look" else followed, "" if look.held else "dim")),
    ]


def _weight_words(score: DimensionScore, *, roomy: bool) -> str:
    if not score.counts:
        return "spread" if score.configured_weight else NONE
    used = half_up(score.weight, 2)
    if not roomy or abs(score.weight - score.configured_weight) < _SAME_WEIGHT:
        return used
    return f"{half_up(score.configured_weight, 2)} → {used}"


def _why_not(details: ExperimentDetails, name: Dimension) -> str:
    one = details.dimensions[name]
    if details.experiment.control_fitness.dimensions[name].configured_weight == 0:
        return "weight 0"
    if not one.control_sessions and not one.treatment_sessions:
        return "no data"
    if details.looks:
        return "fewer than 30 at look 1"
    least = details.experiment.parameters.fitness.min_sessions_for_score
    return f"fewer than {least}"


# Changes


def _config_lines(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Line]:
    width = min(max(len(key) for key in new), 60)
    lines = []
    for key, value in new.items():
        before = _value(old[key]) if key in old else "?"
        lines.append(
            line(
                fit(line(safe_text(key, 200)), width),
                "  ",
                Span(before, "bad"),
                Span(" → ", "dim"),
                Span(_value(value), "good"),
            )
        )
    return lines


def _file_lines(path: str, old: str | None, new: str) -> list[Line]:
    after = safe_lines(new).splitlines()
    if old is None:
        head = line(Span(safe_text(path, 200), "strong"), Span(f"  full text, {len(after)} lines", "dim"))
        return [head, *_shortened([line(Span(f"+{text}"[:_LONGEST_LINE], "good")) for text in after])]
    before = safe_lines(old).splitlines()
    diff = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    head = line(Span(safe_text(path, 200), "strong"), Span("  unchanged" if not diff else "", "dim"))
    return [head, *_shortened([_diff_line(text[:_LONGEST_LINE]) for text in diff])]


def _diff_line(text: str) -> Line:
    tones: dict[str, Tone] = {"+": "good", "-": "bad", "@": "dim"}
    return line(Span(text, tones.get(text[:1], "")))


def _shortened(lines: list[Line]) -> list[Line]:
    if len(lines) <= _LONGEST_DIFF:
        return lines
    more = f"… {len(lines) - _LONGEST_DIFF} more lines"
    return [*lines[:_LONGEST_DIFF], line(Span(more, "dim"))]


def _value(value: Any) -> str:
    if value is None:
        return NONE
    if isinstance(value, bool):
        return str(value).lower()
    return safe_text(value, 200)


def _factor(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.2g}" if value < 1e6 else f"{value:.0e}"


def _date(time: datetime) -> str:
    return time.strftime("%-d %b %H:%M")


def _days(time: datetime, start: datetime) -> float:
    return (time - start) / _DAY
