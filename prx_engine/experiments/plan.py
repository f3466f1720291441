"""What an experiment would do, before it is started: chances, durations, and what it can find."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from prx_engine.clock import clock_hour
from prx_engine.configuration import Parameters
from prx_engine.errors import InvalidInput
from prx_engine.experiments.analysis import PINNED_MINIMUM, Subject
from prx_engine.experiments.looks import ChargedLook
from prx_engine.experiments.outlook import POWER, Chances, Outlook, Spread, Standing
from prx_engine.experiments.schedule import Schedule
from prx_engine.fitness.group import counting, group_fitness
from prx_engine.fitness.moments import Moments
from prx_engine.records import Plan, PlannedCase, PlannedDay
from prx_engine.store import Store
from prx_engine.store.totals import deployment_hours

MEASURED_HOURS: Final = 7 * 24
_HOURS_A_DAY: Final = 24
_MOST_ROWS: Final = 60
_GRID: Final = np.linspace(0.25, 3.0, 12)
"""Lifts, in detectable ones, at which chances are computed; those in between are interpolated."""

_TRAFFIC_STEPS: Final = 40
_TRAFFIC_TOLERANCE: Final = 0.005
_MOST_A_DAY: Final = 1e9
_SURE: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the caller knows better than the recorded sessions; None where they tell.

    Attributes:
        sessions_a_day: scored sessions of both arms.
        mean, standard_deviation: fitness of a session.
        lift: true lift to plan for.
    """

    sessions_a_day: float | None = None
    mean: float | None = None
    standard_deviation: float | None = None
    lift: float | None = None


@dataclass(frozen=True, slots=True)
class _Ground:
    """What an experiment would stand on."""

    sessions_a_day: float
    mean: float
    standard_deviation: float


def plan(store: Store, parameters: Parameters, assumed: Assumptions, now: datetime) -> Plan:
    """Return what an experiment would do.

    Args:
        store: the database, whose sessions of the last seven days tell what is not assumed.
        parameters: settings it would have.
        assumed: what is known better.
        now: the present time.

    Raises:
        InvalidInput: if an assumption is impossible, or if there are no sessions that could tell.
    """
    _check(assumed)
    measured = None in (assumed.sessions_a_day, assumed.mean, assumed.standard_deviation)
    ground = _completed(assumed, _measured(store, parameters, now) if measured else None)
    if assumed.lift is not None and ground.mean * (1 + assumed.lift) > 1:
        raise InvalidInput(
            f"lift: found {assumed.lift * 100:+.1f} %; a fitness of {ground.mean:.3g} rises by"
            f" {(1 / ground.mean - 1) * 100:.1f} % at most"
        )
    outlook = _outlook(parameters, ground, now)
    settings = parameters.experiments
    duration, maximum = settings.default_duration_hours, settings.auto_converge.max_duration_hours
    by_plan, by_maximum = outlook.detectable(duration), outlook.detectable(maximum)
    lift = next(
        value for value in (assumed.lift, by_plan, by_maximum, settings.min_effect_size) if value is not None
    )
    return Plan(
        sessions_a_day=ground.sessions_a_day,
        mean=ground.mean,
        standard_deviation=ground.standard_deviation,
        measured=measured,
        parameters=parameters,
        enough_sessions_hours=_enough(parameters, ground),
        lift=lift,
        detectable_by_plan=by_plan,
        detectable_by_maximum=by_maximum,
        sessions_a_day_needed=_needed(parameters, ground, lift, now),
        false_promotion=outlook.chances(0.0).won_by(maximum),
        cases=[_case(outlook, ground, parameters, value) for value in _lifts(parameters, lift)],
        days=_days(outlook, ground, parameters, lift, by_maximum),
    )


def _check(assumed: Assumptions) -> None:
    allowed = {
        "sessions_a_day": (assumed.sessions_a_day, 0.0, _MOST_A_DAY),
        "mean": (assumed.mean, 0.0, 1.0),
        "standard_deviation": (assumed.standard_deviation, 0.0, 0.5),
        "lift": (assumed.lift, -1.0, 10.0),
    }
    for name, (value, lowest, highest) in allowed.items():
        if value is not None and not lowest < value <= highest:
            raise InvalidInput(f"{name}: found {value:g}; allowed: above {lowest:g}, at most {highest:g}")


def _measured(store: Store, parameters: Parameters, now: datetime) -> _Ground | None:
    """Return what the sessions of the last seven days tell; None if they are too few."""
    end = clock_hour(now) + 1
    hours = store.read(lambda: deployment_hours(store, end - MEASURED_HOURS, end))
    moments = sum((found for _, found in hours), Moments())
    weights = parameters.fitness.weights
    group = group_fitness(moments, weights, counting([moments], weights, PINNED_MINIMUM))
    if group is None or group.mean <= 0:
        return None
    days = (end - hours[0][0]) / _HOURS_A_DAY
    return _Ground(group.n / days, group.mean, math.sqrt(group.variance * group.n))


def _completed(assumed: Assumptions, measured: _Ground | None) -> _Ground:
    a_day, mean, deviation = assumed.sessions_a_day, assumed.mean, assumed.standard_deviation
    if measured is not None:
        a_day = measured.sessions_a_day if a_day is None else a_day
        mean = measured.mean if mean is None else mean
        deviation = measured.standard_deviation if deviation is None else deviation
    if a_day is None or mean is None or deviation is None:
        raise InvalidInput(
            f"fewer than {PINNED_MINIMUM} scored sessions in the last 7 days: give sessions a day, mean and"
            " standard deviation"
        )
    return _Ground(a_day, mean, deviation)


def _outlook(parameters: Parameters, ground: _Ground, now: datetime) -> Outlook:
    settings = parameters.experiments
    schedule = Schedule(
        settings.auto_converge.check_interval_hours,
        settings.default_duration_hours,
        settings.auto_converge.max_duration_hours,
        0,
    )
    variance = ground.standard_deviation**2
    a_hour = ground.sessions_a_day / _HOURS_A_DAY
    return Outlook(
        Subject(created_at=now, parameters=parameters, schedule=schedule),
        Spread(ground.mean, variance, variance),
        Standing(),
        (a_hour * (1 - settings.traffic_split), a_hour * settings.traffic_split),
    )


def _enough(parameters: Parameters, ground: _Ground) -> float | None:
    settings = parameters.experiments
    smaller = ground.sessions_a_day * min(settings.traffic_split, 1 - settings.traffic_split)
    if not smaller:
        return None
    hours = settings.min_sample_size / smaller * _HOURS_A_DAY
    return hours if hours <= settings.auto_converge.max_duration_hours else None


def _needed(parameters: Parameters, ground: _Ground, lift: float, now: datetime) -> float | None:
    """Return the least traffic at which a lift is detectable by the planned end.

    What is detectable falls with the square root of the traffic, nearly; with too little of it there is no
    look by then at all.
    """
    settings = parameters.experiments
    a_day = ground.sessions_a_day
    if lift <= settings.min_effect_size or not 0 < settings.traffic_split < 1:
        return None
    too_little, enough = 0.0, math.inf
    for _ in range(_TRAFFIC_STEPS):
        outlook = _outlook(parameters, _Ground(a_day, ground.mean, ground.standard_deviation), now)
        found = outlook.detectable(settings.default_duration_hours)
        if found is None or found > lift:
            too_little = a_day
        else:
            enough = a_day
        # Without a look there is no lift to go by.
        factor = 4.0 if found is None else (found / lift) ** 2
        if (found is not None and abs(factor - 1) < _TRAFFIC_TOLERANCE) or (
            enough <= too_little * (1 + _TRAFFIC_TOLERANCE)
        ):
            return a_day if enough == math.inf else enough
        a_day = min(a_day * factor, _MOST_A_DAY)
        if not too_little < a_day < enough:
            a_day = math.sqrt(too_little * enough)
        if too_little == _MOST_A_DAY:
            break
    return None


def _lifts(parameters: Parameters, lift: float) -> list[float]:
    """Return the true lifts whose endings are told."""
    loss, smallest = parameters.fitness.thresholds.regression_delta, parameters.experiments.min_effect_size
    return sorted({-2 * loss, -loss, 0.0, smallest, lift})


def _case(outlook: Outlook, ground: _Ground, parameters: Parameters, lift: float) -> PlannedCase:
    settings = parameters.experiments
    maximum = settings.auto_converge.max_duration_hours
    chances = outlook.chances(lift * ground.mean)
    won, decided = chances.won_by(maximum), chances.decided_by(maximum)
    return PlannedCase(
        lift=lift,
        treatment_wins=won,
        rejected=decided - won,
        undecided=1 - decided,
        decided_by_plan=chances.decided_by(settings.default_duration_hours),
        mean_hours=chances.expected_hours(maximum),
    )


def _days(
    outlook: Outlook, ground: _Ground, parameters: Parameters, lift: float, detectable: float | None
) -> list[PlannedDay]:
    settings = parameters.experiments
    looks = {look.point.hours: look for look in outlook.looks}
    times = sorted(looks.keys() | {look.point.hours for look in outlook.harm_looks})
    if len(times) > _MOST_ROWS:
        ends = (settings.default_duration_hours, settings.auto_converge.max_duration_hours)
        times = [time for time in times if time % _HOURS_A_DAY == 0 or time in ends]
    chances = outlook.chances(lift * ground.mean)
    found = _detectable_by(outlook, ground, times, detectable)
    return [_day(time, looks.get(time), ground, parameters, chances, found[time]) for time in times]


def _day(
    hours: float,
    look: ChargedLook | None,
    ground: _Ground,
    parameters: Parameters,
    chances: Chances,
    detectable: float | None,
) -> PlannedDay:
    sessions = ground.sessions_a_day * hours / _HOURS_A_DAY
    split = parameters.experiments.traffic_split
    return PlannedDay(
        hours=int(hours),
        control_sessions=round(sessions * (1 - split)),
        treatment_sessions=round(sessions * split),
        alpha_threshold=look.alpha_threshold if look else None,
        detectable_lift=detectable,
        treatment_wins=chances.won_by(hours),
        decided=chances.decided_by(hours),
    )


def _detectable_by(
    outlook: Outlook, ground: _Ground, times: Sequence[float], detectable: float | None
) -> dict[float, float | None]:
    """Return the lift that is detectable by each time.

    The normal quantile of the chance is nearly linear in the lift, so a few lifts tell those in between.
    """
    if detectable is None:
        return dict.fromkeys(times)
    lifts = detectable * _GRID
    grid = [outlook.chances(lift * ground.mean) for lift in lifts]
    found: dict[float, float | None] = {}
    for time in times:
        chances = np.array([np.clip(one.won_by(time), _SURE, 1 - _SURE) for one in grid])
        found[time] = _crossing(lifts, ndtri(chances), float(ndtri(POWER)))
    return found


def _crossing(lifts: NDArray[np.float64], heights: NDArray[np.float64], wanted: float) -> float | None:
    """Return the lift at which rising heights reach the wanted one; None if they do not."""
    if heights[-1] < wanted or heights[0] > wanted:
        return None
    return float(np.interp(wanted, heights, lifts))
