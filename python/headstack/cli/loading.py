"""Commands that are loaded when they are named: nobody waits for those that are not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from headstack.cli.command import Brief

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def note_of_name(earlier: str, today: str) -> None:
    """Prints the name of today to who uses an earlier one."""
    print(f"headstack: `headstack {earlier}` is now `headstack {today}`", file=sys.stderr)


class Late(Brief, click.Group):
    """A group of commands, some of them by the names of the modules that have them."""

    def __init__(self, *arguments: Any, late: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.late = late
        """Modules of ``headstack.cli``, by command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all, loaded or not."""
        return sorted({*super().list_commands(ctx), *self.late})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads a command."""
        if cmd_name not in self.late:
            return super().get_command(ctx, cmd_name)
        found: click.Command = getattr(
            import_module(f"headstack.cli.{self.late[cmd_name]}"), cmd_name.replace("-", "_")
        )
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command that is meant, and knows what may have been."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=self.list_commands(ctx), ctx=ctx
            ) from None


class Implied(Late):
    """A group that does one of its commands, a hidden one, where none is named."""

    def __init__(self, *arguments: Any, implied: str, late: Mapping[str, str] | None = None, **settings: Any) -> None:
        super().__init__(*arguments, late=late or {}, **settings)
        self.implied = implied

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts in the command that goes without saying; ``./NAME`` is a file of the name of a command."""
        if args and args[0] not in {*self.list_commands(ctx), *ctx.help_option_names, "--all"}:
            args = [self.implied, *args]
        return super().parse_args(ctx, args)

    def by_itself(self) -> click.Command:
        """The command that is implied."""
        return self.commands[self.implied]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Its commands, and what that one takes: options, else files."""
        from click.shell_completion import CompletionItem  # start-up time

        found = super().shell_complete(ctx, incomplete)
        found += [] if found else self.commands[self.implied].shell_complete(ctx, incomplete)
        return found or [CompletionItem(incomplete, type="file")]


class Parts(Implied):
    """A command with subcommands: it runs by itself unless one of them is named."""

    def __init__(self, command: click.Command, late: Mapping[str, str]) -> None:
        name = command.name or ""
        super().__init__(name, implied=name, late=late, help=command.help)
        hidden = copy(command)
        hidden.hidden = True
        self.add_command(hidden, name)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the help of the command, then its subcommands."""
        self.by_itself().format_help(ctx, formatter)
        self.format_commands(ctx, formatter)


def with_subcommands(late: Mapping[str, str]) -> Callable[[click.Command], Parts]:
    """Gives a command subcommands, by the modules that have them."""
    return lambda command: Parts(command, late)


def every(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and all below it, each with its words. A hidden one is what its group does without being told; others
    that are hidden are for programs alone, and left out."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            is_implied = isinstance(command, Implied) and name == command.implied
            if found is not None and (is_implied or not found.hidden):
                yield from every(found, words if found.hidden else (*words, name))
