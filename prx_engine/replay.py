"""Replay: a recorded stream of sessions decided again, by the engine itself, under settings of choice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import tomlkit

from prx_engine.clock import as_utc, format_time
from prx_engine.configuration import Parameters, SelfEvolution
from prx_engine.configuration.overriding import parameters_with
from prx_engine.dimensions import Layer
from prx_engine.engine import Engine
from prx_engine.errors import InvalidInput
from prx_engine.records import CheckResult, Experiment, Rejected, Replay
from prx_engine.scoring.metrics import SessionUpdate

_BATCH: Final = 2_000
_OPEN: Final[Layer] = "L2"
"""Layer of a replay whose lines state an experiment instead of one; it makes no difference."""


@dataclass(frozen=True, slots=True)
class _Told:
    """One line, and when its session started."""

    started_at: datetime
    number: int
    update: SessionUpdate


class _SteppedClock:
    """Tells the time of the stream."""

    def __init__(self, time: datetime) -> None:
        self.time = time

    def now(self) -> datetime:
        """Return the time that the replay has come to."""
        return self.time


def replay(
    lines: Iterable[bytes],
    settings: SelfEvolution,
    overrides: Mapping[str, Any] | None = None,
    layer: Layer | None = None,
    name: str = "-",
) -> Replay:
    """Run an experiment over recorded sessions, in the order of their time, on a throw-away database.

    The experiment is created when the first session starts; every scheduled check is run when it is due, up
    to the first one after the last session.

    Args:
        lines: native session lines that state a variant.
        settings: the present configuration.
        overrides: dotted key → value to use instead.
        layer: whose experiment is replayed; needed if the lines state several.
        name: of the file, for messages.

    Raises:
        InvalidInput: if a setting is not allowed, or if the lines are not about one experiment.
    """
    parameters = parameters_with(settings, overrides or {})
    told, rejected = _parsed(lines, name)
    stream = sorted(_of_layer(told, layer), key=lambda line: (line.started_at, line.number))
    with TemporaryDirectory(prefix="prx-replay-") as folder:
        config = Path(folder, "config.toml")
        config.write_text(_configuration(parameters), encoding="utf-8")
        clock = _SteppedClock(stream[0].started_at)
        with Engine.open(Path(folder, "replay.db"), config=config, clock=clock, actor="replay") as engine:
            experiment = engine.create_experiment(_OPEN, "as recorded", hypothesis=f"replay of {name}")
            checks = list(_checks(engine, clock, experiment, stream))
            details = engine.details(experiment.experiment_id)
    return Replay(
        file=name, lines=len(told) + len(rejected), rejected=rejected, checks=checks, details=details
    )


def _parsed(lines: Iterable[bytes], name: str) -> tuple[list[tuple[int, SessionUpdate]], list[Rejected]]:
    told, rejected = [], []
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        if not line:
            continue
        try:
            told.append((number, SessionUpdate.of_json(line)))
        except InvalidInput as error:
            text = line.decode("utf-8", "replace")
            rejected.append(Rejected(file=name, line=number, problem=str(error), text=text))
    return told, rejected


def _of_layer(told: Sequence[tuple[int, SessionUpdate]], layer: Layer | None) -> list[_Told]:
    """Return the lines of the sessions whose variant is stated, with their time."""
    stated = {update.layer or update.experiment_id for _, update in told if update.variant is not None}
    if not stated:
        raise InvalidInput("no line states a variant: there is nothing to compare")
    if layer is None and len(stated) > 1:
        raise InvalidInput(f"the lines are about {', '.join(sorted(map(str, stated)))}: name the layer")
    if layer is not None and not any(update.layer in (None, layer) for _, update in told if update.variant):
        raise InvalidInput(
            f"no line states a variant of {layer}; they are of {', '.join(sorted(map(str, stated)))}"
        )
    chosen = {
        update.session_id
        for _, update in told
        if update.variant is not None and layer in (None, update.layer)
    }
    starts: dict[str, datetime] = {}
    for _, update in told:
        if update.session_id in chosen and update.started_at is not None:
            starts.setdefault(update.session_id, as_utc(update.started_at, "started_at"))
    if not starts:
        raise InvalidInput("no session of the experiment says when it started")
    return [
        _Told(starts[update.session_id], number, update)
        for number, update in told
        if update.session_id in starts and (update.variant is None or layer in (None, update.layer))
    ]


def _configuration(parameters: Parameters) -> str:
    """Return a configuration with these parameters that decides alone."""
    data = parameters.model_dump(mode="json")
    data["experiments"]["enabled"] = True
    data["experiments"]["auto_converge"]["enabled"] = True
    return tomlkit.dumps({"self_evolution": data})


def _checks(
    engine: Engine, clock: _SteppedClock, experiment: Experiment, stream: Sequence[_Told]
) -> Iterator[CheckResult]:
    """Feed the stream and run the checks that fall between its sessions, until one concludes."""
    waiting: list[_Told] = []
    due = experiment.next_check_at
    for line in stream:
        while due is not None and line.started_at >= due:
            _feed(engine, clock, waiting, due)
            (result,) = engine.check(experiment.experiment_id)
            yield result
            due = None if result.outcome == "concluded" else result.next_check_at
        if due is None:
            return
        waiting.append(line)
    if due is not None:
        _feed(engine, clock, waiting, due)
        yield from engine.check(experiment.experiment_id)


def _feed(engine: Engine, clock: _SteppedClock, waiting: list[_Told], now: datetime) -> None:
    """Record what has come until now, and forget it."""
    clock.time = now
    for first in range(0, len(waiting), _BATCH):
        engine.import_lines([_line(line.update) for line in waiting[first : first + _BATCH]])
    waiting.clear()


def _line(update: SessionUpdate) -> bytes:
    fields = {**update.report, "session_id": update.session_id, "source": update.source}
    if update.started_at is not None:
        fields["started_at"] = format_time(update.started_at)
    if update.cluster is not None:
        fields["cluster"] = update.cluster
    if update.variant is not None:
        fields |= {"layer": _OPEN, "variant": update.variant}
    return json.dumps(fields).encode()
