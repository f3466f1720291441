from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.study import watching
from tests.study.report import difference, interval, promises
from tests.study.scenarios import SCENARIOS
from tests.study.simulation import Tally, simulate

NO_EFFECT = [name for name, scenario in SCENARIOS.items() if scenario.effect == 0]
COMPARED = [name for name, scenario in SCENARIOS.items() if scenario.reference]
SAMPLE = (
    "no effect, feedback in 2 %",
    "no effect, feedback in 30 % from day 8",
    "no effect, half of the checks missed",
    "no effect, checked only when treatment would win",
    "no effect, extended by odd hours while it leads",
    "no effect, beta(.5, 3) and beta(2, 12)",
    "no effect, shrinking spread",
)


def kept(name: str, tally: Tally) -> bool:
    return all(promises(name, tally).values())


@pytest.mark.parametrize("name", SAMPLE)
def test_a_small_study_keeps_the_promises(name: str) -> None:
    tally = simulate(name, 60)
    assert sum(tally.conclusions.values()) == tally.runs == 60
    assert kept(name, tally), tally


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NO_EFFECT)
def test_the_promises_are_kept_in_every_scenario(name: str) -> None:
    runs = max(round(4000 * SCENARIOS[name].runs_share), 200)
    tally = simulate(name, runs, os.cpu_count() or 1)
    assert kept(name, tally), tally


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", COMPARED)
def test_the_study_agrees_with_an_independent_simulator(name: str) -> None:
    apart = difference(name, simulate(name, 4000, os.cpu_count() or 1))
    assert apart is not None
    assert max(map(abs, apart.values())) < 3.5, apart


@pytest.mark.parametrize("watch", watching.WATCHES, ids=lambda watch: watch.name)
def test_a_small_study_of_watches(watch: watching.Watch) -> None:
    runs = 100
    low, high = interval(watching.rollbacks(watch, runs), runs)
    if not watch.harmful:
        assert low <= 0.05
    elif watch.a_day >= 40:
        assert high > 0.95


def test_a_study_says_what_it_has_found(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    command = [
        sys.executable, "-m", "tests.study", "--runs", "20", "--processes", "1", "--results", str(results),
        "--only", "no effect, normal, 200",
    ]  # fmt: skip
    root = Path(__file__).parents[2]
    first = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "| no effect, normal, 200 a day | 20 |" in first.stdout
    assert "## Against an independent simulator" in first.stdout
    again = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert again.stdout == first.stdout
    assert again.stderr == ""


def test_a_broken_promise_is_noticed() -> None:
    name = "no effect, normal, 40 a day"
    assert not kept(name, Tally(1000, tally_of(treatment_wins=60, deferred=940)))
    assert not kept(name, Tally(1000, tally_of(control_wins=90, deferred=910)))
    assert not kept(name, Tally(1000, tally_of(regression=60, deferred=940)))
    assert kept(name, Tally(1000, tally_of(treatment_wins=25, control_wins=20, deferred=955)))


def tally_of(**conclusions: int) -> Counter[str]:
    return Counter(conclusions)
