"""The watch over a promoted change: how often it takes one back that does no harm, and one that does."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from prx_engine.dimensions import Dimension
from prx_engine.experiments.analysis import Subject, is_harm
from prx_engine.experiments.schedule import Schedule
from prx_engine.experiments.watch import Watched, watch_looks
from tests.study.sampled import SampledArm, units
from tests.study.worlds import Draw, binary, normal
from tests.support.evidence import CREATED, parameters

_COUNTED: tuple[Dimension, ...] = ("response_relevance",)
_DAYS_OF_EXPERIMENT = 7


@dataclass(frozen=True)
class Watch:
    """A promoted change.

    Attributes:
        name: for the table.
        a_day: sessions of the deployment; half of them made control.
        before, since: draw the scores of control and of the sessions since the promotion.
        harmful: whether it should be taken back.
    """

    name: str
    a_day: int
    before: Draw
    since: Draw
    harmful: bool = False


WATCHES = [
    Watch(f"{kind}, {a_day} a day, {effect}", a_day, before, since, harmful=effect != "no change")
    for a_day in (10, 40, 160)
    for kind, effect, before, since in (
        ("normal", "no change", normal(), normal()),
        ("0/1", "no change", binary(), binary()),
        ("normal", "−10 %", normal(), normal(0.72 * 0.9)),
    )
]


def taken_back(watch: Watch, seed: int) -> bool:
    """Tell whether one watch, checked daily, ends in a rollback."""
    rng = np.random.default_rng(seed)
    settings = parameters()
    duration = settings.experiments.default_duration_hours
    interval = settings.experiments.auto_converge.check_interval_hours
    control = _arm(watch.before, watch.a_day / 2, _DAYS_OF_EXPERIMENT, rng)
    since = _arm(watch.since, watch.a_day, math.ceil(duration / 24), rng)
    subject = Subject(CREATED, settings, Schedule(interval, duration, duration, 0))
    for hours in subject.schedule.until(duration):
        watched = Watched(
            Subject(CREATED, settings, subject.schedule, harm_looks=subject.harm_looks),
            control.at(math.inf),
            _COUNTED,
        )
        looks = watch_looks(
            watched,
            {hours: since.at(hours)},
            lambda: {"control": control.histogram(math.inf), "treatment": since.histogram(hours)},  # noqa: B023
        )
        if looks and is_harm(settings, looks[-1]):
            return True
        subject = Subject(CREATED, settings, subject.schedule, harm_looks=(*subject.harm_looks, *looks))
    return False


def _arm(draw: Draw, a_day: float, days: int, rng: np.random.Generator) -> SampledArm:
    hours = np.repeat(np.arange(days * 24), rng.poisson(a_day / 24, days * 24))
    score = units(draw(rng, hours / 24))
    return SampledArm(hours, {"response_relevance": score}, score)


def rollbacks(watch: Watch, runs: int) -> int:
    """Return how many of so many watches end in a rollback."""
    return sum(taken_back(watch, seed) for seed in range(runs))
