"""Earlier names of commands, options and keys: they still work, and a note on stderr gives the current name."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from headstack._native import take_notes_of_renamed_keys
from headstack.io.terminal import visible

OPTIONS = {"--preconditioned": "--state", "--stripe-units": "--chunk-sizes", "--tell": "--detect"}
"""Current names of options, by earlier name."""


def note_of_name(earlier: str, today: str) -> None:
    """Prints the current name of a command or option that was called by an earlier name."""
    print(f"headstack: `{earlier}` is now `{today}`", file=sys.stderr)


def print_notes_of_renamed_keys() -> None:
    """Prints a note for each earlier name of a key that a file or an option contains."""
    for note in take_notes_of_renamed_keys():
        print(visible(f"headstack: {note}"), file=sys.stderr)


def with_current_options(args: Sequence[str]) -> list[str]:
    """Replaces earlier names of options by the current ones, and prints a note for each.

    >>> with_current_options(["--chunk-sizes=64KiB", "--", "--stripe-units"])
    ['--chunk-sizes=64KiB', '--', '--stripe-units']
    """
    end = args.index("--") if "--" in args else len(args)
    current: list[str] = []
    noted: set[str] = set()
    for argument in args[:end]:
        name, equals, value = argument.partition("=")
        if name in OPTIONS and name not in noted:
            note_of_name(name, OPTIONS[name])
            noted.add(name)
        current.append(f"{OPTIONS.get(name, name)}{equals}{value}")
    return [*current, *args[end:]]
