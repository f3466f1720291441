from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from prx_tui.demo.clock import DEMO_NOW, DemoClock
from prx_tui.demo.ids import SeededIds


class Seconds:
    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> float:
        return self.passed


def test_the_clock_stands_still_until_it_is_told_to_run() -> None:
    seconds = Seconds()
    clock = DemoClock(DEMO_NOW, seconds)
    seconds.passed = 100
    assert clock.now() == DEMO_NOW
    clock.run(2.5)
    seconds.passed = 104
    assert clock.now() == DEMO_NOW + timedelta(hours=10)


def test_another_pace_goes_on_from_the_present_moment() -> None:
    seconds = Seconds()
    clock = DemoClock(DEMO_NOW, seconds)
    clock.run(2)
    seconds.passed = 1
    clock.run(0.5)
    seconds.passed = 3
    assert clock.now() == DEMO_NOW + timedelta(hours=3)
    clock.run(0)
    seconds.passed = 1000
    assert clock.now() == DEMO_NOW + timedelta(hours=3)


def test_the_clock_is_moved_forward_only() -> None:
    clock = DemoClock(DEMO_NOW, Seconds())
    clock.move_to(DEMO_NOW + timedelta(days=1))
    clock.move_to(DEMO_NOW)
    assert clock.now() == DEMO_NOW + timedelta(days=1)


def test_ids_are_uuid7_of_the_time_and_the_seed() -> None:
    first, again, other = SeededIds(1), SeededIds(1), SeededIds(2)
    identifier = first(DEMO_NOW)
    assert identifier == again(DEMO_NOW) != other(DEMO_NOW)
    assert first(DEMO_NOW) != identifier
    uuid = UUID(identifier)
    assert (uuid.version, uuid.variant) == (7, "specified in RFC 4122")
    assert uuid.int >> 80 == int(DEMO_NOW.timestamp() * 1000)
