"""Dotted TOML keys and the values that a variant may give them."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from prx_engine.configuration import SelfEvolution
from prx_engine.errors import InvalidInput
from prx_engine.text import shown

KeyPath = tuple[str, ...]

_PART: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n\r]|\\.)*"|'[^'\n\r]*')"""
_DOTTED: Final = re.compile(rf"{_PART}(?:\.{_PART})*")
_ALLOWED: Final = (
    "a text, a whole number of 64 bits, a finite number, true, false, a list or a table of these"
)
_OURS: Final = "self_evolution"


def key_path(dotted: str) -> KeyPath:
    """Return the parts of a dotted key; a part may be quoted as in TOML.

    Raises:
        InvalidInput: if it is not a key.
    """
    try:
        if not _DOTTED.fullmatch(dotted):
            raise ValueError
        value: Any = tomllib.loads(f"{dotted} = 0")
    except ValueError:
        raise InvalidInput(f"config: found {shown(dotted)}; allowed: a dotted TOML key") from None
    parts: list[str] = []
    while isinstance(value, dict):
        ((name, value),) = value.items()
        parts.append(name)
    return tuple(parts)


def checked_config(config: Mapping[str, Any]) -> dict[KeyPath, Any]:
    """Return the changes of a variant by key path.

    Raises:
        InvalidInput: naming the key that cannot be set, or not to this value.
    """
    changes: dict[KeyPath, Any] = {}
    for dotted, value in config.items():
        path = key_path(dotted)
        if path[0] == _OURS and (len(path) == 1 or path[1] in SelfEvolution.model_fields):
            raise InvalidInput(
                f"config.{dotted}: an experiment cannot change the settings that it is judged by"
            )
        if not _is_plain(value):
            raise InvalidInput(f"config.{dotted}: found {shown(value)}; allowed: {_ALLOWED}")
        other = next((other for other in changes if nested(path, other)), None)
        if other is not None:
            raise InvalidInput(f"config.{dotted}: {'.'.join(other)} is set by the same variant")
        changes[path] = value
    return changes


def nested(first: KeyPath, second: KeyPath) -> bool:
    """Tell whether two keys are the same, or one is part of the other's table."""
    length = min(len(first), len(second))
    return first[:length] == second[:length]


def shared_key(first: Iterable[str], second: Iterable[str]) -> str | None:
    """Return the first of some dotted keys that others touch too."""
    others = [key_path(dotted) for dotted in second]
    return next((key for key in first if any(nested(key_path(key), other) for other in others)), None)


def literal(value: object) -> str:
    """Return a TOML value in one canonical form, so that equal values of the same type read alike."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        entries = (f"{quoted(str(name))} = {literal(item)}" for name, item in sorted(value.items()))
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(literal, value)) + "]"
    return str(value)


def quoted(text: str) -> str:
    """Return a text in quotation marks, on one line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return not any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, bool):
        return True
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(name) and _is_plain(v) for name, v in value.items())
    return False
