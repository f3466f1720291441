"""`prx evolution config`: the settings in effect, and changing one."""

from __future__ import annotations

import json
import os

import click

from prx_tui.cli.call import Call, common_options, pass_call
from prx_tui.cli.output import Column, put, put_json, put_table, say
from prx_tui.cli.reporting import CommandGroup
from prx_tui.text import safe_text


@click.group(cls=CommandGroup, invoke_without_command=True)
@common_options
@pass_call
@click.pass_context
def config(context: click.Context, call: Call) -> None:
    """Show every setting with its value, where it comes from, and what is allowed.

    \b
    Examples:
      prx evolution config
      prx evolution config set experiments.min_sample_size 200
    """
    if context.invoked_subcommand is not None:
        return
    from prx_engine.configuration import ConfigurationFile, config_path, describe

    file = ConfigurationFile(config_path(os.environ))
    lines = describe(file.current(), file)
    if call.json:
        put_json(
            [
                {
                    "key": line.key,
                    "value": line.value,
                    "default": line.default,
                    "origin": "file" if line.from_file else "default",
                    "allowed": line.allowed,
                }
                for line in lines
            ]
        )
        return
    put_table(
        [Column("Key"), Column("Value"), Column("From"), Column("Allowed")],
        [
            (line.key, _shown(line.value), "file" if line.from_file else "default", line.allowed)
            for line in lines
        ],
    )
    say(f"file: {file.path}{'' if file.path.exists() else ' (does not exist)'}")


def _shown(value: object) -> str:
    return "(unset)" if value is None else safe_text(json.dumps(value, ensure_ascii=False))


@config.command("set", context_settings={"ignore_unknown_options": True})
@common_options
@click.argument("key")
@click.argument("value")
@pass_call
def set_value(call: Call, key: str, value: str) -> None:
    """Write one setting into the configuration file, and leave everything else in it alone.

    KEY may leave out self_evolution. VALUE is a TOML value, else a text. A value that is not allowed
    changes nothing. Running experiments keep the settings that they were created with.

    \b
    Examples:
      prx evolution config set experiments.min_sample_size 200
      prx evolution config set fitness.normalization.latency_p50_ms "[500, 8000]"
      prx evolution config set experiments.enabled false
    """
    from prx_engine.configuration import ConfigurationFile, config_path
    from prx_tui.cli.proposals import toml_value

    file = ConfigurationFile(config_path(os.environ))
    file.set(key, toml_value(value))
    if call.json:
        put_json({"file": str(file.path), "key": key})
    say(f"{key} is set in {file.path}")


@config.command
@common_options
@pass_call
def path(call: Call) -> None:
    """Print the path of the configuration file, which need not exist.

    \b
    Example:
      $EDITOR "$(prx evolution config path)"
    """
    from prx_engine.configuration import config_path

    found = str(config_path(os.environ))
    if call.json:
        put_json({"path": found})
    else:
        put(safe_text(found))
