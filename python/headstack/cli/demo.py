"""``headstack demo``: a first answer, with picture and page."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from headstack import InputError
from headstack.cli.files import OUTPUT_FOLDER, check_folder
from headstack.cli.output import print_results, progress, verbose_option, wide_option
from headstack.io.atomic_files import write_all
from headstack.report.html import check_built
from headstack.results.results import Results
from headstack.simulation.runs import run_specs, specify_described

SYSTEM = "md-raid6-12x16tb"
WORKLOAD = "oltp-8k"
OPTIONS = {"level": ["raid6", "raid10"], "depth": [1, 8, 64]}

# Outputs with pictures, each with a check that its prerequisites are installed.
DRAWN_OUTPUTS: dict[str, tuple[Callable[..., Any], Callable[[], object]]] = {
    "curves.png": (Results.plot, partial(import_module, "headstack.report.plots")),
    "curves.html": (Results.to_html, check_built),
}


@click.command(hidden=True)
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    type=OUTPUT_FOLDER,
    default="demo",
    show_default=True,
    help="Folder for the results.",
)
@wide_option
@verbose_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def demo(output: str, quiet: bool) -> None:
    """Answer a question first: RAID 6 or RAID 10 for a database on twelve 16 TB drives?

    Simulates both under an OLTP workload of 8 KiB requests at queue depths 1, 8 and 64, and writes the answer as a
    picture, a page, JSON and Parquet.
    """
    specs = specify_described(SYSTEM, WORKLOAD, OPTIONS)
    folder = Path(output)
    exports: dict[str, Callable[..., Any]] = {
        "results.json": Results.to_json,
        "results.parquet": Results.to_parquet,
    }
    missing = {}
    for name, (export, check) in DRAWN_OUTPUTS.items():
        try:
            check()
            exports[name] = export
        except InputError as error:
            missing[name] = error
    check_folder(folder, *exports)
    folder.mkdir(exist_ok=True)
    with progress(f"{len(specs)} runs", quiet) as show:
        results = run_specs(specs, OPTIONS, show)
    write_all((folder / name, partial(export, results)) for name, export in exports.items())
    print_results(results)
    print(f"wrote {', '.join(str(folder / name) for name in exports)}")
    for name, reason in missing.items():
        print(f"could not write {folder / name}: {reason}")
