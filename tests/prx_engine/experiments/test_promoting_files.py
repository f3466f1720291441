"""What a promotion and its rollback do to the agent's files, and what the record says about it."""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.errors import (
    InvalidInput,
    NotFound,
    PromotionConflict,
    PromotionRefused,
    WrongState,
)
from prx_engine.ids import short
from prx_engine.records import Experiment
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine
from tests.support.experiments import actions, at, feed_both

CONFIG = "# mine\n[memory]\ntop_k = 5 # five\n"
CHANGE = {"config": {"memory.top_k": 8}, "files": {"prompts/a.md": "new"}}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    path = tmp_path / "workspace" / "prompts" / "a.md"
    path.parent.mkdir(parents=True)
    path.write_text("old")
    return path


@pytest.fixture
def engine(open_engine: OpenEngine, prompt: Path) -> Engine:
    return open_engine(config=CONFIG)


def create(engine: Engine, treatment: dict[str, Any] = CHANGE, layer: Any = "L2") -> Experiment:
    return engine.create_experiment(layer, treatment, hypothesis="better")


def promoted(engine: Engine, treatment: dict[str, Any] = CHANGE, layer: Any = "L2") -> Experiment:
    experiment = engine.promote(create(engine, treatment, layer).experiment_id, "by hand")
    assert (experiment.promotion, experiment.promotion_note) == ("applied", None)
    return experiment


def test_a_promotion_changes_the_agent_and_a_rollback_brings_it_back(
    engine: Engine, target: Path, prompt: Path
) -> None:
    experiment = promoted(engine)
    assert target.read_text() == CONFIG.replace("5 #", "8 #")
    assert prompt.read_text() == "new"
    back = engine.rollback(reason="it was better before")
    assert (back.experiment_id, back.promotion) == (experiment.experiment_id, "rolled_back")
    assert (target.read_text(), prompt.read_text()) == (CONFIG, "old")
    assert actions(engine, experiment) == ["created", "converged", "promoted", "rolled_back"]
    assert [event.reason for event in engine.events()][:2] == ["it was better before", "by hand"]


def test_the_winner_of_a_check_changes_the_agent(engine: Engine, clock: ManualClock, target: Path) -> None:
    experiment = create(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=47)
    (result,) = engine.check()
    assert result.outcome == "concluded"
    assert "top_k = 8 # five" in target.read_text()
    (event, *_) = engine.events()
    assert (event.action, event.actor, event.reason) == ("promoted", "engine", result.reason)


def test_a_read_only_engine_leaves_the_agent_alone(
    engine: Engine, clock: ManualClock, tmp_path: Path, target: Path
) -> None:
    experiment = create(engine)
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=47)
    path = tmp_path / "prx.db"
    with Engine.open(path, config=target, clock=clock, read_only=True) as reader:
        assert reader.check()[0].outcome == "concluded"
        assert reader.check() == []
    assert engine.experiment(experiment.experiment_id).promotion == "pending"
    assert target.read_text() == CONFIG
    engine.check()
    assert engine.experiment(experiment.experiment_id).promotion == "applied"


def test_a_conflict_changes_nothing_until_it_is_forced(engine: Engine, target: Path, prompt: Path) -> None:
    experiment = create(engine)
    target.write_text(CONFIG.replace("5 #", "6 #"))
    state = engine.promote(experiment.experiment_id)
    assert (state.promotion, state.promotion_note) == ("conflict", "memory.top_k is 6 now, was 5")
    assert prompt.read_text() == "old"
    assert engine.assign("s")["L2"].config == {}
    engine.check()
    assert actions(engine, experiment) == ["created", "converged", "promotion_conflict"]
    state = engine.promote(experiment.experiment_id, "I know", force=True)
    assert (state.promotion, state.promotion_note) == ("applied", None)
    assert "top_k = 8 # five" in target.read_text()
    engine.rollback()
    assert "top_k = 6 # five" in target.read_text()


def test_a_conflict_that_has_gone_is_promoted_without_force(engine: Engine, target: Path) -> None:
    experiment = create(engine)
    target.write_text(CONFIG.replace("5 #", "6 #"))
    engine.promote(experiment.experiment_id)
    target.write_text(CONFIG)
    assert engine.promote(experiment.experiment_id).promotion == "applied"


def test_a_rollback_keeps_edits_made_since(engine: Engine, target: Path) -> None:
    promoted(engine)
    target.write_text(target.read_text() + "\n[other]\nkey = 1 # mine\n")
    engine.rollback()
    assert target.read_text() == CONFIG + "\n[other]\nkey = 1 # mine\n"


def test_a_rollback_in_conflict_is_refused_until_it_is_forced(
    engine: Engine, target: Path, prompt: Path
) -> None:
    experiment = promoted(engine)
    target.write_text(target.read_text().replace("8 #", "9 #") + "more = 1\n")
    with pytest.raises(PromotionConflict) as conflict:
        engine.rollback(experiment.experiment_id)
    assert str(conflict.value) == "memory.top_k is 9 now, was promoted as 8"
    assert engine.experiment(experiment.experiment_id).promotion == "applied"
    assert prompt.read_text() == "new"
    assert engine.rollback(experiment.experiment_id, force=True).promotion == "rolled_back"
    assert target.read_text() == CONFIG + "more = 1\n"


def test_an_edited_file_is_not_rolled_back_unless_forced(engine: Engine, prompt: Path) -> None:
    promoted(engine)
    prompt.write_text("edited")
    with pytest.raises(PromotionConflict, match=r"a\.md has been edited since it was promoted"):
        engine.rollback()
    prompt.unlink()
    with pytest.raises(PromotionConflict, match=r"a\.md is gone since it was promoted"):
        engine.rollback()
    prompt.write_text("edited")
    engine.rollback(force=True)
    assert prompt.read_text() == "old"
    assert "edited" in [snapshot.content for snapshot in engine.snapshots()]


def test_another_host_leaves_it_pending(
    engine: Engine, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = socket.gethostname()
    experiment = create(engine)
    with monkeypatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "elsewhere")
        state = engine.promote(experiment.experiment_id)
        note = f"waits for host {home}: this is elsewhere"
        assert (state.promotion, state.promotion_note) == ("pending", note)
        engine.check()
        engine.check()
        assert target.read_text() == CONFIG
    assert actions(engine, experiment) == ["created", "converged", "promotion_pending"]
    engine.check()
    assert engine.experiment(experiment.experiment_id).promotion == "applied"
    with monkeypatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "elsewhere")
        with pytest.raises(PromotionRefused, match="waits for host"):
            engine.rollback()


def test_another_target_leaves_it_pending(
    engine: Engine, open_engine: OpenEngine, tmp_path: Path, target: Path
) -> None:
    experiment = create(engine)
    target.write_text(CONFIG + "\n[self_evolution.promotion]\ntarget = 'agent.toml'\n")
    state = engine.promote(experiment.experiment_id)
    assert state.promotion == "pending"
    assert state.promotion_note == (
        f"waits for a process whose target is {target}: here it is {tmp_path / 'agent.toml'}"
    )
    assert not (tmp_path / "agent.toml").exists()


def test_a_full_disk_leaves_it_pending(
    engine: Engine, target: Path, prompt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = create(engine)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        patch.setattr(os, "fsync", full)
        state = engine.promote(experiment.experiment_id)
    assert state.promotion == "pending"
    assert state.promotion_note is not None
    assert state.promotion_note.endswith("No space left on device; nothing was changed")
    assert (target.read_text(), prompt.read_text()) == (CONFIG, "old")
    assert [snapshot.state for snapshot in engine.snapshots()] == ["undone", "undone"]
    assert not list(target.parent.rglob("*.new"))
    engine.check()
    assert engine.experiment(experiment.experiment_id).promotion == "applied"


def test_a_target_that_has_become_invalid_leaves_it_pending(engine: Engine, open_engine: OpenEngine) -> None:
    engine = open_engine(config=CONFIG + "\n[self_evolution.promotion]\ntarget = 'agent.toml'\n")
    experiment = create(engine)
    agent = Path(engine.configuration.path).with_name("agent.toml")
    agent.write_text("[memory\n")
    state = engine.promote(experiment.experiment_id)
    assert state.promotion == "pending"
    assert (state.promotion_note or "").startswith(f"{agent}: not valid TOML: ")
    assert agent.read_text() == "[memory\n"


def test_a_read_only_file_leaves_it_pending(engine: Engine, target: Path, prompt: Path) -> None:
    experiment = create(engine)
    prompt.chmod(0o444)
    state = engine.promote(experiment.experiment_id)
    assert (state.promotion, state.promotion_note) == ("pending", f"{prompt}: read-only")
    assert target.read_text() == CONFIG


def test_a_missing_target_is_made_private(open_engine: OpenEngine, tmp_path: Path) -> None:
    with Engine.open(tmp_path / "prx.db", config=tmp_path / "home" / "config.toml") as engine:
        promoted(engine)
    made = tmp_path / "home" / "config.toml"
    assert made.read_text() == "[memory]\ntop_k = 8\n"
    assert made.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "home" / "workspace" / "prompts" / "a.md").read_text() == "new"


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ({"config": {"memory.top_k": 8}}, {"config": {"memory.top_k": 9}}, "memory.top_k"),
        ({"config": {"'memory'.top_k": 8}}, {"config": {"memory.top_k": 9}}, "memory.top_k"),
        ({"config": {"routing.a.b": 8}}, {"config": {"routing.a": {"c": 1}}}, "routing.a"),
        ({"files": {"new.md": "a"}}, {"files": {"NEW.md": "b"}}, "NEW.md"),
    ],
)
def test_two_layers_may_not_be_about_the_same(
    engine: Engine, first: dict[str, Any], second: dict[str, Any], name: str
) -> None:
    other = create(engine, first, "L1")
    with pytest.raises(InvalidInput) as refused:
        create(engine, second, "L2")
    assert str(refused.value) == (
        f"{name} is what {short(other.experiment_id)} better (L1, running) is about already;"
        " wait for its end or cancel it"
    )
    engine.cancel(other.experiment_id)
    create(engine, second, "L2")


def test_a_key_that_another_promotion_has_changed_is_named_with_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = create(engine, {"config": {"memory.top_k": 10}}, "L1")
    with monkeypatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "elsewhere")
        assert engine.promote(other.experiment_id).promotion == "pending"
    experiment = create(engine, {"config": {"memory.top_k": 9}}, "L2")
    engine.check()
    state = engine.promote(experiment.experiment_id)
    assert (state.promotion, state.promotion_note) == (
        "conflict",
        f"memory.top_k is 10 now, was 5; promoted by {short(other.experiment_id)} (L1) meanwhile",
    )


def test_the_last_promotion_is_rolled_back_and_then_the_one_before(
    engine: Engine, clock: ManualClock, target: Path
) -> None:
    with pytest.raises(NotFound, match="no promotion is applied: there is nothing to roll back"):
        engine.rollback()
    first = promoted(engine, {"config": {"memory.top_k": 8}}, "L1")
    clock.advance(hours=1)
    second = promoted(engine, {"config": {"memory.top_k": 9}}, "L2")
    with pytest.raises(PromotionConflict, match=r"memory\.top_k is 9 now, was promoted as 8"):
        engine.rollback(first.experiment_id)
    assert engine.rollback().experiment_id == second.experiment_id
    assert engine.rollback().experiment_id == first.experiment_id
    assert target.read_text() == CONFIG
    with pytest.raises(WrongState):
        engine.rollback(first.experiment_id)


def test_snapshots_can_be_read_like_the_agents_own(engine: Engine, target: Path, prompt: Path) -> None:
    experiment = promoted(engine)
    snapshots = {snapshot.path: snapshot for snapshot in engine.snapshots()}
    assert {path: snapshot.content for path, snapshot in snapshots.items()} == {
        str(target): CONFIG,
        str(prompt): "old",
    }
    for snapshot in snapshots.values():
        assert (snapshot.experiment_id, snapshot.action, snapshot.state) == (
            experiment.experiment_id,
            "promotion",
            "applied",
        )
        kept = target.parent / ".evolution" / "rollback" / "prompt" / f"{snapshot.version_id}.json"
        assert json.loads(kept.read_text()) == {
            "version_id": snapshot.version_id,
            "created_at": "2026-06-01T00:00:00Z",
            "content": snapshot.content,
        }
        assert kept.stat().st_mode & 0o777 == 0o600
    assert len(engine.snapshots(limit=1)) == 1


def test_the_difference_is_told(engine: Engine) -> None:
    experiment = create(engine)
    changes = engine.details(experiment.experiment_id).changes
    assert [(change.kind, change.name, change.before, change.after) for change in changes] == [
        ("key", "memory.top_k", "5", "8"),
        ("file", "prompts/a.md", "old", "new"),
    ]


def test_many_promote_at_once_and_one_does(engine: Engine, open_engine: OpenEngine, target: Path) -> None:
    experiment = create(engine)
    start = threading.Barrier(4)
    outcomes: list[str] = []

    def promote() -> None:
        with Engine.open(target.with_name("prx.db"), config=target, clock=engine.clock) as other:
            start.wait()
            try:
                outcomes.append(other.promote(experiment.experiment_id).promotion)
            except WrongState:
                outcomes.append("refused")

    threads = [threading.Thread(target=promote) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "applied" in outcomes
    assert actions(engine, experiment) == ["created", "converged", "promoted"]
    assert len(engine.snapshots()) == 2


def test_one_key_has_one_value_whoever_merges_the_layers(engine: Engine, clock: ManualClock) -> None:
    promoted(engine, {"config": {"memory.top_k": 8, "memory.scope": "user"}}, "L1")
    clock.advance(hours=1)
    promoted(engine, {"config": {"memory.top_k": 9}}, "L2")
    clock.advance(hours=1)
    engine.create_experiment("L3", {"config": {"memory.scope": "task"}}, hypothesis="h", traffic_split=1.0)
    answer = engine.assign("s")
    assert {layer: answer[layer].config for layer in ("L1", "L2", "L3")} == {
        "L1": {},
        "L2": {"memory.top_k": 9},
        "L3": {"memory.scope": "task"},
    }


def test_what_was_interrupted_is_completed_by_the_next_start_but_a_read_only_one(
    engine: Engine, open_engine: OpenEngine, clock: ManualClock, target: Path
) -> None:
    experiment = create(engine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine._promotion, "_finish", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            engine.promote(experiment.experiment_id, "by hand")
    path = target.with_name("prx.db")
    with Engine.open(path, config=target, clock=clock, read_only=True) as reader:
        assert reader.experiment(experiment.experiment_id).promotion == "pending"
    assert open_engine().experiment(experiment.experiment_id).promotion == "applied"
    (event, *_) = engine.events()
    assert (event.action, event.actor, event.reason) == ("promoted", "tester", "by hand")


def _interrupt(_: int) -> None:
    raise KeyboardInterrupt


def test_a_live_promotion_is_left_alone_by_other_starts(
    engine: Engine, open_engine: OpenEngine, target: Path
) -> None:
    experiment = create(engine)
    seen: list[str] = []
    finish = engine._promotion._finish

    def slowly(number: int) -> None:
        seen.append(open_engine().experiment(experiment.experiment_id).promotion)
        finish(number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine._promotion, "_finish", slowly)
        engine.promote(experiment.experiment_id)
    assert seen == ["pending"]
    assert actions(engine, experiment) == ["created", "converged", "promoted"]


def test_a_promotion_lives_on_postgresql(
    postgres_url: str, open_engine: OpenEngine, prompt: Path, target: Path
) -> None:
    engine = open_engine(postgres_url, config=CONFIG)
    experiment = promoted(engine, {"config": {"memory.top_k": 8}, "files": {"prompts/a.md": "nul \0 ü"}})
    assert prompt.read_text() == "nul \0 ü"
    assert {snapshot.content for snapshot in engine.snapshots()} == {CONFIG, "old"}
    assert engine.rollback().experiment_id == experiment.experiment_id
    assert target.read_text() == CONFIG


def test_a_target_that_is_a_link_stays_one(open_engine: OpenEngine, tmp_path: Path, target: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "agent.toml"
    real.write_text(CONFIG)
    target.symlink_to(real)
    engine = open_engine()
    promoted(engine, {"config": {"memory.top_k": 8}})
    assert target.is_symlink()
    assert real.read_text() == CONFIG.replace("5 #", "8 #")
    engine.rollback()
    assert real.read_text() == CONFIG


def test_an_earlier_promotion_comes_back_without_the_later_one(
    engine: Engine, clock: ManualClock, target: Path
) -> None:
    first = promoted(engine, {"config": {"memory.top_k": 8, "routing.retry": 2}}, "L1")
    clock.advance(hours=1)
    promoted(engine, {"config": {"routing.model": "small"}}, "L3")
    engine.rollback(first.experiment_id)
    assert target.read_text() == CONFIG + '\n[routing]\nmodel = "small"\n'
    assert engine.assign("s")["L3"].config == {"routing.model": "small"}
