"""The watch over a promoted change: all sessions since then against what control had reached."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import peewee

from prx_engine import statistics
from prx_engine.clock import HOUR, Clock
from prx_engine.configuration import Parameters
from prx_engine.dimensions import DIMENSIONS, Dimension
from prx_engine.experiments.analysis import Subject, is_harm, look_record, with_harm_test
from prx_engine.experiments.catalog import (
    Catalog,
    Row,
    counted_dimensions,
    dump_look,
    next_check_at,
    watch_schedule_of,
)
from prx_engine.experiments.comparison import Histograms, arm_fitness
from prx_engine.experiments.lifecycle import ENGINE, Lifecycle
from prx_engine.experiments.looks import LookPoint, charge
from prx_engine.experiments.promotion import Promotion
from prx_engine.experiments.schedule import Schedule, whole_hours
from prx_engine.fitness.arms import Arm, Arms
from prx_engine.fitness.moments import MomentAccumulator
from prx_engine.records import CheckOutcome, CheckResult, Look
from prx_engine.scoring.metrics import Report, combine
from prx_engine.scoring.scores import Scorer
from prx_engine.statistics.spending import pocock
from prx_engine.store import Store
from prx_engine.store.pinned import load_parameters
from prx_engine.store.schema import Experiments, Looks, SessionReports, Sessions
from prx_engine.store.totals import arm_totals, session_fitness_counts

_END: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class WatchPoint(LookPoint):
    """A scheduled time of the watch."""

    @property
    def information(self) -> float:
        """1 / Var(D̂): control stands still, so Cov(D̂_j, D̂_k) = Var(D̂_k) for j < k, exactly."""
        return 1 / max(self.control.variance + self.treatment.variance, 1e-12)


@dataclass(frozen=True, slots=True)
class Watched:
    """A promoted change.

    Attributes:
        subject: the experiment, counted from its promotion; its harm looks are those of the watch.
        control: all control sessions, as they are for good.
        dimensions: that counted in the experiment.
    """

    subject: Subject
    control: Arm
    dimensions: tuple[Dimension, ...]


def watch_looks(
    watched: Watched, since: Mapping[int, Arm], histograms: Callable[[], Histograms]
) -> tuple[Look, ...]:
    """Return the new looks, the one of this check last; none if there is too little to compare.

    Args:
        watched: the promoted change.
        since: hours since the promotion, the times not closed → all sessions that started before.
        histograms: reads the session fitness of control and of all sessions up to the last time.
    """
    parameters = watched.subject.parameters
    points = [point for hours, arm in since.items() if (point := _point(watched, hours, arm)) is not None]
    if not points or points[-1].hours != max(since):
        return ()
    charged = charge(points, watched.subject.harm_looks, lambda hours: _spent(parameters, hours), sides=1)
    records = [look_record(watched.subject, "watch", look) for look in charged]
    if charged:
        records[-1] = with_harm_test(records[-1], charged[-1], histograms)
    return tuple(records)


def _point(watched: Watched, hours: int, since: Arm) -> WatchPoint | None:
    settings = watched.subject.parameters.fitness
    minimum = settings.min_sessions_for_score
    arms: Arms = {"control": watched.control, "treatment": since}
    counted = [
        name
        for name in watched.dimensions
        if all(arm.moments.observations(DIMENSIONS.index(name)) >= minimum for arm in arms.values())
    ]
    fitness = arm_fitness(arms, settings.weights, counted)
    if fitness is None or any(arm.moments.n < minimum for arm in arms.values()):
        return None
    return WatchPoint(hours, *fitness)


def _spent(parameters: Parameters, hours: float) -> float:
    """Return the cumulative alpha, all of it one-sided, of Pocock's type over the watch."""
    settings = parameters.experiments
    return pocock(min(hours / settings.default_duration_hours, 1.0), 1 - settings.confidence_level)


class Watch:
    """Checks promoted changes at the scheduled times, and takes back what does harm.

    Args:
        store: the database.
        catalog: finds experiments.
        lifecycle: writes the end of a watch with its event.
        promotion: takes changes back.
        clock: the engine's clock.
    """

    def __init__(
        self, store: Store, catalog: Catalog, lifecycle: Lifecycle, promotion: Promotion, clock: Clock
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._lifecycle = lifecycle
        self._promotion = promotion
        self._clock = clock

    def check_all(self) -> list[CheckResult]:
        """Check every promoted change that is due; return what was found."""
        query = Experiments.select().where(
            Experiments.promotion == "applied", Experiments.watch.is_null(False)
        )
        rows = self._store.rows(query.order_by(Experiments.promoted_at, Experiments.number))
        return [result for row in rows if (result := self.check(row)) is not None]

    def check(self, row: Row) -> CheckResult | None:
        """Check one promoted change; None if it is not watched, or no scheduled time has come."""
        schedule = watch_schedule_of(row)
        if schedule is None:
            return None
        if "regression" in row["watch"]:
            return self._taken_back(row, row["watch"]["regression"], None)
        due = schedule.until(max(whole_hours(row["promoted_at"], self._clock.now()), 0))
        if not due:
            return None
        looks = self._store.read(lambda: self._looks(row, schedule, due))
        harm = looks[-1] if looks and is_harm(load_parameters(row["parameters"]), looks[-1]) else None
        reason = _harm_reason(harm) if harm else _reason(looks, ended=due[-1] == schedule.maximum)
        if not self._store.write(lambda: self._write(row, schedule, due[-1], looks, harm, reason)):
            return None
        present = self._catalog.row(row["experiment_id"])
        if harm is not None:
            return self._taken_back(present, reason, harm)
        return _result(present, "watched", reason, looks[-1] if looks else None)

    def _looks(self, row: Row, schedule: Schedule, due: Sequence[int]) -> tuple[Look, ...]:
        number, parameters = row["number"], load_parameters(row["parameters"])
        totals = arm_totals(self._store, [number])[number]
        subject = Subject(
            created_at=row["promoted_at"],
            parameters=parameters,
            schedule=schedule,
            harm_looks=tuple(self._catalog.looks(number, "watch")),
        )
        watched = Watched(subject, totals["control"], counted_dimensions(row, totals))
        since, counts = sessions_since(self._store, row["promoted_at"], due, Scorer(parameters.fitness))

        def histograms() -> Histograms:
            control = session_fitness_counts(self._store, number, _END)["control"]
            return {
                "control": statistics.Histogram.from_units(control),
                "treatment": statistics.Histogram.from_units(counts.items()),
            }

        return watch_looks(watched, since, histograms)

    def _write(
        self,
        row: Row,
        schedule: Schedule,
        hours: int,
        looks: Sequence[Look],
        harm: Look | None,
        reason: str,
    ) -> bool:
        """Close a scheduled time, unless somebody else has."""
        present = self._catalog.locked_row(row["experiment_id"])
        if (present["promotion"], present["watch"]) != ("applied", row["watch"]):
            return False
        for look in looks:
            outcome = ("regression" if harm else "watched") if look.held else look.outcome
            self._store.execute(
                Looks.insert(
                    experiment=row["number"],
                    series=look.series,
                    k=look.k,
                    hours=whole_hours(row["created_at"], look.at),
                    look=dump_look(look.model_copy(update={"outcome": outcome})),
                )
            )
        if harm is None and hours == schedule.maximum:
            self._lifecycle.change_in_transaction(present, {"watch": None}, "watch_ended", reason, ENGINE)
            return True
        state = {"closed": hours} | ({"regression": reason} if harm else {})
        self._store.execute(Experiments.update(watch=state).where(Experiments.number == row["number"]))
        return True

    def _taken_back(self, row: Row, reason: str, look: Look | None) -> CheckResult:
        done = self._promotion.roll_back_harm(row["experiment_id"], reason)
        present = self._catalog.row(row["experiment_id"])
        if done:
            return _result(present, "rolled_back", reason, look)
        return _result(present, "watched", present["promotion_note"] or reason, look)


def sessions_since(
    store: Store, start: datetime, times: Sequence[int], scorer: Scorer
) -> tuple[dict[int, Arm], Counter[int]]:
    """Score all sessions since a time from their raw metrics, under given parameters.

    Returns:
        By hours since the start, the moments of the sessions that started before then; and how many
        sessions up to the last of the times have each session fitness.
    """
    accumulated = [MomentAccumulator() for _ in times]
    assigned = [0] * len(times)
    counts: Counter[int] = Counter()
    for started_at, reports in _reports_between(store, start, start + times[-1] * HOUR):
        place = bisect_right(times, (started_at - start) // HOUR)
        scores = scorer.scores(combine(reports))
        accumulated[place].add(scores)
        assigned[place] += 1
        fitness = scorer.fitness(scores)
        if fitness is not None:
            counts[fitness] += 1
    arms: dict[int, Arm] = {}
    total = Arm()
    for time, sessions, moments in zip(times, assigned, accumulated, strict=True):
        total = total + Arm(sessions, moments.moments())
        arms[time] = total
    return arms, counts


def _reports_between(store: Store, start: datetime, end: datetime) -> Iterator[tuple[datetime, list[Report]]]:
    """Return the raw metrics of each session that started in a time, its sources in order."""
    query = (
        Sessions.select(Sessions.session_id, Sessions.started_at, SessionReports.report)
        .join(
            SessionReports,
            peewee.JOIN.INNER,
            on=(Sessions.session_id == SessionReports.session_id),
        )
        .where(Sessions.started_at >= start, Sessions.started_at < end)
        .order_by(Sessions.session_id, SessionReports.source)
    )
    present: tuple[str, datetime, list[Report]] | None = None
    for session_id, started_at, report in store.stream(query):
        if present is None or present[0] != session_id:
            if present is not None:
                yield present[1], present[2]
            present = (session_id, started_at, [])
        present[2].append(json.loads(report))
    if present is not None:
        yield present[1], present[2]


def _harm_reason(look: Look) -> str:
    return f"regression after the promotion: {_effect(look)}, beyond chance"


def _reason(looks: Sequence[Look], *, ended: bool) -> str:
    found = _effect(looks[-1]) if looks else "too few sessions to compare"
    return f"no regression until the end of the watch: {found}" if ended else f"no regression: {found}"


def _effect(look: Look) -> str:
    return (
        f"fitness {look.control_fitness:.3f} → {look.treatment_fitness:.3f}"
        f" ({look.lift * 100:+.1f} %, {look.treatment_sessions} sessions since, p = {look.p_value:.2g})"
    )


def _result(row: Row, outcome: CheckOutcome, reason: str, look: Look | None) -> CheckResult:
    return CheckResult(
        experiment_id=row["experiment_id"],
        layer=row["layer"],
        hypothesis=row["hypothesis"],
        at=look.at if look else None,
        outcome=outcome,
        conclusion=row["conclusion"],
        winner=row["winner"],
        missing=[],
        look=look,
        reason=reason,
        next_check_at=next_check_at(row),
    )
