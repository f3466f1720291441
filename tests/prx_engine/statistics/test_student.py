from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from prx_engine.statistics import student_cdf, t_quantile

TAILS = [  # P(T <= -t), computed with 50 digits
    (2.0, 5, 0.05096973941492918),
    (10.0, 1, 0.03172551743055357),
    (1e200, 1, 3.1830988618379067e-201),
    (2e8, 1.5, 1.3331976627662362e-13),
    (1e60, 4.5, 5.249195123643432e-270),
    (100.0, 100.5, 9.805975842987545e-103),
    (30.0, 1000, 7.687343722021741e-142),
    (38.0, 12345.6, 3.2122946591793245e-299),
    (37.0, 2e6, 7.238743231737505e-300),
    (36.9, 1e8, 2.321274213353763e-298),
]


@pytest.mark.parametrize(("t", "df", "expected"), TAILS)
def test_tails_keep_their_digits(t: float, df: float, expected: float) -> None:
    assert student_cdf(-t, df) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize(("t", "df", "tail"), TAILS)
def test_quantiles_of_far_tails_are_found(t: float, df: float, tail: float) -> None:
    assert t_quantile(2 * tail, df) == pytest.approx(t, rel=1e-11, abs=0)


@given(st.floats(1.0, 1e9), st.floats(-300, 0))
def test_quantile_is_where_the_tail_has_alpha(df: float, exponent: float) -> None:
    alpha = 10.0**exponent
    assume(alpha < 0.999)
    assert 2 * student_cdf(-t_quantile(alpha, df), df) == pytest.approx(alpha, rel=1e-8, abs=0)


@given(st.floats(1.0, 1e9), st.floats(-1e9, 1e9))
def test_the_distribution_is_symmetric(df: float, t: float) -> None:
    assert student_cdf(t, df) == pytest.approx(1.0 - student_cdf(-t, df), abs=1e-15)


def test_certainty_is_at_infinity() -> None:
    assert student_cdf(-math.inf, 7.5) == 0.0
    assert student_cdf(math.inf, 7.5) == 1.0
    assert t_quantile(0.0, 7.5) == math.inf
    assert t_quantile(1.0, 7.5) == 0.0


@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan])
def test_impossible_alpha_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha must lie within 0 and 1"):
        t_quantile(alpha, 10.0)


@pytest.mark.parametrize("df", [0.0, 0.9, math.nan])
def test_less_than_one_degree_of_freedom_is_refused(df: float) -> None:
    with pytest.raises(ValueError, match="degrees of freedom must be at least 1"):
        t_quantile(0.05, df)
