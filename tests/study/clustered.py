"""Runs of the same tasks: how often an A/A test errs at 5 % with one look, by how the variance is taken."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from prx_engine.configuration import Weights
from prx_engine.dimensions import DIMENSIONS, UNIT, VARIANTS
from prx_engine.experiments.comparison import arm_fitness, means_test
from prx_engine.fitness.arms import Arm, Arms
from prx_engine.fitness.clusters import ClusterSums, joint_variance
from prx_engine.fitness.moments import MOMENT_NAMES, Moments
from prx_engine.statistics import t_test, welch
from prx_engine.statistics.means import Arm as Mean

Split = Literal["each task in one arm", "half of each task's runs in either arm", "each run by itself"]
SPLITS: tuple[Split, ...] = (
    "each task in one arm",
    "half of each task's runs in either arm",
    "each run by itself",
)
METHODS = ("naive", "per arm", "joint")
_LEVEL = 0.05
_DIMENSION = 1
_COUNTED = (DIMENSIONS[_DIMENSION],)
_SAMPLE = Path("sessions", "tau_bench_airline.sessions.jsonl")


@dataclass(frozen=True)
class Runs:
    """Scores in units of so many runs of so many tasks, shape (tasks, runs)."""

    name: str
    scores: NDArray[np.int64]


def made_up(rng: np.random.Generator) -> Runs:
    """Return new runs: 50 tasks of very different difficulty, four successes or failures each."""
    difficulty = rng.beta(0.5, 0.7, (50, 1))
    return Runs("made up", (rng.random((50, 4)) < difficulty).astype(np.int64) * UNIT)


def sample() -> Runs | None:
    """Return the real runs of the sample folder; None without it. The task is in the session id."""
    folder = os.environ.get("PRX_SAMPLES")
    if not folder:
        return None
    tasks: dict[str, list[int]] = {}
    for line in (Path(folder) / _SAMPLE).read_text().splitlines():
        run = json.loads(line)
        score = run["tasks_succeeded"] / run["tasks"] if "tasks" in run else run["scores"]["task_completion"]
        tasks.setdefault(task_of(run["session_id"]), []).append(round(score * UNIT))
    return Runs("tau-bench airline, resampled", np.array(list(tasks.values())))


def task_of(session_id: str) -> str:
    """Return the task of a session of the sample."""
    return session_id.rsplit("-", 1)[0]


def errors(split: Split, repetitions: int, source: Runs | None, seed: int = 1) -> dict[str, int]:
    """Return how often each method finds a difference where there is none.

    Args:
        split: how runs are spread over the arms.
        repetitions: A/A tests.
        source: real runs, whose tasks are drawn anew each time; None makes them up.
        seed: of the source of chance.
    """
    rng = np.random.default_rng(seed)
    found: Counter[str] = Counter(dict.fromkeys(METHODS, 0))
    for _ in range(repetitions):
        scores = made_up(rng).scores if source is None else _resampled(source.scores, rng)
        for method, p_value in p_values(scores, _arms(split, scores.shape, rng)).items():
            found[method] += p_value <= _LEVEL
    return dict(found)


def _resampled(scores: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    drawn = scores[rng.integers(0, len(scores), len(scores))]
    return rng.permuted(drawn, axis=1)


def _arms(split: Split, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    tasks, runs = shape
    if split == "each task in one arm":
        return np.repeat(rng.permutation(tasks) % 2 == 0, runs).reshape(shape)
    if split == "each run by itself":
        return rng.random(shape) < 0.5
    return np.asarray(np.broadcast_to(np.arange(runs) % 2 == 0, shape))


def p_values(scores: NDArray[np.int64], treatment: NDArray[np.bool_]) -> dict[str, float]:
    """Return the p-value of each method."""
    arms: Arms = {name: _arm(scores[treatment == (name == "treatment")]) for name in VARIANTS}
    sums = _sums(scores, treatment)
    weights = Weights()
    fitness = arm_fitness(arms, weights, _COUNTED)
    joint = joint_variance(sums, arms, weights, _COUNTED)
    assert fitness is not None
    assert joint is not None
    control, treated = fitness
    plain = [Mean(group.mean, group.variance, group.n) for group in fitness]
    apart = t_test(treated.mean - control.mean, joint.control + joint.treatment, joint.df)
    return {
        "naive": welch(*plain).p_value,
        "per arm": apart.p_value,
        "joint": means_test(control, treated, joint).p_value,
    }


def _arm(units: NDArray[np.int64]) -> Arm:
    d = _DIMENSION
    n, total, square = units.size, int(units.sum()), int((units**2).sum())
    filled = {"n": n, f"n_{d}{d}": n, f"s_{d}{d}": total, f"q_{d}{d}": square}
    return Arm(n, Moments(tuple(filled.get(entry, 0) for entry in MOMENT_NAMES)))


def _sums(scores: NDArray[np.int64], treatment: NDArray[np.bool_]) -> ClusterSums:
    rows = []
    for g, (task, arms) in enumerate(zip(scores, treatment, strict=True)):
        for name in VARIANTS:
            units = task[arms == (name == "treatment")]
            if units.size:
                counts = [units.size if d == _DIMENSION else 0 for d in range(len(DIMENSIONS))]
                sums = [int(units.sum()) if d == _DIMENSION else 0 for d in range(len(DIMENSIONS))]
                rows.append((str(g), name, units.size, counts, sums))
    return ClusterSums.of(rows, dict.fromkeys(VARIANTS, Moments()))
