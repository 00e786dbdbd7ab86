"""``headstack measure pts``: tests SSDs by SNIA's performance test specification."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from headstack._native import format_bytes
from headstack.cli.command import Brief
from headstack.cli.completing import Among
from headstack.cli.files import TARGET
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, print_table, say, wide_option
from headstack.cli.simulate.runs import split_list
from headstack.cli.targets import access_of, access_options, exit_code_of_reason, measurement_progress
from headstack.io import signals
from headstack.io.columns import Figures, Names, is_plain
from headstack.io.terminal import remark
from headstack.io.values import duration_ns, percent, whole
from headstack.measurement.tests.pts.outcomes import Outcome, Settings
from headstack.measurement.tests.pts.plans import PLANS, Point, Variable
from headstack.measurement.tests.pts.steady import RANGE_MAX, SLOPE_MAX
from headstack.measurement.tests.pts.testing import PURGES, Report
from headstack.measurement.tests.pts.testing import pts as run_pts


@click.command(cls=Brief)
@click.argument("target", type=TARGET, metavar="TARGET", help="SSD or file.")
@click.option(
    "--test",
    "tests",
    metavar="iops,...",
    type=Among(tuple(PLANS)),
    help=f"Tests to run: {', '.join(PLANS)}.  [default: all]",
)
@click.option(
    "--purge",
    metavar="|".join(PURGES),
    type=Among(PURGES),
    default=PURGES[0],
    show_default=True,
    help="How to purge the device before each test.",
)
@click.option(
    "--active-range",
    metavar="PERCENT",
    default="100",
    show_default=True,
    help="Percentage of the capacity that the rounds access.",
)
@click.option(
    "--capacity",
    metavar="PERCENT",
    default="100",
    show_default=True,
    help="Percentage of the device to use; below 100 does not conform.",
)
@click.option("--round-time", metavar="TIME", default="60s", show_default=True, help="Duration of each measurement.")
@click.option("--rounds", metavar="N", help="Maximum number of rounds of each test.  [default: 25; wsat: 1440]")
@click.option("--depth", metavar="N", default="32", show_default=True, help="Queue depth; the latency test uses 1.")
@access_options
@output_options(
    Report,
    json="Write all figures as JSON (- for stdout).",
    csv="Write each measurement of each round (- for stdout).",
    parquet="Write each measurement of each round as Parquet.",
    plot="Draw convergence, measurement window and results.",
)
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@signals.held()
def pts(target: str, **options: Any) -> int:
    """Test an SSD by SNIA's Performance Test Specification (SSS PTS).

    \b
    headstack measure pts /dev/nvme0n1 --destroy nvme0n1 --json pts.json --plot pts.png
    headstack measure pts /dev/nvme0n1 --test iops,latency --destroy nvme0n1
    headstack measure pts test.bin --create 1GiB --round-time 1s

    The tests destroy the data on the device, and need --destroy with its name or serial number (for a file:
    --overwrite). They take about a day for 1 TB. With less --capacity, shorter --round-time, or a file, the report
    states that it does not conform to the specification.

    \b
    iops        random reads and writes, 8 block sizes by 7 mixes
    throughput  sequential reads and writes of 1024 KiB, then of 128 KiB
    latency     0.5, 4 and 8 KiB, three mixes, queue depth 1
    wsat        random writes of 4 KiB, until steady or 4 times the capacity

    Each test purges the device and writes twice its capacity sequentially (except wsat), then runs rounds until the
    steady state: over five rounds the tracked variable stays within 20 % of its average, and its linear fit within
    10 %. Ctrl-C ends the test and keeps the complete rounds.
    """
    settings = Settings(
        tests=tuple(PLANS) if options["tests"] is None else tuple(split_list(options["tests"])),
        purge=options["purge"],
        active_range_percent=percent("--active-range", options["active_range"]),
        capacity_percent=percent("--capacity", options["capacity"]),
        round_ns=duration_ns("--round-time", options["round_time"]),
        rounds_max=None if options["rounds"] is None else whole("--rounds", options["rounds"]),
        depth=whole("--depth", options["depth"]),
    )
    outputs = Outputs(options, Report)
    quiet = options["quiet"]
    with measurement_progress(quiet) as show:
        report = run_pts(target, settings, access_of(options), show, None if quiet else print_step)
    outputs.write(report, partial(print_report, report))
    return exit_code_of(report)


def print_step(step: str) -> None:
    """Prints the start of a step on stderr."""
    remark(sys.stderr, f"headstack: {step}", not is_plain(sys.stderr))


def exit_code_of(report: Report) -> int:
    """Returns the exit code; reports an early end on stderr."""
    if report.ended_early is None:
        return 0
    print(f"headstack: ended early; complete rounds are kept: {report.ended_early}", file=sys.stderr)
    return exit_code_of_reason(report.ended_early)


def print_report(report: Report) -> None:
    """Prints each test with its steady state and figures."""
    say(f"{report.target}, {format_bytes(report.capacity_bytes)}")
    for outcome in report.outcomes:
        print()
        say(f"{outcome.plan.name}: {describe_steady_state(outcome)}")
        if outcome.preconditioning_s:
            rate = 2 * report.capacity_bytes / outcome.preconditioning_s / 1e6
            say(f"preconditioned in {outcome.preconditioning_s:,.1f} s, {rate:,.1f} MB/s")
        if outcome.rounds:
            TABLES[outcome.plan.name.split()[0]](outcome)
    print()
    if report.deviations:
        say(f"this run does not conform to the specification: {'; '.join(report.deviations)}")
    else:
        say("purge, preconditioning, rounds and times conform to the specification")
    for note in report.notes:
        say(f"note: {note}")


def describe_steady_state(outcome: Outcome) -> str:
    """Describes the steady state in one line."""
    window, plan = outcome.window, outcome.plan
    variable = f"{plan.variable} of {plan.tracked.block} {plan.tracked.mix}"
    if window is None:
        return f"{len(outcome.rounds)} rounds of {variable}: too few for a steady state"
    groups = f" of {plan.group} rounds" if plan.group > 1 else ""
    if not window.is_measured:
        return f"no steady state in {len(outcome.rounds)} rounds of {variable}: no request completed in the last five"
    verdict = (
        "steady"
        if outcome.steady
        else f"no steady state in {len(outcome.rounds)} rounds; figures are from the last five"
    )
    return (
        f"{verdict}: rounds {window.first} to {window.last}{groups}, {variable}: average {window.mean:,.4g}, "
        f"range {100 * window.range_share:.1f} % (at most {100 * RANGE_MAX:.0f} %), "
        f"slope {100 * window.slope_share:.1f} % (at most {100 * SLOPE_MAX:.0f} %), "
        f"fit {window.slope:,.4g} R + {window.intercept:,.4g}"
    )


def print_iops(outcome: Outcome) -> None:
    """Prints IOPS by block size and mix, with writes first as in the specification."""
    variable = outcome.plan.variable
    print_matrix(outcome, f"{variable} by block size and reads/writes in percent", variable)


def print_matrix(outcome: Outcome, title: str, variable: Variable, largest: bool = False) -> None:
    """Prints one row per block size and one column per mix."""
    points = outcome.plan.points
    sizes = sorted({point.block_bytes for point in points})
    mixes = sorted({point.read_percent for point in points})
    rows = []
    for size in sizes:
        cells = [Point(size, mix, points[0].is_random) for mix in mixes]
        values = [
            outcome.largest(cell, variable.column) if largest else outcome.mean(cell, variable.column) for cell in cells
        ]
        rows.append([cells[0].block, *map(format_figure, values)])
    say(f"{title}")
    print_table([Names("block"), *(Figures(Point(512, mix, True).mix) for mix in mixes)], rows)


def print_throughput(outcome: Outcome) -> None:
    """Prints throughput and latency of reads and writes."""
    rows = [
        [
            "read" if point.read_percent else "write",
            format_figure(outcome.mean(point, "mb_per_s")),
            format_figure(outcome.mean(point, "mean_ms")),
            format_figure(outcome.largest(point, "max_ms")),
        ]
        for point in outcome.plan.points
    ]
    print_table([Names(""), Figures("MB/s"), Figures("mean ms"), Figures("max ms")], rows)


def print_latency(outcome: Outcome) -> None:
    """Prints average and largest latencies."""
    print_matrix(outcome, "average latency (ms) by block size and reads/writes in percent", outcome.plan.variable)
    longest = Variable("max_ms", "largest latency", "ms")
    print_matrix(outcome, "largest latency (ms)", longest, largest=True)


def print_wsat(outcome: Outcome) -> None:
    """Prints the first and the last round."""
    first, last = outcome.rounds[0][0], outcome.rounds[-1][0]
    rows = [
        [
            name,
            format_figure(row["iops"]),
            format_figure(row["mean_ms"]),
            format_figure(row["p999_ms"]),
            format_figure(row["max_ms"]),
        ]
        for name, row in (("first round", first), (f"round {len(outcome.rounds)}", last))
    ]
    columns = [Figures(heading) for heading in ("IOPS", "mean ms", "p99.9 ms", "max ms")]
    print_table([Names(""), *columns], rows)
    say(f"{format_bytes(outcome.written_bytes)} written")


TABLES: dict[str, Callable[[Outcome], None]] = {
    "iops": print_iops,
    "throughput": print_throughput,
    "latency": print_latency,
    "wsat": print_wsat,
}


def format_figure(value: float | None) -> str:
    """Formats a figure with at least three significant digits."""
    if value is None or not math.isfinite(value):
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}" if value >= 100 else f"{value:,.3g}"
