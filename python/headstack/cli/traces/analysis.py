"""``headstack trace analyze``: the statistics of a trace as tables, JSON, picture and workload."""

from __future__ import annotations

from typing import Unpack

import click

from headstack._native import InputError
from headstack.cli.command import Brief
from headstack.cli.completing import EXECUTOR, FOLDER, Among
from headstack.cli.files import OUTPUT
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, verbose_option, wide_option
from headstack.cli.traces.analysis_tables import print_analysis
from headstack.cli.traces.traces import SourceOptions, open_trace, show_progress, source_options
from headstack.io import signals
from headstack.io.values import choice, number, size_bytes
from headstack.traces.analysis import Analysis
from headstack.traces.endurance import endurance_of

REUSE = ("block", "request", "off")


class AnalyzeOptions(SourceOptions):
    """Options of the command, as typed, except output files."""

    block: str
    reuse: str
    sample: str | None
    endurance: str | None
    executor: str | None
    store: str | None


@click.command("analyze", cls=Brief)
@source_options
@click.option(
    "--block", metavar="SIZE", default="4KiB", show_default=True, help="Block size of working set and re-use."
)
@click.option(
    "--reuse",
    metavar="|".join(REUSE),
    type=Among(REUSE),
    default=REUSE[0],
    show_default=True,
    help="Unit of re-use: blocks, or whole requests identified by their first byte.",
)
@click.option("--sample", metavar="SHARE", help="Count re-use from a share of the blocks (SHARDS), for example 0.01.")
@click.option(
    "--endurance",
    metavar="SIZE",
    help="Rated endurance of an SSD (TBW), for example 1200TB: print how many years it lasts under the trace.",
)
@click.option(
    "--executor",
    metavar="local|dask://HOST:PORT",
    type=EXECUTOR,
    help="Analyse a Parquet trace in parts, which are kept: local, or on a Dask cluster that has the files too.",
)
@click.option(
    "--store", metavar="DIR", type=FOLDER, help="Folder of finished parts.  [default: ~/.cache/headstack/chunks]"
)
@output_options(
    Analysis, json="Write all figures as JSON (- for stdout).", plot="Draw addresses, rates, sizes, re-use and latency."
)
@wide_option
@verbose_option
@click.option(
    "--workload", "workload_path", type=OUTPUT, metavar="FILE.toml", help="Write a workload with the same mix."
)
def analyze(files: tuple[str, ...], quiet: bool, **options: Unpack[AnalyzeOptions]) -> int:
    """Print mix, rates, locality, working set and latency of a trace.

    \b
    headstack trace analyze db.parquet
    headstack trace analyze trace.blktrace.* --html trace.html
    headstack trace analyze db.parquet --endurance 1200TB
    headstack trace analyze db.parquet --workload db.toml
    headstack run 990-pro-2tb -w db.toml

    The tables also show burstiness, sequential runs and seeks, alignment, requests in flight, devices and processes,
    changes over time, and the phases of a block trace. The last table describes the trace as an access specification;
    --workload writes it for "headstack run".
    """
    outputs = Outputs(options, Analysis, workload=Analysis.to_workload)
    rated_bytes = None if options["endurance"] is None else size_bytes("--endurance", options["endurance"])
    if rated_bytes is not None and rated_bytes <= 0:
        raise InputError(f"--endurance: {options['endurance']} is out of range; must be above 0")
    try:
        analysis = analyze_trace(files, quiet, options)
    except KeyboardInterrupt:
        if options["executor"] is None and options["store"] is None:
            raise
        click.echo("headstack: interrupted; finished parts are kept: repeat the command to resume", err=True)
        return signals.exit_code()
    endurance = None if rated_bytes is None else endurance_of(analysis.report, rated_bytes)
    outputs.write(analysis, lambda: print_analysis(analysis, endurance))
    return 0


def analyze_trace(files: tuple[str, ...], quiet: bool, options: AnalyzeOptions) -> Analysis:
    """Analyses the trace with the options."""
    reuse = choice("--reuse", options["reuse"], REUSE)
    sample = None if options["sample"] is None else number("--sample", options["sample"])
    if sample is not None and reuse == "off":
        raise InputError("--sample: needs re-use; remove --reuse off")
    size_bytes("--block", options["block"])
    trace = open_trace(files, options)
    with show_progress("analyze", quiet) as show:
        reuse_unit = None if reuse == "off" else reuse
        executor, store = options["executor"], options["store"]
        return trace.analyze(options["block"], reuse_unit, sample, show, executor=executor, store=store)
