"""The parts of a prompt file that its owner has marked as not to be changed."""

from __future__ import annotations

import re
from typing import Final

from prx_engine.errors import InvalidInput

_START: Final = "<!-- IMMUTABLE_START -->"
_END: Final = "<!-- IMMUTABLE_END -->"
_PROTECTED: Final = re.compile(rf"{re.escape(_START)}.*?(?:{re.escape(_END)}|\Z)", re.DOTALL)


def require_protected_kept(before: str, after: str, name: str) -> None:
    """Refuse a new text of a file that changes what stands between the marks.

    A part without its closing mark goes on to the end of the file.

    Raises:
        InvalidInput: naming the file and the line of the first part that is not kept.
    """
    parts = list(_PROTECTED.finditer(before))
    kept = _PROTECTED.findall(after)
    for number, part in enumerate(parts):
        if number >= len(kept) or kept[number] != part[0]:
            line = before.count("\n", 0, part.start()) + 1
            raise InvalidInput(f"files.{name}: changes what is marked as immutable from line {line} on")
