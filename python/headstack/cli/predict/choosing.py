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
from headstack.cli.output import WIDE, Outputs, progress, wide_option
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

NOTHING = 1
"""The exit code where nothing meets the limits."""


@click.command(cls=Brief)
@click.argument("job", nargs=-1, type=DEMAND, metavar="[JOB]...", help="A workload, a scenario or a trace.")
@click.option(
    "-w",
    "--workload",
    "workloads",
    multiple=True,
    type=DEMAND,
    metavar="NAME|FILE",
    help="A workload, a scenario or a trace; several at once, each with a --rate of its own.",
)
@click.option("--rate", "rates", multiple=True, metavar="N", help="Arrivals a second, of each workload in turn.")
@click.option("--depth", type=click.IntRange(1), metavar="N", help="Requests outstanding, or clients, instead.")
@click.option("--scale", metavar="2x", help="So many times the load.")
@click.option("--growth", metavar="PERCENT", help="Of load and capacity each year, over --years.")
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="FIGURE=VALUE",
    help="p99=20ms, mean=5ms, read.p99=10ms, iops=4000, mb_per_s=400. May be given again.",
)
@click.option(
    "--while",
    "whiles",
    multiple=True,
    type=click.Choice(["rebuilding"]),
    help="Limits on response times hold then, too.",
)
@click.option("--capacity", metavar="SIZE", help="Of data, such as 40TB.")
@click.option("--reserve", metavar="PERCENT", help="Of the capacity that a file system keeps free.")
@click.option("--compression", type=float, default=1.0, metavar="RATIO", help="Bytes of data for each that is stored.")
@click.option("--survive", type=click.IntRange(0), default=0, metavar="N", help="Drives that may fail, whichever.")
@click.option("--loss", metavar="PROBABILITY", help="Of losing data in a year, at most, such as 1e-6.")
@click.option("--spares", type=click.IntRange(0), default=0, metavar="N", help="Drives that stand by.")
@click.option("--bays", type=click.IntRange(1), metavar="N", help="Drives at most, spares among them.  [default: 24]")
@click.option("--watts", type=float, metavar="W", help="Of the drives at work, at most.")
@click.option("--budget", type=float, metavar="USD", help="The price at most.")
@click.option(
    "--objective",
    default="usd",
    type=Among(("usd", "watts", "bays", "latency")),
    metavar="usd|watts|bays|latency",
    help="What is to be least; of a comma list the frontier is told, too.  [default: usd]",
)
@click.option("--years", type=float, default=0.0, metavar="N", help="Count power, drives replaced and months, too.")
@click.option("--pue", type=float, default=1.5, metavar="RATIO", help="Watts drawn for each of the drives'.")
@click.option("--prices", "price_files", multiple=True, type=SOURCE, metavar="FILE.csv", help="Prices of your own.")
@click.option("--on", metavar="DATE", help="The day of the prices, such as 2016-06.  [default: today]")
@click.option("--own-prices", is_flag=True, help="Take none but those of --prices.")
@click.option("--estimate-prices", is_flag=True, help="Estimate by class where a drive has no price.")
@click.option(
    "--among",
    type=SYSTEM,
    metavar="LIST",
    help="Drives: nearline, 15k, 10k, disk, ssd, nvme, names with wildcards, FILE.toml.",
)
@click.option("--not", "without", metavar="LIST", help="Drives, levels and hosts that are left out, with wildcards.")
@click.option(
    "--hosts", type=ARRAY, metavar="LIST", help="Arrays whose drives are replaced: their links and controllers stay."
)
@click.option("--levels", metavar="LIST", help="raid0, raid1, raid10, raid5, raid6, 4+2, raidz1 to 3, draid2:8d:1s.")
@click.option("--drives", metavar="N..M", help="How many, spares not among them.")
@click.option("--stripe-units", metavar="LIST", help="Such as 64KiB,256KiB; those of the hosts otherwise.")
@click.option("--caches", metavar="LIST", help="Memory of controllers that have a cache, such as 2GiB,8GiB.")
@click.option("--volumes", metavar="LIST", help="Cloud volumes as well: gp3, io2, premium-ssd-v2, or aws, gcp, azure.")
@click.option("--no-arrays", is_flag=True, help="Choose among cloud volumes alone.")
@click.option("--afr", multiple=True, metavar="CLASS=PERCENT", help="Drives that fail a year: disk=1.5, flash=0.9.")
@click.option("--spread", is_flag=True, help="Requests go to all of a system, not to as much as the data take.")
@click.option(
    "--requests",
    type=click.IntRange(1000),
    default=128_000,
    metavar="N",
    help="Simulated of one system at most.  [default: 128000]",
)
@click.option("--explain", metavar="CONFIG", help="Say why this one was not chosen.")
@click.option("-o", "--output", type=OUTPUT, metavar="FILE.toml", help="Write the winner as an array file.")
@output_options(
    json="Write the whole answer (- for stdout).",
    plot="Draw what all cost against the limit.",
    html=None,
    markdown=None,
)
@click.option(
    "--executor",
    default="local",
    metavar="local|dask://HOST:PORT",
    type=EXECUTOR,
    help="Who runs them.  [default: local]",
)
@click.option(
    "--store", metavar="DIR", type=FOLDER, help="Where what is finished is kept.  [default: ~/.cache/headstack/chunks]"
)
@click.option("--shard", metavar="I/N", help="Carry out this part of the first runs alone, and keep it in --store.")
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def choose(job: tuple[str, ...], explain: str | None, output: str | None, quiet: bool, **given: Any) -> int:
    """Find the cheapest system that does a JOB, with the proof and what would change it.

    JOB is a workload, a scenario or a trace. The candidates are the drives that have a price, in every number, level
    and host. They are looked at from the cheapest on, in simulations that grow until each limit is known to hold, or
    not to.

    \b
    headstack choose -w file-server --rate 400 --limit p99=60ms --capacity 20TB --survive 2 --among nearline
    headstack choose -w oltp-8k --rate 4000 --limit mean=5ms --bays 24 --among 'nearline,15k,ssd' --objective watts
    headstack choose -w oltp-8k --rate 2000 --limit p99=20ms --capacity 2TB --volumes gp3,io2 --no-arrays --years 3

    Prices are dated, and of files of your own where you have them (`headstack prices`). The answer says which prices
    are old, which drives were left out without one, and what the simulation and the model are unsure of.
    """
    from headstack.choice.report import plot, report_of  # start-up time
    from headstack.choice.shown import explained, markdown, told  # start-up time

    exports: dict[str, Callable[..., Any]] = {
        "plot": plot,
        **report_writers(report_of),
        # Of at most a screen, with what the price is made of.
        "markdown": lambda answer, path: write_text(path, markdown(answer)),
        "json": _json,
    }
    outputs = Outputs(given, exports)
    choosing = _choosing([*job, *given["workloads"]], given)
    shard = given["shard"]
    if shard is not None:
        if given["store"] is None:
            raise InputError("--shard: what it finishes is kept for the others in --store DIR; give one")
        with _course(quiet) as choosing.told:
            runs = choosing.race(Shard.parse(shard))
        kept = f"{counted(runs, 'run')} of shard {shard} {agreed(runs, 'is', 'are')}"
        print(f"{kept} in {given['store']}; the same without --shard goes on from there")
        return 0
    try:
        with _course(quiet) as choosing.told:
            answer = choosing.answer()
    except KeyboardInterrupt:
        click.echo("headstack: interrupted; what is finished is kept, the same command goes on from there", err=True)
        return signals.exit_code()
    if output is not None and answer.best is not None:
        toml = answer.best.toml
        write_all([(output, lambda draft: write_text(draft, toml))])

    def show() -> None:
        context = click.get_current_context()
        width = None if context.meta.get(WIDE) else width_of(sys.stdout)
        print(told(answer, width, not is_plain(sys.stdout)))
        if explain is not None:
            print(f"\n{explained(answer, explain)}")

    outputs.write(answer, show)
    return 0 if answer.best is not None else NOTHING


@contextmanager
def _course(quiet: bool) -> Iterator[Callable[[str, float], object] | None]:
    """Says what is under way, as long as it takes."""
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


def _json(answer: Answer, path: str | None = None) -> str:
    """The whole answer as JSON."""
    return to_json({"version": 1} | asdict(answer), path)


def _choosing(names: list[str], given: Mapping[str, Any]) -> Any:
    """The question of a command line. Raises ``InputError`` for what cannot be one."""
    from headstack.choice.asked import asked  # start-up time

    scale = 1.0
    if (text := given["scale"]) is not None:
        scale = number("--scale", text.removesuffix("x") or text)
    growth = 0.0 if given["growth"] is None else percent("--growth", given["growth"]) / 100
    low, high = 1, 4096
    if (text := given["drives"]) is not None:
        match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text)
        if match is None:
            raise InputError(f"--drives: {text}: is no number of drives; 8 and 4..24 are such")
        low, high = int(match[1]), int(match[2] or match[1])
    rates = {}
    for text in given["afr"]:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--afr: {text}: says no rate; disk=1.5 is such")
        rates[name] = percent(f"--afr {name}", value)
    return asked(
        names,
        rates=[number("--rate", text.removesuffix("/s")) for text in given["rates"]],
        depth=given["depth"],
        scale=scale,
        growth=growth,
        limits=given["limits"],
        rebuilding="rebuilding" in given["whiles"],
        capacity=given["capacity"],
        reserve=0.0 if given["reserve"] is None else percent("--reserve", given["reserve"]) / 100,
        compression=given["compression"],
        survive=given["survive"],
        loss_a_year=None if given["loss"] is None else number("--loss", given["loss"]),
        spares=given["spares"],
        bays=given["bays"],
        watts=given["watts"],
        usd=given["budget"],
        objective=_listed(given["objective"]),
        years=given["years"],
        pue=given["pue"],
        prices=given["price_files"],
        on=given["on"] or datetime.date.today().isoformat(),
        shipped_prices=not given["own_prices"],
        estimate_prices=given["estimate_prices"],
        among=_listed(given["among"]),
        without=_listed(given["without"]),
        hosts=() if given["no_arrays"] else _listed(given["hosts"]) or None,
        levels=_listed(given["levels"]),
        drives=(low, high),
        stripe_units=_listed(given["stripe_units"]),
        caches=_listed(given["caches"]),
        volumes=_listed(given["volumes"]),
        afr=rates,
        spread=given["spread"],
        requests=given["requests"],
        store=given["store"],
        executor=given["executor"],
    )


def _listed(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(part.strip() for part in text.split(",") if part.strip())
