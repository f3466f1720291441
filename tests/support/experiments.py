"""Experiments on a real store, filled with sessions that a test makes up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from prx_engine import Engine
from prx_engine.clock import format_time
from prx_engine.dimensions import Dimension, VariantName
from prx_engine.records import Event, Experiment

CHANGE = {"description": "shorter", "config": {"agent.prompt": "short"}}


def start(engine: Engine, **changes: object) -> Experiment:
    """Create an experiment in L2 whose treatment changes something."""
    fields: dict[str, object] = {"hypothesis": "a shorter prompt", "treatment": CHANGE, "control": "as it is"}
    return engine.create_experiment("L2", **(fields | changes))  # type: ignore[arg-type]


def feed(
    engine: Engine,
    experiment: Experiment,
    variant: VariantName,
    values: Sequence[float | None],
    *,
    first_hour: float = 0.0,
    hours: float = 24.0,
    dimension: Dimension = "response_relevance",
    name: str = "s",
) -> None:
    """Import sessions of one arm, spread over some hours since creation; None is one without a score."""
    lines = []
    for i, value in enumerate(values):
        started = experiment.created_at + timedelta(hours=first_hour + hours * i / len(values))
        line: dict[str, object] = {
            "session_id": f"{name}-{variant}-{first_hour:g}-{i}",
            "experiment_id": experiment.experiment_id,
            "variant": variant,
            "started_at": format_time(started),
        }
        if value is not None:
            line["scores"] = {dimension: value}
        lines.append(json.dumps(line).encode())
    report = engine.import_lines(lines)
    assert not report.rejected, report.rejected[0]
    assert not report.without_experiment


def around(mean: float, n: int, spread: float = 0.05) -> list[float]:
    """Values with this mean whose distribution is symmetric, so that Welch's test is pinned for them."""
    steps = 11
    return [round(mean + spread * (2 * (i * 7 % steps) / (steps - 1) - 1), 4) for i in range(n)]


def feed_both(
    engine: Engine,
    experiment: Experiment,
    control: float,
    treatment: float,
    n: int,
    *,
    first_hour: float = 0.0,
    hours: float = 24.0,
    spread: float = 0.05,
) -> None:
    """Import n sessions of each arm around two means."""
    means: dict[VariantName, float] = {"control": control, "treatment": treatment}
    for variant, mean in means.items():
        feed(engine, experiment, variant, around(mean, n, spread), first_hour=first_hour, hours=hours)


def at(experiment: Experiment, hours: float) -> datetime:
    """A moment in hours since creation."""
    return experiment.created_at + timedelta(hours=hours)


def log(
    engine: Engine, experiment: Experiment
) -> list[tuple[str, str, dict[str, object], dict[str, object]]]:
    """Events in order of time: action, actor, before, after."""
    events: list[Event] = list(reversed(engine.events(experiment.experiment_id)))
    return [(event.action, event.actor, event.before, event.after) for event in events]


def actions(engine: Engine, experiment: Experiment) -> list[str]:
    return [action for action, *_ in log(engine, experiment)]
