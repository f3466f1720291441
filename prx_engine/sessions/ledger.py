"""The sessions that one transaction works on: loaded and locked, changed in memory, written back together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from prx_engine.clock import HOUR, clock_hour
from prx_engine.configuration import FitnessSettings, Parameters
from prx_engine.dimensions import DIMENSIONS, Layer, VariantName
from prx_engine.fitness.moments import MISSING, Scores
from prx_engine.records import ACTIVE, Status
from prx_engine.scoring.metrics import Report, combine, counts_of, refuse_contradiction
from prx_engine.scoring.scores import Scorer
from prx_engine.store import Store
from prx_engine.store.pinned import load_parameters
from prx_engine.store.schema import (
    Assignments,
    Experiments,
    SessionReports,
    Sessions,
    dump_json,
    load_json,
    utc_text,
)
from prx_engine.store.totals import TotalsChange

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
    """Reads the windows of experiments; what is pinned in them is parsed once.

    Args:
        store: the database.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parameters: dict[int, Parameters] = {}
        self._scorers: dict[int, Scorer] = {}

    def active(self, *, lock: bool = False) -> dict[Layer, ExperimentWindow]:
        """Return the active experiment of each layer that has one, kept as it is if ``lock``."""
        query = _window_query().where(Experiments.status << list(ACTIVE))
        rows = self._store.rows(self._store.for_share(query) if lock else query)
        return {row["layer"]: self._window(row) for row in rows}

    def by_id(self, experiment_ids: Collection[str]) -> dict[str, ExperimentWindow]:
        """Return those of the experiments that exist."""
        if not experiment_ids:
            return {}
        query = _window_query().where(Experiments.experiment_id << list(experiment_ids))
        return {row["experiment_id"]: self._window(row) for row in self._store.rows(query)}

    def scorer(self, window: ExperimentWindow) -> Scorer:
        """Return the scorer under the experiment's pinned parameters."""
        if window.number not in self._scorers:
            self._scorers[window.number] = Scorer(window.fitness)
        return self._scorers[window.number]

    def _window(self, row: Mapping[str, Any]) -> ExperimentWindow:
        fields = dict(row)
        text = fields.pop("parameters")
        number = fields["number"]
        if number not in self._parameters:
            self._parameters[number] = load_parameters(text)
        parameters = self._parameters[number]
        return ExperimentWindow(
            **fields, traffic_split=parameters.experiments.traffic_split, fitness=parameters.fitness
        )


def _window_query() -> Any:
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
        return combine(self.reports[source] for source in sorted(self.reports))

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
        self.active = windows.active(lock=True)
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
        query = Sessions.select(*[getattr(Sessions, c) for c in _SESSION_COLUMNS]).where(
            self._store.among(Sessions.session_id, ids)
        )
        known = False
        for session_id, started_at, cluster, *scores, fitness in self._store.tuples(
            self._store.for_update(query.order_by(Sessions.session_id))
        ):
            session = SessionState(session_id, started_at, cluster, tuple(scores), fitness)
            session.stored = session.row()
            self.sessions[session_id] = session
            known = True
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
        """Score what was touched, and write sessions, reports, assignments and totals."""
        change = TotalsChange()
        touched = [s for _, s in sorted(self.sessions.items()) if s.touched or not s.stored]
        experiments = {window.number: window for window in self.active.values()}
        session_rows: list[tuple[Any, ...]] = []
        assignment_rows: list[tuple[Any, ...]] = []
        for session in touched:
            report = session.combined()
            self._rescore(session, report, change)
            if (row := session.row()) != session.stored:
                session_rows.append(row)
            for layer, assignment in sorted(session.assignments.items()):
                window = experiments.get(assignment.experiment)
                if window is not None:
                    assignment_rows.append(
                        self._rescored_assignment(session, layer, assignment, window, report, change)
                    )
        self._store.insert_or_replace(Sessions, _SESSION_COLUMNS, session_rows)
        self._store.insert_or_replace(
            SessionReports,
            ("session_id", "source", "report"),
            [
                (session.session_id, source, dump_json(session.reports[source]))
                for session in touched
                for source in sorted(session.touched_sources)
            ],
        )
        self._store.insert_or_replace(Assignments, _ASSIGNMENT_COLUMNS, assignment_rows)
        change.write(self._store)

    def _rescore(self, session: SessionState, report: Report, change: TotalsChange) -> None:
        scores = self._deployment.scores(report)
        change.rescore_deployment(clock_hour(session.started_at), session.scores, scores)
        session.scores, session.fitness = scores, self._deployment.fitness(scores)

    def _rescored_assignment(
        self,
        session: SessionState,
        layer: Layer,
        assignment: AssignmentState,
        window: ExperimentWindow,
        report: Report,
        change: TotalsChange,
    ) -> tuple[Any, ...]:
        scores, fitness = session.scores, session.fitness
        if window.number not in self._scored_alike:
            scorer = self._windows.scorer(window)
            scores = scorer.scores(report)
            fitness = scorer.fitness(scores)
        if not assignment.stored:
            change.assign(window.number, assignment.variant, assignment.hour)
        change.rescore(window.number, assignment.variant, assignment.hour, assignment.scores, scores)
        assignment.scores, assignment.fitness = scores, fitness
        assignment.stored = True
        return (
            session.session_id,
            layer,
            window.number,
            assignment.variant,
            assignment.hour,
            utc_text(assignment.assigned_at),
            session.cluster,
            *scores,
            assignment.fitness,
        )

    def _load_reports(self, ids: list[str]) -> None:
        query = SessionReports.select(
            SessionReports.session_id, SessionReports.source, SessionReports.report
        ).where(self._store.among(SessionReports.session_id, ids))
        for session_id, source, report in self._store.tuples(query):
            self.sessions[session_id].reports[source] = load_json(report)

    def _load_assignments(self, ids: list[str]) -> None:
        for session_id, assignments in stored_assignments(self._store, ids).items():
            self.sessions[session_id].assignments.update(assignments)


def stored_assignments(store: Store, ids: Iterable[str]) -> dict[str, dict[Layer, AssignmentState]]:
    """Return the assignments of sessions as the database has them."""
    query = Assignments.select(
        *[getattr(Assignments, c) for c in _ASSIGNMENT_COLUMNS if c != "cluster"]
    ).where(store.among(Assignments.session_id, ids))
    found: defaultdict[str, dict[Layer, AssignmentState]] = defaultdict(dict)
    for session_id, layer, experiment, variant, hour, assigned_at, *scores, fitness in store.tuples(query):
        found[session_id][layer] = AssignmentState(
            experiment, variant, hour, assigned_at, tuple(scores), fitness, stored=True
        )
    return found
