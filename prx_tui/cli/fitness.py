"""`prx evolution fitness`: how well the deployment does, now and over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from prx_tui.cli.call import Call, common_options, pass_call
from prx_tui.cli.durations import Duration
from prx_tui.cli.output import Column, draws_blocks, put, put_json, put_table, styled
from prx_tui.cli.reporting import option_given
from prx_tui.formatting import change, half_up, words

if TYPE_CHECKING:
    from prx_engine.records import DeploymentFitness, HistoryDay

_DAY: Final = 86_400
_BAR_CELLS: Final = 20
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


@click.command
@common_options
@click.option("--breakdown", is_flag=True, help="Each dimension with its weight and contribution.")
@click.option("--history", is_flag=True, help="One row a UTC day instead of the present.")
@click.option(
    "--last",
    type=Duration("hdw", bare=False),
    default="30d",
    show_default=True,
    metavar="TIME",
    help="How far back the history goes: 30d, 4w or 48h.",
)
@pass_call
@click.pass_context
def fitness(context: click.Context, call: Call, breakdown: bool, history: bool, last: float) -> None:
    """Show the fitness of all sessions of the last hours, its trend, and its history.

    \b
    Examples:
      prx evolution fitness
      prx evolution fitness --breakdown
      prx evolution fitness --history --last 30d
    """
    if option_given(context, "last") and not history:
        raise click.UsageError("--last needs --history")
    if breakdown and history:
        raise click.UsageError("--breakdown and --history are two views; give one of them")
    with call.engine() as engine:
        if history:
            days = engine.history(max(math.ceil(last / _DAY), 1))
            if call.json:
                put_json(days)
            else:
                put_history(days)
            return
        present = engine.fitness()
        if call.json:
            put_json(present)
            return
        window = engine.settings.fitness.evaluation_window_hours
        minimum = engine.settings.fitness.min_sessions_for_score
    put(title(present))
    if breakdown:
        put()
        for line in breakdown_lines(present):
            put(line)
        put()
    put(trend_line(present))
    for remark in remarks(present, window, minimum, breakdown=breakdown):
        put(remark)


def title(present: DeploymentFitness) -> str:
    """Return the line that says the fitness."""
    return f"Current Fitness Score: {half_up(present.fitness.composite, 2)}"


def breakdown_lines(present: DeploymentFitness) -> list[str]:
    """Return the table of the dimensions; a ``*`` marks those that do not count."""
    lines = [_columns("Dimension", "Score", "Weight", "Contribution")]
    for name, dimension in present.fitness.dimensions.items():
        mark = "" if dimension.counts else " *"
        lines.append(
            _columns(
                f"{name}{mark}",
                half_up(dimension.score, 2),
                half_up(dimension.weight, 2),
                half_up(dimension.contribution, 3),
            )
        )
    return lines


def _columns(name: str, score: str, weight: str, contribution: str) -> str:
    return f"{name:<21}{score:<8}{weight:<8}{contribution}"


def trend_line(present: DeploymentFitness) -> str:
    """Return the line that compares with the window 7 days before."""
    if present.trend is None:
        return "Trend (last 7 days): – (too few sessions now or then)"
    # ASCII signs: this line is read by scripts too.
    signed = change(present.change, 2).replace("−", "-").replace("±", "+")
    return f"Trend (last 7 days): {signed} ({present.trend})"


def remarks(present: DeploymentFitness, window: int, minimum: int, *, breakdown: bool) -> list[str]:
    """Return what has to be known to read the figures right."""
    told = []
    sessions = present.fitness.sessions
    if present.missing_sessions:
        told.append(
            f"Too few sessions: {sessions} with scores in the last {window} h,"
            f" {present.missing_sessions} more are needed for a score"
        )
    uncounted = [
        name
        for name, dimension in present.fitness.dimensions.items()
        if not dimension.counts and dimension.configured_weight > 0
    ]
    if present.fitness.composite is None:
        if not present.missing_sessions:
            told.append(f"No dimension has data from {minimum} sessions")
    elif uncounted:
        which = "*" if breakdown else ", ".join(uncounted)
        told.append(
            f"Not counted: {which} (fewer than {minimum} sessions with data);"
            f" {'its weight is' if len(uncounted) == 1 else 'their weights are'} spread over the others"
        )
    if present.alert:
        told.append(
            styled(
                f"Alert: below the minimum acceptable fitness of {half_up(present.minimum_acceptable, 2)}",
                fg="red",
                bold=True,
            )
        )
    return told


def put_history(days: Sequence[HistoryDay]) -> None:
    """Write one row a day; where a terminal can draw them, with a bar from 0 to 1."""
    columns = [Column("Day"), Column("Fitness", right=True), Column("Sessions", right=True)]
    rows = [[day.day, half_up(day.fitness.composite, 3), str(day.fitness.sessions)] for day in days]
    if draws_blocks():
        columns.append(Column("0 to 1"))
        rows = [[*row, bar(day.fitness.composite)] for row, day in zip(rows, days, strict=True)]
    put_table(columns, rows)
    if not any(day.fitness.valid for day in days):
        put(f"No day has enough sessions for a score ({words('min_sessions_for_score')})")


def bar(value: float | None) -> str:
    """Return a value of 0–1 as a bar of block characters."""
    if value is None:
        return ""
    whole, rest = divmod(round(min(max(value, 0.0), 1.0) * _BAR_CELLS * 8), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")
