"""Reading experiments: rows of the database become records."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, get_args

import peewee
from pydantic import ValidationError

from prx_engine.clock import HOUR, Clock
from prx_engine.dimensions import Dimension, Layer
from prx_engine.errors import Ambiguous, NotFound
from prx_engine.experiments.blocks import blocks, sample_ratio
from prx_engine.experiments.schedule import Schedule, whole_hours
from prx_engine.fitness.arms import Arms
from prx_engine.fitness.group import counting, fitness_score
from prx_engine.ids import SHORT_LENGTH
from prx_engine.records import ACTIVE, Event, Experiment, FitnessScore, Look, Status, Window
from prx_engine.statistics.relative import lift
from prx_engine.store import Lock, Store
from prx_engine.store.pinned import load_parameters
from prx_engine.store.schema import Events, Experiments, Looks, Snapshots, damaged, load_json
from prx_engine.store.totals import arm_totals
from prx_engine.text import shown

Row = dict[str, Any]

_PLAIN_FIELDS: Final = (
    "experiment_id",
    "decision_id",
    "layer",
    "hypothesis",
    "status",
    "created_at",
    "converged_at",
    "planned_end_at",
    "max_end_at",
    "extensions",
    "control",
    "treatment",
    "winner",
    "conclusion",
    "verdict",
    "promotion",
    "promotion_note",
    "promoted_at",
)
_ID_CHARACTERS: Final = frozenset("0123456789abcdef-")
_SHORTEST_PART: Final = 2
_DISPLAYED_CANDIDATES: Final = 5


class Catalog:
    """Finds experiments and tells how they stand.

    Args:
        store: the database.
        clock: the engine's clock.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def row(self, experiment_id: str) -> Row:
        """Return the row of an experiment, whose id may be shortened.

        Any unique prefix or suffix will do, and so will the beginning of the part that displays show.

        Raises:
            NotFound: if there is none.
            Ambiguous: if there are several.
        """
        part = experiment_id.strip().lower()
        rows: list[Row] = []
        if part.isprintable():
            rows = self._store.rows(Experiments.select().where(Experiments.experiment_id == part))
        if not rows and len(part) >= _SHORTEST_PART and set(part) <= _ID_CHARACTERS:
            rows = self._rows_like(part)
        if not rows:
            raise NotFound(
                f"no experiment {shown(experiment_id)}; `prx evolution experiments --status all` lists them"
            )
        if len(rows) > 1:
            names = ", ".join(row["experiment_id"] for row in rows[:_DISPLAYED_CANDIDATES])
            more = " and more" if len(rows) > _DISPLAYED_CANDIDATES else ""
            raise Ambiguous(
                f"{shown(experiment_id)} fits several experiments: {names}{more}; give more of the id"
            )
        return rows[0]

    def _rows_like(self, part: str) -> list[Row]:
        """Return the first rows whose id, or its displayed end, begins or ends with a part."""
        many, one = ("%", "_") if self._store.postgresql else ("*", "?")
        patterns = [f"{part}{many}", f"{many}{part}"]
        if len(part) < SHORT_LENGTH:
            patterns.append(f"{many}{part}{one * (SHORT_LENGTH - len(part))}")
        identifier = Experiments.experiment_id
        # The same operator is LIKE on PostgreSQL and GLOB on SQLite; a part has no wildcards of its own.
        condition = functools.reduce(operator.or_, (identifier % pattern for pattern in patterns))
        return self._store.rows(Experiments.select().where(condition).limit(_DISPLAYED_CANDIDATES + 1))

    def locked_row(self, experiment_id: str) -> Row:
        """Return the row of an experiment, locked until the transaction ends.

        Raises:
            NotFound, Ambiguous: as ``row``.
        """
        self._store.hold(Lock.EXPERIMENTS)
        number = self.row(experiment_id)["number"]
        query = self._store.for_update(Experiments.select().where(Experiments.number == number))
        (row,) = self._store.rows(query)
        return row

    def active_row(self, layer: Layer) -> Row | None:
        """Return the row of the layer's active experiment."""
        return self._store.row(
            Experiments.select().where(Experiments.layer == layer, Experiments.status << list(ACTIVE))
        )

    def rows(
        self, statuses: Sequence[Status] | None = None, layer: Layer | None = None, limit: int | None = None
    ) -> list[Row]:
        """Return rows, the newest first."""
        query = Experiments.select().order_by(Experiments.created_at.desc(), Experiments.number.desc())
        if statuses is not None:
            query = query.where(Experiments.status << list(statuses))
        if layer is not None:
            query = query.where(Experiments.layer == layer)
        if limit is not None:
            query = query.limit(limit)
        return self._store.rows(query)

    def records(self, rows: Iterable[Row]) -> list[Experiment]:
        """Return the records of rows, with the totals and last looks of all of them read together."""
        rows = list(rows)
        numbers = [row["number"] for row in rows]
        totals = arm_totals(self._store, numbers)
        looks = self._deciding_looks(rows)
        now = self._clock.now()
        return [experiment_record(row, totals[row["number"]], looks.get(row["number"]), now) for row in rows]

    def counts(self) -> dict[Status, int]:
        """Return how many experiments there are in each status."""
        counted = Experiments.select(Experiments.status, peewee.fn.COUNT(Experiments.number)).group_by(
            Experiments.status
        )
        return dict.fromkeys(get_args(Status), 0) | dict(self._store.tuples(counted))

    def looks(self, number: int, series: str) -> list[Look]:
        """Return all looks of a series, in order."""
        query = (
            Looks.select(Looks.look)
            .where(Looks.experiment == number, Looks.series == series)
            .order_by(Looks.k)
        )
        return [load_look(text) for (text,) in self._store.tuples(query)]

    def has_interrupted_promotion(self) -> bool:
        """Tell whether a promotion or rollback was begun and has not ended (yet)."""
        query = Snapshots.select(Snapshots.number).where(Snapshots.state == "applying")
        return self._store.row(query) is not None

    def events(self, row: Row | None = None, limit: int | None = None) -> list[Event]:
        """Return events, of one experiment or of all, the newest first."""
        query = (
            Events.select(Events, Experiments.experiment_id)
            .join(Experiments, peewee.JOIN.LEFT_OUTER, on=(Events.experiment == Experiments.number))
            .order_by(Events.number.desc())
        )
        if row is not None:
            query = query.where(Events.experiment == row["number"])
        if limit is not None:
            query = query.limit(limit)
        return [
            Event(**{name: event[name] for name in Event.model_fields}) for event in self._store.rows(query)
        ]

    def _deciding_looks(self, rows: Sequence[Row]) -> dict[int, Look]:
        """Return the last look of each experiment, of the series that decided it."""
        last = (
            Looks.select(Looks.experiment, Looks.series, peewee.fn.MAX(Looks.k).alias("k"))
            .where(
                Looks.experiment << [row["number"] for row in rows],
                Looks.series << ["efficacy", "harm"],
            )
            .group_by(Looks.experiment, Looks.series)
        )
        same = (
            (Looks.experiment == last.c.experiment) & (Looks.series == last.c.series) & (Looks.k == last.c.k)
        )
        query = Looks.select(Looks.experiment, Looks.series, Looks.look).join(last, on=same)
        decided_by_harm = {row["number"] for row in rows if row["conclusion"] == "regression"}
        return {
            number: load_look(text)
            for number, series, text in self._store.tuples(query)
            if (series == "harm") == (number in decided_by_harm)
        }


def dump_look(look: Look) -> str:
    """Return the stored text of a look, infinities included."""
    return json.dumps(look.model_dump(), default=datetime.isoformat)


def load_look(text: str) -> Look:
    """Read the stored text of a look."""
    try:
        return Look.model_validate(load_json(text))
    except ValidationError:
        raise damaged("look", text) from None


def schedule_of(row: Mapping[str, Any]) -> Schedule:
    """Return the scheduled times of an experiment."""
    parameters = load_parameters(row["parameters"])
    return Schedule(
        interval=parameters.experiments.auto_converge.check_interval_hours,
        planned_end=whole_hours(row["created_at"], row["planned_end_at"]),
        maximum=whole_hours(row["created_at"], row["max_end_at"]),
        closed=row["closed_hours"],
    )


def watch_schedule_of(row: Mapping[str, Any]) -> Schedule | None:
    """Return the scheduled times of the watch over a promoted change, in hours since its promotion.

    None if it is not watched (any more).
    """
    if row["promotion"] != "applied" or row["watch"] is None:
        return None
    settings = load_parameters(row["parameters"]).experiments
    duration = settings.default_duration_hours
    return Schedule(
        interval=settings.auto_converge.check_interval_hours,
        planned_end=duration,
        maximum=duration,
        closed=row["watch"]["closed"],
    )


def next_check_at(row: Mapping[str, Any]) -> datetime | None:
    """Return when the next check is due; None if no check will look at the experiment again."""
    watched = watch_schedule_of(row)
    if watched is not None:
        hours = watched.next()
        return None if hours is None else row["promoted_at"] + hours * HOUR
    if row["status"] not in ACTIVE or row["held"]:
        return None
    hours = schedule_of(row).next()
    return None if hours is None else row["created_at"] + hours * HOUR


def counted_dimensions(row: Mapping[str, Any], arms: Arms) -> tuple[Dimension, ...]:
    """Return the dimensions that count in an experiment's fitness now."""
    if row["pinned_dimensions"] is not None:
        return tuple(row["pinned_dimensions"])
    settings = load_parameters(row["parameters"]).fitness
    return counting([arm.moments for arm in arms.values()], settings.weights, settings.min_sessions_for_score)


def arm_scores(
    row: Mapping[str, Any], arms: Arms, counted: Sequence[Dimension], end: datetime
) -> dict[str, FitnessScore]:
    """Return the fitness of both arms over given sessions."""
    settings = load_parameters(row["parameters"]).fitness
    window = Window(start=row["created_at"], end=max(end, row["created_at"]))
    return {
        name: fitness_score(arm.moments, settings.weights, counted, window, settings.min_sessions_for_score)
        for name, arm in arms.items()
    }


def _lift(control: float | None, treatment: float | None) -> float | None:
    return None if control is None or treatment is None else lift(control, treatment)


def experiment_record(row: Row, arms: Arms, look: Look | None, now: datetime) -> Experiment:
    """Return the record of an experiment: of now while it is active, of its end once it has ended."""
    if row["control_fitness"] is None:
        scores = arm_scores(row, arms, counted_dimensions(row, arms), now)
    else:
        scores = {
            name: FitnessScore.model_validate(row[f"{name}_fitness"]) for name in ("control", "treatment")
        }
    parameters = load_parameters(row["parameters"])
    watched = watch_schedule_of(row)
    mismatch = sample_ratio(
        arms, parameters.experiments.traffic_split, latched=row["sample_ratio_mismatch"]
    ).mismatch
    return Experiment(
        **{name: row[name] for name in _PLAIN_FIELDS},
        next_check_at=next_check_at(row),
        control_sessions=arms["control"].assigned,
        treatment_sessions=arms["treatment"].assigned,
        control_fitness=scores["control"],
        treatment_fitness=scores["treatment"],
        lift=_lift(scores["control"].composite, scores["treatment"].composite),
        p_value=look.p_value if look else None,
        last_look=look,
        watch_ends_at=row["promoted_at"] + watched.maximum * HOUR if watched else None,
        blocked_by=blocks(mismatch=mismatch, suspicious_attrition=row["attrition"]),
        parameters=parameters,
    )
