from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.configuration.locator import KeyPath, line_of, outline


@dataclass
class Writer:
    """Writes a random document and notes the line of everything it writes."""

    draw: st.DrawFn
    newline: str
    text: str = ""
    lines: dict[KeyPath, int] = field(default_factory=dict)
    values: dict[KeyPath, int] = field(default_factory=dict)
    names: int = 0

    @property
    def line(self) -> int:
        return self.text.count("\n") + 1

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def put(self, text: str) -> None:
        self.text += text.replace("\n", self.newline)

    def name(self) -> str:
        """A new key, which is written in one of the three ways."""
        self.names += 1
        return f"k{self.names}" + self.pick("", "-_9", ".", " = ", "#", "[x]", "ü", "\x1b")

    def put_key(self, name: str) -> None:
        if name.isascii() and name.replace("-", "").replace("_", "").isalnum():
            self.put(self.pick(name, f'"{name}"', f"'{name}'"))
        elif "\x1b" in name:
            self.put(json.dumps(name))
        else:
            self.put(self.pick(json.dumps(name), f"'{name}'"))

    def entry(self, table: KeyPath, depth: int) -> None:
        names = [self.name() for _ in range(self.draw(st.integers(1, 3)))]
        for position, name in enumerate(names):
            self.lines.setdefault((*table, *names[: position + 1]), self.line)
            if position:
                self.put(self.pick(".", " . "))
            self.put_key(name)
        self.put(self.pick("=", " = ", "\t=  "))
        self.value((*table, *names), depth)

    def value(self, path: KeyPath, depth: int) -> None:
        self.values[path] = self.line
        kinds = ("scalar", "text") if depth == 0 else ("scalar", "text", "array", "table")
        kind = self.pick(*kinds)
        if kind == "scalar":
            self.put(self.pick("1", "-0.5e3", "true", "nan", "1979-05-27 07:32:00", "1979-05-27", "0xfF"))
        elif kind == "text":
            self.put(self.pick(*TEXTS))
        elif kind == "array":
            self.array(path, depth)
        else:
            self.inline_table(path, depth)

    def array(self, path: KeyPath, depth: int) -> None:
        self.put("[")
        length = self.draw(st.integers(0, 3))
        for index in range(length):
            self.put(self.pick("", " ", "\n", "\n  # no = key, ] here\n"))
            self.lines[(*path, index)] = self.line
            self.value((*path, index), depth - 1)
            self.put(self.pick("", " ", "\n", " # ] \n"))
            self.put("," if index < length - 1 else self.pick("", ","))
        self.put(self.pick("", " \n", " # ] \n") + "]")

    def inline_table(self, path: KeyPath, depth: int) -> None:
        self.put("{" + self.pick("", " "))
        for index in range(self.draw(st.integers(0, 2))):
            if index:
                self.put(", ")
            self.entry(path, depth - 1)
        self.put(self.pick("", " ") + "}")

    def section(self, table: KeyPath) -> None:
        for _ in range(self.draw(st.integers(0, 3))):
            self.put(self.pick("", "\n", "# a.b = 1\n", "  \t", "# [x]\n\n"))
            self.entry(table, depth=2)
            self.put(self.pick("", " ", " # c = 2", "  #") + "\n")

    def header(self) -> None:
        table: KeyPath = ()
        names = [self.name() for _ in range(self.draw(st.integers(1, 3)))]
        is_array = self.draw(st.booleans())
        for _ in range(self.draw(st.integers(1, 3)) if is_array else 1):
            self.put(("[[" if is_array else "[") + self.pick("", " "))
            table = ()
            for position, name in enumerate(names):
                table = (*table, name)
                self.lines.setdefault(table, self.line)
                self.put("" if position == 0 else ".")
                self.put_key(name)
            if is_array:
                index = sum(path[:-1] == table and isinstance(path[-1], int) for path in self.lines)
                table = (*table, index)
                self.lines[table] = self.line
            self.put(self.pick("", " ") + ("]]" if is_array else "]") + self.pick("", " # [y]") + "\n")
            self.section(table)


TEXTS = (
    '"a # b"',
    "'c = \"'",
    r'"\" d = 1"',
    '"""\ne = 1\n[f]\n"""',
    '"""one " and two "" and an escaped \\""" """',
    '"""ends in two"""""',
    "'''\n\\ [[g]]\nh = ''1\n'''",
    "'''ends in one''''",
    '""',
    "''",
)


@st.composite
def documents(draw: st.DrawFn) -> Writer:
    writer = Writer(draw, draw(st.sampled_from(["\n", "\r\n"])))
    writer.section(())
    for _ in range(draw(st.integers(0, 3))):
        writer.header()
    return writer


def at(data: Any, path: KeyPath) -> Any:
    for step in path:
        data = data[step]
    return data


def paths_in(data: Any, path: KeyPath = ()) -> set[KeyPath]:
    items: list[tuple[Any, Any]] = []
    if isinstance(data, dict):
        items = list(data.items())
    elif isinstance(data, list):
        items = list(enumerate(data))
    found = {path} if path else set()
    return found.union(*(paths_in(item, (*path, step)) for step, item in items))


@given(documents())
def test_every_key_of_any_document_is_found_on_its_line(document: Writer) -> None:
    found = outline(document.text)

    assert found.lines == document.lines
    assert set(found.lines) == paths_in(tomllib.loads(document.text))


@given(documents())
def test_the_span_of_every_value_is_that_value_and_nothing_more(document: Writer) -> None:
    data = tomllib.loads(document.text, parse_float=str)
    found = outline(document.text)

    assert set(found.values) == set(document.values)
    for path, (start, end) in found.values.items():
        written = document.text[start:end]
        assert written == written.strip()
        assert tomllib.loads(f"v = {written}", parse_float=str)["v"] == at(data, path)


@given(st.text(alphabet="ab=.[]{}\"'#\\, \n\r1", max_size=60))
def test_a_text_that_is_not_toml_ends_the_scan_early_without_an_error(text: str) -> None:
    assert all(1 <= line <= text.count("\n") + 1 for line in outline(text).lines.values())


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1\nb = 2\n", ("b",), 2),
        ("a = 1\r\n\r\nb = 2\r\n", ("b",), 3),
        ("[a]\nx = 1\n[a.b]\nx = 2\n", ("a", "b", "x"), 4),
        ("[a]\nb.c.d = 1\n", ("a", "b", "c", "d"), 2),
        ('[a."b c"]\n\n"\\u0064" = 1\n', ("a", "b c", "d"), 3),
        ("[a]\n# x = 0\nx = 1 # x = 2\n", ("a", "x"), 3),
        ('s = """\n[a]\nx = 1\n"""\n[a]\nx = 1\n', ("a", "x"), 6),
        ("s = '''\nx = 1'''\nx = 1\n", ("x",), 3),
        ("a = { x = 1, b = { y = 2 } }\nz = 1\n", ("a", "b", "y"), 1),
        ("a = [\n  1,\n  2, # three\n]\nb = 1", ("a", 1), 3),
        ("a = [\n  { x = 1 },\n  { x = 2 },\n]\n", ("a", 1, "x"), 3),
        ("[[a]]\nx = 1\n[[a]]\nx = 2\n", ("a", 1, "x"), 4),
        ("[[a]]\n[[a.b]]\nx=1\n[[a]]\n[[a.b]]\nx=1\n[[a.b]]\nx=2\n", ("a", 1, "b", 1, "x"), 8),
        ("[[a]]\n[a.b]\nx=1\n[[a]]\n[a.b]\nx=1\n", ("a", 1, "b", "x"), 6),
    ],
)  # fmt: skip
def test_line_of_a_key(text: str, path: KeyPath, line: int) -> None:
    tomllib.loads(text)

    assert line_of(text, path) == line


def test_a_table_is_where_its_own_header_is_rather_than_where_a_table_in_it_is() -> None:
    text = "[a.b]\nx = 1\n[a]\ny = 1\n"

    assert line_of(text, ("a",)) == 3


def test_a_key_that_is_not_there_is_located_by_the_nearest_table_around_it() -> None:
    text = "top = 1\n[a]\n[a.b]\nx = 1\n"

    assert line_of(text, ("a", "b", "missing", "deep")) == 3
    assert line_of(text, ("missing",)) is None


def test_a_long_document_is_scanned_in_linear_time() -> None:
    text = "".join(f'[t{i}]\nx = """\n{"y" * 200}\n"""\n' for i in range(2_000))

    assert line_of(text, ("t1999", "x")) == 4 * 2_000 - 2
