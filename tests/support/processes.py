"""Processes that write to one database at the same time, and die when told to.

They are forked by a process that has everything imported already: an interpreter of their own each would
take longer to start than their work does.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Child:
    """A process; what it prints goes to a file, where it stays when the process is killed."""

    pid: int
    output: Path

    def lines(self) -> list[str]:
        """The whole lines that it has printed so far."""
        return [line for line in self.output.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def wait_for_a_line(self) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self.lines():
            assert time.monotonic() < deadline, f"no line in {self.output}"
            time.sleep(0.002)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


class Nursery:
    """Forks processes and waits for them."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._children = 0

    def start(self, module: str, *arguments: object) -> Child:
        """Start ``main`` of a module with the arguments, as texts."""
        self._children += 1
        output = self._folder / f"child-{self._children}.txt"
        output.touch()
        return Child(self._ask(["start", module, str(output), *map(str, arguments)]), output)

    def wait(self, child: Child) -> int:
        """Wait for a process to end; return its exit code, or the negative number of its signal."""
        return self._ask(["wait", child.pid])

    def _ask(self, command: list[object]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextlib.contextmanager
def nursery(folder: Path) -> Iterator[Nursery]:
    """Start the process that forks; the outputs of its children are files in the folder."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.processes"],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Nursery(process, folder)
        assert process.stdin is not None
        process.stdin.close()


def _serve() -> None:
    importlib.import_module("prx_engine.experiments.convergence")
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        if command == "wait":
            print(os.waitstatus_to_exitcode(os.waitpid(arguments[0], 0)[1]), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            _run(*arguments)
        print(pid, flush=True)


def _run(module: str, output: str, *arguments: str) -> None:
    code = 1
    try:
        with open(output, "a") as sys.stdout:
            importlib.import_module(module).main(*arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve()
