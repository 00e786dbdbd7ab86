"""``headstack compare``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, assert_never

import click

from headstack._native import InputError
from headstack.cli.command import Brief
from headstack.cli.completing import SYSTEM, Among
from headstack.cli.files import OUTPUT, OUTPUT_FOLDER, SOURCE
from headstack.cli.formats import output_options
from headstack.cli.loading import with_subcommands
from headstack.cli.output import Outputs, print_table, progress, say, wide_option
from headstack.comparison.comparison import TOLERANCE, Comparison, is_file
from headstack.comparison.comparison import compare as held_against
from headstack.comparison.differences.campaign import Campaign
from headstack.comparison.differences.difference import SAME, TELL, Difference, compare_sides, share_of
from headstack.comparison.differences.gate import LimitResult, LimitVerdict, judge_limits, limits_of
from headstack.comparison.differences.runs import NAMES, Side, side_of, to_baseline
from headstack.comparison.members import Member, find_outliers
from headstack.comparison.members import read as members_of
from headstack.io import signals
from headstack.io.atomic_files import write_text
from headstack.io.counts import counted
from headstack.io.values import percent, whole

EXIT_LIMIT, EXIT_TOO_SHORT = 1, 4
PAIRS = "10"
OF_POINTS = ("tolerance", "fail_below", "members")
OF_RUNS = ("same_within", "tell", "figures", "fail_if")
OF_COMMANDS = ("pairs", "stop_early", "warm_ups", "keep")
"""Options of each form."""


@dataclass(frozen=True)
class Options:
    """The options of all forms, but for the files that are written."""

    tolerance: str | None
    fail_below: str | None
    members: str | None
    pairs: str | None
    stop_early: bool
    warm_ups: str | None
    keep: str | None
    same_within: str | None
    tell: str | None
    figures: str | None
    fail_if: tuple[str, ...]
    quiet: bool

    def refuse(self, names: tuple[str, ...], why: str) -> None:
        """Raises ``InputError`` where an option of another form is given."""
        for name in names:
            if getattr(self, name):
                raise InputError(f"--{name.replace('_', '-')}: {why}")


class OfRuns(Brief):
    """Takes for others' runs all that follows ``--against`` up to the next option, where ours stand before it: a shell
    puts many names in the place of one pattern."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Names ``--against`` before each of them."""
        spread: list[str] = []
        is_of_others = False
        for at, word in enumerate(args):
            if word.startswith("-"):
                is_of_others = False
            elif is_of_others:
                spread.append("--against")
            spread.append(word)
            is_of_others |= at > 0 and args[at - 1] == "--against" and not args[0].startswith("-")
        return super().parse_args(ctx, spread)


@with_subcommands({"plot": "compare.plot"})
@click.command(cls=OfRuns)
@click.argument(
    "sources",
    nargs=-1,
    type=SYSTEM,
    metavar="MEASURED PREDICTED | RUNS...",
    help="Two results, or a result and a system to simulate; or files, folders and patterns of runs.",
)
@click.option("--tolerance", metavar="PERCENT", help=f"For points: allowed error of the model.  [default: {TOLERANCE}]")
@click.option(
    "--fail-below",
    metavar="PERCENT",
    help="For points: exit with code 1 if the device reaches less than this share of the prediction, for example 90%.",
)
@click.option(
    "--members",
    type=SOURCE,
    metavar="FIO.json",
    help="For points: fio JSON of the measurement; reports slow members of the array from its disk_util.",
)
@click.option(
    "--against",
    multiple=True,
    type=SOURCE,
    metavar="RUNS",
    help="Runs to compare RUNS with: files, folders and patterns, up to the next option.",
)
@click.option("--baseline", type=SOURCE, metavar="FILE.json", help="Baseline file to compare RUNS with.")
@click.option(
    "--save-baseline", type=OUTPUT, metavar="FILE.json", help="Save RUNS as a baseline for later comparisons."
)
@click.option(
    "--run",
    "commands",
    multiple=True,
    metavar="COMMAND",
    help="Command that makes a run; give it twice: headstack alternates both commands and compares them.",
)
@click.option("--pairs", metavar="N", help=f"With --run: maximum number of runs of each command.  [default: {PAIRS}]")
@click.option("--stop-early", is_flag=True, help="With --run: stop as soon as each figure is decided.")
@click.option("--warm-ups", metavar="N", help="With --run: warm-up runs of each command that do not count.")
@click.option(
    "--keep", type=OUTPUT_FOLDER, metavar="DIR", help="With --run: keep the results of each run in this folder."
)
@click.option(
    "--same-within",
    metavar="PERCENT",
    help=f"For runs: differences within this count as equivalent.  [default: {SAME}]",
)
@click.option(
    "--tell",
    metavar="PERCENT",
    help=f"For runs: print how many more runs would show a difference of this size.  [default: {TELL}]",
)
@click.option(
    "--figures",
    metavar="|".join(NAMES.values()),
    type=Among(tuple(NAMES.values())),
    help="For runs: figures to compare, a list.  [default: all]",
)
@click.option(
    "--fail-if",
    multiple=True,
    metavar="FIGURE=PERCENT",
    help="For runs: exit with code 1 if RUNS are worse by this much, and with 4 if there are too few runs to decide, "
    "for example slower=3%,p99=5%.",
)
@output_options(
    Comparison,
    csv="Write a CSV row for each point (- for stdout).",
    plot="Draw both curves, or the differences (PNG, SVG or PDF).",
)
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def compare(
    sources: tuple[str, ...],
    against: tuple[str, ...],
    baseline: str | None,
    save_baseline: str | None,
    commands: tuple[str, ...],
    **given: Any,
) -> int:
    """Compare measurements with predictions, or two sets of runs.

    \b
    headstack compare before.json after.json
    headstack compare measured.json 990-pro-2tb --plot compare.png
    headstack compare new/*.json --against old/*.json --fail-if p99=5%
    headstack compare --run './fio-a.sh {}' --run './fio-b.sh {}'

    Points (MEASURED PREDICTED): MEASURED is a file of results (--json, --csv or --parquet of measure or run), PREDICTED
    another one, or a SYSTEM, which headstack simulates with the workload, range, length and seed of the measurement.
    Points with the same load are compared.

    Errors are predicted / measured - 1. The demerit is the root mean square horizontal distance between the two latency
    distributions (Ruemmler and Wilkes, 1994). headstack reports where the device is worse than its model by more than
    the tolerance and the 95 % confidence intervals of both. --members reports array members that are 25 % busier or
    slower per request than the median member (equal drives differ by at most 4 %).

    Runs (RUNS --against, --baseline or --run): files of results (--json) or fio JSON, folders and patterns. Each run
    is one sample; runs that alternate in time are paired. Each figure is different (at a 5 % level over all figures),
    equivalent within --same-within (90 %), or undecided; then headstack prints how many more runs it needs.

    In a COMMAND, {} is the file for its results; without {}, headstack measures its run time. Pairs run in the order
    ABBA. With --stop-early, intervals are valid at every stop, and wider.

    Exit codes with --fail-if: 0 all limits are met (at 95 %), 1 a limit is exceeded (the difference is significant, and
    the estimate reaches the limit), 4 undecided: make more runs.
    """
    options = Options(**{one.name: given.pop(one.name) for one in fields(Options)})
    if not (against or baseline or save_baseline or commands):
        options.refuse((*OF_RUNS, *OF_COMMANDS), "is for sets of runs; add --against, --baseline or --run")
        if len(sources) != 2:
            raise InputError(
                f"{len(sources)} sources: name MEASURED and PREDICTED, or compare runs with --against or --baseline"
            )
        return compare_points(*sources, options, given)
    options.refuse(OF_POINTS, "is for points; name only MEASURED and PREDICTED")
    if commands:
        if sources or against or baseline:
            raise InputError("--run: makes the runs itself; remove the other runs")
        return compare_commands(commands, save_baseline, options, given)
    options.refuse(OF_COMMANDS, "needs --run")
    if not sources:
        raise InputError("RUNS are missing: name a file, a folder or a pattern of results")
    if against and baseline:
        raise InputError("--baseline, --against: give only one of them")
    return compare_runs(sources, (baseline,) if baseline else against, save_baseline, options, given)


def compare_points(measured: str, predicted: str, options: Options, paths: Mapping[str, object]) -> int:
    """Compares measurements with predictions, point by point."""
    fail_below, members = options.fail_below, options.members
    least = None if fail_below is None else percent("--fail-below", fail_below) / 100
    outputs = Outputs(paths, Comparison)
    seen = None if members is None else members_of(members)
    with progress(f"simulation of {predicted}", options.quiet or is_file(predicted)) as show:
        comparison = held_against(measured, predicted, tolerance=options.tolerance or TOLERANCE, progress=show)
    outputs.write(comparison, lambda: print_comparison(comparison))
    if seen is not None:
        print_members(seen)
    missed = [] if least is None else comparison.shares_below(least)
    for point in missed:
        print(f"headstack: {point.name}: {point.share:.1%} of the prediction, below {fail_below}", file=sys.stderr)
    return EXIT_LIMIT if missed else 0


def compare_runs(
    sources: tuple[str, ...],
    against: tuple[str, ...],
    kept: str | None,
    options: Options,
    paths: Mapping[str, object],
) -> int:
    """Compares two sets of runs; without others, they are only kept."""
    ours = side_of(sources, called(sources))
    if not against:
        options.refuse(OF_RUNS, "is for two sets of runs; add --against or --baseline")
        write_text(kept or "", to_baseline(ours.runs))
        say(f"saved {counted(len(ours.runs), 'run')} to {kept}")
        for bad in ours.bad:
            say(f"skipped: {bad}")
        return 0
    theirs = side_of(against, called(against))
    return tell(lambda judge: judge(ours, theirs), kept, options, paths, False)


def called(sources: tuple[str, ...]) -> str:
    """The name of a side."""
    more = len(sources) - 1
    return sources[0] + (f" and {more} more" if more else "")


def compare_commands(commands: tuple[str, ...], kept: str | None, options: Options, paths: Mapping[str, object]) -> int:
    """Makes runs of two commands in turn, and compares them."""
    if len(commands) != 2:
        raise InputError(f"--run: given {len(commands)} times; give two commands")
    pairs, warm_ups = whole("pairs", options.pairs or PAIRS), whole("warm_ups", options.warm_ups or "0")
    campaign = Campaign((commands[0], commands[1]), pairs, options.stop_early, warm_ups, options.keep)

    def make(judge: Callable[[Side, Side], Difference]) -> Difference:
        with progress(f"{pairs} pairs of runs", options.quiet) as show:
            return campaign.run(judge, show)

    return tell(make, kept, options, paths, options.stop_early)


def tell(
    make: Callable[[Callable[[Side, Side], Difference]], Difference],
    kept: str | None,
    options: Options,
    paths: Mapping[str, object],
    at_any_time: bool,
) -> int:
    """Prints and writes what is found; returns the exit code."""
    limits = limits_of(options.fail_if)
    same, told = share_of("--same-within", options.same_within or SAME), share_of("--tell", options.tell or TELL)
    outputs = Outputs(paths, Difference)
    found = make(lambda ours, theirs: compare_sides(ours, theirs, same, told, options.figures, at_any_time))
    verdicts = judge_limits(limits, found.cells)
    outputs.write(found, lambda: print_difference(found))
    if kept is not None:
        write_text(kept, to_baseline(found.ours.runs))
    return code_of(verdicts) or (signals.exit_code() if signals.heard() else 0)


def print_difference(found: Difference) -> None:
    """The answer, a line for each figure, and how it was found."""
    say(f"{found.headline}\n")
    print_table(*found.shown())
    say("")
    for remark in found.remarks:
        say(remark)


def code_of(verdicts: list[LimitResult]) -> int:
    """The exit code of limits, and a line on stderr for each that is not kept."""
    for verdict in verdicts:
        if exit_code_of(verdict.verdict) != 0:
            print(f"headstack: {verdict.in_words}", file=sys.stderr)
    codes = {exit_code_of(verdict.verdict) for verdict in verdicts}
    return next((code for code in (EXIT_LIMIT, EXIT_TOO_SHORT) if code in codes), 0)


def exit_code_of(verdict: LimitVerdict) -> int:
    """The exit code of one limit."""
    match verdict:
        case "met":
            return 0
        case "exceeded":
            return EXIT_LIMIT
        case "undecided":
            return EXIT_TOO_SHORT
    assert_never(verdict)


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
        (comparison.alone_measured, f"only {ours}, not {theirs}"),
        (comparison.alone_predicted, f"only {theirs}, not {ours}"),
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
        say(f"\n{whose} nowhere by more than the stated error")
    better = [point.name for point in comparison if point.is_better]
    if better:
        say(f"better than {'the model' if comparison.is_of_device else theirs}: {'; '.join(better)}")


def print_members(members: list[Member]) -> None:
    """Those that stand out, each in a line."""
    found = find_outliers(members)
    say("")
    for outlier in found:
        say(outlier.in_words)
    if not found:
        say(f"no member stands out among {len(members)}")
