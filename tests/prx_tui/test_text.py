from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from prx_tui.text import cell_width, cut_to_cells, safe_lines, safe_text

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("[b]markup[/] stays", "[b]markup[/] stays"),
        ("one\ntwo\r\nthree\tfour\u2028five", "one two  three four five"),
        ("\x1b]0;owned\x07", "\ufffd]0;owned\ufffd"),
        ("\x9b31m\x7f", "\ufffd31m\ufffd"),
        ("a\u202egnp.exe", "a\ufffdgnp.exe"),
        ("half \ud83d", "half \ufffd"),
        ("提示 👩‍👧 שלום", "提示 👩‍👧 שלום"),
        ("", ""),
        (17, "17"),
    ],
)
def test_text_becomes_harmless(text: object, shown: str) -> None:
    assert safe_text(text) == shown


def test_long_text_is_cut_with_a_mark() -> None:
    assert safe_text("x" * 1_000_000, 10) == "x" * 9 + "…"
    assert safe_text("x" * 10, 10) == "x" * 10


@given(ANY_TEXT)
def test_nothing_that_controls_a_terminal_is_left(text: str) -> None:
    safe = safe_text(text)
    assert all(unicodedata.category(character) not in ("Cc", "Cs") for character in safe)
    assert safe == safe_text(safe)
    assert len(safe) == len(text)
    safe.encode("utf-8")


@given(ANY_TEXT)
def test_lines_stay_lines(text: str) -> None:
    for line in safe_lines(text).split("\n"):
        assert line == safe_text(line)


def test_line_breaks_are_kept_and_tabs_expanded() -> None:
    assert safe_lines("a\r\nb\tc\n\x1b[2J") == "a\nb   c\n\ufffd[2J"


@given(ANY_TEXT.map(safe_text))
def test_width_is_that_of_the_terminal(text: str) -> None:
    assert cell_width(text) == cell_len(text)


@given(ANY_TEXT.map(safe_text), st.integers(0, 30))
def test_a_cut_text_fits(text: str, width: int) -> None:
    cut = cut_to_cells(text, width)
    assert cell_width(cut) <= width
    if cell_width(text) <= width:
        assert cut == text


def test_a_cut_text_has_a_mark() -> None:
    assert cut_to_cells("abcdef", 4) == "abc…"
    assert cut_to_cells("提示詞", 4) == "提…"
    assert cut_to_cells("abc", 0) == ""
