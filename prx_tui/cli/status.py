"""`prx evolution status`: the whole deployment in a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from prx_tui.cli.call import Call, common_options, pass_call
from prx_tui.cli.listing import outlook, sessions, short, standing
from prx_tui.cli.output import put, put_json, styled
from prx_tui.formatting import change, half_up, until, words
from prx_tui.text import safe_text

if TYPE_CHECKING:
    from prx_engine import Engine
    from prx_engine.records import DeploymentFitness, Experiment

_LATEST_ENDED: Final = 200
"""So many ended experiments are searched for a promotion that is not done."""


@click.command
@common_options
@pass_call
def status(call: Call) -> None:
    """Show fitness, active experiments and what needs attention.

    \b
    Examples:
      prx evolution status
      prx evolution status --json
    """
    with call.engine() as engine:
        now = engine.clock.now()
        present = engine.fitness()
        active = engine.experiments("active")
        ended = engine.experiments("converged", limit=_LATEST_ENDED)
        attention = list(_attention(engine, present, [*active, *ended], now))
        if call.json:
            put_json(
                {"fitness": present, "experiments": active, "counts": engine.counts(), "attention": attention}
            )
            return
    put(fitness_line(present))
    put(f"{len(active)} active {'experiment' if len(active) == 1 else 'experiments'}")
    for experiment in active:
        put(
            f"  {short(experiment.experiment_id)}  {experiment.layer}  {standing(experiment)},"
            f" {sessions(experiment)} sessions: {safe_text(experiment.hypothesis, 200)}"
        )
        put(f"            {outlook(experiment, now)}")
    put(styled("Needs attention:", bold=True) if attention else "Nothing needs attention")
    for line in attention:
        put(f"  {line}")


def fitness_line(present: DeploymentFitness) -> str:
    """Return the fitness of now and its trend."""
    if present.fitness.composite is None:
        if present.missing_sessions:
            return f"Fitness: unknown, {present.missing_sessions} more sessions are needed"
        return "Fitness: unknown, no dimension has enough data"
    line = f"Fitness: {half_up(present.fitness.composite, 2)} over {present.fitness.sessions} sessions"
    if present.trend is not None:
        line += f", {change(present.change, 2)} against 7 days ago ({present.trend})"
    return line


def _attention(
    engine: Engine, present: DeploymentFitness, experiments: Sequence[Experiment], now: datetime
) -> Iterator[str]:
    settings = engine.settings.experiments
    if not settings.enabled:
        yield "experiments are switched off: no new ones, no checks"
    if present.alert:
        yield (
            f"fitness {half_up(present.fitness.composite, 2)} is below the minimum acceptable"
            f" {half_up(present.minimum_acceptable, 2)}"
        )
    for experiment in experiments:
        name = f"{short(experiment.experiment_id)} ({experiment.layer})"
        if experiment.active:
            for block in experiment.blocked_by:
                yield f"{name}: {words(block)}; only an operator can promote it"
            if experiment.verdict is not None:
                yield f"{name}: verdict {words(experiment.verdict)} waits for an operator"
            if settings.enabled and experiment.next_check_at is not None and experiment.next_check_at <= now:
                yield f"{name}: check {until(experiment.next_check_at, now)}; does anything run the checks?"
        elif experiment.promotion in ("pending", "conflict") or experiment.promotion_note:
            why = f": {safe_text(experiment.promotion_note, 400)}" if experiment.promotion_note else ""
            yield f"{name}: promotion {experiment.promotion}{why}"
