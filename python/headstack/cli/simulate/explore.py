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
    "systems", nargs=-1, type=SYSTEM, metavar="[SYSTEM]...", help="Drives and arrays to begin with, and files of yours."
)
@click.option("-w", "--workload", type=DEMAND, metavar="NAME|FILE.toml", help="A workload.  [default: file-server]")
@click.option(
    "-o", "--output", type=OUTPUT, default="explore.html", metavar="FILE.html", show_default=True, help="The page."
)
@click.option("--prices", multiple=True, type=SOURCE, metavar="FILE.csv", help="Prices of your own, for $ per IO/s.")
@click.option("--on", metavar="DATE", help="The day of the prices, such as 2016-06.  [default: the newest]")
@click.option("--open/--no-open", "opens", default=True, help="Show it in the browser.")
def explore(
    systems: tuple[str, ...], workload: str | None, output: str, prices: tuple[str, ...], on: str | None, opens: bool
) -> None:
    """Write a page that simulates while you drag: one file, which works offline.

    Drives, arrays, workloads and files of yours are simulated in the browser, by the same engine. Every state of the
    page is in its address, and shown as the command that gives the same numbers.

    \b
    headstack explore
    headstack explore cheetah-x15-36lp man3735 -w web-server -o page.html
    headstack explore my-array.toml --prices quotes.csv --no-open
    """
    from headstack.results.explorer import page  # start-up time

    write_text(output, page(systems, workload, prices, on))
    if output == "-":
        return
    say(f"wrote {output}")
    if opens and has_display():
        webbrowser.open(Path(output).absolute().as_uri())


def has_display() -> bool:
    """Whether a browser could be seen."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
