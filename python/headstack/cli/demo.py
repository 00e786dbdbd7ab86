"""``headstack demo``: the main job in one command."""

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
from headstack.cli.simulate.runs import print_knees
from headstack.io.atomic_files import write_all
from headstack.report.html import check_built
from headstack.results.results import Results
from headstack.simulation.runs import run_specs, specify_described

SYSTEMS = ("cheetah-x15-36lp", "atlas-10k-iii-73", "atlas-10k-iii-73@36.7GB")
WORKLOAD = "file-server"
DEPTHS = [1, 4, 16, 64]

# What is drawn, and what tells whether it can be here.
DRAWN: dict[str, tuple[Callable[..., Any], Callable[[], object]]] = {
    "curves.png": (Results.plot, partial(import_module, "headstack.report.plots")),
    "curves.html": (Results.to_html, check_built),
}


@click.command()
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
    """Run an example comparison of two drives.

    \b
    headstack demo

    The demo writes results, a chart and a report. It compares a 15,000 rpm drive with a 10,000 rpm drive of twice the
    capacity, whole and short-stroked, under Iometer's File Server pattern at queue depths 1, 4, 16 and 64. It shows
    whether the faster drive gains from its spindle or from its shorter stroke.
    """
    options = {"depth": DEPTHS}
    specs = specify_described(SYSTEMS, WORKLOAD, options)
    folder = Path(output)
    exports: dict[str, Callable[..., Any]] = {
        "results.json": Results.to_json,
        "results.parquet": Results.to_parquet,
    }
    missing = {}
    for name, (export, check) in DRAWN.items():
        try:
            check()
            exports[name] = export
        except InputError as error:
            missing[name] = error
    check_folder(folder, *exports)
    folder.mkdir(exist_ok=True)
    with progress(f"{len(specs)} runs", quiet) as show:
        results = run_specs(specs, options, show)
    write_all((folder / name, partial(export, results)) for name, export in exports.items())
    print_results(results)
    print_knees(results, None)
    print(f"\nwrote {', '.join(str(folder / name) for name in exports)}")
    for name, why in missing.items():
        print(f"could not write {folder / name}: {why}")
