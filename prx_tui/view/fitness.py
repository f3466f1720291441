"""Fitness of the deployment: the figure, its history, and the dimensions behind it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from prx_engine.dimensions import DIMENSIONS
from prx_engine.records import DeploymentFitness, DimensionScore, FitnessScore, HistoryDay
from prx_tui.formatting import change, half_up, percent
from prx_tui.view.chart import Axis, Series, chart
from prx_tui.view.spans import Line, Span, Tone, fit, line, wrap
from prx_tui.view.sparkline import common_scale, sparkline

SPANS: Final = (7, 30, 90)
"""Days of history that can be shown."""

_SPARK_WIDTH: Final = 14
_TREND_GLYPHS: Final = {"improving": "↗ ", "declining": "↘ ", "stable": ""}
_NAME_WIDTH: Final = max(len(name) for name in DIMENSIONS)


def headline(deployment: DeploymentFitness, width: int) -> list[Line]:
    """Return the figure, what it rests on, where it is going, and the alert if there is one."""
    fitness = deployment.fitness
    window = round((fitness.window.end - fitness.window.start) / timedelta(hours=1))
    lines = [
        line(
            Span("Fitness ", "strong"),
            Span(half_up(fitness.composite, 3), "attention" if deployment.alert else "strong"),
            Span(_error(fitness), "dim"),
            f"  over {fitness.sessions} sessions of the last {window} h",
        )
    ]
    if deployment.missing_sessions:
        missing = (
            f"{deployment.missing_sessions} more sessions are needed before this figure means something."
        )
        lines += wrap(line(Span(missing, "attention")), width)
    lines += wrap(line(trend_words(deployment)), width)
    if deployment.alert:
        alert = (
            f"▲ Alert: fitness is below the {half_up(deployment.minimum_acceptable, 2)} that is acceptable."
            " Look at the dimensions below, and at what was promoted lately."
        )
        lines += wrap(line(Span(alert, "attention")), width)
    return lines


def trend_words(deployment: DeploymentFitness) -> str:
    """Return where fitness is going, in a sentence."""
    if deployment.change is None or deployment.trend is None:
        return "Trend: not known yet; it needs enough sessions now and 7 days ago."
    glyph = _TREND_GLYPHS[deployment.trend]
    return f"Trend: {glyph}{deployment.trend}, {change(deployment.change, 3)} against 7 days ago"


def history_chart(history: Sequence[HistoryDay], threshold: float, width: int, height: int) -> list[Line]:
    """Return fitness by day as a chart with the alert threshold; empty if no day has a figure."""
    points = [(float(index), _valid(day.fitness)) for index, day in enumerate(history)]
    values = [value for _, value in points if value is not None]
    if not values:
        return []
    last = float(len(history) - 1) or 1.0
    series = [Series("fitness", _bridged(points), "treatment")]
    # A threshold far below would press the history flat; it is drawn once it is near enough to matter.
    if min(values) - threshold < max(0.15, 2 * (max(values) - min(values))):
        series.insert(
            0,
            Series(
                f"alert {half_up(threshold, 2)}",
                [(0.0, threshold), (last, threshold)],
                "attention",
                dash=2,
            ),
        )
    ticks = [(float(i), _day_words(history[i].day)) for i in (0, len(history) // 2, len(history) - 1)]
    return chart(series, Axis(0.0, last, ticks), width, height)


def dimension_rows(deployment: DeploymentFitness, history: Sequence[HistoryDay], width: int) -> list[Line]:
    """Return a table of the dimensions: score, weight, contribution as a bar, coverage, history."""
    fitness = deployment.fitness
    bar_width = max(min(width - _NAME_WIDTH - 48, 40), 6)
    spark_width = _SPARK_WIDTH if width >= 78 else 8
    head = line(
        Span(
            f"{'dimension':<{_NAME_WIDTH}}  score  weight  part   {'':<{bar_width}}  coverage  "
            f"last {len(history)} days",
            "dim",
        )
    )
    most = max((d.contribution or 0.0 for d in fitness.dimensions.values()), default=0.0) or 1.0
    series = {name: [day.fitness.dimensions[name].score for day in history] for name in DIMENSIONS}
    scale = common_scale(value for values in series.values() for value in values)
    lines = [head]
    for name in DIMENSIONS:
        one = fitness.dimensions[name]
        tone: Tone = "" if one.counts else "dim"
        lines.append(
            line(
                Span(f"{name:<{_NAME_WIDTH}}", tone),
                Span(f"  {half_up(one.score, 3):>5}", tone),
                Span(f"  {half_up(one.configured_weight, 2):>6}", "dim"),
                Span(f"  {half_up(one.contribution, 3):>5}", tone),
                "  ",
                Span(
                    fit(line(_bar((one.contribution or 0.0) / most, bar_width)), bar_width)[0].text,
                    "treatment",
                )
                if one.counts
                else fit(line(Span(_why_not(one), "attention")), bar_width),
                Span(f"  {_coverage(one, fitness):>8}  ", tone),
                Span(sparkline(series[name], spark_width, scale), tone),
            )
        )
    spread = [name for name in DIMENSIONS if not fitness.dimensions[name].counts]
    if spread and fitness.composite is not None:
        note = f"The weight of {', '.join(spread)} is spread over the others."
        lines += [(), *wrap(line(Span(note, "dim")), width)]
    return lines


def _bar(share: float, width: int) -> str:
    eighths = round(max(min(share, 1.0), 0.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width)


def _why_not(one: DimensionScore) -> str:
    if one.configured_weight == 0:
        return "weight 0"
    return "too few" if one.sessions else "no data"


def _coverage(one: DimensionScore, fitness: FitnessScore) -> str:
    return percent(one.sessions / fitness.sessions, 0) if fitness.sessions else "–"


def _error(fitness: FitnessScore) -> str:
    return "" if fitness.standard_error is None else f" ± {half_up(1.96 * fitness.standard_error, 3)}"


def _valid(fitness: FitnessScore) -> float | None:
    return fitness.composite if fitness.valid else None


def _bridged(points: Sequence[tuple[float, float | None]]) -> list[tuple[float, float | None]]:
    """A day alone between gaps gets a line of its own length, so that it can be seen."""
    bridged: list[tuple[float, float | None]] = []
    for index, (x, y) in enumerate(points):
        bridged.append((x, y))
        following = points[index + 1][1] if index + 1 < len(points) else None
        if y is not None and following is None:
            bridged.append((x + 0.3, y))
    return bridged


def _day_words(day: str) -> str:
    return date.fromisoformat(day).strftime("%-d %b")
