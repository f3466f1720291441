"""Spans, columns, sparklines and charts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_tui.view.chart import Axis, Series, chart
from prx_tui.view.columns import Column, Row, layout
from prx_tui.view.header import age_words, tab_at, tabs
from prx_tui.view.spans import Line, Span, cut, fit, join_fitting, line, plain, width_of, wrap
from prx_tui.view.sparkline import FITNESS, Scale, common_scale, sparkline

texts = st.text(st.characters(exclude_categories=["Cc", "Cs", "Mn", "Me", "Cf"]), max_size=40)
lines = st.lists(texts, max_size=4).map(lambda parts: line(*(Span(part, "dim") for part in parts)))


@given(lines, st.integers(1, 30))
def test_a_fitted_line_has_its_width_whatever_the_script(spans: Line, width: int) -> None:
    assert width_of(fit(spans, width)) == width
    assert width_of(fit(spans, width, right=True)) == width


@given(lines, st.integers(1, 30))
def test_a_cut_line_is_marked(spans: Line, width: int) -> None:
    short = cut(spans, width)
    assert width_of(short) <= width
    assert (short == spans) or plain(short).endswith("…")


@given(lines, st.integers(2, 30))
def test_wrapping_loses_only_spaces(spans: Line, width: int) -> None:
    wrapped = wrap(spans, width)
    assert all(width_of(one) <= width for one in wrapped)
    assert "".join(map(plain, wrapped)).replace(" ", "") == plain(spans).replace(" ", "")


def test_wrapping_breaks_between_words_and_indents() -> None:
    assert [plain(one) for one in wrap(line("one two ", Span("three four")), 9, "  ")] == [
        "one two",
        "  three",
        "  four",
    ]
    assert wrap((), 10) == [()]


def test_the_least_important_pieces_leave_first_and_the_order_stays() -> None:
    pieces = [(1, line("aa")), (3, line("bb")), (0, line("cc")), (2, line("dd"))]
    for width, expected in ((11, "aa bb cc dd"), (10, "aa cc dd"), (7, "aa cc"), (4, "cc"), (1, "…")):
        assert plain(join_fitting(pieces, width, " ")) == expected


COLUMNS = (
    Column("a", "a", compact=1),
    Column("b", "b", flexible=True),
    Column("c", "c", importance=2),
    Column("d", "d", importance=1),
)
ROWS = [Row("k", (line("aaaa"), line("b" * 40), line("cccc"), line("dddd")))]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (80, [(0, 4), (1, 40), (2, 4), (3, 4)]),
        (50, [(0, 4), (1, 32), (2, 4), (3, 4)]),
        (30, [(0, 4), (1, 18), (3, 4)]),
        (26, [(0, 4), (1, 20)]),
        (22, [(0, 1), (1, 19)]),
        (10, [(0, 1), (1, 7)]),
    ],
)
def test_columns_leave_by_importance(width: int, expected: list[tuple[int, int]]) -> None:
    assert layout(COLUMNS, ROWS, width) == expected


def test_a_sparkline_survives_gaps_constants_and_ends() -> None:
    assert sparkline([0.0, 0.5, 1.0], 8) == "▁▅█"
    assert sparkline([None, math.nan, math.inf, 0.5], 8) == "   ▅"
    assert sparkline([0.7] * 5, 8) == "▆▆▆▆▆"
    assert sparkline([], 8) == ""
    assert sparkline([-3.0, 9.0], 8) == "▁█"
    assert sparkline([0.5], 8, Scale(0.5, 0.5)) == "▅"
    assert len(sparkline([0.1] * 1000, 10)) == 10


def test_the_scale_does_not_make_noise_look_like_news() -> None:
    assert common_scale([0.71, 0.72, None]) == (0.6, 0.9)
    assert common_scale([0.31, 0.72]) == (0.3, 0.8)
    assert common_scale([1.0]) == (0.8, 1.0)
    assert common_scale([0.0, math.nan]) == (0.0, 0.2)
    assert common_scale([None]) == FITNESS


def curve(*values: float | None, dash: int = 0, name: str = "one") -> Series:
    return Series(name, [(float(x), y) for x, y in enumerate(values)], "treatment", dash)


AXIS = Axis(0.0, 3.0, [(0.0, "1 Jun"), (3.0, "4 Jun")])


def test_a_chart_has_its_size_its_names_and_its_axis() -> None:
    drawn = chart([curve(0.5, 0.6, 0.7, 0.8), curve(0.8, 0.7, 0.6, 0.5, name="two")], AXIS, 60, 10)
    text = [plain(one) for one in drawn]
    assert len(text) == 10
    assert max(map(len, text)) <= 60
    assert "0.80┤" in text[0]
    assert "0.50┤" in text[8]
    assert text[0].rstrip().endswith("one")
    assert text[8].rstrip().endswith("two")
    assert "1 Jun" in text[9]
    assert "4 Jun" in text[9]


def test_names_that_meet_stand_below_each_other() -> None:
    drawn = chart([curve(0.5, 0.7), curve(0.5, 0.7, name="two")], AXIS, 60, 10)
    named = [plain(one).split()[-1] for one in drawn if plain(one).rstrip().endswith(("one", "two"))]
    assert sorted(named) == ["one", "two"]


@pytest.mark.parametrize("values", [(0.7, 0.7, 0.7), (None, 0.5, None), (math.nan, 0.1), (0.0, 1.0)])
def test_gaps_and_constants_can_be_drawn(values: tuple[float | None, ...]) -> None:
    assert len(chart([curve(*values)], AXIS, 40, 6)) == 6


def test_nothing_is_drawn_of_nothing_or_in_no_room() -> None:
    assert chart([curve(None, None)], AXIS, 60, 10) == []
    assert chart([curve(0.5, 0.6)], AXIS, 12, 10) == []
    assert chart([curve(0.5, 0.6)], AXIS, 60, 2) == []


def test_a_dashed_line_differs_without_colour() -> None:
    whole, dashed = (
        "".join(plain(one) for one in chart([curve(0.5, 0.5, dash=d)], AXIS, 60, 6)) for d in (0, 2)
    )
    assert whole != dashed


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (9.9, "just now"),
        (19, "10 s ago"),
        (59, "50 s ago"),
        (125, "2 m ago"),
        (7300, "2 h ago"),
    ],
)
def test_ages_are_coarse(seconds: float, words: str) -> None:
    assert age_words(seconds) == words


def test_tabs_are_found_under_the_mouse() -> None:
    names = [("active", "3 ▲1"), ("converged", ""), ("all", "9")]
    text = plain(tabs(names, "active", 80))
    for name, _ in names:
        assert tab_at(names, text.index(name)) == name
    assert tab_at(names, 79) is None
    assert text.startswith("[active] 3 ▲1 │")
    assert plain(tabs(names, "all", 80, line("note"))).endswith("note")
