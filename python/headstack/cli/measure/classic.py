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
from headstack.cli.simulate.runs import Command, split_list
from headstack.cli.targets import EXIT_RUN, access_of, exit_code_of_early_end, measurement_progress, permission_options
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
"""Duration of a test that runs until Ctrl-C."""

T = TypeVar("T", bound=Outcome)


def test_options(command: Command) -> Command:
    """Adds the options for write permission and outputs."""
    decorators: list[Callable[[Command], Command]] = [
        permission_options,
        output_options(
            Outcome,
            json="Write the figures and complete results as JSON (- for stdout).",
            csv="Write the figures as a table (- for stdout).",
            parquet="Write the table of runs as Parquet.",
        ),
        wide_option,
        verbose_option,
        click.option("-q", "--quiet", is_flag=True, help="Print no progress."),
    ]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


def run_test(options: Mapping[str, Any], work: Callable[[Progress | None], T], show: Callable[[T], None]) -> T:
    """Runs a test, writes the requested files, and prints the outcome."""
    outputs = Outputs(options, Outcome)
    with measurement_progress(options["quiet"]) as progress:
        outcome = work(progress)

    def print_outcome() -> None:
        show(outcome)
        print_notes(outcome.results)

    outputs.write(outcome, print_outcome)
    return outcome


@click.command(cls=Brief)
@systems_argument("Files and block devices to measure; drives and arrays to simulate.", metavar="TARGET|SYSTEM...")
@click.option(
    "--positions",
    metavar="N",
    default="64",
    show_default=True,
    help="Number of positions at which to measure the transfer rate.",
)
@click.option("--size", metavar="SIZE", default="1MiB", show_default=True, help="Size of sequential requests.")
@click.option("--depth", metavar="N", default="2", show_default=True, help="Queue depth of sequential requests.")
@click.option(
    "--part",
    metavar="SIZE",
    default="32MiB",
    show_default=True,
    help="Data to transfer at each position, for example 32MiB ...",
)
@click.option("--time", metavar="TIME", default="2s", show_default=True, help="... within at most this time.")
@click.option(
    "--accesses", metavar="N", default="500", show_default=True, help="Number of random accesses; 0 for none."
)
@click.option("--access-size", metavar="SIZE", default="4KiB", show_default=True, help="Size of random accesses.")
@click.option("--range", metavar="RANGE", help="Address range to use, for example 36.7GB, 10GB..20GB or 0%..50%.")
@click.option("--write", is_flag=True, help="Write instead of reading. Destroys the data on the target.")
@test_options
@signals.held()
def zones(systems: tuple[str, ...], **options: Any) -> int:
    """Measure transfer rate and access time over the addresses.

    \b
    headstack measure zones /dev/sdb --plot zones.png
    headstack measure zones /dev/sdb exos-x24-24tb --positions 256

    As HD Tune, the test measures sequential rates at evenly spaced positions, then the latency of single random
    accesses over the whole device. With enough positions (--positions 256) it also lists the zones of a disk. Catalogue
    drives and arrays are simulated, for comparison with the measured ones.
    """
    access = access_of(options)
    test = partial(
        zones_test.zones,
        systems,
        access,
        positions=whole("positions", options["positions"]),
        depth=whole("depth", options["depth"]),
        accesses=whole("accesses", options["accesses"]),
        size=options["size"],
        part=options["part"],
        time=options["time"],
        access_size=options["access_size"],
        range=options["range"],
        write=options["write"],
    )

    def work(tell: Progress | None) -> zones_test.Zones:
        return test(progress=tell)

    return exit_code_of_early_end(run_test(options, work, print_zones).ended_early)


def print_zones(test: zones_test.Zones) -> None:
    """Prints rates and access times of each system, then zones with clear boundaries."""
    profiles = [profile.figures() for profile in test.profiles]
    columns = [Names("system"), Words("mode", 7), Figures("outer\nMB/s", 0), Figures("inner\nMB/s", 0)]
    columns += [Figures("min\nMB/s", 2), Figures("mean\nMB/s", 1), Figures("max\nMB/s", 3), Figures("outer\nMb/s", 6)]
    columns += [Figures("inner\nMb/s", 6), Figures("access\nms", 0), Figures("p99\nms", 4)]
    rows = []
    for profile in profiles:
        rates = [profile["mb_per_s"][name] for name in ("outer", "inner", "minimum", "mean", "maximum")]
        bits = [profile["megabits_per_s"][name] for name in ("outer", "inner")]
        times = [profile["access"][name] for name in ("mean_ms", "p99_ms")]
        cells = [*(format_figure(rate, ",.1f") for rate in rates), *(format_figure(rate, ",.0f") for rate in bits)]
        rows.append([profile["system"], profile["mode"], *cells, *(format_figure(time, ",.3f") for time in times)])
    print_table(columns, rows)
    steps = [
        [
            profile["system"],
            str(number),
            f"{zone['start_bytes'] / 1e9:,.1f}",
            format_figure(zone["mb_per_s"], ",.1f"),
            format_figure(8 * zone["mb_per_s"], ",.0f"),
        ]
        for profile in profiles
        for number, zone in enumerate(profile["zones"])
    ]
    if steps:
        say("\nzones with clear boundaries:")
        columns = [Names("system"), *(Figures(heading) for heading in ("zone", "from\nGB", "MB/s", "Mb/s"))]
        print_table(columns, steps)


@click.command(cls=Brief)
@click.argument("target", type=TARGET, help="File or block device.")
@click.option(
    "-c", "--count", metavar="N", help="Number of requests; 0 until Ctrl-C.  [default: 20; unlimited with -w or -R]"
)
@click.option(
    "-i", "--interval", metavar="TIME", help="Time from one request to the next, for example 200ms.  [default: 1s]"
)
@click.option("-s", "--size", metavar="SIZE", help="Request size.  [default: 4KiB, sequential 256KiB]")
@click.option(
    "-S", "--range", metavar="RANGE", help="Working set, for example 64MiB (the first), 10GB..20GB or 0%..50%."
)
@click.option("-w", "--time", metavar="TIME", help="Stop after this time, for example 10s.")
@click.option("-L", "--sequential", is_flag=True, help="Access sequential addresses instead of random ones.")
@click.option("-R", "--seek-rate", is_flag=True, help="Measure the rate: same as -q -i 0s -w 3s.")
@click.option("-W", "--write", is_flag=True, help="Write instead of reading. Destroys the data on the target.")
@click.option("-C", "--cached", is_flag=True, help="Use the page cache; same as --buffered.")
@click.option("--seed", metavar="N", default="1", show_default=True, help="Random seed of the addresses.")
@test_options
@signals.held()
def latency(target: str, seek_rate: bool, cached: bool, **options: Any) -> int:
    """Measure the latency of single requests, as ioping does.

    \b
    headstack measure latency /dev/nvme0n1
    headstack measure latency /dev/nvme0n1 -R
    headstack measure latency test.bin --create 1GiB -c 100 -i 10ms

    Each completed request prints a line (none with -q); a summary of the distribution follows. The first request wakes
    the device up and is not counted.
    """
    options["buffered"] |= cached
    access = access_of(options)
    options["quiet"] |= seek_rate
    is_silent = options["quiet"] or "-" in (options["json_path"], options["csv_path"])
    stated_count, interval, time = options["count"], options["interval"], options["time"]
    if seek_rate:
        interval, time = interval or "0s", time or (None if stated_count else "3s")
    count = whole("count", stated_count) if stated_count is not None else 0 if time else latency_test.COUNT
    if not count and time is None:
        time = FOR_EVER

    def line(sample: Sample) -> None:
        outcome = "failed" if sample.failed else f"time={format_latency(sample.ms)}"
        print(f"{target}: request={sample.number} position={format_bytes(sample.position_bytes)} {outcome}", flush=True)

    test = partial(
        latency_test.latency,
        target,
        access,
        count=count,
        interval=interval or latency_test.INTERVAL,
        size=options["size"],
        range=options["range"],
        sequential=options["sequential"],
        write=options["write"],
        time=time,
        seed=whole("seed", options["seed"]),
        each=None if is_silent else line,
    )

    def work(_: Progress | None) -> latency_test.Latency:
        return test()

    return exit_code_of_early_end(run_test(options, work, print_latency).ended_early)


def print_latency(test: latency_test.Latency) -> None:
    """Prints statistics in the form of ping, percentiles, and a histogram."""
    numbers = test.statistics()
    done = f"{numbers['requests']:,} {test.kind}s of {format_bytes(test.size_bytes)} from {test.target}"
    say(f"\n{done} in {numbers['duration_s']:.3g} s: {numbers['iops']:,.1f} IOPS, {numbers['mb_per_s']:,.2f} MB/s")
    if not numbers["requests"]:
        return
    say(f"without pauses: {numbers['busy_iops']:,.1f} IOPS, {numbers['busy_mb_per_s']:,.2f} MB/s")
    moments = [numbers[name] for name in ("min_ms", "mean_ms", "max_ms", "mdev_ms")]
    percentiles = [numbers[name] for name in ("p50_ms", "p90_ms", "p99_ms", "p999_ms")]
    say("min/avg/max/mdev = " + " / ".join(format_latency(ms) for ms in moments if ms is not None))
    say("p50/p90/p99/p99.9 = " + " / ".join(format_latency(ms) for ms in percentiles if ms is not None))
    print()
    bins = test.histogram()
    most = max(count for _, _, count in bins)
    rows = [
        [format_latency(low), format_latency(high), f"{count:,}", "█" * math.ceil(40 * count / most)]
        for low, high, count in bins
    ]
    print_table([Figures("from", 0), Figures("below", 0), Figures("requests", 0), Words("")], rows)


def format_latency(ms: float) -> str:
    """Formats a latency with a suitable unit."""
    return format_duration_ns(round(ms * 1e6))


@click.command(cls=Brief)
@click.argument(
    "target", type=TARGET, help="File, block device or folder; in a folder, a file is created and removed again."
)
@click.option(
    "--size",
    "sizes",
    metavar="SIZE",
    default=",".join(fsync_test.SIZES),
    show_default=True,
    help="Write sizes, for example 512,4KiB.",
)
@click.option(
    "-c",
    "--count",
    metavar="N",
    default=str(fsync_test.COUNT),
    show_default=True,
    help="Number of writes of each size ...",
)
@click.option(
    "--time", metavar="TIME", default=fsync_test.TIME, show_default=True, help="... within at most this time."
)
@click.option(
    "--limit",
    metavar="TIME",
    default=fsync_test.LIMIT,
    show_default=True,
    help="Limit of the 99th percentile, for example 10ms.",
)
@click.option(
    "--rpm",
    metavar="N",
    help="Spindle speed of the disk, to detect flushes that are faster than one revolution allows.",
)
@click.option("--range", metavar="RANGE", help="Address range to use, for example 64MiB (the first) or 0%..50%.")
@test_options
@signals.held()
def fsync(target: str, sizes: str, limit: str, **options: Any) -> int:
    """Measure write and fdatasync latency, as of a database log.

    \b
    headstack measure fsync /var/lib/etcd
    headstack measure fsync test.bin --create 64MiB --size 4KiB --limit 2ms

    The test writes sequentially, calls fdatasync after each write, and prints if the target is fast enough for a log
    (etcd, databases). Exit code 1 means that the 99th percentile of a
    size exceeds the limit; etcd recommends 10 ms. Sizes are rounded up to whole blocks.
    """
    access = access_of(options)
    on_target = partial(
        fsync_test.fsync,
        target,
        access,
        sizes=split_list(sizes),
        count=whole("count", options["count"]),
        time=options["time"],
        limit=limit,
        rpm=None if options["rpm"] is None else whole("rpm", options["rpm"]),
        range=options["range"],
    )

    def work(tell: Progress | None) -> fsync_test.Fsync:
        return on_target(progress=tell)

    test = run_test(options, work, print_fsync)
    return exit_code_of_early_end(test.ended_early) or (0 if test.kept else EXIT_LIMIT)


def print_fsync(test: fsync_test.Fsync) -> None:
    """Prints percentiles of each size, the verdict, and warnings."""
    rows = []
    for row in test.rows():
        percentiles = [row[name] for name in ("p50_ms", "p90_ms", "p99_ms", "p999_ms")]
        times = [row["mean_ms"], *percentiles, row["max_ms"], row["flush_p99_ms"]]
        cells = [
            f"{row['pairs']:,}",
            format_figure(row["pairs_per_s"], ",.0f"),
            *(format_figure(ms, ",.3f") for ms in times),
        ]
        rows.append([format_bytes(row["size_bytes"]), *cells, "kept" if row["kept"] else "exceeded"])
    columns: list[Column] = [Figures("size", 0), Figures("writes", 6), Figures("writes/s", 1), Figures("mean\nms", 0)]
    columns += [Figures("p50\nms", 5), Figures("p90\nms", 5), Figures("p99\nms", 0), Figures("p99.9\nms", 3)]
    columns += [Figures("max\nms", 2), Figures("flush p99\nms", 4), Words("limit", 0)]
    print_table(columns, rows)
    fit = "fit for a log" if test.kept else "not fit for a log"
    say(f"\n{test.target} is {fit}: p99 of write and flush {'<=' if test.kept else '>'} {test.limit_ms:g} ms")
    for row in test.rows():
        if any(parse_bytes(size) != row["size_bytes"] for size in row["asked"].split(" ")):
            say(f"note: {row['asked'].replace(' ', ', ')}: written as {row['size_bytes']:,} bytes (whole blocks)")
    for warning in test.warnings:
        say(f"warning: {warning}")


@click.command(cls=Brief)
@click.argument(
    "target", type=TARGET, help="File, block device or folder; in a folder, a file is created and removed again."
)
@click.option(
    "--profile",
    default="default",
    show_default=True,
    metavar="|".join(crystal_test.PROFILES),
    type=Among(tuple(crystal_test.PROFILES)),
    help="Set of tests.",
)
@click.option(
    "--size",
    metavar="SIZE",
    default=crystal_test.SIZE,
    show_default=True,
    help="Size of the area to use, for example 1GiB.",
)
@click.option(
    "--runs",
    metavar="N",
    default=str(crystal_test.RUNS),
    show_default=True,
    help="Runs of each test; the best one counts.",
)
@click.option("--time", metavar="TIME", default=crystal_test.TIME, show_default=True, help="Duration of a run.")
@click.option("--pause", metavar="TIME", default=crystal_test.PAUSE, show_default=True, help="Pause between tests.")
@click.option(
    "--mix",
    is_flag=False,
    flag_value=crystal_test.MIX_READ,
    metavar="[PERCENT]",
    help="Add mixed tests with this percentage of reads (without a value: 70).",
)
@test_options
@signals.held()
def crystal(target: str, **options: Any) -> int:
    """Run the tests of CrystalDiskMark.

    \b
    headstack measure crystal /mnt/data
    headstack measure crystal /dev/nvme0n1 --profile nvme --destroy nvme0n1

    The tests are those of version 8: SEQ1M Q8T1, SEQ1M Q1T1, RND4K Q32T1 and RND4K Q1T1; --profile nvme runs SEQ1M
    Q8T1, SEQ128K Q32T1, RND4K Q32T16 and RND4K Q1T1. Each test has one warm-up run and five measured runs, of which the
    best counts. Write tests are skipped unless you allow writing (--destroy, --overwrite or --create).
    """
    access = access_of(options)
    test = partial(
        crystal_test.crystal,
        target,
        access,
        profile=options["profile"],
        size=options["size"],
        runs=whole("runs", options["runs"]),
        time=options["time"],
        pause=options["pause"],
        mix=options["mix"],
    )

    def work(tell: Progress | None) -> crystal_test.Crystal:
        return test(progress=tell)

    return exit_code_of_early_end(run_test(options, work, print_crystal).ended_early)


def print_crystal(test: crystal_test.Crystal) -> None:
    """Prints the scores, one row per test."""
    kinds = list(dict.fromkeys(score.kind for score in test.scores))
    cells: dict[str, list[str]] = {}
    for score in test.scores:
        row = score.figures()
        line = [
            format_figure(row["mb_per_s"], ",.2f"),
            format_figure(row["iops"], ",.1f"),
            format_figure(row["latency_us"], ",.1f"),
        ]
        cells.setdefault(score.test.name, []).extend(line)
    width = 3 * len(kinds)
    rows = [[name, *line, *[""] * (width - len(line))] for name, line in cells.items()]
    ranks = {"MB/s": 0, "IOPS": 1, "us": 2}
    columns = [Figures(f"{kind}\n{unit}", rank) for kind in kinds for unit, rank in ranks.items()]
    print_table([Names("test"), *columns], rows)
    runs = max((len(score.mb_per_s) for score in test.scores), default=0)
    say(f"\n{test.target}, {format_bytes(test.used_bytes)}: best of {runs} runs; 1 MB/s is 10^6 bytes per second")
    if test.left_out is not None:
        say(f"note: skipped the write tests: {test.left_out}")


@click.command(cls=Brief)
@click.argument("targets", nargs=-1, required=True, type=TARGET, metavar="TARGET...", help="Files or block devices.")
@click.option("--serial", "order", flag_value="serial", default=True, help="Fill one LUN after the other.  [default]")
@click.option("--concurrent", "order", flag_value="concurrent", help="Fill all LUNs at the same time.")
@click.option(
    "--parts", metavar="N", default="1", show_default=True, help="Number of LUNs to divide a single target into."
)
@click.option("--size", metavar="SIZE", default=prefill_test.SIZE, show_default=True, help="Write size.")
@click.option(
    "--depth", metavar="N", default=str(prefill_test.DEPTH), show_default=True, help="Queue depth of each LUN."
)
@click.option(
    "--range", metavar="RANGE", help="Address range of each target to fill, for example 36.7GB, 10GB..20GB or 0%..50%."
)
@test_options
@signals.held()
def prefill(targets: tuple[str, ...], **options: Any) -> int:
    """Fill targets sequentially with incompressible data.

    \b
    headstack measure prefill /dev/sdb --destroy sdb
    headstack measure prefill /dev/sdb /dev/sdc --concurrent --destroy sdb --destroy sdc --plot prefill.png

    Prefill thin volumes, virtual arrays and SSDs before you measure them: they allocate space at the first write. The
    order matters, because they place data together that arrive together: TARGETs, or the --parts of one, are LUNs that
    are filled one after the other (--serial) or at the same time (--concurrent).
    """
    access = access_of(options)
    on_targets = partial(
        prefill_test.prefill,
        targets,
        access,
        order=options["order"],
        parts=whole("parts", options["parts"]),
        size=options["size"],
        depth=whole("depth", options["depth"]),
        range=options["range"],
    )

    def work(tell: Progress | None) -> prefill_test.Prefill:
        return on_targets(progress=tell)

    test = run_test(options, work, print_prefill)
    return exit_code_of_early_end(test.ended_early) or (0 if test.complete else EXIT_RUN)


def print_prefill(test: prefill_test.Prefill) -> None:
    """Prints one row per LUN, and the total."""
    rows = []
    for lun in test.luns:
        rates = [rate for *_, rate in lun.sections()]
        times = [format_figure(test.since_start_s(at), ",.2f") for at in (lun.begun_ns, lun.ended_ns)]
        bounds = [rates[0], rates[-1], min(rates), max(rates)] if rates else [None] * 4
        cells = [format_figure(rate, ",.1f") for rate in (lun.mb_per_s, *bounds)]
        rows.append([lun.name, f"{lun.written_bytes / 1e9:,.3f}", *times, *cells, f"{lun.failed:,}"])
    columns = [Names("LUN"), Figures("GB", 0), Figures("from\ns", 3), Figures("to\ns", 3), Figures("mean\nMB/s", 0)]
    columns += [Figures("first\nMB/s", 1), Figures("last\nMB/s", 1), Figures("min\nMB/s", 2), Figures("max\nMB/s", 2)]
    print_table([*columns, Figures("failed", 0)], rows)
    extent = "completely filled" if test.complete else "not completely filled"
    say(f"\n{test.order}: {format_figure(test.mb_per_s, ',.1f')} MB/s in {test.duration_s:,.2f} s; {extent}")


def format_figure(value: float | None, form: str) -> str:
    """Formats a figure; ``None`` is empty."""
    return "" if value is None else f"{value:{form}}"
