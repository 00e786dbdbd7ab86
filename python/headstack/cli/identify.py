"""``headstack FILE``: prints what a file is, and the command that takes it."""

from __future__ import annotations

import os
import sys

import click

from headstack.cli.files import SOURCE
from headstack.cli.recognition import UNREADY, recognize
from headstack.io.terminal import visible

EXIT_UNKNOWN = 2


@click.command(hidden=True)
@click.argument("paths", nargs=-1, required=True, type=SOURCE, metavar="FILE...", help="Files and folders.")
def identify(paths: tuple[str, ...]) -> int:
    """Print what files are, each with the command that takes it.

    \b
    headstack results.json
    headstack trace.csv iostat.log

    Exit codes: 0 all files are recognized, 2 one is not.
    """
    code = 0
    for path in paths:
        recognized = recognize(path) if os.path.exists(path) else None
        if recognized is not None and recognized.kind not in UNREADY:
            # Not wrapped, so that the command can be copied.
            print(visible(recognized.line))
        elif recognized is not None:
            print(visible(f"headstack: {recognized.line}"), file=sys.stderr)
            code = EXIT_UNKNOWN
        else:
            why = "not recognized" if os.path.exists(path) else "no such file, folder or command"
            hint = "; see headstack --help, and headstack trace formats" if os.path.exists(path) else ""
            print(visible(f"headstack: {path}: {why}{hint}"), file=sys.stderr)
            code = EXIT_UNKNOWN
    return code
