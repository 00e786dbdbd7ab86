"""Shell completion: parameter types that complete catalogue names, closed lists and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from headstack import _native
from headstack.cli.files import AnyFile, Source

Items = list[CompletionItem[Any]]

RANGES = ("0%..50%", "50%..100%", "0%..10%", "90%..100%")
"""Ranges offered after ``NAME@``: both halves and both edges."""

BASH = """\
%(complete_func)s() {
    local answer kind value
    local -a answers
    COMPREPLY=()
    mapfile -t answers < <(
        COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete "$1"
    )
    for answer in "${answers[@]}"; do
        IFS=, read -r kind value <<< "$answer"
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                COMPREPLY+=("$value")
                case $value in *[=@:]) compopt -o nospace ;; esac ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


FISH = """\
function %(complete_func)s
    set -lx %(complete_var)s fish_complete
    set -lx COMP_WORDS (commandline -cp)
    set -lx COMP_CWORD (commandline -t)
    for answer in (%(prog_name)s)
        # A value may itself contain commas.
        set -l parts (string split -m 1 , -- $answer)
        switch $parts[1]
            case dir
                __fish_complete_directories $parts[2]
            case file
                __fish_complete_path $parts[2]
            case plain
                echo $parts[2]
        end
    end
end
complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class WholeWords:
    """Base class of all shells, which completes ``--option=VALUE`` as one word."""

    def get_completions(self, args: list[str], incomplete: str) -> Items:
        """Returns the completions of a word, each as the whole word."""
        items: Items = super().get_completions(args, incomplete)  # type: ignore[misc]
        option, equals, _ = incomplete.partition("=")
        if not (equals and option.startswith("-")):
            return items
        return [
            CompletionItem(f"{option}={item.value}", item.type, item.help) if item.type == "plain" else item
            for item in items
        ]


class Bash(WholeWords, BashComplete):
    """Bash, which breaks words at ``@``, ``=`` and ``:`` and replaces only the text after the last such character."""

    source_template = BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Returns the complete words, and the word being typed."""
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)
        self._typed = "" if line[-1:].isspace() else words.pop()
        return words[1:], self._typed

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Formats the part of a completion that bash inserts."""
        breaks = set(os.environ.get("COMP_WORDBREAKS", "")) - set(" \t\n\"'")
        # Bash breaks before ``@`` (for host names) and after the other characters.
        places = (place + (letter != "@") for place, letter in enumerate(self._typed) if letter in breaks)
        replaced_from = max(places, default=0)
        return f"{item.type},{str(item.value).removeprefix(self._typed[:replaced_from])}"


class Zsh(WholeWords, ZshComplete):
    """Zsh."""


class Fish(WholeWords, FishComplete):
    """Fish."""

    source_template = FISH


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}

for shell in SHELLS.values():
    add_completion_class(shell)


class Among(click.ParamType[str]):
    """A value of a fixed set, or a list of such values, which the command validates."""

    name = "text"

    def __init__(self, values: Sequence[str] | Callable[[], Iterable[str]]) -> None:
        self._values = values

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        """Completes the last value of the list."""
        return complete_list(incomplete, self._values() if callable(self._values) else self._values)


class Named(Source):
    """A catalogue name or a file; with ``ranges`` also a part of the entry (``NAME@RANGE``)."""

    searches = False

    def __init__(self, names: Callable[[], Iterable[str]], ranges: bool = False) -> None:
        self._names = names
        self._ranges = ranges

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        """Completes names, then ranges; files if no name matches."""
        _, at, part = incomplete.rpartition(",")[2].partition("@")
        if at and self._ranges:
            before = incomplete[: len(incomplete) - len(part)]
            return [CompletionItem(f"{before}{range_text}") for range_text in RANGES if range_text.startswith(part)]
        return complete_list(incomplete, self._names()) or complete_files(incomplete)


class Socket(AnyFile):
    """The path of a local socket, which headstack neither reads nor replaces as a file."""

    name = "socket"


class Folder(click.ParamType[str]):
    """A folder that headstack manages: a store of finished runs, a mount point."""

    name = "folder"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        """Completes folders."""
        return [CompletionItem(incomplete, type="dir")]


def complete_list(incomplete: str, values: Iterable[str]) -> Items:
    """Completes the last value of a list with values that are not in the list yet."""
    head, comma, last = incomplete.rpartition(",")
    present = head.split(",")
    return [
        CompletionItem(f"{head}{comma}{value}") for value in values if value.startswith(last) and value not in present
    ]


def complete_files(incomplete: str) -> Items:
    """Completes files."""
    return [CompletionItem(incomplete, type="file")]


def system_names() -> list[str]:
    """Returns the names of drives, arrays, volumes, instances and stacks."""
    drives = [*_native.drive_ids(), *_native.volume_ids(), *_native.instance_ids()]
    return [*drives, *_native.array_ids(), *_native.stack_ids()]


def demand_names() -> list[str]:
    """Returns the names of workloads and scenarios."""
    return [*_native.workload_ids(), *_native.scenario_ids()]


def study_names() -> Sequence[str]:
    """Returns the studies that ship with headstack."""
    from headstack.studies.files import listed as shipped  # start-up time

    return shipped()


def fit_names() -> Sequence[str]:
    """Returns the inverse studies that ship with headstack."""
    from headstack.studies.fits.files import listed as shipped  # start-up time

    return shipped()


SYSTEM, DEMAND = Named(system_names, ranges=True), Named(demand_names)
DRIVE = Named(lambda: [*_native.drive_ids(), *_native.volume_ids(), *_native.instance_ids()])
ARRAY, STACK = Named(_native.array_ids), Named(_native.stack_ids)
WORKLOAD, SCENARIO = Named(_native.workload_ids), Named(_native.scenario_ids)
MAP = Named(lambda: ("stacked", "round-robin", "hashed"))
EXECUTOR = Among(("local", "dask://"))
STUDY, FIT = Named(study_names), Named(fit_names)
SOCKET, FOLDER = Socket(), Folder()
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def systems_argument(help_text: str, metavar: str = "SYSTEM...") -> Callable[[Decorated], Decorated]:
    """Adds the argument for one or more systems."""
    return click.argument("systems", nargs=-1, required=True, type=SYSTEM, metavar=metavar, help=help_text)
