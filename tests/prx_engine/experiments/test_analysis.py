from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from prx_engine import statistics
from prx_engine.configuration import Parameters
from prx_engine.experiments.analysis import Analysis, Subject, analyse
from prx_engine.records import Look
from prx_engine.statistics import Histogram
from tests.support.evidence import (
    Arrivals,
    SyntheticEvidence,
    after,
    arrivals,
    parameters,
    pinned,
    scores,
    subject,
    values,
)

DEFAULTS = parameters()


def normal(seed: int, hours: int, an_hour: int, mean: float = 0.7, sd: float = 0.15) -> Arrivals:
    """Sessions of one arm, the same number every hour."""
    rng = np.random.default_rng(seed)
    n = hours * an_hour
    return arrivals(np.repeat(np.arange(hours), an_hour), np.clip(rng.normal(mean, sd, n), 0, 1))


def evidence(control: Arrivals, treatment: Arrivals, settings: Parameters = DEFAULTS) -> SyntheticEvidence:
    return SyntheticEvidence(control, treatment, settings)


def no_effect(hours: int = 720, an_hour: int = 2, settings: Parameters = DEFAULTS) -> SyntheticEvidence:
    return evidence(normal(1, hours, an_hour), normal(2, hours, an_hour), settings)


def checked(start: Subject, data: SyntheticEvidence, times: Sequence[int]) -> tuple[Subject, list[Analysis]]:
    """The experiment after checks at these times, and what each of them found."""
    found = []
    for hours in times:
        found.append(analyse(start, data, hours))
        start = after(start, found[-1])
    return start, found


def spent(hours: float, settings: Parameters) -> float:
    """Alpha spent over the whole life of an experiment, written down again from the formulas."""
    experiments = settings.experiments
    duration, maximum = experiments.default_duration_hours, experiments.auto_converge.max_duration_hours
    alpha = 1 - experiments.confidence_level
    share = 1.0 if duration == maximum else experiments.sequential.planned_share
    if hours >= maximum:
        return alpha
    if hours <= duration:
        t, a = hours / duration, share * alpha
        if experiments.sequential.spending == "pocock":
            return float(a * math.log(1 + (math.e - 1) * t))
        return float(4 * stats.norm.sf(stats.norm.isf(a / 4) / math.sqrt(t)))
    return share * alpha + (1 - share) * alpha * (hours - duration) / (maximum - duration)


def spent_on_harm(hours: float, settings: Parameters) -> float:
    share = hours / settings.experiments.auto_converge.max_duration_hours
    return (1 - settings.experiments.confidence_level) / 2 * math.log(1 + (math.e - 1) * share)


def information(data: SyntheticEvidence, end: float) -> float:
    c, t = values(data.sessions["control"], end), values(data.sessions["treatment"], end)
    weight = len(c) * len(t) / (len(c) + len(t))
    return float(weight**2 * (c.var(ddof=1) / len(c) + t.var(ddof=1) / len(t)))


def significant_looks(looks: Sequence[Look]) -> list[int]:
    return [look.k for look in looks if look.significant]


# What a look is


def test_a_look_needs_min_sample_size_in_each_arm() -> None:
    c, t = normal(1, 100, 1), normal(2, 99, 1)
    found = analyse(subject(DEFAULTS), evidence(c, t), 120)
    assert found.look is None
    assert found.comparison is None
    assert found.looks == ()
    assert found.pinned is None
    assert found.missing == ("treatment has 99 of 100 scored sessions",)
    assert found.decision.action == "continue"
    enough = analyse(subject(DEFAULTS), evidence(c, [*t, (99, scores(response_relevance=0.5))]), 120)
    assert enough.look is not None
    assert enough.missing == ()


def test_sessions_count_if_they_started_before_the_scheduled_time() -> None:
    late = [(h + 20, s) for h, s in normal(1, 100, 1)]
    data = evidence(late, late)
    assert analyse(subject(DEFAULTS), data, 119).look is None
    look = analyse(subject(DEFAULTS), data, 120).look
    assert look is not None
    assert (look.control_sessions, look.treatment_sessions) == (100, 100)


def test_a_look_needs_a_dimension_with_thirty_observations_in_both_arms() -> None:
    plenty = [(h, scores(response_relevance=0.5 + h / 1000)) for h in range(100)]
    few = [(h, scores(response_relevance=0.5) if h < 29 else scores(task_completion=0.5)) for h in range(100)]
    found = analyse(subject(DEFAULTS), evidence(plenty, few), 120)
    assert found.look is None
    assert found.missing == ("no dimension has 30 sessions with data in both arms",)
    enough = [*few[:-1], (99, scores(response_relevance=0.5))]
    assert analyse(subject(DEFAULTS), evidence(plenty, enough), 120).pinned == pinned(
        "response_relevance", test="welch"
    )


def test_a_dimension_without_weight_never_counts() -> None:
    weights = {
        "response_relevance": 0.0, "task_completion": 1.0, "response_latency": 0.0, "token_efficiency": 0.0,
        "memory_precision": 0.0, "user_satisfaction": 0.0,
    }  # fmt: skip
    settings = parameters(fitness={"weights": weights})
    found = analyse(subject(settings), evidence(normal(1, 150, 1), normal(2, 150, 1), settings), 168)
    assert found.look is None
    assert found.counted == ()


@pytest.mark.parametrize(("more", "look"), [(0, False), (1, False), (2, True)])
def test_without_a_thousandth_more_information_nothing_is_spent(more: int, look: bool) -> None:
    c, t = normal(1, 24, 42), normal(2, 24, 42)  # 1008 sessions an arm
    extra = [(30, scores(response_relevance=0.0 if i % 2 else 1.0)) for i in range(more)]
    settings = DEFAULTS
    start, _ = checked(subject(settings), evidence(c, t), [24])
    data = evidence([*c, *extra], [*t, *extra])
    found = analyse(start, data, 48)
    grown = information(data, 48) >= information(data, 24) * 1.001
    assert grown == (more > 0)
    assert (found.look is not None) == grown
    if not grown:
        assert found.looks == found.harm_looks == ()
        assert found.missing == ("next to nothing is new since the last look",)


def test_alpha_that_no_look_spent_is_there_for_the_next_one() -> None:
    data = evidence(
        [*normal(1, 24, 10), *[(h + 60, s) for h, s in normal(3, 10, 10)]],
        [*normal(2, 24, 10), *[(h + 60, s) for h, s in normal(4, 10, 10)]],
    )
    end, found = checked(subject(DEFAULTS), data, [24, 48, 72])
    assert [analysis.look is not None for analysis in found] == [True, False, True]
    assert [look.k for look in end.looks] == [1, 2]
    expected = statistics.group_sequential_boundaries(
        [information(data, 24), information(data, 72)], [spent(24, DEFAULTS), spent(72, DEFAULTS)]
    )
    assert [look.boundary for look in end.looks] == pytest.approx(list(expected), abs=1e-9)


# What the first look pins


def test_dimensions_with_thirty_observations_at_the_first_look_count_from_then_on() -> None:
    rng = np.random.default_rng(3)

    def arm() -> Arrivals:
        sessions = []
        for h in range(168):
            fields = {"response_relevance": float(rng.uniform(0.5, 0.9))}
            if h % 4 == 0:
                fields["user_satisfaction"] = float(rng.integers(0, 2))
            sessions.append((h, scores(**fields)))
        return sessions

    data = evidence(arm(), arm())
    start, (first, second) = checked(subject(DEFAULTS), data, [110, 168])
    assert first.counted == second.counted == ("response_relevance",)
    assert start.pinned is not None
    assert second.arms["control"].moments.observations(5) >= 30
    last = values(data.sessions["control"], 168).mean()
    assert second.looks[-1].control_fitness == pytest.approx(float(last), rel=1e-12)
    assert analyse(subject(DEFAULTS), data, 168).counted == ("response_relevance", "user_satisfaction")


def test_before_the_first_look_dimensions_count_from_min_sessions_for_score_on() -> None:
    c = [(h, scores(response_relevance=0.5, task_completion=0.2)) for h in range(10)]
    t = [(h, scores(response_relevance=0.5, task_completion=0.2)) for h in range(9)]
    t.append((9, scores(response_relevance=0.6)))
    found = analyse(subject(DEFAULTS), evidence(c, t), 24)
    assert found.counted == ("response_relevance",)
    assert found.pinned is None


def skewed(seed: int, n: int) -> Arrivals:
    rng = np.random.default_rng(seed)
    return arrivals(np.arange(n) % 100, rng.beta(0.4, 5, n))


@pytest.mark.parametrize(
    ("control", "treatment", "rule", "expected"),
    [
        (normal(1, 100, 2), normal(2, 100, 2), "auto", "welch"),
        (skewed(1, 200), normal(2, 100, 2), "auto", "robust"),
        (normal(1, 100, 2), skewed(2, 200), "auto", "robust"),
        (normal(1, 100, 6), normal(2, 100, 2), "auto", "welch"),
        (normal(1, 100, 7), normal(2, 100, 2), "auto", "robust"),
        (normal(1, 100, 2), normal(2, 100, 7), "auto", "robust"),
        (skewed(1, 200), skewed(2, 200), "welch", "welch"),
        (normal(1, 100, 2), normal(2, 100, 2), "robust", "robust"),
    ],
)
def test_the_first_look_settles_the_test(
    control: Arrivals, treatment: Arrivals, rule: str, expected: str
) -> None:
    settings = parameters(test=rule)
    found = analyse(subject(settings), evidence(control, treatment, settings), 120)
    assert found.pinned is not None
    assert found.pinned.test == expected
    assert found.comparison is not None
    assert found.comparison.test == expected


def test_skewness_is_that_of_the_smaller_arms_worth_of_sessions() -> None:
    rng = np.random.default_rng(11)
    draws = rng.beta(2, 4, 400)
    data = evidence(arrivals(np.arange(400) % 100, draws), arrivals(np.arange(400) % 100, draws[::-1]))
    g = stats.skew(values(data.sessions["control"], 200), bias=False)
    found = analyse(subject(DEFAULTS), data, 120)
    assert found.pinned is not None
    assert found.pinned.test == ("robust" if 355 * g**2 > 400 else "welch")


def test_the_test_stays_as_pinned_when_the_sessions_change_their_shape() -> None:
    odd = arrivals(100 + np.arange(900) % 100, np.where(np.arange(900) % 60, 0.1, 1.0))
    data = evidence([*normal(1, 100, 2), *odd], [*normal(2, 100, 2), *odd])
    _, (_, second) = checked(subject(DEFAULTS), data, [120, 216])
    assert analyse(subject(DEFAULTS), data, 216).pinned == pinned("response_relevance", test="robust")
    assert second.pinned == pinned("response_relevance", test="welch")
    assert second.comparison is not None
    assert second.comparison.p_hall is None


def tidy(since: int) -> Arrivals:
    """A session an hour, with a second dimension from some hour on."""
    return [
        (h, scores(response_relevance=0.5 + 0.2 * (h % 2)))
        if h < since
        else (h, scores(response_relevance=0.5 + 0.2 * (h % 2), task_completion=0.3 + 0.4 * (h // 2 % 2)))
        for h in range(168)
    ]


def test_missed_looks_use_what_the_first_one_held_has_pinned() -> None:
    data = evidence(tidy(since=60), tidy(since=60))
    found = analyse(subject(DEFAULTS), data, 168)
    assert found.counted == ("response_relevance", "task_completion")
    assert [look.control_sessions for look in found.looks] == [120, 144, 168]
    for look, hours in zip(found.looks, (120, 144, 168), strict=True):
        relevance = values(data.sessions["control"], hours).mean()
        completion = values(data.sessions["control"], hours, "task_completion").mean()
        assert look.control_fitness == pytest.approx((0.30 * relevance + 0.25 * completion) / 0.55, rel=1e-12)


def test_a_missed_time_without_data_on_what_is_pinned_cannot_be_charged() -> None:
    data = evidence(tidy(since=130), tidy(since=130))
    found = analyse(subject(DEFAULTS), data, 168)
    assert found.counted == ("response_relevance", "task_completion")
    assert 120 not in [look.control_sessions for look in found.looks]


# What a look spends, and what it must reach


@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock"])
@pytest.mark.parametrize("planned_share", [0.0, 0.5, 0.8, 1.0])
@pytest.mark.parametrize(("duration", "maximum"), [(168, 360), (168, 168), (100, 250)])
def test_boundaries_follow_from_information_and_spending(
    spending: str, planned_share: float, duration: int, maximum: int
) -> None:
    settings = parameters(
        spending=spending, planned_share=planned_share, duration=duration, maximum=maximum, interval=24
    )
    data = no_effect(360, 3, settings)
    times = sorted({*range(48, maximum, 24), duration, maximum})
    end = subject(settings)
    for hours in times:
        end = replace(end, schedule=replace(end.schedule, planned_end=duration))
        end, _ = checked(end, data, [hours])
    assert [look.alpha_spent for look in end.looks] == pytest.approx(
        [spent(hours, settings) for hours in times], rel=1e-9, abs=1e-15
    )
    assert end.looks[-1].alpha_spent == pytest.approx(0.05, rel=1e-12)
    assert [look.information for look in end.looks] == pytest.approx(
        np.maximum.accumulate([information(data, hours) for hours in times]), rel=1e-9
    )
    expected = statistics.group_sequential_boundaries(
        [information(data, hours) for hours in times], [spent(hours, settings) for hours in times]
    )
    new = np.diff([0.0, *(spent(hours, settings) for hours in times)])
    for look, boundary, spend in zip(end.looks, expected, new, strict=True):
        if spend > 1e-12:
            assert look.boundary == pytest.approx(boundary, abs=1e-6)
            assert look.alpha_threshold == pytest.approx(2 * stats.norm.sf(boundary), rel=1e-5)
        else:
            assert look.alpha_threshold < 1e-5


def test_a_duration_that_is_the_maximum_spends_everything_by_then() -> None:
    settings = parameters(duration=168, maximum=168, planned_share=0.3)
    data = no_effect(168, 3, settings)
    (look,) = analyse(
        replace(subject(settings), schedule=replace(subject(settings).schedule, closed=144)), data, 168
    ).looks
    assert look.alpha_spent == pytest.approx(0.05, rel=1e-12)
    assert look.boundary == pytest.approx(stats.norm.isf(0.025), abs=1e-9)


def test_the_spending_function_counts_from_the_pinned_duration_whatever_is_extended() -> None:
    data = no_effect()
    times = list(range(72, 505, 24))
    plain, _ = checked(subject(DEFAULTS), data, times)
    assert plain.schedule.planned_end == 672
    operator = subject(DEFAULTS)
    operator = replace(operator, schedule=replace(operator.schedule, planned_end=600))
    extended, _ = checked(operator, data, times)
    for look, other in zip(plain.looks, extended.looks, strict=True):
        assert look == other
    late = [look for look in plain.looks if look.alpha_spent > 0.04]
    hours = [(look.at - plain.created_at).total_seconds() / 3600 for look in late]
    assert [look.alpha_spent for look in late] == pytest.approx([spent(h, DEFAULTS) for h in hours])


def test_obrien_fleming_spends_late_and_pocock_early() -> None:
    early = {}
    for spending in ("obrien_fleming", "pocock"):
        settings = parameters(spending=spending)
        look = analyse(subject(settings), no_effect(200, 5, settings), 24).look
        assert look is not None
        early[spending] = look.alpha_threshold
    assert early["obrien_fleming"] < 1e-6
    assert early["pocock"] == pytest.approx(0.04 * math.log(1 + (math.e - 1) / 7), rel=1e-9)


def test_looks_that_nobody_checked_are_charged_as_if_they_had_been_held() -> None:
    data = no_effect(200, 5)
    punctual, _ = checked(subject(DEFAULTS), data, range(24, 169, 24))
    late = analyse(subject(DEFAULTS), data, 168)
    assert len(late.looks) == len(punctual.looks) == 7
    for missed, held in zip(late.looks, punctual.looks, strict=True):
        assert missed.k == held.k
        assert missed.at == held.at
        assert missed.boundary == pytest.approx(held.boundary, abs=1e-9)
        assert missed.alpha_spent == pytest.approx(held.alpha_spent)
        assert missed.information == pytest.approx(held.information)
    assert [look.held for look in late.looks] == [False] * 6 + [True]
    assert all(look.p_value is None and look.outcome == "missed" for look in late.looks[:-1])
    expected = statistics.group_sequential_boundaries(
        [information(data, h) for h in range(24, 169, 24)], [spent(h, DEFAULTS) for h in range(24, 169, 24)]
    )
    assert late.looks[-1].boundary == pytest.approx(expected[-1], abs=1e-9)
    alone = stats.norm.isf(spent(168, DEFAULTS) / 2)
    assert late.looks[-1].boundary > alone + 0.01


def test_the_decision_of_a_missed_look_is_skipped() -> None:
    rng = np.random.default_rng(5)
    n = 24 * 30
    early = np.clip(rng.normal(0.9, 0.1, n), 0, 1)
    late = np.clip(rng.normal(0.5, 0.1, 3 * n), 0, 1)
    control = arrivals(np.repeat(np.arange(96), 30), np.clip(rng.normal(0.6, 0.1, 4 * n), 0, 1))
    treatment = arrivals(np.repeat(np.arange(96), 30), np.r_[early, late])
    data = evidence(control, treatment)
    assert analyse(subject(DEFAULTS), data, 24).decision.conclusion == "treatment_wins"
    assert significant_looks(analyse(subject(DEFAULTS), data, 96).looks[:-1]) == []


def test_missed_times_with_too_few_sessions_are_not_charged() -> None:
    data = evidence(normal(1, 168, 1), normal(2, 168, 1))
    found = analyse(subject(DEFAULTS), data, 168)
    assert [look.control_sessions for look in found.looks] == [120, 144, 168]


def test_a_look_is_significant_if_p_is_at_most_the_threshold_of_the_boundary() -> None:
    settings = parameters(spending="pocock")
    outcomes = set()
    for seed in range(40):
        data = evidence(normal(seed, 24, 8), normal(seed + 1000, 24, 8, 0.74), settings)
        look = analyse(subject(settings), data, 24).look
        assert look is not None
        assert look.p_value is not None
        assert look.significant == (look.p_value <= look.alpha_threshold)
        assert look.z is not None
        assert look.significant == (abs(look.z) >= look.boundary)
        outcomes.add((look.significant, look.p_value <= 0.05))
    assert outcomes == {(True, True), (False, True), (False, False)}


def test_a_look_is_two_sided() -> None:
    settings = parameters(spending="pocock")
    better = analyse(subject(settings), evidence(normal(1, 24, 9), normal(2, 24, 9, 0.75), settings), 24)
    worse = analyse(subject(settings), evidence(normal(2, 24, 9, 0.75), normal(1, 24, 9), settings), 24)
    assert better.look is not None
    assert worse.look is not None
    assert better.look.p_value == pytest.approx(worse.look.p_value, rel=1e-9)
    assert better.look.z == pytest.approx(-(worse.look.z or 0), rel=1e-9)
    c, t = values(normal(1, 24, 9), 24), values(normal(2, 24, 9, 0.75), 24)
    assert better.look.p_value == pytest.approx(stats.ttest_ind(t, c, equal_var=False).pvalue, rel=1e-9)


def test_a_look_that_may_spend_nothing_decides_nothing_not_even_about_constant_arms() -> None:
    settings = parameters(planned_share=0.0)
    c, t = arrivals(range(100), [0.5] * 100), arrivals(range(100), [0.9] * 100)
    found = analyse(subject(settings), evidence(c, t, settings), 120)
    assert found.look is not None
    assert found.look.p_value == 0.0
    assert found.look.alpha_threshold == 0.0
    assert not found.look.significant
    assert found.decision.action == "continue"


def test_arms_without_variance_are_told_apart_when_alpha_may_be_spent() -> None:
    c, t = arrivals(range(100), [0.5] * 100), arrivals(range(100), [0.9] * 100)
    assert analyse(subject(DEFAULTS), evidence(c, t), 120).decision.conclusion == "treatment_wins"
    alike = analyse(subject(DEFAULTS), evidence(c, c), 120)
    assert alike.look is not None
    assert alike.look.p_value == 1.0
    assert alike.decision.action == "continue"


def test_intervals_have_the_level_of_their_look() -> None:
    data = no_effect(200, 5)
    _, found = checked(subject(DEFAULTS), data, [72, 168])
    for hours, analysis in zip([72, 168], found, strict=True):
        c, t = values(data.sessions["control"], hours), values(data.sessions["treatment"], hours)
        assert analysis.look is not None
        assert analysis.comparison is not None
        level = 1 - analysis.look.alpha_threshold
        interval = stats.ttest_ind(t, c, equal_var=False).confidence_interval(level)
        assert analysis.comparison.difference_interval.lower == pytest.approx(interval.low, rel=1e-7)
        assert analysis.comparison.difference_interval.upper == pytest.approx(interval.high, rel=1e-7)


def test_an_unusual_confidence_level_is_used_everywhere() -> None:
    settings = parameters(confidence_level=0.8)
    data = no_effect(200, 5, settings)
    found = analyse(subject(settings), data, 168)
    assert found.looks[-1].alpha_spent == pytest.approx(0.16)
    assert found.harm_looks[-1].alpha_spent == pytest.approx(0.1 * math.log(1 + (math.e - 1) * 168 / 720))


# Mann-Whitney and Welch must agree


def test_ranks_alone_promote_nothing() -> None:
    """Equal means, very different shapes: Mann-Whitney sees a large difference, the mean does not."""
    rng = np.random.default_rng(7)
    n = 600
    control, treatment = rng.beta(0.5, 3, n), rng.beta(2, 12, n)
    data = evidence(arrivals(np.arange(n) % 100, control), arrivals(np.arange(n) % 100, treatment))
    found = analyse(subject(DEFAULTS), data, 120)
    assert found.comparison is not None
    assert found.comparison.test == "robust"
    assert found.comparison.p_mann_whitney is not None
    assert found.comparison.p_mann_whitney < 1e-5
    assert (
        found.comparison.p_value
        == max(found.comparison.p_welch, found.comparison.p_mann_whitney, found.comparison.p_hall or 0)
        or found.comparison.p_value == 1.0
    )
    assert not found.look or not found.look.significant
    assert found.decision.action == "continue"


# Harm


def harmful(an_hour: float, settings: Parameters = DEFAULTS, hours: int = 24) -> SyntheticEvidence:
    n = int(hours * an_hour)
    rng = np.random.default_rng(9)
    at = np.arange(n) * hours // n
    return evidence(
        arrivals(at, np.clip(rng.normal(0.8, 0.08, n), 0, 1)),
        arrivals(at, np.clip(rng.normal(0.4, 0.08, n), 0, 1)),
        settings,
    )


def test_great_harm_ends_an_experiment_before_min_sample_size() -> None:
    found = analyse(subject(DEFAULTS), harmful(1), 24)
    assert found.look is None
    assert found.decision.conclusion == "regression"
    assert found.decision.winner == "control"


def test_a_harm_look_pins_nothing_and_is_no_look() -> None:
    found = analyse(subject(DEFAULTS), harmful(1), 24)
    assert found.pinned is None
    assert found.looks == ()
    assert [look.series for look in found.harm_looks] == ["harm"]
    assert found.harm_looks[0].held


@pytest.mark.parametrize(("n", "look"), [(9, False), (10, True)])
def test_harm_is_looked_for_from_min_sessions_for_score_on(n: int, look: bool) -> None:
    rng = np.random.default_rng(1)
    c = arrivals(range(12), rng.uniform(0.7, 0.9, 12))
    t = arrivals(range(n), rng.uniform(0.1, 0.3, n))
    assert bool(analyse(subject(DEFAULTS), evidence(c, t), 24).harm_looks) == look


def test_harm_has_a_one_sided_boundary_and_information_of_its_own() -> None:
    data = no_effect(720, 1)
    times = list(range(24, 721, 24))
    end, _ = checked(subject(DEFAULTS), data, times)
    assert len(end.harm_looks) == 30
    assert len(end.looks) == 26
    informations = np.maximum.accumulate([information(data, hours) for hours in times])
    assert [look.information for look in end.harm_looks] == pytest.approx(informations, rel=1e-9)
    assert [look.alpha_spent for look in end.harm_looks] == pytest.approx(
        [spent_on_harm(hours, DEFAULTS) for hours in times], rel=1e-9
    )
    expected = statistics.group_sequential_boundaries(
        informations, [spent_on_harm(hours, DEFAULTS) for hours in times], sides=1
    )
    assert [look.boundary for look in end.harm_looks] == pytest.approx(list(expected), abs=1e-7)
    assert end.harm_looks[-1].alpha_threshold == pytest.approx(stats.norm.sf(expected[-1]), rel=1e-5)


def test_harm_is_about_worse_treatments_alone() -> None:
    data = harmful(2)
    data.sessions = {"control": data.sessions["treatment"], "treatment": data.sessions["control"]}
    found = analyse(subject(DEFAULTS), data, 24)
    assert found.harm_looks[0].p_value == pytest.approx(1.0)
    assert not found.harm_looks[0].significant


def test_missed_harm_looks_are_charged_and_not_decided() -> None:
    data = no_effect(168, 1)
    found = analyse(subject(DEFAULTS), data, 168)
    punctual, _ = checked(subject(DEFAULTS), data, range(24, 169, 24))
    assert [look.held for look in found.harm_looks] == [False] * 6 + [True]
    assert [look.boundary for look in found.harm_looks] == pytest.approx(
        [look.boundary for look in punctual.harm_looks], abs=1e-9
    )


@pytest.mark.parametrize(("delta", "conclusion"), [(0.49, "regression"), (0.51, None)])
def test_harm_needs_a_loss_of_regression_delta(delta: float, conclusion: str | None) -> None:
    settings = parameters(fitness={"thresholds": {"regression_delta": delta}})
    c = arrivals(range(20), np.tile([0.75, 0.85], 10))
    t = arrivals(range(20), np.tile([0.35, 0.45], 10))
    found = analyse(subject(settings), evidence(c, t, settings), 24)
    assert found.harm_looks[0].significant
    assert found.decision.conclusion == conclusion


def test_a_loss_of_exactly_regression_delta_is_harm() -> None:
    settings = parameters(fitness={"thresholds": {"regression_delta": 0.5}})
    c = arrivals(range(20), np.tile([0.75, 0.85], 10))
    t = arrivals(range(20), np.tile([0.35, 0.45], 10))
    assert analyse(subject(settings), evidence(c, t, settings), 24).decision.conclusion == "regression"


@pytest.mark.parametrize("rule", ["welch", "robust", "auto"])
def test_harm_needs_all_three_tests_whatever_is_pinned(rule: str) -> None:
    """A few sessions that fail completely: Welch is convinced, the ranks say treatment is better."""
    settings = parameters(test=rule, fitness={"thresholds": {"regression_delta": 0.05}})
    c = arrivals(range(100), np.tile([0.60, 0.62], 50))
    t = arrivals(range(100), np.r_[np.tile([0.65, 0.63], 39), np.zeros(22)])
    start = subject(settings, pinned=pinned("response_relevance"))
    start = replace(start, schedule=replace(start.schedule, closed=96))
    found = analyse(start, evidence(c, t, settings), 120)
    (look,) = found.harm_looks
    assert look.p_welch is not None
    assert look.p_welch < look.alpha_threshold
    assert look.p_value is not None
    assert look.p_mann_whitney is not None
    assert look.p_mann_whitney > 0.9
    assert look.p_value == pytest.approx(look.p_mann_whitney)
    assert not look.significant
    assert found.decision.conclusion != "regression"


def test_the_p_value_of_harm_is_the_largest_of_three_one_sided_ones() -> None:
    data = harmful(1, hours=24)
    look = analyse(subject(DEFAULTS), data, 24).harm_looks[0]
    c, t = values(data.sessions["control"], 24), values(data.sessions["treatment"], 24)
    welch = stats.ttest_ind(t, c, equal_var=False, alternative="less").pvalue
    ranks = stats.mannwhitneyu(t, c, alternative="less", use_continuity=False, method="asymptotic").pvalue
    assert look.p_welch == pytest.approx(welch, rel=1e-8)
    assert look.p_mann_whitney == pytest.approx(ranks, rel=1e-8)
    assert look.p_hall is not None
    assert look.p_value == pytest.approx(max(welch, ranks, look.p_hall), rel=1e-8)


def test_harm_without_any_variance_needs_more_than_a_few_sessions() -> None:
    c, t = arrivals(range(10), [0.9] * 10), arrivals(range(10), [0.8] * 10)
    look = analyse(subject(DEFAULTS), evidence(c, t), 24).harm_looks[0]
    assert look.p_value is not None
    assert look.p_value > 0.05


def test_harm_counts_the_dimensions_that_count_at_its_time() -> None:
    rng = np.random.default_rng(2)
    both = [
        (h, scores(response_relevance=float(rng.uniform(0.5, 0.9)), task_completion=float(rng.random())))
        for h in range(20)
    ]
    alone = [(h, scores(response_relevance=float(rng.uniform(0.5, 0.9)))) for h in range(20)]
    found = analyse(subject(DEFAULTS), evidence(both, alone), 24)
    relevance = values(both, 24).mean()
    assert found.harm_looks[0].control_fitness == pytest.approx(float(relevance), rel=1e-12)
    settled = analyse(subject(DEFAULTS, pinned=pinned("task_completion")), evidence(both, both), 24)
    assert settled.harm_looks[0].control_fitness == pytest.approx(
        float(values(both, 24, "task_completion").mean()), rel=1e-12
    )


# Other rows, seen through an analysis


def test_a_block_turns_a_win_into_a_remark() -> None:
    data = evidence(normal(1, 60, 10), normal(2, 60, 10, 0.9, 0.05))
    free = analyse(subject(DEFAULTS), data, 48)
    blocked = analyse(subject(DEFAULTS, blocked=True), data, 48)
    assert free.decision.conclusion == "treatment_wins"
    assert blocked.decision.action == "continue"
    assert blocked.decision.blocked_win
    assert blocked.looks == free.looks


def test_an_effect_proven_to_be_small_is_given_up_at_the_planned_end() -> None:
    data = evidence(normal(1, 168, 40, 0.7, 0.05), normal(2, 168, 40, 0.7, 0.05))
    _, found = checked(subject(DEFAULTS), data, [144, 168])
    assert [analysis.decision.conclusion for analysis in found] == [None, "effect_too_small"]


def test_the_maximum_without_a_single_look_is_deferred() -> None:
    found = analyse(subject(DEFAULTS), evidence(normal(1, 50, 1), normal(2, 50, 1)), 720)
    assert found.decision.conclusion == "deferred"
    assert found.looks == ()


def test_the_present_moment_can_be_analysed_between_scheduled_times() -> None:
    data = no_effect(200, 5)
    now = 60.5
    found = analyse(subject(DEFAULTS), data, now)
    assert found.hours == now
    assert data.asked == [24, 48, now]
    assert [look.held for look in found.looks] == [False, False, True]
    assert found.look is not None
    assert found.look.alpha_spent == pytest.approx(spent(now, DEFAULTS))


def test_an_analysis_asks_for_no_ranks_that_it_does_not_need() -> None:
    class WithoutRanks(SyntheticEvidence):
        def session_fitness(self, end: float) -> Any:
            raise AssertionError(f"the ranks were read at {end}")

    data = WithoutRanks(normal(1, 100, 2), normal(2, 100, 2), DEFAULTS)
    assert analyse(subject(DEFAULTS, pinned=pinned("response_relevance")), data, 96).look is not None


def test_more_sessions_cost_no_more_than_their_histogram() -> None:
    data = no_effect(24, 20)
    histogram = data.session_fitness(24)["control"]
    assert isinstance(histogram, Histogram)
    assert histogram.n == 480


def arms_of(found: Analysis) -> NDArray[Any]:
    return np.array([found.arms["control"].moments.n, found.arms["treatment"].moments.n])


def test_the_arms_reported_are_those_of_the_time_analysed() -> None:
    assert list(arms_of(analyse(subject(DEFAULTS), no_effect(720, 2), 48))) == [96, 96]
