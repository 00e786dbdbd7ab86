"""What the shell completes: names of the catalogue, members of closed lists, files where files belong."""

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
"""After ``NAME@``: halves, and both edges."""

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
        # Comma lists have commas of their own.
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


class Whole:
    """What is common to the shells: an option and its value in one word are completed as one."""

    def get_completions(self, args: list[str], incomplete: str) -> Items:
        """Completions of a word, each as the whole word."""
        found: Items = super().get_completions(args, incomplete)  # type: ignore[misc]
        option, equals, _ = incomplete.partition("=")
        if not (equals and option.startswith("-")):
            return found
        return [
            CompletionItem(f"{option}={item.value}", item.type, item.help) if item.type == "plain" else item
            for item in found
        ]


class Bash(Whole, BashComplete):
    """Bash, which breaks words at ``@``, ``=`` and ``:`` and replaces what it has after the last of them."""

    source_template = BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is being typed, and this."""
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)
        self._typed = "" if line[-1:].isspace() else words.pop()
        return words[1:], self._typed

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """What replaces the part of the word that bash asks for."""
        breaks = set(os.environ.get("COMP_WORDBREAKS", "")) - set(" \t\n\"'")
        # It breaks before ``@``, for the names of hosts, and after all others.
        places = (place + (letter != "@") for place, letter in enumerate(self._typed) if letter in breaks)
        kept = max(places, default=0)
        return f"{item.type},{str(item.value).removeprefix(self._typed[:kept])}"


class Zsh(Whole, ZshComplete):
    """Zsh."""


class Fish(Whole, FishComplete):
    """Fish."""

    source_template = FISH


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}

for shell in SHELLS.values():
    add_completion_class(shell)


class Among(click.ParamType[str]):
    """Text that names one of some values, or several in a comma list. Whether it does is for others to say."""

    name = "text"

    def __init__(self, values: Sequence[str] | Callable[[], Iterable[str]]) -> None:
        self._values = values

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        """Those that begin so."""
        return listed(incomplete, self._values() if callable(self._values) else self._values)


class Named(Source):
    """An entry of the catalogue, with ``ranges`` also a part of it (``NAME@RANGE``), else a file."""

    searches = False

    def __init__(self, names: Callable[[], Iterable[str]], ranges: bool = False) -> None:
        self._names = names
        self._ranges = ranges

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        """Names that begin so, then ranges; files where no name does."""
        _, at, part = incomplete.rpartition(",")[2].partition("@")
        if at and self._ranges:
            before = incomplete[: len(incomplete) - len(part)]
            return [CompletionItem(f"{before}{a_range}") for a_range in RANGES if a_range.startswith(part)]
        return listed(incomplete, self._names()) or files(incomplete)


class Socket(AnyFile):
    """A socket of this machine, which is neither read nor replaced as a file."""

    name = "socket"


class Folder(click.ParamType[str]):
    """A folder of headstack's own: a store of finished runs, a mount point."""

    name = "folder"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        """The shell's own."""
        return [CompletionItem(incomplete, type="dir")]


def listed(incomplete: str, values: Iterable[str]) -> Items:
    """A comma list with its last value completed, by one that is not in it yet."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    return [
        CompletionItem(f"{before}{comma}{value}") for value in values if value.startswith(last) and value not in given
    ]


def files(incomplete: str) -> Items:
    """The shell's own files."""
    return [CompletionItem(incomplete, type="file")]


def systems() -> list[str]:
    """Drives, arrays and volumes."""
    return [*_native.drive_ids(), *_native.array_ids(), *_native.volume_ids()]


def demands() -> list[str]:
    """Workloads and scenarios."""
    return [*_native.workload_ids(), *_native.scenario_ids()]


def studies() -> Sequence[str]:
    """Studies that ship with headstack."""
    from headstack.studies.files import listed as shipped  # start-up time

    return shipped()


def fits() -> Sequence[str]:
    """Inverse studies that ship with headstack."""
    from headstack.studies.fits.files import listed as shipped  # start-up time

    return shipped()


SYSTEM, DEMAND = Named(systems, ranges=True), Named(demands)
DRIVE = Named(lambda: [*_native.drive_ids(), *_native.volume_ids()])
ARRAY = Named(_native.array_ids)
WORKLOAD, SCENARIO = Named(_native.workload_ids), Named(_native.scenario_ids)
MAP = Named(lambda: ("stacked", "round-robin", "hashed"))
EXECUTOR = Among(("local", "dask://"))
STUDY, FIT = Named(studies), Named(fits)
SOCKET, FOLDER = Socket(), Folder()
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def systems_argument(told: str, metavar: str = "SYSTEM...") -> Callable[[Decorated], Decorated]:
    """One system or more, as most commands take them."""
    return click.argument("systems", nargs=-1, required=True, type=SYSTEM, metavar=metavar, help=told)
