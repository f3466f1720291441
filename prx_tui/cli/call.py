"""What every command shares: the options that stand at every level, and the way to the engine."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

from prx_tui.cli.output import say
from prx_tui.cli.reporting import Refused
from prx_tui.cli.stopping import Stop, stop_signals

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from prx_engine import Engine

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Call:
    """One run of the command line.

    Attributes:
        database: named on the command line, at whatever level.
        json: whether JSON is wanted, asked for at whatever level.
        pause: sleeps for a number of seconds.
        monotonic: tells seconds that only grow.
        stopping: gives what tells a command that runs for ever to stop.
    """

    database: str | None = None
    json: bool = False
    pause: Callable[[float], object] = field(default_factory=lambda: threading.Event().wait)
    monotonic: Callable[[], float] = time.monotonic
    stopping: Callable[[], AbstractContextManager[Stop]] = stop_signals

    def engine(self, *, create: bool = False) -> Engine:
        """Open the engine; only commands that put something in make a database that does not exist."""
        from prx_engine import Engine

        return Engine.open(self.database, create=create)


pass_call = click.make_pass_decorator(Call)


def common_options(command: F) -> F:
    """Give a command or group the options that may stand at every level."""
    as_json = click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=_take_json,
        help="Write JSON. May stand before or after a subcommand.",
    )
    database = click.option(
        "--database",
        metavar="DATABASE",
        expose_value=False,
        callback=_take_database,
        help="Path, sqlite:///PATH or postgresql://… of the database; else $PRX_DATABASE_URL, else the"
        " configured one. May stand at every level.",
    )
    return database(as_json(command))


def _call(context: click.Context) -> Call:
    root = context.find_root()
    if root.obj is None:
        root.obj = Call()
    if context.obj is None:
        context.obj = root.obj
    call: Call = root.obj
    return call


def _take_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    call = _call(context)
    call.json = call.json or value


def _take_database(context: click.Context, _: click.Parameter, value: str | None) -> None:
    call = _call(context)
    if value == "":
        raise click.BadParameter("it is empty; leave the option out to use the configured database")
    if value is not None:
        call.database = value


def complete_experiments(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ids of experiments that begin, or end, with what is typed so far; the newest first."""
    from click.shell_completion import CompletionItem

    from prx_engine.errors import PrxError
    from prx_tui.text import safe_text

    try:
        with _call(context).engine() as engine:
            experiments = engine.experiments("all", limit=200)
    except PrxError:
        return []
    return [
        CompletionItem(
            experiment.experiment_id, help=f"{experiment.status}: {safe_text(experiment.hypothesis, 60)}"
        )
        for experiment in experiments
        if experiment.experiment_id.startswith(incomplete)
    ]


def experiment_argument(command: F) -> F:
    """Give a command its ID argument."""
    argument = click.argument("experiment_id", metavar="ID", shell_complete=complete_experiments)
    return argument(command)


def refuse_fixed_clock(command: str) -> None:
    """Refuse to wait for a clock that stands still.

    Raises:
        Refused: if ``PRX_NOW`` is set.
    """
    if os.environ.get("PRX_NOW"):
        raise Refused(f"PRX_NOW stops the clock, and {command} waits for time to pass; unset it")


def say_if_disabled(engine: Engine) -> None:
    """Say that experiments are switched off, if they are."""
    if not engine.settings.experiments.enabled:
        say(
            "experiments are switched off (self_evolution.experiments.enabled = false): no new experiments,"
            " no checks, every session gets the defaults"
        )
