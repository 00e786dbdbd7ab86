"""``headstack trace synthesize``: a trace's twin, as a trace or a scenario, and how near it comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

import click

from headstack._native import InputError, format_duration_ns
from headstack.cli.command import Brief
from headstack.cli.files import OUTPUT
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, print_table, say, wide_option
from headstack.cli.traces.traces import SourceOptions, counting, opened, source_options, words_beside
from headstack.io import signals
from headstack.io.columns import Figures, Names
from headstack.io.values import whole
from headstack.traces.synthesis import Synthesis, synthesize_scenario
from headstack.traces.synthesis import synthesize as made_of
from headstack.traces.synthesis_types import Scorecard

DRAWN: Mapping[str, str | None] = {"length": "1x", "rate": "1x", "footprint": "1x", "clients": None, "seed": "1"}
"""Options of a twin that is a trace, with their defaults: a run of a scenario has its own length, rate and seed."""


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
    **given: Unpack[SynthesizeOptions],
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
    outputs = Outputs(given, Synthesis)
    paths = {"plot": given["plot_path"], "html": given["html_path"], "markdown": given["markdown_path"]}
    pictures = [name for name, path in paths.items() if path is not None]
    if given["no_scorecard"] and pictures:
        raise InputError(f"--{pictures[0]}: needs the scorecard; remove --no-scorecard")
    card = not given["no_scorecard"]
    with counting("synthesize", quiet) as show:
        if scenario is not None:
            place = scenario
            check_scenario(output, given)
            found = synthesize_scenario(opened(files, given), scenario, scorecard=card, progress=show)
        elif output is not None:
            place = output
            clients = None if given["clients"] is None else whole("--clients", given["clients"])
            found = made_of(
                opened(files, given),
                output,
                length=given["length"],
                rate=given["rate"],
                footprint=given["footprint"],
                clients=clients,
                seed=whole("--seed", given["seed"]),
                scorecard=card,
                progress=show,
            )
        else:
            raise InputError("no output; add --output FILE.parquet or --scenario FILE.toml")

    def tell() -> None:
        with words_beside(place):
            print_synthesis(found, place)

    outputs.write(found, tell)


def check_scenario(output: str | None, given: Mapping[str, object]) -> None:
    """Refuses options that only a twin that is a trace has."""
    if output is not None:
        raise InputError("--scenario, --output: give only one of them")
    if other := [name for name, usual in DRAWN.items() if given[name] != usual]:
        raise InputError(f"--{other[0]}: not available with --scenario")


def print_synthesis(found: Synthesis, output: str) -> None:
    """What was written, how near it comes, and what was lost."""
    made = found.made
    loop = "" if made["clients"] is None else f", a closed loop of {made['clients']:,} clients"
    if made["requests"] is None or made["duration_ns"] is None:
        say(f"{output}: a scenario{loop}")
    else:
        say(f"{output}: {made['requests']:,} requests in {format_duration_ns(made['duration_ns'])}{loop}")
    if found.scorecard is not None:
        print()
        print_table(
            [Names("figure"), Figures("trace"), Figures("twin"), Figures("apart", 0)], scorecard_rows(found.scorecard)
        )
        print()
    for words in found.lost:
        say(f"lost: {words}")


def scorecard_rows(card: Scorecard) -> list[list[str]]:
    """Each figure of trace and twin, and how far they are apart."""

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
    for one in card["dispersion"]:
        name = f"dispersion in {format_duration_ns(one['bin_ns'])}"
        rows.append(row(name, one["trace"], one["twin"]))
    for replayed in card["replays"]:
        name = f"{replayed['system']}, {replayed['twin_mode']}"
        rows.append(row(f"{name}: mean ms", replayed["trace_mean_ms"], replayed["twin_mean_ms"]))
        rows.append(row(f"{name}: p99 ms", replayed["trace_p99_ms"], replayed["twin_p99_ms"]))
    return rows
