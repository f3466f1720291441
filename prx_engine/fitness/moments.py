"""Additive integer moments of a group of sessions: all that a fitness and its variance need.

For sessions i and dimensions d, with X the scores in units of 1/10000 (0 where missing) and M the
presence mask, a group is described by ``n``, ``N = MᵀM``, ``S = XᵀM`` and ``Q = XᵀX``. All entries
are whole numbers, so moments add and subtract without error and in any order: hours make windows,
windows make experiments, and a corrected session is one subtraction and one addition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from prx_engine.dimensions import DIMENSIONS

Scores = tuple[int | None, ...]
"""Scores of one session in units of 1/10000, in the order of DIMENSIONS; None where missing."""

_D: Final = len(DIMENSIONS)
_UPPER: Final = [(d, e) for d in range(_D) for e in range(d, _D)]
_FULL: Final = [(d, e) for d in range(_D) for e in range(_D)]

MOMENT_NAMES: Final[tuple[str, ...]] = (
    "n",
    *(f"n_{d}{e}" for d, e in _UPPER),
    *(f"s_{d}{e}" for d, e in _FULL),
    *(f"q_{d}{e}" for d, e in _UPPER),
)
"""Names of the entries in the order in which they are kept; ``s_de`` sums d over sessions having e."""

_INDEX: Final = {name: position for position, name in enumerate(MOMENT_NAMES)}
MISSING: Final[Scores] = (None,) * _D


def _positions(letter: str, *, symmetric: bool) -> tuple[tuple[int, ...], ...]:
    """Return where the entries of a matrix are kept, by row and column."""
    return tuple(
        tuple(
            _INDEX[f"{letter}_{min(d, e)}{max(d, e)}" if symmetric else f"{letter}_{d}{e}"] for e in range(_D)
        )
        for d in range(_D)
    )


_COUNTS: Final = _positions("n", symmetric=True)
_SUMS: Final = _positions("s", symmetric=False)
_PRODUCTS: Final = _positions("q", symmetric=True)


@cache
def _plan(present: tuple[int, ...]) -> tuple[list[int], list[tuple[int, int]], list[tuple[int, int, int]]]:
    """Return which entries a session with these dimensions touches, and from which scores."""
    pairs = [(d, e) for d in present for e in present if d <= e]
    counts = [_COUNTS[d][e] for d, e in pairs]
    sums = [(_SUMS[d][e], d) for d in present for e in present]
    products = [(_PRODUCTS[d][e], d, e) for d, e in pairs]
    return counts, sums, products


@dataclass(frozen=True, slots=True)
class Moments:
    """Moments of a group of sessions; adds and subtracts exactly.

    Attributes:
        entries: whole numbers, in the order of MOMENT_NAMES.
    """

    entries: tuple[int, ...] = (0,) * len(MOMENT_NAMES)

    @classmethod
    def of(cls, sessions: Iterable[Scores]) -> Moments:
        """Return the moments of sessions; one without any score does not count."""
        accumulator = MomentAccumulator()
        for scores in sessions:
            accumulator.add(scores)
        return accumulator.moments()

    def __add__(self, other: Moments) -> Moments:
        return Moments(tuple(a + b for a, b in zip(self.entries, other.entries, strict=True)))

    def __sub__(self, other: Moments) -> Moments:
        return Moments(tuple(a - b for a, b in zip(self.entries, other.entries, strict=True)))

    @property
    def n(self) -> int:
        """Number of sessions with at least one score."""
        return self.entries[0]

    def count(self, d: int, e: int) -> int:
        """Number of sessions that have both dimensions."""
        return self.entries[_COUNTS[d][e]]

    def total(self, d: int, e: int) -> int:
        """Sum of dimension d over the sessions that also have e, in units."""
        return self.entries[_SUMS[d][e]]

    def product(self, d: int, e: int) -> int:
        """Sum of products of the two dimensions, in units squared."""
        return self.entries[_PRODUCTS[d][e]]

    def observations(self, d: int) -> int:
        """Number of sessions that have the dimension."""
        return self.count(d, d)


class MomentAccumulator:
    """Moments under construction: sessions are added and taken away in place."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries = [0] * len(MOMENT_NAMES)

    def add(self, scores: Scores, sign: int = 1) -> None:
        """Add one session (or take it away, with ``sign=-1``)."""
        if scores == MISSING:
            return
        present = tuple([d for d, score in enumerate(scores) if score is not None])
        counts, sums, products = _plan(present)
        entries = self.entries
        x: Sequence[int] = [0 if value is None else sign * value for value in scores]
        entries[0] += sign
        for position in counts:
            entries[position] += sign
        for position, d in sums:
            entries[position] += x[d]
        for position, d, e in products:
            entries[position] += sign * x[d] * x[e]

    def moments(self) -> Moments:
        """Return what has been added up so far."""
        return Moments(tuple(self.entries))
