"""Promotion: the winning change becomes the layer's default, in the agent's files too, and comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from prx_engine.clock import Clock, format_time
from prx_engine.dimensions import Layer
from prx_engine.errors import NotFound, PromotionConflict, PromotionRefused, PrxError, StoreError, WrongState
from prx_engine.experiments.catalog import Catalog, Row
from prx_engine.experiments.lifecycle import ENGINE, Lifecycle, possible_actions
from prx_engine.ids import IdSource, short
from prx_engine.promotion import (
    Base,
    FileChange,
    Place,
    Replacement,
    locked,
    remove_snapshot,
    shared_key,
    shown_path,
    this_host,
    write_snapshot,
)
from prx_engine.records import ACTIVE, Snapshot, Variant
from prx_engine.store import Store
from prx_engine.store.schema import Experiments, Snapshots

Action = Literal["promotion", "rollback"]

_APPLICABLE: Final = frozenset({"pending", "conflict"})
_READY: Final[dict[Action, frozenset[str]]] = {
    "promotion": _APPLICABLE,
    "rollback": frozenset({"applied"}),
}
_SNAPSHOTS: Final = Path(".evolution", "rollback")
_KINDS: Final[dict[Layer, str]] = {"L1": "memory", "L2": "prompt", "L3": "strategy"}


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done with an experiment's change, by whom and why."""

    action: Action
    reason: str
    actor: str
    force: bool = False


class Promotion:
    """Applies and takes back the changes of winning treatments.

    Each time the database is told first what will be replaced, then the files are, then the database is
    told that it is done. What a process leaves in between is completed or undone by ``recover``.

    Args:
        store: the database.
        catalog: finds experiments.
        lifecycle: writes the changes with their events.
        clock: the engine's clock.
        ids: the engine's source of ids.
        place: tells where this process promotes to.
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        lifecycle: Lifecycle,
        clock: Clock,
        ids: IdSource,
        place: Callable[[], Place],
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._lifecycle = lifecycle
        self._clock = clock
        self._ids = ids
        self._place = place

    def base(self, control: Variant, treatment: Variant) -> Base | None:
        """Return what the variants of a new experiment would touch, as it is now.

        Raises:
            InvalidInput, PromotionRefused: if the treatment could not be promoted.
        """
        if not (control.changes_something or treatment.changes_something):
            return None
        return Base.observed(self._place(), control, treatment)

    def promote(self, experiment_id: str, reason: str, actor: str, *, force: bool = False) -> None:
        """Apply a pending promotion; an active experiment is ended in favour of treatment first.

        What cannot be applied here and now stays pending, or in conflict, with a note that says why.

        Raises:
            WrongState: if there is nothing to promote.
        """
        row = self._catalog.row(experiment_id)
        if row["status"] in ACTIVE:
            self._lifecycle.promote(row["experiment_id"], reason, actor)
        elif row["promotion"] not in _APPLICABLE:
            raise _wrong_state("promote", row)
        self.apply(row["experiment_id"], reason, actor, force=force)

    def apply(self, experiment_id: str, reason: str, actor: str, *, force: bool = False) -> None:
        """Make a pending change the layer's default; one that is not pending is left alone."""
        row = self._catalog.row(experiment_id)
        if row["promotion"] not in _APPLICABLE:
            return
        try:
            self._carry_out(row, Order("promotion", reason, actor, force))
        except StoreError:
            raise
        except PromotionConflict as conflict:
            self._note(row, "conflict", self._explained(row, conflict), actor)
        except PrxError as error:
            self._note(row, row["promotion"], str(error), actor)

    def apply_pending(self, actor: str) -> None:
        """Apply what is pending, finish or undo what a process that died has begun."""
        self.recover()
        query = Experiments.select(Experiments.experiment_id).where(Experiments.promotion == "pending")
        for (experiment_id,) in self._store.tuples(query.order_by(Experiments.number)):
            self.apply(experiment_id, "left pending", actor)

    def roll_back(self, experiment_id: str | None, reason: str, actor: str, *, force: bool = False) -> str:
        """Take an applied promotion back, the last one if none is named; return the experiment's id.

        Raises:
            NotFound: if none is named and there is none.
            WrongState: if it is not applied.
            PromotionConflict: naming what has been edited since; nothing was changed.
            PromotionRefused: if it cannot be taken back here and now.
        """
        row = self._last_applied() if experiment_id is None else self._catalog.row(experiment_id)
        if row["promotion"] != "applied":
            raise _wrong_state("rollback", row)
        self._carry_out(row, Order("rollback", reason, actor, force))
        return str(row["experiment_id"])

    def roll_back_harm(self, experiment_id: str, reason: str) -> bool:
        """Take a promotion back that has done harm; if that cannot be, note why and tell so."""
        row = self._catalog.row(experiment_id)
        try:
            self._carry_out(row, Order("rollback", reason, ENGINE))
        except StoreError:
            raise
        except PrxError as error:
            self._note(row, "applied", f"{reason}; cannot be rolled back: {error}", ENGINE)
            return False
        return True

    def snapshots(self, limit: int | None = None) -> list[Snapshot]:
        """Return what promotions and rollbacks have replaced, the newest first."""
        query = (
            Snapshots.select(Snapshots, Experiments.experiment_id, Experiments.layer)
            .join(Experiments, on=(Snapshots.experiment == Experiments.number))
            .order_by(Snapshots.number.desc())
        )
        found = [_snapshot(row, file) for row in self._store.rows(query) for file in row["content"]["files"]]
        return found[:limit]

    def recover(self) -> None:
        """Finish or undo on this host what a process that died has begun; one that lives is left alone."""
        for row in self._interrupted():
            with suppress(PromotionRefused), locked(Path(row["content"]["folder"]), wait=0.0):
                self._settle(row["number"])

    def _interrupted(self) -> list[Row]:
        """Return what was begun on this host and has not ended."""
        query = Snapshots.select().where(Snapshots.state == "applying").order_by(Snapshots.number)
        return [row for row in self._store.rows(query) if row["content"]["host"] == this_host()]

    def _carry_out(self, row: Row, order: Order) -> None:
        """Apply or take back a change while nobody else does such a thing in the same place."""
        base = Base.of_json(row["promotion_base"])
        base.place.require(self._place())
        with locked(base.place.folder):
            for left in self._interrupted():
                if left["content"]["folder"] == str(base.place.folder):
                    self._settle(left["number"])
            changes = self._changes(row, base, order)
            number = self._begin(row, order, base.place, changes)
            self._replace(number, row["layer"])
            self._finish(number)

    def _changes(self, row: Row, base: Base, order: Order) -> list[FileChange]:
        treatment = Variant.model_validate(row["treatment"])
        if order.action == "promotion":
            return base.promotion(treatment, force=order.force)
        query = (
            Snapshots.select(Snapshots.content)
            .where(
                Snapshots.experiment == row["number"],
                Snapshots.action == "promotion",
                Snapshots.state == "applied",
            )
            .order_by(Snapshots.number.desc())
        )
        promoted = self._store.row(query)
        if promoted is None:
            raise PromotionRefused(f"no snapshot of {short(row['experiment_id'])}")
        files = [FileChange.of_json(file) for file in promoted["content"]["files"]]
        return base.rollback(treatment, files, force=order.force)

    def _begin(self, row: Row, order: Order, place: Place, changes: Sequence[FileChange]) -> int:
        """Write down what is going to be replaced, before anything is."""
        now = self._clock.now()
        version_ids = [self._ids(now) for _ in (*changes, None)]
        content = {
            "host": place.host,
            "folder": str(place.folder),
            "reason": order.reason,
            "actor": order.actor,
            "files": [
                {"version_id": version_id, **change.as_json()}
                for version_id, change in zip(version_ids, changes, strict=False)
            ],
        }

        def work() -> int:
            present = self._catalog.locked_row(row["experiment_id"])
            if present["promotion"] not in _READY[order.action]:
                raise _wrong_state("promote" if order.action == "promotion" else "rollback", present)
            number: int = self._store.execute(
                Snapshots.insert(
                    experiment=row["number"],
                    version_id=version_ids[-1],
                    created_at=now,
                    action=order.action,
                    state="applying",
                    content=content,
                )
            )
            return number

        return self._store.write(work)

    def _replace(self, number: int, layer: Layer) -> None:
        """Replace the files, or none of them."""
        begun = self._row(number)
        replacement = _replacement(begun)
        try:
            self._keep_old_texts(begun, layer)
            replacement.apply()
        except (PromotionRefused, OSError) as error:
            self._undo(number, layer, replacement)
            if isinstance(error, OSError):
                raise PromotionRefused(f"{_disk_problem(error)}; nothing was changed") from None
            raise

    def _keep_old_texts(self, begun: Row, layer: Layer) -> None:
        for file in begun["content"]["files"]:
            if file["before"] is not None:
                write_snapshot(
                    _snapshot_folder(begun, layer),
                    file["version_id"],
                    format_time(begun["created_at"]),
                    file["before"],
                )

    def _undo(self, number: int, layer: Layer, replacement: Replacement) -> None:
        begun = self._row(number)
        try:
            replacement.undo()
            for file in begun["content"]["files"]:
                remove_snapshot(_snapshot_folder(begun, layer), file["version_id"])
        except OSError as error:
            raise PromotionRefused(
                f"{_disk_problem(error)}, while undoing what had been begun; the next check tries again"
            ) from None
        self._store.write(lambda: self._set_state(number, "undone"))

    def _finish(self, number: int) -> None:
        """Tell the database that the files are replaced."""

        def work() -> None:
            begun = self._row(number)
            content, action = begun["content"], begun["action"]
            row = self._catalog.locked_row(_experiment_id(self._store, begun["experiment"]))
            self._set_state(number, "applied")
            promoted = {
                "promotion": "applied",
                "promoted_at": self._clock.now(),
                "promotion_note": None,
                "watch": {"closed": 0},
            }
            taken_back = {"promotion": "rolled_back", "promotion_note": None, "watch": None}
            changes, event = (promoted, "promoted") if action == "promotion" else (taken_back, "rolled_back")
            self._lifecycle.change_in_transaction(row, changes, event, content["reason"], content["actor"])

        self._store.write(work)

    def _settle(self, number: int) -> None:
        """Finish or undo what was interrupted; the caller holds the lock."""
        begun = self._row(number)
        if begun["state"] != "applying":
            return
        replacement = _replacement(begun)
        row = self._catalog.row(_experiment_id(self._store, begun["experiment"]))
        if replacement.is_complete():
            try:
                replacement.tidy()
            except OSError as error:
                raise PromotionRefused(_disk_problem(error)) from None
            self._finish(number)
        else:
            self._undo(number, row["layer"], replacement)
            note = f"{begun['action']} was interrupted, and has been undone"
            self._note(row, row["promotion"], note, ENGINE)

    def _set_state(self, number: int, state: str) -> None:
        self._store.execute(Snapshots.update(state=state).where(Snapshots.number == number))

    def _row(self, number: int) -> Row:
        (row,) = self._store.rows(Snapshots.select().where(Snapshots.number == number))
        return row

    def _last_applied(self) -> Row:
        row = self._store.row(
            Experiments.select()
            .where(Experiments.promotion == "applied")
            .order_by(Experiments.promoted_at.desc(), Experiments.number.desc())
        )
        if row is None:
            raise NotFound("no promotion is applied: there is nothing to roll back")
        return row

    def _note(self, row: Row, promotion: str, note: str, actor: str) -> None:
        """Write down why a change cannot be applied or taken back; the same reason is logged once."""
        if (promotion, note) == (row["promotion"], row["promotion_note"]):
            return

        def work() -> None:
            present = self._catalog.locked_row(row["experiment_id"])
            if (present["promotion"], present["promotion_note"]) != (row["promotion"], row["promotion_note"]):
                return
            action = {"applied": "rollback_failed"}.get(promotion, f"promotion_{promotion}")
            self._lifecycle.change_in_transaction(
                present, {"promotion": promotion, "promotion_note": note}, action, note, actor
            )

        self._store.write(work)

    def _explained(self, row: Row, conflict: PromotionConflict) -> str:
        """Return what a conflict says, and which promotion has made it, if one has."""
        query = (
            Experiments.select(Experiments.experiment_id, Experiments.layer, Experiments.treatment)
            .where(Experiments.promotion == "applied", Experiments.promoted_at >= row["created_at"])
            .order_by(Experiments.promoted_at.desc())
        )
        for other in self._store.rows(query):
            if _touches(other["treatment"], conflict.names):
                return f"{conflict}; promoted by {short(other['experiment_id'])} ({other['layer']}) meanwhile"
        return str(conflict)


def _touches(treatment: Mapping[str, Any], names: Sequence[str]) -> bool:
    keys = [name for name in names if name not in treatment["files"]]
    return len(keys) < len(names) or shared_key(keys, treatment["config"]) is not None


def _replacement(begun: Row) -> Replacement:
    changes = [FileChange.of_json(file) for file in begun["content"]["files"]]
    return Replacement(changes, f"prx-{short(begun['version_id'])}")


def _snapshot_folder(begun: Row, layer: Layer) -> Path:
    return Path(begun["content"]["folder"]) / _SNAPSHOTS / _KINDS[layer]


def _snapshot(row: Row, file: Mapping[str, Any]) -> Snapshot:
    return Snapshot(
        version_id=file["version_id"],
        created_at=row["created_at"],
        content=file["before"],
        sha256=file["before_sha256"],
        path=file["path"],
        experiment_id=row["experiment_id"],
        layer=row["layer"],
        action=row["action"],
        state=row["state"],
    )


def _experiment_id(store: Store, number: int) -> str:
    ((experiment_id,),) = store.tuples(
        Experiments.select(Experiments.experiment_id).where(Experiments.number == number)
    )
    return str(experiment_id)


def _disk_problem(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{shown_path(str(error.filename))}: {reason}" if error.filename else reason


def _wrong_state(verb: str, row: Row) -> WrongState:
    state = f"{row['status']}, promotion {row['promotion']}"
    return WrongState(
        f"cannot {verb} {short(row['experiment_id'])}: it is {state}; possible now: {possible_actions(row)}"
    )
