"""One immutable picture of the deployment, read in a thread and shown as a whole."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from prx_engine.engine import Engine
from prx_engine.errors import NotFound
from prx_engine.records import (
    DeploymentFitness,
    Event,
    Experiment,
    ExperimentDetails,
    HistoryDay,
    Status,
    TrendPoint,
)

MOST_OF_A_STATUS: Final = 300
"""So many ended experiments of a status are shown, the newest: a longer table is slow and read by nobody."""

_TREND_POINTS: Final = 100
_EVENTS_THAT_IDENTIFY: Final = 5
_TRENDS_A_ROUND: Final = 10
_TREND_LASTS_SECONDS: Final = 20.0
"""A course is drawn over days: while sessions pour in it need not be read again every second."""

_HEADER_DAYS: Final = 14


@dataclass(frozen=True, slots=True)
class View:
    """What the screen shows, and so what has to be read.

    Attributes:
        open_id: experiment whose screen is open.
        days: span of the history of fitness.
    """

    open_id: str | None = None
    days: int = _HEADER_DAYS


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The deployment at one moment.

    Attributes:
        now: by the engine's clock.
        enabled, decides: the two switches of the configuration: experiments at all, and whether a
            check may conclude alone.
        experiments: all active ones and the newest ended ones, the newest first.
        counts: of all experiments by status.
        trends: course of both arms' fitness by experiment id, as far as read.
        details: of the open experiment; None until they are read.
        missing_id: the id of an open experiment that does not exist.
        complete: whether the ended experiments are read; the first picture need not wait for them.
    """

    now: datetime
    database: str
    enabled: bool
    decides: bool
    experiments: tuple[Experiment, ...]
    counts: Mapping[Status, int]
    fitness: DeploymentFitness
    history: tuple[HistoryDay, ...]
    trends: Mapping[str, tuple[TrendPoint, ...]] = field(default_factory=dict)
    details: ExperimentDetails | None = None
    missing_id: str | None = None
    complete: bool = True

    def experiment(self, experiment_id: str) -> Experiment | None:
        """Return one of the experiments."""
        if self.details is not None and self.details.experiment.experiment_id == experiment_id:
            return self.details.experiment
        return next((one for one in self.experiments if one.experiment_id == experiment_id), None)

    @property
    def active(self) -> tuple[Experiment, ...]:
        """The experiments that sessions enter and checks look at."""
        return tuple(one for one in self.experiments if one.active)

    @property
    def next_check_at(self) -> datetime | None:
        """When the next check of any experiment is due, a promoted change that is watched included."""
        return min((one.next_check_at for one in self.experiments if one.next_check_at), default=None)


class Reader:
    """Reads snapshots through one engine and remembers what cannot have changed.

    Args:
        engine: the deployment.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ended: tuple[Experiment, ...] = ()
        self._ended_key: tuple[Event, ...] | None = None
        self._is_first = True
        self._trends: dict[str, tuple[TrendPoint, ...]] = {}
        self._trends_read_at: dict[str, float] = {}

    def read(self, view: View) -> Snapshot:
        """Return everything but what takes longer: details, which need slow imports, and new trends.

        The very first time the ended experiments are left for later, too.
        """
        settings = self._engine.settings
        active = tuple(self._engine.experiments("active"))
        is_first, self._is_first = self._is_first, False
        return Snapshot(
            now=self._engine.clock.now(),
            database=self._engine.database,
            enabled=settings.experiments.enabled,
            decides=settings.experiments.auto_converge.enabled,
            experiments=active if is_first else self._with_ended(active),
            complete=not is_first,
            counts=self._engine.counts(),
            fitness=self._engine.fitness(),
            history=tuple(self._engine.history(max(view.days, _HEADER_DAYS))),
            trends=dict(self._trends),
        )

    def with_details(self, snapshot: Snapshot, experiment_id: str) -> Snapshot:
        """Return a snapshot with the details and the course of one experiment added."""
        try:
            details = self._engine.details(experiment_id)
        except NotFound:
            return replace(snapshot, missing_id=experiment_id)
        if self._is_trend_old(details.experiment):
            self._read_trend(details.experiment)
        return replace(snapshot, details=details, trends=dict(self._trends))

    def with_more(self, snapshot: Snapshot) -> Snapshot | None:
        """Return a snapshot with what is still missing, a part of it at a time; None once all is known."""
        if not snapshot.complete:
            return replace(snapshot, experiments=self._with_ended(snapshot.active), complete=True)
        unread = [one for one in snapshot.experiments if self._is_trend_old(one)]
        if not unread:
            return None
        for experiment in unread[:_TRENDS_A_ROUND]:
            self._read_trend(experiment)
        return replace(snapshot, trends=dict(self._trends))

    def _with_ended(self, active: tuple[Experiment, ...]) -> tuple[Experiment, ...]:
        # Every change of an ended experiment leaves an event: without a new one they need no reading.
        key = tuple(self._engine.events(limit=_EVENTS_THAT_IDENTIFY))
        if key != self._ended_key:
            statuses: tuple[Status, ...] = ("converged", "cancelled")
            ended = [
                one for status in statuses for one in self._engine.experiments(status, limit=MOST_OF_A_STATUS)
            ]
            self._ended = tuple(sorted(ended, key=lambda one: one.created_at, reverse=True))
            self._ended_key = key
        else:
            # But the watch over a promoted change goes on from look to look without one.
            self._ended = tuple(
                self._engine.experiment(one.experiment_id) if one.next_check_at else one
                for one in self._ended
            )
        known = {one.experiment_id for one in active}
        # One that ended between the two readings is in both; as ended it is the newer news.
        ended_ids = {one.experiment_id for one in self._ended} & known
        return (*(one for one in active if one.experiment_id not in ended_ids), *self._ended)

    def _read_trend(self, experiment: Experiment) -> None:
        points = self._engine.trend(experiment.experiment_id, _TREND_POINTS)
        self._trends[experiment.experiment_id] = tuple(points)
        # What has ended stays as it is.
        read_at = time.monotonic() if experiment.active else math.inf
        self._trends_read_at[experiment.experiment_id] = read_at

    def _is_trend_old(self, experiment: Experiment) -> bool:
        read_at = self._trends_read_at.get(experiment.experiment_id)
        # One that has ended since it was read is read once more.
        if read_at is None or (not experiment.active and read_at != math.inf):
            return True
        return time.monotonic() - read_at > _TREND_LASTS_SECONDS
