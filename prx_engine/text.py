"""Small help for one-line messages: values shortened and made harmless, names corrected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SHOWN_LENGTH = 60


def shown(value: object) -> str:
    """Return a value as it may stand in a message: one short line without control characters."""
    text = value if isinstance(value, str) else repr(value)
    clean = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[: _SHOWN_LENGTH + 1])
    return clean if len(clean) <= _SHOWN_LENGTH else clean[: _SHOWN_LENGTH - 1] + "…"


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that was probably meant, if one is close."""
    matches = difflib.get_close_matches(name[:100], list(candidates), n=1, cutoff=0.6)
    return matches[0] if matches else None
