"""The life of an experiment in a minute: create it, feed it a week of sessions, let a check decide.

It works on a throw-away database; the sessions are those of sessions.jsonl beside this file.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

SESSIONS = Path(__file__).with_name("sessions.jsonl")
PRX = (sys.executable, "-c", "from prx_tui.cli import main; main()")


def prx(folder: Path, now: str, *arguments: str) -> str:
    """Run a command as if it were ``now``, print it with what it says, and return the last line."""
    print(f"\n$ PRX_NOW={now} prx evolution {shlex.join(arguments)}", flush=True)
    environment = {
        **os.environ,
        "PRX_NOW": now,
        "PRX_CONFIG": str(folder / "config.toml"),
        "PRX_DATABASE_URL": str(folder / "experiments.db"),
    }
    done = subprocess.run(
        [*PRX, "evolution", *arguments], env=environment, text=True, stdout=subprocess.PIPE, check=True
    )
    print(done.stdout, end="", flush=True)
    return done.stdout.strip()


def main() -> None:
    """Run the example."""
    created, week_later = "2026-06-01T00:00:00Z", "2026-06-08T00:00:00Z"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        proposal = (
            *("--layer", "L3", "--hypothesis", "a longer plan gives better answers"),
            *("--treatment", "plan before answering", "--set", "agent.plan=true"),
        )
        experiment = prx(folder, created, "experiments", "create", *proposal)
        prx(folder, week_later, "import", str(SESSIONS))
        prx(folder, week_later, "check")
        prx(folder, week_later, "experiments", "--id", experiment[-8:])
        prx(folder, week_later, "fitness", "--breakdown")
        prx(folder, week_later, "verify")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
