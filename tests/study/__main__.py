"""Run the study and print its tables: ``python -m tests.study --help`` tells how."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.study import clustered, watching
from tests.study.report import conclusions_table, rate, reference_table, table
from tests.study.scenarios import SCENARIOS
from tests.study.simulation import Tally, simulate

_FEWEST = 20


def main() -> None:
    """Run what the command line asks for."""
    arguments = _arguments()
    names = [name for name in SCENARIOS if re.search(arguments.only, name)]
    tallies: dict[str, Tally] = {}
    extras: list[str] = []
    if arguments.extras:
        extras = [_clusters(arguments.runs), _watches(arguments.runs // 4)]
    for name in names:
        began = time.monotonic()
        runs = max(round(arguments.runs * SCENARIOS[name].runs_share), _FEWEST)
        tallies[name] = simulate(name, runs, arguments.processes)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
        if arguments.output:
            arguments.output.write_text(_document(tallies, extras))
    if not arguments.output:
        print(_document(tallies, extras))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.study", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="experiments a scenario (10000)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="one a core")
    parser.add_argument("--only", default="", metavar="REGEX", help="scenarios whose name matches")
    parser.add_argument("--no-extras", dest="extras", action="store_false", help="no clusters, no watch")
    parser.add_argument("--output", type=Path, help="write the tables here, after each scenario")
    return parser.parse_args()


def _document(tallies: Mapping[str, Tally], extras: Sequence[str]) -> str:
    parts = ["## How experiments end", conclusions_table(tallies)]
    if any(SCENARIOS[name].reference for name in tallies):
        parts += ["## Against an independent simulator", reference_table(tallies)]
    return "\n\n".join([*parts, *extras]) + "\n"


def _clusters(repetitions: int) -> str:
    rows = []
    for source in (None, clustered.sample()):
        for split in clustered.SPLITS:
            found = clustered.errors(split, repetitions, source)
            name = source.name if source else "made up"
            rows.append([name, split, *(rate(found[method], repetitions) for method in clustered.METHODS)])
    return "## Sessions of the same task\n\n" + table(["runs", "arms", *clustered.METHODS], rows)


def _watches(runs: int) -> str:
    rows = [
        [watch.name, f"{runs}", rate(watching.rollbacks(watch, runs), runs)] for watch in watching.WATCHES
    ]
    return "## The watch after a promotion\n\n" + table(["scenario", "runs", "taken back"], rows)


if __name__ == "__main__":
    main()
