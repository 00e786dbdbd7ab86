"""``headstack compare``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from headstack.cli.completing import SYSTEM
from headstack.cli.files import OUTPUT, SOURCE
from headstack.cli.output import Outputs, print_table, progress, report_options, reports, say, wide_option
from headstack.comparison import TOLERANCE, Comparison, is_file
from headstack.comparison import compare as held_against
from headstack.comparison.members import Member, standing_out
from headstack.comparison.members import read as members_of
from headstack.values import percent

EXIT_LIMIT = 1
EXPORTS: dict[str, Callable[..., Any]] = {
    "json": Comparison.to_json,
    "csv": Comparison.to_csv,
    "plot": Comparison.plot,
    **reports(Comparison.report),
}


@click.command()
@click.argument("measured", type=SOURCE, metavar="MEASURED", help="Results of a measurement.")
@click.argument("predicted", type=SYSTEM, metavar="PREDICTED", help="Other results, or a system to simulate.")
@click.option(
    "--tolerance", metavar="PERCENT", default=TOLERANCE, help="What a model may be off by.", show_default=True
)
@click.option(
    "--fail-below",
    metavar="PERCENT",
    help="Fail (exit 1) where the device does less than this share of what is predicted, such as 90%.",
)
@click.option(
    "--members",
    type=SOURCE,
    metavar="FIO.json",
    help="fio's JSON of the measurement: which member of the array stands out, by its disk_util.",
)
@click.option("--json", "json_path", type=OUTPUT, metavar="FILE", help="Write everything (- for stdout).")
@click.option("--csv", "csv_path", type=OUTPUT, metavar="FILE", help="Write a row for each point (- for stdout).")
@click.option("--plot", "plot_path", type=OUTPUT, metavar="FILE.png", help="Draw both curves, and the errors below.")
@report_options
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def compare(
    measured: str,
    predicted: str,
    tolerance: str,
    fail_below: str | None,
    members: str | None,
    quiet: bool,
    **given: Any,
) -> int:
    """Hold measurements against predictions, point by point.

    MEASURED is a file of results (--json, --csv or --parquet of measure, curve, run or replay), PREDICTED another one,
    or a SYSTEM: the points that were measured are then simulated on it, with the workload, range, length and seed that
    the measured results state. Points of the same load belong together.

    Errors are predicted over measured, minus 1. The demerit is the root mean square horizontal distance between the two
    distributions of response times (Ruemmler and Wilkes, 1994). Where the device does worse than its model by more than
    the tolerance and the 95 % confidence of both sides together, it is said in words.

    With --members, a member stands out that was busy for a request, or took for one, a quarter longer than the median
    of the others: equal drives of an array lie within 4 % of each other.
    """
    least = None if fail_below is None else percent("--fail-below", fail_below) / 100
    outputs = Outputs(given, EXPORTS)
    seen = None if members is None else members_of(members)
    with progress(f"simulation of {predicted}", quiet or is_file(predicted)) as show:
        comparison = held_against(measured, predicted, tolerance=tolerance, progress=show)
    outputs.write(comparison, lambda: print_comparison(comparison))
    if seen is not None:
        print_members(seen)
    missed = [] if least is None else comparison.shares_below(least)
    for point in missed:
        print(f"headstack: {point.name}: {point.share:.1%} of what is predicted, below {fail_below}", file=sys.stderr)
    return EXIT_LIMIT if missed else 0


def print_comparison(comparison: Comparison) -> None:
    """Both curves with their errors, where the device falls short, and the mean errors."""
    ours, theirs = comparison.sides
    say(f"{ours}: {comparison.measured}\n{theirs}: {comparison.predicted}\n")
    print_table(*comparison.shown())
    errors = comparison.mean_absolute_errors()
    named = zip(("throughput", "bytes", "mean", "p50", "p95", "p99", "demerit"), errors.values(), strict=True)
    say(
        "\nmean absolute error: "
        + ", ".join(f"{name} {e:.1%}" for name, e in named if e is not None and name != "bytes")
    )
    for line in comparison.model_errors():
        say(line)
    for names, what in (
        (comparison.alone_measured, f"{ours}, not {theirs}"),
        (comparison.alone_predicted, f"{theirs}, not {ours}"),
    ):
        if names:
            say(f"{what}: {'; '.join(names)}")
    short = comparison.shortfalls()
    whose = "the device is below its model" if comparison.is_of_device else f"{ours} is below {theirs}"
    if short:
        say("\nbelow the model:" if comparison.is_of_device else f"\n{ours} below {theirs}:")
        for line in short:
            say(f"  {line}")
    else:
        say(f"\nnowhere {whose} by more than the stated error")
    better = [point.name for point in comparison if point.is_better]
    if better:
        say(f"better than {'the model' if comparison.is_of_device else theirs}: {'; '.join(better)}")


def print_members(members: list[Member]) -> None:
    """Those that stand out, each in a line."""
    found = standing_out(members)
    say("")
    for outlier in found:
        say(outlier.in_words)
    if not found:
        say(f"no member stands out among {len(members)}")
