"""What a closed terminal, or a request to end, does to a program that has one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_REQUESTS: Final = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ending_with(end: Callable[[int], object]) -> Iterator[None]:
    """Call ``end`` with the exit code when the terminal is closed or the program is told to end.

    By default the program would end at once: nothing would clean up, nor put the terminal right.
    """
    before = {number: signal.signal(number, lambda number, _: end(128 + number)) for number in _REQUESTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
