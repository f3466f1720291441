"""Small help for one-line messages: values shortened and made harmless, names corrected."""

from __future__ import annotations

from collections.abc import Iterable

_SHOWN_LENGTH = 60
_LONGEST_PLACE = 4096


def shown(value: object, length: int = _SHOWN_LENGTH) -> str:
    """Return a value as it may stand in a message: one short line without control characters."""
    text = value if isinstance(value, str) else repr(value)
    clean = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[: length + 1])
    return clean if len(clean) <= length else clean[: length - 1] + "…"


def shown_place(path: object) -> str:
    """Return a path or URL as it may stand in a message: whole, since half of it leads nowhere."""
    return shown(str(path), _LONGEST_PLACE)


def storable(text: str) -> str:
    """Return a text with what no database holds, NUL and half surrogate pairs, replaced by U+FFFD."""
    return "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that was probably meant, if one is close."""
    import difflib  # only a mistake needs it; this module is on the way to everything

    matches = difflib.get_close_matches(name[:100], list(candidates), n=1, cutoff=0.6)
    return matches[0] if matches else None
