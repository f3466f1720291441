"""The commands that open a screen."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from typing import Final

import click

from prx_tui.cli.call import Call, common_options, pass_call, refuse_fixed_clock
from prx_tui.cli.reporting import Refused, ReportingCommand

_UNABLE: Final = frozenset({"dumb", "unknown"})
"""Rich does not measure these, Textual does: unless both find the same size, resizing never ends."""


def standing_at_a_terminal() -> bool:
    """Tell whether a person is at both ends of this command."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def refuse_unable_terminal(what: str, instead: str) -> None:
    """Refuse a terminal on which no screen can be drawn.

    Args:
        what: cannot be shown.
        instead: what else helps.

    Raises:
        Refused: if the terminal cannot move its cursor, or does not tell its size.
    """
    term = os.environ.get("TERM", "").lower()
    if term in _UNABLE:
        raise Refused(
            f"{what} needs a terminal that can move the cursor; TERM is {term}: set TERM, or {instead}"
        )
    if not all(shutil.get_terminal_size(fallback=(0, 0))):
        raise Refused(
            f"{what} needs a terminal that tells its size; `stty rows 24 columns 80` sets it, or {instead}"
        )


def open_dashboard(database: str | None, *, read_only: bool) -> int:
    """Open the dashboard and return its exit code.

    Raises:
        Refused: without a terminal that can show it, or with a clock that stands still.
    """
    refuse_fixed_clock("the dashboard")
    if not standing_at_a_terminal():
        raise Refused("the dashboard needs a terminal; `prx evolution status` tells the same in a few lines")
    refuse_unable_terminal("the dashboard", "use `prx evolution status`")
    gc.disable()  # until the first picture, when the dashboard collects again: hardly anything is garbage
    from prx_tui.app import run_dashboard

    return run_dashboard(database, read_only=read_only)


@click.command(
    cls=ReportingCommand, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@common_options
@click.option("--read-only", is_flag=True, help="Show only: no action changes anything, no checks run.")
@pass_call
def dashboard(call: Call, read_only: bool) -> int:
    """Watch and steer the experiments; checks run while it is open.

    \b
    Examples:
      prx dashboard
      prx dashboard --read-only --database /srv/agent/experiments.db
    """
    if call.json:
        raise click.UsageError("--json: the dashboard has nothing to write")
    return open_dashboard(call.database, read_only=read_only)


@click.command
@click.option("--seed", type=int, default=1, show_default=True, help="Another number, another story.")
@click.option(
    "--screenshots",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Write pictures of the screens into this folder instead of opening them.",
)
def demo(seed: int, screenshots: str | None) -> int:
    """Open the dashboard on a throw-away database, with a simulated agent behind it.

    \b
    Examples:
      prx demo
      prx demo --screenshots pictures
    """
    if screenshots is None:
        refuse_fixed_clock("the demo")
        if not standing_at_a_terminal():
            raise Refused("the demo needs a terminal; with --screenshots DIR it writes pictures instead")
        refuse_unable_terminal("the demo", "write pictures with --screenshots DIR")
    from prx_tui.demo import run_demo

    return run_demo(seed=seed, screenshots=screenshots)
