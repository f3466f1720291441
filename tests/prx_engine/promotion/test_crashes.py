"""A promotion or rollback whose process dies at any step is done or undone at the next start."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prx_engine import Engine
from tests.support.clock import ManualClock

TARGET = b"# the agent's own\r\n[memory]\r\ntop_k = 5 # five\r\n\r\n[model]\r\nname = 'large'\r\n"
PROMPT = "You help.\n"
CHANGE = {
    "config": {"memory.top_k": 8, "routing.retry": [1, 2]},
    "files": {"prompts/system.md": "You help a lot.\n", "notes/new.md": "new\n"},
}
PROMOTED = TARGET.replace(b"5 #", b"8 #") + b"\r\n[routing]\r\nretry = [1, 2]\r\n"
OLD = {"config.toml": TARGET, "workspace/prompts/system.md": PROMPT.encode()}
NEW = {
    "config.toml": PROMOTED,
    "workspace/prompts/system.md": b"You help a lot.\n",
    "workspace/notes/new.md": b"new\n",
}
FEWEST_STEPS = 30


class Deployment:
    def __init__(self, root: Path) -> None:
        self.folder = root / "deployment"
        self.results = root / "results"
        self.results.mkdir()
        (self.folder / "workspace" / "prompts").mkdir(parents=True)
        for name, content in OLD.items():
            (self.folder / name).write_bytes(content)
        (self.folder / "workspace" / "prompts" / "system.md").chmod(0o640)
        with self.engine() as engine:
            self.id = engine.create_experiment("L2", CHANGE, hypothesis="better").experiment_id

    def engine(self) -> Engine:
        return Engine.open(
            self.folder / "prx.db",
            config=self.folder / "config.toml",
            clock=ManualClock(),
            actor="tester",
        )

    def killed(self, action: str) -> list[int]:
        """Run an action killed at each of its steps; the last run is not killed."""
        root = Path(__file__).parents[3]
        program = [sys.executable, "-m", "tests.support.killing"]
        paths = [str(self.folder), str(self.results), str(self.folder / "config.toml")]
        subprocess.run([*program, *paths, action], cwd=root, check=True, timeout=100)
        return sorted(int(path.name) for path in self.results.iterdir() if path.name.isdigit())

    def bring_back(self, step: int) -> None:
        shutil.rmtree(self.folder)
        shutil.move(self.results / str(step), self.folder)

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and not path.name.startswith("prx.db") and ".evolution" not in path.parts
        }

    def kept(self) -> list[str]:
        """The old texts in the agent's rollback folder, whole."""
        files = [path for path in (self.folder / ".evolution").rglob("*") if path.is_file()]
        return sorted(json.loads(path.read_text())["content"] for path in files)


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path)


def test_a_promotion_killed_at_any_step_is_done_or_undone_at_the_next_start(deployment: Deployment) -> None:
    steps = deployment.killed("promote")
    assert len(steps) > FEWEST_STEPS
    seen = set()
    for step in steps:
        deployment.bring_back(step)
        with deployment.engine() as engine:
            state = engine.experiment(deployment.id)
            seen.add((state.status, state.promotion))
            expected = NEW if state.promotion == "applied" else OLD
            assert deployment.files() == expected, step
            assert deployment.kept() == ([TARGET.decode(), PROMPT] if expected is NEW else []), step
            assert (deployment.folder / "workspace/prompts/system.md").stat().st_mode & 0o777 == 0o640
            if state.promotion == "pending":
                engine.check()
                assert engine.experiment(deployment.id).promotion == "applied"
                assert deployment.files() == NEW, step
    assert seen == {("running", "none"), ("converged", "pending"), ("converged", "applied")}


def test_a_rollback_killed_at_any_step_is_done_or_undone_at_the_next_start(deployment: Deployment) -> None:
    with deployment.engine() as engine:
        assert engine.promote(deployment.id, "it is better").promotion == "applied"
    steps = deployment.killed("rollback")
    assert len(steps) > FEWEST_STEPS
    seen = set()
    for step in steps:
        deployment.bring_back(step)
        with deployment.engine() as engine:
            state = engine.experiment(deployment.id).promotion
            seen.add(state)
            assert deployment.files() == (OLD if state == "rolled_back" else NEW), step
            if state == "applied":
                assert engine.rollback().promotion == "rolled_back"
                assert deployment.files() == OLD, step
    assert seen == {"applied", "rolled_back"}


def test_a_recovery_killed_at_any_step_is_recovered_from(deployment: Deployment) -> None:
    mixed = []
    for step in deployment.killed("promote"):
        deployment.bring_back(step)
        found = {name: content for name, content in deployment.files().items() if name in NEW}
        if found not in (OLD, NEW):
            mixed.append(step)
            shutil.copytree(deployment.folder, deployment.folder.with_name(f"mixed-{step}"))
    assert mixed
    shutil.rmtree(deployment.folder)
    shutil.rmtree(deployment.results)
    deployment.results.mkdir()
    shutil.move(deployment.folder.with_name(f"mixed-{mixed[-1]}"), deployment.folder)
    for step in deployment.killed("open"):
        deployment.bring_back(step)
        with deployment.engine() as engine:
            assert engine.experiment(deployment.id).promotion == "pending"
            assert deployment.files() == OLD, step
