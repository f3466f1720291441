"""A field for a number of hours."""

from __future__ import annotations

from typing import Final

from textual.widgets import Input

_LONGEST: Final = 40


class HoursBox(Input):
    """Shows whatever is typed, but leaves some letters to the screen, so that they can answer a question.

    Args:
        value: stands in it at first.
        answers: the letters that are not typed into it.
        id: of the widget.
    """

    def __init__(self, value: str, *, answers: str, id: str | None = None) -> None:
        super().__init__(value, id=id, max_length=_LONGEST, compact=True)
        self.cursor_blink = False
        self._answers = answers

    @property
    def hours(self) -> int | None:
        """The number; None if something else stands there."""
        text = self.value.strip()
        return int(text) if text.isdecimal() else None

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return character is not None and character.isprintable() and character not in self._answers
