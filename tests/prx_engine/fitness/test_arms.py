"""Two arms: how many were assigned beside the moments of those that were scored."""

from __future__ import annotations

from prx_engine.fitness.arms import Arm, added, empty_arms
from prx_engine.fitness.moments import Moments

ONE = Arm(3, Moments.of([(1, None, None, None, None, None)]))
OTHER = Arm(2, Moments.of([(5, 6, None, None, None, None)] * 2))


def test_arms_add_in_both_parts() -> None:
    assert Arm(5, ONE.moments + OTHER.moments) == ONE + OTHER
    assert ONE + Arm() == ONE


def test_both_arms_add_side_by_side() -> None:
    first = {"control": ONE, "treatment": Arm()}
    second = {"control": OTHER, "treatment": ONE}
    assert added(first, second) == {"control": ONE + OTHER, "treatment": ONE}  # type: ignore[arg-type]
    assert added(empty_arms(), empty_arms()) == empty_arms()
