"""``headstack run`` and ``headstack curve``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial, reduce
from typing import Any, TypeVar, overload

import click

from headstack._native import InputError
from headstack.catalogue.options import OPTIONS
from headstack.cli.command import Brief
from headstack.cli.completing import DEMAND, systems_argument
from headstack.cli.files import OUTPUT
from headstack.cli.formats import output_options
from headstack.cli.measure.jobfiles import JobRequest, job_options, take_job_request
from headstack.cli.output import Outputs, print_results, print_table, progress, say, verbose_option, wide_option
from headstack.cli.renamed import note_of_name
from headstack.cli.simulate.varying import option_of
from headstack.cli.targets import access_of, access_options, error_option, exit_code_of_runs, measurement_progress
from headstack.io import signals
from headstack.io.columns import Figures, Names
from headstack.measurement.access import Access
from headstack.measurement.jobfiles.jobs import JobResults, run_file
from headstack.measurement.measurement import is_target, measure_curve
from headstack.results.results import Results
from headstack.results.table import response_limit
from headstack.simulation.designs import axis
from headstack.simulation.runs import CURVE_DEPTHS, run_specs, specify_described

Command = Callable[..., Any]
R = TypeVar("R", bound=Results)

KNEE = "knee: the load at which 1 % more IOPS costs 1 % more latency (Compaq's definition)"
AT_OR_BEFORE = "the knee is at or before the lightest load: the first step costs more latency than it gains IOPS"


class Grouped(Brief):
    """A command whose help lists the options under headings."""

    def sections(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Returns the options by heading, in order; options without a heading come last."""
        groups = {"workload": "Workload"} | {option.name: option.group for option in OPTIONS}
        sections: dict[str, list[click.Option]] = {group: [] for group in groups.values()}
        sections["Other"] = []
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option):
                sections[groups.get(parameter.name or "", "Other")].append(parameter)
        return sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes one section per group."""
        for heading, options in self.sections(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(
                    [record for option in options if (record := option.get_help_record(ctx)) is not None]
                )


def run_options(command: Command) -> Command:
    """Adds systems, workload, all run options and outputs."""
    decorators: list[Callable[[Command], Command]] = [
        systems_argument("Drives, arrays, cloud volumes or TOML files; NAME@RANGE uses a part."),
        click.option(
            "-w",
            "--workload",
            type=DEMAND,
            metavar="NAME|FILE.toml",
            help="Workload or scenario: a catalogue name or a file, for example oltp-8k. Or set --size, --read, "
            "--random.",
        ),
        *(option_of(option) for option in OPTIONS),
        output_options(
            Results,
            json="Write the complete results as JSON (- for stdout).",
            plot="Write a chart of latency over IOPS.",
        ),
        wide_option,
        verbose_option,
        click.option("-q", "--quiet", is_flag=True, help="Print no progress."),
    ]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


@click.command(cls=Grouped)
@run_options
@job_options
@click.option("--record", type=OUTPUT, metavar="FILE.parquet", help="Write the requests of a single run as a trace.")
@click.option(
    "--limit",
    metavar="TIME",
    help='Latency limit, for example 20ms (mean) or "p99=20ms": also print which systems meet it.',
)
@click.option(
    "--curve", "has_curve", is_flag=True, help="Run at queue depths 1, 2, 4 ... 256 and print the knee of each curve."
)
@click.option(
    "--while",
    "during",
    type=click.Choice(["rebuilding", "scrubbing"]),
    help="Also simulate a system while it rebuilds (resilvers) a drive or is scrubbed, and print how long that takes.",
)
@access_options
@error_option
def run(
    systems: tuple[str, ...],
    workload: str | None,
    limit: str | None,
    has_curve: bool,
    during: str | None,
    **options: Any,
) -> int:
    """Simulate drives, arrays and volumes, and print IOPS and latency.

    \b
    headstack run 990-pro-2tb --size 4KiB --depth 1,8,32
    headstack run exos-x24-24tb 7450-pro-7680gb -w oltp-8k --depth 16
    headstack run md-raid6-12x16tb -w file-server --drives 6..12:4 --rate 400 --limit p99=60ms
    headstack run aws-gp3-500 -w oltp-8k --curve --plot curve.png

    SYSTEM is a name from "headstack catalog drives list" or "headstack catalog arrays list", or a TOML file.
    NAME@RANGE uses a part of it: exos-x24-24tb@10TB, @10GB..20GB or @0%..50%.

    Every option takes a list (--depth 1,4,16) or a range with a number of steps (--drives 4..24:6). headstack runs all
    combinations; the last option varies fastest. With several systems, or several values of an option of arrays or
    drives, the table shows the speedup over the first.

    With --drives and --limit, headstack prints the smallest number of drives that meets the limit at the given --rate
    or --depth.

    With --curve, SYSTEM may also be a real file or device, whose curve is measured. The table compares it with
    simulated ones: headstack run /dev/nvme0n1 990-pro-2tb --size 4KiB --curve.

    If there are only writes and each one is flushed, the first line is the cost of a synchronous write.
    --while simulates an array, or a stack over one, at the same load without and with a rebuild or scrub.

    Not modelled: file systems, the page cache, and network storage such as NFS, iSCSI and Ceph.

    --fio, --icf and --vdbench simulate a job file of another program, one run for each phase. The job's files and
    devices are placed one after another in the address space of the system.
    """
    if limit is not None:
        response_limit("--limit", limit)
    access, continues_on_error = access_of(options), options.pop("continue_on_error")
    is_measured = has_curve and any(map(is_target, systems))
    if not is_measured:
        refuse_access(access, continues_on_error)
    job_request = take_job_request(systems, workload, options)
    if job_request is not None:
        if during is not None:
            raise InputError("--while: not available for job files; use a workload")
        simulate_job_file(job_request, options)
        return 0
    if during is not None:
        from headstack.cli.simulate.rebuilding import while_working  # start-up time

        if has_curve or limit is not None or options["record"] is not None:
            raise InputError("--while: remove --curve, --limit and --record")
        run_and_write(systems, workload, options, *while_working(during, systems, workload))
        return 0
    if is_measured:
        if options["record"] is not None:
            raise InputError("--record: only for simulations; remove the real files and devices")
        return measure_curves(systems, workload, limit, access, continues_on_error, options)
    if has_curve:
        set_curve_depths(options)
        run_and_write(systems, workload, options, show=partial(print_curves, limit))
        return 0
    run_and_write(systems, workload, options, show=partial(print_results, with_streams=True, limit=limit))
    return 0


def refuse_access(access: Access, continues_on_error: bool) -> None:
    """Raises ``InputError`` if an option of measurements is set, and nothing is measured."""
    names = {"over": "signature"}
    changed = [field.name for field in fields(Access) if getattr(access, field.name) != field.default]
    changed += ["continue-on-error"] * continues_on_error
    if changed:
        option = names.get(changed[0], changed[0])
        raise InputError(
            f"--{option}: only for real files and devices with --curve; to measure one at other loads, use headstack "
            "measure"
        )


def simulate_job_file(request: JobRequest, options: dict[str, Any]) -> None:
    """Simulates a job file on systems."""
    request.refuse_others(options)
    if request.status_s is not None:
        raise InputError("--status-interval: not available for simulations; remove it")
    if request.parse_only:
        request.print_remarks(request.file.remarks)
        return
    if options["record"] is not None:
        raise InputError("--record: not available for job files; run them as workloads")

    def work(varied: dict[str, Any], quiet: bool) -> JobResults:
        with progress(request.file.source, quiet) as show:
            return run_file(request.file, request.places, varied, show)

    results, to_stdout = run_and_write(tuple(request.places), None, options, work)
    request.report(results, to_stdout)


def set_curve_depths(options: dict[str, Any]) -> None:
    """Sets the queue depths of a saturation curve, unless depth or rate is set."""
    if options["depth"] is None and options["rate"] is None:
        options["depth"] = ",".join(map(str, CURVE_DEPTHS))


def print_curves(limit: str | None, results: Results) -> None:
    """Prints the results of saturation curves, and the knees."""
    print_results(results)
    print_knees(results, limit)


@click.command(cls=Grouped, hidden=True)
@run_options
@click.option(
    "--limit",
    metavar="TIME",
    help='Latency limit, for example 20ms (mean) or "p99=20ms": also print the IOPS within it.',
)
@access_options
@error_option
def curve(systems: tuple[str, ...], workload: str | None, limit: str | None, **options: Any) -> int:
    """Print saturation curves and their knees: latency over IOPS as load grows.

    \b
    headstack run 990-pro-2tb -w oltp-8k --curve
    """
    if limit is not None:
        response_limit("--limit", limit)
    note_of_name("headstack curve", "headstack run --curve")
    access, continues_on_error = access_of(options), options.pop("continue_on_error")
    return measure_curves(systems, workload, limit, access, continues_on_error, options)


@signals.held()
def measure_curves(
    systems: tuple[str, ...],
    workload: str | None,
    limit: str | None,
    access: Access,
    continues_on_error: bool,
    options: dict[str, Any],
) -> int:
    """Measures and simulates the curves of real and simulated systems, and returns the exit code."""
    set_curve_depths(options)
    work = partial(simulate_and_measure, systems, workload, access)
    work_or_none = work if any(map(is_target, systems)) else None
    results, _ = run_and_write(systems, workload, options, work_or_none, partial(print_curves, limit))
    return exit_code_of_runs(results, continues_on_error)


def simulate_and_measure(
    systems: tuple[str, ...], workload: str | None, access: Access, options: dict[str, Any], quiet: bool
) -> Results:
    """Returns the curves of simulated and real systems, in the order of their names."""
    demands = None if workload is None else split_list(workload)
    joined: Results | None = None
    for system in systems:
        if is_target(system):
            with measurement_progress(quiet) as show:
                results = measure_curve(system, demands, access, options, show)
        else:
            specs = specify_described([system], demands, options)
            with progress(system, quiet) as tell:
                results = run_specs(specs, options, tell)
        joined = results if joined is None else joined.and_others(results)
    if joined is None:
        raise InputError("SYSTEM is missing: name a drive, an array or a file")
    return joined


@overload
def run_and_write(
    systems: tuple[str, ...], workload: str | None, arguments: dict[str, Any], work: Callable[[dict[str, Any], bool], R]
) -> tuple[R, bool]: ...
@overload
def run_and_write(
    systems: tuple[str, ...],
    workload: str | None,
    arguments: dict[str, Any],
    work: Callable[[dict[str, Any], bool], Results] | None = None,
    show: Callable[[Results], object] = lambda results: None,
) -> tuple[Results, bool]: ...
def run_and_write(
    systems: tuple[str, ...],
    workload: str | None,
    arguments: dict[str, Any],
    work: Callable[[dict[str, Any], bool], Results] | None = None,
    show: Callable[[Results], object] = lambda results: None,
) -> tuple[Results, bool]:
    """Runs (or calls ``work``) and writes the outputs; also returns whether an output is stdout."""
    options = {o.name: axis(o.name, arguments[o.name]).grid(o.name) for o in OPTIONS if arguments[o.name] is not None}
    specs = (
        specify_described(systems, None if workload is None else split_list(workload), options) if work is None else []
    )
    outputs = Outputs(arguments, Results)
    if work is not None:
        results = work(options, arguments["quiet"])
    else:
        with progress(f"{len(specs)} run{'s' * (len(specs) > 1)}", arguments["quiet"]) as tell:
            results = run_specs(specs, options, tell, arguments.get("record"))
    outputs.write(results, lambda: show(results))
    return results, outputs.has_stdout


def split_list(text: str) -> list[str]:
    """Splits a list at its commas."""
    return [value.strip() for value in text.split(",")]


def print_knees(results: Results, limit: str | None) -> None:
    """Prints one row per curve: its knee, and its IOPS within the latency limit."""
    knees = {knee.curve: knee for knee in results.knees()}
    within = {} if limit is None else results.iops_at(limit)
    rows = []
    for curve in results.curves():
        knee = knees.get(curve)
        cells = [curve]
        if knee is None:
            cells += ["not reached", "", ""]
        else:
            at_most = "≤ " if knee.at_first_point else ""
            cells += [f"{at_most}{knee.iops:,.0f}", f"{knee.load:,.3g}", f"{knee.mean_ms:.2f}"]
        if limit is not None:
            most = within[curve]
            at_least = "≥ " if most is not None and most.is_at_least else ""
            cells.append("above it throughout" if most is None else f"{at_least}{most.iops:,.0f}")
        rows.append(cells)
    load = "at depth" if results[0]["depth"] is not None else "offered IOPS"
    columns = [Names("curve"), Figures("knee IOPS", 0), Figures(load), Figures("mean ms", 2)]
    if limit is not None:
        columns.append(Figures(f"IOPS at {limit}" if "=" in limit else f"IOPS at {limit} mean", 0))
    print()
    print_table(columns, rows)
    print()
    if limit is not None and len(rows) > 1:
        say(results.most_within(limit))
    say(KNEE)
    if any(knee.at_first_point for knee in knees.values()):
        say(f"≤: {AT_OR_BEFORE}")
    if any(most is not None and most.is_at_least for most in within.values()):
        say("≥: the limit is met at the heaviest load; higher loads were not run")
