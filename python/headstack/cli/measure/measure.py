"""``headstack measure``: measures real files and devices with the workloads of simulations."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, TypeVar

import click

from headstack._native import InputError
from headstack.catalogue.system import load_system
from headstack.catalogue.unmodelled import unmodelled
from headstack.cli.completing import DEMAND, Among
from headstack.cli.files import TARGET, check_sources
from headstack.cli.formats import output_options
from headstack.cli.loading import Implied
from headstack.cli.measure.hosts import HostRequest, hosts_options, take_host_request
from headstack.cli.measure.jobfiles import JobRequest, exit_code, job_options, take_job_request
from headstack.cli.measure.submission import Submission, submission_options
from headstack.cli.measure.verify import exit_code_of, print_verified, take_verification, verify_options
from headstack.cli.output import Outputs, print_results, verbose_option, wide_option
from headstack.cli.simulate.runs import Command, split_list
from headstack.cli.simulate.varying import option_of
from headstack.cli.targets import (
    access_of,
    access_options,
    error_option,
    exit_code_of_broken_limits,
    exit_code_of_failures,
    exit_code_of_runs,
    measurement_progress,
)
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


def measure_options(command: Command) -> Command:
    """Adds target, workload, run options and outputs."""
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
        submission_options,
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
    "settings": "measure.settings",
    "verify": "measure.verify",
    "twin": "predict.twin",
}
"""Modules of the tests."""


class Tests(Implied):
    """Named tests; any other words on the command line are a target and its workload."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the help for a workload on a target, then the tests."""
        load.format_help(ctx, formatter)
        self.format_commands(ctx, formatter)


@click.group(cls=Tests, implied="load", late=TESTS)
def measure() -> None:
    """Measure a real file or device, or run a standard test."""


@measure.command(hidden=True)
@measure_options
@verify_options
@signals.held()
def load(targets: tuple[str, ...], workload: str | None, **options: Any) -> int:
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
    wanted = Submission(options)
    if wanted.purpose is not None:
        return measure_for_scoreboard(wanted, targets, workload, options)
    hosts = take_host_request(targets, workload, options)
    if hosts is not None:
        return measure_from_hosts(hosts, workload, access_of(options), options)
    request = take_job_request(targets, workload, options)
    access, continue_on_error = access_of(options), options["continue_on_error"]
    if request is not None:
        return measure_job_file(request, options, access, continue_on_error)
    if len(targets) != 1:
        raise InputError(f"{len(targets)} targets: name one TARGET, or use a job file for several")
    [target] = targets
    refuse_simulated(target, access)
    verifying = take_verification(options, target)
    places = parse_luns(options["lun"])
    work = partial(measure_target, target, split_workloads(workload), access, verifying=verifying, luns=places)

    def show(results: Results) -> None:
        print_results(results, with_streams=True)
        print_verified(results, verifying)

    results, _ = measure_and_write(options, work, show)
    return exit_code_of(results, continue_on_error=continue_on_error)


def measure_for_scoreboard(
    wanted: Submission, targets: tuple[str, ...], workload: str | None, options: dict[str, Any]
) -> int:
    """Measures one target for the scoreboard, and writes its files."""
    access, continue_on_error = access_of(options), options["continue_on_error"]
    if len(targets) != 1:
        raise InputError(f"{len(targets)} targets: name one TARGET for the scoreboard")
    [target] = targets
    refuse_simulated(target, access)
    plan = wanted.plan(workload, options, access)
    devices = []

    def work(varied: dict[str, list[str]], show: Progress | None) -> Results:
        results, device = wanted.measure(target, access, varied | plan, show)
        devices.append(device)
        return results

    results, _ = measure_and_write(options, work, print_results)
    wanted.write(devices[0])
    return exit_code_of(results, continue_on_error=continue_on_error)


def refuse_simulated(target: str, access: Access, options: str = "") -> None:
    """Raises ``InputError`` if the target is the name of a simulated system, or of something that no path names.

    ``options`` are those of ``headstack run`` for the same load.
    """
    if is_null(target) or is_export(target) or os.path.lexists(target) or access.create is not None:
        return
    if target.startswith("/dev/"):
        raise InputError(f"{target}: no such device; lsblk lists the devices of this machine")
    try:
        load_system(target)
    except InputError:
        if unmodelled(target) is not None:
            message = (
                f"{target}: no such file or device; name a file on it, for example /mnt/{target}/test --create 1GiB"
            )
            raise InputError(message) from None
        return
    raise InputError(
        f"{target}: no such file or device; to simulate the system of this name: headstack run {target}{options}"
    )


def parse_luns(texts: tuple[str, ...]) -> dict[str, str]:
    """Returns the path of each LUN by its name."""
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


def measure_job_file(request: JobRequest, options: Mapping[str, Any], access: Access, continue_on_error: bool) -> int:
    """Measures the phases of a job file in order."""
    request.refuse_others(options, access)
    if request.parse_only:
        request.print_remarks(request.file.remarks)
        return 0
    if request.file.tree_phases:
        return measure_trees(request, options, continue_on_error)
    file = request.file.going_on() if continue_on_error else request.file
    status = request.status()

    def work(varied: dict[str, list[str]], show: Progress | None) -> JobResults:
        for name, values in varied.items():
            if len(values) > 1:
                raise InputError(f"{len(values)} values; a job file takes only one", key=name)
        chosen = {name: value for name, [value] in varied.items()}
        return measure_file(file, request.places, access, chosen, show, status)

    results, to_stdout = measure_and_write(options, work)
    request.report(results, to_stdout)
    code = exit_code(results, exit_code_of_runs(results, continue_on_error=True)) or exit_code_of_failures(
        results.failures(), continue_on_error
    )
    return code or exit_code_of_broken_limits(results.broken_bounds())


def measure_from_hosts(hosts: HostRequest, workload: str | None, access: Access, options: Mapping[str, Any]) -> int:
    """Measures from several hosts, with one workload or each with its own job file."""
    continue_on_error = options["continue_on_error"]
    hosts.refuse_others(options, access)
    places = parse_luns(options["lun"])
    work = partial(hosts.measure, split_workloads(workload), access, places)

    def show(results: HostResults) -> None:
        if hosts.format is None or hosts.output is not None:
            print_results(results, with_streams=True)

    results, _ = measure_and_write(options, work, show)
    if hosts.format is not None:
        text = hosts.format.text(results.fio_json(hosts.format.plus))
        if hosts.output is None:
            print(text, end="")
        else:
            write_text(hosts.output, text)
    for remark in results.remarks:
        print(f"headstack: {remark}", file=sys.stderr)
    return exit_code_of(results.together(), continue_on_error=continue_on_error)


def measure_trees(request: JobRequest, options: Mapping[str, Any], continue_on_error: bool) -> int:
    """Measures the phases of a load on file trees in order."""
    if request.format is not None:
        raise InputError("--output-format: fio's formats cannot hold operations on files in folders; use --json")

    def work(varied: dict[str, list[str]], show: Progress | None) -> TreeResults:
        for name, values in varied.items():
            if name != "seed" or len(values) > 1:
                raise InputError(f"set by {request.file.source}; remove the option", key=name)
        [seed] = varied.get("seed", ["1"])
        return measure_files(
            request.file, request.places, seed=whole("seed", seed), ledger=options["ledger"], progress=show
        )

    request.print_remarks(request.file.remarks)
    results, _ = measure_and_write(options, work, lambda results: print_results(results, with_streams=True))
    for run in range(len(results)):
        integrity = results.integrity(run)
        for finding in () if integrity is None else integrity["findings"]:
            print(f"headstack: {finding}", file=sys.stderr)
    return exit_code_of(results, continue_on_error=continue_on_error)


def split_workloads(workload: str | None) -> list[str] | None:
    """Splits a list of workloads."""
    return None if workload is None else split_list(workload)


def measure_and_write(
    arguments: Mapping[str, Any], work: Callable[..., R], show: Callable[[R], object] = lambda results: None
) -> tuple[R, bool]:
    """Measures and writes the outputs; also returns whether an output is stdout."""
    options = {o.name: split_list(arguments[o.name]) for o in MEASURED_OPTIONS if arguments.get(o.name) is not None}
    outputs = Outputs(arguments, Results)
    with measurement_progress(arguments["quiet"]) as tell:
        results = work(options, tell)
    outputs.write(results, lambda: show(results))
    return results, outputs.has_stdout
