"""The tables. They are declared once, belong to no database, and are bound to one by a Store."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import peewee

from prx_engine.dimensions import DIMENSIONS
from prx_engine.errors import StoreError
from prx_engine.fitness.moments import MOMENT_NAMES
from prx_engine.text import shown

SCHEMA_VERSION: Final = 1

_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


class UtcField(peewee.TextField):
    """A time as RFC 3339 text of fixed width in UTC, so that text order is time order."""

    def db_value(self, value: datetime | None) -> str | None:
        """Write a time."""
        return None if value is None else utc_text(value)

    def python_value(self, value: str | None) -> datetime | None:
        """Read a time."""
        return None if value is None else read_time(value)


class JsonField(peewee.TextField):
    """A JSON value as compact text with sorted keys, the same in both dialects."""

    def db_value(self, value: Any) -> str | None:
        """Write a value."""
        return None if value is None else dump_json(value)

    def python_value(self, value: str | None) -> Any:
        """Read a value."""
        return None if value is None else load_json(value)


# Times of one transaction are mostly the same one.
@lru_cache(maxsize=1024)
def utc_text(time: datetime) -> str:
    """Return the stored text of a time."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def read_time(text: str) -> datetime:
    """Return the time of a stored text.

    Raises:
        StoreError: if it is damaged.
    """
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise damaged("time", text) from None


def load_json(text: str) -> Any:
    """Read the text of a stored JSON value.

    Raises:
        StoreError: if it is damaged.
    """
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        raise damaged("value", text) from None


def damaged(what: str, text: object) -> StoreError:
    """Return the error for a stored text that nobody can have written."""
    return StoreError(f"the database is damaged: a stored {what} reads {shown(text)}; restore a backup")


def dump_json(value: Any) -> str:
    """Return the canonical text of a JSON value."""
    return _ENCODER.encode(value)


def _score_fields(model: type[peewee.Model]) -> type[peewee.Model]:
    for name in DIMENSIONS:
        model._meta.add_field(name, peewee.IntegerField(null=True))
    model._meta.add_field("fitness", peewee.IntegerField(null=True))
    return model


def _moment_fields(model: type[peewee.Model]) -> type[peewee.Model]:
    for name in MOMENT_NAMES:
        model._meta.add_field(name, peewee.BigIntegerField(default=0))
    return model


class SchemaInfo(peewee.Model):
    """One row: the version of the schema, and the release that wrote it."""

    id = peewee.IntegerField(primary_key=True)
    version = peewee.IntegerField()

    class Meta:
        table_name = "prx_schema"


class Experiments(peewee.Model):
    """One row an experiment; ``number`` is the short key that big tables refer to."""

    number = peewee.AutoField()
    experiment_id = peewee.TextField(unique=True)
    decision_id = peewee.TextField(null=True)
    layer = peewee.TextField()
    hypothesis = peewee.TextField()
    status = peewee.TextField()
    created_at = UtcField()
    converged_at = UtcField(null=True)
    planned_end_at = UtcField()
    max_end_at = UtcField()
    extensions = peewee.IntegerField(default=0)
    control = JsonField()
    treatment = JsonField()
    parameters = peewee.TextField()
    winner = peewee.TextField(null=True)
    conclusion = peewee.TextField(null=True)
    verdict = peewee.TextField(null=True)
    held = peewee.BooleanField(default=False)
    closed_hours = peewee.IntegerField(default=0)
    pinned_dimensions = JsonField(null=True)
    pinned_test = peewee.TextField(null=True)
    sample_ratio_mismatch = peewee.BooleanField(default=False)
    attrition = peewee.BooleanField(default=False)
    control_fitness = JsonField(null=True)
    treatment_fitness = JsonField(null=True)
    promotion = peewee.TextField(default="none")
    promotion_note = peewee.TextField(null=True)
    promotion_base = JsonField(null=True)
    promoted_at = UtcField(null=True)
    watch = JsonField(null=True)
    revision = peewee.IntegerField(default=0)
    claim_owner = peewee.TextField(null=True)
    claimed_at = UtcField(null=True)

    class Meta:
        table_name = "experiments"


class Sessions(peewee.Model):
    """One row a session: when it started, and its scores for the deployment's fitness."""

    session_id = peewee.TextField(primary_key=True)
    started_at = UtcField()
    cluster = peewee.TextField(null=True)

    class Meta:
        table_name = "sessions"
        without_rowid = True


class SessionReports(peewee.Model):
    """Raw metrics, one row a session and source."""

    session_id = peewee.TextField()
    source = peewee.TextField()
    report = peewee.TextField()

    class Meta:
        table_name = "session_reports"
        primary_key = peewee.CompositeKey("session_id", "source")
        without_rowid = True


class Assignments(peewee.Model):
    """The variant of a session in a layer, and its scores under that experiment's parameters."""

    session_id = peewee.TextField()
    layer = peewee.TextField()
    experiment = peewee.IntegerField()
    variant = peewee.TextField()
    hour = peewee.IntegerField()
    assigned_at = UtcField()

    class Meta:
        table_name = "assignments"
        primary_key = peewee.CompositeKey("session_id", "layer")


class Totals(peewee.Model):
    """Moments of an arm over all its sessions."""

    experiment = peewee.IntegerField()
    variant = peewee.TextField()
    assigned = peewee.BigIntegerField(default=0)

    class Meta:
        table_name = "totals"
        primary_key = peewee.CompositeKey("experiment", "variant")


class HourlyTotals(peewee.Model):
    """Moments of an arm over the sessions of one hour, counted from the experiment's creation."""

    experiment = peewee.IntegerField()
    variant = peewee.TextField()
    hour = peewee.IntegerField()
    assigned = peewee.BigIntegerField(default=0)

    class Meta:
        table_name = "hourly_totals"
        primary_key = peewee.CompositeKey("experiment", "variant", "hour")


class DeploymentTotals(peewee.Model):
    """Moments of all sessions that started in one clock hour, counted from 1970."""

    hour = peewee.IntegerField(primary_key=True)

    class Meta:
        table_name = "deployment_totals"


class Looks(peewee.Model):
    """Every look and harm look, held or missed."""

    experiment = peewee.IntegerField()
    series = peewee.TextField()
    k = peewee.IntegerField()
    hours = peewee.IntegerField()
    look = peewee.TextField()

    class Meta:
        table_name = "looks"
        primary_key = peewee.CompositeKey("experiment", "series", "k")


class Events(peewee.Model):
    """The append-only log."""

    number = peewee.AutoField()
    experiment = peewee.IntegerField(null=True, index=True)
    at = UtcField()
    actor = peewee.TextField()
    action = peewee.TextField()
    reason = peewee.TextField()
    before = JsonField()
    after = JsonField()

    class Meta:
        table_name = "events"


class Snapshots(peewee.Model):
    """What a promotion or rollback replaces: written before it begins, so that it can be undone."""

    number = peewee.AutoField()
    experiment = peewee.IntegerField(index=True)
    version_id = peewee.TextField(unique=True)
    created_at = UtcField()
    action = peewee.TextField()
    state = peewee.TextField(index=True)
    content = JsonField()

    class Meta:
        table_name = "snapshots"


class SessionKeys(peewee.Model):
    """What telemetry calls a session beside its id, such as a trace; many, so that rows are short."""

    key = peewee.TextField(primary_key=True)
    session_id = peewee.TextField()
    hour = peewee.IntegerField(index=True)

    class Meta:
        table_name = "session_keys"
        without_rowid = True


class WaitingPieces(peewee.Model):
    """Pieces of telemetry whose session is not known yet, one row for each key that would name it."""

    key = peewee.TextField()
    source = peewee.TextField(index=True)
    fallback = peewee.TextField(null=True)
    piece = JsonField()
    at = UtcField(index=True)

    class Meta:
        table_name = "waiting_pieces"
        primary_key = peewee.CompositeKey("key", "source")
        without_rowid = True


class ImportPositions(peewee.Model):
    """How far a followed file has been read; ``state`` is what its reader has to remember."""

    identity = peewee.TextField(primary_key=True)
    path = peewee.TextField()
    bytes_read = peewee.BigIntegerField(default=0)
    state = JsonField(null=True)
    updated_at = UtcField()

    class Meta:
        table_name = "import_positions"


_score_fields(Sessions)
_score_fields(Assignments)
Assignments._meta.add_field("cluster", peewee.TextField(null=True))
for _model in (Totals, HourlyTotals, DeploymentTotals):
    _moment_fields(_model)

Experiments.add_index(
    Experiments.index(
        Experiments.layer,
        unique=True,
        name="experiments_one_active_a_layer",
        where=Experiments.status << ["running", "evaluating"],
    )
)
Experiments.add_index(Experiments.index(Experiments.status, name="experiments_by_status"))
Assignments.add_index(
    Assignments.index(
        Assignments.experiment,
        Assignments.variant,
        Assignments.fitness,  # type: ignore[attr-defined]
        Assignments.hour,
        name="assignments_by_rank",
    )
)
Assignments.add_index(
    Assignments.index(
        Assignments.experiment,
        name="assignments_with_cluster",
        where=Assignments.cluster.is_null(False),  # type: ignore[attr-defined]
    )
)

TABLES: Final[tuple[type[peewee.Model], ...]] = (
    SchemaInfo,
    Experiments,
    Sessions,
    SessionReports,
    Assignments,
    Totals,
    HourlyTotals,
    DeploymentTotals,
    Looks,
    Events,
    Snapshots,
    SessionKeys,
    WaitingPieces,
    ImportPositions,
)
