"""The sessions of a simulated agent: when they start, and what is measured in each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final

from prx_engine.dimensions import Layer, VariantName

SESSIONS_AN_HOUR: Final = 5.6
"""Mean over a working day."""

_HOURS: Final = (2, 1, 1, 1, 1, 2, 4, 8, 12, 14, 14, 12, 10, 12, 13, 13, 12, 10, 8, 6, 5, 4, 3, 2)
"""Shape of a day: relative traffic in each hour, UTC."""

_PEAK: Final = max(_HOURS) * 24 / sum(_HOURS)
_WEEKEND: Final = 0.65
_SATURDAY: Final = 5
_EDITION: Final = 19
"""Part of every seed: with this one the default seed tells everything that the demo wants to show."""

_ABANDONED: Final = 0.02
"""Share of the sessions that end before anything is measured."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a session is like on average: a score of 0–1 for each dimension, and how often users react.

    A change of configuration is a difference of behaviours.
    """

    relevance: float = 0.0
    completion: float = 0.0
    latency: float = 0.0
    efficiency: float = 0.0
    memory: float = 0.0
    satisfaction: float = 0.0
    feedback: float = 0.0

    def __add__(self, other: Behaviour) -> Behaviour:
        return Behaviour(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


BASE: Final = Behaviour(
    relevance=0.775,
    completion=0.735,
    latency=0.60,
    efficiency=0.53,
    memory=0.64,
    satisfaction=0.68,
    feedback=0.42,
)
"""The agent on the first day of its history."""

DRIFT_A_DAY: Final = Behaviour(relevance=0.00015, completion=0.0001)
"""What models and tools improve by themselves."""


def base_at(started: datetime, first_day: datetime) -> Behaviour:
    """Return the behaviour of a session without any change of configuration."""
    days = (started - first_day) / timedelta(days=1)
    drift = Behaviour(*(getattr(DRIFT_A_DAY, f.name) * days for f in fields(Behaviour)))
    return BASE + drift


@dataclass(frozen=True, slots=True)
class Arrival:
    """One session that begins.

    Attributes:
        session_id: the agent's own name of it.
        started_at: when.
    """

    session_id: str
    started_at: datetime


class Arrivals:
    """The sessions as they come: a Poisson process with days, nights and weekends.

    Args:
        seed: of the demo.
        start: nothing comes before.
    """

    def __init__(self, seed: int, start: datetime) -> None:
        self._random = random.Random(f"arrivals {seed}")
        self._next = start
        self._count = 0
        self._draw()

    def until(self, moment: datetime) -> Iterator[Arrival]:
        """Return the sessions that start before a moment and were not returned yet."""
        while self._next < moment:
            self._count += 1
            yield Arrival(f"s-{self._count:06d}", self._next)
            self._draw()

    def skip_to(self, moment: datetime) -> None:
        """Leave out the sessions before a moment."""
        while self._next < moment:
            self._draw()

    def _draw(self) -> None:
        while True:
            self._next += timedelta(hours=self._random.expovariate(SESSIONS_AN_HOUR * _PEAK))
            # Whole milliseconds, as an agent's log has them.
            self._next = self._next.replace(microsecond=self._next.microsecond // 1000 * 1000)
            weekend = _WEEKEND if self._next.weekday() >= _SATURDAY else 1.0
            if self._random.random() < weekend * _HOURS[self._next.hour] / max(_HOURS):
                return


def measured(seed: int, session_id: str, behaviour: Behaviour) -> dict[str, Any]:
    """Return the raw metrics of a session; empty if it was abandoned before anything was measured.

    Whatever order sessions are asked for in, the same session under the same behaviour measures the same.
    """
    draw = random.Random(f"{_EDITION} {seed} {session_id}")
    if draw.random() < _ABANDONED:
        return {}
    ease = draw.gauss(0.0, 0.04)
    metrics: dict[str, Any] = {}
    relevance = _near(draw, behaviour.relevance + ease, 0.05)
    metrics["relevance"] = [round(_near(draw, relevance, 0.04), 2) for _ in range(draw.randint(1, 4))]
    calls = draw.randint(6, 16)
    completion = _near(draw, behaviour.completion + ease, 0.06)
    metrics["tool_calls"] = calls
    metrics["tool_calls_succeeded"] = sum(draw.random() < completion for _ in range(calls))
    metrics["first_token_ms"] = _first_tokens(_near(draw, behaviour.latency + ease, 0.08))
    metrics["tokens"] = round(50_000 / 50 ** _near(draw, behaviour.efficiency + ease, 0.10))
    if draw.random() < 0.8:
        memory = behaviour.memory + ease
        metrics["recall_relevance"] = [round(_near(draw, memory, 0.10), 2) for _ in range(draw.randint(1, 3))]
    if draw.random() < behaviour.feedback:
        metrics |= _feedback(draw, behaviour.satisfaction + ease)
    return metrics


def _near(draw: random.Random, mean: float, deviation: float) -> float:
    return min(max(draw.gauss(mean, deviation), 0.0), 1.0)


def _first_tokens(score: float) -> list[int]:
    """Return three times to the first token whose median and 95th percentile both earn the score."""
    median, slow = 10_000 / 20**score, 30_000 / 30**score
    return [round(0.8 * median), round(median), round(median + (slow - median) / 0.9)]


def _feedback(draw: random.Random, satisfaction: float) -> dict[str, Any]:
    given = draw.choices(
        ("thumbs_up", "thumbs_down", "corrections"),
        (satisfaction, 0.6 * (1 - satisfaction), 0.4 * (1 - satisfaction)),
        k=draw.randint(1, 5),
    )
    return Counter(given)


def lines(
    arrival: Arrival, metrics: dict[str, Any], variants: Iterable[tuple[Layer, VariantName]]
) -> Iterator[dict[str, Any]]:
    """Return the native session lines of a session: its metrics once, and a line for each further layer."""
    head: dict[str, Any] = {"session_id": arrival.session_id, "started_at": arrival.started_at.isoformat()}
    first = {**head, **metrics}
    for layer, variant in variants:
        yield {**first, "layer": layer, "variant": variant}
        first = head
    if first is not head:
        yield first
