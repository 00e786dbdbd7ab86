"""``headstack completion``."""

from __future__ import annotations

import click

from headstack.cli.completing import SHELLS


@click.command(hidden=True)
@click.argument("shell", type=click.Choice(tuple(SHELLS)), help="Shell to write the completion for.")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a SHELL: bash, fish or zsh.

    \b
    headstack completion bash > ~/.local/share/bash-completion/completions/headstack
    headstack completion fish > ~/.config/fish/completions/headstack.fish
    headstack completion zsh > "${fpath[1]}/_headstack"

    New shells then complete commands, options, catalogue names, studies, listed values, ranges after NAME@, and files.
    """
    root = context.find_root()
    print(SHELLS[shell](root.command, {}, "headstack", "_HEADSTACK_COMPLETE").source().strip())
