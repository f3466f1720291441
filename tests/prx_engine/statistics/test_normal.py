from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.statistics import normal_quantile, normal_tail


@pytest.mark.parametrize(
    ("z", "tail"),  # computed with 40 digits
    [
        (0.0, 0.5),
        (1.959963984540054, 0.025000000000000011),
        (-2.0, 0.97724986805182079),
        (20.0, 2.7536241186062337e-89),
        (37.0, 5.7255712225245768e-300),
    ],
)
def test_the_upper_tail_keeps_its_digits(z: float, tail: float) -> None:
    assert normal_tail(z) == pytest.approx(tail, rel=1e-12, abs=0)
    assert normal_quantile(tail) == pytest.approx(z, rel=1e-12, abs=1e-15)


@given(st.floats(-300, math.log10(0.999)))
def test_the_quantile_is_where_the_tail_has_p(exponent: float) -> None:
    p = 10.0**exponent
    assert normal_tail(normal_quantile(p)) == pytest.approx(p, rel=1e-11, abs=0)


def test_certainty_is_at_infinity() -> None:
    assert (normal_tail(math.inf), normal_tail(-math.inf)) == (0.0, 1.0)
    assert (normal_quantile(0.0), normal_quantile(1.0)) == (math.inf, -math.inf)
