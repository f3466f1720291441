from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.errors import Ambiguous, ConfigurationError, InvalidInput, NotFound, StoreError, WrongState
from prx_engine.records import Variant
from tests.support.clock import ManualClock
from tests.support.damage import statement
from tests.support.engines import OpenEngine
from tests.support.experiments import at, feed_both, start

ROOT = Path(__file__).parents[2]


def create(engine: Engine, **changes: Any) -> Any:
    fields: dict[str, Any] = {"layer": "L2", "treatment": "new", "hypothesis": "better"}
    return engine.create_experiment(**(fields | changes))


# Opening


def test_the_database_comes_from_the_argument_then_the_environment_then_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[self_evolution]\ndatabase = "{tmp_path / "configured.db"}"\n')
    with Engine.open(config=config) as engine:
        assert engine.database == str(tmp_path / "configured.db")
    monkeypatch.setenv("PRX_DATABASE_URL", str(tmp_path / "environment.db"))
    with Engine.open(config=config) as engine:
        assert engine.database == str(tmp_path / "environment.db")
    with Engine.open(tmp_path / "argument.db", config=config) as engine:
        assert engine.database == str(tmp_path / "argument.db")


def test_a_database_is_not_made_if_nobody_wants_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no database at"):
        Engine.open(tmp_path / "none.db", config=tmp_path / "none.toml", create=False)
    assert not (tmp_path / "none.db").exists()


def test_a_wrong_configuration_is_refused_before_a_database_is_made(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[self_evolution.experiments]\nmin_sampel_size = 3\n")
    with pytest.raises(ConfigurationError, match="min_sample_size"):
        Engine.open(tmp_path / "prx.db", config=tmp_path / "config.toml")
    assert not (tmp_path / "prx.db").exists()


def test_the_clock_of_one_command_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRX_NOW", "2026-06-01T00:00:00Z")
    with Engine.open(tmp_path / "prx.db", config=tmp_path / "none.toml") as engine:
        experiment = start(engine)
    assert experiment.created_at.isoformat() == "2026-06-01T00:00:00+00:00"


# Creating


def test_values_of_its_own_are_pinned_with_the_present_settings(open_engine: OpenEngine) -> None:
    engine = open_engine(config="[self_evolution.experiments]\nmin_effect_size = 0.07\n")
    experiment = create(engine, duration_hours=30, traffic_split=0.25, min_sample_size=12)
    settings = experiment.parameters.experiments
    assert (settings.default_duration_hours, settings.traffic_split, settings.min_sample_size) == (
        30,
        0.25,
        12,
    )
    assert settings.min_effect_size == 0.07
    assert experiment.planned_end_at == at(experiment, 30)
    assert engine.settings.experiments.default_duration_hours == 168


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer": "L4"}, "layer: found L4; allowed: L1, L2, L3"),
        ({"hypothesis": "  "}, "hypothesis: empty"),
        ({"hypothesis": "a\0b"}, "hypothesis: has a NUL"),
        ({"decision_id": ""}, "decision_id: empty"),
        ({"traffic_split": 1.5}, "traffic_split"),
        ({"traffic_split": float("nan")}, "traffic_split"),
        ({"min_sample_size": 1}, "min_sample_size"),
        ({"duration_hours": 0}, "default_duration_hours"),
        ({"duration_hours": 721}, "duration_hours"),
        ({"treatment": {"config": "x"}}, "treatment.config"),
        ({"treatment": {"colour": "red"}}, "treatment.colour"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name_and_nothing_is_made(
    engine: Engine, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        create(engine, **changes)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert engine.experiments("all") == []
    assert engine.events() == []


def test_switched_off_nothing_is_created(open_engine: OpenEngine) -> None:
    engine = open_engine(config="[self_evolution.experiments]\nenabled = false\n")
    with pytest.raises(
        WrongState, match=r"switched off: self_evolution\.experiments\.enabled is false in .*toml"
    ):
        create(engine)


def test_a_variant_is_a_text_a_mapping_or_a_record_and_gets_its_own_name(engine: Engine) -> None:
    experiment = create(
        engine, control="as it is", treatment=Variant(name="control", description="x", files={"a": "b"})
    )
    assert (experiment.control.name, experiment.control.description) == ("control", "as it is")
    assert (experiment.treatment.name, experiment.treatment.files) == ("treatment", {"a": "b"})


def test_ids_come_from_the_injected_source(tmp_path: Path, clock: ManualClock) -> None:
    given = "019e807a-ec00-7000-8000-000000000001"
    with Engine.open(tmp_path / "prx.db", tmp_path / "c.toml", clock=clock, ids=lambda _: given) as engine:
        assert create(engine).experiment_id == given


# Finding


def test_experiments_are_listed_the_newest_first_by_status_and_layer(
    engine: Engine, clock: ManualClock
) -> None:
    first = create(engine)
    engine.cancel(first.experiment_id)
    clock.advance(hours=1)
    second = create(engine)
    engine.promote(second.experiment_id)
    clock.advance(hours=1)
    third = create(engine)
    other = create(engine, layer="L3")
    ids = [x.experiment_id for x in (other, third, second, first)]
    assert [x.experiment_id for x in engine.experiments("all")] == ids
    assert [x.experiment_id for x in engine.experiments()] == ids[:2]
    assert [x.experiment_id for x in engine.experiments("running")] == ids[:2]
    assert [x.experiment_id for x in engine.experiments("evaluating")] == []
    assert [x.experiment_id for x in engine.experiments("converged")] == [ids[2]]
    assert [x.experiment_id for x in engine.experiments("cancelled")] == [ids[3]]
    assert [x.experiment_id for x in engine.experiments("all", layer="L2", limit=2)] == ids[1:3]
    assert engine.counts() == {"running": 2, "evaluating": 0, "converged": 1, "cancelled": 1}


def test_an_id_may_be_shortened_to_what_is_unambiguous(tmp_path: Path, clock: ManualClock) -> None:
    ids = iter(["019e807a-0000-7000-8000-00000000aaaa", "019e807b-0000-7000-8000-00000000bbaa"])
    with Engine.open(tmp_path / "p.db", tmp_path / "c.toml", clock=clock, ids=lambda _: next(ids)) as engine:
        first, second = create(engine), create(engine, layer="L3")
        for part in (first.experiment_id, "019e807a", "aaaa", "00AAAA", first.experiment_id.upper()):
            assert engine.experiment(part) == first
        assert engine.experiment("bbaa") == second
        for part in ("019e", "aa"):
            with pytest.raises(Ambiguous, match=r"fits several experiments: 019e.*give more of the id"):
                engine.experiment(part)
        for part in ("", "a", "%", "*", "0000-7000", "019e807c", "'; drop table experiments"):
            with pytest.raises(NotFound, match="no experiment"):
                engine.experiment(part)


def test_the_beginning_of_what_is_displayed_will_do_for_an_id(tmp_path: Path, clock: ManualClock) -> None:
    ids = iter(["019e807a-0000-7000-8000-00004f1c09ab", "019e807b-0000-7000-8000-000068f5c280"])
    with Engine.open(tmp_path / "p.db", tmp_path / "c.toml", clock=clock, ids=lambda _: next(ids)) as engine:
        first, second = create(engine), create(engine, layer="L3")
        assert engine.experiment("4f1c") == first
        assert engine.experiment("68f5c28") == second
        with pytest.raises(NotFound):
            engine.experiment("f1c0")


def test_a_duration_past_the_maximum_is_refused_by_its_own_name(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match=r"^duration_hours: found 721; allowed: at most 720"):
        engine.create_experiment("L2", "t", hypothesis="h", duration_hours=721)


@pytest.mark.parametrize(
    "treatment",
    [
        {"files": {"x.md": "half a \ud800 pair"}},
        {"files": {"x\ud800.md": "text"}},
        {"description": "half a \ud800 pair"},
    ],
)
def test_text_that_no_database_and_no_json_can_hold_is_refused_at_creation(
    engine: Engine, treatment: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput, match=r"^treatment\.\w+.*has half a surrogate pair"):
        engine.create_experiment("L1", treatment, hypothesis="h")
    assert engine.experiments("all") == []


def test_an_id_of_characters_that_no_id_has_is_not_found(engine: Engine) -> None:
    for part in ("\udc80", "\0", "ä"):
        with pytest.raises(NotFound, match="no experiment"):
            engine.experiment(part)


def test_an_agent_that_wants_to_run_on_does_whatever_is_damaged(
    tmp_path: Path, open_engine: OpenEngine
) -> None:
    with open_engine() as engine:
        create(engine)
    statement(tmp_path / "prx.db", "UPDATE experiments SET parameters = replace(parameters, 'min_', 'mix_')")
    engine = open_engine()
    assert engine.assign("s", on_error="default")["L2"].reason == "error"
    with pytest.raises(StoreError, match="the database is damaged: a stored setting reads"):
        engine.assign("s")


def test_the_log_of_all_is_the_newest_first(engine: Engine) -> None:
    first = create(engine)
    engine.cancel(first.experiment_id)
    create(engine, layer="L1")
    assert [event.action for event in engine.events()] == ["created", "cancelled", "created"]
    assert [event.action for event in engine.events(limit=1)] == ["created"]
    assert [event.action for event in engine.events(first.experiment_id)] == ["cancelled", "created"]


def test_the_trend_ends_with_the_fitness_of_now(engine: Engine, clock: ManualClock) -> None:
    experiment = start(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.6, 0.65, 480, hours=48, spread=0.3)
    points = engine.trend(experiment.experiment_id, points=8)
    present = engine.experiment(experiment.experiment_id)
    assert 1 < len(points) <= 8
    assert points[-1].control == present.control_fitness.composite
    assert points[-1].treatment == present.treatment_fitness.composite
    assert [point.control_sessions for point in points] == sorted(point.control_sessions for point in points)
    assert points[-1].control_sessions == 480
    assert engine.trend(start_elsewhere(engine)) == []


def start_elsewhere(engine: Engine) -> str:
    return str(create(engine, layer="L1").experiment_id)


def test_history_has_a_range(engine: Engine) -> None:
    assert len(engine.history(1)) == 1
    for days in (0, 3661):
        with pytest.raises(InvalidInput, match=f"days: found {days}; allowed: 1 to 3660"):
            engine.history(days)


# Sharing


def test_an_engine_serves_many_threads(engine: Engine) -> None:
    start(engine)

    def work(i: int) -> str:
        variant = engine.assign(f"session-{i}")["L2"].variant
        engine.record(f"session-{i}", scores={"response_relevance": 0.5})
        engine.close()
        return str(variant)

    with ThreadPoolExecutor(8) as pool:
        variants = list(pool.map(work, range(80)))
    (experiment,) = engine.experiments()
    assert experiment.control_sessions == variants.count("control")
    assert experiment.treatment_sessions == variants.count("treatment")
    assert engine.verify().problems == []


FORK = """
import os, sys
from prx_engine import Engine
with Engine.open(sys.argv[1], sys.argv[2]) as engine:
    engine.record("before", scores={"response_relevance": 0.5})
    child = os.fork()
    name = "parent" if child else "child"
    for i in range(20):
        engine.record(f"{name}-{i}", scores={"response_relevance": 0.5})
    if child == 0:
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert engine.verify().problems == []
    print(engine.fitness().fitness.sessions)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_engine_survives_a_fork(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORK, str(tmp_path / "prx.db"), str(tmp_path / "none.toml")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("41\n", "")


def test_a_changed_configuration_is_noticed(engine: Engine, open_engine: OpenEngine) -> None:
    assert engine.settings.experiments.min_sample_size == 100
    open_engine(config="[self_evolution.experiments]\nmin_sample_size = 7\n")
    assert engine.settings.experiments.min_sample_size == 7


def test_an_agent_runs_on_without_a_database(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise StoreError("the disk is gone")

    monkeypatch.setattr(engine._assigner, "assign", broken)
    with pytest.raises(StoreError):
        engine.assign("s")
    answer = engine.assign("s", on_error="default")
    assert {layer: (a.variant, a.reason) for layer, a in answer.items()} == dict.fromkeys(
        ("L1", "L2", "L3"), (None, "error")
    )


def test_a_watch_notices_what_others_write(engine: Engine, open_engine: OpenEngine) -> None:
    watch = engine.watch()
    other = open_engine()
    watch.changed()
    assert not watch.changed()
    start(other)
    assert watch.changed()
    assert not watch.changed()
    watch.close()


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ({"status": "bogus"}, "status: found bogus; allowed: active, all, running"),
        ({"status": None}, "status: found None"),
        ({"layer": "L9"}, "layer: found L9; allowed: L1, L2, L3"),
        ({"limit": -1}, "limit: found -1"),
        ({"limit": 10**30}, "limit: found 10"),
    ],
)
def test_what_is_no_filter_of_experiments_is_refused(
    open_engine: OpenEngine, question: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidInput, match=told):
        open_engine().experiments(**question)
