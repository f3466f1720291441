"""Additive integer moments of a group of sessions: all that a fitness and its variance need.

For sessions i and dimensions d, with X the scores in units of 1/10000 (0 where missing) and M the
presence mask, a group is described by ``n``, ``N = MᵀM``, ``S = XᵀM`` and ``Q = XᵀX``. All entries
are whole numbers, so moments add and subtract without error and in any order: hours make windows,
windows make experiments, and a corrected session is one subtraction and one addition.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
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
def _places(present: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return where the sums over sessions with exactly these dimensions belong: entry, place in sums."""
    pairs = list(combinations_with_replacement(present, 2))
    places = [(0, 0), *((_COUNTS[d][e], 0) for d, e in pairs)]
    places += [(_SUMS[d][e], 1 + i) for i, d in enumerate(present) for e in present]
    first = 1 + len(present)
    return places + [(_PRODUCTS[d][e], first + i) for i, (d, e) in enumerate(pairs)]


_PENDING: Final = 1000
"""Sessions that wait to be summed up, so that memory stays flat."""


def _sums(sessions: Sequence[Scores], present: Iterable[int]) -> list[int]:
    """Return the sums over sessions with exactly these dimensions: one, each score, each product of two."""
    columns = list(zip(*sessions, strict=True))
    x = [columns[d] for d in present]
    products = [sum(map(operator.mul, a, b)) for a, b in combinations_with_replacement(x, 2)]
    return [len(sessions), *map(sum, x), *products]


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
        return Moments(tuple(map(operator.add, self.entries, other.entries)))

    def __sub__(self, other: Moments) -> Moments:
        return Moments(tuple(map(operator.sub, self.entries, other.entries)))

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

    __slots__ = ("_entries", "_pending")

    def __init__(self) -> None:
        self._entries = [0] * len(MOMENT_NAMES)
        self._pending: dict[int, list[Scores]] = {1: [], -1: []}

    def add(self, scores: Scores, sign: int = 1) -> None:
        """Add one session (or take it away, with ``sign=-1``)."""
        if scores == MISSING:
            return
        pending = self._pending[sign]
        pending.append(scores)
        if len(pending) == _PENDING:
            self._sum_up()

    def moments(self) -> Moments:
        """Return what has been added up so far."""
        self._sum_up()
        return Moments(tuple(self._entries))

    def _sum_up(self) -> None:
        """Sum sessions with the same dimensions together, a column at a time."""
        entries = self._entries
        for sign, pending in self._pending.items():
            alike: defaultdict[tuple[int, ...], list[Scores]] = defaultdict(list)
            for scores in pending:
                alike[tuple([d for d, score in enumerate(scores) if score is not None])].append(scores)
            for present, sessions in alike.items():
                sums = _sums(sessions, present)
                for entry, place in _places(present):
                    entries[entry] += sign * sums[place]
            pending.clear()
