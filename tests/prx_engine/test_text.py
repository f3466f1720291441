"""Values in messages: one short harmless line; names that were probably meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.text import nearest, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (5, "5"),
        ([1, "a"], "[1, 'a']"),
        ("a\nb\x1b[31m", r"a\x0ab\x1b[31m"),
        ("会话", "会话"),
    ],
)
def test_values_are_shown_in_one_line(value: object, text: str) -> None:
    assert shown(value) == text


@given(st.text(max_size=200))
def test_whatever_the_text_it_is_printable_and_short(text: str) -> None:
    result = shown(text)
    assert result.isprintable()
    assert len(result) <= 60


def test_a_megabyte_is_cut() -> None:
    assert shown("x" * 1_000_000) == "x" * 59 + "…"
    assert shown("x" * 60) == "x" * 60


def test_the_nearest_name_is_offered_if_one_is_close() -> None:
    assert nearest("thumbs_upp", ["thumbs_up", "thumbs_down"]) == "thumbs_up"
    assert nearest("zebra", ["thumbs_up", "thumbs_down"]) is None
    assert nearest("x" * 1_000_000, ["thumbs_up"]) is None
