"""Lines of text that are painted only when they differ from what stands there."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import RenderResult
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.widget import Widget

from prx_tui.view.spans import Line, Paragraph, wrap
from prx_tui.widgets.painting import painted_lines


class Lines(Widget):
    """A few lines, cut at the edge of the widget."""

    DEFAULT_CSS = """
    Lines { width: 1fr; height: auto; text-wrap: nowrap; text-overflow: clip; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, markup=False)
        self._lines: tuple[Line, ...] = ()
        self._content = painted_lines(())

    def show(self, lines: Sequence[Line]) -> None:
        """Show lines; nothing is painted if they are the same as before."""
        if (new := tuple(lines)) == self._lines:
            return
        taller = len(new) != len(self._lines)
        self._lines = new
        self._content = painted_lines(new)
        self.refresh(layout=taller)

    @property
    def lines(self) -> tuple[Line, ...]:
        """What is shown."""
        return self._lines

    def render(self) -> RenderResult:
        return self._content


class Paragraphs(Widget):
    """Paragraphs, broken between words at the edge of the widget, whatever its width."""

    DEFAULT_CSS = """
    Paragraphs { width: 1fr; height: auto; text-wrap: nowrap; text-overflow: clip; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._paragraphs: tuple[Paragraph, ...] = ()

    def show(self, paragraphs: Sequence[Paragraph]) -> None:
        """Show paragraphs; nothing is painted if they are the same as before."""
        if (new := tuple(paragraphs)) != self._paragraphs:
            self._paragraphs = new
            self.refresh(layout=True)

    def wrapped(self, width: int) -> list[Line]:
        """Return the lines that stand in so many cells."""
        return [piece for one in self._paragraphs for piece in wrap(one.line, width, one.indent)]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.wrapped(width))

    def render(self) -> RenderResult:
        return painted_lines(self.wrapped(self.content_size.width))


class Scroller(VerticalScroll, can_focus=True):
    """Lines that scroll with the keys of a pager."""

    DEFAULT_CSS = """
    Scroller { height: 1fr; }
    """
