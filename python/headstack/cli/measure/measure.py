"""``headstack measure``: real files and devices under the workloads of simulations."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, TypeVar

import click

from headstack._native import InputError
from headstack.catalogue.system import load_system
from headstack.cli.completing import DEMAND, Among
from headstack.cli.files import TARGET, check_sources
from headstack.cli.formats import output_options
from headstack.cli.loading import Implied
from headstack.cli.measure.hosts import AskedHosts, asked_hosts, hosts_options
from headstack.cli.measure.jobfiles import AskedJobs, asked_jobs, exit_code, job_options
from headstack.cli.measure.verify import print_verified, verdict, verify_options, verifying_of
from headstack.cli.output import Outputs, print_results, verbose_option, wide_option
from headstack.cli.simulate.runs import Command, listed
from headstack.cli.simulate.varying import option_of
from headstack.cli.targets import access_of, access_options, broken_code, course, ending, error_option, failed_code
from headstack.cli.traces.traces import Decorator
from headstack.io import signals
from headstack.io.atomic_files import write_text
from headstack.io.values import whole
from headstack.measurement.access import Access, Progress, is_null
from headstack.measurement.hosts.joined import HostResults
from headstack.measurement.jobfiles.jobs import JobResults, measure_file
from headstack.measurement.jobfiles.trees import TreeResults, measure_files
from headstack.measurement.measurement import MEASURED_OPTIONS, is_export, measure_target
from headstack.results.results import Results

R = TypeVar("R", bound=Results)


def measured(command: Command) -> Command:
    """A target, a workload, what can be varied, and the outputs."""
    decorators: list[Decorator] = [
        click.argument(
            "targets",
            type=TARGET,
            metavar="TARGET",
            nargs=-1,
            help="File, block device or null; with job files, any number.",
        ),
        click.option(
            "-w",
            "--workload",
            type=DEMAND,
            metavar="NAME|FILE.toml",
            help="Workload or scenario: a catalogue name or a file, for example oltp-8k. Or set --size, --read, "
            "--random.",
        ),
        click.option(
            "--lun",
            "lun",
            type=TARGET,
            metavar="NAME=PATH",
            multiple=True,
            help="Path of another LUN of a scenario, for example log=/dev/sdc.",
        ),
        *(option_of(option) for option in MEASURED_OPTIONS),
        hosts_options,
        job_options,
        access_options,
        click.option(
            "--zoned",
            type=Among(["device"]),
            metavar="device|SIZE",
            help="Manage write pointers of zones: those of the device, or zones of this size.",
        ),
        click.option("--open-zones", metavar="N", help="Maximum number of open zones.  [default: the device's limit]"),
        error_option,
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


TESTS = {
    **dict.fromkeys(("zones", "latency", "fsync", "crystal", "prefill"), "measure.classic"),
    "condition": "measure.conditioning",
    "pts": "measure.pts",
    "verify": "measure.verify",
    "twin": "predict.twin",
}
"""The modules of the tests."""


class Tests(Implied):
    """Named tests; anything else on the command line is a target and its workload."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help of a workload on a target, then the tests."""
        load.format_help(ctx, formatter)
        self.format_commands(ctx, formatter)


@click.group(cls=Tests, implied="load", late=TESTS)
def measure() -> None:
    """Measure a real file or device, or run a standard test."""


@measure.command(hidden=True)
@measured
@verify_options
@signals.held()
def load(targets: tuple[str, ...], workload: str | None, **given: Any) -> int:
    """Measure a real file or device, or run a standard test.

    \b
    headstack measure /dev/nvme0n1 --size 4KiB --depth 1,8,32
    headstack measure test.bin --create 1GiB -w oltp-8k --depth 16
    headstack measure /dev/sdb -w file-server --rate 400 --destroy sdb --json sdb.json
    headstack measure --fio job.fio

    TARGET is a file, a block device, an NVMe namespace without the block layer (/dev/ng0n1), an NBD export
    (nbd://HOST:PORT/NAME or nbd+unix:///NAME?socket=PATH), or "null", which answers at once ("null:2ms": after 2 ms)
    and shows the overhead of the measurement. Workloads, options and results are those of "headstack run"; the default
    duration is 10 seconds. With --rate (open loop), latency counts from the scheduled start of a request.

    Reading needs no flag. A workload that writes needs --destroy with the device's name or serial number, or the
    export's address, and refuses devices in use. For a file use --create, or --overwrite if it exists.

    A scenario runs for its own duration. If it names LUNs, TARGET is one of them, and --lun gives the paths of the
    others.

    --zoned device writes at the write pointers of a zoned device, and resets full zones; --zoned SIZE treats a file or
    conventional device as if it had zones of this size.

    --verify stamps writes and checks reads. Its ledger, in the current folder by default, records the writes, so that
    "headstack measure verify TARGET" can check the data later, even after a crash; keep it off the target. Exit code 1
    means that data are damaged or lost, or that requests failed (--continue-on-error accepts failed requests).

    Ctrl-C, a full disk or a lost device end a measurement; results up to then are kept.

    Job files of other programs run as they are; a TARGET replaces the targets in the file. Missing files are created
    as the job file requests. Options that are handled differently are reported on stderr.

    \b
    headstack measure --fio -- --name=x --rw=randread --filename=/dev/sdb --runtime=10
    headstack measure --icf FILE.icf TARGET...
    headstack measure --vdbench FILE [NAME=VALUE...] [TARGET...]

    With --hosts a,b,c all hosts measure at the same time, each its own TARGET of this name or that of --target. A host
    that fails is dropped.

    \b
    headstack measure --hosts a,root@b:2222 --target b=/dev/sdc /dev/sdb --size 4KiB --depth 1,8
    """
    hosts = asked_hosts(targets, workload, given)
    if hosts is not None:
        return measure_from_hosts(hosts, workload, access_of(given), given)
    asked = asked_jobs(targets, workload, given)
    access, goes_on = access_of(given), given["continue_on_error"]
    if asked is not None:
        return measure_job_file(asked, given, access, goes_on)
    if len(targets) != 1:
        raise InputError(f"{len(targets)} targets: name one TARGET, or use a job file for several")
    [target] = targets
    refuse_simulated(target, access)
    verifying = verifying_of(given, target)
    places = luns_of(given["lun"])
    work = partial(measure_target, target, demands(workload), access, verifying=verifying, luns=places)

    def show(results: Results) -> None:
        print_results(results, with_streams=True)
        print_verified(results, verifying)

    results, _ = carry_out(given, work, show)
    return verdict(results, continue_on_error=goes_on)


def refuse_simulated(target: str, access: Access) -> None:
    """Points who names a system of the catalogue to the command that simulates it."""
    if is_null(target) or is_export(target) or os.path.lexists(target) or access.create is not None:
        return
    try:
        load_system(target)
    except InputError:
        return
    raise InputError(f"{target}: no such file or device; to simulate the system of this name: headstack run {target}")


def luns_of(texts: tuple[str, ...]) -> dict[str, str]:
    """The path of each LUN, by its name."""
    places: dict[str, str] = {}
    for text in texts:
        name, separator, path = text.partition("=")
        if not (name and separator and path):
            raise InputError(f"--lun: {text!r}: expected NAME=PATH, for example log=/dev/sdc")
        if name in places:
            raise InputError(f"--lun: {name} is given twice; a LUN has one path")
        check_sources(path)
        places[name] = path
    return places


def measure_job_file(asked: AskedJobs, given: Mapping[str, Any], access: Access, goes_on: bool) -> int:
    """Measures a job file, phase after phase."""
    asked.refuse_others(given, access)
    if asked.parse_only:
        asked.tell_remarks(asked.file.remarks)
        return 0
    if asked.file.tree_phases:
        return measure_trees(asked, given, goes_on)
    file = asked.file.going_on() if goes_on else asked.file
    status = asked.status()

    def work(options: dict[str, list[str]], show: Progress | None) -> JobResults:
        for name, values in options.items():
            if len(values) > 1:
                raise InputError(f"{len(values)} values; a job file takes only one", key=name)
        chosen = {name: value for name, [value] in options.items()}
        return measure_file(file, asked.places, access, chosen, show, status)

    results, to_stdout = carry_out(given, work)
    asked.tell(results, to_stdout)
    code = exit_code(results, ending(results, continue_on_error=True)) or failed_code(results.failures(), goes_on)
    return code or broken_code(results.broken_bounds())


def measure_from_hosts(hosts: AskedHosts, workload: str | None, access: Access, given: Mapping[str, Any]) -> int:
    """Measures the same, or what each has been given, from many hosts."""
    goes_on = given["continue_on_error"]
    hosts.refuse_others(given, access)
    places = luns_of(given["lun"])
    work = partial(hosts.measure, demands(workload), access, places)

    def show(results: HostResults) -> None:
        if hosts.format is None or hosts.output is not None:
            print_results(results, with_streams=True)

    results, _ = carry_out(given, work, show)
    if hosts.format is not None:
        text = hosts.format.text(results.fio_json(hosts.format.plus))
        if hosts.output is None:
            print(text, end="")
        else:
            write_text(hosts.output, text)
    for remark in results.remarks:
        print(f"headstack: {remark}", file=sys.stderr)
    return verdict(results.together(), continue_on_error=goes_on)


def measure_trees(asked: AskedJobs, given: Mapping[str, Any], goes_on: bool) -> int:
    """Measures loads on files in folders, phase after phase."""
    if asked.format is not None:
        raise InputError("--output-format: fio's formats cannot hold operations on files in folders; use --json")

    def work(options: dict[str, list[str]], show: Progress | None) -> TreeResults:
        for name, values in options.items():
            if name != "seed" or len(values) > 1:
                raise InputError(f"set by {asked.file.source}; remove the option", key=name)
        [seed] = options.get("seed", ["1"])
        return measure_files(asked.file, asked.places, seed=whole("seed", seed), ledger=given["ledger"], progress=show)

    asked.tell_remarks(asked.file.remarks)
    results, _ = carry_out(given, work, lambda results: print_results(results, with_streams=True))
    for run in range(len(results)):
        integrity = results.integrity(run)
        for finding in () if integrity is None else integrity["findings"]:
            print(f"headstack: {finding}", file=sys.stderr)
    return verdict(results, continue_on_error=goes_on)


def demands(workload: str | None) -> list[str] | None:
    """The workloads of a comma list."""
    return None if workload is None else listed(workload)


def carry_out(
    given: Mapping[str, Any], work: Callable[..., R], show: Callable[[R], object] = lambda results: None
) -> tuple[R, bool]:
    """Measures, writes what was asked for, and shows the rest; also whether an export has stdout."""
    options = {o.name: listed(given[o.name]) for o in MEASURED_OPTIONS if given.get(o.name) is not None}
    outputs = Outputs(given, Results)
    with course(given["quiet"]) as tell:
        results = work(options, tell)
    outputs.write(results, lambda: show(results))
    return results, outputs.has_stdout
