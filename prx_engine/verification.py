"""Verification: everything that is kept as a total is summed again, and must be equal to the last bit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import peewee

from prx_engine.clock import clock_hour
from prx_engine.dimensions import DIMENSIONS
from prx_engine.errors import InvalidInput, StoreError
from prx_engine.fitness.arms import Arm
from prx_engine.fitness.moments import MomentAccumulator, Moments, Scores
from prx_engine.records import Verification
from prx_engine.scoring.metrics import Report, combine
from prx_engine.scoring.scores import Scorer
from prx_engine.sessions.windows import ExperimentWindows
from prx_engine.store import Store
from prx_engine.store.schema import Assignments, SessionReports, Sessions, load_json
from prx_engine.store.totals import all_arm_totals, all_hourly_arms, deployment_hours
from prx_engine.text import shown

_SCORES: Final = (*DIMENSIONS, "fitness")
_MOST_PROBLEMS: Final = 100
_FOREVER: Final = 2**31 - 1


def verify(store: Store, windows: ExperimentWindows) -> Verification:
    """Sum all stored scores again, score active experiments again from raw metrics, and compare."""
    return store.read(lambda: _Verifier(store, windows).result())


class _Sums:
    def __init__(self) -> None:
        self.assigned: defaultdict[Any, int] = defaultdict(int)
        self.moments: defaultdict[Any, MomentAccumulator] = defaultdict(MomentAccumulator)

    def add(self, key: object, scores: Scores) -> None:
        self.assigned[key] += 1
        self.moments[key].add(scores)

    def arm(self, key: object) -> Arm:
        return Arm(
            self.assigned.get(key, 0), self.moments[key].moments() if key in self.moments else Moments()
        )


class _Verifier:
    def __init__(self, store: Store, windows: ExperimentWindows) -> None:
        self._store = store
        self._windows = windows
        self._problems: list[str] = []
        self._sessions = 0
        self._assignments = 0

    def result(self) -> Verification:
        for step in (
            self._verify_deployment,
            self._verify_arms,
            self._verify_scores,
            lambda: self._verify_presence(Assignments, "assigned"),
            lambda: self._verify_presence(SessionReports, "reported"),
        ):
            try:
                step()
            except StoreError as damage:
                self._problems.append(str(damage))
        return Verification(
            sessions=self._sessions,
            assignments=self._assignments,
            problems=self._problems[:_MOST_PROBLEMS],
        )

    def _verify_deployment(self) -> None:
        sums = _Sums()
        query = Sessions.select(Sessions.started_at, *_columns(Sessions, DIMENSIONS))
        for started_at, *scores in self._store.stream(query):
            self._sessions += 1
            if started_at is None:
                self._problems.append("a session without a start")
                continue
            sums.add(clock_hour(started_at), tuple(scores))
        totals = dict(deployment_hours(self._store, -_FOREVER, _FOREVER))
        for hour in sorted(totals.keys() | sums.moments.keys()):
            if totals.get(hour, Moments()) != sums.arm(hour).moments:
                self._problems.append(
                    f"deployment, clock hour {hour}: the total is not the sum of its sessions"
                )

    def _verify_arms(self) -> None:
        whole, hourly = _Sums(), _Sums()
        query = Assignments.select(
            Assignments.experiment, Assignments.variant, Assignments.hour, *_columns(Assignments, DIMENSIONS)
        )
        for experiment, variant, hour, *scores in self._store.stream(query):
            self._assignments += 1
            whole.add((experiment, variant), tuple(scores))
            hourly.add((experiment, variant, hour), tuple(scores))
        self._compare("total", all_arm_totals(self._store), whole)
        self._compare("hourly total", all_hourly_arms(self._store), hourly)

    def _compare(self, what: str, kept: Mapping[Any, Arm], sums: _Sums) -> None:
        for key in sorted(kept.keys() | sums.assigned.keys()):
            if kept.get(key, Arm()) != sums.arm(key):
                where = " ".join(str(part) for part in key)
                self._problems.append(f"{what} of experiment {where}: not the sum of its sessions")

    def _verify_scores(self) -> None:
        """Score the sessions of active experiments again, from raw metrics under pinned parameters."""
        for window in self._windows.active().values():
            scorer = self._windows.scorer(window)
            same_session = Assignments.session_id == SessionReports.session_id
            query = (
                Assignments.select(
                    Assignments.session_id,
                    SessionReports.source,
                    SessionReports.report,
                    *_columns(Assignments, _SCORES),
                )
                .join(SessionReports, peewee.JOIN.LEFT_OUTER, on=same_session)
                .where(Assignments.experiment == window.number)
                .order_by(Assignments.session_id, SessionReports.source)
            )
            for session_id, reports, scores, fitness in _by_session(self._store.stream(query)):
                self._verify_session(session_id, scorer, reports, scores, fitness)

    def _verify_session(
        self, session_id: str, scorer: Scorer, reports: list[Report], scores: Scores, fitness: int | None
    ) -> None:
        try:
            again: Scores | None = scorer.scores(combine(reports))
        except InvalidInput:
            again = None
        if again != scores or scorer.fitness(scores) != fitness:
            self._problems.append(f"session {shown(session_id)}: its scores are not those of its raw metrics")

    def _verify_presence(self, model: Any, how: str) -> None:
        """Look for sessions that something is kept of, but not the session itself."""
        query = (
            model.select(model.session_id)
            .distinct()
            .join(Sessions, peewee.JOIN.LEFT_OUTER, on=(model.session_id == Sessions.session_id))
            .where(Sessions.session_id.is_null())
            .order_by(model.session_id)
            .limit(_MOST_PROBLEMS)
        )
        for (session_id,) in self._store.tuples(query):
            self._problems.append(f"session {shown(session_id)}: it is {how} and missing")


def _columns(model: Any, names: tuple[str, ...]) -> list[Any]:
    return [getattr(model, name) for name in names]


def _by_session(
    rows: Iterator[tuple[Any, ...]],
) -> Iterator[tuple[str, list[Report], Scores, int | None]]:
    """Join the rows of each session, one a source, in the order in which they come."""
    present: tuple[str, list[Report], Scores, int | None] | None = None
    for session_id, source, report, *scores, fitness in rows:
        if present is None or present[0] != session_id:
            if present is not None:
                yield present
            present = (session_id, [], tuple(scores), fitness)
        if source is not None:
            present[1].append(load_json(report))
    if present is not None:
        yield present
