"""Processes killed at any moment: what was acknowledged is there, and every total is the sum of its parts."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from prx_engine import Engine
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine
from tests.support.processes import nursery

AT_ONCE = 4


def kill_at_random(engine: Engine, folder: Path, kills: int, seed: int) -> list[list[Any]]:
    """Run victims, a few at a time, kill each at a random moment, and return what was acknowledged."""
    source = random.Random(seed)
    victims = []
    with nursery(folder) as processes:
        for first in range(0, kills, AT_ONCE):
            for i in range(first, min(first + AT_ONCE, kills)):
                arguments = (engine.database, folder / "config.toml", f"v{i}", source.randrange(10**9))
                victims.append(processes.start("tests.support.victim", *arguments))
            for victim in victims[first:]:
                victim.wait_for_a_line()
                time.sleep(source.uniform(0, 0.05))
                victim.kill()
                assert processes.wait(victim) == -signal.SIGKILL
    return [json.loads(line) for victim in victims for line in victim.lines()]


def missing_of(acknowledged: list[list[Any]], database: Path) -> list[object]:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        sessions = {row[0] for row in connection.execute("SELECT session_id FROM sessions")}
        reports = set(connection.execute("SELECT session_id, source FROM session_reports"))
        variants = dict(connection.execute("SELECT session_id, variant FROM assignments"))
    missing: list[object] = []
    for act, *details in acknowledged:
        session = details[0] if details else None
        if act == "assign" and variants.get(session) != details[1]:
            missing.append((act, session))
        if act == "record" and not {(session, "first"), ("shared", session)} <= reports:
            missing.append((act, session))
        if act == "import":
            missing += [
                (act, f"{session}-{k}") for k in range(details[1]) if f"{session}-{k}" not in sessions
            ]
    return missing


def killed(engine: Engine, clock: ManualClock, folder: Path, kills: int, seed: int) -> None:
    engine.create_experiment("L2", "t", hypothesis="h", min_sample_size=30)
    acknowledged = kill_at_random(engine, folder, kills, seed)
    assert len(acknowledged) >= kills
    assert {act for act, *_ in acknowledged} == {"assign", "record", "import", "check"}
    assert missing_of(acknowledged, folder / "prx.db") == []
    assert engine.verify().problems == []
    clock.advance(days=1)
    engine.check()
    assert engine.verify().problems == []


def test_nothing_acknowledged_is_lost_by_a_kill(engine: Engine, clock: ManualClock, tmp_path: Path) -> None:
    killed(engine, clock, tmp_path, kills=32, seed=1)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_a_hundred_kills(
    engine: Engine, clock: ManualClock, tmp_path: Path
) -> None:
    killed(engine, clock, tmp_path, kills=100, seed=2)


def test_a_killed_writer_leaves_no_lock_behind(
    impatient: None, engine: Engine, open_engine: OpenEngine, tmp_path: Path
) -> None:
    with nursery(tmp_path) as processes:
        victim = processes.start("tests.support.victim", engine.database, tmp_path / "config.toml", "v", 3)
        victim.wait_for_a_line()
        victim.kill()
        processes.wait(victim)
    open_engine().record("after", thumbs_up=1)
    assert engine.verify().problems == []
