"""How commands end: an exit code, and one line on stderr for whatever went wrong."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, Final, NoReturn

import click

from prx_engine.errors import PrxError
from prx_tui.cli.output import say

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130


class Refused(click.ClickException):
    """The command cannot do what it was asked to; its text is one line that says why."""

    exit_code = FAILED


def binary_stdin() -> IO[bytes]:
    """Return stdin as bytes.

    Raises:
        Refused: if the caller has closed it.
    """
    if sys.stdin is None:
        raise Refused("stdin is closed")
    return sys.stdin.buffer


class ReportingCommand(click.Command):
    """A command whose ``main`` ends every way with an exit code and without a traceback."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run the command and exit: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted."""
        extra["standalone_mode"] = False
        sys.exit(exit_code_of(lambda: super(ReportingCommand, self).main(*args, **extra)))


class CommandGroup(click.Group):
    """A group that imports its commands when they are asked for.

    Args:
        lazy: name → ``module:attribute`` of further commands, in the order in which help lists them.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, str] | None = None, **extra: Any) -> None:
        super().__init__(*args, **extra)
        self._lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands, *self._lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._lazy[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the whole first sentence of their help."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(200)) for name, command in commands if command]
            )


class ReportingGroup(CommandGroup, ReportingCommand):
    """The group at the root of a program."""


def exit_code_of(work: Callable[[], Any]) -> int:
    """Run ``work`` and return the exit code that it or its failure stands for, having said why."""
    try:
        result = work()
        _flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help(), err=True)
        return USAGE
    except click.UsageError as error:
        say(_with_hint(error))
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.ClickException as error:
        say(error.format_message())
        return FAILED
    except PrxError as error:
        say(str(error))
        return FAILED
    except BrokenPipeError:
        _drop_output()
        return FAILED
    except SystemExit as exit_:
        _drop_output_if_broken()
        return exit_.code if isinstance(exit_.code, int) else FAILED
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        say(f"{place}{error.strerror or error}")
        return FAILED
    except Exception as error:
        if os.environ.get("PRX_DEBUG") == "1":
            traceback.print_exc()
        say(
            f"a bug in prx: {type(error).__name__}: {error}; please report it"
            " (with PRX_DEBUG=1 it tells more)"
        )
        return FAILED
    return result if isinstance(result, int) else DONE


def _with_hint(error: click.UsageError) -> str:
    hint = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
    return f"{error.format_message().removesuffix('.')}{hint}"


def _flush() -> None:
    if sys.stdout is not None:  # it is where the caller has closed it
        sys.stdout.flush()


def _drop_output_if_broken() -> None:
    try:
        _flush()
    except OSError:
        _drop_output()


def _drop_output() -> None:
    """Let nothing complain at the end of the process that its reader has gone."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def option_given(context: click.Context, name: str) -> bool:
    """Tell whether an option stands on the command line."""
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def options_given(context: click.Context, but: Sequence[str] = ()) -> list[str]:
    """Return the options that stand on the command line, as they are written."""
    return [
        max(parameter.opts, key=len)
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        and parameter.name not in but
        and option_given(context, parameter.name)
    ]
