"""What a check has found, as an announcement."""

from __future__ import annotations

from collections.abc import Sequence

from prx_engine.ids import short
from prx_engine.records import CheckResult, Rejected
from prx_tui.text import safe_text
from prx_tui.view.status import conclusion_words


def check_words(result: CheckResult) -> str:
    """Return what a check did to an experiment, and why, in one line."""
    name = f"{result.layer} {safe_text(result.hypothesis, 60)} (…{short(result.experiment_id)})"
    if result.outcome == "concluded":
        return f"{name} has converged: {conclusion_words(result.conclusion)}. {safe_text(result.reason, 200)}"
    if result.outcome == "verdict":
        return f"{name} has a verdict: {conclusion_words(result.conclusion)}. It waits for you."
    if result.outcome == "rolled_back":
        return f"{name} was rolled back: {safe_text(result.reason, 200)}"
    if result.outcome == "extended":
        return f"{name} was extended: {safe_text(result.reason, 200)}"
    if result.outcome == "watched":
        return f"{name} could not be rolled back: {safe_text(result.reason, 300)}"
    return f"{name} was checked: {safe_text(result.reason, 200)}"


def rejected_words(rejected: Sequence[Rejected]) -> str:
    """Return what was wrong with telemetry, in one line: the first of it, and how much more there is."""
    first = rejected[0]
    more = f" (and {len(rejected) - 1} more)" if len(rejected) > 1 else ""
    return f"Telemetry {safe_text(first.file, 200)}:{first.line}: {safe_text(first.problem, 300)}{more}"
