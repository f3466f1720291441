"""Programs on a pseudo-terminal of their own, and what they cost."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_CHUNK = 65_536
_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[P_^][^\x1b]*\x1b\\|[@-_])")
_TICKS = os.sysconf("SC_CLK_TCK")


def benchmark_environment(**more: str) -> dict[str, str]:
    """Return an environment in which programs may keep byte code, as they do for a user."""
    left_out = {"PYTHONDONTWRITEBYTECODE", "PRX_NOW", "NO_COLOR", "COLORFGBG", "PYTHONDEVMODE"}
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    root = str(Path(__file__).resolve().parents[2])
    return kept | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": root} | more


def python(code: str, *arguments: str) -> list[str]:
    """Return the command that runs some code in this interpreter."""
    return [sys.executable, "-c", code, *arguments]


def cpu_seconds_of(command: Sequence[str], env: Mapping[str, str]) -> float:
    """Run a command to its end and return the processor time that it took."""
    process = subprocess.Popen(command, env=dict(env), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    problem = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    assert process.returncode == 0, problem.decode()
    return usage.ru_utime + usage.ru_stime


class Terminal:
    """A program on a pseudo-terminal.

    Args:
        command: what to run.
        size: columns and rows.
        env: environment of the program.
    """

    def __init__(self, command: Sequence[str], size: tuple[int, int], env: Mapping[str, str]) -> None:
        self._near, far = os.openpty()
        columns, rows = size
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._written = b""
        self.started_at = time.perf_counter()
        self._process = subprocess.Popen(
            command, env=dict(env), stdin=far, stdout=far, stderr=far, start_new_session=True
        )
        os.close(far)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._near)

    def read(self, timeout: float) -> bytes:
        """Return what the program writes next; nothing if it writes nothing for so long, or has ended."""
        if not select.select([self._near], [], [], timeout)[0]:
            return b""
        try:
            return os.read(self._near, _CHUNK)
        except OSError:  # the program has ended
            return b""

    def read_until(self, words: str, timeout: float = 60.0) -> float:
        """Return when the program has written some words, by the clock of performance."""
        end = time.perf_counter() + timeout
        wanted = words.encode()
        while time.perf_counter() < end:
            self._written += self.read(0.5)
            now = time.perf_counter()
            if wanted in _ESCAPES.sub(b"", self._written):
                self._written = b""
                return now
        raise AssertionError(f"never came: {words}; but {_ESCAPES.sub(b'', self._written)[-2000:]!r}")

    def drain(self, quiet: float) -> int:
        """Read until nothing has come for so long; return how many bytes came."""
        count = 0
        while chunk := self.read(quiet):
            count += len(chunk)
        self._written = b""
        return count

    def press(self, key: str) -> float:
        """Press a key and return the seconds until the program has begun to answer it."""
        start = time.perf_counter()
        os.write(self._near, key.encode())
        assert self.read(10), f"no answer to {key}"
        return time.perf_counter() - start

    def end_of(self, number: signal.Signals, timeout: float = 60.0) -> int:
        """Send the program a signal, and return its exit code once it has ended."""
        self._process.send_signal(number)
        end = time.perf_counter() + timeout
        while self._process.poll() is None:
            assert time.perf_counter() < end, "it does not end"
            self.read(0.05)
        return self._process.returncode

    def cpu_seconds(self) -> float:
        """Return the processor time that the program has taken so far."""
        text = Path(f"/proc/{self._process.pid}/stat").read_text()
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def seconds_to_end(self, key: str, timeout: float = 30.0) -> float:
        """Press a key that ends the program and return how long that takes."""
        start = time.perf_counter()
        os.write(self._near, key.encode())
        while self._process.poll() is None:
            assert time.perf_counter() - start < timeout, "it does not end"
            self.read(0.005)
        return time.perf_counter() - start
