"""Simulated experiments, from creation to their end, through the engine's analysis and decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context

import numpy as np

from prx_engine.experiments.analysis import Analysis, Subject, analyse
from tests.study.sampled import SampledEvidence
from tests.study.scenarios import SCENARIOS
from tests.study.worlds import Scenario
from tests.support.evidence import after, subject

_CHUNK = 50
_LEADING = 1.0
_EXTENSION_HOURS = 7


@dataclass
class Tally:
    """How the experiments of a scenario ended.

    Attributes:
        runs: how many there were.
        conclusions: how often each was reached.
        by_plan: how many were decided by the planned end.
        days: they lasted in all.
        looks: checks analysed in all.
    """

    runs: int = 0
    conclusions: Counter[str] = field(default_factory=Counter)
    by_plan: int = 0
    days: float = 0.0
    looks: int = 0

    def add(self, other: Tally) -> None:
        self.runs += other.runs
        self.conclusions += other.conclusions
        self.by_plan += other.by_plan
        self.days += other.days
        self.looks += other.looks


def experiment(scenario: Scenario, seed: int) -> Tally:
    """Run one experiment to its end."""
    rng = np.random.default_rng(seed)
    evidence = SampledEvidence(scenario, rng)
    maximum = scenario.settings.experiments.auto_converge.max_duration_hours
    present = subject(scenario.settings)
    passed = 0
    looks = 0
    while True:
        ahead = replace(present.schedule, closed=max(passed, present.schedule.closed)).next()
        assert ahead is not None
        passed = ahead
        if scenario.checks == "half missed" and passed < maximum and rng.random() < 0.5:
            continue
        found = analyse(present, evidence, passed)
        looks += 1
        conclusion = found.decision.conclusion
        wanted = conclusion == "treatment_wins" or passed == maximum
        if scenario.checks == "only when treatment would win" and not wanted:
            continue
        if conclusion is not None:
            planned = scenario.settings.experiments.default_duration_hours
            return Tally(1, Counter([conclusion]), int(passed <= planned), passed / 24, looks)
        present = after(present, found)
        if scenario.checks == "extended while it leads":
            present = _extended(present, found, passed)


def _extended(present: Subject, found: Analysis, hours: int) -> Subject:
    """An operator who likes what he sees asks for a look at an odd hour."""
    schedule = present.schedule
    leads = found.look is not None and found.look.z is not None and found.look.z > _LEADING
    end = max(schedule.planned_end, hours) + _EXTENSION_HOURS
    if not leads or end > schedule.maximum:
        return present
    return replace(present, schedule=replace(schedule, planned_end=end))


def _chunk(name: str, seeds: range) -> Tally:
    tally = Tally()
    for seed in seeds:
        tally.add(experiment(SCENARIOS[name], seed))
    return tally


def simulate(name: str, runs: int, processes: int = 1) -> Tally:
    """Run many experiments of a scenario; the same ones each time."""
    chunks = [range(first, min(first + _CHUNK, runs)) for first in range(0, runs, _CHUNK)]
    total = Tally()
    for part in _parts(name, chunks, processes):
        total.add(part)
    return total


def _parts(name: str, chunks: Sequence[range], processes: int) -> list[Tally]:
    if processes == 1:
        return [_chunk(name, seeds) for seeds in chunks]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        return list(pool.map(_chunk, [name] * len(chunks), chunks))
