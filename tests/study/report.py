"""The tables of the study, in Markdown."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.study.scenarios import SCENARIOS
from tests.study.simulation import Tally

CONCLUSIONS: Final = ("treatment_wins", "control_wins", "regression", "effect_too_small", "deferred")
_TITLES: Final = ("treatment wins", "control wins", "regression", "effect too small", "deferred")
_Z: Final = 1.96
_BROKEN_Z: Final = 3.0
"""A promise is broken if a frequency lies so many standard errors above it."""

REFERENCE: Final[dict[str, dict[str, Any]]] = {
    row["scenario"]: row for row in json.loads((Path(__file__).parent / "reference.json").read_text())["rows"]
}


def interval(count: int, runs: int) -> tuple[float, float]:
    """Return the 95 % interval of a frequency (Wilson, 1927)."""
    rate, squared = count / runs, _Z**2 / runs
    centre = (rate + squared / 2) / (1 + squared)
    margin = _Z / (1 + squared) * math.sqrt(rate * (1 - rate) / runs + squared / (4 * runs))
    return max(centre - margin, 0.0), min(centre + margin, 1.0)


def rate(count: int, runs: int) -> str:
    """Return a frequency in percent with its interval."""
    low, high = interval(count, runs)
    return f"{100 * count / runs:.2f} ({100 * low:.2f}–{100 * high:.2f})"


def promises(name: str, tally: Tally) -> dict[str, bool]:
    """Return whether each promise about experiments without effect is kept, within Monte-Carlo error."""
    alpha = 1 - SCENARIOS[name].settings.experiments.confidence_level
    found = tally.conclusions
    return {
        "treatment_wins": _kept(found["treatment_wins"], tally.runs, alpha / 2),
        "either wins": _kept(found["treatment_wins"] + found["control_wins"], tally.runs, alpha),
        "regression": _kept(found["regression"], tally.runs, alpha / 2),
    }


def _kept(count: int, runs: int, limit: float) -> bool:
    return count / runs <= limit + _BROKEN_Z * math.sqrt(limit * (1 - limit) / runs)


def difference(name: str, tally: Tally) -> dict[str, float] | None:
    """Return how far each frequency is from the independent simulation, in standard errors."""
    reference = SCENARIOS[name].reference
    if reference is None:
        return None
    row = REFERENCE[reference]
    return {
        conclusion: _standardised(tally.conclusions[conclusion], tally.runs, row[conclusion], row["runs"])
        for conclusion in CONCLUSIONS
    }


def _standardised(count: int, runs: int, other: float, other_runs: int) -> float:
    pooled = (count + other * other_runs) / (runs + other_runs)
    error = math.sqrt(pooled * (1 - pooled) * (1 / runs + 1 / other_runs))
    return 0.0 if error == 0 else (count / runs - other) / error


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def conclusions_table(tallies: Mapping[str, Tally]) -> str:
    """Return how the experiments of each scenario ended, in percent."""
    titles = ["scenario", "runs", *_TITLES, "by the planned end", "mean days", "promise"]
    return table(titles, [_row(name, tally) for name, tally in tallies.items()])


def _row(name: str, tally: Tally) -> list[str]:
    broken = [promise for promise, kept in promises(name, tally).items() if not kept]
    promise = "–" if SCENARIOS[name].effect else f"broken: {', '.join(broken)}" if broken else "kept"
    return [
        name,
        f"{tally.runs}",
        *(rate(tally.conclusions[conclusion], tally.runs) for conclusion in CONCLUSIONS),
        f"{100 * tally.by_plan / tally.runs:.1f}",
        f"{tally.days / tally.runs:.1f}",
        promise,
    ]


def reference_table(tallies: Mapping[str, Tally]) -> str:
    """Return where the study and the independent simulation stand apart, in standard errors."""
    rows = [
        [name, *(f"{z:+.1f}".replace("-", "−") for z in apart.values())]
        for name, tally in tallies.items()
        if (apart := difference(name, tally)) is not None
    ]
    return table(["scenario", *_TITLES], rows)
