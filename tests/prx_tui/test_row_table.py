"""The cursor of a table belongs to a row's key."""

from __future__ import annotations

from textual.app import App, ComposeResult

from prx_tui.view.columns import Column, Row
from prx_tui.view.spans import line
from prx_tui.widgets.row_table import CHANGED_MARK, CURSOR_MARK, RowTable

COLUMNS = (Column("name", "name", flexible=True), Column("size", "size", importance=1, right=True))


def row(key: str, size: int = 1) -> Row:
    return Row(key, (line(f"row {key}"), line(str(size))))


def rows(keys: str) -> list[Row]:
    return [row(key) for key in keys]


class TableApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def on_row_table_head_clicked(self, event: RowTable.HeadClicked) -> None:
        self.heard.append(f"head {event.column}")

    def on_row_table_opened(self, event: RowTable.Opened) -> None:
        self.heard.append(f"open {event.key}")

    def compose(self) -> ComposeResult:
        yield RowTable()

    @property
    def table(self) -> RowTable:
        return self.query_one(RowTable)

    def text(self) -> list[str]:
        return [self.table.render_line(y).text.rstrip() for y in range(self.table.size.height)]


async def test_the_cursor_stays_with_its_row_when_rows_move_go_and_come() -> None:
    app = TableApp()
    async with app.run_test(size=(40, 10)) as pilot:
        table = app.table
        table.show(COLUMNS, rows("abcd"))
        table.move_to("c")
        for keys in ("dcba", "cba", "xyzc", "c", "abcdefghijkl"):
            table.show(COLUMNS, rows(keys))
            await pilot.pause()
            assert table.cursor_key == "c", keys
            assert table.cursor_row == keys.index("c")


async def test_a_cursor_whose_row_is_gone_stays_in_its_place_and_says_so() -> None:
    app = TableApp()
    moved: list[str | None] = []
    async with app.run_test(size=(40, 10)) as pilot:
        table = app.table
        table.show(COLUMNS, rows("abcd"))
        table.move_to("d")
        table.show(COLUMNS, rows("abc"))
        await pilot.pause()
        assert table.cursor_key == "c"
        table.show(COLUMNS, [])
        await pilot.pause()
        moved.append(table.cursor_key)
        table.show(COLUMNS, rows("xy"))
        await pilot.pause()
        moved.append(table.cursor_key)
    assert moved == [None, "x"]


async def test_scroll_follows_the_row_under_the_cursor() -> None:
    app = TableApp()
    async with app.run_test(size=(40, 6)) as pilot:
        table = app.table
        keys = "abcdefghijklmnopqrstuvwxyz"
        table.show(COLUMNS, rows(keys))
        await pilot.pause()
        table.move_to("p")
        await pilot.pause()
        before = table.scroll_offset.y
        seen_at = table.cursor_row - before if table.cursor_row is not None else None
        table.show(COLUMNS, rows("123" + keys))
        await pilot.pause()
        assert table.cursor_key == "p"
        assert table.cursor_row is not None
        assert table.cursor_row - table.scroll_offset.y == seen_at
        assert any(CURSOR_MARK in text and "row p" in text for text in app.text())


async def test_a_refresh_of_the_same_rows_leaves_the_scroll_alone() -> None:
    app = TableApp()
    async with app.run_test(size=(40, 6)) as pilot:
        table = app.table
        table.show(COLUMNS, rows("abcdefghijkl"))
        await pilot.pause()
        table.scroll_to(y=4, animate=False)
        await pilot.pause()
        table.show(COLUMNS, [row(key, size=2) for key in "abcdefghijkl"])
        await pilot.pause()
        assert table.scroll_offset.y == 4
        assert table.cursor_key == "a"


async def test_keys_move_and_stop_at_the_ends() -> None:
    app = TableApp()
    async with app.run_test(size=(40, 6)):
        table = app.table
        table.show(COLUMNS, rows("abc"))
        table.move_by(-5)
        assert table.cursor_key == "a"
        table.move_by(2)
        table.move_by(9)
        assert table.cursor_key == "c"
        table.move_to_end(last=False)
        assert table.cursor_key == "a"


async def test_equal_rows_paint_nothing() -> None:
    app = TableApp()
    async with app.run_test(size=(40, 6)) as pilot:
        table = app.table
        table.show(COLUMNS, rows("abc"))
        await pilot.pause()
        painted: list[object] = []
        table.refresh = lambda *regions, **_: painted.append(regions)  # type: ignore[assignment,method-assign]
        table.show(COLUMNS, rows("abc"))
        assert painted == []
        table.show(COLUMNS, [row("a"), row("b", size=7), row("c")])
        assert len(painted) == 1


async def test_changed_rows_are_marked_and_unmarked() -> None:
    app = TableApp()
    async with app.run_test(size=(40, 6)):
        table = app.table
        table.show(COLUMNS, rows("abc"))
        table.mark(frozenset("b"))
        assert CHANGED_MARK in app.text()[2]
        assert CHANGED_MARK not in app.text()[1]
        table.mark(frozenset())
        assert CHANGED_MARK not in "".join(app.text())


async def test_clicks_choose_open_and_sort() -> None:
    app = TableApp()
    async with app.run_test(size=(40, 6)) as pilot:
        app.table.show(COLUMNS, rows("abc"))
        await pilot.pause()
        await pilot.click(RowTable, offset=(5, 0))
        await pilot.click(RowTable, offset=(5, 3))
        assert app.table.cursor_key == "c"
        assert app.heard == ["head name"]
        await pilot.click(RowTable, offset=(5, 3))
        assert app.heard == ["head name", "open c"]
