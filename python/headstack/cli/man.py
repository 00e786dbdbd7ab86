"""``headstack man``: generates the manual from the commands."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from headstack._native import version
from headstack.cli.files import OUTPUT_FOLDER, check_folder
from headstack.cli.loading import every
from headstack.cli.simulate.runs import Grouped
from headstack.io.atomic_files import write_all

ESCAPES = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}
"""Characters with a special meaning in roff, and their escapes."""


@click.command(hidden=True)
@click.option(
    "-o", "--output", metavar="FOLDER", type=OUTPUT_FOLDER, required=True, help="Folder for the pages, one file each."
)
@click.pass_context
def man(context: click.Context, output: str) -> None:
    """Write manual pages: headstack.1, and a page for each command.

    \b
    headstack man -o ~/.local/share/man/man1
    man headstack-run
    """
    made = pages(context.find_root().command)
    check_folder(output, *made)
    Path(output).mkdir(parents=True, exist_ok=True)
    write_all(
        (Path(output) / name, partial(Path.write_text, data=text, encoding="utf-8")) for name, text in made.items()
    )
    print(f"{output}: {len(made)} pages")


def pages(root: click.Command) -> dict[str, str]:
    """Returns the text of each page by file name."""
    commands: dict[tuple[str, ...], list[click.Command]] = {}
    for words, command in every(root):
        commands.setdefault(words, []).append(command)
    return {f"{page_name(words)}.1": page(words, same, root.context_settings) for words, same in commands.items()}


def page_name(words: tuple[str, ...]) -> str:
    """Returns the name of a page."""
    return "-".join(("headstack", *words))


def page(words: tuple[str, ...], commands: list[click.Command], settings: Mapping[str, Any]) -> str:
    """Returns the page of a command; a group and its default command share one page."""
    command = commands[-1]
    context = click.Context(command, **settings)
    date = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    lines = [
        f'.TH {escape_roff(page_name(words)).upper()} 1 {date} "headstack {version()}" "headstack"',
        ".SH NAME",
        f"{escape_roff(page_name(words))} \\- {escape_roff(first_sentence(command))}",
        ".SH SYNOPSIS",
        f".B {escape_roff(' '.join(('headstack', *words)))}",
        escape_roff(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *paragraphs(command.help or ""),
    ]
    for heading, parameters in sections(command, context).items():
        lines.append(f".SH {heading.upper()}")
        for parameter in parameters:
            record = parameter.get_help_record(context)
            if record is not None:
                lines += [".TP", f".B {escape_roff(record[0])}", escape_request(escape_roff(record[1]))]
    for group in commands:
        if isinstance(group, click.Group):
            lines += [".SH COMMANDS", *subcommands(group, words)]
    if command.epilog:
        # Only the top-level command has exit codes in its epilog.
        lines += [".SH EXIT STATUS", *paragraphs(command.epilog.replace("Exit codes:\n", "", 1))]
    above = page_name(words[:-1]) if words else "headstack-run"
    return "\n".join([*lines, ".SH SEE ALSO", f".BR {escape_roff(above)} (1)"]) + "\n"


def first_sentence(command: click.Command) -> str:
    """Returns the first sentence of the help of a command."""
    return " ".join((command.help or "").strip().partition("\n\n")[0].split()).rstrip(".")


def sections(command: click.Command, context: click.Context) -> dict[str, list[click.Parameter]]:
    """Returns arguments and options by the headings of the help."""
    parameters = command.get_params(context)
    by_heading: dict[str, list[click.Parameter]] = {
        "Arguments": [parameter for parameter in parameters if isinstance(parameter, click.Argument)]
    }
    if isinstance(command, Grouped):
        by_heading |= {f"{heading} options": [*options] for heading, options in command.sections(context).items()}
    else:
        by_heading["Options"] = [parameter for parameter in parameters if isinstance(parameter, click.Option)]
    return {
        heading: parameters_of_heading for heading, parameters_of_heading in by_heading.items() if parameters_of_heading
    }


def subcommands(group: click.Group, words: tuple[str, ...]) -> Iterator[str]:
    """Yields the commands of a group with their pages."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            yield from (
                ".TP",
                f".BR {escape_roff(page_name((*words, name)))} (1)",
                escape_request(escape_roff(first_sentence(command))),
            )


def paragraphs(text: str) -> Iterator[str]:
    """Yields paragraphs. A paragraph that starts with a backspace keeps its line breaks."""
    for number, paragraph in enumerate(text.strip("\n").split("\n\n")):
        if number:
            yield ".PP"
        lines = paragraph.split("\n")
        if lines[0].strip() == "\b":
            yield from (".nf", *(escape_request(escape_roff(line)) for line in lines[1:]), ".fi")
        else:
            yield from (escape_request(escape_roff(line.strip())) for line in lines)


def escape_roff(text: str) -> str:
    """Escapes text for roff."""
    return "".join(ESCAPES.get(letter, letter if letter.isascii() else f"\\[u{ord(letter):04X}]") for letter in text)


def escape_request(line: str) -> str:
    """Escapes a line that roff would read as a request."""
    return f"\\&{line}" if line.startswith(".") else line
