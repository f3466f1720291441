"""Shell completion: the script that a shell has to read."""

from __future__ import annotations

import click

from prx_tui.cli.output import put


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and experiment ids in a shell.

    \b
    Examples:
      prx completion bash > ~/.local/share/bash-completion/completions/prx
      prx completion zsh > ~/.zfunc/_prx          with fpath+=~/.zfunc before compinit in ~/.zshrc
      prx completion fish > ~/.config/fish/completions/prx.fish
    """
    from click.shell_completion import get_completion_class

    root = context.find_root()
    name = root.info_name or "prx"
    variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
    script = get_completion_class(shell)
    assert script is not None
    put(script(root.command, {}, name, variable).source())
