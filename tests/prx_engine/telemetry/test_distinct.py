from __future__ import annotations

import pytest

from prx_engine.telemetry import distinct
from prx_engine.telemetry.distinct import Distinct


@pytest.mark.parametrize("in_memory", [3, 1000, 1_000_000])
def test_names_are_counted_once_wherever_they_are_kept(
    in_memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distinct, "_IN_MEMORY", in_memory)
    names = Distinct()
    for number in range(5000):
        names.update([f"name-{number % 2500}"])
        if number in (10, 2000):
            assert names.count() == number + 1
    assert names.count() == 2500
    assert names.count() == 2500
