from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.statistics import Spending, harm_spending, lifetime_spending, obrien_fleming, pocock

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())

KINDS: tuple[Spending, ...] = ("obrien_fleming", "pocock")
alphas = st.floats(1e-4, 0.2)
shares = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    "row",
    REFERENCE["lan_demets"],
    ids=lambda row: f"{row['schedule']}-{row['spending']}-{row['alpha']}-{row['sides']}",
)
def test_spending_reproduces_the_reference(row: dict[str, Any]) -> None:
    alpha, sides = row["alpha"], row["sides"]
    if row["spending"] == "pocock":
        spent = [pocock(t, alpha) for t in row["information_fractions"]]
    else:  # one side spends half of what two sides with twice the alpha spend
        spent = [obrien_fleming(t, alpha * 2 / sides) * sides / 2 for t in row["information_fractions"]]
    assert spent == pytest.approx(row["alpha_spent"], rel=6e-8, abs=0)  # given with 8 digits


@pytest.mark.parametrize("function", [obrien_fleming, pocock])
@pytest.mark.parametrize("alpha", [0.0, 1e-4, 0.05, 1.0])
def test_nothing_is_spent_at_the_start_and_all_at_the_end(function: Any, alpha: float) -> None:
    assert function(0.0, alpha) == 0.0
    assert function(1.0, alpha) == alpha


def test_early_spending_keeps_its_digits_far_below_rounding_of_one() -> None:
    # 4 · Φ(Φ⁻¹(0.0125) / 0.1), computed with 40 digits
    assert obrien_fleming(0.01, 0.05) == pytest.approx(5.7449667419335077e-111, rel=1e-12, abs=0)


@given(st.sampled_from(KINDS), alphas, shares, st.integers(1, 200), st.integers(0, 600))
def test_lifetime_spending_never_decreases_and_ends_at_alpha(
    kind: Spending, alpha: float, share: float, planned: int, beyond: int
) -> None:
    maximum = planned + beyond
    spent = [
        lifetime_spending(hour, planned, maximum, alpha=alpha, planned_share=share, kind=kind)
        for hour in range(maximum + 2)
    ]
    assert spent == sorted(spent)
    assert spent[0] == 0.0
    assert spent[maximum] == spent[maximum + 1] == alpha


@given(st.sampled_from(KINDS), alphas, shares)
def test_planned_share_is_spent_by_the_planned_end_and_the_rest_evenly(
    kind: Spending, alpha: float, share: float
) -> None:
    at_end, halfway = (
        lifetime_spending(s, 168, 720, alpha=alpha, planned_share=share, kind=kind) for s in (168, 444)
    )
    assert at_end == pytest.approx(share * alpha)
    assert halfway == pytest.approx((1 + share) / 2 * alpha)


@pytest.mark.parametrize("kind", KINDS)
def test_planned_share_is_all_when_no_time_follows(kind: Spending) -> None:
    spent = lifetime_spending(719, 720, 720, alpha=0.05, planned_share=0.1, kind=kind)
    assert spent > 0.049


def test_harm_spends_half_of_alpha_over_the_maximum() -> None:
    assert harm_spending(0, 720, alpha=0.05) == 0.0
    assert harm_spending(360, 720, alpha=0.05) == pytest.approx(0.025 * math.log(1 + (math.e - 1) / 2))
    assert harm_spending(720, 720, alpha=0.05) == harm_spending(900, 720, alpha=0.05) == 0.025


@pytest.mark.parametrize(
    ("t", "alpha"), [(-0.1, 0.05), (1.1, 0.05), (math.nan, 0.05), (0.5, -0.1), (0.5, 1.1)]
)
def test_impossible_fractions_are_refused(t: float, alpha: float) -> None:
    for function in (obrien_fleming, pocock):
        with pytest.raises(ValueError, match="must lie within 0 and 1"):
            function(t, alpha)


@pytest.mark.parametrize(
    ("elapsed", "planned", "maximum"), [(-1, 2, 3), (1, 0, 3), (1, 4, 3), (1, 2, math.inf)]
)
def test_impossible_times_are_refused(elapsed: float, planned: float, maximum: float) -> None:
    with pytest.raises(ValueError, match="need elapsed >= 0"):
        lifetime_spending(elapsed, planned, maximum, alpha=0.05, planned_share=0.8, kind="pocock")


def test_impossible_harm_times_are_refused() -> None:
    with pytest.raises(ValueError, match="need elapsed >= 0"):
        harm_spending(1, 0, alpha=0.05)
