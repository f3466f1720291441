from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.experiments.decision import Decision, Findings, decide, extended_end
from prx_engine.records import Comparison, Interval
from tests.support.evidence import parameters

DEFAULTS = parameters()


def compared(lift: float, upper: float = math.inf, lower: float = -math.inf) -> Comparison:
    """A comparison in which only the lift and its interval matter."""
    return Comparison(
        test="welch", p_value=0.01, p_welch=0.01, p_mann_whitney=None, p_hall=None,
        difference=0.0, difference_interval=Interval(lower=0.0, upper=0.0), lift=lift,
        lift_interval=Interval(lower=lower, upper=upper), hedges_g=0.0, degrees_of_freedom=100.0,
        variance=1.0,
    )  # fmt: skip


def found(look: Comparison | None = None, **changes: Any) -> Findings:
    findings = Findings(
        hours=24, planned_end=168, comparison=look, significant=False, harm=False, blocked=False
    )
    return replace(findings, **changes)


def outcome(decision: Decision) -> tuple[str, str | None, str | None, bool]:
    return decision.action, decision.conclusion, decision.winner, decision.blocked_win


GO_ON = ("continue", None, None, False)
TREATMENT = ("conclude", "treatment_wins", "treatment", False)
CONTROL = ("conclude", "control_wins", "control", False)
TOO_SMALL = ("conclude", "effect_too_small", "control", False)
DEFERRED = ("conclude", "deferred", None, False)
REGRESSION = ("conclude", "regression", "control", False)


# Each row by itself, and its edges


def test_harm_is_a_regression() -> None:
    assert outcome(decide(found(compared(-0.2), harm=True), DEFAULTS)) == REGRESSION


def test_harm_needs_no_look() -> None:
    assert outcome(decide(found(None, harm=True), DEFAULTS)) == REGRESSION


@pytest.mark.parametrize(
    ("lift", "expected"),
    [
        (0.02, TREATMENT),
        (0.05, TREATMENT),
        (math.inf, TREATMENT),
        (math.nextafter(0.02, 0), GO_ON),
        (0.0, GO_ON),
    ],
)
def test_a_significant_lift_wins_from_min_effect_size_on(lift: float, expected: object) -> None:
    assert outcome(decide(found(compared(lift), significant=True), DEFAULTS)) == expected


def test_the_effect_that_counts_is_the_relative_one() -> None:
    small_scores = compared(0.025).model_copy(update={"difference": 0.0025})
    large_scores = compared(0.015).model_copy(update={"difference": 0.9})
    assert outcome(decide(found(small_scores, significant=True), DEFAULTS)) == TREATMENT
    assert outcome(decide(found(large_scores, significant=True), DEFAULTS)) == GO_ON


def test_without_a_smallest_effect_any_significant_gain_wins() -> None:
    settings = parameters(min_effect_size=0.0)
    assert outcome(decide(found(compared(1e-9), significant=True), settings)) == TREATMENT


@pytest.mark.parametrize(("lift", "expected"), [(-1e-12, CONTROL), (-1.0, CONTROL), (0.0, GO_ON)])
def test_a_significant_loss_of_any_size_is_a_win_of_control(lift: float, expected: object) -> None:
    assert outcome(decide(found(compared(lift), significant=True), DEFAULTS)) == expected


@pytest.mark.parametrize("lift", [0.5, -0.5])
def test_nothing_wins_without_significance(lift: float) -> None:
    assert outcome(decide(found(compared(lift)), DEFAULTS)) == GO_ON


@pytest.mark.parametrize(
    ("hours", "expected"), [(167, GO_ON), (168, TOO_SMALL), (169, TOO_SMALL), (500, TOO_SMALL)]
)
def test_an_effect_is_too_small_from_the_pinned_duration_on(hours: int, expected: object) -> None:
    small = compared(0.001, upper=0.0199, lower=-0.02)
    assert outcome(decide(found(small, hours=hours, planned_end=600), DEFAULTS)) == expected


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (-0.01, 0.02),
        (-0.01, 0.5),
        (-math.inf, 0.01),
        (-0.01, math.inf),
        (-math.inf, math.inf),
        (-math.inf, -0.9),
    ],
)
def test_an_interval_that_reaches_min_effect_size_or_has_no_bound_leaves_it_open(
    lower: float, upper: float
) -> None:
    assert (
        outcome(decide(found(compared(0.001, upper, lower), hours=200, planned_end=600), DEFAULTS)) == GO_ON
    )


def test_a_gain_proven_to_be_small_is_too_small_even_if_significant() -> None:
    gain = compared(0.01, upper=0.015, lower=0.005)
    assert outcome(decide(found(gain, hours=168, significant=True), DEFAULTS)) == TOO_SMALL


def test_without_a_look_no_effect_is_too_small() -> None:
    assert outcome(decide(found(None, hours=200, planned_end=600), DEFAULTS)) == GO_ON


@pytest.mark.parametrize(("hours", "expected"), [(719, "extend"), (720, "conclude"), (721, "conclude")])
@pytest.mark.parametrize("look", [None, compared(0.01)])
def test_the_maximum_defers_what_is_undecided(hours: int, expected: str, look: Comparison | None) -> None:
    decision = decide(found(look, hours=hours, planned_end=700), DEFAULTS)
    assert decision.action == expected
    assert (decision.conclusion, decision.winner) == (
        ("deferred", None) if expected == "conclude" else (None, None)
    )


@pytest.mark.parametrize(("hours", "expected"), [(167, None), (168, 336), (169, 336)])
@pytest.mark.parametrize("look", [None, compared(0.01)])
def test_the_planned_end_extends_what_is_undecided(
    hours: int, expected: int | None, look: Comparison | None
) -> None:
    decision = decide(found(look, hours=hours), DEFAULTS)
    assert decision.planned_end == expected
    assert decision.action == ("extend" if expected else "continue")
    assert decision.conclusion is None


def test_extensions_go_by_the_present_planned_end() -> None:
    assert decide(found(compared(0.01), hours=200, planned_end=336), DEFAULTS).action == "continue"
    assert decide(found(compared(0.01), hours=336, planned_end=336), DEFAULTS).planned_end == 504


def test_a_duration_that_is_the_maximum_is_never_extended() -> None:
    settings = parameters(duration=720)
    assert outcome(decide(found(compared(0.01), hours=720, planned_end=720), settings)) == DEFERRED


# Which row comes first


def test_harm_comes_before_everything() -> None:
    everything = compared(0.5, upper=0.01, lower=-0.01)
    assert outcome(decide(found(everything, hours=720, significant=True, harm=True), DEFAULTS)) == REGRESSION


def test_a_win_comes_before_the_maximum() -> None:
    assert outcome(decide(found(compared(0.1), hours=720, significant=True), DEFAULTS)) == TREATMENT
    assert outcome(decide(found(compared(-0.1), hours=720, significant=True), DEFAULTS)) == CONTROL


def test_a_loss_comes_before_an_effect_too_small() -> None:
    loss = compared(-0.1, upper=-0.05, lower=-0.15)
    assert outcome(decide(found(loss, hours=168, significant=True), DEFAULTS)) == CONTROL


def test_an_effect_too_small_comes_before_the_maximum_and_before_an_extension() -> None:
    small = compared(0.0, upper=0.01, lower=-0.01)
    assert outcome(decide(found(small, hours=720), DEFAULTS)) == TOO_SMALL
    assert outcome(decide(found(small, hours=168), DEFAULTS)) == TOO_SMALL


def test_the_maximum_comes_before_an_extension() -> None:
    assert outcome(decide(found(compared(0.01), hours=720, planned_end=168), DEFAULTS)) == DEFERRED


# Blocked


@pytest.mark.parametrize(("hours", "action"), [(24, "continue"), (168, "extend"), (720, "conclude")])
def test_a_blocked_win_is_remembered_and_does_not_end_the_experiment(hours: int, action: str) -> None:
    decision = decide(found(compared(0.1), hours=hours, significant=True, blocked=True), DEFAULTS)
    assert decision.blocked_win
    assert decision.action == action
    assert decision.conclusion == ("deferred" if action == "conclude" else None)


def test_a_block_forbids_nothing_but_the_win_of_treatment() -> None:
    loss, small = compared(-0.1), compared(0.0, upper=0.01, lower=-0.01)
    assert outcome(decide(found(loss, significant=True, blocked=True), DEFAULTS)) == CONTROL
    assert outcome(decide(found(small, hours=168, blocked=True), DEFAULTS)) == TOO_SMALL
    assert outcome(decide(found(None, harm=True, blocked=True), DEFAULTS)) == REGRESSION
    assert outcome(decide(found(None, hours=720, blocked=True), DEFAULTS)) == DEFERRED


def test_what_would_not_win_anyway_is_not_a_blocked_win() -> None:
    assert not decide(found(compared(0.1), blocked=True), DEFAULTS).blocked_win
    assert not decide(found(compared(0.01), significant=True, blocked=True), DEFAULTS).blocked_win
    assert not decide(found(compared(-0.1), significant=True, blocked=True), DEFAULTS).blocked_win


# Extensions


@pytest.mark.parametrize(
    ("planned_end", "hours", "expected"),
    [(168, 168, 336), (168, 192, 336), (168, 335, 336), (168, 336, 504), (168, 700, 720), (600, 600, 720)],
)
def test_as_many_extensions_follow_as_lead_past_the_time_analysed(
    planned_end: int, hours: int, expected: int
) -> None:
    assert extended_end(planned_end, hours, 168, 720) == expected


@given(st.integers(1, 300), st.integers(1, 300), st.floats(0, 900), st.integers(1, 1000))
def test_an_extended_end_lies_ahead_in_whole_durations_unless_the_maximum_cuts_it(
    planned_end: int, duration: int, late: float, maximum: int
) -> None:
    hours = planned_end + late
    end = extended_end(planned_end, hours, duration, maximum)
    assert end <= maximum
    if end < maximum:
        assert end > hours
        assert end - duration <= hours
        assert (end - planned_end) % duration == 0


@given(
    st.one_of(st.none(), st.floats(-1, 1)), st.floats(-1, 1), st.integers(1, 800), st.integers(168, 720),
    st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_every_finding_has_one_decision_with_a_reason(
    lift: float | None,
    upper: float,
    hours: int,
    planned_end: int,
    significant: bool,
    harm: bool,
    blocked: bool,
) -> None:
    look = None if lift is None else compared(lift, upper, -1.0)
    decision = decide(
        found(
            look, hours=hours, planned_end=planned_end, significant=significant, harm=harm, blocked=blocked
        ),
        DEFAULTS,
    )
    assert decision.reason
    assert (decision.conclusion is not None) == (decision.action == "conclude")
    assert (decision.planned_end is not None) == (decision.action == "extend")
    assert decision.winner == {
        "treatment_wins": "treatment", "control_wins": "control", "effect_too_small": "control",
        "regression": "control", "deferred": None, None: None,
    }[decision.conclusion]  # fmt: skip
    if hours >= 720:
        assert decision.action == "conclude"
