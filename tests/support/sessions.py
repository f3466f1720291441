"""Random sessions: what agents might report, valid but otherwise arbitrary."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from prx_engine.dimensions import DIMENSIONS

_unit = st.one_of(st.floats(0, 1), st.integers(0, 100).map(lambda n: n / 100))
_count = st.integers(0, 50)


@st.composite
def metrics(draw: st.DrawFn) -> dict[str, Any]:
    """Raw metrics of one source: any fields, with no more successes than attempts."""
    report: dict[str, Any] = {}
    for name, values in (
        ("relevance", _unit),
        ("recall_relevance", _unit),
        ("first_token_ms", st.floats(0, 60_000)),
    ):
        if draw(st.booleans()):
            report[name] = draw(st.lists(values, min_size=1, max_size=4))
    for whole in ("tool_calls", "tasks"):
        if draw(st.booleans()):
            report[whole] = draw(_count)
            report[f"{whole}_succeeded"] = draw(st.integers(0, report[whole]))
    for name in ("thumbs_up", "thumbs_down", "corrections"):
        if draw(st.booleans()):
            report[name] = draw(_count)
    if draw(st.booleans()):
        report["tokens"] = draw(st.integers(0, 80_000))
    if draw(st.integers(0, 4)) == 0:
        report["scores"] = draw(st.dictionaries(st.sampled_from(DIMENSIONS), _unit, min_size=1, max_size=3))
    return report


def random_metrics(source: random.Random, present: float = 0.7) -> dict[str, Any]:
    """Raw metrics with data on each dimension with probability ``present``."""
    report: dict[str, Any] = {}
    if source.random() < present:
        report["relevance"] = [round(source.random(), 3) for _ in range(source.randint(1, 3))]
    if source.random() < present:
        report["tool_calls"] = source.randint(1, 9)
        report["tool_calls_succeeded"] = source.randint(0, report["tool_calls"])
    if source.random() < present:
        report["first_token_ms"] = [
            round(source.lognormvariate(7, 1), 1) for _ in range(source.randint(1, 4))
        ]
    if source.random() < present:
        report["tokens"] = source.randint(0, 60_000)
    if source.random() < present:
        report["recall_relevance"] = [round(source.random(), 2)]
    if source.random() < present:
        report["thumbs_up"], report["thumbs_down"] = source.randint(0, 3), source.randint(0, 3)
    return report
