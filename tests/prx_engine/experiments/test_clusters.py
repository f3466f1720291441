"""Sessions of the same user or task, from the agent's lines to the decision."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from prx_engine import Engine
from prx_engine.clock import format_time
from prx_engine.dimensions import VARIANTS
from prx_engine.experiments.evidence import StoredEvidence
from prx_engine.fitness.clusters import joint_variance
from prx_engine.fitness.moments import Moments
from prx_engine.records import Experiment
from tests.study import clustered
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine
from tests.support.experiments import around, at, feed_both, start


def feed_clusters(engine: Engine, experiment: Experiment, tasks: int, runs: int, gain: float = 0.0) -> None:
    """Each task in one arm, all of its runs alike."""
    lines = []
    values = around(0.6, tasks, 0.3)
    for task in range(tasks):
        for run in range(runs):
            score = values[task] + (gain if task % 2 else 0.0)
            lines.append(
                json.dumps(
                    {
                        "session_id": f"{task}-{run}",
                        "experiment_id": experiment.experiment_id,
                        "variant": VARIANTS[task % 2],
                        "started_at": format_time(experiment.created_at),
                        "cluster": f"task {task}",
                        "scores": {"response_relevance": min(score, 1.0)},
                    }
                ).encode()
            )
    report = engine.import_lines(lines)
    assert not report.rejected


def test_runs_of_the_same_task_do_not_make_a_winner(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 168))
    feed_clusters(engine, experiment, tasks=40, runs=10, gain=0.04)
    comparison = engine.preview(experiment.experiment_id).comparison
    (result,) = engine.check()
    assert comparison is not None
    assert (comparison.test, comparison.clusters) == ("clustered", 40)
    assert comparison.p_value > 0.2
    assert comparison.p_mann_whitney is comparison.p_hall is None
    assert result.outcome == "extended"
    look = result.look
    assert look is not None
    assert look.p_value == pytest.approx(comparison.p_value)
    dimension = engine.details(experiment.experiment_id).dimensions["response_relevance"]
    assert dimension.p_value == pytest.approx(comparison.p_value, rel=1e-9)
    # τ is the variance of the score process, of clusters too: ten times that of independent sessions.
    arms = StoredEvidence(engine._store, 1).arms(168)
    plain = sum(_of(arm.moments) for arm in arms.values())
    assert look.information == pytest.approx(100**2 * comparison.variance, rel=1e-9)
    assert look.information > 8 * 100**2 * plain


def _of(moments: Moments) -> float:
    n, total, squares = moments.n, moments.total(0, 0), moments.product(0, 0)
    return (squares - total**2 / n) / (n - 1) / n / 10_000**2


def test_the_same_runs_without_their_tasks_would(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 168))
    feed_both(engine, experiment, 0.60, 0.68, 200, hours=24, spread=0.3)
    (result,) = engine.check()
    assert result.conclusion == "treatment_wins"


def test_harm_to_a_few_users_is_not_harm_to_all(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine, min_sample_size=1000)
    clock.set(at(experiment, 24))
    feed_clusters(engine, experiment, tasks=10, runs=40, gain=-0.2)
    engine.check()
    (look,) = engine.details(experiment.experiment_id).harm_looks
    assert look.treatment_fitness < look.control_fitness * 0.95
    assert look.p_value is not None
    assert look.p_value > 0.02
    assert not look.significant


def test_a_single_cluster_is_said_to_be_missing_others(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine, min_sample_size=20)
    clock.set(at(experiment, 24))
    lines = [
        json.dumps(
            {
                "session_id": f"s{i}", "layer": "L2", "variant": VARIANTS[i % 2], "cluster": "me",
                "started_at": format_time(experiment.created_at), "relevance": [i % 10 / 10],
            }
        ).encode()
        for i in range(80)
    ]  # fmt: skip
    engine.import_lines(lines)
    (result,) = engine.check()
    assert result.missing == ["all sessions belong to one cluster"]


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_the_database_sums_what_the_sessions_say(
    kind: str, open_engine: OpenEngine, tmp_path: Path, request: pytest.FixtureRequest, clock: ManualClock
) -> None:
    database = tmp_path / "c.db" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    engine = open_engine(database)
    experiment = start(engine)
    rng = np.random.default_rng(5)
    clock.set(at(experiment, 30))
    sessions = []
    for i in range(60):
        scores = {
            name: round(float(rng.random()), 4)
            for name in ("response_relevance", "task_completion", "user_satisfaction")
            if rng.random() < 0.8
        }
        cluster = f"u{rng.integers(0, 8)}" if rng.random() < 0.7 else None
        hour = i % 30
        sessions.append((VARIANTS[i % 2], cluster, scores, hour))
        engine.record(
            f"s{i}", layer="L2", variant=VARIANTS[i % 2], cluster=cluster, scores=scores,
            started_at=at(experiment, hour),
        )  # fmt: skip
    evidence = StoredEvidence(engine._store, 1)
    whole, part = evidence.clusters(30), evidence.clusters(20)
    assert whole is not None
    assert part is not None
    for sums, end in ((whole, 30), (part, 20)):
        scored = [s for s in sessions if s[2] and s[3] < end]
        assert sums.sessions.sum() == sum(s[1] is not None for s in scored)
        assert len(sums.sessions) == len({s[1] for s in scored if s[1] is not None})
        assert sum(m.n for m in sums.single.values()) == sum(s[1] is None for s in scored)
        arms = StoredEvidence(engine._store, 1).arms(end)
        for a, name in enumerate(VARIANTS):
            # Clusters and single sessions together are all sessions of the arm.
            moments = arms[name].moments
            for d in range(6):
                both = sums.counts[:, a, d].sum() + sums.single[name].observations(d)
                assert both == moments.observations(d)
                assert sums.sums[:, a, d].sum() + sums.single[name].total(d, d) == moments.total(d, d)
            singles = [s for s in scored if s[0] == name and s[1] is None]
            assert sums.single[name] == _moments([s[2] for s in singles])
        joint = joint_variance(sums, arms, experiment.parameters.fitness.weights, ("response_relevance",))
        assert joint is not None


def _moments(sessions: list[dict[str, float]]) -> Moments:
    from prx_engine.dimensions import DIMENSIONS

    return Moments.of(
        tuple(round(scores[d] * 10_000) if d in scores else None for d in DIMENSIONS) for scores in sessions
    )


def test_without_clusters_nothing_is_summed(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 24))
    feed_both(engine, experiment, 0.6, 0.6, 20)
    assert StoredEvidence(engine._store, 1).clusters(24) is None


@pytest.mark.parametrize("split", clustered.SPLITS)
def test_an_a_a_test_on_repeated_tasks_errs_as_often_as_it_may(split: clustered.Split) -> None:
    repetitions = 400
    found = clustered.errors(split, repetitions, None)
    assert 0.01 <= found["joint"] / repetitions <= 0.085
    if split == "each task in one arm":
        assert found["naive"] / repetitions > 0.15
    if split == "half of each task's runs in either arm":
        assert found["per arm"] / repetitions < 0.02


def test_real_runs_of_the_same_tasks_are_no_evidence(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRX_SAMPLES", str(samples))
    source = clustered.sample()
    assert source is not None
    assert source.scores.shape == (50, 4)
    naive_split, paired_split, _ = clustered.SPLITS
    whole_tasks = clustered.errors(naive_split, 400, source)
    assert whole_tasks["naive"] / 400 > 0.14
    assert whole_tasks["joint"] / 400 < 0.085
    assert clustered.errors(paired_split, 400, source)["per arm"] / 400 < 0.025
