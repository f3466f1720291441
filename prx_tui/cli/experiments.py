"""`prx evolution experiments`: list, show, create, and steer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import click

from prx_engine.errors import PromotionConflict
from prx_tui.cli.call import (
    Call,
    common_options,
    complete_experiments,
    experiment_argument,
    pass_call,
    say_if_disabled,
)
from prx_tui.cli.listing import outlook, put_listing, sessions, short
from prx_tui.cli.output import put, put_json, say
from prx_tui.cli.reporting import CommandGroup, Refused, options_given
from prx_tui.formatting import moment

if TYPE_CHECKING:
    from prx_engine import Engine
    from prx_engine.engine import StatusFilter
    from prx_engine.records import Experiment

Layer = Literal["L1", "L2", "L3"]

LAYER = click.Choice(["L1", "L2", "L3"])
_STATUS = click.Choice(["running", "evaluating", "converged", "cancelled", "active", "all"])
_EVERYWHERE = ("json", "database")


@click.group(cls=CommandGroup, invoke_without_command=True)
@common_options
@click.option(
    "--status",
    type=_STATUS,
    default="active",
    show_default=True,
    help="Only those; active is running or evaluating.",
)
@click.option("--layer", type=LAYER, help="Only those of this layer.")
@click.option("--limit", type=click.IntRange(1, 10**9), metavar="N", help="At most so many, the newest.")
@click.option(
    "--id",
    "experiment_id",
    metavar="ID",
    shell_complete=complete_experiments,
    help="Show one experiment; any unambiguous beginning or end of its id will do.",
)
@click.option("--details", is_flag=True, help="With --id: variants, looks, dimensions, events and all.")
@pass_call
@click.pass_context
def experiments(
    context: click.Context,
    call: Call,
    status: StatusFilter,
    layer: Layer | None,
    limit: int | None,
    experiment_id: str | None,
    details: bool,
) -> None:
    """List experiments, show one, or (with a subcommand) create and steer them.

    \b
    Examples:
      prx evolution experiments --status running
      prx evolution experiments --status all --layer L2 --json
      prx evolution experiments --id 4f1c09ab --details
      prx evolution experiments cancel 4f1c09ab --reason "wrong prompt"
    """
    given = options_given(context, but=_EVERYWHERE)
    if context.invoked_subcommand is not None:
        if given:
            raise click.UsageError(
                f"{given[0]} cannot stand before the subcommand {context.invoked_subcommand}"
            )
        return
    if experiment_id is None:
        if details:
            raise click.UsageError("--details needs --id ID")
        _list(call, status, layer, limit)
        return
    narrowing = [option for option in given if option in ("--status", "--layer", "--limit")]
    if narrowing:
        raise click.UsageError(f"{narrowing[0]} cannot stand beside --id, which names one experiment")
    with call.engine() as engine:
        _show(call, engine, experiment_id, details=details)


def _list(call: Call, status: StatusFilter, layer: Layer | None, limit: int | None) -> None:
    with call.engine() as engine:
        found = engine.experiments(status, layer, limit)
        if call.json:
            put_json(found)
            return
        say_if_disabled(engine)
        if not found:
            _say_none(engine, status, layer)
            return
        put_listing(found, engine.clock.now())


def _say_none(engine: Engine, status: StatusFilter, layer: Layer | None) -> None:
    kind = "" if status == "all" else f"{status} "
    where = f" in {layer}" if layer else ""
    others = sum(engine.counts().values())
    if others:
        say(f"no {kind}experiments{where}; {others} in all (--status all)")
    else:
        say(f"no {kind}experiments{where}; `prx evolution experiments create --help` tells how to create one")


def _show(call: Call, engine: Engine, experiment_id: str, *, details: bool) -> None:
    from prx_tui.cli.details import put_details, put_experiment

    if details:
        everything = engine.details(experiment_id)
        if call.json:
            put_json(everything)
        else:
            put_details(everything, engine.clock.now())
        return
    experiment = engine.experiment(experiment_id)
    if call.json:
        put_json(experiment)
    else:
        put_experiment(experiment, engine.clock.now())


@experiments.command
@common_options
@click.option(
    "--file", "file", metavar="FILE", help="Everything of a proposal in a TOML or JSON file; - reads stdin."
)
@click.option("--layer", type=LAYER, help="L1 memory, L2 prompt, L3 strategy.")
@click.option("--hypothesis", metavar="TEXT", help="What the change should achieve.")
@click.option(
    "--decision", "decision_id", metavar="ID", help="The agent's own name of the decision to try it."
)
@click.option("--control", metavar="TEXT", help="What today's configuration is, in words.")
@click.option("--treatment", metavar="TEXT", help="What the proposed configuration is, in words.")
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="The treatment sets this dotted key; VALUE is a TOML value, else a text. May be repeated.",
)
@click.option(
    "--put",
    "files",
    metavar="PATH=FILE",
    multiple=True,
    help="The treatment gives PATH in the workspace the text of FILE. May be repeated.",
)
@click.option(
    "--from-diff",
    nargs=2,
    metavar="OLD NEW",
    help="The treatment sets what the TOML file NEW says and OLD does not.",
)
@click.option("--duration-hours", type=int, metavar="N", help="Planned duration; else as configured.")
@click.option("--traffic-split", type=float, metavar="F", help="Share of sessions that get the treatment.")
@click.option("--min-sample-size", type=int, metavar="N", help="Scored sessions that each variant needs.")
@pass_call
@click.pass_context
def create(context: click.Context, call: Call, /, file: str | None, **options: Any) -> None:
    """Create a running experiment and print its id.

    A proposal file has the keys layer, hypothesis, decision_id, duration_hours, traffic_split,
    min_sample_size, and the tables control and treatment, each with description, config and files.

    \b
    Examples:
      prx evolution experiments create --layer L2 --hypothesis "a shorter prompt is clearer" \\
          --treatment "272 tokens instead of 320" --set agent.temperature=0.2 --put prompts/system.md=new.md
      prx evolution experiments create --layer L3 --hypothesis "retry less" --from-diff config.toml new.toml
      prx evolution experiments create --file proposal.toml
    """
    from prx_tui.cli.proposals import from_file

    if file is None:
        proposal = _proposal_of_options(options)
    else:
        others = options_given(context, but=(*_EVERYWHERE, "file"))
        if others:
            raise click.UsageError(f"{others[0]} cannot stand beside --file, which has the whole proposal")
        proposal = from_file(file)
    with call.engine(create=True) as engine:
        experiment = engine.create_experiment(**proposal)
    if call.json:
        put_json(experiment)
    else:
        put(experiment.experiment_id)
    say(
        "nothing converges unless checks run: keep a dashboard or `prx evolution watch` open, or call"
        " `prx evolution check` from cron"
    )
    split = experiment.parameters.experiments.traffic_split
    if split in (0, 1):
        say(f"warning: with traffic_split = {split:g} one variant gets no sessions: it can never be decided")


def _proposal_of_options(options: dict[str, Any]) -> dict[str, Any]:
    from prx_tui.cli.proposals import files_of, settings_of, with_difference

    difference = options.pop("from_diff")
    if difference and options["treatment"] is None:
        options["treatment"] = f"{difference[1]} instead of {difference[0]}"
    for name in ("layer", "hypothesis", "treatment"):
        if options[name] is None:
            raise click.UsageError(f"--{name} is missing; or give a whole proposal with --file FILE")
    config, files = settings_of(options.pop("settings")), files_of(options.pop("files"))
    if difference:
        config = with_difference(config, *difference)
    treatment = {"description": options.pop("treatment"), "config": config, "files": files}
    return {name: value for name, value in options.items() if value is not None} | {"treatment": treatment}


_reason = click.option("--reason", metavar="TEXT", default="", help="Why; kept in the log of events.")


@experiments.command
@common_options
@experiment_argument
@_reason
@pass_call
def cancel(call: Call, experiment_id: str, reason: str) -> None:
    """End an active experiment without a winner; all traffic returns to control at once.

    \b
    Example:
      prx evolution experiments cancel 4f1c09ab --reason "wrong prompt"
    """
    _act(call, lambda engine: engine.cancel(experiment_id, reason), "cancelled")


@experiments.command
@common_options
@experiment_argument
@click.option(
    "--hours",
    type=click.IntRange(1, 87_600),
    metavar="N",
    help="How much longer; else the configured duration.",
)
@_reason
@pass_call
def extend(call: Call, experiment_id: str, hours: int | None, reason: str) -> None:
    """Move the planned end of an active experiment; this does not weaken its statistics.

    \b
    Example:
      prx evolution experiments extend 4f1c09ab --hours 48
    """
    _act(call, lambda engine: engine.extend(experiment_id, hours, reason), "extended")


@experiments.command
@common_options
@experiment_argument
@_reason
@click.option("--force", is_flag=True, help="Overwrite values that have been changed since it was created.")
@pass_call
def promote(call: Call, experiment_id: str, reason: str, force: bool) -> None:
    """Make the treatment the default, whatever the statistics say; or retry a pending promotion.

    Exits 1 if the agent's files could not be changed: the promotion is then pending, or in conflict.

    \b
    Examples:
      prx evolution experiments promote 4f1c09ab --reason "needed for the release"
      prx evolution experiments promote 4f1c09ab --force
    """
    _act(call, lambda engine: engine.promote(experiment_id, reason, force=force), "promoted")


@experiments.command
@common_options
@experiment_argument
@_reason
@pass_call
def reject(call: Call, experiment_id: str, reason: str) -> None:
    """End an active experiment in favour of control.

    \b
    Example:
      prx evolution experiments reject 4f1c09ab
    """
    _act(call, lambda engine: engine.reject(experiment_id, reason), "rejected")


@experiments.command
@common_options
@click.argument("experiment_id", metavar="[ID]", required=False, shell_complete=complete_experiments)
@click.option("--list", "listed", is_flag=True, help="Only show the snapshots of what was replaced.")
@_reason
@click.option("--force", is_flag=True, help="Take back values that have been changed since the promotion.")
@pass_call
@click.pass_context
def rollback(
    context: click.Context, call: Call, experiment_id: str | None, listed: bool, reason: str, force: bool
) -> None:
    """Take an applied promotion back: the one of ID, else the last.

    \b
    Examples:
      prx evolution experiments rollback --reason "users complain"
      prx evolution experiments rollback 4f1c09ab --force
      prx evolution experiments rollback --list
    """
    if listed:
        others = options_given(context, but=(*_EVERYWHERE, "listed", "experiment_id"))
        if others:
            raise click.UsageError(f"{others[0]} cannot stand beside --list, which changes nothing")
        _list_snapshots(call, experiment_id)
        return
    try:
        _act(call, lambda engine: engine.rollback(experiment_id, reason, force=force), "rolled back")
    except PromotionConflict as conflict:
        raise Refused(f"cannot roll back: {conflict}; --force overrides") from None


def _list_snapshots(call: Call, experiment_id: str | None) -> None:
    from prx_tui.cli.details import put_snapshots

    with call.engine() as engine:
        only = None if experiment_id is None else engine.experiment(experiment_id).experiment_id
        snapshots = [one for one in engine.snapshots() if only in (None, one.experiment_id)]
    if call.json:
        put_json(snapshots)
    elif snapshots:
        put_snapshots(snapshots)
    else:
        say("no snapshots: nothing has been promoted into a file")


_PROMOTION_WAITS = {"pending": "pending", "conflict": "in conflict (--force overrides)"}


def _act(call: Call, action: Callable[[Engine], Experiment], done: str) -> None:
    with call.engine() as engine:
        experiment = action(engine)
        if call.json:
            put_json(experiment)
        if done == "promoted" and experiment.promotion in ("pending", "conflict"):
            raise Refused(
                f"{short(experiment.experiment_id)} won, but its promotion is"
                f" {_PROMOTION_WAITS[experiment.promotion]}: {experiment.promotion_note}"
            )
        end = f" to {moment(experiment.planned_end_at)} UTC" if done == "extended" else ""
        say(
            f"{done} {short(experiment.experiment_id)}{end} ({sessions(experiment)} sessions):"
            f" {outlook(experiment, engine.clock.now())}"
        )
