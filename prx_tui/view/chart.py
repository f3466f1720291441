"""A line chart in braille: two dots across and four down in every cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from prx_tui.formatting import half_up
from prx_tui.view.spans import Line, Span, Tone, line

_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE: Final = 0x2800
_LABEL_WIDTH: Final = 5
_NARROWEST: Final = 0.04
_DASH: Final = 4
_UPRIGHT: Final = "┊"


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart.

    Attributes:
        name: stands at its end.
        points: x and y; a missing y interrupts the line.
        tone: what it means.
        dash: dots drawn of every four, so that lines differ without colour too; 0 draws all.
        mark: stands at each point instead of a line.
    """

    name: str
    points: Sequence[tuple[float, float | None]]
    tone: Tone
    dash: int = 0
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """What stands under the chart: texts at x positions, in order; and a line upwards at one of them."""

    start: float
    end: float
    ticks: Sequence[tuple[float, str]]
    upright: float | None = None


class Scale(NamedTuple):
    """Both ends of y, and how many decimals its labels have."""

    low: float
    high: float
    digits: int = 2


class _Canvas:
    """A grid of braille cells, each in the tone of the last line drawn through it."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self._bits = [[0] * width for _ in range(height)]
        self._tones: list[list[Tone]] = [[""] * width for _ in range(height)]
        self._marks: dict[tuple[int, int], str] = {}

    def dot(self, x: int, y: int, tone: Tone) -> None:
        """Set one dot; y counts from the top."""
        if 0 <= x < self.width * 2 and 0 <= y < self.height * 4:
            self._bits[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
            self._tones[y // 4][x // 2] = tone

    def mark(self, x: int, y: int, text: str, tone: Tone) -> None:
        """Put a character over the cell of a dot."""
        if 0 <= x < self.width * 2 and 0 <= y < self.height * 4:
            self._marks[x // 2, y // 4] = text
            self._tones[y // 4][x // 2] = tone

    def upright(self, x: int) -> None:
        """Draw a line from top to bottom wherever nothing else stands."""
        for y in range(self.height):
            if not self._bits[y][x // 2] and (x // 2, y) not in self._marks:
                self.mark(x, y * 4, _UPRIGHT, "dim")

    def row(self, y: int) -> Line:
        """Return one line of cells."""
        return tuple(
            Span(self._marks.get((x, y)) or (chr(_BRAILLE + bits) if bits else " "), tone)
            for x, (bits, tone) in enumerate(zip(self._bits[y], self._tones[y], strict=True))
        )


def chart(
    series: Sequence[Series], axis: Axis, width: int, height: int, scale: Scale | None = None
) -> list[Line]:
    """Return a chart as ``height`` lines, the last one its axis.

    Args:
        series: drawn in this order, the later ones on top.
        axis: range and labels of x.
        width: in cells; too small a chart is empty.
        height: in lines.
        scale: of y; as the values need it, if not given.
    """
    names = max((len(one.name) for one in series), default=0) + 1
    columns, rows = width - _LABEL_WIDTH - 2 - names, height - 1
    values = [y for one in series for _, y in one.points if y is not None and math.isfinite(y)]
    if columns < 8 or rows < 2 or not values:
        return []
    low, high, digits = scale or _range(values)
    canvas = _Canvas(columns, rows)
    for one in series:
        _draw(canvas, one, axis, low, high)
    if axis.upright is not None:
        canvas.upright(_column(axis.upright, axis, columns))
    labels = _end_labels(series, low, high, rows)
    lines = [
        line(
            _scale_label(row, rows, low, high, digits),
            Span("┤" if _labelled(row, rows) else "│", "dim"),
            *_merged(canvas.row(row)),
            Span(" "),
            labels.get(row, ()),
        )
        for row in range(rows)
    ]
    return [*lines, _axis_line(axis, columns)]


def _range(values: Sequence[float]) -> Scale:
    """Return the ends of y: on hundredths and never so narrow that noise fills the chart."""
    low, high = min(values), max(values)
    if high - low < _NARROWEST:
        middle = (low + high) / 2
        low, high = middle - _NARROWEST / 2, middle + _NARROWEST / 2
    return Scale(math.floor(round(low * 100, 6)) / 100, math.ceil(round(high * 100, 6)) / 100)


def _column(x: float, axis: Axis, columns: int) -> int:
    """Return the column of dots that a value of x is in."""
    return round((x - axis.start) / (axis.end - axis.start or 1.0) * (columns * 2 - 1))


def _draw(canvas: _Canvas, one: Series, axis: Axis, low: float, high: float) -> None:
    previous: tuple[int, int] | None = None
    for x, y in one.points:
        if y is None or not math.isfinite(y):
            previous = None
            continue
        column = _column(x, axis, canvas.width)
        row = round((high - y) / (high - low) * (canvas.height * 4 - 1))
        if one.mark:
            canvas.mark(column, row, one.mark, one.tone)
            continue
        for dot_x, dot_y in _between(previous or (column, row), (column, row)):
            if not one.dash or dot_x % _DASH < one.dash:
                canvas.dot(dot_x, dot_y, one.tone)
        previous = column, row


def _between(start: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    return [
        (
            round(start[0] + (end[0] - start[0]) * step / steps),
            round(start[1] + (end[1] - start[1]) * step / steps),
        )
        for step in range(steps + 1)
    ]


def _labelled(row: int, rows: int) -> bool:
    return row in (0, rows - 1) or (rows >= 7 and row == rows // 2)


def _scale_label(row: int, rows: int, low: float, high: float, digits: int) -> Span:
    if not _labelled(row, rows):
        return Span(" " * _LABEL_WIDTH)
    value = high - (row + (0.5 if 0 < row < rows - 1 else float(row > 0))) / rows * (high - low)
    return Span(f"{half_up(value, digits):>{_LABEL_WIDTH}}", "dim")


def _end_labels(series: Sequence[Series], low: float, high: float, rows: int) -> dict[int, Line]:
    """Return the name of each line beside its last value; names that meet are put one below the other."""
    ends = []
    for one in series:
        known = [y for _, y in one.points if y is not None and math.isfinite(y)]
        if known and one.name:
            ends.append((min(max(int((high - known[-1]) / (high - low) * rows), 0), rows - 1), one))
    ends.sort(key=lambda end: (end[0], -_last(end[1])))
    labels: dict[int, Line] = {}
    for row, one in ends:
        free = [r for r in (*range(row, rows), *range(row - 1, -1, -1)) if r not in labels]
        if free:
            labels[free[0]] = (Span(one.name, one.tone),)
    return labels


def _last(one: Series) -> float:
    return next((y for _, y in reversed(one.points) if y is not None), 0.0)


def _axis_line(axis: Axis, columns: int) -> Line:
    cells = [" "] * (columns + 1)
    free = 0
    for x, text in axis.ticks:
        share = (x - axis.start) / ((axis.end - axis.start) or 1.0)
        at = min(max(round(share * columns - len(text) * share), free), columns + 1 - len(text))
        if at < free:
            continue
        cells[at : at + len(text)] = text
        free = at + len(text) + 2
    return (Span(" " * _LABEL_WIDTH + "└" + "".join(cells).rstrip(), "dim"),)


def _merged(spans: Line) -> list[Span]:
    """Join neighbours of one tone: fewer pieces to paint."""
    merged: list[Span] = []
    for span in spans:
        if merged and merged[-1].tone == span.tone:
            merged[-1] = Span(merged[-1].text + span.text, span.tone)
        else:
            merged.append(span)
    return merged
