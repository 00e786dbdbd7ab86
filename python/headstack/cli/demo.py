"""``headstack demo``: the main job in one command."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from headstack.atomic_files import write_all
from headstack.cli.completing import FOLDER
from headstack.cli.files import check_folder
from headstack.cli.output import print_results, progress, wide_option
from headstack.cli.runs import print_knees
from headstack.results import Results
from headstack.runs import run_specs, specify

SYSTEMS = ("cheetah-x15-36lp", "atlas-10k-iii-73", "atlas-10k-iii-73@36.7GB")
WORKLOAD = "file-server"
DEPTHS = [1, 4, 16, 64]


@click.command()
@click.option(
    "-o", "--output", metavar="FOLDER", type=FOLDER, default="demo", show_default=True, help="Folder for the files."
)
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def demo(output: str, quiet: bool) -> None:
    """The main job in one command.

    A 15,000 rpm drive against a 10,000 rpm drive of twice its size, whole and short-stroked, under Iometer's
    File Server pattern at 1, 4, 16 and 64 requests outstanding: does the faster drive owe its lead to the spindle, or
    to the shorter stroke of its smaller capacity?
    """
    # Here, since matplotlib takes longer than all other commands; what is missing is said before anything is run.
    import headstack.plots  # noqa: F401

    options = {"depth": DEPTHS}
    specs = specify(SYSTEMS, WORKLOAD, options)
    folder = Path(output)
    exports: dict[str, Callable[..., Any]] = {
        "curves.png": Results.plot,
        "results.json": Results.to_json,
        "results.parquet": Results.to_parquet,
    }
    check_folder(folder, *exports)
    folder.mkdir(exist_ok=True)
    with progress(f"{len(specs)} runs", quiet) as show:
        results = run_specs(specs, options, show)
    write_all((folder / name, partial(export, results)) for name, export in exports.items())
    print_results(results)
    print_knees(results, None)
    print(f"\nwritten: {', '.join(str(folder / name) for name in exports)}")
