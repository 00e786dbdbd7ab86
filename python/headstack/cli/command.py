"""The help of commands: one screen with the most used options, and all of them with ``--help --all``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click

from headstack.cli.renamed import with_current_options

ALL = f"{__name__}.all"
"""Key in the command's context; true if help shows everything."""
LINES_MAX = 45
"""Maximum number of lines of help before it is shortened."""

FIRST: dict[str, tuple[str, ...]] = {
    "run": (
        "workload",
        "size",
        "read",
        "random",
        "fsync",
        "range",
        "depth",
        "rate",
        "time",
        "drives",
        "level",
        "state",
        "curve",
        "limit",
        "json",
        "verbose",
    ),
    "sweep": ("workload", "vary", "sample", "points", "where", "best", "min", "top", "output", "plot", "html"),
    "choose": (
        "workload",
        "rate",
        "limit",
        "capacity",
        "survive",
        "among",
        "volumes",
        "no-arrays",
        "years",
        "budget",
        "objective",
        "explain",
        "output",
        "json",
        "html",
    ),
    "measure": (
        "workload",
        "size",
        "read",
        "random",
        "depth",
        "rate",
        "time",
        "create",
        "destroy",
        "fio",
    ),
    "compare": ("against", "run", "pairs", "baseline", "save-baseline", "fail-if", "tolerance", "json", "plot", "html"),
    "judge": ("live", "prometheus", "columns", "every", "state", "history", "export", "json", "html"),
    "serve": ("nbd", "fuse", "ublk", "size", "data", "faults", "speed", "control", "journal", "run", "json"),
    "trace analyze": ("format", "select", "step", "endurance", "reuse", "sample", "json", "plot", "html", "workload"),
    "trace cache": ("policy", "size", "block", "writes", "behind", "sample", "json", "csv", "plot", "html"),
    "trace replay": (
        "mode",
        "depth",
        "time-scale",
        "map",
        "time",
        "requests",
        "format",
        "destroy",
        "create",
        "json",
        "plot",
        "html",
    ),
    "trace synthesize": ("output", "scenario", "length", "rate", "footprint", "clients", "json", "plot", "html"),
    "crash explore": ("check", "base", "budget", "tear", "jobs", "findings", "output", "json"),
    "lab characterize": ("output", "direct", "time", "destroy", "create"),
    "measure condition": ("pass", "read-only", "size", "require", "log", "resume", "report", "destroy", "json", "plot"),
    "measure pts": ("test", "purge", "active-range", "capacity", "rounds", "destroy", "json", "plot"),
    "measure settings": ("for", "time", "steady-time", "worn-in", "create", "overwrite", "destroy", "json", "html"),
    "measure zones": ("positions", "size", "depth", "accesses", "range", "write", "json", "plot", "html"),
    "measure fsync": ("sizes", "count", "limit", "create", "destroy", "json", "plot"),
    "measure prefill": ("size", "create", "destroy", "json", "plot"),
}
"""Options in the short help of a long command, most used first, by the command's words."""


class Brief(click.Command):
    """A command, or a group, whose help fits a screen."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accepts ``--all`` together with ``--help``, and earlier names of options."""
        # A group would repeat the note of its command; during completion, the shell would show it.
        if not isinstance(self, click.Group) and not ctx.resilient_parsing:
            args = with_current_options(args)
        if "--all" in args and any(name in args for name in ctx.help_option_names):
            ctx.meta[ALL] = True
            args = [argument for argument in args if argument != "--all"]
        return super().parse_args(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """Returns the complete help if it is short or ``--all`` is set, otherwise the shortened help."""
        whole = super().get_help(ctx)
        words = " ".join(ctx.command_path.split()[1:])
        if ctx.meta.get(ALL) or whole.count("\n") < LINES_MAX or words not in FIRST:
            return whole
        return format_short_help(self, ctx, FIRST[words])

    def default_command(self) -> click.Command:
        """Returns the command whose options help shows: this command, or the default command of a group."""
        return self


def format_short_help(whole: Brief, ctx: click.Context, first: tuple[str, ...]) -> str:
    """Formats the summary, the examples, the most used options and the subcommands of a command."""
    command = whole.default_command()
    formatter = ctx.make_formatter()
    command.format_usage(ctx, formatter)
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(summary_of(command))
        examples = list(examples_of(command))
        if examples:
            formatter.write_paragraph()
            formatter.write("".join(f"  {line}\n" for line in examples))
    named = {option: parameter for parameter in command.get_params(ctx) for option in parameter.opts}
    records = [named[f"--{name}"].get_help_record(ctx) for name in first if f"--{name}" in named]
    with formatter.section("Options"):
        formatter.write_dl([record for record in records if record is not None])
    if isinstance(whole, click.Group):
        whole.format_commands(ctx, formatter)
    rest = len({id(parameter) for parameter in named.values()}) - len(records)
    formatter.write_paragraph()
    formatter.write(f"{rest} more options, and all details: {ctx.command_path} --help --all\n")
    return formatter.getvalue().rstrip("\n")


def paragraphs_of(command: click.Command) -> list[str]:
    """Returns the paragraphs of the help text."""
    return textwrap.dedent(command.help or "").strip().split("\n\n")


def summary_of(command: click.Command) -> str:
    """Returns the first paragraph of the help text."""
    return " ".join(paragraphs_of(command)[0].split())


def examples_of(command: click.Command) -> Iterator[str]:
    """Yields the lines of the first paragraph of examples in the help text."""
    for paragraph in paragraphs_of(command):
        lines = paragraph.split("\n")
        if lines[0].strip() == "\b" and any(line.strip().startswith("headstack ") for line in lines):
            yield from textwrap.dedent("\n".join(lines[1:])).split("\n")
            return
