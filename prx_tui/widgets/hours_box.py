"""A field for a number of hours."""

from __future__ import annotations

from textual.widgets import Input


class HoursBox(Input):
    """Takes digits only and leaves every other key to the screen, so that letters can answer a question."""

    def __init__(self, value: str, *, id: str | None = None) -> None:
        super().__init__(value, id=id, type="integer", max_length=6, compact=True)
        self.cursor_blink = False

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return character is not None and character.isdigit()
