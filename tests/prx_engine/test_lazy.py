from __future__ import annotations

import threading

from prx_engine.lazy import lazy


class Holder:
    def __init__(self) -> None:
        self.made = 0
        self.entered = threading.Event()
        self.leave = threading.Event()

    @lazy
    def value(self) -> int:
        """A number."""
        self.made += 1
        return self.made

    @lazy
    def slow(self) -> str:
        self.entered.set()
        assert self.leave.wait(10)
        return "slow"


def test_a_lazy_attribute_is_made_once_for_each_object() -> None:
    first, second = Holder(), Holder()
    assert (first.value, first.value, second.value) == (1, 1, 1)
    assert first.made == 1


def test_making_one_keeps_nobody_else_waiting() -> None:
    busy = Holder()
    thread = threading.Thread(target=lambda: busy.slow)
    thread.start()
    assert busy.entered.wait(10)
    other = Holder()
    other.leave.set()
    assert other.slow == "slow"
    busy.leave.set()
    thread.join()
