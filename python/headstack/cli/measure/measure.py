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
            help="A file, a block device, or null; of job files, any number.",
        ),
        click.option(
            "-w",
            "--workload",
            type=DEMAND,
            metavar="NAME|FILE.toml",
            help="A workload or scenario; or give --size, --read, --random.",
        ),
        click.option(
            "--lun", "lun", type=TARGET, metavar="NAME=PATH", multiple=True, help="Where another LUN of a scenario is."
        ),
        *(option_of(option) for option in MEASURED_OPTIONS),
        hosts_options,
        job_options,
        access_options,
        click.option(
            "--zoned",
            type=Among(["device"]),
            metavar="device|SIZE",
            help="Write at the write pointers of zones: the device's, or of this size.",
        ),
        click.option("--open-zones", metavar="N", help="Zones open at a time (all that the device allows)."),
        error_option,
        output_options(Results, json="Write whole results (- for stdout).", plot="Draw response time over throughput."),
        wide_option,
        verbose_option,
        click.option("-q", "--quiet", is_flag=True, help="No progress."),
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
    """Measure a file or device under a workload, or by a named test."""


@measure.command(hidden=True)
@measured
@verify_options
@signals.held()
def load(targets: tuple[str, ...], workload: str | None, **given: Any) -> int:
    """Measure TARGET under a workload, or by one of the tests listed below.

    TARGET is a file, a block device, an NVMe namespace past the block layer (/dev/ng0n1) or an export of an NBD
    server (nbd://HOST:PORT/NAME, nbd+unix:///NAME?socket=PATH); or "null", which stores nothing and answers at once
    ("null:2ms": after 2 ms), to measure what measuring costs. Workloads, options and results are those of
    "headstack run"; 10 seconds are measured unless a length is given. In an open loop (--rate) response times count
    from the moment at which a request was to be made, whether or not the system could take it.

    A scenario runs as long as it states, on TARGET; where it names LUNs, TARGET is one of them, and --lun says where
    each of the others is.

    Reading asks for nothing. A workload that writes takes --destroy with the device's name or serial number, or
    the export's address, and is refused while anybody uses the device; a file is written where it was created by
    --create, or with --overwrite.

    With --zoned device the zones of a zoned device are tended: writes go to write pointers, and full zones are reset;
    with --zoned SIZE a file or plain device is taken as if it had zones.

    With --verify, writes carry stamps and reads are checked; a ledger, in the current folder unless --ledger says
    otherwise, knows what was written, so that "headstack measure verify TARGET" can judge it later, also after a
    crash. It should not lie on the target. The exit code is 1 when data are damaged or lost.

    The exit code is 1 also where requests failed, unless --continue-on-error or the job file lets them fail.

    Ctrl-C, a full disk or a vanished device end a measurement; what was measured until then is kept.

    With --hosts a,b,c all of that is done by each of these hosts at the same time, on its own TARGET of that name or
    the one that --target gives it; runs begin on all of them at one moment, and a host that fails is left behind.

    \b
    headstack measure --hosts a,root@b:2222 --target b=/dev/sdc /dev/sdb --size 4KiB --depth 1,8
    headstack measure --fio job.fio [TARGET...]
    headstack measure --fio -- --name=x --rw=randread --filename=/dev/sdb --runtime=10
    headstack measure --icf FILE.icf TARGET...
    headstack measure --vdbench FILE [NAME=VALUE...] [TARGET...]

    do what other programs' job files say; a TARGET replaces those that the file names. Files that do not exist are
    created as the file asks. What is not done as it asks is told on stderr, by line and option.
    """
    hosts = asked_hosts(targets, workload, given)
    if hosts is not None:
        return measure_from_hosts(hosts, workload, access_of(given), given)
    asked = asked_jobs(targets, workload, given)
    access, goes_on = access_of(given), given["continue_on_error"]
    if asked is not None:
        return measure_job_file(asked, given, access, goes_on)
    if len(targets) != 1:
        raise InputError(f"{len(targets)} targets: one TARGET is measured; several by a job file")
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
    raise InputError(f"{target}: no such file or device, but a simulated system; headstack run {target} runs it")


def luns_of(texts: tuple[str, ...]) -> dict[str, str]:
    """The path of each LUN, by its name."""
    places: dict[str, str] = {}
    for text in texts:
        name, separator, path = text.partition("=")
        if not (name and separator and path):
            raise InputError(f"--lun: {text!r} is no place of a LUN; write NAME=PATH, such as log=/dev/sdc")
        if name in places:
            raise InputError(f"--lun: {name} is given twice; a LUN is at one place")
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
                raise InputError(f"{len(values)} values; a job file is measured with one", key=name)
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
        raise InputError("--output-format: fio's formats have no operations on files in folders; --json has")

    def work(options: dict[str, list[str]], show: Progress | None) -> TreeResults:
        for name, values in options.items():
            if name != "seed" or len(values) > 1:
                raise InputError(f"{asked.file.source} states its own; leave the option out", key=name)
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
