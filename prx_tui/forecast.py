"""A forecast in plain words."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from prx_tui.formatting import half_up, percent

if TYPE_CHECKING:
    from prx_engine.records import Experiment, Forecast, Prospect

_ODDS: Final = (
    (0.03, "hardly a chance"),
    (0.075, "1 in 20"),
    (0.15, "1 in 10"),
    (0.225, "1 in 5"),
    (0.29, "1 in 4"),
    (0.415, "1 in 3"),
    (0.58, "1 in 2"),
    (0.71, "2 in 3"),
    (0.775, "3 in 4"),
    (0.85, "4 in 5"),
    (0.925, "9 in 10"),
    (0.975, "19 in 20"),
)
_NEARLY_SURE: Final = "nearly certain"
_SAME: Final = 0.05
"""Arms whose traffic differs by less than this share are spoken of as one."""


def odds(chance: float) -> str:
    """Return a chance as people say it: ``4 in 5``, ``hardly a chance``, ``nearly certain``."""
    return next((text for limit, text in _ODDS if chance < limit), _NEARLY_SURE)


def day(time: datetime) -> str:
    """Return a date as people say it: ``8 June``."""
    return f"{time.day} {time:%B}"


def forecast_sentence(forecast: Forecast, experiment: Experiment) -> str:
    """Return what an operator wants to know first, in one sentence."""
    traffic = _traffic(forecast)
    if traffic is None:
        return "No sessions are coming in: nothing will be decided."
    if forecast.enough_sessions_at is None:
        minimum = experiment.parameters.experiments.min_sample_size
        return f"At {traffic}, the arms do not reach {minimum} sessions before the end."
    if forecast.maximum is None:
        return (
            f"At {traffic}, both arms have enough sessions for a look by {day(forecast.enough_sessions_at)}."
        )
    told = _told(forecast.planned or forecast.maximum)
    if forecast.planned is not None and forecast.planned.by < forecast.maximum.by:
        told += f", {odds(forecast.maximum.decided)} by {day(forecast.maximum.by)}"
    return f"At {traffic}, {told}, if the present lift of {percent(forecast.lift, signed=True)} is real."


def detectable_sentence(forecast: Forecast) -> str | None:
    """Return how small a lift can be found; None if there is nothing to say yet."""
    found = [
        f"{percent(prospect.detectable_lift, signed=True)} by {day(prospect.by)}"
        for prospect in (forecast.planned, forecast.maximum)
        if prospect is not None and prospect.detectable_lift is not None
    ]
    return f"A true lift of {', or of '.join(found)}, would win 4 times in 5." if found else None


def _told(prospect: Prospect) -> str:
    return f"{odds(prospect.decided)} that this is decided by {day(prospect.by)}"


def _traffic(forecast: Forecast) -> str | None:
    control, treatment = forecast.control_a_day, forecast.treatment_a_day
    if max(control, treatment) == 0:
        return None
    if abs(control - treatment) <= _SAME * max(control, treatment):
        return f"{_rate((control + treatment) / 2)} sessions a day and arm"
    return f"{_rate(control)} + {_rate(treatment)} sessions a day"


def _rate(a_day: float) -> str:
    return half_up(a_day, 0 if a_day >= 10 else 1)
