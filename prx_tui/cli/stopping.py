"""Stopping a command that runs for ever: SIGINT and SIGTERM end its pause, and never its work half-way."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol


class Stop(Protocol):
    """Tells whether to stop."""

    def wait(self, seconds: float) -> bool:
        """Pause for some time, shorter if told to stop; return whether to stop."""
        ...


class _Pipe:
    """A pipe that signals write to: unlike a lock, it may be used in a signal handler."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self._told = False

    def tell(self, number: int, frame: FrameType | None) -> None:
        if self._told and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._told = True
        os.write(self._write, b".")

    def wait(self, seconds: float) -> bool:
        if not self._told:
            select.select([self._read], [], [], seconds)
        return self._told

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


@contextmanager
def stop_signals() -> Iterator[Stop]:
    """Catch SIGINT and SIGTERM for as long as the context lasts; a second SIGINT interrupts at once."""
    pipe = _Pipe()
    earlier = {number: signal.signal(number, pipe.tell) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield pipe
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        pipe.close()
