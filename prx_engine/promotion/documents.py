"""TOML texts: reading keys, changing some of them, and taking the changes out of a text edited since."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from prx_engine.configuration.editing import CannotEdit, dotted_key, with_value
from prx_engine.configuration.locator import Outline, outline
from prx_engine.errors import PromotionConflict, PromotionRefused
from prx_engine.promotion.keys import KeyPath, literal
from prx_engine.text import shown

ABSENT: Final = None
"""Stands for the literal of a key that is not there."""

_BYTE_ORDER_MARK: Final = "\ufeff"


def parsed(text: str, name: str) -> dict[str, Any]:
    """Return the data of a TOML text.

    Raises:
        PromotionRefused: if it is not valid.
    """
    try:
        return tomllib.loads(text.removeprefix(_BYTE_ORDER_MARK))
    except (ValueError, RecursionError) as error:
        reason = str(error) or "nested too deeply"
        raise PromotionRefused(f"{name}: not valid TOML: {shown(reason)}") from None


def literals(text: str, keys: Sequence[KeyPath], name: str) -> dict[KeyPath, str | None]:
    """Return the canonical literals of some keys of a TOML text, ABSENT where there is none.

    Raises:
        PromotionRefused: if the text is not valid, or a key leads through something that is not a table.
    """
    data = parsed(text, name)
    return {key: _literal_at(data, key, name) for key in keys}


def with_changes(text: str, changes: Mapping[KeyPath, Any], name: str) -> str:
    """Return a TOML text with some keys set, every other byte as it was.

    Raises:
        PromotionRefused: if the text is not valid, or laid out so that only a person can change it.
    """
    literals(text, list(changes), name)
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    changed = text.removeprefix(_BYTE_ORDER_MARK)
    for key, value in changes.items():
        try:
            changed = with_value(changed, key, value)
        except CannotEdit:
            raise PromotionRefused(
                f"{name}: {dotted_key(key)} is written in a way that has to be edited by hand"
            ) from None
    return mark + changed


def without_changes(before: str, after: str, present: str, keys: Sequence[KeyPath], name: str) -> str:
    """Return a TOML text as it would be if ``before`` had never become ``after``; later edits stay.

    Raises:
        PromotionConflict: if a later edit stands in the way.
    """
    if present == after:
        return before
    old, now = _leaves(parsed(before, name)), _leaves(parsed(present, name))
    kept = {path: value for path, value in now.items() if not _is_below(path, keys)}
    expected = kept | {path: value for path, value in old.items() if _is_below(path, keys)}
    for restored in (_reversed_patch(before, after, present), _restored_keys(before, present, keys)):
        if restored is not None and _says(restored, expected):
            return restored
    raise PromotionConflict(f"{name}: lines that were promoted have been rewritten since")


def changes_between(old: str, new: str) -> dict[str, Any]:
    """Return what a TOML text sets that another one does not, as dotted key → value.

    Raises:
        PromotionRefused: if a text is not valid, or the new one lacks a key of the old one: a change can
            set keys, not remove them.
    """
    data = parsed(new, "new file")
    before, after = _leaves(parsed(old, "old file")), _leaves(data)
    missing = next((path for path in before if path not in after), None)
    if missing is not None:
        raise PromotionRefused(
            f"new file: {dotted_key(missing)} is missing; a change can set keys, not remove them"
        )
    return {dotted_key(path): _at(data, path) for path, value in after.items() if before.get(path) != value}


def _reversed_patch(before: str, after: str, present: str) -> str | None:
    """Return ``present`` with the lines of ``after`` put back to ``before``; None if they were edited."""
    old, new, now = (text.splitlines(keepends=True) for text in (before, after, present))
    kept = difflib.SequenceMatcher(None, new, now, autojunk=False).get_matching_blocks()
    edits = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    result = list(now)
    for tag, old_start, old_end, new_start, new_end in reversed(edits):
        if tag == "equal":
            continue
        block = next((b for b in kept if b.a <= new_start and new_end <= b.a + b.size and b.size), None)
        if block is None:
            return None
        shift = block.b - block.a
        result[new_start + shift : new_end + shift] = old[old_start:old_end]
    return "".join(result)


def _restored_keys(before: str, present: str, keys: Sequence[KeyPath]) -> str | None:
    """Return ``present`` with each key written as in ``before``, or its line gone if it was not there."""
    old = outline(before)
    for key in keys:
        span = outline(present).values.get(key)
        if span is None:
            return None
        start, end = span
        if key in old.values:
            first, last = old.values[key]
            present = present[:start] + before[first:last] + present[end:]
        else:
            line_end = present.find("\n", end) + 1 or len(present)
            present = present[: present.rfind("\n", 0, start) + 1] + present[line_end:]
            present = _without_empty_tables(old, present, key)
    return present


def _without_empty_tables(old: Outline, present: str, key: KeyPath) -> str:
    """Return a text without the bare headers of tables that were made for a key that is gone."""
    for length in range(len(key) - 1, 0, -1):
        table = key[:length]
        now = outline(present)
        has_more = any(path[:length] == table and path != table for path in now.lines)
        if table in old.lines or table not in now.sections or has_more:
            break
        lines = present.splitlines(keepends=True)
        header = now.lines[table] - 1
        if lines[header].strip() != f"[{dotted_key(table)}]":
            break
        present = "".join(lines[:header] + lines[header + 1 :])
    return present


def _is_below(path: KeyPath, keys: Sequence[KeyPath]) -> bool:
    return any(path[: len(key)] == key for key in keys)


def _says(text: str, expected: Mapping[KeyPath, str]) -> bool:
    try:
        return _leaves(parsed(text, "")) == expected
    except PromotionRefused:
        return False


def _literal_at(data: dict[str, Any], key: KeyPath, name: str) -> str | None:
    value: Any = data
    for depth, part in enumerate(key):
        if not isinstance(value, dict):
            raise PromotionRefused(f"{name}: {dotted_key(key[:depth])} is not a table")
        if part not in value:
            return ABSENT
        value = value[part]
    return literal(value)


def _leaves(data: Mapping[str, Any]) -> dict[KeyPath, str]:
    return dict(_walk((), data))


def _walk(path: KeyPath, table: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _walk((*path, name), value)
        else:
            yield (*path, name), literal(value)


def _at(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = data[part]
    return data
