"""The way into the command line: what people read first is shown before anything is loaded for it."""

import os
import sys

EXIT_INTERNAL = 70
"""EX_SOFTWARE of sysexits.h: no verdict, limit or input has this code."""
WIDTH = 79
"""Of the texts that are stored."""


def main() -> None:
    """Shows where to start, or the help, or does what a command says."""
    stored = {(): "start.txt", ("--help",): "help.txt", ("-h",): "help.txt"}.get(tuple(sys.argv[1:]))
    if stored is None or "_HEADSTACK_COMPLETE" in os.environ or not (_is_wide() and _is_shown(text(stored))):
        try:
            from headstack.cli.main import main as commands  # start-up time
        except Exception:
            # Python's own exit code of an error is 1, which is that of a verdict.
            sys.excepthook(*sys.exc_info())
            sys.exit(EXIT_INTERNAL)
        commands()


def text(name: str) -> str:
    """A text of the command line that is stored."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()


def _is_wide() -> bool:
    """Whether the texts fit; in a pipe everything does."""
    try:
        columns = os.get_terminal_size(1).columns
    except OSError:
        return True
    return int(os.environ["COLUMNS"] if os.environ.get("COLUMNS", "").isdecimal() else columns) >= WIDTH


def _is_shown(shown: str) -> bool:
    """Writes a text; whoever loads more says what is wrong where that fails."""
    left = shown.encode()
    try:
        while left:
            left = left[os.write(1, left) :]
    except OSError:
        return False
    return True
