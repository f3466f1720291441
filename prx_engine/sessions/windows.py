"""The windows of experiments: which sessions each takes, and how it scores them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from prx_engine.clock import HOUR
from prx_engine.configuration import FitnessSettings
from prx_engine.dimensions import Layer
from prx_engine.records import ACTIVE, Status
from prx_engine.scoring.scores import Scorer
from prx_engine.store import Lock, Store
from prx_engine.store.pinned import load_parameters
from prx_engine.store.schema import Experiments, read_time

_ACTIVE: Final = tuple(sorted(ACTIVE))


@dataclass(frozen=True, slots=True)
class ExperimentWindow:
    """Which sessions an experiment takes, and under which parameters it scores them."""

    number: int
    experiment_id: str
    layer: Layer
    status: Status
    created_at: datetime
    converged_at: datetime | None
    max_end_at: datetime
    traffic_split: float
    fitness: FitnessSettings

    @property
    def active(self) -> bool:
        """Tell whether its scores may still change."""
        return self.status in ACTIVE

    def covers(self, started_at: datetime) -> bool:
        """Tell whether a session that started then belongs to the experiment's time."""
        end = self.max_end_at if self.converged_at is None else min(self.converged_at, self.max_end_at)
        return self.created_at <= started_at < end

    def hour(self, started_at: datetime) -> int:
        """Return the hour since creation in which a session started."""
        return (started_at - self.created_at) // HOUR


class ExperimentWindows:
    """Reads the windows of experiments.

    Args:
        store: the database.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._scorers: dict[str, Scorer] = {}

    def active(self, *, lock: bool = False) -> dict[Layer, ExperimentWindow]:
        """Return the active experiment of each layer that has one, kept as it is if ``lock``."""
        if lock:
            # Not the rows: writers of sessions would go on sharing them past one who waits to change them.
            self._store.hold(Lock.EXPERIMENTS, shared=True)
        rows = self._store.often(_active_windows, *_ACTIVE)
        return {window.layer: window for window in map(_window, rows)}

    def by_id(self, experiment_ids: Collection[str]) -> dict[str, ExperimentWindow]:
        """Return those of the experiments that exist."""
        if not experiment_ids:
            return {}
        rows = self._store.often(_named_windows, self._store.texts(experiment_ids))
        return {window.experiment_id: window for window in map(_window, rows)}

    def scorer(self, window: ExperimentWindow) -> Scorer:
        """Return the scorer under the experiment's pinned parameters."""
        if window.experiment_id not in self._scorers:
            self._scorers[window.experiment_id] = Scorer(window.fitness)
        return self._scorers[window.experiment_id]


def _window(row: Sequence[Any]) -> ExperimentWindow:
    number, experiment_id, layer, status, created_at, converged_at, max_end_at, text = row
    parameters = load_parameters(text)
    return ExperimentWindow(
        number,
        experiment_id,
        layer,
        status,
        read_time(created_at),
        read_time(converged_at) if converged_at else None,
        read_time(max_end_at),
        parameters.experiments.traffic_split,
        parameters.fitness,
    )


def _windows() -> Any:
    return Experiments.select(
        Experiments.number,
        Experiments.experiment_id,
        Experiments.layer,
        Experiments.status,
        Experiments.created_at,
        Experiments.converged_at,
        Experiments.max_end_at,
        Experiments.parameters,
    )


def _active_windows(_: Store) -> Any:
    return _windows().where(Experiments.status << list(_ACTIVE))


def _named_windows(store: Store) -> Any:
    return _windows().where(store.among(Experiments.experiment_id))
