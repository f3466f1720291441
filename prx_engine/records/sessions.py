"""Sessions: their assignments, their imports, and whether all sums are right."""

from __future__ import annotations

from typing import Any

from prx_engine.dimensions import Dimension, Layer, VariantName
from prx_engine.records.base import Record


class Assignment(Record):
    """The configuration that one session gets in one layer.

    Attributes:
        variant: None if the session is in no experiment of the layer.
        config: dotted key → value: the layer's promoted changes, then the variant's own.
        files: relative path → full text, likewise.
        reason: why: ``assigned`` (now), ``persisted`` (earlier), ``no_experiment``,
            ``started_before`` the experiment, ``past_maximum``, ``disabled``, ``error``.
    """

    layer: Layer
    variant: VariantName | None
    experiment_id: str | None
    config: dict[str, Any]
    files: dict[str, str]
    reason: str


class Rejected(Record):
    """A line of an import that was not taken, and why."""

    file: str
    line: int
    problem: str
    text: str


class ImportReport(Record):
    """What an import did.

    Attributes:
        lines: lines read, blank ones not counted.
        recorded: updates of sessions taken; a line may have several, or none.
        sessions: distinct sessions among them.
        without_experiment: sessions that stated a variant while their layer had no experiment.
        missing_dimensions: dimensions that no line had data for.
        rejected: the first 20 things that were wrong.
        refused: lines with anything wrong.
        waiting: updates whose session no record has named yet.
        format: of the file; None if nothing was recognised.
    """

    lines: int
    recorded: int
    sessions: int
    without_experiment: int
    missing_dimensions: list[Dimension]
    rejected: list[Rejected]
    refused: int = 0
    waiting: int = 0
    format: str | None = None


class Verification(Record):
    """Result of summing everything again.

    Attributes:
        sessions, assignments: rows read.
        problems: every total or score that is not what its parts say; empty if all is well.
    """

    sessions: int
    assignments: int
    problems: list[str]
