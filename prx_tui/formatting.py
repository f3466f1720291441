"""How numbers, times and ids read, on the command line and on every screen alike."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

NONE: Final = "–"
"""Stands where there is nothing to show."""

_MINUS: Final = "−"
_JUST_NOW: Final = timedelta(minutes=1)


def half_up(value: float | None, digits: int, *, signed: bool = False) -> str:
    """Return a number rounded half up as its decimal digits read (0.1035 → 0.104)."""
    if value is None or math.isnan(value):
        return NONE
    if not math.isfinite(value):
        return f"{_MINUS if value < 0 else '+' if signed else ''}∞"
    rounded = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    sign = _MINUS if rounded < 0 else "+" if signed and rounded > 0 else ""
    return f"{sign}{abs(rounded)}"


def change(value: float | None, digits: int) -> str:
    """Return a difference over time, always with a sign: ``+0.03``, ``−0.03``, ``±0.00``."""
    text = half_up(value, digits, signed=True)
    return f"±{text}" if text[0].isdigit() else text


def percent(value: float | None, digits: int = 1, *, signed: bool = False) -> str:
    """Return a share as a percentage, ``+4.3 %``; exact about the rounding."""
    if value is None or math.isnan(value):
        return NONE
    if not math.isfinite(value):
        return f"{half_up(value, 0, signed=signed)} %"
    return f"{half_up(float(Decimal(repr(value)) * 100), digits, signed=signed)} %"


def p_value(value: float | None) -> str:
    """Return a p-value with two significant digits: ``.031``, ``.0081``, ``8.4e-95``, ``0``, ``1``."""
    if value is None:
        return NONE
    if value in (0, 1):
        return str(int(value))
    if value < 0.0001:
        return f"{value:.1e}"
    text = f"{Decimal(f'{value:.2g}'):f}"
    return "1" if text.startswith("1") else text.removeprefix("0")


def words(name: str) -> str:
    """Return a name of the vocabulary as words: ``treatment_wins`` → ``treatment wins``."""
    return name.replace("_", " ")


def hours(duration: timedelta) -> str:
    """Return a duration in its two largest units: ``3 h 12 m``, ``5 d 4 h``, ``45 s``."""
    seconds = max(int(duration.total_seconds()), 0)
    days, rest = divmod(seconds, 86_400)
    whole_hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    if days:
        return f"{days} d {whole_hours} h" if whole_hours else f"{days} d"
    if whole_hours:
        return f"{whole_hours} h {minutes} m" if minutes else f"{whole_hours} h"
    return f"{minutes} m" if minutes else f"{rest} s"


def until(time: datetime | None, now: datetime) -> str:
    """Return how far ahead a time is: ``in 3 h 12 m``, ``due now``, ``overdue 2 h``, or a dash for none."""
    if time is None:
        return NONE
    if time <= now < time + _JUST_NOW:
        return "due now"
    return f"in {hours(time - now)}" if time > now else f"overdue {hours(now - time)}"


def moment(time: datetime | None) -> str:
    """Return a time to the minute, in UTC: ``2026-06-01 08:00``."""
    return NONE if time is None else time.strftime("%Y-%m-%d %H:%M")
