"""From raw metrics to the scores of a session, in whole units of 1/10000."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from prx_engine.configuration import FitnessSettings
from prx_engine.dimensions import DIMENSIONS, UNIT
from prx_engine.fitness.group import exact_weights
from prx_engine.fitness.moments import Scores
from prx_engine.scoring.metrics import Report

RAW_FIELDS: Final[tuple[frozenset[str], ...]] = tuple(
    frozenset({"scores", *fields})
    for fields in (
        {"relevance"},
        {"tool_calls", "tool_calls_succeeded", "tasks", "tasks_succeeded"},
        {"first_token_ms"},
        {"tokens", "tasks", "tasks_succeeded"},
        {"recall_relevance"},
        {"thumbs_up", "thumbs_down", "corrections"},
    )
)
"""What each dimension, in the order of DIMENSIONS, can be scored from."""

_NEAR_TIE: Final = 1e-6
"""Distance from a tie, in units, within which floating point is not trusted to tell its side."""


def units(score: float) -> int:
    """Return a score of 0–1 in units of 1/10000, half up as its decimal digits read."""
    return _half_up(score * UNIT, (score,))


def mean_units(values: Sequence[float]) -> int:
    """Return the mean of values of 0–1 in units of 1/10000, half up, exactly as their digits read."""
    return _half_up(math.fsum(values) * UNIT / len(values), values)


def _half_up(scaled: float, values: Sequence[float]) -> int:
    """Return the mean of values, scaled to units in floating point, as a whole number of units."""
    below = int(scaled)
    rest = scaled - below
    if abs(rest - 0.5) > _NEAR_TIE:
        return below + 1 if rest > 0.5 else below
    exact = sum(map(Fraction, map(repr, values)), Fraction(0)) * UNIT / len(values)
    return math.floor(exact + Fraction(1, 2))


def ratio_units(part: int, whole: int) -> int:
    """Return part / whole in units of 1/10000, half up, exactly."""
    return (2 * part * UNIT + whole) // (2 * whole)


class Scorer:
    """Turns raw metrics into scores under fixed settings.

    Args:
        settings: normalization and weights; pinned for an experiment, present ones for the deployment.
    """

    def __init__(self, settings: FitnessSettings) -> None:
        self._normalization = normalization = settings.normalization
        self._completion = normalization.task_completion, f"{normalization.task_completion}_succeeded"
        self._latency = normalization.latency_p50_ms, normalization.latency_p95_ms
        exact = exact_weights(settings.weights.as_tuple())
        denominator = math.lcm(*(weight.denominator for weight in exact))
        self._weights = [int(weight * denominator) for weight in exact]
        self._formulas = (
            self._response_relevance,
            self._task_completion,
            self._response_latency,
            self._token_efficiency,
            self._memory_precision,
            self._user_satisfaction,
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Scorer)
            and self._weights == other._weights
            and self._normalization == other._normalization
        )

    __hash__ = None  # type: ignore[assignment]

    def scores(self, report: Report) -> Scores:
        """Return the session's scores in the order of DIMENSIONS; a dimension without data is None."""
        given = report.get("scores")
        if given is None:
            return tuple([compute(report) for compute in self._formulas])
        return tuple(
            mean_units(given[name]) if name in given else compute(report)
            for name, compute in zip(DIMENSIONS, self._formulas, strict=True)
        )

    def fitness(self, scores: Scores) -> int | None:
        """Return the session's own fitness in units: Σ w_d x_d / Σ w_d over what it has of weight."""
        weighted = weight = 0
        for w, score in zip(self._weights, scores, strict=True):
            if score is not None:
                weighted += w * score
                weight += w
        return (2 * weighted + weight) // (2 * weight) if weight else None

    def _response_relevance(self, report: Report) -> int | None:
        return _mean(report.get("relevance"))

    def _memory_precision(self, report: Report) -> int | None:
        return _mean(report.get("recall_relevance"))

    def _task_completion(self, report: Report) -> int | None:
        whole, part = map(report.get, self._completion)
        return ratio_units(part, whole) if whole and part is not None else None

    def _response_latency(self, report: Report) -> int | None:
        times = report.get("first_token_ms")
        if not times:
            return None
        ordered = sorted(times)
        p50, p95 = self._latency
        return units((falling(percentile(ordered, 0.50), p50) + falling(percentile(ordered, 0.95), p95)) / 2)

    def _token_efficiency(self, report: Report) -> int | None:
        tokens = report.get("tokens")
        succeeded = report.get("tasks_succeeded", None if "tasks" in report else 1)
        if tokens is None or succeeded is None:
            return None
        return units(falling(tokens / succeeded, self._normalization.tokens_per_task)) if succeeded else 0

    def _user_satisfaction(self, report: Report) -> int | None:
        up = report.get("thumbs_up", 0)
        feedback = up + report.get("thumbs_down", 0) + report.get("corrections", 0)
        return ratio_units(up, feedback) if feedback else None


def _mean(values: Sequence[float] | None) -> int | None:
    return mean_units(values) if values else None


def falling(x: float, bounds: Sequence[float]) -> float:
    """Return s(x): 1 at or below the first bound, 0 at or above the second, linear in log x between."""
    best, worst = bounds
    if x <= best:
        return 1.0
    if x >= worst:
        return 0.0
    return math.log(worst / x) / math.log(worst / best)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values, interpolated linearly (Hyndman & Fan 1996, type 7)."""
    position = share * (len(ordered) - 1)
    below = int(position)
    if below == position:
        return ordered[below]
    return ordered[below] + (position - below) * (ordered[below + 1] - ordered[below])
