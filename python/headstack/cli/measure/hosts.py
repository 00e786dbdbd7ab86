"""``headstack measure --hosts``: hosts that measure, connections to them, and their agent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import click

from headstack._native import InputError
from headstack.cli.files import SOURCE
from headstack.cli.measure.jobfiles import (
    ARGUMENTS,
    FioFormat,
    JobRequest,
    check_fio_output,
    fio_format,
    split_arguments,
    take_job_request,
)
from headstack.io import signals, terminal
from headstack.io.columns import is_plain
from headstack.measurement.access import Access, Progress
from headstack.measurement.hosts.agent import serve
from headstack.measurement.hosts.host import Host, fio_clients, hosts_of, with_targets
from headstack.measurement.hosts.joined import HostResults
from headstack.measurement.hosts.measuring import DASK, READY_WITHIN, REMOTE, SSH, HostAccess, measure_from
from headstack.measurement.hosts.requests import MeasurementRequest
from headstack.measurement.jobfiles.job_file import JobFile

Command = Callable[..., Any]


def hosts_options(command: Command) -> Command:
    """Adds the options for hosts and their connections."""
    many = "Hosts that measure at the same time, by ssh: a,root@b:2222; HOST=FILE.fio is a host's own job file."
    decorators = [
        click.option("--hosts", type=SOURCE, metavar="HOST,...|@LIST|dask://HOST:PORT", help=many),
        click.option(
            "--target", metavar="HOST=PATH", multiple=True, help="Target of one host, for example b=/dev/sdc."
        ),
        click.option("--ssh-command", metavar="COMMAND", help=f"Command that connects to a host.  [default: {SSH}]"),
        click.option(
            "--remote-command",
            metavar="COMMAND",
            help=f"Name of the headstack program on the hosts.  [default: {REMOTE}]",
        ),
        click.option(
            "--ready-within",
            metavar="TIME",
            help=f"Time to wait for hosts to get ready; late hosts are skipped.  [default: {READY_WITHIN}]",
        ),
    ]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


@dataclass(frozen=True)
class HostRequest:
    """The hosts of a command line."""

    hosts: list[Host]
    """Host names; empty if a cluster lists the hosts."""
    cluster: str | None
    targets: list[str]
    own_targets: tuple[str, ...]
    jobs: JobRequest | None
    """Job file of all hosts without a job file of their own."""
    files: Mapping[str, JobFile]
    """Job files of single hosts, by host name."""
    ways: HostAccess
    format: FioFormat | None
    """The requested output formats of fio."""
    output: str | None
    """File for fio's output, instead of stdout."""

    def refuse_others(self, options: Mapping[str, Any], access: Access) -> None:
        """Refuses options that need a single host or that job files set."""
        for name in ("verify", "ledger", "resume"):
            if options[name]:
                raise InputError(
                    f"--{name}: not available with --hosts, because hosts do not see each other's writes; remove it"
                )
        jobs = self.jobs
        if jobs is not None:
            for name, value in {"status-interval": jobs.status_s, "parse-only": jobs.parse_only}.items():
                if value:
                    raise InputError(f"--{name}: not available with --hosts; remove one of them")
        if self.format is not None and "terse" in self.format.names:
            raise InputError("--output-format: terse has no client results; use json or json+")
        for file in [*self.files.values(), *([] if jobs is None else [jobs.file])]:
            JobRequest(file, [], None, None).refuse_others(options, access)

    def measure(
        self,
        demands: Sequence[str] | None,
        access: Access,
        luns: Mapping[str, str],
        options: Mapping[str, list[str]],
        progress: Progress | None,
    ) -> HostResults:
        """Measures on all hosts, and prints events on stderr."""
        file = None if self.jobs is None else self.jobs.file
        targets = self.targets if self.jobs is None else self.jobs.places
        request = MeasurementRequest(targets, demands, access, options, luns, file, self.files)
        hosts = self.hosts if self.cluster is None else self.cluster
        return measure_from(hosts, self.own_targets, request, self.ways, progress, print_event)


def print_event(remark: str) -> None:
    """Prints an event on stderr instead of the line of progress."""
    terminal.remark(sys.stderr, f"headstack: {remark}", not is_plain(sys.stderr))


def take_host_request(words: tuple[str, ...], workload: str | None, options: dict[str, Any]) -> HostRequest | None:
    """Removes the options for hosts and job files from the options of a command. Returns ``None`` if no
    host is named."""
    text, own_targets = options.pop("hosts"), options.pop("target")
    ways = {name: options.pop(name) for name in ("ssh_command", "remote_command", "ready_within")}
    clients: list[Host] = []
    if options["fio"] == ARGUMENTS:
        clients, rest = fio_clients(words)
        if clients:
            places, arguments, of_program = split_arguments(rest)
            if places or arguments:
                raise InputError(f"{[*places, *arguments][0]}: with --client, name only job files")
            words = ()
            options["fio"] = None
            options["output_format"] = of_program.get("output-format", options["output_format"])
            options["output"] = of_program.get("output", options["output"])
    if text is None and not clients:
        for name, value in {"target": own_targets, **ways}.items():
            if value:
                raise InputError(f"--{name.replace('_', '-')}: needs --hosts; name the hosts")
        return None
    if text is not None and clients:
        raise InputError("--hosts, --client: give only one of them")
    cluster = text if text is not None and text.startswith(DASK) else None
    hosts = clients or ([] if cluster else with_targets(hosts_of(text), own_targets))
    hosts = with_targets(hosts, own_targets) if clients else hosts
    files = {host.name: JobFile.fio(host.job_file) for host in hosts if host.job_file is not None}
    wanted, output = _take_fio_output(options, bool(files))
    jobs = take_job_request(words, workload, options)
    without = [host.name for host in hosts if host.name not in files]
    if files and without and jobs is None:
        raise InputError(f"--hosts: {without[0]} has no job file; name one, or add --fio FILE.fio for all hosts")
    return HostRequest(
        hosts=hosts,
        cluster=cluster,
        targets=list(words),
        own_targets=own_targets,
        jobs=jobs,
        files=files,
        ways=HostAccess(
            ways["ssh_command"] or SSH, ways["remote_command"] or REMOTE, ways["ready_within"] or READY_WITHIN
        ),
        format=wanted if jobs is None else jobs.format,
        output=output if jobs is None else jobs.output,
    )


def _take_fio_output(options: dict[str, Any], has_own_files: bool) -> tuple[FioFormat | None, str | None]:
    """Returns the formats and the file of fio's output when only single hosts have job files."""
    named = any(options[name] for name in ("fio", "icf", "vdbench"))
    if named or not has_own_files:
        return None, None
    form, output = fio_format(options["output_format"], options["minimal"], options["terse_version"]), options["output"]
    options |= {"output_format": None, "output": None, "minimal": False, "terse_version": None}
    check_fio_output(options, form, output)
    return form, output


@click.command(hidden=True)
@signals.held()
def measure_agent() -> None:
    """Measure for ``headstack measure --hosts`` on another machine, which controls this process through stdin and
    stdout."""
    serve()
