"""Experiment ids: UUIDv7 that carry the time of the engine's clock."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from prx_engine.ids import short, uuid7


@pytest.mark.parametrize(
    "time",
    [
        datetime(2026, 6, 1, tzinfo=UTC),
        datetime(2026, 6, 1, 8, 0, 0, 123_456, tzinfo=UTC),
        datetime(1971, 1, 1, tzinfo=UTC),
        datetime(2199, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ],
)
def test_an_id_is_a_version_7_uuid_of_the_given_time(time: datetime) -> None:
    identifier = UUID(uuid7(time))
    assert (identifier.version, identifier.variant) == (7, "specified in RFC 4122")
    assert identifier.int >> 80 == (time - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000 // 1
    assert str(identifier) == str(identifier).lower()


def test_ids_of_one_moment_differ() -> None:
    time = datetime(2026, 6, 1, tzinfo=UTC)
    assert len({uuid7(time) for _ in range(10_000)}) == 10_000


def test_ids_of_later_times_sort_later() -> None:
    times = [datetime(2026, 6, day, tzinfo=UTC) for day in range(1, 30)]
    identifiers = [uuid7(time) for time in times]
    assert identifiers == sorted(identifiers)


def test_displays_show_the_last_characters() -> None:
    assert short("0197285e-4c00-7abc-8def-0123456789ab") == "456789ab"
