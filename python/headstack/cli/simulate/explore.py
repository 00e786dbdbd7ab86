"""``headstack explore``."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

import click

from headstack.cli.completing import DEMAND, SYSTEM
from headstack.cli.files import OUTPUT, SOURCE
from headstack.cli.output import say
from headstack.io.atomic_files import write_text


@click.command()
@click.argument(
    "systems", nargs=-1, type=SYSTEM, metavar="[SYSTEM]...", help="Drives, arrays and TOML files to start with."
)
@click.option(
    "-w",
    "--workload",
    type=DEMAND,
    metavar="NAME|FILE.toml",
    help="Workload: a catalogue name or a file.  [default: file-server]",
)
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    default="explore.html",
    metavar="FILE.html",
    show_default=True,
    help="Write the page to this file.",
)
@click.option(
    "--prices",
    multiple=True,
    type=SOURCE,
    metavar="FILE.csv",
    help="Price file of your own, for $ per IOPS; may be repeated.",
)
@click.option("--on", metavar="DATE", help="Use the prices of this date, for example 2025-06.  [default: the newest]")
@click.option("--open/--no-open", "opens", default=True, help="Open the page in the browser.")
def explore(
    systems: tuple[str, ...], workload: str | None, output: str, prices: tuple[str, ...], on: str | None, opens: bool
) -> None:
    """Write an interactive page that runs the simulator offline.

    \b
    headstack explore
    headstack explore exos-x24-24tb 990-pro-2tb -w oltp-8k -o page.html
    headstack explore my-array.toml --prices quotes.csv --no-open

    The page runs in your browser. It simulates catalogue drives and arrays, and the files you name, with the same
    engine as the command line. It shows the command that reproduces its numbers; its address stores the settings.
    """
    from headstack.results.explorer import page  # start-up time

    write_text(output, page(systems, workload, prices, on))
    if output == "-":
        return
    say(f"wrote {output}")
    if opens and has_display():
        webbrowser.open(Path(output).absolute().as_uri())


def has_display() -> bool:
    """Whether a display for a browser is available."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
