"""Runs an engine's action again and again, killed at every step that changes a file or the database.

As a program: ``python -m tests.support.killing FOLDER RESULTS CONFIG ACTION``, the action promote,
rollback or open. FOLDER is brought
back to what it was before each run, and moved to RESULTS/n after the run that was killed at step n. The last
one is not killed. Each run is a fork: only its own process dies.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prx_engine import Engine
from prx_engine.store import Store
from tests.support.clock import ManualClock

STEPS = ("fchmod", "fsync", "link", "mkdir", "replace", "unlink")


class Killer:
    """Kills its own process at the n-th step."""

    def __init__(self, at: int) -> None:
        self._left = at

    def step(self) -> None:
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self) -> None:
        for name in STEPS:
            setattr(os, name, self._before(getattr(os, name)))
        os.write = self._torn(os.write)
        Store.write = self._around(Store.write)  # type: ignore[method-assign]

    def _before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def killed(*arguments: Any, **options: Any) -> Any:
            self.step()
            return call(*arguments, **options)

        return killed

    def _torn(self, write: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
        """A step before the write, and one in the middle of it."""

        def killed(descriptor: int, data: Any) -> int:
            self.step()
            if self._left == 1:
                write(descriptor, data[: len(data) // 2])
            self.step()
            return write(descriptor, data)

        return killed

    def _around(self, write: Callable[..., Any]) -> Callable[..., Any]:
        """Steps before a transaction, at its end, and after it."""

        def killed(store: Store, work: Callable[[], Any]) -> Any:
            def to_the_end() -> Any:
                result = work()
                self.step()
                return result

            self.step()
            result = write(store, to_the_end)
            self.step()
            return result

        return killed


def act(folder: Path, config: Path, action: str) -> None:
    with Engine.open(folder / "prx.db", config=config, clock=ManualClock(), actor="tester") as engine:
        if action == "promote":
            (experiment,) = engine.experiments("all")
            engine.promote(experiment.experiment_id, "it is better")
        elif action == "rollback":
            engine.rollback(reason="it is worse")


def killed_at(step: int, folder: Path, config: Path, action: str) -> bool:
    """Run the action, killed at a step; tell whether there was such a step."""
    child = os.fork()
    if not child:
        Killer(step).arm()
        act(folder, config, action)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if status:
        sys.exit(f"step {step}: the action failed")
    return False


def main(folder: Path, results: Path, config: Path, action: str) -> None:
    template = results / "template"
    shutil.copytree(folder, template, symlinks=True)
    step = 0
    killed = True
    while killed:
        step += 1
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder, symlinks=True)
        killed = killed_at(step, folder, config, action)
        shutil.move(folder, results / str(step))
    shutil.copytree(template, folder, symlinks=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
