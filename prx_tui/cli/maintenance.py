"""`verify` and `backup`: is the database right, and is there a copy of it?"""

from __future__ import annotations

import click

from prx_tui.cli.call import Call, common_options, pass_call
from prx_tui.cli.output import put, put_json, say
from prx_tui.cli.reporting import FAILED
from prx_tui.text import safe_text


@click.command
@common_options
@pass_call
def verify(call: Call) -> int:
    """Sum all stored scores again and compare with the totals; exit code 1 if anything differs.

    \b
    Example:
      prx evolution verify
    """
    with call.engine() as engine:
        result = engine.verify()
    if call.json:
        put_json(result)
    else:
        put(f"{result.sessions} sessions and {result.assignments} assignments read")
        for problem in result.problems:
            put(safe_text(problem))
        if not result.problems:
            put("Every total and every score is what its parts say")
    if result.problems:
        say(f"{len(result.problems)} totals or scores are wrong; restore a backup, and please report it")
        return FAILED
    return 0


@click.command
@common_options
@click.argument("file", type=click.Path())
@pass_call
def backup(call: Call, file: str) -> None:
    """Copy the database into FILE while others go on using it; FILE must not exist.

    \b
    Example:
      prx evolution backup experiments-$(date +%F).db
    """
    with call.engine() as engine:
        engine.backup(file)
    if call.json:
        put_json({"file": file})
    say(f"copied to {file}")
