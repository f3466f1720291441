"""Random TOML documents as people write them, and random changes to them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "top_k", "x-1", '"with.dot"', "'q'")
_LITERALS = (
    "1",
    "0x1F",
    "1_000",
    "true",
    "3.50",
    "1e3",
    '"text # not a comment"',
    "'raw \\ text'",
    '"""\nseveral\nlines"""',
    "[1, 2,]",
    '[\n  "one", # first\n  "two",\n]',
    "{ inner = 1, other = 'y' }",
    "2026-06-01T08:00:00Z",
)
_NOISE = ("", "# a comment\n", "\n", "\n\n# two\n# lines\n", "  \n")
NEW_VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.lists(st.integers(0, 9), max_size=3),
)


@dataclass(frozen=True)
class Document:
    """A valid TOML text and the dotted keys that it sets."""

    text: str
    keys: tuple[str, ...]


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """A text of a few tables, with comments, either line ending, and any layout of values."""
    lines = [draw(st.sampled_from(_NOISE))]
    keys: list[str] = []
    for header in ("", *draw(st.lists(st.sampled_from(("t", "t.deep", "u", "[[v]]")), unique=True))):
        if header:
            lines.append(header + "\n" if header == "[[v]]" else f"[{header}]  # {header}\n")
        indent = draw(st.sampled_from(("", "  ", "\t")))
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4)):
            equals = draw(st.sampled_from(("=", " = ", "  =  ")))
            comment = draw(st.sampled_from(("", " # why")))
            lines.append(f"{indent}{name}{equals}{draw(st.sampled_from(_LITERALS))}{comment}\n")
            lines.append(draw(st.sampled_from(_NOISE)))
            if header != "[[v]]":
                keys.append(f"{header}.{name}" if header else name)
    text = "".join(lines)
    if draw(st.booleans()):
        text = text.rstrip("\n")
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    tomllib.loads(text)
    return Document(text, tuple(keys))


@st.composite
def changed_documents(draw: st.DrawFn) -> tuple[Document, dict[str, Any]]:
    """A document, and new values for some of its keys and for some that it does not have."""
    document = draw(documents())
    new = [f"{table}{name}" for table in ("", "t.", "u.", "w.", "w.z.") for name in ("new1", "new2")]
    chosen = draw(st.lists(st.sampled_from([*document.keys, *new]), unique=True, min_size=1, max_size=4))
    return document, {key: draw(NEW_VALUES) for key in chosen}
