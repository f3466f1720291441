"""A table whose cursor belongs to a row's key, not to its place.

Rows are compared by key when new ones come: cursor and scroll stay with their row wherever it moves,
and only lines that differ are painted. The rows in sight are all that is ever laid out, so that
thousands cost no more than ten.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from prx_tui.view.columns import GAP, Column, Row, layout
from prx_tui.view.spans import Line, Span, fit, line
from prx_tui.widgets.painting import painted

CURSOR_MARK = "❯"
CHANGED_MARK = "•"
_GUTTER = 3


class RowTable(ScrollView, can_focus=True):
    """Rows under heads, one of them under the cursor."""

    DEFAULT_CSS = """
    RowTable { height: 1fr; overflow-x: hidden; }
    """

    cursor_key: reactive[str | None] = reactive(None, repaint=False)

    class Moved(Message):
        """The cursor is on another row."""

        def __init__(self, key: str | None) -> None:
            super().__init__()
            self.key = key

    class HeadClicked(Message):
        """Somebody clicked the head of a column."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    class Opened(Message):
        """Somebody clicked the row under the cursor."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._columns: tuple[Column, ...] = ()
        self._rows: tuple[Row, ...] = ()
        self._index: dict[str, int] = {}
        self._layout: list[tuple[int, int]] = []
        self._marked: frozenset[str] = frozenset()
        self._empty: Line = ()

    # What it shows

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows, in order."""
        return self._rows

    @property
    def shown_columns(self) -> list[str]:
        """The columns that there is room for."""
        return [self._columns[index].id for index, _ in self._layout]

    @property
    def cursor_row(self) -> int | None:
        """Where the cursor is."""
        return None if self.cursor_key is None else self._index.get(self.cursor_key)

    @property
    def marked(self) -> frozenset[str]:
        """Keys of the rows that are marked as changed."""
        return self._marked

    def show(self, columns: Sequence[Column], rows: Sequence[Row], empty: Line = ()) -> None:
        """Show rows; cursor and scroll stay with the row that they are on.

        Args:
            columns: heads and widths.
            rows: each with its key.
            empty: stands there if there are no rows.
        """
        old_rows, old_columns, old_layout = self._rows, self._columns, self._layout
        if (tuple(rows), tuple(columns), empty) == (old_rows, old_columns, self._empty):
            return
        old_cursor = self.cursor_row
        self._columns, self._rows, self._empty = tuple(columns), tuple(rows), empty
        self._index = {row.key: index for index, row in enumerate(self._rows)}
        self._lay_out()
        self._keep_cursor(old_cursor)
        if len(rows) != len(old_rows):
            self.virtual_size = Size(self.size.width, len(self._rows) + 1)
        if old_columns != self._columns or old_layout != self._layout or len(rows) != len(old_rows):
            self.refresh()
            return
        for index, (old, new) in enumerate(zip(old_rows, self._rows, strict=True)):
            if old != new:
                self._refresh_row(index)

    def mark(self, keys: frozenset[str]) -> None:
        """Mark rows as changed, and no others."""
        changed = keys ^ self._marked
        self._marked = keys
        for key in changed:
            if key in self._index:
                self._refresh_row(self._index[key])

    # Moving

    def move_to(self, key: str | None) -> None:
        """Put the cursor on a row and bring it into sight."""
        old = self.cursor_row
        if key == self.cursor_key:
            return
        self.cursor_key = key
        for index in (old, self.cursor_row):
            if index is not None:
                self._refresh_row(index)
        self._scroll_into_sight()
        self.post_message(self.Moved(key))

    def move_by(self, steps: int) -> None:
        """Move the cursor down, or up if negative; it stops at the ends."""
        if not self._rows:
            return
        index = (self.cursor_row or 0) + steps
        self.move_to(self._rows[min(max(index, 0), len(self._rows) - 1)].key)

    def move_to_end(self, *, last: bool) -> None:
        """Move the cursor to the first or the last row."""
        self.move_by(len(self._rows) if last else -len(self._rows))

    # The keys of a scrolling container move the cursor here, and the scroll follows it.

    def action_scroll_up(self) -> None:
        self.move_by(-1)

    def action_scroll_down(self) -> None:
        self.move_by(1)

    def action_page_up(self) -> None:
        self.move_by(-self.page)

    def action_page_down(self) -> None:
        self.move_by(self.page)

    def action_scroll_home(self) -> None:
        self.move_to_end(last=False)

    def action_scroll_end(self) -> None:
        self.move_to_end(last=True)

    @property
    def page(self) -> int:
        """Rows in sight."""
        return max(self.size.height - 1, 1)

    def _keep_cursor(self, old_place: int | None) -> None:
        if self.cursor_key in self._index:
            new_place = self._index[self.cursor_key or ""]
            if old_place is not None and new_place != old_place:
                # The row moved: what is in sight moves with it.
                self._scroll_rows(new_place - old_place)
            return
        # Its row is gone: the cursor stays in its place, on whatever stands there now.
        place = min(old_place or 0, len(self._rows) - 1)
        self.cursor_key = self._rows[place].key if self._rows else None
        self.post_message(self.Moved(self.cursor_key))

    def _scroll_rows(self, rows: int) -> None:
        if self.scroll_offset.y:
            self.virtual_size = Size(self.size.width, len(self._rows) + 1)
            self.scroll_to(y=max(self.scroll_offset.y + rows, 0), animate=False)

    def _scroll_into_sight(self) -> None:
        index, top = self.cursor_row, self.scroll_offset.y
        if index is None:
            return
        if index < top:
            self.scroll_to(y=index, animate=False)
        elif index >= top + self.page:
            self.scroll_to(y=index - self.page + 1, animate=False)

    # Painting

    def _lay_out(self) -> None:
        width = max(self.scrollable_content_region.width - _GUTTER, 1)
        self._layout = layout(self._columns, self._rows, width) if self._columns else []

    def _refresh_row(self, index: int) -> None:
        y = index - self.scroll_offset.y + 1
        if 1 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def on_resize(self, event: events.Resize) -> None:
        self.virtual_size = Size(event.size.width, len(self._rows) + 1)
        self._lay_out()
        self._scroll_into_sight()
        self.refresh()

    def watch_has_focus(self, focus: bool) -> None:
        super().watch_has_focus(focus)
        if (index := self.cursor_row) is not None:
            self._refresh_row(index)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y > max(len(self._rows) - self.scroll_offset.y, 1):
            return Strip.blank(width, self.rich_style)
        content = self._head_line() if y == 0 else self._row_line(y - 1 + self.scroll_offset.y, width)
        strips = Visual.to_strips(self, content, width, 1, self.visual_style, apply_selection=False, pad=True)
        return strips[0] if strips else Strip.blank(width, self.rich_style)

    def _head_line(self) -> Content:
        heads = [
            fit(line(Span(self._columns[index].title, "dim")), width, right=self._columns[index].right)
            for index, width in self._layout
        ]
        return painted(line(" " * _GUTTER, *_spread(heads)))

    def _row_line(self, index: int, width: int) -> Content:
        if index >= len(self._rows):
            return painted(self._empty) if index == 0 and not self._rows else Content("")
        row = self._rows[index]
        under_cursor = row.key == self.cursor_key
        mark = CURSOR_MARK if under_cursor else " "
        changed = CHANGED_MARK if row.key in self._marked else " "
        cells = [
            fit(row.cells[column], size, right=self._columns[column].right) for column, size in self._layout
        ]
        spans = line(Span(mark, "strong"), Span(changed, "attention"), " ", *_spread(cells))
        content = painted(fit(spans, width))
        if under_cursor:
            focused = "$block-cursor-background" if self.has_focus else "$block-cursor-blurred-background"
            return content.stylize_before(f"on {focused} 40%").stylize("bold")
        return content

    # The mouse

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            self._click_head(event.x - _GUTTER)
            return
        index = event.y - 1 + self.scroll_offset.y
        if index < len(self._rows):
            key = self._rows[index].key
            if key == self.cursor_key:
                self.post_message(self.Opened(key))
            self.move_to(key)

    def _click_head(self, x: int) -> None:
        for index, width in self._layout:
            if 0 <= x < width + GAP:
                self.post_message(self.HeadClicked(self._columns[index].id))
                return
            x -= width + GAP


def _spread(cells: Sequence[Line]) -> list[Line | str]:
    parts: list[Line | str] = []
    for index, cell in enumerate(cells):
        parts.extend((" " * GAP, cell) if index else (cell,))
    return parts
