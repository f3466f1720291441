"""Fitness of groups of sessions, and of the deployment."""

from __future__ import annotations

from typing import Literal

from prx_engine.dimensions import Dimension
from prx_engine.records.base import Record, Time


class Window(Record):
    """The sessions a figure is about: those with ``start <= started_at < end``."""

    start: Time
    end: Time


class DimensionScore(Record):
    """One dimension of a group of sessions.

    Attributes:
        score: mean over the sessions that have the dimension, 0–1; None without any.
        weight: weight that it carries in this composite, the weight of dimensions that do not
            count spread over those that do; 0 if it does not count itself.
        configured_weight: weight in the configuration, 0–1.
        contribution: weight × score, its part of the composite; None if it does not count.
        sessions: sessions with data on the dimension.
    """

    score: float | None
    weight: float
    configured_weight: float
    contribution: float | None
    sessions: int

    @property
    def counts(self) -> bool:
        """Tell whether the dimension is part of the composite."""
        return self.contribution is not None


class FitnessScore(Record):
    """Fitness of a group of sessions.

    Attributes:
        composite: weighted sum of the mean dimension scores, 0–1; None if no dimension counts.
        standard_error: of the composite; None with fewer than two sessions.
        dimensions: all six, those without data included.
        sessions: scored sessions in the group.
        window: the sessions' start times.
        valid: whether there are enough sessions (min_sessions_for_score) for the figure to mean something.
    """

    composite: float | None
    standard_error: float | None
    dimensions: dict[Dimension, DimensionScore]
    sessions: int
    window: Window
    valid: bool


class DeploymentFitness(Record):
    """Fitness of all recent sessions of the deployment.

    Attributes:
        fitness: of the present window.
        missing_sessions: how many sessions are missing until the figure is valid; 0 if it is.
        change: composite now − composite of the window 7 days before; None if either is not valid.
        trend: None without a change to judge.
        alert: whether a valid composite is below minimum_acceptable.
    """

    fitness: FitnessScore
    missing_sessions: int
    change: float | None
    trend: Literal["improving", "declining", "stable"] | None
    alert: bool
    minimum_acceptable: float


class HistoryDay(Record):
    """Fitness of the sessions of one UTC day."""

    day: str
    fitness: FitnessScore
