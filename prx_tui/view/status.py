"""How an experiment stands, in a glyph, a word, and what needs somebody's attention."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from prx_engine.records import Conclusion, Experiment
from prx_tui.formatting import hours, until
from prx_tui.text import safe_text
from prx_tui.view.spans import Line, Span, Tone, line

ATTENTION_GLYPH: Final = "▲"
_GLYPHS: Final[dict[str, tuple[str, Tone]]] = {
    "running": ("○", ""),
    "evaluating": ("●", "strong"),
    "converged": ("✓", "good"),
    "cancelled": ("✗", "dim"),
}
_CONCLUSIONS: Final[dict[Conclusion, str]] = {
    "treatment_wins": "treatment wins",
    "control_wins": "control wins",
    "effect_too_small": "effect too small",
    "regression": "regression",
    "deferred": "deferred",
    "operator_promoted": "promoted by hand",
    "operator_rejected": "rejected by hand",
    "cancelled": "cancelled",
}
_PROMOTIONS: Final = {
    "none": "",
    "pending": "promotion pending",
    "applied": "promoted",
    "conflict": "promotion conflict",
    "rolled_back": "rolled back",
}


class Checking(NamedTuple):
    """How checks come about.

    Attributes:
        grace: a check that stays due for longer is overdue.
        since: from when on this dashboard runs the checks; None if it runs none, and others have to.
    """

    grace: timedelta = timedelta(minutes=10)
    since: datetime | None = None

    def is_overdue(self, due: datetime, now: datetime) -> bool:
        """Tell whether a check has stayed due for too long; a dashboard counts from its opening."""
        return now > max(due, self.since or due) + self.grace

    def words(self, due: datetime, now: datetime) -> str:
        """Return when a check is due."""
        return until(due, now) if due > now or self.is_overdue(due, now) else "due now"


CHECKED_ELSEWHERE: Final = Checking()
"""Checks that somebody else has to run."""


class Notice(NamedTuple):
    """Something that needs attention.

    Attributes:
        rank: 0 is the most urgent.
        short: fits into a table.
        head: says what it is.
        text: says more, and what to do.
        more: what one may want to know beside that.
    """

    rank: int
    short: str
    head: str
    text: str
    more: str = ""


def conclusion_words(conclusion: Conclusion | None) -> str:
    """Return a conclusion as people say it."""
    return "" if conclusion is None else _CONCLUSIONS[conclusion]


def promotion_words(experiment: Experiment) -> str:
    """Return the state of the promotion as people say it; empty if there is none."""
    return _PROMOTIONS[experiment.promotion]


def notices(
    experiment: Experiment, now: datetime, *, enabled: bool = True, checking: Checking = CHECKED_ELSEWHERE
) -> list[Notice]:
    """Return what needs attention about an experiment, the most urgent first."""
    found = [
        *_verdict(experiment),
        *_blocks(experiment),
        *_promotion(experiment),
        *(_overdue(experiment, now, checking) if enabled else ()),
        *_undecidable(experiment),
    ]
    return sorted(found, key=lambda notice: notice.rank)


def status_cell(experiment: Experiment, found: Sequence[Notice]) -> Line:
    """Return glyph and word of the status; one that needs attention has the glyph of attention."""
    glyph, tone = _GLYPHS[experiment.status]
    if found:
        glyph, tone = ATTENTION_GLYPH, "attention"
    return line(Span(glyph, tone), " ", Span(experiment.status, tone))


def _verdict(experiment: Experiment) -> list[Notice]:
    if not experiment.held:
        return []
    words = conclusion_words(experiment.verdict)
    return [
        Notice(
            0,
            f"verdict: {words}",
            f"Verdict: {words}.",
            "It waits for you: p promotes the treatment, r rejects it, e lets it run on.",
            "The engine may not decide alone here.",
        )
    ]


def _blocks(experiment: Experiment) -> list[Notice]:
    found = []
    if not experiment.active:
        return []
    won = " It would have won but for this: p promotes it by hand." if experiment.verdict else ""
    if "sample_ratio_mismatch" in experiment.blocked_by:
        split = experiment.parameters.experiments.traffic_split
        found.append(
            Notice(
                1,
                "ratio mismatch",
                "Sample ratio mismatch:",
                f"{experiment.control_sessions} + {experiment.treatment_sessions}"
                f" sessions where {_share(1 - split)} : {_share(split)} was planned."
                " Find out which sessions go missing, or cancel.",
                f"The arms cannot be compared, so nothing is promoted by itself.{won}",
            )
        )
    if "attrition" in experiment.blocked_by:
        found.append(
            Notice(
                1,
                "attrition",
                "Attrition:",
                "one arm loses more sessions before they are scored than the other. Find out why, or cancel.",
                f"The arms cannot be compared, so nothing is promoted by itself.{won}",
            )
        )
    return found


def _promotion(experiment: Experiment) -> list[Notice]:
    note = safe_text(experiment.promotion_note or "", 400)
    if experiment.promotion == "applied" and note:
        return [
            Notice(
                0,
                "not rolled back",
                "Still promoted:",
                f"{note.rstrip('.')}. Mend that, then R tries to roll it back again.",
            )
        ]
    if experiment.promotion != "conflict":
        return []
    what = note or "somebody has changed what the treatment changes"
    return [
        Notice(
            0,
            "promotion conflict",
            "Promotion conflict:",
            f"{what}, so nothing was written. Look at the changes, mend the target, then p tries again.",
            "`prx evolution experiments promote --force` overwrites it.",
        )
    ]


def _overdue(experiment: Experiment, now: datetime, checking: Checking) -> list[Notice]:
    due = experiment.next_check_at
    if due is None or not checking.is_overdue(due, now):
        return []
    left_undone = "nothing concludes" if experiment.active else "no harm of the promotion is noticed"
    if checking.since is None:
        until_when = "until a dashboard, `prx evolution watch` or cron runs it."
    else:
        until_when = "until this dashboard gets it done; ctrl+r tries it now."
    return [
        Notice(
            2,
            f"overdue {hours(now - due)}",
            f"The check is overdue by {hours(now - due)}:",
            f"{left_undone} {until_when}",
        )
    ]


def _undecidable(experiment: Experiment) -> list[Notice]:
    split = experiment.parameters.experiments.traffic_split
    if not experiment.active or 0 < split < 1:
        return []
    return [
        Notice(
            3,
            "one arm only",
            "One arm only.",
            f"All traffic goes to one arm (split {split:g}): it can never be decided.",
        )
    ]


def _share(value: float) -> str:
    return f"{value * 100:g} %"
