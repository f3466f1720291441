from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.configuration import Weights
from prx_engine.dimensions import DIMENSIONS, UNIT, VARIANTS, Dimension, VariantName
from prx_engine.fitness.arms import Arm, Arms
from prx_engine.fitness.clusters import ClusterSums, Joint, joint_variance
from prx_engine.fitness.group import group_fitness
from prx_engine.fitness.moments import MISSING, Moments, Scores

WEIGHTS = Weights()
COUNTED: tuple[Dimension, ...] = ("response_relevance", "task_completion")
Session = tuple[VariantName, str | None, Scores]

score = st.one_of(st.none(), st.integers(0, UNIT))
session = st.tuples(
    st.sampled_from(VARIANTS),
    st.one_of(st.none(), st.sampled_from("abcdef")),
    st.tuples(score, score).map(lambda two: (*two, *MISSING[2:])),
)


def arms_of(sessions: Sequence[Session]) -> Arms:
    return {
        name: Arm(len(sessions), Moments.of(scores for arm, _, scores in sessions if arm == name))
        for name in VARIANTS
    }


def sums_of(sessions: Sequence[Session]) -> ClusterSums:
    groups: defaultdict[tuple[str, VariantName], list[Scores]] = defaultdict(list)
    for variant, cluster, scores in sessions:
        if cluster is not None and scores != MISSING:
            groups[cluster, variant].append(scores)
    rows = [
        (
            cluster,
            variant,
            len(members),
            [sum(s[d] is not None for s in members) for d in range(len(DIMENSIONS))],
            [sum(s[d] or 0 for s in members) for d in range(len(DIMENSIONS))],
        )
        for (cluster, variant), members in groups.items()
    ]
    single = {
        name: Moments.of(s for arm, cluster, s in sessions if arm == name and cluster is None)
        for name in VARIANTS
    }
    return ClusterSums.of(rows, single)


def straight(sessions: Sequence[Session]) -> Joint:
    """The variances session by session, each one without a cluster being a cluster."""
    weights = np.array([WEIGHTS.of(name) for name in COUNTED])
    weights /= weights.sum()
    psi: defaultdict[object, dict[str, float]] = defaultdict(lambda: dict.fromkeys(VARIANTS, 0.0))
    shares: defaultdict[object, dict[str, float]] = defaultdict(lambda: dict.fromkeys(VARIANTS, 0.0))
    n = {name: sum(arm == name and scores != MISSING for arm, _, scores in sessions) for name in VARIANTS}
    for name in VARIANTS:
        for d, weight in enumerate(weights):
            present = [(s[d] or 0) / UNIT for arm, _, s in sessions if arm == name and s[d] is not None]
            for i, (arm, cluster, s) in enumerate(sessions):
                if arm == name and s[d] is not None:
                    influence = weight * ((s[d] or 0) / UNIT - np.mean(present)) / len(present)
                    psi[cluster or i][name] += influence
    for i, (arm, cluster, s) in enumerate(sessions):
        if s != MISSING:
            shares[cluster or i][arm] += 1 / n[arm]
    g = len(shares)
    values = np.array([[psi[key][name] for name in VARIANTS] for key in shares])
    a = np.array([[shares[key][name] for name in VARIANTS] for key in shares])
    e = (a[:, 0] - a[:, 1]) ** 2 + a[:, 0] / n["control"] + a[:, 1] / n["treatment"]
    products = g / (g - 1) * values.T @ values
    return Joint(products[0, 0], products[1, 1], products[0, 1], max(e.sum() ** 2 / (e**2).sum() - 1, 1.0), g)


@given(st.lists(session, min_size=8, max_size=30))
def test_sums_by_cluster_give_the_variances_that_the_sessions_give(sessions: list[Session]) -> None:
    arms = arms_of(sessions)
    if any(arm.moments.observations(d) < 2 for arm in arms.values() for d in range(len(COUNTED))):
        return
    found = joint_variance(sums_of(sessions), arms, WEIGHTS, COUNTED)
    assert found is not None
    expected = straight(sessions)
    assert found.clusters == expected.clusters
    assert found.df == pytest.approx(expected.df, rel=1e-9)
    for name in ("control", "treatment", "covariance"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-15)
    assert found.difference == pytest.approx(
        max(expected.control + expected.treatment - 2 * expected.covariance, 0), rel=1e-6, abs=1e-15
    )


def test_sessions_that_are_all_their_own_have_nearly_the_ordinary_variance() -> None:
    rng = np.random.default_rng(1)
    sessions: list[Session] = [
        (VARIANTS[i % 2], f"user {i}", (int(rng.integers(0, UNIT)), int(rng.integers(0, UNIT)), *MISSING[2:]))
        for i in range(400)
    ]
    arms = arms_of(sessions)
    found = joint_variance(sums_of(sessions), arms, WEIGHTS, COUNTED)
    groups = [group_fitness(arms[name].moments, WEIGHTS, COUNTED) for name in VARIANTS]
    assert found is not None
    assert found.difference == pytest.approx(sum(g.variance for g in groups if g), rel=0.005)
    assert found.df == pytest.approx(399)
    assert found.covariance == 0


def test_the_same_sessions_told_twice_leave_the_uncertainty_as_it_was() -> None:
    """Four equal runs of each task say no more about the tasks than one."""
    rng = np.random.default_rng(2)
    once: list[Session] = [
        (VARIANTS[i % 2], f"task {i}", (int(rng.integers(0, UNIT)), 5000, *MISSING[2:])) for i in range(60)
    ]
    one, four = (joint_variance(sums_of(s), arms_of(s), WEIGHTS, COUNTED) for s in (once, once * 4))
    assert one is not None
    assert four is not None
    assert four.difference == pytest.approx(one.difference, rel=1e-9)
    assert four.clusters == one.clusters == 60


def test_tasks_that_run_in_both_arms_cancel_their_difficulty() -> None:
    rng = np.random.default_rng(3)
    sessions: list[Session] = []
    for task in range(50):
        difficulty = int(rng.integers(2000, 8000))
        for variant in VARIANTS:
            noise = int(rng.integers(-100, 100))
            sessions.append((variant, f"task {task}", (difficulty + noise, None, *MISSING[2:])))
    arms, counted = arms_of(sessions), COUNTED[:1]
    found = joint_variance(sums_of(sessions), arms, WEIGHTS, counted)
    assert found is not None
    assert found.difference < 0.01 * (found.control + found.treatment)


def test_one_cluster_alone_tells_nothing() -> None:
    sessions: list[Session] = [(VARIANTS[i % 2], "all", (5000 + i, 1, *MISSING[2:])) for i in range(20)]
    assert joint_variance(sums_of(sessions), arms_of(sessions), WEIGHTS, COUNTED) is None


def test_degrees_of_freedom_are_those_of_the_clusters_that_weigh() -> None:
    big: list[Session] = [(VARIANTS[i % 2], "big", (i, i, *MISSING[2:])) for i in range(100)]
    small: list[Session] = [(VARIANTS[i % 2], f"small {i}", (i, i, *MISSING[2:])) for i in range(4)]
    found = joint_variance(sums_of(big + small), arms_of(big + small), WEIGHTS, COUNTED)
    assert found is not None
    assert 1 <= found.df < 4
    assert math.isfinite(found.df)
