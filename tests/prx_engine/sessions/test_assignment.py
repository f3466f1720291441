"""Assignment: reproducible, sticky, independent in each layer, and never in the agent's way."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine import Engine
from prx_engine.dimensions import LAYERS, Layer
from prx_engine.errors import InvalidInput, StoreError
from prx_engine.sessions.assignment import treatment_share
from tests.support.clock import ManualClock
from tests.support.damage import broken
from tests.support.engines import OpenEngine

# Computed apart from the engine: the first 8 bytes, big-endian, over 2**64.
VECTORS = [
    ("s-17", "0197285e-4c00-7abc-8def-0123456789ab", "318f226c039650fe"),
    ("会话", "0197285e-4c00-7abc-8def-0123456789ab", "32cd2625b8cd3d7c"),
    ("s-17", "01972ff8-0000-7000-8000-000000000001", "3ede0ec256c93c29"),
]
CHANGE = {"description": "shorter", "config": {"agent.style": "short"}, "files": {"a.md": "new"}}


def create(engine: Engine, layer: Layer = "L2", **options: Any) -> str:
    return engine.create_experiment(
        layer, options.pop("treatment", "t"), hypothesis="h", **options
    ).experiment_id


def variants(engine: Engine, sessions: range, layer: Layer = "L2") -> list[str | None]:
    return [engine.assign(f"s-{i}")[layer].variant for i in sessions]


@pytest.mark.parametrize(("session", "experiment", "digest"), VECTORS)
def test_the_place_of_a_session_is_the_published_hash(session: str, experiment: str, digest: str) -> None:
    assert treatment_share(session, experiment) == int(digest, 16) / 2**64


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=50), st.uuids())
def test_anybody_can_compute_the_place_again(session: str, experiment: UUID) -> None:
    key = blake2b(session.encode("utf-8"), key=experiment.bytes, digest_size=8)
    assert treatment_share(session, str(experiment)) == int.from_bytes(key.digest(), "big") / 2**64


def test_sessions_below_the_split_get_the_treatment(engine: Engine) -> None:
    experiment = create(engine, traffic_split=0.3)
    for i in range(60):
        expected = "treatment" if treatment_share(f"s-{i}", experiment) < 0.3 else "control"
        answer = engine.assign(f"s-{i}")["L2"]
        assert (answer.variant, answer.experiment_id, answer.reason) == (expected, experiment, "assigned")


@pytest.mark.parametrize(
    ("split", "fewest", "most"), [(0.0, 0, 0), (1.0, 300, 300), (0.1, 13, 50), (0.5, 115, 185)]
)
def test_the_split_is_respected(engine: Engine, split: float, fewest: int, most: int) -> None:
    create(engine, traffic_split=split)
    assert fewest <= variants(engine, range(300)).count("treatment") <= most


def test_an_assignment_is_for_ever(engine: Engine, open_engine: OpenEngine, clock: ManualClock) -> None:
    experiment = create(engine)
    before = variants(engine, range(30))
    clock.advance(days=3)
    again = open_engine()
    assert variants(again, range(30)) == before
    assert {again.assign(f"s-{i}")["L2"].reason for i in range(30)} == {"persisted"}
    assert again.experiment(experiment).treatment_sessions == before.count("treatment")


def test_layers_are_independent(engine: Engine) -> None:
    for layer in LAYERS:
        create(engine, layer)
    answers = [engine.assign(f"s-{i}") for i in range(400)]
    cells = [tuple(answer[layer].variant for layer in LAYERS) for answer in answers]
    # Eight cells of 50 expected each; six standard deviations.
    assert {cells.count(cell) for cell in set(cells)} <= set(range(10, 91))
    assert len(set(cells)) == 8


def test_without_an_experiment_there_is_no_variant(engine: Engine) -> None:
    for layer, answer in engine.assign("s").items():
        assert answer.layer == layer
        assert (answer.variant, answer.experiment_id, answer.config, answer.files) == (None, None, {}, {})
        assert answer.reason == "no_experiment"


def test_a_session_that_started_before_the_experiment_does_not_enter(
    engine: Engine, clock: ManualClock
) -> None:
    engine.assign("early")
    clock.advance(seconds=1)
    create(engine)
    answer = engine.assign("early")["L2"]
    assert (answer.variant, answer.reason) == (None, "started_before")


def test_a_session_that_starts_with_the_experiment_enters(engine: Engine) -> None:
    engine.record("same moment", tokens=1)
    create(engine)
    assert engine.assign("same moment")["L2"].reason == "assigned"


def test_a_session_recorded_first_is_assigned_by_its_own_start(engine: Engine, clock: ManualClock) -> None:
    experiment = create(engine)
    clock.advance(hours=5)
    engine.record("s", started_at=clock.now() - timedelta(hours=3), thumbs_up=1)
    assert (
        engine.experiment(experiment).control_sessions + engine.experiment(experiment).treatment_sessions == 0
    )
    assert engine.assign("s")["L2"].reason == "assigned"
    record = engine.experiment(experiment)
    assert record.control_fitness.sessions + record.treatment_fitness.sessions == 1
    assert engine.verify().problems == []


def test_no_new_session_enters_from_the_maximum_on(engine: Engine, clock: ManualClock) -> None:
    experiment = create(engine)
    clock.set(engine.experiment(experiment).max_end_at - timedelta(microseconds=1))
    assert engine.assign("last")["L2"].reason == "assigned"
    engine.record("in time, late to ask", tokens=1)
    clock.advance(seconds=1)
    assert engine.assign("late")["L2"].reason == "past_maximum"
    assert engine.assign("in time, late to ask")["L2"].reason == "past_maximum"
    assert engine.assign("last")["L2"].reason == "persisted"


def test_switched_off_everybody_gets_the_defaults(engine: Engine, open_engine: OpenEngine) -> None:
    experiment = create(engine)
    engine.assign("old")
    off = open_engine(config="[self_evolution.experiments]\nenabled = false\n")
    for session in ("old", "new"):
        answer = off.assign(session)["L2"]
        assert (answer.variant, answer.reason) == (None, "disabled")
    counted = off.experiment(experiment)
    assert counted.control_sessions + counted.treatment_sessions == 1


def test_variants_hand_out_their_changes(engine: Engine) -> None:
    create(engine, treatment=CHANGE, control={"config": {"agent.style": "long"}})
    answers = {answer.variant: answer for i in range(20) for answer in [engine.assign(f"s-{i}")["L2"]]}
    assert answers["treatment"].config == {"agent.style": "short"}
    assert answers["treatment"].files == {"a.md": "new"}
    assert (answers["control"].config, answers["control"].files) == ({"agent.style": "long"}, {})


def test_promoted_changes_become_the_default_of_later_sessions(engine: Engine, clock: ManualClock) -> None:
    first = create(engine, treatment=CHANGE)
    engine.promote(first)
    clock.advance(hours=1)
    second = create(engine, treatment={"config": {"agent.temper": "mild"}, "files": {"b.md": "b"}})
    engine.promote(second)
    clock.advance(hours=1)
    answer = engine.assign("later")["L2"]
    assert answer.config == {"agent.style": "short", "agent.temper": "mild"}
    assert answer.files == {"a.md": "new", "b.md": "b"}
    assert engine.assign("later")["L1"].config == {}


def test_a_later_promotion_of_the_same_key_wins(engine: Engine, clock: ManualClock) -> None:
    for style in ("short", "long"):
        engine.promote(create(engine, treatment={"config": {"agent.style": style}}))
        clock.advance(hours=1)
    assert engine.assign("s")["L2"].config == {"agent.style": "long"}


def test_an_experiment_starts_from_the_default(engine: Engine, clock: ManualClock) -> None:
    engine.promote(create(engine, treatment=CHANGE))
    clock.advance(hours=1)
    create(engine, treatment={"config": {"agent.style": "none"}})
    answers = {answer.variant: answer for i in range(20) for answer in [engine.assign(f"s-{i}")["L2"]]}
    assert answers["control"].config == {"agent.style": "short"}
    assert answers["treatment"].config == {"agent.style": "none"}
    assert answers["treatment"].files == {"a.md": "new"}


def test_a_session_keeps_the_default_under_which_it_started(engine: Engine, clock: ManualClock) -> None:
    assert engine.assign("running")["L2"].config == {}
    clock.advance(minutes=1)
    engine.promote(create(engine, treatment=CHANGE))
    clock.advance(minutes=1)
    assert engine.assign("running")["L2"].config == {}
    assert engine.assign("new")["L2"].config == {"agent.style": "short"}


def test_a_rolled_back_change_is_handed_out_no_more(engine: Engine, clock: ManualClock) -> None:
    experiment = create(engine, treatment=CHANGE)
    engine.promote(experiment)
    clock.advance(hours=1)
    engine.rollback(experiment)
    assert engine.assign("s")["L2"].config == {}


def test_after_a_cancel_new_sessions_get_the_default_and_running_ones_keep_their_variant(
    engine: Engine, clock: ManualClock
) -> None:
    experiment = create(engine, treatment=CHANGE, traffic_split=1.0)
    assert engine.assign("running")["L2"].variant == "treatment"
    engine.cancel(experiment)
    answer = engine.assign("running")["L2"]
    assert (answer.variant, answer.experiment_id, answer.reason) == ("treatment", experiment, "persisted")
    assert answer.config == {"agent.style": "short"}
    answer = engine.assign("new")["L2"]
    assert (answer.variant, answer.reason) == (None, "no_experiment")
    clock.advance(hours=1)
    create(engine)
    assert engine.assign("running")["L2"].experiment_id == experiment
    assert engine.assign("new")["L2"].reason == "started_before"


@pytest.mark.parametrize("damage", ["removed", "garbage", "emptied", "locked"])
def test_an_agent_runs_on_when_the_database_fails(
    impatient: None, engine: Engine, tmp_path: Path, damage: str
) -> None:
    create(engine)
    with broken(engine, tmp_path / "prx.db", damage):
        with pytest.raises(StoreError):
            engine.assign("s")
        answers = engine.assign("s", on_error="default")
        assert set(answers) == set(LAYERS)
        for answer in answers.values():
            assert (answer.variant, answer.config, answer.files, answer.reason) == (None, {}, {}, "error")


def test_an_agent_runs_on_when_the_configuration_breaks(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[self_evolution.experiments]\nenabled = 3\n")
    assert engine.assign("s", on_error="default")["L2"].reason == "error"


def test_an_assignment_is_on_the_disk_when_it_is_answered(engine: Engine, tmp_path: Path) -> None:
    create(engine)
    variant = engine.assign("s")["L2"].variant
    with contextlib.closing(sqlite3.connect(tmp_path / "prx.db")) as other:
        assert other.execute("SELECT session_id, variant FROM assignments").fetchall() == [("s", variant)]


def test_a_settled_session_is_answered_without_writing(engine: Engine) -> None:
    create(engine)
    engine.assign("s")
    watch = engine.watch()
    watch.changed()
    assert engine.assign("s")["L2"].reason == "persisted"
    assert not watch.changed()
    watch.close()


@pytest.mark.parametrize("session", ["", None, "s" * 513, "a\0b", "\ud800", 5])
def test_an_agent_that_wants_to_run_on_gets_defaults_whatever_it_asks(engine: Engine, session: Any) -> None:
    answers = engine.assign(session, on_error="default")
    assert {answer.reason for answer in answers.values()} == {"error"}
    with pytest.raises(InvalidInput, match="session_id: found"):
        engine.assign(session)


def test_what_to_do_on_an_error_is_checked(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match="on_error: found ignore; allowed: raise, default"):
        engine.assign("s", on_error="ignore")  # type: ignore[arg-type]


def test_an_agent_that_wants_to_run_on_does_not_wait_for_long(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prx_engine.engine._AGENT_PATIENCE_SECONDS", 0.01)
    create(engine)
    with broken(engine, tmp_path / "prx.db", "locked"):
        assert engine.assign("s", on_error="default")["L2"].reason == "error"
    assert engine._store.database.execute_sql("PRAGMA busy_timeout").fetchone() == (30_000,)
    assert engine.assign("s", on_error="default")["L2"].reason == "assigned"
