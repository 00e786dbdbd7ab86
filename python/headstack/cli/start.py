"""Entry point of the command line: prints the first help texts without loading anything else."""

import os
import sys

EXIT_INTERNAL = 70
"""Exit code of internal errors: EX_SOFTWARE of sysexits.h, which no verdict, limit or input error uses."""
WIDTH = 79
"""Width of the stored texts, in characters."""


def main() -> None:
    """Prints a stored text, or runs a command."""
    stored = {(): "start.txt", ("--help",): "help.txt", ("-h",): "help.txt"}.get(tuple(sys.argv[1:]))
    if stored is None or "_HEADSTACK_COMPLETE" in os.environ or not (_is_wide() and _write(text(stored))):
        try:
            from headstack.cli.main import main as commands  # start-up time
        except Exception:
            # Python's own exit code for an error is 1, which headstack uses for a verdict.
            sys.excepthook(*sys.exc_info())
            sys.exit(EXIT_INTERNAL)
        commands()


def text(name: str) -> str:
    """Reads a stored text."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()


def _is_wide() -> bool:
    """Whether the terminal is wide enough for the stored texts; true if the output is a pipe."""
    try:
        columns = os.get_terminal_size(1).columns
    except OSError:
        return True
    return int(os.environ["COLUMNS"] if os.environ.get("COLUMNS", "").isdecimal() else columns) >= WIDTH


def _write(content: str) -> bool:
    """Writes a text; returns false if that fails, so that the full command line reports the error."""
    remaining = content.encode()
    try:
        while remaining:
            remaining = remaining[os.write(1, remaining) :]
    except OSError:
        return False
    return True
