"""What a look held now would find, in lines."""

from __future__ import annotations

from prx_engine.records import Comparison, Preview
from prx_tui.formatting import half_up, moment, p_value, percent, words
from prx_tui.text import safe_text
from prx_tui.view.experiments import interval_words
from prx_tui.view.spans import Line, Span, line
from prx_tui.view.status import conclusion_words


def preview_lines(preview: Preview) -> list[Line]:
    """Return a preview as lines: what it would mean first, then the figures."""
    lines = [line(Span(_meaning(preview), "strong")), line(safe_text(preview.reason, 400))]
    if preview.blocked_by:
        blocks = ", ".join(words(block) for block in preview.blocked_by)
        lines.append(line("Treatment cannot win: ", Span(blocks, "attention")))
    if preview.missing:
        lines.append(line("Missing for a look: ", safe_text("; ".join(preview.missing), 600)))
    if preview.comparison is not None:
        lines += [(), *_figures(preview, preview.comparison)]
    note = f"With all sessions known at {moment(preview.at)} UTC. Shown only: nothing was written or decided."
    return [*lines, (), line(Span(note, "dim"))]


def _meaning(preview: Preview) -> str:
    if preview.conclusion is not None:
        return f"A look now would conclude: {conclusion_words(preview.conclusion)}."
    if preview.missing:
        return "A look could not be held now."
    return "A look now would not decide: the experiment would go on."


def _figures(preview: Preview, found: Comparison) -> list[Line]:
    reached = "reaches" if preview.significant else "does not reach"
    lift, difference = found.lift_interval, found.difference_interval
    single = [("Welch", found.p_welch), ("Mann–Whitney", found.p_mann_whitney), ("Hall", found.p_hall)]
    known = ", ".join(f"{name} {p_value(value)}" for name, value in single if value is not None)
    interval = f"({half_up(difference.lower, 4, signed=True)}…{half_up(difference.upper, 4, signed=True)})"
    return [
        line(
            Span("lift        ", "dim"),
            f"{percent(found.lift, signed=True)} {interval_words(lift.lower, lift.upper)}",
        ),
        line(Span("difference  ", "dim"), f"{half_up(found.difference, 4, signed=True)} {interval}"),
        line(
            Span("p           ", "dim"),
            f"{p_value(found.p_value)} {reached} {p_value(preview.alpha_threshold)}  ({found.test}: {known})",
        ),
        line(
            Span("Hedges' g   ", "dim"),
            f"{half_up(found.hedges_g, 3, signed=True)}   df {half_up(found.degrees_of_freedom, 1)}",
        ),
    ]
