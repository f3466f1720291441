"""Lengths of time on the command line: 30d, 4w, 48h, 10m, 45s."""

from __future__ import annotations

import re
from typing import Final

import click

_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_FORM: Final = re.compile(r"(?P<number>\d{1,9}(\.\d{1,6})?)(?P<unit>[smhdw]?)", re.ASCII)


class Duration(click.ParamType[float]):
    """A length of time in seconds.

    Args:
        units: letters that are allowed.
        bare: whether a number alone means seconds.
    """

    name = "duration"

    def __init__(self, units: str = "smhdw", *, bare: bool = True) -> None:
        self._units = units
        self._bare = bare

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return value
        match = _FORM.fullmatch(str(value).strip())
        unit = match["unit"] if match else ""
        if match is None or (unit not in self._units if unit else not self._bare):
            allowed = ", ".join(f"N{letter}" for letter in self._units)
            self.fail(
                f"found {value!s}; write it as {allowed}{' or seconds' if self._bare else ''}", param, ctx
            )
        return float(match["number"]) * _SECONDS[unit or "s"]
