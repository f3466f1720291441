"""Writes one value into a TOML text and leaves every other byte of it alone.

tomlkit renders the value; the place comes from the outline, since a document that goes through tomlkit's own
containers gets its new keys below the comment of the next table, in the wrong line ending, or not at all
where tables are inline.
"""

from __future__ import annotations

import tomllib
from typing import Any

from prx_engine.configuration.locator import KeyPath, Outline, outline


class CannotEdit(Exception):
    """The text is laid out in a way that only a person can change safely."""


def with_value(text: str, path: tuple[str, ...], value: object) -> str:
    """The text with the key at path set to value, in its place or in the table where it belongs.

    The text is valid TOML; the path leads through tables to something that is not a table.
    """
    rendered = _rendered(value)
    edited = _edited(text, path, rendered)
    expected = _parsed(text)
    _assign(expected, path, _parsed(f"value = {rendered}")["value"])
    try:
        as_expected = _parsed(edited) == expected
    except tomllib.TOMLDecodeError:
        as_expected = False
    if not as_expected:
        raise CannotEdit
    return edited


def _edited(text: str, path: tuple[str, ...], rendered: str) -> str:
    found = outline(text)
    if path in found.values:
        start, end = found.values[path]
        return text[:start] + rendered + text[end:]
    *parents, name = path
    if not parents:
        return _in_section(text, found, (), _entry((name,), rendered))
    # The nearest table around the key that is written in any way decides how the key has to be written.
    for length in range(len(parents), 0, -1):
        table = path[:length]
        if table in found.values:
            return _in_inline_table(text, found.values[table], _entry(path[length:], rendered))
        if table in found.dotted:
            section = found.dotted[table]
            return _in_section(text, found, section, _entry(path[len(section) :], rendered))
        if table in found.sections:
            if length == len(parents):
                return _in_section(text, found, table, _entry((name,), rendered))
            break
    return _in_new_section(text, tuple(parents), _entry((name,), rendered))


def _in_inline_table(text: str, span: tuple[int, int], entry: str) -> str:
    start, end = span
    kept = text[start + 1 : end - 1]
    written = kept.rstrip()
    entries = f"{written}, {entry}{kept[len(written) :]}" if written else f" {entry} "
    return f"{text[:start]}{{{entries}}}{text[end:]}"


def _in_section(text: str, found: Outline, table: KeyPath, entry: str) -> str:
    section = found.sections[table]
    newline = _newline(text)
    before, after = text[: section.end], text[section.end :]
    return f"{before}{_line_end(before, newline)}{section.indent}{entry}{newline}{after}"


def _in_new_section(text: str, table: tuple[str, ...], entry: str) -> str:
    newline = _newline(text)
    blank_line = newline if text.strip() else ""
    return f"{text}{_line_end(text, newline)}{blank_line}[{dotted_key(table)}]{newline}{entry}{newline}"


def _newline(text: str) -> str:
    """The line ending in use."""
    first, ending, _ = text.partition("\n")
    return "\r\n" if ending and first.endswith("\r") else "\n"


def _line_end(text: str, newline: str) -> str:
    """What is missing for something to follow on a line of its own."""
    return newline if text and not text.endswith("\n") else ""


def _entry(names: KeyPath, rendered: str) -> str:
    return f"{dotted_key(names)} = {rendered}"


def dotted_key(names: KeyPath) -> str:
    """A key as TOML writes it: parts with other characters than letters, digits, - and _ in quotes."""
    import tomlkit  # only here and below: reading the configuration does not need it

    return tomlkit.key([str(name) for name in names]).as_string()


def _rendered(value: object) -> str:
    import tomlkit

    if isinstance(value, dict):
        return "{ " + ", ".join(_entry((name,), _rendered(item)) for name, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_rendered, value)) + "]"
    return tomlkit.item(value).as_string()


def _parsed(text: str) -> dict[str, Any]:
    # Fractions as they are written, since NaN is not equal to itself.
    return tomllib.loads(text, parse_float=str)


def _assign(data: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    *parents, name = path
    for parent in parents:
        data = data.setdefault(parent, {})
    data[name] = value
