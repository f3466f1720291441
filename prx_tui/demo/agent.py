"""The simulated agent: it asks which variant each session gets, runs it, and records how it went."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from prx_engine.dimensions import LAYERS, Layer
from prx_engine.engine import Engine
from prx_engine.errors import PrxError
from prx_engine.records import Experiment
from prx_tui.demo.cast import NEXT, Change
from prx_tui.demo.clock import DEMO_NOW, DemoClock
from prx_tui.demo.deployment import Deployment
from prx_tui.demo.history import World, propose
from prx_tui.demo.workload import Arrival, Arrivals, measured

QUICK: Final = 2.5
"""Demo hours a real second until a treatment has won before the eyes of whoever watches."""

GENTLE: Final = 0.75
"""Demo hours a real second from then on."""

PAUSE_SECONDS: Final = 0.5
_MOST_SESSIONS_A_STEP: Final = 60
_SECONDS_TO_STOP: Final = 1.0
_THINKING: Final = timedelta(hours=6)
"""A layer is free for so long before the agent has an idea for it."""


class Agent:
    """The simulated agent, one step at a time.

    Args:
        engine: that it talks to.
        world: the truth about its changes.
        arrivals: its sessions.
        clock: the demo's.
    """

    def __init__(self, engine: Engine, world: World, arrivals: Arrivals, clock: DemoClock) -> None:
        self._engine = engine
        self._world = world
        self._arrivals = arrivals
        self._clock = clock
        self._ideas = list(NEXT)
        self._free_since: dict[Layer, datetime] = {}

    def step(self) -> None:
        """Do what has come up since the last step; an engine that refuses or fails is asked again later."""
        now = self._clock.now()
        with suppress(PrxError):
            self._world.read_promotions(self._engine)
            self._propose(now)
            active = self._active()
            for arrival in islice(self._arrivals.until(now), _MOST_SESSIONS_A_STEP):
                with suppress(PrxError):
                    self._run(arrival, active)
        # After a pause of the machine there are more than it should write at once: those never were.
        self._arrivals.skip_to(now)

    @property
    def has_seen_a_win(self) -> bool:
        """Tell whether a treatment has won since the dashboard was opened."""
        won = self._world.last_win_at
        return won is not None and won > DEMO_NOW

    def _active(self) -> dict[str, tuple[Experiment, Change]]:
        known = ((e, self._world.change(e)) for e in self._engine.experiments("active"))
        return {e.experiment_id: (e, change) for e, change in known if change is not None}

    def _run(self, arrival: Arrival, active: Mapping[str, tuple[Experiment, Change]]) -> None:
        for experiment, change in active.values():
            if self._world.variant(arrival.session_id, experiment, change) == "fallback":
                self._engine.record(arrival.session_id, layer=change.layer, variant="control")
        assigned = self._engine.assign(arrival.session_id).values()
        treated = {answer.experiment_id for answer in assigned if answer.variant == "treatment"}
        treatments = [change for experiment_id, (_, change) in active.items() if experiment_id in treated]
        behaviour = self._world.behaviour(arrival.started_at, treatments)
        metrics = measured(self._world.seed, arrival.session_id, behaviour)
        if metrics:
            self._engine.record(arrival.session_id, **metrics)

    def _propose(self, now: datetime) -> None:
        taken = {experiment.layer for experiment in self._engine.experiments("active")}
        for layer in LAYERS:
            if layer in taken:
                self._free_since.pop(layer, None)
            elif now - self._free_since.setdefault(layer, now) >= _THINKING:
                self._propose_for(layer)

    def _propose_for(self, layer: Layer) -> None:
        idea = next((change for change in self._ideas if change.layer == layer), None)
        if idea is not None:
            with suppress(PrxError):
                propose(self._engine, self._world, idea)
                self._ideas.remove(idea)


class AgentThread(threading.Thread):
    """Runs the agent, and the demo's clock, behind the dashboard.

    Args:
        deployment: where.
        world: the truth about its changes.
        arrivals: its sessions.
    """

    def __init__(self, deployment: Deployment, world: World, arrivals: Arrivals) -> None:
        super().__init__(name="demo agent", daemon=True)
        self._deployment = deployment
        self._world = world
        self._arrivals = arrivals
        self._stopping = threading.Event()

    def run(self) -> None:
        """Work until told to stop."""
        clock = self._deployment.clock
        clock.run(QUICK)
        with self._deployment.engine("agent") as engine:
            agent = Agent(engine, self._world, self._arrivals, clock)
            pace = QUICK
            while not self._stopping.wait(PAUSE_SECONDS):
                agent.step()
                if pace != GENTLE and agent.has_seen_a_win:
                    pace = GENTLE
                    clock.run(pace)

    def stop(self) -> None:
        """Stop soon, and wait for it for a moment."""
        self._stopping.set()
        self.join(_SECONDS_TO_STOP)
