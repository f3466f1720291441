"""Assignment: which variant a session runs in each layer, decided once and reproducible by anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

from prx_engine.clock import Clock
from prx_engine.dimensions import LAYERS, Layer, VariantName
from prx_engine.records import Assignment, Variant
from prx_engine.scoring.scores import Scorer
from prx_engine.sessions.ledger import (
    AssignmentState,
    Ledger,
    stored_assignments,
)
from prx_engine.sessions.windows import ExperimentWindow, ExperimentWindows
from prx_engine.store import Store
from prx_engine.store.schema import Experiments, Sessions, load_json, read_time, utc_text

_ANY_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)

Effective = dict[Layer, tuple[dict[str, Any], dict[str, str]]]
"""Keys and files that are set, by layer."""


def treatment_share(session_id: str, experiment_id: str) -> float:
    """Return the session's fixed place u in [0, 1) for an experiment: treatment if u < traffic_split.

    A keyed BLAKE2b hash (RFC 7693) of the session id, so that layers are independent of each other and
    anybody can compute the assignment again.
    """
    digest = blake2b(session_id.encode(), key=UUID(experiment_id).bytes, digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


class Assigner:
    """Assigns sessions to variants.

    Args:
        store: the database.
        windows: the experiments.
        clock: the engine's clock.
        deployment_scorer: gives the scorer under the present configuration.
        enabled: tells whether experiments are switched on.
    """

    def __init__(
        self,
        store: Store,
        windows: ExperimentWindows,
        clock: Clock,
        deployment_scorer: Callable[[], Scorer],
        enabled: Callable[[], bool],
    ) -> None:
        self._store = store
        self._windows = windows
        self._clock = clock
        self._deployment_scorer = deployment_scorer
        self._enabled = enabled

    def assign(self, session_id: str) -> dict[Layer, Assignment]:
        """Return the session's assignment in every layer, making and persisting those that are new.

        Raises:
            StoreError: if the database cannot be used.
        """
        now = self._clock.now()
        if not self._enabled():
            return self._store.read(lambda: self._answers(now, {}, dict.fromkeys(LAYERS, "disabled")))
        answered = self._store.read(lambda: self._settled(session_id, now))
        if answered is not None:
            return answered
        scorer = self._deployment_scorer()
        return self._store.write(lambda: self._assign(session_id, scorer, now))

    def _settled(self, session_id: str, now: datetime) -> dict[Layer, Assignment] | None:
        """Return the answer for a session for which there is nothing left to decide."""
        rows = self._store.often(_start, session_id)
        if not rows:
            return None
        started_at = read_time(rows[0][0])
        assignments = stored_assignments(self._store, [session_id]).get(session_id, {})
        reasons = {
            layer: _reason(window, started_at, now)
            for layer, window in self._windows.active().items()
            if layer not in assignments
        }
        if "assigned" in reasons.values():
            return None
        return self._answers(started_at, assignments, dict.fromkeys(assignments, "persisted") | reasons)

    def _assign(self, session_id: str, scorer: Scorer, now: datetime) -> dict[Layer, Assignment]:
        ledger = Ledger(self._store, self._windows, scorer, now)
        ledger.open({session_id: (now, None)})
        session = ledger.sessions[session_id]
        reasons: dict[Layer, str] = dict.fromkeys(session.assignments, "persisted")
        for layer, window in ledger.active.items():
            if layer not in session.assignments:
                reasons[layer] = _reason(window, session.started_at, now)
                if reasons[layer] == "assigned":
                    ledger.assign(session, window, _variant(session_id, window))
        ledger.flush()
        return self._answers(session.started_at, session.assignments, reasons)

    def _answers(
        self,
        started_at: datetime,
        assignments: Mapping[Layer, AssignmentState],
        reasons: Mapping[Layer, str],
    ) -> dict[Layer, Assignment]:
        effective = layer_defaults(self._store, started_at)
        experiment_ids = {}
        for layer, state in assignments.items():
            ((experiment_ids[layer], control, treatment),) = self._store.often(_variants, state.experiment)
            text = control if state.variant == "control" else treatment
            variant = Variant.model_validate(load_json(text))
            _override(effective, layer, variant.config, variant.files)
        return {
            layer: Assignment(
                layer=layer,
                variant=assignments[layer].variant if layer in assignments else None,
                experiment_id=experiment_ids.get(layer),
                config=effective[layer][0],
                files=effective[layer][1],
                reason=reasons.get(layer, "no_experiment"),
            )
            for layer in LAYERS
        }


def layer_defaults(store: Store, at: datetime) -> Effective:
    """Return what sessions that start at a time get by default: all applied promotions, in order."""
    defaults: Effective = {layer: ({}, {}) for layer in LAYERS}
    for layer, text in store.often(_applied_promotions, "applied", utc_text(at)):
        treatment = load_json(text)
        _override(defaults, layer, treatment["config"], treatment["files"])
    return defaults


def _start(_: Store) -> Any:
    return Sessions.select(Sessions.started_at).where(Sessions.session_id == "")


def _variants(_: Store) -> Any:
    columns = Experiments.experiment_id, Experiments.control, Experiments.treatment
    return Experiments.select(*columns).where(Experiments.number == 0)


def _applied_promotions(_: Store) -> Any:
    return (
        Experiments.select(Experiments.layer, Experiments.treatment)
        .where(Experiments.promotion == "applied", Experiments.promoted_at <= _ANY_TIME)
        .order_by(Experiments.promoted_at, Experiments.number)
    )


def _override(
    effective: Effective, layer: Layer, config: Mapping[str, Any], files: Mapping[str, str]
) -> None:
    """Set keys and files in a layer, and in no other: one key has one value, whoever merges the layers."""
    for other, (other_config, other_files) in effective.items():
        if other != layer:
            for name in other_config.keys() & config.keys():
                del other_config[name]
            for name in other_files.keys() & files.keys():
                del other_files[name]
    effective[layer][0].update(config)
    effective[layer][1].update(files)


def _variant(session_id: str, window: ExperimentWindow) -> VariantName:
    share = treatment_share(session_id, window.experiment_id)
    return "treatment" if share < window.traffic_split else "control"


def _reason(window: ExperimentWindow, started_at: datetime, now: datetime) -> str:
    if started_at < window.created_at:
        return "started_before"
    if started_at >= window.max_end_at or now >= window.max_end_at:
        return "past_maximum"
    return "assigned"
