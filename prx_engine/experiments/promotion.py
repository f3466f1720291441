"""Promotion: the winning change becomes the layer's default, and can be taken back."""

from __future__ import annotations

from typing import Final

from prx_engine.clock import Clock
from prx_engine.errors import WrongState
from prx_engine.experiments.catalog import Catalog, Row
from prx_engine.experiments.lifecycle import Lifecycle, possible_actions
from prx_engine.ids import short
from prx_engine.records import ACTIVE
from prx_engine.store import Store
from prx_engine.store.schema import Experiments

_APPLICABLE: Final = frozenset({"pending", "conflict"})


class Promotion:
    """Applies and takes back the changes of winning treatments.

    Args:
        store: the database.
        catalog: finds experiments.
        lifecycle: writes the changes with their events.
        clock: the engine's clock.
    """

    def __init__(self, store: Store, catalog: Catalog, lifecycle: Lifecycle, clock: Clock) -> None:
        self._store = store
        self._catalog = catalog
        self._lifecycle = lifecycle
        self._clock = clock

    def promote(self, experiment_id: str, reason: str, actor: str) -> None:
        """Apply a pending promotion; an active experiment is ended in favour of treatment first.

        Raises:
            WrongState: if there is nothing to promote.
        """
        row = self._catalog.row(experiment_id)
        if row["status"] in ACTIVE:
            self._lifecycle.promote(row["experiment_id"], reason, actor)
        elif row["promotion"] not in _APPLICABLE:
            raise _wrong_state("promote", row)
        self.apply(row["experiment_id"], reason, actor)

    def apply(self, experiment_id: str, reason: str, actor: str) -> None:
        """Make the changes of a pending promotion the layer's default; anything else is left alone."""

        def work() -> None:
            row = self._catalog.locked_row(experiment_id)
            if row["promotion"] in _APPLICABLE:
                self._lifecycle.change_in_transaction(
                    row,
                    {"promotion": "applied", "promoted_at": self._clock.now()},
                    "promoted",
                    reason,
                    actor,
                )

        self._store.write(work)

    def apply_pending(self, actor: str) -> None:
        """Apply what a process that died left pending."""
        query = Experiments.select(Experiments.experiment_id).where(Experiments.promotion == "pending")
        for (experiment_id,) in self._store.tuples(query):
            self.apply(experiment_id, "left pending", actor)

    def roll_back(self, experiment_id: str, reason: str, actor: str) -> None:
        """Take an applied promotion back.

        Raises:
            WrongState: if it is not applied.
        """

        def work() -> None:
            row = self._catalog.locked_row(experiment_id)
            if row["promotion"] != "applied":
                raise _wrong_state("rollback", row)
            self._lifecycle.change_in_transaction(
                row, {"promotion": "rolled_back"}, "rolled_back", reason, actor
            )

        self._store.write(work)


def _wrong_state(verb: str, row: Row) -> WrongState:
    state = f"{row['status']}, promotion {row['promotion']}"
    return WrongState(
        f"cannot {verb} {short(row['experiment_id'])}: it is {state}; possible now: {possible_actions(row)}"
    )
