"""``headstack completion``."""

from __future__ import annotations

import click

from headstack.cli.completing import SHELLS


@click.command(hidden=True)
@click.argument("shell", type=click.Choice(tuple(SHELLS)), help="The shell that is to complete.")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a SHELL complete names, options and files.

    \b
    headstack completion bash > ~/.local/share/bash-completion/completions/headstack
    headstack completion fish > ~/.config/fish/completions/headstack.fish
    headstack completion zsh > "${fpath[1]}/_headstack"

    Systems, workloads, scenarios, studies and all values of a closed list are completed, each of a comma list too, and
    NAME@ by ranges; files where no name fits. Shells that are started after that know it.
    """
    root = context.find_root()
    print(SHELLS[shell](root.command, {}, "headstack", "_HEADSTACK_COMPLETE").source().strip())
