from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from prx_engine import statistics
from prx_engine.experiments.looks import ChargedLook, LookPoint, charge
from prx_engine.fitness.group import GroupFitness
from prx_engine.records import Look
from tests.support.evidence import CREATED


def point(hours: float, n: int, n_treatment: int | None = None, variance: float = 0.04) -> LookPoint:
    """A time with n sessions an arm, each of the given variance."""
    m = n_treatment or n
    return LookPoint(hours, GroupFitness(0.7, variance / n, n), GroupFitness(0.72, variance / m, m))


def spending(hours: float) -> float:
    return 0.05 * hours / 100


def recorded(look: ChargedLook) -> Look:
    """An earlier look as a later check knows it."""
    return Look(
        series="efficacy", k=look.k, at=CREATED, held=True, control_sessions=2, treatment_sessions=2,
        information=look.information, control_fitness=0.7, treatment_fitness=0.7, lift=0.0,
        lift_interval=None, p_value=None, p_welch=None, p_mann_whitney=None, p_hall=None, z=None,
        boundary=look.boundary, alpha_threshold=look.alpha_threshold, alpha_spent=look.alpha_spent,
        significant=False, outcome="look",
    )  # fmt: skip


def one_by_one(points: list[LookPoint]) -> list[ChargedLook]:
    """The looks of checks that missed nothing."""
    held: list[ChargedLook] = []
    for present in points:
        held += charge([present], [recorded(look) for look in held], spending, sides=2)
    return held


def test_information_is_the_variance_of_the_score_process() -> None:
    unequal = point(24, 300, 100)
    weight = 300 * 100 / 400
    assert unequal.information == pytest.approx(weight**2 * (0.04 / 300 + 0.04 / 100), rel=1e-14)


def test_information_stays_proportional_to_sessions_whatever_their_variance_was() -> None:
    quiet, loud = point(24, 100, variance=0.01), point(24, 100, variance=0.04)
    assert loud.information == pytest.approx(4 * quiet.information)
    assert point(48, 200).information == pytest.approx(2 * point(24, 100).information)


def test_sessions_that_are_all_alike_still_bring_information() -> None:
    assert 0 < point(24, 100, variance=0.0).information < point(48, 200, variance=0.0).information


def test_there_is_no_look_without_a_point() -> None:
    assert charge([], [], spending, sides=2) == []


def test_the_first_boundary_is_the_quantile_of_what_may_be_spent() -> None:
    (look,) = charge([point(24, 100)], [], spending, sides=2)
    assert look.k == 1
    assert look.alpha_spent == pytest.approx(0.012)
    assert look.boundary == pytest.approx(stats.norm.isf(0.006), abs=1e-9)
    assert look.alpha_threshold == pytest.approx(0.012, rel=1e-9)


def test_one_sided_looks_put_all_alpha_in_one_tail() -> None:
    (look,) = charge([point(24, 100)], [], spending, sides=1)
    assert look.boundary == pytest.approx(stats.norm.isf(0.012), abs=1e-9)
    assert look.alpha_threshold == pytest.approx(0.012, rel=1e-9)


def test_the_second_look_spends_the_increment_alone_on_paths_that_went_on() -> None:
    first, second = one_by_one([point(24, 100), point(48, 250)])
    share = math.sqrt(100 / 250)
    both = stats.multivariate_normal(cov=np.array([[1.0, share], [share, 1.0]]))

    def square(a: float, b: float) -> float:
        """P(|Z1| < a, |Z2| < b)."""
        return float(both.cdf([a, b], lower_limit=[-a, -b]))

    crossing = square(first.boundary, 40.0) - square(first.boundary, second.boundary)
    assert crossing == pytest.approx(0.024 - 0.012, abs=2e-6)
    assert second.alpha_spent == pytest.approx(0.024)
    assert second.boundary > stats.norm.isf(0.024 / 2)


def test_looks_that_nobody_held_raise_the_boundary_as_if_they_had_been_held() -> None:
    points = [point(24, 100), point(48, 200), point(72, 300)]
    at_once = charge(points, [], spending, sides=2)
    for late, punctual in zip(at_once, one_by_one(points), strict=True):
        assert late.k == punctual.k
        assert late.boundary == pytest.approx(punctual.boundary, abs=1e-9)
        assert late.alpha_spent == pytest.approx(punctual.alpha_spent, rel=1e-12)
    (alone,) = charge(points[2:], [], spending, sides=2)
    assert at_once[-1].boundary > alone.boundary + 0.05


def test_boundaries_are_those_of_the_information_and_the_alpha_of_all_looks() -> None:
    points = [point(24, 100), point(48, 130), point(72, 400), point(96, 410)]
    looks = one_by_one(points)
    expected = statistics.group_sequential_boundaries(
        [p.information for p in points], [spending(p.hours) for p in points]
    )
    assert [look.boundary for look in looks] == pytest.approx(list(expected), abs=1e-9)


@pytest.mark.parametrize(("sessions", "look"), [(1000, False), (1001, True), (1002, True)])
def test_a_look_needs_a_thousandth_more_information(sessions: int, look: bool) -> None:
    (first,) = charge([point(24, 1000)], [], spending, sides=2)
    assert bool(charge([point(48, sessions)], [recorded(first)], spending, sides=2)) == look


def test_information_never_falls() -> None:
    loud, calm = point(24, 100, variance=0.2), point(48, 200, variance=0.04)
    assert calm.information < loud.information
    (first,) = charge([loud], [], spending, sides=2)
    assert charge([calm], [recorded(first)], spending, sides=2) == []
    (later,) = charge([point(72, 900, variance=0.04)], [recorded(first)], spending, sides=2)
    assert later.information > first.information


def test_a_missed_peak_of_information_holds_for_the_look_after_it() -> None:
    loud, calm = point(24, 100, variance=0.2), point(48, 200, variance=0.04)
    (look,) = charge([loud, calm], [], spending, sides=2)
    assert look.point is calm
    assert look.information == loud.information


def test_missed_times_without_news_are_one_look() -> None:
    stalled = [point(24, 100), point(48, 100), point(72, 100)]
    (look,) = charge(stalled, [], spending, sides=2)
    assert look.point.hours == 72
    assert look.alpha_spent == pytest.approx(spending(72))


def test_missed_times_are_charged_with_what_could_be_spent_then() -> None:
    looks = charge([point(24, 100), point(48, 200), point(96, 300)], [], spending, sides=2)
    assert [look.alpha_spent for look in looks] == pytest.approx([0.012, 0.024, 0.048])
    assert [look.point.hours for look in looks] == [24, 48, 96]


def test_spent_alpha_never_falls() -> None:
    (first,) = charge([point(24, 100)], [], lambda _: 0.02, sides=2)
    (second,) = charge([point(48, 200)], [recorded(first)], lambda _: 0.01, sides=2)
    assert second.alpha_spent == 0.02
    assert second.alpha_threshold == 0.0
    assert math.isinf(second.boundary)


def test_a_look_that_may_spend_nothing_cannot_stop() -> None:
    (look,) = charge([point(24, 100)], [], lambda _: 0.0, sides=2)
    assert math.isinf(look.boundary)
    assert look.alpha_threshold == 0.0
