"""Keys as people read them: the footer, and the page of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from prx_tui.actions import Action, in_footer
from prx_tui.view.spans import Line, Span, Tone, join_fitting, line

_LAST = ("help", "quit")


def footer(actions: Sequence[Action], width: int) -> Line:
    """Return the footer: what fits, the most important first, help and quit always at the end."""
    shown = in_footer(actions)
    order = [one for one in shown if one.id not in _LAST] + [one for one in shown if one.id in _LAST]
    pieces = [(one.importance or 0, line(Span(one.key_words, "key"), " ", one.label)) for one in order]
    return line(" ", join_fitting(pieces, max(width - 2, 1), "  "))


def help_lines(actions: Sequence[Action]) -> list[Line]:
    """Return all keys with what they do, then what the signs mean."""
    widest = max(len(one.key_words) for one in actions)
    keys = [line("  ", Span(f"{one.key_words:<{widest}}", "key"), "   ", one.title) for one in actions]
    return [line(Span("Keys", "strong")), *keys, (), line(Span("Signs", "strong")), *_SIGNS]


_MEANINGS: Final[tuple[tuple[str, Tone, str], ...]] = (
    ("▲", "attention", "needs you; the last column says why"),
    ("●", "strong", "evaluating: looks have been held"),
    ("○", "", "running: sessions are being collected"),
    ("✓", "good", "converged: it has ended with a conclusion"),
    ("✗", "dim", "cancelled by an operator"),
    ("•", "attention", "changed a moment ago"),
)
_WORDS: Final = (
    "C/T          control (today's configuration) and treatment (the proposed one)",
    "sessions     assigned to each arm; “of 100” while fewer than 100 are scored",
    "lift         how much fitter the treatment is, with its interval at this look's level",
    "p / needs    p-value of the last look, and the level that it had to reach",
    "boundary     what z, the lead in standard errors, has to cross for an experiment to end",
)
_SIGNS: Final[list[Line]] = [
    *(line("  ", Span(sign, tone), f"  {meaning}") for sign, tone, meaning in _MEANINGS),
    (),
    line(Span("Words", "strong")),
    *(line(f"  {words}") for words in _WORDS),
]
