"""Groups whose commands are imported only when they are used, which keeps startup fast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from headstack.cli.command import Brief

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


EVERYDAY = {
    "rebuild": "headstack run ARRAY --while rebuilding",
    "fsync": "headstack run SYSTEM --read 0 --fsync 1, or headstack measure fsync FILE",
    "latency": "headstack measure latency FILE",
    "endurance": "headstack trace analyze TRACE --endurance 1200TB",
    "wear": "headstack trace analyze TRACE --endurance 1200TB",
    "smr": "headstack inspect /dev/sda, or headstack catalog drives show NAME",
    "smart": "headstack inspect /dev/sda",
    "slow": "headstack judge iostat.json, or headstack judge --live 15s",
    "monitor": "headstack judge --live 15s",
    "price": "headstack choose --capacity 100TB",
    "cost": "headstack choose --capacity 100TB",
    "buy": "headstack choose --capacity 100TB",
    "size": "headstack choose --capacity 100TB",
    "powerloss": "headstack crash",
    "power-loss": "headstack crash",
    "fio": "headstack measure --fio job.fio, or headstack compare a.json b.json",
    "diff": "headstack compare a.json b.json",
    "bench": "headstack measure",
    "benchmark": "headstack measure",
    "simulate": "headstack run",
    "analyze": "headstack trace analyze",
    "analyse": "headstack trace analyze",
}
"""Commands for words that users try as the name of a command."""


class Commands(Brief, click.Group):
    """A group that names the closest or all of its commands if a command is unknown."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolves a command; for an unknown name, the error names what to use instead."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            message = f"No such command '{error.command_name}'"
            command = EVERYDAY.get(error.command_name.lower()) if ctx.parent is None else None
            if command is not None:
                raise click.UsageError(f"{message}; use {command}", ctx) from None
            loaded = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
            names = [name for name, command in loaded.items() if command is not None and not command.hidden]
            closest = click.exceptions.NoSuchCommand(error.command_name, possibilities=names, ctx=ctx)
            if closest.possibilities:
                raise closest from None
            raise click.UsageError(f"{message}; commands: {', '.join(names)}", ctx) from None


class Late(Commands):
    """A group that imports some of its commands only when they are used."""

    def __init__(self, *arguments: Any, late: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.late = late
        """Modules of ``headstack.cli``, by command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of all commands, loaded or not."""
        return sorted({*super().list_commands(ctx), *self.late})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads a command."""
        if cmd_name not in self.late:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(
            import_module(f"headstack.cli.{self.late[cmd_name]}"), cmd_name.replace("-", "_")
        )
        return command


class Implied(Late):
    """A group that runs a hidden default command if none is named."""

    def __init__(self, *arguments: Any, implied: str, late: Mapping[str, str] | None = None, **settings: Any) -> None:
        super().__init__(*arguments, late=late or {}, **settings)
        self.implied = implied

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Inserts the default command if none is named; write ``./NAME`` for a file with the name of a command."""
        if args and args[0] not in {*self.list_commands(ctx), *ctx.help_option_names, "--all"}:
            args = [self.implied, *args]
        return super().parse_args(ctx, args)

    def default_command(self) -> click.Command:
        """Returns the default command."""
        return self.commands[self.implied]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Completes commands, then options of the default command, then files."""
        from click.shell_completion import CompletionItem  # start-up time

        items = super().shell_complete(ctx, incomplete)
        items += [] if items else self.commands[self.implied].shell_complete(ctx, incomplete)
        return items or [CompletionItem(incomplete, type="file")]


class Parts(Implied):
    """A command with subcommands, which runs itself unless a subcommand is named."""

    def __init__(self, command: click.Command, late: Mapping[str, str]) -> None:
        name = command.name or ""
        super().__init__(name, implied=name, late=late, help=command.help)
        hidden = copy(command)
        hidden.hidden = True
        self.add_command(hidden, name)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the help of the command, then its subcommands."""
        self.default_command().format_help(ctx, formatter)
        self.format_commands(ctx, formatter)


def with_subcommands(late: Mapping[str, str]) -> Callable[[click.Command], Parts]:
    """Adds subcommands to a command; ``late`` maps each to its module."""
    return lambda command: Parts(command, late)


def every(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yields a command and its subcommands, each with its words on the command line. Skips hidden commands, except
    default commands of groups."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            is_implied = isinstance(command, Implied) and name == command.implied
            if subcommand is not None and (is_implied or not subcommand.hidden):
                yield from every(subcommand, words if subcommand.hidden else (*words, name))
