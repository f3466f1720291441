"""From text with a meaning to text with a look; the theme decides the colours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual.content import Content

from prx_tui.view.spans import Line, Tone

STYLES: Final[dict[Tone, str]] = {
    "": "",
    "dim": "$foreground 62%",
    "strong": "bold",
    "attention": "bold $text-warning",
    "bad": "$text-error",
    "good": "$text-success",
    "control": "$text-primary",
    "treatment": "$treatment",
    "key": "bold $text-accent",
}


def painted(spans: Line) -> Content:
    """Return a line as content; the text is never read as markup."""
    return Content.assemble(*((span.text, STYLES[span.tone]) for span in spans))


def painted_lines(lines: Iterable[Line]) -> Content:
    """Return lines as one content."""
    return Content("\n").join([painted(spans) for spans in lines])
