"""Deployments for tests of the screens, made through the engine under a clock that stands at will.

Run it to look at one: ``python -m tests.prx_tui.scenes busy FOLDER``, then
``prx dashboard --database FOLDER/prx.db``.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from prx_engine import Engine
from prx_engine.clock import format_time
from tests.support.clock import ManualClock

NOW = datetime(2026, 6, 8, 10, 0, tzinfo=UTC)
_GOLDEN = (math.sqrt(5) - 1) / 2
_SHAPE = {
    "response_relevance": (0.74, 0.30),
    "task_completion": (0.80, 0.36),
    "response_latency": (0.66, 0.44),
    "token_efficiency": (0.70, 0.36),
    "memory_precision": (0.68, 0.30),
}

SCENES: dict[str, Callable[[Scene], None]] = {}


class Scene:
    """A deployment under construction.

    Args:
        folder: database and configuration are written here.
        now: where the clock stands when the scene is ready.
    """

    def __init__(self, folder: Path, now: datetime = NOW) -> None:
        self.folder = folder
        self.now = now
        self.clock = ManualClock(now - timedelta(days=60))
        self._numbers = count(1)
        self._sessions = count(1)
        self.engine = self.open()

    def open(self) -> Engine:
        """Open another engine on the same files, with the scene's clock."""
        return Engine.open(
            self.folder / "prx.db",
            config=self.folder / "config.toml",
            clock=self.clock,
            ids=self._id,
            actor="operator",
        )

    def configure(self, text: str) -> None:
        """Write the configuration file."""
        (self.folder / "config.toml").write_text(text)

    def at(self, *, days: float) -> None:
        """Put the clock some days before now."""
        self.clock.set(self.now - timedelta(days=days))

    def sessions(
        self,
        start: float,
        end: float,
        number: int,
        *,
        layer: str | None = None,
        control: float = 0.0,
        treatment: float = 0.0,
        share: float = 0.5,
        scored: float = 1.0,
    ) -> None:
        """Record sessions evenly between two moments, given as days before now.

        Args:
            start, end: the earlier first.
            number: of sessions.
            layer: of the experiment that they state a variant of; none for the deployment alone.
            control, treatment: added to every score of that arm.
            share: of the treatment.
            scored: share of the sessions with scores.
        """
        self.at(days=end)
        lines = self._lines(start, end, number, layer, (control, treatment), share, scored)
        report = self.engine.import_lines(lines)
        assert not report.rejected, report.rejected[0]

    def _lines(
        self,
        start: float,
        end: float,
        number: int,
        layer: str | None,
        shifts: tuple[float, float],
        share: float,
        scored: float,
    ) -> Iterator[bytes]:
        for index in range(number):
            serial = next(self._sessions)
            treated = int((index + 1) * share) > int(index * share)
            days = start + (end - start) * index / number
            session: dict[str, object] = {
                "session_id": f"session-{serial}",
                "started_at": format_time((self.now - timedelta(days=days)).replace(microsecond=0)),
            }
            if layer is not None:
                session |= {"layer": layer, "variant": "treatment" if treated else "control"}
            if (serial * _GOLDEN * 7) % 1 < scored:
                session["scores"] = _scores(serial, shifts[treated])
            yield json.dumps(session).encode()

    def _id(self, created_at: datetime) -> str:
        millis = int(created_at.timestamp() * 1000)
        tail = int(next(self._numbers) * _GOLDEN * 2**32) % 2**32
        return f"{millis >> 16:08x}-{millis & 0xFFFF:04x}-7000-8000-0000{tail:08x}"


def _scores(serial: int, shift: float) -> dict[str, float]:
    dice = random.Random(serial)
    # A session that goes badly does so in all respects, as sessions do.
    mood = dice.gauss(0, 0.16)
    scores = {
        name: round(min(max(middle + shift + mood + dice.gauss(0, width / 3), 0.0), 1.0), 4)
        for name, (middle, width) in _SHAPE.items()
    }
    if serial % 9 == 0:
        scores["user_satisfaction"] = 1.0 if dice.random() < 0.7 else 0.0
    return scores


def _scene(build: Callable[[Scene], None]) -> Callable[[Scene], None]:
    SCENES[build.__name__] = build
    return build


@_scene
def empty(scene: Scene) -> None:
    """Nothing at all."""


@_scene
def busy(scene: Scene) -> None:
    """All statuses and layers, nothing in trouble."""
    engine = scene.engine
    scene.at(days=40)
    engine.create_experiment(
        "L2",
        {
            "description": "Shorter system prompt with two examples",
            "config": {"agent.prompt_tokens": 640},
            "files": {
                "prompts/system.md": "You are PRX.\nBe brief.\nGive two examples.\nAsk when in doubt.\n"
            },
        },
        control={
            "description": "System prompt of May",
            "config": {"agent.prompt_tokens": 1200},
            "files": {"prompts/system.md": "You are PRX.\nBe thorough.\nAsk when in doubt.\n"},
        },
        hypothesis="Two examples instead of ten rules make answers more relevant",
        decision_id="decision-0031",
        min_sample_size=60,
    )
    scene.sessions(40, 33.5, 420, layer="L2", treatment=0.09)
    for day in range(39, 32, -1):
        scene.at(days=day)
        engine.check()
    scene.at(days=30)
    dropped = engine.create_experiment(
        "L1", "remember 20", hypothesis="Twenty memories are enough", decision_id="decision-0034"
    )
    scene.sessions(30, 28.5, 40, layer="L1")
    scene.at(days=28)
    engine.cancel(dropped.experiment_id, "started with the wrong memory index")
    scene.at(days=27)
    engine.create_experiment(
        "L3", "small model first", hypothesis="Route everything to the small model first", min_sample_size=60
    )
    scene.sessions(27, 23.5, 240, layer="L3", treatment=-0.12)
    for day in (26, 25, 24, 23):
        scene.at(days=day)
        engine.check()
    _running(scene)


def _running(scene: Scene) -> None:
    engine = scene.engine
    scene.at(days=9.86)
    engine.create_experiment(
        "L3",
        {
            "description": "Sonnet for simple code",
            "config": {"router.simple_code": "sonnet", "router.retries": 2},
        },
        control={"config": {"router.simple_code": "opus", "router.retries": 1}},
        hypothesis="Route simple coding to Sonnet",
        decision_id="decision-0040",
    )
    scene.sessions(9.86, 0.02, 590, layer="L3", treatment=0.004)
    scene.at(days=4.86)
    engine.create_experiment(
        "L2",
        {
            "description": "Plan before acting",
            "files": {"prompts/system.md": "You are PRX.\nPlan first, then act.\nBe brief.\n"},
        },
        control={"files": {"prompts/system.md": "You are PRX.\nBe brief.\n"}},
        hypothesis="A plan before the first tool call completes more tasks",
        decision_id="decision-0042",
    )
    scene.sessions(4.86, 0.02, 310, layer="L2", treatment=0.02)
    scene.at(days=1.8)
    engine.create_experiment(
        "L1", "keep 30 memories", hypothesis="Keep 30 memories, not 50", decision_id="decision-0044"
    )
    scene.sessions(1.8, 0.02, 84, layer="L1")
    for day in range(9, -1, -1):
        scene.at(days=day + 0.01)
        engine.check()


@_scene
def trouble(scene: Scene) -> None:
    """A mismatch, attrition with an overdue check, a verdict that waits, and fitness below the alert."""
    engine = scene.engine
    scene.configure("[self_evolution.experiments.auto_converge]\nenabled = false\n")
    scene.at(days=6.9)
    engine.create_experiment(
        "L3", {"config": {"router.default": "haiku"}}, hypothesis="Haiku answers small talk as well"
    )
    scene.sessions(6.9, 0.02, 300, layer="L3", share=0.22, control=-0.3, treatment=-0.3)
    scene.at(days=5.8)
    engine.create_experiment(
        "L2",
        {"config": {"prompt.style": "terse"}},
        hypothesis="A terse style saves tokens",
        decision_id="decision-0051",
    )
    scene.sessions(5.8, 0.02, 420, layer="L2", control=-0.32, treatment=-0.16)
    for day in range(6, -1, -1):
        scene.at(days=day + 0.01)
        engine.check()
    scene.at(days=3.4)
    engine.create_experiment("L1", "forget faster", hypothesis="Forget after a week", traffic_split=0.5)
    scene.sessions(3.4, 1.2, 400, layer="L1", share=0.5, control=-0.3, treatment=-0.3, scored=0.8)


def build(name: str, folder: Path, now: datetime = NOW) -> Scene:
    """Make a scene and put the clock where it belongs."""
    scene = Scene(folder, now)
    SCENES[name](scene)
    scene.at(days=0)
    return scene


if __name__ == "__main__":
    target = Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    build(sys.argv[1], target, datetime.now(UTC))
