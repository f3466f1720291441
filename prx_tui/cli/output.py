"""What commands write: data on stdout, messages on stderr, both harmless to a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import click

from prx_tui.text import cell_width, cut_to_cells, safe_text

_GAP: Final = "  "
_NARROWEST_FLEXIBLE: Final = 12


def say(message: object) -> None:
    """Write a message for the person who runs the command: one line on stderr."""
    click.echo(f"prx: {safe_text(message, 4_000)}", err=True)


def put(line: str = "") -> None:
    """Write a line of data on stdout; the caller has made its text safe."""
    click.echo(line)


def put_json(value: Any, *, one_line: bool = False) -> None:
    """Write records, or plain data with records in it, as JSON.

    Everything but ASCII is escaped, so that no text in it can do anything to a terminal, and infinite
    numbers are null.
    """
    from pydantic_core import PydanticSerializationError, to_json

    indent = None if one_line else 2
    try:
        text = to_json(value, indent=indent, ensure_ascii=True, inf_nan_mode="null").decode("ascii")
    except PydanticSerializationError:
        text = _with_undecodable_names(value, indent)
    click.echo(text.replace("\x7f", "\\u007f"))


def _with_undecodable_names(value: Any, indent: int | None) -> str:
    """JSON in which names of files that are not UTF-8 stand as Python reads them: halves of surrogates."""
    import json

    from pydantic_core import to_jsonable_python

    return json.dumps(to_jsonable_python(value, inf_nan_mode="null"), indent=indent)


def on_terminal() -> bool:
    """Tell whether stdout is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def draws_blocks() -> bool:
    """Tell whether stdout is a terminal that can show block characters."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    return on_terminal() and encoding == "utf8"


def styled(text: str, **style: Any) -> str:
    """Return text in colour or bold where that is wanted: on a terminal without NO_COLOR."""
    plain = not on_terminal() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else click.style(text, **style)


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        title: stands above it.
        right: whether its cells stand at its right side.
    """

    title: str
    right: bool = False


def put_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Write a table with aligned columns.

    In a pipe every cell is complete, whatever its length. On a terminal the last column is cut where the
    line ends; put the longest text there.
    """
    rows = list(rows)
    widths = [
        max(cell_width(cell) for cell in (column.title, *(row[i] for row in rows)))
        for i, column in enumerate(columns)
    ]
    if on_terminal():
        others = sum(widths[:-1]) + len(_GAP) * (len(columns) - 1)
        left = shutil.get_terminal_size().columns - others
        widths[-1] = min(widths[-1], max(left, _NARROWEST_FLEXIBLE))
        rows = [[*row[:-1], cut_to_cells(row[-1], widths[-1])] for row in rows]
    put(styled(_line([column.title for column in columns], columns, widths), bold=True))
    for row in rows:
        put(_line(row, columns, widths))


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    return _GAP.join(
        _padded(cell, width, right=column.right)
        for cell, column, width in zip(cells, columns, widths, strict=True)
    ).rstrip()


def _padded(cell: str, width: int, *, right: bool) -> str:
    space = " " * (width - cell_width(cell))
    return space + cell if right else cell + space


def put_fields(fields: Iterable[tuple[str, str]]) -> None:
    """Write names and values, one pair a line, the values aligned; further lines of a value are indented."""
    fields = list(fields)
    width = max((len(name) for name, _ in fields), default=0)
    for name, value in fields:
        first, *rest = value.split("\n")
        put(f"{name:<{width}}{_GAP}{first}".rstrip())
        for line in rest:
            put(f"{'':<{width}}{_GAP}{line}".rstrip())
