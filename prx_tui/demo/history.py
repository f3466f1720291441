"""The demo's history: every session is recorded and every check is run, at its time on the demo's clock."""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Literal

from prx_engine.dimensions import Layer, VariantName
from prx_engine.engine import Engine
from prx_engine.errors import WrongState
from prx_engine.records import Experiment
from prx_engine.sessions.assignment import treatment_share
from prx_tui.demo.cast import FIRST_DAY, FIRST_PROMPT, HISTORY, PROMPT_FILE, Act, Change
from prx_tui.demo.clock import DEMO_NOW
from prx_tui.demo.deployment import Deployment
from prx_tui.demo.workload import Arrival, Arrivals, Behaviour, base_at, lines, measured

CHECK_DELAY: Final = timedelta(seconds=20)
"""A worker that polls comes a little after the scheduled time."""

LAYER_TAKEN: Final = timedelta(hours=5)
"""The agent comes back later with a proposal for a layer that is taken."""

Fallback = Literal["fallback"]

Progress = Callable[[float], None]
"""Told the share of the history that is made, 0 to 1."""


class World:
    """The truth that the demo's experiments find out about: what each change does, and which are the default.

    Args:
        seed: of the demo.
        changes: all that may be proposed.
    """

    def __init__(self, seed: int, changes: tuple[Change, ...]) -> None:
        self.seed = seed
        self._changes = {change.decision: change for change in changes}
        self._promoted: list[Change] = []
        self.prompt = FIRST_PROMPT
        self.last_win_at: datetime | None = None

    def change(self, experiment: Experiment) -> Change | None:
        """Return the change that an experiment tests; None if the demo's agent did not propose it."""
        return self._changes.get(experiment.decision_id or "")

    def read_promotions(self, engine: Engine) -> None:
        """Take as the default what the engine has promoted by now."""
        ended = sorted(engine.experiments("converged"), key=_end)
        won = [_end(experiment) for experiment in ended if experiment.conclusion == "treatment_wins"]
        self.last_win_at = won[-1] if won else None
        applied = [experiment for experiment in ended if experiment.promotion == "applied"]
        self._promoted = [change for e in applied if (change := self.change(e)) is not None]
        prompts = [e.treatment.files[PROMPT_FILE] for e in applied if PROMPT_FILE in e.treatment.files]
        self.prompt = prompts[-1] if prompts else FIRST_PROMPT

    def behaviour(self, started_at: datetime, treatments: list[Change]) -> Behaviour:
        """Return what a session is like that runs the default with some treatments."""
        effects = (change.effect for change in (*self._promoted, *treatments))
        return sum(effects, base_at(started_at, FIRST_DAY))

    def variant(self, session_id: str, experiment: Experiment, change: Change) -> VariantName | Fallback:
        """Return what the agent runs a session as; a fallback is control where it should be treatment."""
        split = experiment.parameters.experiments.traffic_split
        if treatment_share(session_id, experiment.experiment_id) >= split:
            return "control"
        chance = random.Random(f"fall back {self.seed} {session_id}").random()
        return "fallback" if chance < change.falls_back else "treatment"


def _end(experiment: Experiment) -> datetime:
    return experiment.converged_at or experiment.max_end_at


def propose(engine: Engine, world: World, change: Change) -> Experiment:
    """Create the experiment of a change to the present default."""
    control, treatment = change.variants(world.prompt)
    return engine.create_experiment(
        change.layer,
        treatment,
        hypothesis=change.hypothesis,
        control=control,
        decision_id=change.decision,
        **change.options,
    )


def make_history(
    deployment: Deployment, world: World, progress: Progress | None = None, end: datetime = DEMO_NOW
) -> Arrivals:
    """Make the history of a deployment up to its end, and return the arrivals to go on with."""
    with deployment.engine("agent") as agent, deployment.engine("dana") as operator:
        history = _History(deployment, world, agent, operator)
        history.play(end, progress or (lambda share: None))
        return history.arrivals


class _History:
    def __init__(self, deployment: Deployment, world: World, agent: Engine, operator: Engine) -> None:
        self.arrivals = Arrivals(deployment.seed, FIRST_DAY)
        self._world = world
        self._clock = deployment.clock
        self._agent = agent
        self._operator = operator
        self._running: dict[str, tuple[Experiment, Change]] = {}
        # The number keeps apart what happens at the same time, in the order in which it was planned.
        self._agenda: list[tuple[datetime, int, Callable[[], None]]] = []
        self._planned = 0

    def play(self, end: datetime, progress: Progress) -> None:
        for change in HISTORY:
            if change.at is not None:
                self._plan(FIRST_DAY + change.at, partial(self._propose, change))
        while self._agenda and self._agenda[0][0] <= end:
            moment, _, action = heapq.heappop(self._agenda)
            self._clock.move_to(moment)
            self._record_until(moment)
            action()
            progress((moment - FIRST_DAY) / (end - FIRST_DAY))
        self._clock.move_to(end)
        self._record_until(end)
        progress(1.0)

    def _plan(self, moment: datetime, action: Callable[[], None]) -> None:
        self._planned += 1
        heapq.heappush(self._agenda, (moment, self._planned, action))

    def _propose(self, change: Change) -> None:
        if any(other.layer == change.layer for _, other in self._running.values()):
            self._plan(self._clock.now() + LAYER_TAKEN, partial(self._propose, change))
            return
        experiment = propose(self._agent, self._world, change)
        self._running[experiment.experiment_id] = (experiment, change)
        self._plan_check(experiment.experiment_id, experiment.next_check_at)
        for act in change.acts:
            moment = experiment.created_at + act.after
            self._plan(moment, partial(self._act, experiment.experiment_id, act))

    def _plan_check(self, experiment_id: str, scheduled: datetime | None) -> None:
        if scheduled is not None:
            self._plan(scheduled + CHECK_DELAY, partial(self._check, experiment_id))

    def _check(self, experiment_id: str) -> None:
        if experiment_id not in self._running:
            return
        # All of them, as a worker does: that also watches what was promoted.
        for result in self._agent.check():
            if result.outcome == "concluded":
                self._ended(result.experiment_id)
            elif result.experiment_id == experiment_id:
                self._plan_check(experiment_id, result.next_check_at)

    def _act(self, experiment_id: str, act: Act) -> None:
        with suppress(WrongState):
            # The engine may have concluded before the operator came to it.
            getattr(self._operator, act.verb)(experiment_id, act.reason)
            self._ended(experiment_id)

    def _ended(self, experiment_id: str) -> None:
        self._running.pop(experiment_id, None)
        self._world.read_promotions(self._agent)

    def _record_until(self, moment: datetime) -> None:
        text = (json.dumps(line).encode() for a in self.arrivals.until(moment) for line in self._lines(a))
        self._agent.import_lines(text)

    def _lines(self, arrival: Arrival) -> Iterator[dict[str, object]]:
        treated = {
            change.decision: (
                change,
                self._world.variant(arrival.session_id, experiment, change) == "treatment",
            )
            for experiment, change in self._running.values()
        }
        treatments = [change for change, is_treated in treated.values() if is_treated]
        behaviour = self._world.behaviour(arrival.started_at, treatments)
        metrics = measured(self._world.seed, arrival.session_id, behaviour)
        variants: list[tuple[Layer, VariantName]] = [
            (change.layer, "treatment" if is_treated else "control")
            for change, is_treated in treated.values()
        ]
        return lines(arrival, metrics, variants)
