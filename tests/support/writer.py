"""A process that writes sessions."""

from __future__ import annotations

from prx_engine import Engine
from tests.support.clock import ManualClock


def main(database: str, config: str, name: str, count: str) -> None:
    """Assign and record sessions of its own, and add to one that all writers share."""
    with Engine.open(database, config=config, clock=ManualClock()) as engine:
        for i in range(int(count)):
            engine.assign(f"{name}-{i}")
            engine.record(f"{name}-{i}", thumbs_up=1, tokens=5210)
            engine.record("shared", source=f"{name}-{i}", thumbs_up=1, tool_calls=2, tool_calls_succeeded=1)
