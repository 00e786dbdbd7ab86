"""``headstack trace synthesize``: a synthetic trace or scenario, and its comparison with the original."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

import click

from headstack._native import InputError, format_duration_ns
from headstack.cli.command import Brief
from headstack.cli.files import OUTPUT
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, print_table, say, wide_option
from headstack.cli.traces.traces import SourceOptions, messages_to_stderr, open_trace, show_progress, source_options
from headstack.io import signals
from headstack.io.columns import Figures, Names
from headstack.io.values import whole
from headstack.traces.synthesis import Synthesis, synthesize_scenario
from headstack.traces.synthesis import synthesize as synthesize_trace
from headstack.traces.synthesis_types import Scorecard

TRACE_OPTIONS: Mapping[str, str | None] = {
    "length": "1x",
    "rate": "1x",
    "footprint": "1x",
    "clients": None,
    "seed": "1",
}
"""Options of a synthetic trace with their defaults. A scenario has no such options: its runs set length, rate and
seed."""


class SynthesizeOptions(SourceOptions):
    """Options of the command, as typed."""

    length: str
    rate: str
    footprint: str
    clients: str | None
    seed: str
    no_scorecard: bool
    plot_path: str | None
    html_path: str | None
    markdown_path: str | None


@click.command("synthesize", cls=Brief)
@source_options
@click.option("-o", "--output", type=OUTPUT, metavar="FILE.parquet", help="Write the synthetic trace (Parquet).")
@click.option(
    "--scenario",
    type=OUTPUT,
    metavar="FILE.toml",
    help="Write a scenario instead: a synthetic workload that never ends.",
)
@click.option(
    "--length",
    metavar="10x|10min|N",
    default="1x",
    show_default=True,
    help="Length: a factor, a time or a number of requests, for example 2x, 10min or 100000.",
)
@click.option(
    "--rate", metavar="2x", default="1x", show_default=True, help="Factor of the arrival rate, for example 2x."
)
@click.option(
    "--footprint",
    metavar="4x",
    default="1x",
    show_default=True,
    help="Factor of the footprint (blocks touched), for example 0.5x.",
)
@click.option("--clients", metavar="N", help="Number of clients of a closed loop.  [default: as in the trace]")
@click.option("--seed", metavar="N", default="1", show_default=True, help="Random seed.")
@click.option("--no-scorecard", is_flag=True, help="Write only the synthetic trace, and skip the comparison.")
@output_options(
    Synthesis, json="Write all figures as JSON (- for stdout).", plot="Draw cache misses and bursts of both traces."
)
@wide_option
@signals.held()
def synthesize(
    files: tuple[str, ...],
    output: str | None,
    scenario: str | None,
    quiet: bool,
    **options: Unpack[SynthesizeOptions],
) -> None:
    """Write a synthetic trace with the statistics of a trace.

    \b
    headstack trace synthesize db.parquet -o synthetic.parquet
    headstack trace synthesize db.parquet -o double.parquet --rate 2x --length 1h
    headstack trace synthesize db.parquet --scenario db.toml

    Request types and sizes, re-use, sequential runs, bursts at all time scales, think times and closed loops are kept.
    The order of bursts, gaps and addresses is random. The scorecard compares cache misses, dispersion, requests in
    flight, and latencies of both traces on a disk, an SSD and an array.

    A scenario keeps the mix, and bursts and re-use as far as independent streams can. Run it for any time with
    "headstack run SYSTEM -w FILE.toml"; its scorecard is of a run with as many requests as the trace.
    """
    outputs = Outputs(options, Synthesis)
    paths = {"plot": options["plot_path"], "html": options["html_path"], "markdown": options["markdown_path"]}
    pictures = [name for name, path in paths.items() if path is not None]
    if options["no_scorecard"] and pictures:
        raise InputError(f"--{pictures[0]}: needs the scorecard; remove --no-scorecard")
    with_scorecard = not options["no_scorecard"]
    with show_progress("synthesize", quiet) as show:
        if scenario is not None:
            place = scenario
            check_scenario(output, options)
            synthesis = synthesize_scenario(
                open_trace(files, options), scenario, scorecard=with_scorecard, progress=show
            )
        elif output is not None:
            place = output
            clients = None if options["clients"] is None else whole("--clients", options["clients"])
            synthesis = synthesize_trace(
                open_trace(files, options),
                output,
                length=options["length"],
                rate=options["rate"],
                footprint=options["footprint"],
                clients=clients,
                seed=whole("--seed", options["seed"]),
                scorecard=with_scorecard,
                progress=show,
            )
        else:
            raise InputError("no output file; add --output FILE.parquet or --scenario FILE.toml")

    def print_all() -> None:
        with messages_to_stderr(place):
            print_synthesis(synthesis, place)

    outputs.write(synthesis, print_all)


def check_scenario(output: str | None, options: Mapping[str, object]) -> None:
    """Refuses options that apply only to a synthetic trace."""
    if output is not None:
        raise InputError("--scenario, --output: give only one of them")
    if other := [name for name, default in TRACE_OPTIONS.items() if options[name] != default]:
        raise InputError(f"--{other[0]}: not available with --scenario")


def print_synthesis(synthesis: Synthesis, output: str) -> None:
    """Prints the name of the written trace or scenario, its scorecard, and lost properties."""
    summary = synthesis.made
    loop = "" if summary["clients"] is None else f", a closed loop of {summary['clients']:,} clients"
    if summary["requests"] is None or summary["duration_ns"] is None:
        say(f"{output}: a scenario{loop}")
    else:
        say(f"{output}: {summary['requests']:,} requests in {format_duration_ns(summary['duration_ns'])}{loop}")
    if synthesis.scorecard is not None:
        print()
        print_table(
            [Names("figure"), Figures("trace"), Figures("twin"), Figures("apart", 0)],
            scorecard_rows(synthesis.scorecard),
        )
        print()
    for loss in synthesis.lost:
        say(f"lost: {loss}")


def scorecard_rows(card: Scorecard) -> list[list[str]]:
    """Formats each figure of the trace and of the synthetic trace, with the difference."""

    def row(name: str, trace: float | None, twin: float | None) -> list[str]:
        if trace is None or twin is None:
            return [name, "not recorded", "not recorded", ""]
        return [name, f"{trace:,.4g}", f"{twin:,.4g}", f"{twin / trace - 1:+.1%}" if trace else ""]

    rows = [row("IOPS", card["requests_per_s"]["trace"], card["requests_per_s"]["twin"])]
    if card["in_flight"] is not None:
        rows.append(row("requests in flight, mean", card["in_flight"]["trace"], card["in_flight"]["twin"]))
    misses = card["misses"]
    if misses is not None:
        rows.append(["LRU cache miss ratio, largest error", "", "", f"{misses['max_error']:.4f}"])
        rows.append(["LRU cache miss ratio, mean error", "", "", f"{misses['mean_error']:.4f}"])
    for dispersion in card["dispersion"]:
        name = f"dispersion in {format_duration_ns(dispersion['bin_ns'])}"
        rows.append(row(name, dispersion["trace"], dispersion["twin"]))
    for replayed in card["replays"]:
        name = f"{replayed['system']}, {replayed['twin_mode']}"
        rows.append(row(f"{name}: mean ms", replayed["trace_mean_ms"], replayed["twin_mean_ms"]))
        rows.append(row(f"{name}: p99 ms", replayed["trace_p99_ms"], replayed["twin_p99_ms"]))
    return rows
