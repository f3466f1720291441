"""Columns of a table: which ones a terminal has room for, and how wide each is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from prx_tui.view.spans import Line, width_of

GAP: Final = 2
"""Cells between two columns."""

_NARROWEST_FLEXIBLE: Final = 18
_COMFORTABLE_FLEXIBLE: Final = 50
_LUXURY: Final = 9
"""Columns of this importance and less leave before the flexible one is cut to less than is comfortable."""


class Column(NamedTuple):
    """One column of a table.

    Attributes:
        id: names it.
        title: its head.
        importance: 0 always stays; the largest number leaves a narrow terminal first.
        right: whether its cells are set to the right.
        flexible: whether it takes the space that the others leave.
        compact: width at the least, if its cells still say something when cut to it.
    """

    id: str
    title: str
    importance: int = 0
    right: bool = False
    flexible: bool = False
    compact: int | None = None


class Row(NamedTuple):
    """One row of a table.

    Attributes:
        key: names what the row stands for, whatever its place.
        cells: one a column.
        essence: what is compared to tell whether something has happened to it; not mere ageing.
    """

    key: str
    cells: tuple[Line, ...]
    essence: tuple[str, ...] = ()


def layout(columns: Sequence[Column], rows: Sequence[Row], available: int) -> list[tuple[int, int]]:
    """Return the columns that fit into ``available`` cells, by index, each with its width."""
    natural = [
        max([width_of(row.cells[index]) for row in rows] + [len(column.title)])
        for index, column in enumerate(columns)
    ]
    shown = list(range(len(columns)))
    comfortable = _least(columns, natural, _COMFORTABLE_FLEXIBLE)
    _drop(columns, shown, comfortable, available, _LUXURY)
    least = _least(columns, natural, _NARROWEST_FLEXIBLE)
    _drop(columns, shown, least, available, 1)
    widths = {index: least[index] for index in shown}
    for index in shown:
        compact = columns[index].compact
        if _width(widths, shown) > available and compact is not None:
            widths[index] = compact
    spare = available - _width(widths, shown)
    for index in shown:
        if columns[index].flexible:
            # Neither wider than its content needs nor narrower than nothing.
            widths[index] = max(min(widths[index] + spare, natural[index]), 1)
    return [(index, widths[index]) for index in shown]


def _least(columns: Sequence[Column], natural: Sequence[int], flexible: int) -> list[int]:
    """Return the widths that columns need at the least, a flexible one at most so much."""
    return [
        min(width, flexible) if column.flexible else width
        for column, width in zip(columns, natural, strict=True)
    ]


def _drop(
    columns: Sequence[Column], shown: list[int], widths: Sequence[int], available: int, importance: int
) -> None:
    """Take columns out of ``shown``, the least important first, until they fit if that can be."""
    while _width(widths, shown) > available:
        droppable = [index for index in shown if columns[index].importance >= importance]
        if not droppable:
            return
        shown.remove(max(droppable, key=lambda index: columns[index].importance))


def _width(widths: Sequence[int] | dict[int, int], shown: Sequence[int]) -> int:
    return sum(widths[index] for index in shown) + GAP * (len(shown) - 1)
