"""Recording what agents report: reports in, scores and totals out, one transaction a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from prx_engine.clock import Clock, format_time
from prx_engine.dimensions import VariantName
from prx_engine.errors import InvalidInput, NotFound, PrxError
from prx_engine.ids import short
from prx_engine.scoring.metrics import SessionUpdate, refuse_contradiction, replace
from prx_engine.scoring.scores import Scorer
from prx_engine.sessions.ledger import Ledger, SessionState
from prx_engine.sessions.windows import ExperimentWindow, ExperimentWindows
from prx_engine.store import Store
from prx_engine.text import shown

CLOCK_TOLERANCE: Final = timedelta(minutes=5)
"""How far ahead of the engine's clock a session may have started: clocks of machines differ."""

Windows = Mapping[str, ExperimentWindow]


class Recorded(NamedTuple):
    """What became of one update of a batch.

    Attributes:
        error: why it was refused; None if it was recorded.
        without_experiment: whether it stated a variant that no experiment wanted.
    """

    error: PrxError | None = None
    without_experiment: bool = False


_RECORDED: Final = Recorded()
_WITHOUT_EXPERIMENT: Final = Recorded(without_experiment=True)


class Recorder:
    """Records updates of sessions.

    Args:
        store: the database.
        windows: the experiments.
        clock: the engine's clock.
        deployment_scorer: gives the scorer under the present configuration.
    """

    def __init__(
        self,
        store: Store,
        windows: ExperimentWindows,
        clock: Clock,
        deployment_scorer: Callable[[], Scorer],
    ) -> None:
        self._store = store
        self._windows = windows
        self._clock = clock
        self._deployment_scorer = deployment_scorer

    def record(self, updates: Sequence[SessionUpdate]) -> list[Recorded]:
        """Record a batch; a refused update leaves the others as they are.

        Raises:
            StoreError: if nothing could be recorded at all.
        """
        now = self._clock.now()
        scorer = self._deployment_scorer()
        return self._store.write(lambda: self._record(updates, scorer, now))

    def record_within(self, updates: Sequence[SessionUpdate]) -> list[Recorded]:
        """Record a batch inside a write transaction of the caller's."""
        return self._record(updates, self._deployment_scorer(), self._clock.now()) if updates else []

    def _record(self, updates: Sequence[SessionUpdate], scorer: Scorer, now: datetime) -> list[Recorded]:
        ledger = Ledger(self._store, self._windows, scorer, now)
        windows = self._windows.by_id({u.experiment_id for u in updates if u.experiment_id})
        refusals = [_refusal(update, now, windows) for update in updates]
        starts: dict[str, tuple[datetime, str | None]] = {}
        for update, refusal in zip(updates, refusals, strict=True):
            if refusal is None and update.session_id not in starts:
                starts[update.session_id] = update.started_at or now, update.cluster
        if starts:
            ledger.open(starts)
        results = [
            _applied(ledger, windows, update) if refusal is None else Recorded(refusal)
            for update, refusal in zip(updates, refusals, strict=True)
        ]
        if starts:
            ledger.flush()
        return results


def _refusal(update: SessionUpdate, now: datetime, windows: Windows) -> PrxError | None:
    """Return why an update is wrong whatever is recorded already, if it is."""
    if update.started_at is not None and update.started_at > now + CLOCK_TOLERANCE:
        return InvalidInput(
            f"started_at: found {format_time(update.started_at)}; allowed: at most 5 minutes after"
            f" the clock, {format_time(now)}"
        )
    if update.experiment_id is not None and update.experiment_id not in windows:
        return NotFound(f"experiment_id: no experiment {shown(update.experiment_id)}")
    if update.experiment_id is not None and update.layer is not None:
        layer = windows[update.experiment_id].layer
        if update.layer != layer:
            return InvalidInput(f"layer: found {update.layer}; the stated experiment is of {layer}")
    try:
        refuse_contradiction(update.report)
    except InvalidInput as error:
        return error
    return None


def _applied(ledger: Ledger, windows: Windows, update: SessionUpdate) -> Recorded:
    """Apply one update to its session."""
    session, report = ledger.sessions[update.session_id], update.report
    try:
        if session.reports:
            report = replace(session.reports.get(update.source, {}), report)
            session.refuse_contradiction(update.source, report)
        found = update.variant is None or _state_variant(ledger, windows, session, update, update.variant)
    except PrxError as error:
        return Recorded(error)
    if report != session.reports.get(update.source):
        session.accept(update.source, report)
    if session.cluster is None and update.cluster is not None:
        session.cluster = update.cluster
        session.touched = True
    return _RECORDED if found else _WITHOUT_EXPERIMENT


def _state_variant(
    ledger: Ledger, windows: Windows, session: SessionState, update: SessionUpdate, variant: VariantName
) -> bool:
    """Assign the session as its agent says, or hold the agent to what is assigned already."""
    stated = windows[update.experiment_id] if update.experiment_id else None
    layer = stated.layer if stated else update.layer
    assert layer is not None  # an update that states a variant states one of the two
    assigned = session.assignments.get(layer)
    if assigned is not None:
        if assigned.variant != variant or (stated and stated.number != assigned.experiment):
            where = f"{layer}, experiment {short(stated.experiment_id)}" if stated else layer
            raise InvalidInput(
                f"variant: found {variant} in {where}; session {shown(session.session_id)} is assigned to"
                f" {assigned.variant} in {layer} already"
            )
        return True
    window = stated or ledger.active.get(layer)
    if window is None or not window.active or not window.covers(session.started_at):
        return False
    ledger.assign(session, window, variant)
    return True
