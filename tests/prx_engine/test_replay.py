from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.clock import format_time, parse_time
from prx_engine.configuration import SelfEvolution
from prx_engine.dimensions import VARIANTS
from prx_engine.errors import InvalidInput
from prx_engine.replay import replay
from tests.support.clock import ManualClock

SETTINGS = SelfEvolution()
START = "2026-06-01T00:00:00Z"


def stream(days: int = 8, a_day: int = 60, gain: float = 0.05, **more: Any) -> list[dict[str, Any]]:
    """Sessions of both arms at random times, the first one at the start."""
    source = random.Random(4)
    lines: list[dict[str, Any]] = []
    for i in range(days * a_day):
        hours = 0.0 if i == 0 else source.uniform(0, days * 24)
        score = min(max(source.gauss(0.7 + gain * (i % 2), 0.18), 0), 1)
        lines.append(
            {
                "session_id": f"s{i}",
                "layer": "L2",
                "variant": VARIANTS[i % 2],
                "started_at": format_time(parse_time(START) + timedelta(hours=hours)),
                "relevance": [round(score, 4)],
                **more,
            }
        )
    return lines


def raw(lines: Sequence[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(line).encode() for line in lines]


def test_a_replay_decides_as_the_engine_did(engine: Engine, clock: ManualClock) -> None:
    lines = sorted(stream(), key=lambda line: line["started_at"])
    live = engine.create_experiment("L2", "new", hypothesis="h")
    results = []
    for day in range(1, 9):
        due = live.created_at + timedelta(days=day)
        for line in lines:
            if due - timedelta(days=1) <= parse_time(line["started_at"]) < due:
                clock.set(line["started_at"])
                engine.record(**line)
        clock.set(due)
        (result,) = engine.check()
        results.append((result.at, result.outcome, result.conclusion, result.look))
        if result.conclusion:
            break
    found = replay(raw(lines), SETTINGS)
    assert [(c.at, c.outcome, c.conclusion, c.look) for c in found.checks] == results
    assert results[-1][2] == "treatment_wins"
    assert found.details.experiment.winner == "treatment"
    assert found.details.looks == engine.details(live.experiment_id).looks


def test_the_order_of_the_lines_does_not_matter() -> None:
    lines = stream(gain=0.02)
    shuffled = list(lines)
    random.Random(1).shuffle(shuffled)
    one, other = (replay(raw(order), SETTINGS) for order in (lines, shuffled))
    assert [check.look for check in one.checks] == [check.look for check in other.checks]


def test_other_settings_may_decide_otherwise() -> None:
    lines = raw(stream(gain=0.05))
    strict = replay(lines, SETTINGS, {"confidence_level": 0.9999, "auto_converge.check_interval_hours": 12})
    assert strict.details.experiment.parameters.experiments.confidence_level == 0.9999
    assert strict.details.experiment.conclusion != "treatment_wins"
    assert strict.checks[1].at == parse_time(START) + timedelta(hours=24)
    with pytest.raises(InvalidInput, match="did you mean min_effect_size"):
        replay(lines, SETTINGS, {"min_effect": 0.1})


def test_it_decides_alone_even_where_the_deployment_may_not() -> None:
    settings = SelfEvolution.model_validate(
        {"experiments": {"enabled": False, "auto_converge": {"enabled": False}}}
    )
    assert replay(raw(stream()), settings).details.experiment.conclusion == "treatment_wins"


def test_a_stream_that_ends_early_leaves_the_experiment_open() -> None:
    found = replay(raw(stream(days=2, gain=0.0)), SETTINGS)
    assert [check.at for check in found.checks] == [
        parse_time(START) + timedelta(hours=hours) for hours in (24, 48)
    ]
    assert found.details.experiment.active
    assert found.details.forecast is not None


def test_missed_days_without_sessions_are_checked_too() -> None:
    lines = stream(days=1)
    late = {**lines[-1], "session_id": "late", "started_at": "2026-06-05T12:00:00Z"}
    assert len(replay(raw([*lines, late]), SETTINGS).checks) == 5


def test_later_lines_of_a_session_belong_to_its_start() -> None:
    lines = stream(days=2, gain=0.0)
    first = {**lines[1], "relevance": None}
    del first["relevance"]
    later = {"session_id": lines[1]["session_id"], "relevance": lines[1]["relevance"]}
    whole = replay(raw(lines), SETTINGS)
    parts = replay(raw([later, lines[0], first, *lines[2:]]), SETTINGS)
    assert [check.look for check in whole.checks] == [check.look for check in parts.checks]
    assert parts.details.experiment.treatment_sessions == 60


def test_experiments_of_several_layers_are_told_apart() -> None:
    lines = stream(days=2)
    other = [{**line, "session_id": f"o{i}", "layer": "L1"} for i, line in enumerate(stream(days=1))]
    with pytest.raises(InvalidInput, match="no line states a variant of L3; they are of L1, L2"):
        replay(raw(lines + other), SETTINGS, layer="L3")
    with pytest.raises(InvalidInput, match="L1, L2: name the layer"):
        replay(raw(lines + other), SETTINGS)
    found = replay(raw(lines + other), SETTINGS, layer="L1")
    assert found.details.experiment.control_sessions == 30


def test_an_experiment_named_by_its_id_is_replayed() -> None:
    lines = [{k: v for k, v in line.items() if k != "layer"} | {"experiment_id": "e"} for line in stream(2)]
    assert replay(raw(lines), SETTINGS).details.experiment.control_sessions == 60


def test_clusters_come_along() -> None:
    lines = [line | {"cluster": f"task {i % 20}"} for i, line in enumerate(stream(days=4))]
    tests = {check.look.test for check in replay(raw(lines), SETTINGS).checks if check.look}
    assert tests == {"clustered"}


def test_lines_that_are_none_are_reported_and_passed_over() -> None:
    found = replay([b"{", *raw(stream(days=1)), b"", b'{"session_id": 3}'], SETTINGS, name="x.jsonl")
    assert [(rejected.file, rejected.line) for rejected in found.rejected] == [
        ("x.jsonl", 1),
        ("x.jsonl", 63),
    ]
    assert found.lines == 62


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "no line states a variant"),
        ([{"session_id": "s", "relevance": [1]}], "no line states a variant"),
        ([{"session_id": "s", "layer": "L1", "variant": "control"}], "says when it started"),
    ],
)
def test_a_stream_without_an_experiment_is_refused(lines: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        replay(raw(lines), SETTINGS)
