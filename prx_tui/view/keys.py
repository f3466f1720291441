"""Keys as people read them: the footer, and the page of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from prx_tui.actions import Action, in_footer
from prx_tui.view.spans import Line, Paragraph, Span, Tone, join_fitting, line, width_of

_LAST = ("help", "quit")


def footer(actions: Sequence[Action], width: int) -> Line:
    """Return the footer: what fits, the most important first, help and quit always at the end."""
    shown = in_footer(actions)
    order = [one for one in shown if one.id not in _LAST] + [one for one in shown if one.id in _LAST]
    pieces = [(one.importance or 0, line(Span(one.key_words, "key"), " ", one.label)) for one in order]
    return line(" ", join_fitting(pieces, max(width - 2, 1), "  "))


def help_paragraphs(actions: Sequence[Action]) -> list[Paragraph]:
    """Return all keys with what they do, then what the signs mean."""
    widest = max(len(one.key_words) for one in actions)
    keys = [_explained(Span(f"{one.key_words:<{widest}}", "key"), one.title) for one in actions]
    return [_heading("Keys"), *keys, _SPACE, _heading("Signs"), *_SIGNS, _SPACE, _heading("Words"), *_WORDS]


def _heading(text: str) -> Paragraph:
    return Paragraph(line(Span(text, "strong")))


def _explained(name: Span, meaning: str) -> Paragraph:
    head = line("  ", name, "   ")
    return Paragraph(line(head, meaning), " " * width_of(head))


_SPACE: Final = Paragraph(())
_MEANINGS: Final[tuple[tuple[str, Tone, str], ...]] = (
    ("▲", "attention", "needs you; the last column says why"),
    ("●", "strong", "evaluating: looks have been held"),
    ("○", "", "running: sessions are being collected"),
    ("✓", "good", "converged: it has ended with a conclusion"),
    ("✗", "dim", "cancelled by an operator"),
    ("•", "attention", "changed a moment ago"),
)
_SIGNS: Final = [_explained(Span(sign, tone), meaning) for sign, tone, meaning in _MEANINGS]
_WORDS: Final = [
    _explained(Span(f"{word:<10}"), meaning)
    for word, meaning in (
        ("C/T", "control (today's configuration) and treatment (the proposed one)"),
        ("sessions", "assigned to each arm; “of 100” while fewer than 100 are scored"),
        ("lift", "how much fitter the treatment is, with its interval at this look's level"),
        ("p / needs", "p-value of the last look, and the level that it had to reach"),
        ("boundary", "what z, the lead in standard errors, has to cross for an experiment to end"),
    )
]
