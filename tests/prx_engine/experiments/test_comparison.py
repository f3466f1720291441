from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from prx_engine.configuration import Weights
from prx_engine.experiments.comparison import Histograms, arm_fitness, compare, compare_dimensions
from prx_engine.fitness.arms import Arm, Arms
from prx_engine.fitness.group import GroupFitness
from prx_engine.fitness.moments import Moments
from prx_engine.records import Comparison
from prx_engine.statistics import Histogram
from tests.support.evidence import scores

WEIGHTS = Weights()


def rounded(values: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.round(np.clip(values, 0, 1), 4))


def samples(seed: int, n: int, m: int, lift: float = 0.0) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return rounded(rng.normal(0.7, 0.15, n)), rounded(rng.normal(0.7 * (1 + lift), 0.12, m))


def group(x: NDArray[Any]) -> GroupFitness:
    return GroupFitness(float(x.mean()), float(x.var(ddof=1) / len(x)), len(x))


def histograms(control: NDArray[Any], treatment: NDArray[Any]) -> Histograms:
    return {
        "control": Histogram.from_units((round(v * 1e4), 1) for v in control),
        "treatment": Histogram.from_units((round(v * 1e4), 1) for v in treatment),
    }


def compared(c: NDArray[Any], t: NDArray[Any], rule: Any = "welch", level: float = 0.05) -> Comparison:
    return compare(group(c), group(t), rule, level, lambda: histograms(c, t))


def never() -> Histograms:
    raise AssertionError("the ranks were read")


def test_welch_agrees_with_scipy() -> None:
    c, t = samples(1, 211, 97, 0.03)
    expected = stats.ttest_ind(t, c, equal_var=False)
    found = compared(c, t)
    assert found.p_value == found.p_welch == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.degrees_of_freedom == pytest.approx(expected.df, rel=1e-9)
    from_summaries = stats.ttest_ind_from_stats(
        t.mean(), t.std(ddof=1), len(t), c.mean(), c.std(ddof=1), len(c), equal_var=False
    )
    assert found.p_value == pytest.approx(from_summaries.pvalue, rel=1e-9)


def test_welch_alone_reads_no_ranks() -> None:
    c, t = samples(1, 50, 60)
    found = compare(group(c), group(t), "welch", 0.05, never)
    assert found.p_mann_whitney is None
    assert found.p_hall is None


def test_robust_is_the_largest_of_the_three_tests() -> None:
    rng = np.random.default_rng(5)
    c, t = rounded(rng.beta(0.5, 3, 150)), rounded(rng.beta(0.8, 3, 170))
    found = compared(c, t, "robust")
    welch = stats.ttest_ind(t, c, equal_var=False)
    ranks = stats.mannwhitneyu(t, c, use_continuity=False, method="asymptotic")
    v_c, v_t = c.var(ddof=1) / len(c), t.var(ddof=1) / len(t)
    third = stats.moment(t, 3) / len(t) ** 2 - stats.moment(c, 3) / len(c) ** 2
    a = third / (v_c + v_t) ** 1.5
    x = welch.statistic
    hall = x + a * x**2 / 3 + a**2 * x**3 / 27 + a / 6
    p_hall = 2 * stats.t.sf(abs(hall), welch.df)
    assert found.test == "robust"
    assert found.p_welch == pytest.approx(welch.pvalue, rel=1e-9)
    assert found.p_mann_whitney == pytest.approx(ranks.pvalue, rel=1e-9)
    assert found.p_hall == pytest.approx(p_hall, rel=1e-9)
    assert found.p_value == pytest.approx(max(welch.pvalue, ranks.pvalue, p_hall), rel=1e-9)


def test_each_of_the_three_tests_has_its_veto() -> None:
    vetoes = set()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        c, t = rounded(rng.beta(0.5, 3, 60)), rounded(rng.beta(0.9, 3, 60))
        found = compared(c, t, "robust")
        singles = {
            "welch": found.p_welch,
            "ranks": found.p_mann_whitney or 0.0,
            "hall": found.p_hall or 0.0,
        }
        if found.p_value < 1:
            assert found.p_value == max(singles.values())
            vetoes.add(max(singles, key=lambda name: singles[name]))
    assert vetoes == {"welch", "ranks", "hall"}


def test_ranks_that_point_the_other_way_are_no_evidence() -> None:
    c = np.r_[np.full(60, 0.5), np.full(40, 0.52)]
    t = np.r_[np.full(70, 0.49), np.full(30, 1.0)]
    found = compared(c, t, "robust")
    assert found.difference > 0
    assert found.p_welch < 0.001
    assert found.p_value == 1.0


def test_the_difference_has_the_interval_of_welch_at_the_level_of_the_look() -> None:
    c, t = samples(2, 120, 140, 0.05)
    expected = stats.ttest_ind(t, c, equal_var=False).confidence_interval(confidence_level=1 - 0.0123)
    found = compared(c, t, level=0.0123)
    assert found.difference_interval.lower == pytest.approx(expected.low, rel=1e-9)
    assert found.difference_interval.upper == pytest.approx(expected.high, rel=1e-9)


@pytest.mark.parametrize("level", [0.3, 0.05, 0.0006])
def test_the_ends_of_the_lift_interval_are_where_fiellers_inequality_turns(level: float) -> None:
    c, t = samples(3, 90, 110, 0.1)
    found = compared(c, t, level=level)
    q = stats.t.isf(level / 2, found.degrees_of_freedom)
    v_c, v_t = c.var(ddof=1) / len(c), t.var(ddof=1) / len(t)

    def excess(r: float) -> float:
        return float((t.mean() - (1 + r) * c.mean()) ** 2 - q**2 * (v_t + (1 + r) ** 2 * v_c))

    lower, upper = found.lift_interval.lower, found.lift_interval.upper
    assert excess(lower) == pytest.approx(0, abs=1e-12)
    assert excess(upper) == pytest.approx(0, abs=1e-12)
    assert excess((lower + upper) / 2) < 0
    assert excess(lower - 0.001) > 0
    assert excess(upper + 0.001) > 0
    assert lower < found.lift < upper


def test_an_interval_excludes_no_difference_exactly_if_the_look_is_significant() -> None:
    c, t = samples(4, 100, 100, 0.04)
    p = compared(c, t).p_value
    for level, excludes in ((p * 1.0001, True), (p * 0.9999, False)):
        found = compared(c, t, level=level)
        assert (found.difference_interval.lower > 0) == excludes
        assert (found.lift_interval.lower > 0) == excludes


def test_the_lift_is_relative_to_control() -> None:
    c, t = samples(4, 100, 100, 0.04)
    found = compared(c, t)
    assert found.lift == pytest.approx((t.mean() - c.mean()) / c.mean(), rel=1e-12)
    assert found.difference == pytest.approx(t.mean() - c.mean(), rel=1e-12)


def test_hedges_g_is_the_difference_in_pooled_deviations() -> None:
    c, t = samples(4, 100, 80, 0.04)
    pooled = math.sqrt((99 * c.var(ddof=1) + 79 * t.var(ddof=1)) / 178)
    expected = (t.mean() - c.mean()) / pooled * (1 - 3 / (4 * 178 - 1))
    assert compared(c, t).hedges_g == pytest.approx(expected, rel=1e-9)


def test_a_look_that_cannot_stop_has_intervals_without_bounds_and_null_in_json() -> None:
    found = compared(*samples(4, 100, 80), level=0.0)
    assert not found.difference_interval.bounded
    assert not found.lift_interval.bounded
    assert found.model_dump(mode="json")["lift_interval"] == {"lower": None, "upper": None}


def test_a_control_of_zero_has_an_infinite_lift() -> None:
    c, t = np.zeros(100), rounded(np.random.default_rng(1).normal(0.5, 0.1, 100))
    found = compared(c, t, "robust")
    assert math.isinf(found.lift)
    assert found.lift > 0
    assert found.p_value < 1e-6
    assert found.model_dump(mode="json")["lift"] is None


@pytest.mark.parametrize(("treatment", "p"), [(0.7, 1.0), (0.8, 0.0), (0.6, 0.0)])
def test_arms_without_any_variance_are_equal_or_different(treatment: float, p: float) -> None:
    found = compared(np.full(100, 0.7), np.full(100, treatment))
    assert found.p_value == p
    assert not any(
        math.isnan(v) for v in (found.lift, found.difference, found.hedges_g, found.lift_interval.upper)
    )


def test_under_robust_a_constant_arm_is_not_certain() -> None:
    c, t = np.full(12, 1.0), np.r_[np.full(11, 1.0), 0.0]
    assert compared(c, t, "robust").p_value > 0.1


def arms(c: list[dict[str, float]], t: list[dict[str, float]]) -> Arms:
    return {
        "control": Arm(len(c), Moments.of(scores(**s) for s in c)),
        "treatment": Arm(len(t), Moments.of(scores(**s) for s in t)),
    }


def test_there_is_no_fitness_with_one_observation_in_an_arm() -> None:
    both = arms([{"task_completion": 0.5}] * 2, [{"task_completion": 0.5}])
    assert arm_fitness(both, WEIGHTS, ("task_completion",)) is None
    assert arm_fitness(both, WEIGHTS, ()) is None


def test_each_dimension_is_compared_by_welch_and_corrected_for_their_number() -> None:
    rng = np.random.default_rng(8)
    c = [{"task_completion": float(a), "memory_precision": float(b)} for a, b in rounded(rng.random((80, 2)))]
    t = [{"task_completion": float(a)} for a in rounded(rng.random(70) * 0.8)]
    t += [{"task_completion": 0.5, "memory_precision": float(b)} for b in rounded(rng.random(40) * 0.9)]
    found = compare_dimensions(arms(c, t), ("task_completion",))
    expected = {
        name: stats.ttest_ind(
            [s[name] for s in t if name in s], [s[name] for s in c if name in s], equal_var=False
        ).pvalue
        for name in ("task_completion", "memory_precision")
    }
    for name, p in expected.items():
        assert found[name].p_value == pytest.approx(p, rel=1e-9)  # type: ignore[index]
        assert found[name].p_adjusted == pytest.approx(min(1, 2 * p), rel=1e-9)  # type: ignore[index]
    assert found["task_completion"].counts
    assert not found["memory_precision"].counts
    assert (found["memory_precision"].control_sessions, found["memory_precision"].treatment_sessions) == (
        80,
        40,
    )


def test_a_dimension_without_data_is_neither_compared_nor_counted_in_the_correction() -> None:
    both = arms([{"task_completion": 0.5}, {"task_completion": 0.6}], [{"task_completion": 0.9}] * 2)
    both["control"] += Arm(1, Moments.of([scores(memory_precision=0.4)]))
    found = compare_dimensions(both, ())
    lonely, absent = found["memory_precision"], found["user_satisfaction"]
    assert (lonely.control, lonely.treatment, lonely.difference, lonely.p_value) == (0.4, None, None, None)
    assert (absent.control, absent.p_adjusted) == (None, None)
    assert found["task_completion"].p_adjusted == found["task_completion"].p_value
