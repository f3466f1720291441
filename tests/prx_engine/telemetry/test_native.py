"""Importing native session lines: good ones are taken, bad ones told, in any file people really have."""

from __future__ import annotations

import gc
import json
import random
from pathlib import Path
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.dimensions import DIMENSIONS
from prx_engine.errors import StoreError
from prx_engine.records import ImportReport
from tests.support.clock import ManualClock
from tests.support.damage import remove
from tests.support.engines import OpenEngine


def line(session: str = "s", **fields: Any) -> bytes:
    return json.dumps({"session_id": session, **fields}).encode()


def problems(report: ImportReport) -> list[tuple[int, str]]:
    return [(rejected.line, rejected.problem) for rejected in report.rejected]


def test_good_lines_are_recorded(engine: Engine) -> None:
    report = engine.import_lines(
        [line("a", thumbs_up=1), line("b", relevance=[0.5]), line("a", thumbs_down=1)]
    )
    assert (report.lines, report.recorded, report.sessions, report.rejected) == (3, 3, 2, [])
    assert report.missing_dimensions == [
        d for d in DIMENSIONS if d not in ("response_relevance", "user_satisfaction")
    ]
    assert engine.fitness().fitness.sessions == 2


@pytest.mark.parametrize("collecting", [True, False])
def test_the_cycle_collector_is_left_as_it_was(engine: Engine, tmp_path: Path, collecting: bool) -> None:
    try:
        (gc.enable if collecting else gc.disable)()
        engine.import_lines([line("a"), b"{"])
        assert gc.isenabled() is collecting
        remove(tmp_path / "prx.db")
        with pytest.raises(StoreError):
            engine.import_lines([line("b")])
        assert gc.isenabled() is collecting
    finally:
        gc.enable()


def test_bad_lines_are_told_with_their_numbers_and_the_others_taken(engine: Engine) -> None:
    lines = [
        line("a", thumbs_up=1),
        b"",
        b'{"session_id": "b", "tok',
        line("c", relevance=1.5),
        b"   \t ",
        line("d", thumbs_upp=1),
        line("e", started_at="2026-06-01T00:05:01Z"),
        line("f", experiment_id="nobody", variant="control"),
        line("g", thumbs_up=1),
    ]
    report = engine.import_lines(lines, name="x.jsonl")
    assert (report.lines, report.recorded, report.sessions) == (7, 2, 2)
    assert [number for number, _ in problems(report)] == [3, 4, 6, 7, 8]
    starts = [
        "not JSON: ",
        "relevance.0: found 1.5; ",
        "thumbs_upp: no such field",
        "started_at: found ",
        "experiment_id: no",
    ]
    for (_, problem), start in zip(problems(report), starts, strict=True):
        assert problem.startswith(start)
    assert {rejected.file for rejected in report.rejected} == {"x.jsonl"}


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b" \r\n", b""])
def test_line_endings_and_a_byte_order_mark_are_no_part_of_a_line(engine: Engine, ending: bytes) -> None:
    lines = [b"\xef\xbb\xbf" + line("a", thumbs_up=1) + ending, line("b", thumbs_up=1) + ending]
    report = engine.import_lines(lines)
    assert (report.recorded, report.rejected) == (2, [])


def test_a_byte_order_mark_elsewhere_is_no_json(engine: Engine) -> None:
    report = engine.import_lines([line("a"), b"\xef\xbb\xbf" + line("b")])
    assert [number for number, _ in problems(report)] == [2]


def test_a_truncated_last_line_is_told(engine: Engine) -> None:
    report = engine.import_lines([line("a", thumbs_up=1) + b"\n", line("b", thumbs_up=1)[:-1]])
    assert (report.recorded, problems(report)[0][0]) == (1, 2)
    assert problems(report)[0][1].startswith("not JSON: ")


def test_nothing_at_all_is_an_empty_report(engine: Engine) -> None:
    report = engine.import_lines([])
    assert (report.lines, report.recorded, report.sessions, report.rejected) == (0, 0, 0, [])
    assert report.missing_dimensions == list(DIMENSIONS)


def test_many_lines_take_several_transactions_and_one_bad_line_spoils_none(engine: Engine) -> None:
    lines = [line(f"s-{i % 700}", source=f"{i // 700}", thumbs_up=1) for i in range(1300)]
    lines[540] = line("s-0", source="0", tool_calls=1, tool_calls_succeeded=2)
    report = engine.import_lines(lines)
    assert (report.lines, report.recorded, report.sessions) == (1300, 1299, 700)
    assert problems(report) == [(541, "tool_calls_succeeded: found 2; allowed: at most tool_calls = 1")]
    assert engine.fitness().fitness.sessions == 700
    assert engine.verify().problems == []


def test_importing_again_changes_nothing(engine: Engine) -> None:
    lines = [line(f"s-{i}", relevance=[i / 100], tokens=1000 * i) for i in range(50)]
    engine.import_lines(lines)
    before = engine.fitness()
    watch = engine.watch()
    watch.changed()
    assert engine.import_lines(lines).recorded == 50
    assert engine.fitness() == before
    watch.close()


def test_files_may_be_read_in_any_order(engine: Engine, open_engine: OpenEngine) -> None:
    source = random.Random(5)
    files = [
        [
            line(f"s-{i}", source=name, relevance=[source.random()], thumbs_up=source.randint(0, 2))
            for i in range(30)
        ]
        for name in ("agent", "judge", "user")
    ]
    for lines in files:
        engine.import_lines(lines)
    other = open_engine(engine.database + ".other")
    for lines in reversed(files):
        other.import_lines(source.sample(lines, len(lines)))
    assert other.fitness() == engine.fitness()


def test_variants_that_no_experiment_wants_are_counted(engine: Engine) -> None:
    engine.create_experiment("L2", "t", hypothesis="h")
    lines = [
        line("a", layer="L2", variant="control"),
        line("b", layer="L3", variant="control"),
        line("b", layer="L3", variant="control"),
        line("c"),
        line("d", layer="L2", variant="control", started_at="2026-05-31T23:59:59Z"),
    ]
    assert engine.import_lines(lines).without_experiment == 2


def test_a_contradiction_to_an_earlier_line_is_told(engine: Engine) -> None:
    engine.create_experiment("L2", "t", hypothesis="h")
    lines = [line("a", layer="L2", variant=variant, thumbs_up=1) for variant in ("control", "treatment")]
    assert problems(engine.import_lines(lines)) == [
        (2, "variant: found treatment in L2; session a is assigned to control in L2 already")
    ]


def test_a_failing_database_keeps_what_was_recorded_before(engine: Engine, tmp_path: Any) -> None:
    def lines() -> Any:
        yield from (line(f"s-{i}", thumbs_up=1) for i in range(600))
        remove(tmp_path / "prx.db")
        yield from (line(f"t-{i}", thumbs_up=1) for i in range(600))

    with pytest.raises(StoreError, match="it was there and is gone"):
        engine.import_lines(lines())


def test_skewed_judgements_are_concluded_by_the_robust_test(engine: Engine, clock: ManualClock) -> None:
    """A small twin of a real judged benchmark: one dimension, mostly 0 and 1, a large difference."""
    source = random.Random(17)
    experiment = engine.create_experiment("L3", "stronger", hypothesis="wins more").experiment_id
    lines = [
        line(
            f"{variant}-{i}",
            layer="L3",
            variant=variant,
            started_at=f"2026-06-{1 + i % 7:02d}T{i % 24:02d}:00:00Z",
            relevance=[round(min(max(source.betavariate(*shape), 0), 1), 4)],
        )
        for variant, shape in (("control", (0.05, 0.6)), ("treatment", (0.4, 0.4)))
        for i in range(200)
    ]
    source.shuffle(lines)
    clock.set("2026-06-08T00:00:00Z")
    report = engine.import_lines(lines)
    assert (report.sessions, report.missing_dimensions) == (
        400,
        [d for d in DIMENSIONS if d != "response_relevance"],
    )
    (result,) = engine.check()
    assert (result.outcome, result.conclusion, result.winner) == ("concluded", "treatment_wins", "treatment")
    ended = engine.experiment(experiment)
    assert ended.last_look is not None
    assert ended.last_look.p_hall is not None
    assert [name for name, d in ended.control_fitness.dimensions.items() if d.counts] == [
        "response_relevance"
    ]
    assert engine.verify().problems == []
