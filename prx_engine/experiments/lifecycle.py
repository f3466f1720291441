"""States and transitions: each one is checked, written and logged in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from prx_engine.clock import HOUR, Clock, format_time
from prx_engine.configuration import Parameters
from prx_engine.dimensions import Layer, VariantName
from prx_engine.errors import InvalidInput, KeyTaken, LayerOccupied, WrongState
from prx_engine.experiments.catalog import (
    Catalog,
    Row,
    arm_scores,
    counted_dimensions,
)
from prx_engine.experiments.schedule import hours_rounded_up, whole_hours
from prx_engine.ids import IdSource, short
from prx_engine.records import ACTIVE, Conclusion, FitnessScore, Variant
from prx_engine.store import Store
from prx_engine.store.pinned import load_parameters
from prx_engine.store.schema import Events, Experiments
from prx_engine.store.totals import arm_totals
from prx_engine.text import shown, storable

if TYPE_CHECKING:
    from prx_engine.promotion import Base

ENGINE: Final = "engine"
"""The actor of what the engine does by itself."""

_UNLOGGED: Final = frozenset(
    {"control_fitness", "treatment_fitness", "closed_hours", "promotion_note", "watch"}
)
_PROMOTABLE: Final = frozenset({"pending", "conflict"})


@dataclass(frozen=True, slots=True)
class Proposal:
    """An experiment to be created.

    Attributes:
        layer: L1, L2 or L3.
        hypothesis: what the change should achieve, for people.
        control, treatment: the variants.
        parameters: pinned to the experiment.
        decision_id: the agent's own name of the decision to try this.
        base: what the variants would touch, as it is now; None if they touch nothing.
    """

    layer: Layer
    hypothesis: str
    control: Variant
    treatment: Variant
    parameters: Parameters
    decision_id: str | None
    base: Base | None = None


class Lifecycle:
    """Creates experiments and moves them from state to state.

    Every method that ends in ``_in_transaction`` runs inside the caller's write transaction.

    Args:
        store: the database.
        catalog: finds experiments.
        clock: the engine's clock.
        ids: the engine's source of ids.
    """

    def __init__(self, store: Store, catalog: Catalog, clock: Clock, ids: IdSource) -> None:
        self._store = store
        self._catalog = catalog
        self._clock = clock
        self._ids = ids

    def create(self, proposal: Proposal, actor: str) -> str:
        """Create a running experiment and return its id.

        Raises:
            LayerOccupied: if the layer has an active experiment.
            InvalidInput: if an active experiment of another layer touches the same key or file.
        """
        now = self._clock.now()
        identifier = self._ids(now)
        settings = proposal.parameters.experiments

        def work() -> None:
            self._refuse_occupied(proposal.layer)
            self._refuse_overlap(proposal)
            number = self._store.execute(
                Experiments.insert(
                    experiment_id=identifier,
                    decision_id=proposal.decision_id,
                    layer=proposal.layer,
                    hypothesis=proposal.hypothesis,
                    status="running",
                    created_at=now,
                    planned_end_at=now + settings.default_duration_hours * HOUR,
                    max_end_at=now + settings.auto_converge.max_duration_hours * HOUR,
                    control=proposal.control.model_dump(),
                    treatment=proposal.treatment.model_dump(),
                    parameters=proposal.parameters.model_dump_json(),
                    promotion_base=proposal.base.as_json() if proposal.base else None,
                )
            )
            self._log(number, actor, "created", proposal.hypothesis, {}, {"status": "running"})

        try:
            self._store.write(work)
        except KeyTaken:
            # Somebody else's experiment came between the question and the insert.
            self._refuse_occupied(proposal.layer)
            raise
        return identifier

    def cancel(self, experiment_id: str, reason: str, actor: str) -> None:
        """Cancel an active experiment; new sessions get the default at once.

        Raises:
            WrongState: if it has ended.
        """
        self._end_by_operator(experiment_id, "cancel", "cancelled", None, reason, actor)

    def reject(self, experiment_id: str, reason: str, actor: str) -> None:
        """End an active experiment in favour of control.

        Raises:
            WrongState: if it has ended.
        """
        self._end_by_operator(experiment_id, "reject", "operator_rejected", "control", reason, actor)

    def promote(self, experiment_id: str, reason: str, actor: str) -> None:
        """End an active experiment in favour of treatment.

        Raises:
            WrongState: if it has ended.
        """
        self._end_by_operator(experiment_id, "promote", "operator_promoted", "treatment", reason, actor)

    def extend(self, experiment_id: str, hours: int | None, reason: str, actor: str) -> None:
        """Move the planned end of an active experiment, counted from it or from now, whichever is later.

        Raises:
            WrongState: if it has ended.
            InvalidInput: if the new end lies past the maximum.
        """
        now = self._clock.now()

        def work() -> None:
            row = self._catalog.locked_row(experiment_id)
            self.require_active(row, "extend")
            created, settings = row["created_at"], load_parameters(row["parameters"]).experiments
            extra = settings.default_duration_hours if hours is None else hours
            if type(extra) is not int or extra < 1:
                raise InvalidInput(f"hours: found {shown(extra)}; allowed: a whole number from 1 on")
            start = max(whole_hours(created, row["planned_end_at"]), hours_rounded_up(created, now))
            maximum = whole_hours(created, row["max_end_at"])
            if start + extra > maximum:
                left = max(maximum - start, 0)
                raise InvalidInput(
                    f"cannot extend {short(row['experiment_id'])} by {extra} hours: {left} hours are left"
                    f" until its maximum, {format_time(row['max_end_at'])}"
                )
            self.extend_in_transaction(row, start + extra, 1, reason, actor)

        self._store.write(work)

    def extend_in_transaction(
        self,
        row: Row,
        planned_end: int,
        extensions: int,
        reason: str,
        actor: str,
        verdict: Conclusion | None = None,
    ) -> None:
        """Move the planned end to a time in hours since creation; the verdict is cleared or replaced."""
        self.change_in_transaction(
            row,
            {
                "status": "running",
                "planned_end_at": row["created_at"] + planned_end * HOUR,
                "extensions": row["extensions"] + extensions,
                "verdict": verdict,
                "held": False,
            },
            "extended",
            reason,
            actor,
        )

    def conclude_in_transaction(
        self,
        row: Row,
        conclusion: Conclusion,
        winner: VariantName | None,
        fitness: Mapping[str, FitnessScore],
        reason: str,
        actor: str,
    ) -> None:
        """End an experiment for good, with the fitness of both arms that ended it."""
        treatment = Variant.model_validate(row["treatment"])
        promotes = winner == "treatment" and treatment.changes_something
        self.change_in_transaction(
            row,
            {
                "status": "cancelled" if conclusion == "cancelled" else "converged",
                "converged_at": self._clock.now(),
                "conclusion": conclusion,
                "winner": winner,
                "verdict": None,
                "held": False,
                "control_fitness": fitness["control"].model_dump(mode="json"),
                "treatment_fitness": fitness["treatment"].model_dump(mode="json"),
                "promotion": "pending" if promotes else "none",
            },
            "cancelled" if conclusion == "cancelled" else "converged",
            reason,
            actor,
        )

    def change_in_transaction(
        self, row: Row, changes: Mapping[str, Any], action: str, reason: str, actor: str
    ) -> None:
        """Write changed fields, raise the revision, and log what was before and after."""
        changed = {name: value for name, value in changes.items() if row[name] != value}
        self._store.execute(
            Experiments.update(**changed, revision=Experiments.revision + 1).where(
                Experiments.number == row["number"]
            )
        )
        logged = [name for name in changed if name not in _UNLOGGED]
        before = {name: _plain(row[name]) for name in logged}
        after = {name: _plain(changed[name]) for name in logged}
        self._log(row["number"], actor, action, reason, before, after)
        row.update(changed)
        row["revision"] += 1

    def _end_by_operator(
        self,
        experiment_id: str,
        verb: str,
        conclusion: Conclusion,
        winner: VariantName | None,
        reason: str,
        actor: str,
    ) -> None:
        def work() -> None:
            row = self._catalog.locked_row(experiment_id)
            self.require_active(row, verb)
            arms = arm_totals(self._store, [row["number"]])[row["number"]]
            fitness = arm_scores(row, arms, counted_dimensions(row, arms), self._clock.now())
            self.conclude_in_transaction(row, conclusion, winner, fitness, reason, actor)

        self._store.write(work)

    def _refuse_occupied(self, layer: Layer) -> None:
        row = self._catalog.active_row(layer)
        if row is not None:
            raise LayerOccupied(
                f"{layer} has an active experiment already: {short(row['experiment_id'])}"
                f" {shown(row['hypothesis'])} ({row['status']}); wait for its end or cancel it"
            )

    def _refuse_overlap(self, proposal: Proposal) -> None:
        """Refuse a second experiment on what another layer's is about: neither could tell what it sees."""
        if proposal.base is None:
            return
        from prx_engine.promotion import folded, shared_key  # the other transitions do without it

        for row in self._catalog.rows(sorted(ACTIVE)):
            other = row["promotion_base"] or {"config": {}, "files": {}}
            files = {folded(name) for name in other["files"]}
            name = shared_key(proposal.base.config, other["config"]) or next(
                (name for name in proposal.base.files if folded(name) in files), None
            )
            if name is not None:
                raise InvalidInput(
                    f"{shown(name)} is what {short(row['experiment_id'])} {shown(row['hypothesis'])}"
                    f" ({row['layer']}, {row['status']}) is about already; wait for its end or cancel it"
                )

    def require_active(self, row: Row, verb: str) -> None:
        """Refuse what only an active experiment allows.

        Raises:
            WrongState: naming the state, and what is possible in it.
        """
        if row["status"] not in ACTIVE:
            raise WrongState(
                f"cannot {verb} {short(row['experiment_id'])}: it is {row['status']};"
                f" possible now: {possible_actions(row)}"
            )

    def _log(
        self,
        number: int | None,
        actor: str,
        action: str,
        reason: str,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
    ) -> None:
        self._store.execute(
            Events.insert(
                experiment=number,
                at=self._clock.now(),
                actor=storable(actor),
                action=action,
                reason=storable(reason or ""),
                before=dict(before),
                after=dict(after),
            )
        )


def possible_actions(row: Mapping[str, Any]) -> str:
    """Return in words what an operator can do with an experiment as it stands."""
    actions: Sequence[str] = ()
    if row["status"] in ACTIVE:
        actions = ("cancel", "extend", "promote", "reject")
    elif row["promotion"] in _PROMOTABLE:
        actions = ("promote",)
    elif row["promotion"] == "applied":
        actions = ("rollback",)
    return ", ".join(actions) or "nothing, it has ended"


def _plain(value: Any) -> Any:
    return format_time(value) if isinstance(value, datetime) else value
