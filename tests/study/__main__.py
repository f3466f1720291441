"""Run the study and print its tables.

With --results it keeps what it has found, goes on where it was cut short, and does no scenario again that
has as many runs already.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path

from tests.study import clustered, watching
from tests.study.report import conclusions_table, rate, reference_table, table
from tests.study.results import Results
from tests.study.scenarios import SCENARIOS
from tests.study.simulation import simulate

_FEWEST = 20
_CLUSTERS, _WATCHES = "clusters", "watches"


def main() -> None:
    """Run what the command line asks for."""
    arguments = _arguments()
    results = Results(arguments.results)
    for name in SCENARIOS:
        if re.search(arguments.only, name):
            _run(results, name, arguments.runs, arguments.processes)
    if arguments.extras:
        _run_extras(results, arguments.runs)
    print(_document(results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.study", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="experiments a scenario (10000)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="one a core")
    parser.add_argument("--only", default="", metavar="REGEX", help="scenarios whose name matches")
    parser.add_argument("--extras", action="store_true", help="clusters and the watch after a promotion, too")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep and continue results in this file")
    return parser.parse_args()


def _run(results: Results, name: str, runs: int, processes: int) -> None:
    wanted = max(round(runs * SCENARIOS[name].runs_share), _FEWEST)
    done = results.tallies().get(name)
    if done is not None and done.runs >= wanted:
        return
    began = time.monotonic()
    results.keep(name, simulate(name, wanted, processes))
    print(f"{name}: {wanted} runs, {time.monotonic() - began:.0f} s", file=sys.stderr)


def _run_extras(results: Results, runs: int) -> None:
    rows = []
    for source in (None, clustered.sample()):
        for split in clustered.SPLITS:
            found = clustered.errors(split, runs, source)
            name = source.name if source else "made up"
            rows.append(
                [name, split, f"{runs}", *(rate(found[method], runs) for method in clustered.METHODS)]
            )
    results.keep_rows(_CLUSTERS, rows)
    rows = [
        [watch.name, f"{runs}", rate(watching.rollbacks(watch, runs), runs)] for watch in watching.WATCHES
    ]
    results.keep_rows(_WATCHES, rows)


def _document(results: Results) -> str:
    found = results.tallies()
    tallies = {name: found[name] for name in SCENARIOS if name in found}
    parts = ["## How experiments end", conclusions_table(tallies)]
    if any(SCENARIOS[name].reference for name in tallies):
        parts += ["## Against an independent simulator", reference_table(tallies)]
    clusters, watches = results.rows(_CLUSTERS), results.rows(_WATCHES)
    if clusters:
        titles = ["runs", "arms", "tests", *clustered.METHODS]
        parts += ["## Sessions of the same task", table(titles, clusters)]
    if watches:
        parts += ["## The watch after a promotion", table(["scenario", "runs", "taken back"], watches)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
