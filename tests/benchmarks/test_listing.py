"""The budget of the plain listing: at most twice the imports that nothing of the kind can do without."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from prx_engine import Engine
from prx_engine.dimensions import LAYERS
from tests.support.clock import ManualClock
from tests.support.terminals import benchmark_environment, cpu_seconds_of, python

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

RUNS = 15
MOST = 2.0
FLOOR = "import click, peewee, rich.table"
LISTING = "import sys; sys.argv[0] = 'prx'; from prx_tui.cli import main; main()"


def test_the_plain_listing_costs_at_most_twice_its_imports(tmp_path: Path) -> None:
    """Compare processor time, from the start of the interpreter to its end: it waits for nothing, and the
    time on the wall says as much about what else the machine does."""
    database = tmp_path / "prx.db"
    with Engine.open(database, config=tmp_path / "none.toml", clock=ManualClock()) as engine:
        for layer in LAYERS:
            engine.create_experiment(layer, "proposed", hypothesis=f"{layer} gets better")
    env = benchmark_environment(PRX_CONFIG=str(tmp_path / "none.toml"), HOME=str(tmp_path))
    listing = python(LISTING, "evolution", "experiments", "--database", str(database))
    floor = python(FLOOR)
    for command in (listing, floor):
        cpu_seconds_of(command, env)  # writes the byte code
    measured = [(cpu_seconds_of(listing, env), cpu_seconds_of(floor, env)) for _ in range(RUNS)]
    ours, least = (statistics.median(times) for times in zip(*measured, strict=True))
    print(f"listing: {ours * 1000:.0f} ms of processor time, imports {least * 1000:.0f}: {ours / least:.2f}")
    assert ours <= MOST * least
