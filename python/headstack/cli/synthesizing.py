"""``headstack trace synthesize``: a trace's twin, and how near it comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from headstack import signals
from headstack._native import InputError, format_duration_ns
from headstack.cli.files import OUTPUT, check_sources
from headstack.cli.output import Outputs, print_table, report_options, reports, say, wide_option
from headstack.cli.traces import counting, opened, source_options, words_beside
from headstack.columns import Figures, Names
from headstack.synthesis import Synthesis
from headstack.synthesis import synthesize as made_of
from headstack.values import whole

EXPORTS: dict[str, Callable[..., Any]] = {
    "json": Synthesis.to_json,
    "plot": Synthesis.plot,
    **reports(Synthesis.to_report),
}


@click.command("synthesize")
@source_options
@click.option(
    "-o", "--output", type=OUTPUT, required=True, metavar="FILE.parquet", help="The twin, in the stored form."
)
@click.option(
    "--length", metavar="10x|10min|N", default="1x", show_default=True, help="Times its requests, a time, or requests."
)
@click.option("--rate", metavar="2x", default="1x", show_default=True, help="Arrivals a second, over the trace's.")
@click.option("--footprint", metavar="4x", default="1x", show_default=True, help="Blocks touched, over the trace's.")
@click.option("--clients", metavar="N", help="A closed loop of so many.  [default: what the trace is]")
@click.option("--seed", metavar="N", default="1", show_default=True, help="Of all that is drawn.")
@click.option("--no-scorecard", is_flag=True, help="Write the twin alone, and compare nothing.")
@click.option("--json", "json_path", type=OUTPUT, metavar="FILE", help="Write every figure (- for stdout).")
@click.option("--plot", "plot_path", type=OUTPUT, metavar="FILE.png", help="Draw miss ratios and bursts of both.")
@report_options
@wide_option
@signals.held()
def synthesize(files: tuple[str, ...], output: str, quiet: bool, **given: Any) -> None:
    """Write a twin of a trace: other requests, places and times that are to a system what the trace's are.

    Kept are kinds and sizes, what is used again after what, runs, bursts at every scale, think times, and closed loops;
    drawn are the order of bursts, gaps and places. Its scorecard says how near it comes: misses of caches, dispersion,
    requests in flight, and response times when both are replayed on a disk, a solid-state drive and an array.
    """
    check_sources(*files)
    outputs = Outputs(given, EXPORTS)
    pictures = [name for name in ("plot", "html", "markdown") if given[f"{name}_path"] is not None]
    if given["no_scorecard"] and pictures:
        raise InputError(f"--{pictures[0]}: shows the scorecard, which --no-scorecard leaves out")
    clients = None if given["clients"] is None else whole("--clients", given["clients"])
    asked = {name: given[name] for name in ("length", "rate", "footprint")}
    seed, card = whole("--seed", given["seed"]), not given["no_scorecard"]
    with counting("synthesize", quiet) as show:
        found = made_of(
            opened(files, given), output, **asked, clients=clients, seed=seed, scorecard=card, progress=show
        )

    def tell() -> None:
        with words_beside(output):
            print_synthesis(found, output)

    outputs.write(found, tell)


def print_synthesis(found: Synthesis, output: str) -> None:
    """What was written, how near it comes, and what was lost."""
    made = found.made
    loop = "" if made["clients"] is None else f", a closed loop of {made['clients']:,} clients"
    say(f"{output}: {made['requests']:,} requests in {format_duration_ns(made['duration_ns'])}{loop}")
    if found.scorecard is not None:
        print()
        print_table(
            [Names("figure"), Figures("trace"), Figures("twin"), Figures("apart", 0)], scorecard_rows(found.scorecard)
        )
        print()
    for words in found.lost:
        say(f"lost: {words}")


def scorecard_rows(card: dict[str, Any]) -> list[list[str]]:
    """Each figure of trace and twin, and how far they are apart."""

    def row(name: str, trace: float | None, twin: float | None) -> list[str]:
        if trace is None or twin is None:
            return [name, "not recorded", "not recorded", ""]
        return [name, f"{trace:,.4g}", f"{twin:,.4g}", f"{twin / trace - 1:+.1%}" if trace else ""]

    rows = [row("IO/s", card["requests_per_s"]["trace"], card["requests_per_s"]["twin"])]
    flights = card["in_flight"] or {"trace": None, "twin": None}
    rows.append(row("requests in flight, mean", flights["trace"], flights["twin"]))
    misses = card["misses"]
    if misses is not None:
        rows.append(["misses of LRU caches, worst size", "", "", f"{misses['max_error']:.4f}"])
        rows.append(["misses of LRU caches, mean of sizes", "", "", f"{misses['mean_error']:.4f}"])
    for one in card["dispersion"]:
        name = f"dispersion in {format_duration_ns(one['bin_ns'])}"
        rows.append(row(name, one["trace"], one["twin"]))
    for one in card["replays"]:
        for figure in ("mean", "p99"):
            name = f"{one['system']}, {one['twin_mode']}: {figure} ms"
            rows.append(row(name, one[f"trace_{figure}_ms"], one[f"twin_{figure}_ms"]))
    return rows
