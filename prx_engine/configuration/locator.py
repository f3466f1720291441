"""Where things stand in a TOML text: the line of every key, and the places where values are edited.

The parsers know no positions, so this scanner reads the text once more. It relies on the text being valid
TOML, which a parser has to confirm first; on anything else it ends early with what it has found.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

KeyPath = tuple[str | int, ...]
"""Keys from the root of the document; a number is an index into an array, tables in arrays included."""

_SPACE: Final = re.compile(r"[ \t]*")
_TRIVIA: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_REST_OF_LINE: Final = re.compile(r"[^\n]*\n?")
_KEY: Final = re.compile(r'[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_SCALAR: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'  # up to two quotes may touch the closing ones
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|[^,\]}#\r\n]+",  # numbers, booleans and dates, which may contain a space
    re.DOTALL,
)


@dataclass(slots=True)
class Section:
    """The lines below one `[header]`, or those above the first."""

    end: int
    """Offset behind the last line that belongs to it: the header or an entry, not what only follows."""

    indent: str = ""
    """White space before its last key."""


@dataclass(slots=True)
class Outline:
    """What a TOML text contains, and where."""

    lines: dict[KeyPath, int] = field(default_factory=dict)
    """Line of every key, counted from 1; of a table its header, or else its first mention."""

    values: dict[KeyPath, tuple[int, int]] = field(default_factory=dict)
    """Start and end offset of every written value, inline tables and arrays and what is in them included."""

    sections: dict[KeyPath, Section] = field(default_factory=dict)
    """The tables that have a header of their own, and the root."""

    dotted: dict[KeyPath, KeyPath] = field(default_factory=dict)
    """The tables that dotted keys make (`a.b = 1` makes a), with the section in which they do."""

    def line_of(self, path: KeyPath) -> int | None:
        """Line of a key, or of the nearest table or array around it that is in the text."""
        for length in range(len(path), 0, -1):
            line = self.lines.get(path[:length])
            if line is not None:
                return line
        return None


def line_of(text: str, path: KeyPath) -> int | None:
    """Line of a key in a TOML text, or of the nearest table around it; None if there is neither."""
    return outline(text).line_of(path)


def outline(text: str) -> Outline:
    """Scans a valid TOML text."""
    scanner = _Scanner(text)
    with suppress(_NotToml):  # the caller gets what stands before
        scanner.document()
    return scanner.found


class _NotToml(Exception):
    """The text is not what it should be at the present position."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.found = Outline()
        self._text = text
        self._at = 0
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._array_lengths: dict[KeyPath, int] = {}  # of the arrays of tables

    def document(self) -> None:
        table: KeyPath = ()
        section = self.found.sections[()] = Section(end=0)
        self._skip(_TRIVIA)
        while self._at < len(self._text):
            start = self._at
            if self._text[start] == "[":
                table = self._header()
                section = self.found.sections[table] = Section(end=0)
            else:
                self._entry(table, table)
            section.indent = self._text[self._text.rfind("\n", 0, start) + 1 : start]
            self._skip(_REST_OF_LINE)
            section.end = self._at
            self._skip(_TRIVIA)

    def _header(self) -> KeyPath:
        line = self._line()
        opening = "[[" if self._text.startswith("[[", self._at) else "["
        self._expect(opening)
        *parents, name = self._dotted_key()
        self._expect("]" * len(opening))
        table: KeyPath = ()
        for parent in parents:
            table = self._last_element((*table, parent))
            self.found.lines.setdefault(table, line)
        table = (*table, name)
        if opening == "[":
            self.found.lines[table] = line
            return table
        self.found.lines.setdefault(table, line)
        self._array_lengths[table] = self._array_lengths.get(table, 0) + 1
        table = self._last_element(table)
        self.found.lines[table] = line
        return table

    def _last_element(self, path: KeyPath) -> KeyPath:
        """The table that a name in a header means: in an array of tables the newest."""
        length = self._array_lengths.get(path)
        return path if length is None else (*path, length - 1)

    def _entry(self, table: KeyPath, section: KeyPath | None) -> None:
        """One `key = value`; inside an inline table, section is None."""
        line = self._line()
        keys = self._dotted_key()
        for length in range(1, len(keys)):
            parent = (*table, *keys[:length])
            self.found.lines.setdefault(parent, line)
            if section is not None:
                self.found.dotted[parent] = section
        path = (*table, *keys)
        self.found.lines[path] = line
        self._expect("=")
        self._skip(_SPACE)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        start = self._at
        if self._text.startswith("[", start):
            self._array(path)
        elif self._text.startswith("{", start):
            self._inline_table(path)
        else:
            self._at = start + len(self._skip(_SCALAR).rstrip(" \t"))
        if self._at == start:
            raise _NotToml
        self.found.values[path] = (start, self._at)

    def _array(self, path: KeyPath) -> None:
        self._expect("[")
        index = 0
        while not self._closes("]"):
            element = (*path, index)
            self.found.lines[element] = self._line()
            self._value(element)
            self._separator("]")
            index += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._expect("{")
        while not self._closes("}"):
            self._entry(path, None)
            self._separator("}")

    def _closes(self, bracket: str) -> bool:
        self._skip(_TRIVIA)
        closes = self._text.startswith(bracket, self._at)
        self._at += closes
        return closes

    def _separator(self, bracket: str) -> None:
        """Passes the comma behind an element; the last one may have the bracket instead."""
        self._skip(_TRIVIA)
        if not self._text.startswith(bracket, self._at):
            self._expect(",")

    def _dotted_key(self) -> list[str]:
        keys = [self._key()]
        while self._text.startswith(".", self._at):
            self._at += 1
            keys.append(self._key())
        return keys

    def _key(self) -> str:
        self._skip(_SPACE)
        written = self._skip(_KEY)
        self._skip(_SPACE)
        if not written:
            raise _NotToml
        if written[0] not in "\"'":
            return written
        try:
            (key,) = tomllib.loads(f"{written} = 0")
        except tomllib.TOMLDecodeError as error:
            raise _NotToml from error
        return key

    def _expect(self, token: str) -> None:
        if not self._text.startswith(token, self._at):
            raise _NotToml
        self._at += len(token)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            return ""
        self._at = match.end()
        return match[0]

    def _line(self) -> int:
        return bisect_left(self._newlines, self._at) + 1
