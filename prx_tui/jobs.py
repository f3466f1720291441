"""Work beside the screen: in threads that never keep the program from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from prx_engine.engine import Engine

T = TypeVar("T")


class Refused(Exception):
    """Something cannot be done as things stand; its text is one line that says why."""


def start(
    engine: Engine,
    work: Callable[[Engine], T],
    done: Callable[[T], Any],
    failed: Callable[[Exception], Any],
    hand_over: Callable[..., Any],
) -> threading.Thread:
    """Run ``work`` in a thread of its own and hand its result over.

    Args:
        engine: passed to ``work``; the thread's connection is closed at its end.
        work: what to do.
        done: called with the result, through ``hand_over``.
        failed: called with the error, likewise.
        hand_over: calls a function with its arguments where the screen lives.
    """

    def run() -> None:
        try:
            result = work(engine)
        except Exception as error:
            hand_over(failed, error)
        else:
            hand_over(done, result)
        finally:
            engine.close()

    # A daemon: a write that waits for a locked database must not keep anybody from quitting.
    thread = threading.Thread(target=run, name="prx-job", daemon=True)
    thread.start()
    return thread
