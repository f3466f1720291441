"""Verification: silent in any order of arrival, and never about what was tampered with."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prx_engine import Engine, verification
from prx_engine.configuration import FitnessSettings, Weights
from prx_engine.dimensions import DIMENSIONS
from prx_engine.errors import InvalidInput
from prx_engine.fitness.moments import MOMENT_NAMES
from prx_engine.records import Experiment, FitnessScore
from prx_engine.scoring.metrics import combine
from prx_engine.scoring.scores import Scorer
from prx_engine.store.totals import deployment_hours
from tests.support.clock import ManualClock
from tests.support.damage import statement
from tests.support.engines import OpenEngine
from tests.support.reference import fitness_and_variance, table_of
from tests.support.sessions import metrics, random_metrics

ONE_EACH = dict.fromkeys(DIMENSIONS, 0.5)


@pytest.fixture
def filled(engine: Engine, clock: ManualClock) -> Engine:
    """An active and an ended experiment, and a session in neither."""
    ended = engine.create_experiment("L1", "t", hypothesis="h").experiment_id
    engine.create_experiment("L2", "t", hypothesis="h")
    for i in range(6):
        variant = "treatment" if i % 2 else "control"
        for layer in ("L1", "L2"):
            engine.record(f"s-{i}", layer=layer, variant=variant, relevance=i / 10, thumbs_up=1)
        engine.record(f"s-{i}", source="judge", relevance=0.5)
    clock.advance(hours=1)
    engine.cancel(ended)
    engine.record("alone", scores=ONE_EACH)
    engine.record("silent", layer="L2", variant="control")
    return engine


def test_a_sound_database_has_no_problem(filled: Engine) -> None:
    result = filled.verify()
    assert (result.sessions, result.assignments, result.problems) == (8, 13, [])


def test_an_empty_database_has_no_problem(engine: Engine) -> None:
    result = engine.verify()
    assert (result.sessions, result.assignments, result.problems) == (0, 0, [])


@pytest.mark.parametrize(
    ("tampering", "problem"),
    [
        (
            "UPDATE totals SET s_00 = s_00 + 1 WHERE experiment = 2 AND variant = 'control'",
            "total of experiment 2 control",
        ),
        (
            "UPDATE totals SET assigned = 7 WHERE experiment = 1 AND variant = 'control'",
            "total of experiment 1 control",
        ),
        (
            "DELETE FROM totals WHERE experiment = 1 AND variant = 'treatment'",
            "total of experiment 1 treatment",
        ),
        ("UPDATE hourly_totals SET q_05 = 0 WHERE experiment = 2", "hourly total of experiment 2 control 0"),
        ("UPDATE deployment_totals SET n = n + 1", "deployment, clock hour "),
        (
            "INSERT INTO totals SELECT 9, variant, assigned, " + "{moments} FROM totals LIMIT 1",
            "total of experiment 9 ",
        ),
        ("UPDATE sessions SET user_satisfaction = 1 WHERE session_id = 's-3'", "deployment, clock hour "),
        (
            "UPDATE assignments SET response_relevance = 1 WHERE session_id = 's-3' AND layer = 'L2'",
            "session s-3: its scores",
        ),
        (
            "UPDATE assignments SET fitness = 1 WHERE session_id = 's-3' AND layer = 'L2'",
            "session s-3: its scores",
        ),
        (
            "UPDATE assignments SET response_relevance = 1 WHERE session_id = 's-3' AND layer = 'L1'",
            "total of experiment 1 ",
        ),
        (
            "UPDATE assignments SET variant = 'control' WHERE session_id = 's-3'",
            "total of experiment 1 control",
        ),
        (
            "UPDATE assignments SET hour = hour + 1 WHERE session_id = 's-3'",
            "hourly total of experiment 1 treatment 0",
        ),
        (
            "UPDATE session_reports SET report = '{{\"relevance\":[1.0]}}' WHERE session_id = 's-3'",
            "session s-3: its scores",
        ),
        (
            'UPDATE session_reports SET report = \'{{"tasks":1,"tasks_succeeded":2}}\'',
            "session s-3: its scores",
        ),
        (
            "DELETE FROM session_reports WHERE session_id = 's-3' AND source = 'judge'",
            "session s-3: its scores",
        ),
        ("DELETE FROM sessions WHERE session_id = 's-3'", "deployment, clock hour "),
        ("DELETE FROM sessions WHERE session_id = 'silent'", "session silent: it is assigned and missing"),
        ("DELETE FROM assignments WHERE session_id = 's-3'", "total of experiment 1 treatment"),
        (
            "UPDATE sessions SET started_at = '2026-06-03T00:00:00.000000Z' WHERE session_id = 'alone'",
            "deployment, clock hour ",
        ),
    ],
)
def test_tampering_is_found(filled: Engine, tmp_path: Path, tampering: str, problem: str) -> None:
    assert statement(tmp_path / "prx.db", tampering.format(moments=", ".join(MOMENT_NAMES))) > 0
    problems = filled.verify().problems
    assert any(found.startswith(problem) for found in problems), problems


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("UPDATE session_reports SET report = '[' WHERE session_id = 's-1'", "a stored value reads ["),
        ("UPDATE sessions SET started_at = '2026-01-01T0@' WHERE session_id = 's-1'", "a stored time reads"),
    ],
)
def test_damage_is_a_problem_and_no_crash(filled: Engine, tmp_path: Path, sql: str, problem: str) -> None:
    statement(tmp_path / "prx.db", sql)
    assert any(problem in found for found in filled.verify().problems)


def test_a_report_without_its_session_is_found(filled: Engine, tmp_path: Path) -> None:
    filled.record("no scores", tool_calls=0)
    statement(tmp_path / "prx.db", "DELETE FROM sessions WHERE session_id = 'no scores'")
    assert filled.verify().problems == ["session no scores: it is reported and missing"]


def test_the_log_of_problems_is_not_endless(filled: Engine, tmp_path: Path) -> None:
    for i in range(150):
        filled.record(f"more-{i}", layer="L2", variant="control", thumbs_up=1)
    statement(tmp_path / "prx.db", "UPDATE assignments SET fitness = 3")
    assert len(filled.verify().problems) == 100


def snapshot(engine: Engine, experiment: str) -> tuple[Experiment, FitnessScore]:
    return engine.experiment(experiment), engine.fitness().fitness


@st.composite
def arrivals(draw: st.DrawFn) -> list[tuple[str, str, dict[str, Any]]]:
    """Final reports of some sessions, each of up to three sources: (session, source, fields)."""
    return [
        (f"s-{i}", source, draw(metrics()))
        for i in range(draw(st.integers(1, 6)))
        for source in draw(st.sets(st.sampled_from(["a", "b", "c"]), min_size=1))
    ]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arrivals(), st.randoms(use_true_random=False))
def test_any_order_of_arrival_with_repeats_and_corrections_gives_the_same_bits(
    tmp_path_factory: pytest.TempPathFactory,
    reports: list[tuple[str, str, dict[str, Any]]],
    chance: random.Random,
) -> None:
    folder = tmp_path_factory.mktemp("orders")
    outcomes = []
    for order in range(2):
        clock = ManualClock()
        with Engine.open(folder / f"{order}.db", folder / "none.toml", clock, lambda _: "id") as engine:
            engine.create_experiment("L2", "t", hypothesis="h")
            plan = list(reports)
            if order:
                chance.shuffle(plan)
                plan = [step for step in plan for _ in range(chance.randint(1, 2))]
            seen = set()
            for session, source, fields in plan:
                stated: dict[str, Any] = {
                    "layer": "L2",
                    "variant": "control" if session < "s-3" else "treatment",
                }
                if order and (session, source) not in seen:
                    wrong = {name: value for name, value in random_metrics(chance).items() if name in fields}
                    with contextlib.suppress(InvalidInput):
                        engine.record(session, source=source, started_at=clock.now(), **stated, **wrong)
                    seen.add((session, source))
                engine.record(session, source=source, started_at=clock.now(), **stated, **fields)
            assert engine.verify().problems == []
            outcomes.append(snapshot(engine, "id"))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("seed", range(4))
def test_fitness_of_recorded_sessions_equals_the_formula_to_twelve_digits(
    engine: Engine, clock: ManualClock, seed: int
) -> None:
    """Random sessions with random missing data, split over sources, in any order, with corrections."""
    source = random.Random(seed)
    experiment = engine.create_experiment("L2", "t", hypothesis="h").experiment_id
    clock.advance(hours=20)
    lines: list[dict[str, Any]] = []
    final: dict[tuple[str, str], dict[str, Any]] = {}
    arms: dict[str, str] = {}
    present = source.uniform(0.2, 0.9)
    for i in range(250):
        session = f"s-{i}"
        arms[session] = source.choice(["control", "treatment"])
        start = f"2026-06-01T{source.randrange(20):02d}:00:00Z"
        for name in source.sample(["agent", "judge", "user"], source.randint(1, 3)):
            report = random_metrics(source, present)
            final[session, name] = report
            base = {"session_id": session, "source": name, "started_at": start}
            line = base | report | {"layer": "L2", "variant": arms[session]}
            lines += [line] * source.randint(1, 2)
    source.shuffle(lines)
    imported = engine.import_lines([json.dumps(line).encode() for line in lines])
    assert (imported.rejected, imported.sessions) == ([], 250)
    scorer = Scorer(FitnessSettings())
    record = engine.experiment(experiment)
    for arm, found in (("control", record.control_fitness), ("treatment", record.treatment_fitness)):
        sessions = [s for s in arms if arms[s] == arm]
        table = table_of(
            [scorer.scores(combine([r for (i, _), r in final.items() if i == s])) for s in sessions]
        )
        counted = [found.dimensions[name].counts for name in DIMENSIONS]
        mean, variance = fitness_and_variance(table, Weights().as_tuple(), counted)
        assert found.composite == pytest.approx(mean, rel=1e-12)
        assert found.standard_error == pytest.approx(variance**0.5, rel=1e-12)
    assert engine.verify().problems == []


def test_verification_reads_one_snapshot(filled: Engine, open_engine: OpenEngine) -> None:
    """Somebody records while the totals are read: neither the old nor the new state is a problem."""
    other = open_engine()

    def meddling(*arguments: Any) -> Any:
        other.record("in between", layer="L2", variant="control", scores=ONE_EACH)
        return deployment_hours(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verification, "deployment_hours", meddling)
        assert filled.verify().problems == []
    assert filled.verify().sessions == 9
