"""Text with a meaning: what a screen shows, before any widget or theme gives it a colour."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from rich.cells import cell_len

Tone = Literal["", "dim", "strong", "attention", "bad", "good", "control", "treatment", "key"]
"""What a piece of text means; the theme decides how it looks."""

ELLIPSIS: Final = "…"
"""Marks text that was cut."""

_SPACES: Final = re.compile(r" +")


class Span(NamedTuple):
    """A piece of text and what it means."""

    text: str
    tone: Tone = ""


Line = tuple[Span, ...]
"""One line of a screen."""


class Paragraph(NamedTuple):
    """A line that may be broken into several.

    Attributes:
        line: as it stands where there is room for all of it.
        indent: stands before every further line.
    """

    line: Line
    indent: str = ""


def line(*parts: str | Span | Line) -> Line:
    """Return a line from texts, spans and lines."""
    spans: list[Span] = []
    for part in parts:
        if isinstance(part, Span):
            spans.append(part)
        elif isinstance(part, str):
            spans.append(Span(part))
        else:
            spans.extend(part)
    return tuple(span for span in spans if span.text)


def plain(spans: Line) -> str:
    """Return the text of a line."""
    return "".join(span.text for span in spans)


def width_of(spans: Line) -> int:
    """Return how many terminal cells a line takes."""
    return sum(cell_len(span.text) for span in spans)


def cut(spans: Line, width: int) -> Line:
    """Return a line that fits into ``width`` cells, cut with a mark if it has to be."""
    if width_of(spans) <= width:
        return spans
    kept: list[Span] = []
    left = width - 1
    for span in spans:
        text = _head(span.text, left)
        kept.append(Span(text, span.tone))
        left -= cell_len(text)
        if text != span.text:
            break
    if width > 0:
        kept.append(Span(ELLIPSIS, kept[-1].tone if kept else ""))
    return tuple(span for span in kept if span.text)


def fit(spans: Line, width: int, *, right: bool = False) -> Line:
    """Return a line of exactly ``width`` cells, cut with a mark or padded."""
    fitted = cut(spans, width)
    padding = Span(" " * (width - width_of(fitted)))
    return line(padding, fitted) if right else line(fitted, padding)


def wrap(spans: Line, width: int, indent: str = "") -> list[Line]:
    """Return a line broken between words into lines of at most ``width`` cells, all but one indented."""
    lines: list[Line] = []
    present: list[Span] = []
    used = 0
    for piece in _pieces(spans):
        size = cell_len(piece.text)
        if present and used + size > width and piece.text.strip():
            lines.append(_stripped(present))
            present, used = ([Span(indent)], cell_len(indent)) if indent else ([], 0)
        while size > width - used and not piece.text.isspace() and width > used:
            head = _head(piece.text, width - used) or piece.text[0]
            lines.append(line(*present, Span(head, piece.tone)))
            present, used = [], 0
            piece = Span(piece.text[len(head) :], piece.tone)
            size = cell_len(piece.text)
        present.append(piece)
        used += size
    if present:
        lines.append(_stripped(present))
    return lines or [()]


def join_fitting(pieces: Sequence[tuple[int, Line]], width: int, gap: str = "   ") -> Line:
    """Return as many pieces as fit into ``width`` cells, in their order.

    Args:
        pieces: each with its importance; the least important ones (largest numbers) leave first.
        width: cells to fill.
        gap: what stands between two pieces.
    """
    kept = list(pieces)
    while len(kept) > 1 and _joined_width(kept, gap) > width:
        # The last of the least important: what stands first on the line is read first.
        index = max(range(len(kept)), key=lambda i: (kept[i][0], i))
        del kept[index]
    joined: list[Span | Line] = []
    for number, (_, piece) in enumerate(kept):
        joined.extend((Span(gap), piece) if number else (piece,))
    return cut(line(*joined), width)


def _joined_width(pieces: Sequence[tuple[int, Line]], gap: str) -> int:
    return sum(width_of(piece) for _, piece in pieces) + cell_len(gap) * (len(pieces) - 1)


def _head(text: str, width: int) -> str:
    """Return the longest beginning of a text that takes at most ``width`` cells."""
    if text.isascii():
        return text[: max(width, 0)]
    used = 0
    for index, character in enumerate(text):
        used += cell_len(character)
        if used > width:
            return text[:index]
    return text


def _pieces(spans: Iterable[Span]) -> Iterable[Span]:
    """Words and the spaces between them, one by one."""
    for span in spans:
        position = 0
        for match in _SPACES.finditer(span.text):
            if match.start() > position:
                yield Span(span.text[position : match.start()], span.tone)
            yield Span(match.group(), span.tone)
            position = match.end()
        if position < len(span.text):
            yield Span(span.text[position:], span.tone)


def _stripped(spans: Sequence[Span]) -> Line:
    kept = list(spans)
    while kept and not kept[-1].text.strip():
        kept.pop()
    return tuple(kept)
