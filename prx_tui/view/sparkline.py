"""Sparklines: a series as a row of blocks, on a scale that does not move with the data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeGuard

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_GAP: Final = " "
_STEP: Final = 0.1
_NARROWEST: Final = 0.2


class Scale(NamedTuple):
    """The values at the foot of the lowest block and at the head of the highest."""

    low: float
    high: float


FITNESS: Final = Scale(0.0, 1.0)
"""All that a fitness can be."""


def common_scale(values: Iterable[float | None]) -> Scale:
    """Return one scale for several series of fitness: on tenths, never narrower than two of them.

    Series drawn on it can be compared, and small changes do not look like large ones.
    """
    numbers = [value for value in values if _is_number(value)]
    if not numbers:
        return FITNESS
    low = math.floor(round(min(numbers) / _STEP, 6)) * _STEP
    high = math.ceil(round(max(numbers) / _STEP, 6)) * _STEP
    while high - low < _NARROWEST - 1e-9:
        low, high = max(low - _STEP, 0.0), min(high + _STEP, 1.0)
    return Scale(round(low, 1), round(high, 1))


def sparkline(values: Sequence[float | None], width: int, scale: Scale = FITNESS) -> str:
    """Return the last values as blocks; what is missing leaves a gap.

    More values than ``width`` are averaged, so that the whole series stays in sight; the result is
    never wider than ``width``.
    """
    return "".join(_block(value, scale) for value in resampled(values, width))


def resampled(values: Sequence[float | None], width: int) -> list[float | None]:
    """Return at most ``width`` values: each the mean of its part of the series."""
    if len(values) <= width:
        return list(values)
    bounds = [index * len(values) // width for index in range(width + 1)]
    return [_mean(values[start:end]) for start, end in pairwise(bounds)]


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if _is_number(value)]
    return sum(numbers) / len(numbers) if numbers else None


def _block(value: float | None, scale: Scale) -> str:
    if not _is_number(value):
        return _GAP
    share = (value - scale.low) / (scale.high - scale.low) if scale.high > scale.low else 0.5
    return _BLOCKS[min(max(int(share * len(_BLOCKS)), 0), len(_BLOCKS) - 1)]


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
