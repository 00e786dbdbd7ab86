"""``headstack choose``."""

from __future__ import annotations

import datetime
import re
import sys
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from headstack._native import InputError
from headstack.cli.command import Brief
from headstack.cli.completing import ARRAY, DEMAND, EXECUTOR, FOLDER, SYSTEM, Among
from headstack.cli.files import OUTPUT, SOURCE
from headstack.cli.formats import output_options, report_writers
from headstack.cli.output import VERBOSE, WIDE, Outputs, progress, say, verbose_option, wide_option
from headstack.io import signals
from headstack.io.atomic_files import write_all, write_text
from headstack.io.columns import is_plain, width_of
from headstack.io.counts import agreed, counted
from headstack.io.tables import to_json
from headstack.io.values import number, percent
from headstack.simulation.shards import Shard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from headstack.choice.answer import Answer

CAPACITY_LOAD = "random-read-4k"
"""Workload of a question that states only a capacity, at 1 request per second within a mean of 1 s."""
NO_CONFIGURATION = 1
"""Exit code if no configuration meets the limits."""


@click.command(cls=Brief)
@click.argument("job", nargs=-1, type=DEMAND, metavar="[JOB]...", help="Workload, scenario or trace.")
@click.option(
    "-w",
    "--workload",
    "workloads",
    multiple=True,
    type=DEMAND,
    metavar="NAME|FILE",
    help="Workload, scenario or trace, for example oltp-8k; may be repeated, each with its own --rate.",
)
@click.option(
    "--rate",
    "rates",
    multiple=True,
    metavar="N",
    help="Arrival rate in requests per second of each workload in turn, for example 400.",
)
@click.option(
    "--depth", type=click.IntRange(1), metavar="N", help="Queue depth, or number of clients, instead of --rate."
)
@click.option("--scale", metavar="2x", help="Multiply the load, for example 2x.")
@click.option("--growth", metavar="PERCENT", help="Yearly growth of load and capacity over --years, in percent.")
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="FIGURE=VALUE",
    help="Limit, for example p99=20ms, mean=5ms, read.p99=10ms, iops=4000 or mb_per_s=400; may be repeated.",
)
@click.option(
    "--while",
    "whiles",
    multiple=True,
    type=click.Choice(["rebuilding"]),
    help="Latency limits must also hold during a rebuild.",
)
@click.option("--capacity", metavar="SIZE", help="Capacity for data, for example 40TB.")
@click.option("--reserve", metavar="PERCENT", help="Percentage of the capacity that the file system keeps free.")
@click.option(
    "--compression", type=float, default=1.0, metavar="RATIO", help="Compression ratio of the data, for example 1.5."
)
@click.option(
    "--survive",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Number of drives that may fail without data loss.",
)
@click.option(
    "--loss", metavar="PROBABILITY", help="Largest allowed probability of data loss per year, for example 1e-6."
)
@click.option("--spares", type=click.IntRange(0), default=0, metavar="N", help="Number of hot spares.")
@click.option(
    "--bays", type=click.IntRange(1), metavar="N", help="Number of drive bays, including spares.  [default: 24]"
)
@click.option("--watts", type=float, metavar="W", help="Largest allowed power of the drives under load, in W.")
@click.option("--budget", type=float, metavar="USD", help="Largest allowed price in dollars.")
@click.option(
    "--objective",
    default="usd",
    type=Among(("usd", "watts", "bays", "latency")),
    metavar="usd|watts|bays|latency",
    help="What to minimize; with a list, headstack also prints the Pareto front.  [default: usd]",
)
@click.option(
    "--years",
    type=float,
    default=0.0,
    metavar="N",
    help="Include power, drive replacements and monthly fees over this number of years.",
)
@click.option(
    "--pue", type=float, default=1.5, metavar="RATIO", help="Total power per watt of the drives (PUE), for example 1.5."
)
@click.option(
    "--prices",
    "price_files",
    multiple=True,
    type=SOURCE,
    metavar="FILE.csv",
    help="Price file of your own; may be repeated.",
)
@click.option("--on", metavar="DATE", help="Use the prices of this date, for example 2025-06.  [default: today]")
@click.option("--own-prices", is_flag=True, help="Use only the prices of --prices.")
@click.option("--estimate-prices", is_flag=True, help="Estimate missing prices from the class of the drive.")
@click.option(
    "--among",
    type=SYSTEM,
    metavar="LIST",
    help="Candidate drives: nearline, 15k, 10k, disk, ssd, nvme, names with wildcards, or FILE.toml.",
)
@click.option("--not", "without", metavar="LIST", help="Drives, RAID levels and hosts to exclude, with wildcards.")
@click.option(
    "--hosts",
    type=ARRAY,
    metavar="LIST",
    help="Arrays to use as hosts: their links and controllers stay, their drives are replaced.",
)
@click.option("--levels", metavar="LIST", help="RAID levels, for example raid10,raid6,raidz2,4+2,draid2:8d:1s.")
@click.option("--drives", metavar="N..M", help="Number of drives without spares, for example 8 or 4..24.")
@click.option(
    "--chunk-sizes", metavar="LIST", help="Chunk sizes, for example 64KiB,256KiB.  [default: those of the hosts]"
)
@click.option("--caches", metavar="LIST", help="Cache sizes of controllers that have a cache, for example 2GiB,8GiB.")
@click.option(
    "--volumes", metavar="LIST", help="Cloud volumes to include: gp3, io2, premium-ssd-v2, or aws, gcp, azure."
)
@click.option("--no-arrays", is_flag=True, help="Consider only cloud volumes.")
@click.option(
    "--afr",
    multiple=True,
    metavar="CLASS=PERCENT",
    help="Annual failure rate of a class of drives, for example disk=1.5 or flash=0.9.",
)
@click.option(
    "--spread", is_flag=True, help="Spread requests over the whole system instead of the part that the data occupy."
)
@click.option(
    "--requests",
    type=click.IntRange(1000),
    default=128_000,
    metavar="N",
    help="Largest number of simulated requests per system.  [default: 128000]",
)
@click.option("--explain", metavar="CONFIG", help="Print why this configuration was not chosen.")
@click.option("-o", "--output", type=OUTPUT, metavar="FILE.toml", help="Write the winner as an array file.")
@output_options(
    json="Write the complete answer as JSON (- for stdout).",
    plot="Draw the price of all candidates over the limit.",
    html=None,
    markdown=None,
)
@click.option(
    "--executor",
    default="local",
    metavar="local|dask://HOST:PORT",
    type=EXECUTOR,
    help="Where to run: local, or a Dask cluster.  [default: local]",
)
@click.option(
    "--store", metavar="DIR", type=FOLDER, help="Folder of finished runs.  [default: ~/.cache/headstack/chunks]"
)
@click.option(
    "--shard", metavar="I/N", help="Run only part I of N of the first runs, and keep it in --store, for example 1/4."
)
@verbose_option
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def choose(job: tuple[str, ...], explain: str | None, output: str | None, quiet: bool, **options: Any) -> int:
    """Find the cheapest system that meets latency and capacity limits.

    \b
    headstack choose -w oltp-8k --rate 4000 --limit p99=5ms --capacity 20TB --survive 2 --among nvme
    headstack choose -w file-server --rate 400 --limit p99=60ms --capacity 200TB --survive 2 --among nearline --bays 24
    headstack choose -w oltp-8k --rate 2000 --limit p99=20ms --capacity 2TB --volumes gp3,io2 --no-arrays --years 3
    headstack choose --capacity 100TB --survive 2

    Candidates are all drives that have a price, in every number, RAID level and host. headstack simulates them from the
    cheapest up, with more requests until each limit is decided, and shows how close the alternatives are.

    The shipped prices are dated; add your own with --prices (see "headstack catalog prices"). The answer lists old
    prices, drives without a price, and how far the answer depends on the error of simulation and model.

    With only a --capacity, the answer is the cheapest system of that size.

    Not modelled: file systems, the page cache, and network storage such as NFS, iSCSI and Ceph.
    """
    from headstack.choice.render import explain as explain_choice  # start-up time
    from headstack.choice.render import format_full, format_markdown, format_summary  # start-up time
    from headstack.choice.report import plot, report_of  # start-up time

    exports: dict[str, Callable[..., Any]] = {
        "plot": plot,
        **report_writers(report_of),
        # At most a screen, with the parts of the price.
        "markdown": lambda answer, path: write_text(path, format_markdown(answer)),
        "json": _write_json,
    }
    outputs = Outputs(options, exports)
    names = [*job, *options["workloads"]]
    is_of_capacity = options["capacity"] is not None and not (
        names or options["rates"] or options["limits"] or options["depth"]
    )
    if is_of_capacity:
        names, options = [CAPACITY_LOAD], options | {"rates": ("1",), "limits": ("mean=1s",)}
    search = _build_search(names, options)
    shard = options["shard"]
    if shard is not None:
        if options["store"] is None:
            raise InputError("--shard: needs --store DIR for its finished runs")
        with _show_stages(quiet) as search.told:
            runs = search.race(Shard.parse(shard))
        finished_runs = f"{counted(runs, 'run')} of shard {shard} {agreed(runs, 'is', 'are')}"
        print(f"{finished_runs} in {options['store']}; repeat the command without --shard to continue from there")
        return 0
    try:
        with _show_stages(quiet) as search.told:
            answer = search.answer()
    except KeyboardInterrupt:
        click.echo("headstack: interrupted; finished runs are kept: repeat the command to resume", err=True)
        return signals.exit_code()
    if output is not None and answer.best is not None:
        toml = answer.best.toml
        write_all([(output, lambda draft: write_text(draft, toml))])

    def show() -> None:
        context = click.get_current_context()
        width = None if context.meta.get(WIDE) else width_of(sys.stdout)
        format_answer = format_full if context.meta.get(VERBOSE) else format_summary
        print(format_answer(answer, width, not is_plain(sys.stdout)))
        if is_of_capacity:
            say("note: chosen for capacity alone; for performance add a workload, --rate and --limit")
            if not options["survive"]:
                say("note: any drive failure may lose data; add for example --survive 2")
        if explain is not None:
            print(f"\n{explain_choice(answer, explain)}")

    outputs.write(answer, show)
    return 0 if answer.best is not None else NO_CONFIGURATION


@contextmanager
def _show_stages(quiet: bool) -> Iterator[Callable[[str, float], object] | None]:
    """Shows the stage of the search and its progress."""
    with progress("choosing", quiet) as show:
        if show is None:
            yield None
        else:
            stages = (
                "looking for the cheapest",
                "how much more load they take",
                "what each constraint costs",
                "what other prices change",
                "the next upgrade",
                "the frontier",
            )
            yield lambda stage, runs: show((stages.index(stage) + runs / (runs + 200)) / len(stages))


def _write_json(answer: Answer, path: str | None = None) -> str:
    """Writes the complete answer as JSON."""

    def with_stored_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {"asked" if name == "inputs" else name: value for name, value in pairs}

    return to_json({"version": 1} | asdict(answer, dict_factory=with_stored_keys), path)


def _build_search(names: list[str], options: Mapping[str, Any]) -> Any:
    """Builds the search from the options. Raises ``InputError`` if one of them is invalid."""
    from headstack.choice.question_parser import parse_question  # start-up time

    scale = 1.0
    if (text := options["scale"]) is not None:
        scale = number("--scale", text.removesuffix("x") or text)
    growth = 0.0 if options["growth"] is None else percent("--growth", options["growth"]) / 100
    low, high = 1, 4096
    if (text := options["drives"]) is not None:
        match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text)
        if match is None:
            raise InputError(f"--drives: {text}: not a number of drives; use for example 8 or 4..24")
        low, high = int(match[1]), int(match[2] or match[1])
    rates = {}
    for text in options["afr"]:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--afr: {text}: rate is missing; use for example disk=1.5")
        rates[name] = percent(f"--afr {name}", value)
    return parse_question(
        names,
        rates=[number("--rate", text.removesuffix("/s")) for text in options["rates"]],
        depth=options["depth"],
        scale=scale,
        growth=growth,
        limits=options["limits"],
        rebuilding="rebuilding" in options["whiles"],
        capacity=options["capacity"],
        reserve=0.0 if options["reserve"] is None else percent("--reserve", options["reserve"]) / 100,
        compression=options["compression"],
        survive=options["survive"],
        loss_a_year=None if options["loss"] is None else number("--loss", options["loss"]),
        spares=options["spares"],
        bays=options["bays"],
        watts=options["watts"],
        usd=options["budget"],
        objective=_split_list(options["objective"]),
        years=options["years"],
        pue=options["pue"],
        prices=options["price_files"],
        on=options["on"] or datetime.date.today().isoformat(),
        shipped_prices=not options["own_prices"],
        estimate_prices=options["estimate_prices"],
        among=_split_list(options["among"]),
        without=_split_list(options["without"]),
        hosts=() if options["no_arrays"] else _split_list(options["hosts"]) or None,
        levels=_split_list(options["levels"]),
        drives=(low, high),
        chunk_sizes=_split_list(options["chunk_sizes"]),
        caches=_split_list(options["caches"]),
        volumes=_split_list(options["volumes"]),
        afr=rates,
        spread=options["spread"],
        requests=options["requests"],
        store=options["store"],
        executor=options["executor"],
    )


def _split_list(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(part.strip() for part in text.split(",") if part.strip())
