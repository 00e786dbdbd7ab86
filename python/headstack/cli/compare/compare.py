"""``headstack compare``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, assert_never

import click

from headstack._native import InputError
from headstack.cli.command import Brief
from headstack.cli.compare import sides
from headstack.cli.completing import SYSTEM, Among
from headstack.cli.files import OUTPUT, OUTPUT_FOLDER, SOURCE
from headstack.cli.formats import output_options
from headstack.cli.loading import with_subcommands
from headstack.cli.output import (
    Outputs,
    print_notes_of,
    print_results,
    print_table,
    progress,
    say,
    verbose_option,
    wide_option,
)
from headstack.cli.recognition import FIO, RESULTS
from headstack.comparison.comparison import TOLERANCE, Comparison, is_file
from headstack.comparison.comparison import compare as compare_with_prediction
from headstack.comparison.differences.campaign import Campaign
from headstack.comparison.differences.difference import DETECT as DETECTABLE
from headstack.comparison.differences.difference import SAME, Difference, compare_sides, share_of
from headstack.comparison.differences.gate import LimitResult, LimitVerdict, judge_limits, limits_of
from headstack.comparison.differences.headline import next_steps
from headstack.comparison.differences.runs import NAMES, Side, side_of, to_baseline
from headstack.comparison.headline import headline_of, legend_of, notes_of
from headstack.comparison.members import Member, find_outliers
from headstack.comparison.members import read as members_of
from headstack.comparison.repeats import repeats_of
from headstack.io import signals
from headstack.io.atomic_files import write_text
from headstack.io.counts import counted
from headstack.io.values import percent, whole
from headstack.results.results import Results

EXIT_LIMIT, EXIT_TOO_SHORT = 1, 4
PAIRS = "10"
OF_POINTS = ("tolerance", "fail_below", "members")
OF_RUNS = ("same_within", "detect", "figures", "fail_if")
OF_COMMANDS = ("pairs", "stop_early", "warm_ups", "keep")
"""Options of each form of the command: points, runs, and runs that the command makes itself."""


@dataclass(frozen=True)
class Options:
    """The options of all forms, except output files."""

    tolerance: str | None
    fail_below: str | None
    members: str | None
    pairs: str | None
    stop_early: bool
    warm_ups: str | None
    keep: str | None
    same_within: str | None
    detect: str | None
    figures: str | None
    fail_if: tuple[str, ...]
    quiet: bool

    def refuse(self, names: tuple[str, ...], why: str) -> None:
        """Raises ``InputError`` if an option is set that belongs to another form."""
        for name in names:
            if getattr(self, name):
                raise InputError(f"--{name.replace('_', '-')}: {why}")


class RunsCommand(Brief):
    """A command whose ``--against`` takes all names up to the next option if FILES precede it, because a shell
    expands one pattern to many names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeats ``--against`` before each of its names."""
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
@click.command(cls=RunsCommand)
@click.argument(
    "sources",
    nargs=-1,
    type=SYSTEM,
    metavar="FILES... [SYSTEM]",
    help="Results of headstack or fio: files, folders and patterns; or a result and a system to simulate.",
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
    help="Runs to compare FILES with: files, folders and patterns, up to the next option.",
)
@click.option("--baseline", type=SOURCE, metavar="FILE.json", help="Baseline file to compare FILES with.")
@click.option(
    "--save-baseline", type=OUTPUT, metavar="FILE.json", help="Save FILES as a baseline for later comparisons."
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
    "--detect",
    metavar="PERCENT",
    help=f"For runs: print how many more runs would show a difference of this size.  [default: {DETECTABLE}]",
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
    help="For runs: exit with code 1 if FILES are worse by this much, and with 4 if there are too few runs to decide, "
    "for example slower=3%,p99=5%.",
)
@output_options(
    Comparison,
    csv="Write a CSV row for each point (- for stdout).",
    plot="Draw both curves, or the differences (PNG, SVG or PDF).",
)
@wide_option
@verbose_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def compare(
    sources: tuple[str, ...],
    against: tuple[str, ...],
    baseline: str | None,
    save_baseline: str | None,
    commands: tuple[str, ...],
    **paths: Any,
) -> int:
    """Compare results: which is better, by how much, and whether it is significant.

    \b
    headstack compare before.json after.json
    headstack compare before1.json before2.json before3.json after1.json after2.json after3.json
    headstack compare measured.json 990-pro-2tb --plot compare.png
    headstack compare new/*.json --against old/*.json --fail-if p99=5%
    headstack compare --run './fio-a.sh {}' --run './fio-b.sh {}'

    A whole example, with two runs of fio:

    \b
    fio --name=a --filename=data --size=1g --rw=randread --runtime=60 --output-format=json --output=before.json
    (change a setting, then the same command with --output=after.json)
    headstack compare before.json after.json

    FILES are results of headstack (--json, --csv, --parquet), fio JSON, or folders and patterns of them. headstack
    detects what they are. Two files: the second compared with the first. More files: two sets of runs, by their folders
    or by names that differ only in a number. One file or one set: its figures. A result and a SYSTEM: headstack
    simulates the system with the workload, range, length and seed of the measurement.

    Runs (also with --against, --baseline or --run): each run is one sample; runs that alternate in time are paired.
    Each figure differs (at a 5 % level over all figures), is equivalent within --same-within (90 %), or is undecided;
    then headstack prints how many more runs it needs. One run of each is not enough for a verdict.

    Points (one result for each load on both sides): points with the same load are compared. Errors are predicted /
    measured - 1. The demerit is the root mean square horizontal distance between the two latency distributions
    (Ruemmler and Wilkes, 1994). headstack reports where the device is worse than its model by more than the tolerance
    and the 95 % confidence intervals of both. --members reports array members that are 25 % busier or slower per
    request than the median member (equal drives differ by at most 4 %).

    In a COMMAND, {} is the file for its results; without {}, headstack measures its run time. Pairs run in the order
    ABBA. With --stop-early, intervals are valid at every stop, and wider.

    Exit codes with --fail-if: 0 all limits are met (at 95 %), 1 a limit is exceeded (the difference is significant, and
    the estimate reaches the limit), 4 undecided: make more runs.
    """
    options = Options(**{field.name: paths.pop(field.name) for field in fields(Options)})
    if not (against or baseline or save_baseline or commands):
        return compare_sources(sources, options, paths)
    options.refuse(OF_POINTS, "applies only to points; name only the two results")
    if commands:
        if sources or against or baseline:
            raise InputError("--run: headstack makes the runs itself; remove the files and --against")
        return compare_commands(commands, save_baseline, options, paths)
    options.refuse(OF_COMMANDS, "needs --run")
    if not sources:
        raise InputError("FILES are missing: name a file, a folder or a pattern of results")
    if against and baseline:
        raise InputError("--baseline, --against: give only one of them")
    sides.check((*sources, *against))
    return compare_runs(sources, (baseline,) if baseline else against, save_baseline, options, paths)


def compare_sources(sources: tuple[str, ...], options: Options, paths: Mapping[str, object]) -> int:
    """Compares files in the form that their kinds require."""
    options.refuse(OF_COMMANDS, "needs --run")
    if not sources:
        raise InputError("nothing to compare; name two files, for example headstack compare before.json after.json")
    if len(sources) == 2 and sides.is_system(sources[1]):
        sides.check(sources[:1])
        options.refuse(OF_RUNS, "applies only to sets of runs; a system is compared point by point")
        return compare_points(*sources, options, paths)
    kinds = sides.check(sources)
    groups = [(source,) for source in sources] if len(sources) == 2 else sides.grouped(sources)
    if len(groups) == 1:
        return show_sources(sources, kinds, options, paths)
    if len(groups) > 2:
        names = ", ".join(sides.name_of(group) for group in groups[:4]) + ", ..." * (len(groups) > 4)
        raise InputError(
            f"{len(groups)} sets of runs ({names}); name two, for example headstack compare new*.json "
            "--against old*.json"
        )
    pair = sides.Sides(*groups)
    if len(sources) == 2 and form_for(kinds, sources, options) == "points":
        options.refuse(OF_RUNS, "applies only to sets of runs; name more runs of each, or add --against")
        first, second = sources
        if kinds[second] == FIO and kinds[first] != FIO:
            # fio's results are measurements.
            first, second = second, first
        return compare_points(first, second, options, paths)
    options.refuse(OF_POINTS, "applies only to points; these are sets of runs")
    theirs, ours = (side_of(side, name) for side, name in zip(pair, pair.names, strict=True))
    files = None if len(sources) > 2 or not all(map(os.path.isfile, sources)) else (pair.ours[0], pair.theirs[0])
    return report_difference(lambda judge: judge(ours, theirs), None, options, paths, False, files)


def form_for(kinds: Mapping[str, str], sources: tuple[str, ...], options: Options) -> sides.Form:
    """Returns the form of comparison that the options require, or otherwise the kinds of the sources."""
    if any(getattr(options, name) for name in OF_POINTS):
        return "points"
    if any(getattr(options, name) for name in OF_RUNS):
        return "runs"
    return sides.form_of(kinds, *sources)


def show_sources(
    sources: tuple[str, ...], kinds: Mapping[str, str], options: Options, paths: Mapping[str, object]
) -> int:
    """Prints one file, or the figures of one set of runs with their variation."""
    options.refuse((*OF_POINTS, *OF_RUNS), "needs two sides; name another file")
    for name, path in paths.items():
        if path is not None:
            raise InputError(f"--{name.removesuffix('_path').replace('_', '-')}: needs two sides; name another file")
    (first, *others) = sources
    if not others and kinds[first] == RESULTS and os.path.isfile(first) and first.endswith(".json"):
        print_results(Results.read(first))
        return 0
    if not others and first.endswith((".csv", ".parquet")):
        raise InputError(f"{first}: a table of results; name another one to compare it with")
    repeats = repeats_of(side_of(sources, sides.name_of(sources)))
    say(f"{repeats.headline}\n")
    print_table(*repeats.table())
    print()
    print_notes_of(repeats.notes)
    return 0


def compare_points(measured: str, predicted: str, options: Options, paths: Mapping[str, object]) -> int:
    """Compares measurements with predictions, point by point."""
    fail_below, members = options.fail_below, options.members
    least_share = None if fail_below is None else percent("--fail-below", fail_below) / 100
    outputs = Outputs(paths, Comparison)
    member_loads = None if members is None else members_of(members)
    with progress(f"simulation of {predicted}", options.quiet or is_file(predicted)) as show:
        comparison = compare_with_prediction(
            measured, predicted, tolerance=options.tolerance or TOLERANCE, progress=show
        )
    names = sides.Sides((measured,), (predicted,)).names
    outputs.write(comparison, lambda: print_comparison(comparison, names))
    if member_loads is not None:
        print_members(member_loads)
    missed = [] if least_share is None else comparison.shares_below(least_share)
    for point in missed:
        print(f"headstack: {point.name}: {point.share:.1%} of the prediction, below {fail_below}", file=sys.stderr)
    return EXIT_LIMIT if missed else 0


def compare_runs(
    sources: tuple[str, ...],
    against: tuple[str, ...],
    baseline_path: str | None,
    options: Options,
    paths: Mapping[str, object],
) -> int:
    """Compares two sets of runs; if there is only one, saves it as a baseline."""
    ours = side_of(sources, name_of_side(sources))
    if not against:
        options.refuse(OF_RUNS, "needs two sets of runs; add --against or --baseline")
        write_text(baseline_path or "", to_baseline(ours.runs))
        say(f"saved {counted(len(ours.runs), 'run')} to {baseline_path}")
        for bad in ours.bad:
            say(f"skipped: {bad}")
        return 0
    theirs = side_of(against, name_of_side(against))
    return report_difference(lambda judge: judge(ours, theirs), baseline_path, options, paths, False)


def name_of_side(sources: tuple[str, ...]) -> str:
    """Returns the name of a set of runs."""
    more = len(sources) - 1
    return sources[0] + (f" and {more} more" if more else "")


def compare_commands(
    commands: tuple[str, ...], baseline_path: str | None, options: Options, paths: Mapping[str, object]
) -> int:
    """Runs two commands alternately and compares their results."""
    if len(commands) != 2:
        raise InputError(f"--run: given {len(commands)} times; give two commands")
    pairs, warm_ups = whole("pairs", options.pairs or PAIRS), whole("warm_ups", options.warm_ups or "0")
    campaign = Campaign((commands[0], commands[1]), pairs, options.stop_early, warm_ups, options.keep)

    def make(judge: Callable[[Side, Side], Difference]) -> Difference:
        with progress(f"{pairs} pairs of runs", options.quiet) as show:
            return campaign.run(judge, show)

    return report_difference(make, baseline_path, options, paths, options.stop_early)


def report_difference(
    make: Callable[[Callable[[Side, Side], Difference]], Difference],
    baseline_path: str | None,
    options: Options,
    paths: Mapping[str, object],
    at_any_time: bool,
    files: tuple[str, str] | None = None,
) -> int:
    """Prints and writes the difference, and returns the exit code. ``files`` are both files if each side has one."""
    limits = limits_of(options.fail_if)
    same_within = share_of("--same-within", options.same_within or SAME)
    detectable = share_of("--detect", options.detect or DETECTABLE)
    outputs = Outputs(paths, Difference)
    difference = make(
        lambda ours, theirs: compare_sides(ours, theirs, same_within, detectable, options.figures, at_any_time)
    )
    verdicts = judge_limits(limits, difference.cells)
    outputs.write(difference, lambda: print_difference(difference, files))
    if baseline_path is not None:
        write_text(baseline_path, to_baseline(difference.ours.runs))
    return code_of(verdicts) or (signals.exit_code() if signals.heard() else 0)


def print_difference(difference: Difference, files: tuple[str, str] | None = None) -> None:
    """Prints the answer, a line for each figure, and notes."""
    say(f"{difference.headline}\n")
    loads = {cell.load for cell in difference.cells} - {""}
    if len(loads) == 1:
        say(f"{loads.pop()}:")
    print_table(*difference.shown())
    print()
    steps = next_steps(difference.cells, difference.detect, files)
    print_notes_of([*steps, *difference.remarks_on_runs], difference.remarks_on_method)


def code_of(verdicts: list[LimitResult]) -> int:
    """Returns the exit code of the limits, and prints each unmet one on stderr."""
    for verdict in verdicts:
        if exit_code_of(verdict.verdict) != 0:
            print(f"headstack: {verdict.in_words}", file=sys.stderr)
    codes = {exit_code_of(verdict.verdict) for verdict in verdicts}
    return next((code for code in (EXIT_LIMIT, EXIT_TOO_SHORT) if code in codes), 0)


def exit_code_of(verdict: LimitVerdict) -> int:
    """Returns the exit code of one limit."""
    match verdict:
        case "met":
            return 0
        case "exceeded":
            return EXIT_LIMIT
        case "undecided":
            return EXIT_TOO_SHORT
    assert_never(verdict)


def print_comparison(comparison: Comparison, names: tuple[str, str] | None = None) -> None:
    """Prints the answer, both sides with their differences, and notes. ``names`` are the names of the two files."""
    say(f"{headline_of(comparison, names)}\n")
    print_table(*comparison.point_table(names))
    print()
    print_notes_of(notes_of(comparison, names), legend_of(comparison))


def print_members(members: list[Member]) -> None:
    """Prints outliers among the members, one per line."""
    outliers = find_outliers(members)
    say("")
    for outlier in outliers:
        say(outlier.in_words)
    if not outliers:
        say(f"no member stands out among {len(members)}")
