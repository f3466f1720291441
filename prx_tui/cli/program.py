"""The program ``prx`` and its first two levels."""

from __future__ import annotations

import click

from prx_tui.cli.call import Call, common_options, pass_call
from prx_tui.cli.reporting import USAGE, CommandGroup, ReportingGroup
from prx_tui.cli.screens import open_dashboard, standing_at_a_terminal

_COMMANDS = "prx_tui.cli"
_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(
    cls=ReportingGroup,
    invoke_without_command=True,
    context_settings=_HELP,
    lazy={
        "dashboard": f"{_COMMANDS}.screens:dashboard",
        "demo": f"{_COMMANDS}.screens:demo",
        "completion": f"{_COMMANDS}.completion:completion",
    },
)
@common_options
@click.version_option(package_name="prx-experiments", prog_name="prx-experiments")
@pass_call
@click.pass_context
def prx(context: click.Context, call: Call) -> int:
    """Live experiments for agents that improve themselves.

    Alone on a terminal it opens the dashboard. All that scripts and agents need is under `prx evolution`.

    \b
    Examples:
      prx                                    watch and steer the experiments
      prx evolution experiments              list those that are active
      prx evolution assign s-17 --layer L2   which variant does this session get?

    Exit codes: 0 done, 1 refused or failed (one line on stderr says why), 2 wrong usage, 130 interrupted.
    """
    if context.invoked_subcommand is not None:
        return 0
    if not standing_at_a_terminal() or call.json:
        click.echo(context.get_help(), err=True)
        context.exit(USAGE)
    return open_dashboard(call.database, read_only=False)


@prx.group(
    cls=CommandGroup,
    lazy={
        "experiments": f"{_COMMANDS}.experiments:experiments",
        "fitness": f"{_COMMANDS}.fitness:fitness",
        "status": f"{_COMMANDS}.status:status",
        "assign": f"{_COMMANDS}.sessions:assign",
        "record": f"{_COMMANDS}.sessions:record",
        "import": f"{_COMMANDS}.importing:import_files",
        "check": f"{_COMMANDS}.checks:check",
        "preview": f"{_COMMANDS}.checks:preview",
        "wait": f"{_COMMANDS}.checks:wait",
        "watch": f"{_COMMANDS}.checks:watch",
        "plan": f"{_COMMANDS}.planning:plan",
        "replay": f"{_COMMANDS}.replaying:replay",
        "verify": f"{_COMMANDS}.maintenance:verify",
        "backup": f"{_COMMANDS}.maintenance:backup",
        "config": f"{_COMMANDS}.settings:config",
    },
)
@common_options
def evolution() -> None:
    """Experiments, the sessions in them, and the fitness of the deployment.

    \b
    Examples:
      prx evolution experiments --status running
      prx evolution import sessions.jsonl && prx evolution check
      prx evolution fitness --breakdown
    """
