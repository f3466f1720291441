"""Text from data becomes harmless here, once, on its way to a terminal."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_BIDI_CONTROLS: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_LINE_BREAKS: Final = frozenset("\n\r\t\v\f\u0085\u2028\u2029")
_REPLACEMENT: Final = "\ufffd"
_NARROW: Final = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff–→−∞…█▉-▏]*")
"""Texts of characters that certainly take one cell each."""
_DEFAULT_LENGTH: Final = 2_000


def safe_text(value: object, length: int = _DEFAULT_LENGTH) -> str:
    """Return a value as one line of plain text that a terminal can only show.

    Line breaks and tabs become spaces; other control characters (C0, C1), direction controls and
    halves of surrogate pairs become U+FFFD, so that it shows that something stood there. A longer
    text is cut at ``length`` characters, with a mark.
    """
    text = str(value)
    cut = text[: length - 1] + "…" if len(text) > length else text
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join(_safe_character(character) for character in cut)


def safe_lines(value: object, length: int = 100_000) -> str:
    """Return a value as plain text that keeps its line breaks; otherwise as ``safe_text``."""
    lines = str(value)[:length].replace("\r\n", "\n").split("\n")
    return "\n".join(safe_text(line.expandtabs(4), length) for line in lines)


def cell_width(text: str) -> int:
    """Return how many cells of a terminal a text takes; a Chinese character takes two."""
    if _NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len  # its tables are not needed for most texts

    return cell_len(text)


def cut_to_cells(text: str, width: int) -> str:
    """Return a text that takes at most ``width`` cells, with a mark if something was cut off."""
    if cell_width(text) <= width:
        return text
    from rich.cells import set_cell_size

    return f"{set_cell_size(text, max(width - 1, 0)).rstrip()}…" if width > 0 else ""


def _safe_character(character: str) -> str:
    if character in _LINE_BREAKS:
        return " "
    if character in _BIDI_CONTROLS or unicodedata.category(character) in ("Cc", "Cs"):
        return _REPLACEMENT
    return character
