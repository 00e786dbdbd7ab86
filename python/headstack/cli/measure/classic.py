"""``headstack measure zones`` and the other classic tests: one command each, with a picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, TypeVar

import click

from headstack._native import format_bytes, format_duration_ns, parse_bytes
from headstack.cli.command import Brief
from headstack.cli.completing import Among, systems_argument
from headstack.cli.files import TARGET
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, print_notes, print_table, say, verbose_option, wide_option
from headstack.cli.simulate.runs import Command, listed
from headstack.cli.targets import EXIT_RUN, access_of, course, ended_code, permission_options
from headstack.io import signals
from headstack.io.columns import Column, Figures, Names, Words
from headstack.io.values import whole
from headstack.measurement.access import Progress
from headstack.measurement.tests.classic import crystal as crystal_test
from headstack.measurement.tests.classic import fsync as fsync_test
from headstack.measurement.tests.classic import latency as latency_test
from headstack.measurement.tests.classic import prefill as prefill_test
from headstack.measurement.tests.classic import zones as zones_test
from headstack.measurement.tests.classic.figures import Sample
from headstack.measurement.tests.classic.outcome import Outcome

EXIT_LIMIT = 1
FOR_EVER = "100000h"
"""The time of a test that Ctrl-C ends."""

T = TypeVar("T", bound=Outcome)


def outputs(command: Command) -> Command:
    """Adds the options of permission and of outputs."""
    decorators: list[Callable[[Command], Command]] = [
        permission_options,
        output_options(
            Outcome,
            json="Write figures and whole results (- for stdout).",
            csv="Write the figures as a table (- for stdout).",
            parquet="Write the table of runs as Parquet.",
        ),
        wide_option,
        verbose_option,
        click.option("-q", "--quiet", is_flag=True, help="No progress."),
    ]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


def carry_out(given: Mapping[str, Any], work: Callable[[Progress | None], T], show: Callable[[T], None]) -> T:
    """Does a test, writes the requested files, and shows the rest; ``given`` are the options of the command."""
    outputs = Outputs(given, Outcome)
    with course(given["quiet"]) as tell:
        outcome = work(tell)

    def tell_all() -> None:
        show(outcome)
        print_notes(outcome.results)

    outputs.write(outcome, tell_all)
    return outcome


@click.command(cls=Brief)
@systems_argument("Files and block devices, measured; drives and arrays, simulated.", metavar="TARGET|SYSTEM...")
@click.option("--positions", metavar="N", default="64", show_default=True, help="Places at which the rate is measured.")
@click.option("--size", metavar="SIZE", default="1MiB", show_default=True, help="Of sequential requests.")
@click.option("--depth", metavar="N", default="2", show_default=True, help="Sequential requests at a time.")
@click.option("--part", metavar="SIZE", default="32MiB", show_default=True, help="What is read at each place ...")
@click.option("--time", metavar="TIME", default="2s", show_default=True, help="... but no longer than this.")
@click.option("--accesses", metavar="N", default="500", show_default=True, help="Random accesses; 0 for none.")
@click.option("--access-size", metavar="SIZE", default="4KiB", show_default=True, help="Of random accesses.")
@click.option("--range", metavar="RANGE", help="Part of the system that is used: 36.7GB, 10GB..20GB or 0%..50%.")
@click.option("--write", is_flag=True, help="Write instead of reading; what is there is lost.")
@outputs
@signals.held()
def zones(systems: tuple[str, ...], **given: Any) -> int:
    """Transfer rate and access time from the outer to the inner edge.

    The rate of sequential requests at evenly spread places, then the time of single random accesses over all of it, as
    hdtune shows them. On a disk the steps of its zones show where places are many enough (--positions 256).

    Beside files and block devices, SYSTEM may be a drive or an array of the catalogue: measured and simulated, side by
    side:

    \b
    headstack measure zones /dev/sdb constellation2-1tb --plot zones.png
    """
    access = access_of(given)
    test = partial(
        zones_test.zones,
        systems,
        access,
        positions=whole("positions", given["positions"]),
        depth=whole("depth", given["depth"]),
        accesses=whole("accesses", given["accesses"]),
        size=given["size"],
        part=given["part"],
        time=given["time"],
        access_size=given["access_size"],
        range=given["range"],
        write=given["write"],
    )

    def work(tell: Progress | None) -> zones_test.Zones:
        return test(progress=tell)

    return ended_code(carry_out(given, work, show_zones).ended_early)


def show_zones(test: zones_test.Zones) -> None:
    """Rates and access times of each system, then the zones that stand out."""
    found = [profile.figures() for profile in test.profiles]
    columns = [Names("system"), Words("mode", 7), Figures("outer\nMB/s", 0), Figures("inner\nMB/s", 0)]
    columns += [Figures("min\nMB/s", 2), Figures("mean\nMB/s", 1), Figures("max\nMB/s", 3), Figures("outer\nMb/s", 6)]
    columns += [Figures("inner\nMb/s", 6), Figures("access\nms", 0), Figures("p99\nms", 4)]
    rows = []
    for one in found:
        rates = [one["mb_per_s"][name] for name in ("outer", "inner", "minimum", "mean", "maximum")]
        bits = [one["megabits_per_s"][name] for name in ("outer", "inner")]
        times = [one["access"][name] for name in ("mean_ms", "p99_ms")]
        cells = [*(figure(rate, ",.1f") for rate in rates), *(figure(rate, ",.0f") for rate in bits)]
        rows.append([one["system"], one["mode"], *cells, *(figure(time, ",.3f") for time in times)])
    print_table(columns, rows)
    steps = [
        [
            one["system"],
            str(number),
            f"{zone['start_bytes'] / 1e9:,.1f}",
            figure(zone["mb_per_s"], ",.1f"),
            figure(8 * zone["mb_per_s"], ",.0f"),
        ]
        for one in found
        for number, zone in enumerate(one["zones"])
    ]
    if steps:
        say("\nzones, where their steps are clear:")
        columns = [Names("system"), *(Figures(heading) for heading in ("zone", "from\nGB", "MB/s", "Mb/s"))]
        print_table(columns, steps)


@click.command(cls=Brief)
@click.argument("target", type=TARGET, help="A file or a block device.")
@click.option("-c", "--count", metavar="N", help="Requests; 0 until Ctrl-C.  [default: 20; with -w or -R any number]")
@click.option("-i", "--interval", metavar="TIME", help="From one request to the next.  [default: 1s]")
@click.option("-s", "--size", metavar="SIZE", help="Of a request.  [default: 4KiB, sequential 256KiB]")
@click.option("-S", "--range", metavar="RANGE", help="Working set: 64MiB (the first), 10GB..20GB or 0%..50%.")
@click.option("-w", "--time", metavar="TIME", help="Stop after this time.")
@click.option("-L", "--sequential", is_flag=True, help="One place after the other rather than random ones.")
@click.option("-R", "--seek-rate", is_flag=True, help="As -q -i 0s -w 3s: how many a second.")
@click.option("-W", "--write", is_flag=True, help="Write instead of reading; what is there is lost.")
@click.option("-C", "--cached", is_flag=True, help="Through the page cache, as --buffered.")
@click.option("--seed", metavar="N", default="1", show_default=True, help="Of the places.")
@outputs
@signals.held()
def latency(target: str, seek_rate: bool, cached: bool, **given: Any) -> int:
    """Latency of single requests, one at a time, as ioping shows it.

    A line for each request as it comes back (none with -q), then their distribution. A first request is not counted:
    it wakes the device up.
    """
    given["buffered"] |= cached
    access = access_of(given)
    given["quiet"] |= seek_rate
    is_silent = given["quiet"] or "-" in (given["json_path"], given["csv_path"])
    stated, interval, time = given["count"], given["interval"], given["time"]
    if seek_rate:
        interval, time = interval or "0s", time or (None if stated else "3s")
    count = whole("count", stated) if stated is not None else 0 if time else latency_test.COUNT
    if not count and time is None:
        time = FOR_EVER

    def line(sample: Sample) -> None:
        took = "failed" if sample.failed else f"time={time_of(sample.ms)}"
        print(f"{target}: request={sample.number} position={format_bytes(sample.position_bytes)} {took}", flush=True)

    test = partial(
        latency_test.latency,
        target,
        access,
        count=count,
        interval=interval or latency_test.INTERVAL,
        size=given["size"],
        range=given["range"],
        sequential=given["sequential"],
        write=given["write"],
        time=time,
        seed=whole("seed", given["seed"]),
        each=None if is_silent else line,
    )

    def work(_: Progress | None) -> latency_test.Latency:
        return test()

    return ended_code(carry_out(given, work, show_latency).ended_early)


def show_latency(test: latency_test.Latency) -> None:
    """Statistics as ping prints them, percentiles, and a histogram."""
    numbers = test.statistics()
    done = f"{numbers['requests']:,} {test.kind}s of {format_bytes(test.size_bytes)} from {test.target}"
    say(f"\n{done} in {numbers['duration_s']:.3g} s: {numbers['iops']:,.1f} IO/s, {numbers['mb_per_s']:,.2f} MB/s")
    if not numbers["requests"]:
        return
    say(f"without pauses: {numbers['busy_iops']:,.1f} IO/s, {numbers['busy_mb_per_s']:,.2f} MB/s")
    moments = [numbers[name] for name in ("min_ms", "mean_ms", "max_ms", "mdev_ms")]
    percentiles = [numbers[name] for name in ("p50_ms", "p90_ms", "p99_ms", "p999_ms")]
    say("min/avg/max/mdev = " + " / ".join(time_of(ms) for ms in moments if ms is not None))
    say("p50/p90/p99/p99.9 = " + " / ".join(time_of(ms) for ms in percentiles if ms is not None))
    print()
    bins = test.histogram()
    most = max(count for _, _, count in bins)
    rows = [
        [time_of(low), time_of(high), f"{count:,}", "█" * math.ceil(40 * count / most)] for low, high, count in bins
    ]
    print_table([Figures("from", 0), Figures("below", 0), Figures("requests", 0), Words("")], rows)


def time_of(ms: float) -> str:
    """A time with the unit that fits it."""
    return format_duration_ns(round(ms * 1e6))


@click.command(cls=Brief)
@click.argument("target", type=TARGET, help="A file, a block device, or a folder.")
@click.option(
    "--size", "sizes", metavar="SIZE", default=",".join(fsync_test.SIZES), show_default=True, help="Of writes."
)
@click.option(
    "-c", "--count", metavar="N", default=str(fsync_test.COUNT), show_default=True, help="Writes of a size ..."
)
@click.option("--time", metavar="TIME", default=fsync_test.TIME, show_default=True, help="... but no longer than this.")
@click.option("--limit", metavar="TIME", default=fsync_test.LIMIT, show_default=True, help="For the 99th percentile.")
@click.option("--rpm", metavar="N", help="Speed of a rotating disk, to tell whether the figures are possible.")
@click.option("--range", metavar="RANGE", help="Part of the target that is used: 64MiB (the first), 0%..50%.")
@outputs
@signals.held()
def fsync(target: str, sizes: str, limit: str, **given: Any) -> int:
    """Is it fit for a log? Writes, each with a flush.

    Sequential writes, each followed by fdatasync before the next, as the logs of etcd and of databases make them; what
    is measured is the write and its flush together. Exit code 1 where the 99th percentile of a size exceeds the limit:
    etcd asks for 10 ms. Writes are of whole blocks, of 512 bytes at least. In a folder, a file is made and removed
    again.

    \b
    headstack measure fsync /var/lib/etcd
    """
    access = access_of(given)
    on_target = partial(
        fsync_test.fsync,
        target,
        access,
        sizes=listed(sizes),
        count=whole("count", given["count"]),
        time=given["time"],
        limit=limit,
        rpm=None if given["rpm"] is None else whole("rpm", given["rpm"]),
        range=given["range"],
    )

    def work(tell: Progress | None) -> fsync_test.Fsync:
        return on_target(progress=tell)

    test = carry_out(given, work, show_fsync)
    return ended_code(test.ended_early) or (0 if test.kept else EXIT_LIMIT)


def show_fsync(test: fsync_test.Fsync) -> None:
    """Percentiles of each size, the verdict, and what speaks against it."""
    rows = []
    for row in test.rows():
        percentiles = [row[name] for name in ("p50_ms", "p90_ms", "p99_ms", "p999_ms")]
        times = [row["mean_ms"], *percentiles, row["max_ms"], row["flush_p99_ms"]]
        cells = [f"{row['pairs']:,}", figure(row["pairs_per_s"], ",.0f"), *(figure(ms, ",.3f") for ms in times)]
        rows.append([format_bytes(row["size_bytes"]), *cells, "kept" if row["kept"] else "not kept"])
    columns: list[Column] = [Figures("size", 0), Figures("writes", 6), Figures("writes/s", 1), Figures("mean\nms", 0)]
    columns += [Figures("p50\nms", 5), Figures("p90\nms", 5), Figures("p99\nms", 0), Figures("p99.9\nms", 3)]
    columns += [Figures("max\nms", 2), Figures("flush p99\nms", 4), Words("limit", 0)]
    print_table(columns, rows)
    fit = "fit for a log" if test.kept else "not fit for a log"
    say(f"\n{test.target} is {fit}: p99 of write and flush {'<=' if test.kept else '>'} {test.limit_ms:g} ms")
    for row in test.rows():
        if any(parse_bytes(size) != row["size_bytes"] for size in row["asked"].split(" ")):
            say(f"note: {row['asked'].replace(' ', ', ')}: written as {row['size_bytes']:,} bytes, whole blocks")
    for warning in test.warnings:
        say(f"warning: {warning}")


@click.command(cls=Brief)
@click.argument("target", type=TARGET, help="A file, a block device, or a folder.")
@click.option(
    "--profile",
    default="default",
    show_default=True,
    metavar="|".join(crystal_test.PROFILES),
    type=Among(tuple(crystal_test.PROFILES)),
    help="Which set.",
)
@click.option("--size", metavar="SIZE", default=crystal_test.SIZE, show_default=True, help="Of the part that is used.")
@click.option(
    "--runs", metavar="N", default=str(crystal_test.RUNS), show_default=True, help="Of each test; the best counts."
)
@click.option("--time", metavar="TIME", default=crystal_test.TIME, show_default=True, help="Of a run.")
@click.option("--pause", metavar="TIME", default=crystal_test.PAUSE, show_default=True, help="Between tests.")
@click.option(
    "--mix",
    is_flag=False,
    flag_value=crystal_test.MIX_READ,
    metavar="[PERCENT]",
    help="Mixed tests too; 70 % are reads.",
)
@outputs
@signals.held()
def crystal(target: str, **given: Any) -> int:
    """CrystalDiskMark's tests: SEQ1M Q8T1, SEQ1M Q1T1, RND4K Q32T1, RND4K Q1T1.

    Those of version 8, or with --profile nvme SEQ1M Q8T1, SEQ128K Q32T1, RND4K Q32T16, RND4K Q1T1. Each has a run
    that does not count, then five of which the best does. They use the first 1 GiB of the target; in a folder, a file
    is made and removed again. Tests that write are left out where nothing allows writing.

    \b
    headstack measure crystal /mnt/data
    """
    access = access_of(given)
    test = partial(
        crystal_test.crystal,
        target,
        access,
        profile=given["profile"],
        size=given["size"],
        runs=whole("runs", given["runs"]),
        time=given["time"],
        pause=given["pause"],
        mix=given["mix"],
    )

    def work(tell: Progress | None) -> crystal_test.Crystal:
        return test(progress=tell)

    return ended_code(carry_out(given, work, show_crystal).ended_early)


def show_crystal(test: crystal_test.Crystal) -> None:
    """The scores, a line for each test."""
    kinds = list(dict.fromkeys(score.kind for score in test.scores))
    cells: dict[str, list[str]] = {}
    for score in test.scores:
        row = score.figures()
        line = [figure(row["mb_per_s"], ",.2f"), figure(row["iops"], ",.1f"), figure(row["latency_us"], ",.1f")]
        cells.setdefault(score.test.name, []).extend(line)
    width = 3 * len(kinds)
    rows = [[name, *line, *[""] * (width - len(line))] for name, line in cells.items()]
    ranks = {"MB/s": 0, "IO/s": 1, "us": 2}
    columns = [Figures(f"{kind}\n{unit}", rank) for kind in kinds for unit, rank in ranks.items()]
    print_table([Names("test"), *columns], rows)
    runs = max((len(score.mb_per_s) for score in test.scores), default=0)
    say(f"\n{test.target}, {format_bytes(test.used_bytes)}: best of {runs} runs; MB/s are 10^6 bytes a second")
    if test.left_out is not None:
        say(f"note: the tests that write were left out: {test.left_out}")


@click.command(cls=Brief)
@click.argument("targets", nargs=-1, required=True, type=TARGET, metavar="TARGET...", help="Files or block devices.")
@click.option("--serial", "order", flag_value="serial", default=True, help="One LUN after the other.  [default]")
@click.option("--concurrent", "order", flag_value="concurrent", help="All LUNs at the same time.")
@click.option("--parts", metavar="N", default="1", show_default=True, help="LUNs that a single target is divided into.")
@click.option("--size", metavar="SIZE", default=prefill_test.SIZE, show_default=True, help="Of writes.")
@click.option(
    "--depth", metavar="N", default=str(prefill_test.DEPTH), show_default=True, help="Writes at a time of a LUN."
)
@click.option("--range", metavar="RANGE", help="Part of each target that is written: 36.7GB, 10GB..20GB or 0%..50%.")
@outputs
@signals.held()
def prefill(targets: tuple[str, ...], **given: Any) -> int:
    """Write all of a target once, sequentially, with data that cannot be compressed.

    What allocates space at the first write (virtual arrays, thin volumes, solid-state drives) is measured as it will be
    in use only after that, and lays out together what comes together: several TARGETs, or the --parts of a single one,
    are LUNs that are filled one after the other or at the same time.

    \b
    headstack measure prefill /dev/sdb /dev/sdc --concurrent --destroy sdb --destroy sdc --plot prefill.png
    """
    access = access_of(given)
    on_targets = partial(
        prefill_test.prefill,
        targets,
        access,
        order=given["order"],
        parts=whole("parts", given["parts"]),
        size=given["size"],
        depth=whole("depth", given["depth"]),
        range=given["range"],
    )

    def work(tell: Progress | None) -> prefill_test.Prefill:
        return on_targets(progress=tell)

    test = carry_out(given, work, show_prefill)
    return ended_code(test.ended_early) or (0 if test.complete else EXIT_RUN)


def show_prefill(test: prefill_test.Prefill) -> None:
    """A line for each LUN, and all together."""
    rows = []
    for lun in test.luns:
        rates = [rate for *_, rate in lun.sections()]
        times = [figure(test.since_start_s(at), ",.2f") for at in (lun.begun_ns, lun.ended_ns)]
        bounds = [rates[0], rates[-1], min(rates), max(rates)] if rates else [None] * 4
        cells = [figure(rate, ",.1f") for rate in (lun.mb_per_s, *bounds)]
        rows.append([lun.name, f"{lun.written_bytes / 1e9:,.3f}", *times, *cells, f"{lun.failed:,}"])
    columns = [Names("LUN"), Figures("GB", 0), Figures("from\ns", 3), Figures("to\ns", 3), Figures("mean\nMB/s", 0)]
    columns += [Figures("first\nMB/s", 1), Figures("last\nMB/s", 1), Figures("min\nMB/s", 2), Figures("max\nMB/s", 2)]
    print_table([*columns, Figures("failed", 0)], rows)
    all_of_it = "all of it is written" if test.complete else "not all of it is written"
    say(f"\n{test.order}: {figure(test.mb_per_s, ',.1f')} MB/s in {test.duration_s:,.2f} s; {all_of_it}")


def figure(value: float | None, form: str) -> str:
    """A figure for people; nothing where there is none."""
    return "" if value is None else f"{value:{form}}"
