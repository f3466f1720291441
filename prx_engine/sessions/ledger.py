"""The sessions that one transaction works on: loaded and locked, changed in memory, written back together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pydantic_core import to_json

from prx_engine.clock import clock_hour
from prx_engine.dimensions import DIMENSIONS, Layer, VariantName
from prx_engine.fitness.moments import MISSING, Scores
from prx_engine.scoring.metrics import Report, combine, counts_of, refuse_contradiction
from prx_engine.scoring.scores import Scorer
from prx_engine.sessions.windows import ExperimentWindow, ExperimentWindows
from prx_engine.store import Store
from prx_engine.store.schema import (
    Assignments,
    SessionReports,
    Sessions,
    load_json,
    read_time,
    utc_text,
)
from prx_engine.store.totals import TotalsChange, TotalsKey

_SCORE_COLUMNS: Final = (*DIMENSIONS, "fitness")
_SESSION_COLUMNS: Final = ("session_id", "started_at", "cluster", *_SCORE_COLUMNS)
_ASSIGNMENT_COLUMNS: Final = (
    "session_id",
    "layer",
    "experiment",
    "variant",
    "hour",
    "assigned_at",
    "cluster",
    *_SCORE_COLUMNS,
)


@dataclass(slots=True)
class AssignmentState:
    """A session's variant in one layer, with its scores under that experiment's parameters."""

    experiment: int
    variant: VariantName
    hour: int
    assigned_at: datetime
    scores: Scores = MISSING
    fitness: int | None = None
    stored: bool = False


@dataclass(slots=True)
class SessionState:
    """A session as it stands within the transaction."""

    session_id: str
    started_at: datetime
    cluster: str | None
    scores: Scores
    fitness: int | None
    reports: dict[str, Report] = field(default_factory=dict)
    assignments: dict[Layer, AssignmentState] = field(default_factory=dict)
    touched_sources: set[str] = field(default_factory=set)
    touched: bool = False
    stored: tuple[Any, ...] = ()
    _counts: dict[str, int] | None = None

    def row(self) -> tuple[Any, ...]:
        """Return the session's row, in the order of the columns."""
        started_at = self.stored[1] if self.stored else utc_text(self.started_at)
        return (self.session_id, started_at, self.cluster, *self.scores, self.fitness)

    def combined(self) -> Report:
        """Return the raw metrics over all sources."""
        return combine([report for _, report in sorted(self.reports.items())])

    def refuse_contradiction(self, source: str, report: Report) -> None:
        """Refuse a source's new report if it cannot be true beside those of the others.

        The sums are kept, since a session may have a source for each of its messages.

        Raises:
            InvalidInput: if more would have succeeded than there were.
        """
        if self._counts is None:
            self._counts = counts_of(self.combined())
        refuse_contradiction(self._counts_with(self._counts, source, report))

    def accept(self, source: str, report: Report) -> None:
        """Put a source's new report in the place of its earlier one."""
        if self._counts is not None:
            self._counts = self._counts_with(self._counts, source, report)
        self.reports[source] = report
        self.touched_sources.add(source)
        self.touched = True

    def _counts_with(self, counts: dict[str, int], source: str, report: Report) -> dict[str, int]:
        earlier = self.reports.get(source, {})
        change = {name: count - earlier.get(name, 0) for name, count in counts_of(report).items()}
        return {name: counts.get(name, 0) + change.get(name, 0) for name in (*counts, *change)}


class Ledger:
    """The working set of one write transaction.

    Args:
        store: the database, inside a write transaction.
        windows: the experiments.
        deployment: scorer under the present configuration.
        now: the engine's time.
    """

    def __init__(self, store: Store, windows: ExperimentWindows, deployment: Scorer, now: datetime) -> None:
        self._store = store
        self._windows = windows
        self._deployment = deployment
        self.now = now
        self.sessions: dict[str, SessionState] = {}
        """In the order of their ids, so that writers cannot deadlock."""

        self.active = windows.active(lock=True)
        self._experiments = {window.number: window for window in self.active.values()}
        self._scored_alike = {
            window.number for window in self.active.values() if windows.scorer(window) == deployment
        }

    def open(self, starts: Mapping[str, tuple[datetime, str | None]]) -> None:
        """Take the sessions, so that nobody else changes them meanwhile, and load what is known.

        Args:
            starts: session id → (start time if it is new, cluster if it is new).
        """
        ids = sorted(starts)
        self.sessions = {i: SessionState(i, *starts[i], MISSING, None) for i in ids}
        if not self._store.writes_alone and self._inserted() == len(ids):
            return
        known = self._store.often(_locked_sessions, self._store.texts(ids))
        for row in known:
            session_id, started_at, cluster, *scores, fitness = row
            self.sessions[session_id] = SessionState(
                session_id, read_time(started_at), cluster, tuple(scores), fitness, stored=row
            )
        if known:
            self._load_reports(ids)
            self._load_assignments(ids)

    def _inserted(self) -> int:
        """Insert the sessions that are new, since only a row can be locked; return how many they were."""
        for session in self.sessions.values():
            session.stored = session.row()
        return self._store.insert_new(
            Sessions, _SESSION_COLUMNS, [session.stored for session in self.sessions.values()]
        )

    def assign(self, session: SessionState, window: ExperimentWindow, variant: VariantName) -> None:
        """Put a session into an experiment, for good."""
        session.assignments[window.layer] = AssignmentState(
            window.number, variant, window.hour(session.started_at), self.now
        )
        session.touched = True

    def flush(self) -> None:
        """Score what was touched, and write sessions, reports, assignments and totals.

        Each step is done for all sessions before the next one: that takes a fifth less time.
        """
        touched = [s for s in self.sessions.values() if s.touched or not s.stored]
        change = TotalsChange()
        self._rescore(touched, change)
        rows = [session.row() for session in touched]
        self._store.insert_or_replace(
            Sessions,
            _SESSION_COLUMNS,
            [row for session, row in zip(touched, rows, strict=True) if row != session.stored],
        )
        self._store.insert_or_replace(
            SessionReports,
            ("session_id", "source", "report"),
            [
                (session.session_id, source, to_json(session.reports[source]).decode())
                for session in touched
                for source in sorted(session.touched_sources)
            ],
        )
        self._store.insert_or_replace(
            Assignments,
            _ASSIGNMENT_COLUMNS,
            [
                _assignment_row(session, layer, assignment)
                for session in touched
                for layer, assignment in session.assignments.items()
                if assignment.experiment in self._experiments
            ],
        )
        change.write(self._store)

    def _rescore(self, touched: Sequence[SessionState], change: TotalsChange) -> None:
        reports = [session.combined() for session in touched]
        scores = [self._deployment.scores(report) for report in reports]
        fitness = [self._deployment.fitness(session_scores) for session_scores in scores]
        for session, report, new, new_fitness in zip(touched, reports, scores, fitness, strict=True):
            earlier, session.scores, session.fitness = session.scores, new, new_fitness
            alike: list[TotalsKey] = [clock_hour(session.started_at)]
            for assignment in session.assignments.values():
                window = self._experiments.get(assignment.experiment)
                if window is None:
                    continue
                arm_hour = (assignment.experiment, assignment.variant, assignment.hour)
                if not assignment.stored:
                    change.assign(arm_hour)
                before = assignment.scores
                self._rescore_assignment(assignment, window, session, report)
                if before == earlier and assignment.scores == new:
                    alike.append(arm_hour)
                else:
                    change.rescore((arm_hour,), before, assignment.scores)
            change.rescore(tuple(alike), earlier, new)

    def _rescore_assignment(
        self, assignment: AssignmentState, window: ExperimentWindow, session: SessionState, report: Report
    ) -> None:
        if window.number in self._scored_alike:
            assignment.scores, assignment.fitness = session.scores, session.fitness
        else:
            scorer = self._windows.scorer(window)
            assignment.scores = scorer.scores(report)
            assignment.fitness = scorer.fitness(assignment.scores)
        assignment.stored = True

    def _load_reports(self, ids: list[str]) -> None:
        for session_id, source, report in self._store.often(_stored_reports, self._store.texts(ids)):
            self.sessions[session_id].reports[source] = load_json(report)

    def _load_assignments(self, ids: list[str]) -> None:
        for session_id, assignments in stored_assignments(self._store, ids).items():
            self.sessions[session_id].assignments.update(assignments)


def _assignment_row(session: SessionState, layer: Layer, assignment: AssignmentState) -> tuple[Any, ...]:
    return (
        session.session_id,
        layer,
        assignment.experiment,
        assignment.variant,
        assignment.hour,
        utc_text(assignment.assigned_at),
        session.cluster,
        *assignment.scores,
        assignment.fitness,
    )


def stored_assignments(store: Store, ids: Iterable[str]) -> dict[str, dict[Layer, AssignmentState]]:
    """Return the assignments of sessions as the database has them."""
    found: defaultdict[str, dict[Layer, AssignmentState]] = defaultdict(dict)
    for row in store.often(_assignments, store.texts(ids)):
        session_id, layer, experiment, variant, hour, assigned_at, _, *scores, fitness = row
        found[session_id][layer] = AssignmentState(
            experiment, variant, hour, read_time(assigned_at), tuple(scores), fitness, stored=True
        )
    return found


def _locked_sessions(store: Store) -> Any:
    columns = [getattr(Sessions, name) for name in _SESSION_COLUMNS]
    query = Sessions.select(*columns).where(store.among(Sessions.session_id))
    return store.for_update(query.order_by(Sessions.session_id))


def _stored_reports(store: Store) -> Any:
    columns = SessionReports.session_id, SessionReports.source, SessionReports.report
    return SessionReports.select(*columns).where(store.among(SessionReports.session_id))


def _assignments(store: Store) -> Any:
    columns = [getattr(Assignments, name) for name in _ASSIGNMENT_COLUMNS]
    return Assignments.select(*columns).where(store.among(Assignments.session_id))
