"""`check`, `preview`, `wait` and `watch`: analysing experiments, and waiting for what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from prx_engine.errors import PrxError, StoreBusy
from prx_engine.store import without_password
from prx_tui.cli.call import (
    Call,
    common_options,
    experiment_argument,
    pass_call,
    refuse_fixed_clock,
    say_if_disabled,
)
from prx_tui.cli.durations import Duration
from prx_tui.cli.importing import say_followed
from prx_tui.cli.listing import outlook, short, single_tests
from prx_tui.cli.output import put, put_fields, put_json, say, styled
from prx_tui.cli.reporting import Refused
from prx_tui.formatting import half_up, moment, p_value, percent, until, words
from prx_tui.text import safe_text

if TYPE_CHECKING:
    from prx_engine import Engine
    from prx_engine.records import CheckResult, Experiment, Preview

_POLL_SECONDS: Final = 1.0
_LONGEST_BACKOFF_SECONDS: Final = 600.0
_QUIET: Final = ("not_due", "held", "busy")
"""Outcomes that `watch` does not tell: nothing has happened."""


@click.command
@common_options
@pass_call
def check(call: Call) -> None:
    """Run the checks that are due, and tell what happened to each active experiment and why.

    Checking twice changes nothing, so a cron job every few minutes is harmless.

    \b
    Examples:
      prx evolution check
      */10 * * * * prx evolution check        a line of a crontab
    """
    with call.engine() as engine:
        results = engine.check()
        if call.json:
            put_json(results)
            return
        say_if_disabled(engine)
        if not results:
            say("no active experiments")
        for result in results:
            put(result_line(result, engine.clock.now()))


def result_line(result: CheckResult, now: datetime) -> str:
    """Return what one check found, in one line."""
    outcome: str = words(result.outcome)
    if result.conclusion is not None:
        outcome = f"{outcome}, {words(result.conclusion)}"
    parts = [safe_text(result.reason)]
    parts += [safe_text(item) for item in result.missing]
    if result.next_check_at is not None:
        parts.append(f"next check {moment(result.next_check_at)} UTC ({until(result.next_check_at, now)})")
    return f"{short(result.experiment_id)}  {result.layer}  {outcome}: {'; '.join(parts)}"


@click.command
@common_options
@experiment_argument
@pass_call
def preview(call: Call, experiment_id: str) -> None:
    """Analyse the data of this moment as a check would; nothing is decided and nothing written.

    Peek as often as you like: only scheduled checks decide, so peeking costs nothing.

    \b
    Example:
      prx evolution preview 4f1c09ab
    """
    with call.engine() as engine:
        result = engine.preview(experiment_id)
        if call.json:
            put_json(result)
        else:
            _put_preview(result)


def _put_preview(result: Preview) -> None:
    from prx_tui.cli.details import interval

    put(styled(f"Preview of {result.experiment_id} at {moment(result.at)} UTC", bold=True))
    verdict = words(result.conclusion) if result.conclusion else "it would go on"
    fields = [("If this were a check", f"{verdict}: {safe_text(result.reason)}")]
    if result.blocked_by:
        fields.append(("Treatment cannot win", ", ".join(words(block) for block in result.blocked_by)))
    if result.missing:
        fields.append(("Missing for a look", "; ".join(safe_text(item) for item in result.missing)))
    found = result.comparison
    if found is not None:
        fields += [
            ("Lift", f"{percent(found.lift, signed=True)}  ({interval(found.lift_interval)})"),
            ("Difference", half_up(found.difference, 4, signed=True)),
            ("Hedges' g", half_up(found.hedges_g, 2, signed=True)),
            ("p / needed", f"{p_value(found.p_value)} / {p_value(result.alpha_threshold)}"),
            ("Test", f"{found.test}  ({single_tests(found)})"),
            ("Significant", "yes" if result.significant else "no"),
        ]
    put_fields(fields)


@click.command
@common_options
@experiment_argument
@click.option("--timeout", type=Duration(), metavar="TIME", help="Give up after 90, 90s, 10m, 2h or 7d.")
@pass_call
def wait(call: Call, experiment_id: str, timeout: float | None) -> int:
    """Wait until an experiment has ended, and print its conclusion.

    It runs no checks itself; something else has to. Exit code 1 after the timeout.

    \b
    Example:
      prx evolution wait 4f1c09ab --timeout 7d
    """
    refuse_fixed_clock("wait")
    with call.engine() as engine:
        experiment = engine.experiment(experiment_id)
        if experiment.active:
            say(f"waiting for {short(experiment.experiment_id)}: {outlook(experiment, engine.clock.now())}")
            experiment = _wait(call, engine, experiment, timeout)
        if call.json:
            put_json(experiment)
        elif experiment.conclusion is not None:
            put(experiment.conclusion)
        say(outlook(experiment, engine.clock.now()))
        return 0


def _wait(call: Call, engine: Engine, experiment: Experiment, timeout: float | None) -> Experiment:
    deadline = None if timeout is None else call.monotonic() + timeout
    watch = engine.watch()
    try:
        while experiment.active:
            left = _POLL_SECONDS if deadline is None else deadline - call.monotonic()
            if left <= 0:
                raise Refused(
                    f"{short(experiment.experiment_id)} is still {experiment.status}; gave up waiting"
                )
            call.pause(min(_POLL_SECONDS, left))
            try:
                if watch.changed():
                    experiment = engine.experiment(experiment.experiment_id)
            except StoreBusy:
                continue
        return experiment
    finally:
        watch.close()


@click.command
@common_options
@click.option(
    "--interval",
    type=Duration(),
    default="30s",
    show_default=True,
    metavar="TIME",
    help="How often to look whether a check is due.",
)
@pass_call
def watch(call: Call, interval: float) -> None:
    """Run the checks when they are due, for ever, and print what comes of them.

    It also follows the sources of telemetry that the configuration names.

    A database that is busy or away is tried again. Ctrl-C or SIGTERM ends it cleanly.

    \b
    Examples:
      prx evolution watch
      prx evolution watch --json --interval 5m >> checks.jsonl
    """
    refuse_fixed_clock("watch")
    if interval < 1:
        raise click.BadParameter("--interval: at least 1 second")
    # What it follows may bring the first sessions.
    with call.engine(create=True) as engine, call.stopping() as stop, closing(engine.follow()) as follower:
        say(f"running the checks of {safe_text(without_password(engine.database))}; Ctrl-C stops")
        say_if_disabled(engine)
        for source in follower.absent():
            say(f"telemetry source {safe_text(source)}: no file fits yet")
        trouble = ""
        pause = interval
        while True:
            try:
                say_followed(follower.poll(lambda: stop.wait(0)))
                results = engine.check()
            except PrxError as error:
                pause = min(pause * 2, max(_LONGEST_BACKOFF_SECONDS, interval))
                if str(error) != trouble:
                    say(f"{error}; trying again")
                trouble = str(error)
            else:
                if trouble:
                    say("it works again")
                trouble, pause = "", interval
                _put_news(results, engine.clock.now, as_json=call.json)
            if stop.wait(pause):
                say("stopped")
                return


def _put_news(results: Sequence[CheckResult], now: Callable[[], datetime], *, as_json: bool) -> None:
    for result in results:
        if result.outcome in _QUIET:
            continue
        if as_json:
            put_json(result, one_line=True)
        else:
            put(f"{moment(now())}  {result_line(result, now())}")
