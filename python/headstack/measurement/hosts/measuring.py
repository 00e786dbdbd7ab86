"""``measure_hosts``: one measurement from many hosts, for Python and the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, Unpack

from headstack._native import InputError
from headstack.io.values import duration_ns
from headstack.measurement.access import SLOTS, Access, Progress
from headstack.measurement.hosts.host import Host, host_of, hosts_of, name_uniquely, with_targets
from headstack.measurement.hosts.joined import HostResults
from headstack.measurement.hosts.link import ssh_link
from headstack.measurement.hosts.requests import MeasurementRequest
from headstack.measurement.hosts.session import Open, Remark, Session
from headstack.measurement.jobfiles.job_file import JobFile
from headstack.simulation.runs import Demand, Options, several, swept, texts

DASK = "dask://"
SSH, REMOTE, READY_WITHIN = "ssh", "headstack", "10min"

Job: TypeAlias = "str | os.PathLike[str] | JobFile"


@dataclass(frozen=True)
class HostAccess:
    """The commands that reach hosts, and a time limit."""

    ssh: str = SSH
    """The command that connects to a host."""
    remote: str = REMOTE
    """The command that starts headstack on a host."""
    ready_within: str = READY_WITHIN
    """Time limit for hosts to become ready; hosts that are later are left out."""

    @property
    def ready_within_s(self) -> float:
        """The limit in seconds. Raises ``InputError`` if it is not a time."""
        return duration_ns("--ready-within", self.ready_within) / 1e9

    @contextmanager
    def reach(self, hosts: Sequence[Host] | str, own_targets: Iterable[str]) -> Iterator[tuple[Sequence[Host], Open]]:
        """Yields the hosts, or the workers of a cluster, and a function that opens a link to one."""
        if not isinstance(hosts, str):
            yield hosts, lambda host, received: ssh_link(host, self.ssh, self.remote, received)
            return
        from headstack.measurement.hosts.cluster import workers  # start-up time

        with workers(hosts) as (reached, open_link):
            yield with_targets(reached, own_targets), open_link


def measure_from(
    hosts: Sequence[Host] | str,
    own_targets: Iterable[str],
    request: MeasurementRequest,
    access: HostAccess,
    progress: Progress | None,
    report: Remark,
) -> HostResults:
    """Measures from hosts, or from the workers of a cluster (``dask://HOST:PORT``); ``report`` is called with a line
    for each event."""
    with access.reach(hosts, own_targets) as (reached, open_link):
        requests = request.requests_by_host(reached)
        session = Session(reached, open_link, report)
        try:
            results = session.measure(requests, progress, access.ready_within_s, swept(request.options))
        finally:
            session.close()
    files = {host.name: request.file_of(host) for host in reached}
    results.files = {name: file for name, file in files.items() if file is not None}
    of_files = (remark for file in results.files.values() for remark in file.remarks)
    results.remarks = [*dict.fromkeys(of_files), *results.remarks]
    return results


def measure_hosts(
    hosts: str | Iterable[str],
    target: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    workload: Demand | Iterable[Demand] | None = None,
    *,
    targets: Mapping[str, str | os.PathLike[str]] = MappingProxyType({}),
    file: Job | Mapping[str, Job] | None = None,
    ssh_command: str = SSH,
    remote_command: str = REMOTE,
    ready_within: str = READY_WITHIN,
    destroy: Iterable[str] = (),
    over: Iterable[str] = (),
    create: str | None = None,
    overwrite: bool = False,
    buffered: bool = False,
    engine: str = "auto",
    threads: int = 1,
    slots: int = SLOTS,
    connections: int = 1,
    luns: Mapping[str, str] = MappingProxyType({}),
    progress: Progress | None = None,
    tell: Remark = lambda remark: None,
    **options: Unpack[Options],
) -> HostResults:
    """Measures from many hosts at the same time. Each host uses its own ``target``, or the targets that ``targets``
    assigns to it by name; other arguments are as in ``measure``. All hosts need the same version of headstack.

    ``hosts`` are names for ``ssh`` (``["a", "root@b:2222"]``, ``"a,b"``, or ``"@LIST"``, a file with one per line), or
    the workers of a Dask cluster (``"dask://10.0.0.1:8786"``). ``file`` is a job file for all hosts, or
    a mapping from host names to job files, instead of a workload.

    Runs begin on all hosts at the same time. Each run has a row for all hosts together and one for each host;
    ``HostResults.hosts()`` describes their clocks. A host that fails is left out, named in ``missing`` and in the
    notes, and reported to the last callback at once. An interruption ends the measurement on all hosts.

    Raises ``InputError`` or ``RunError`` if no host could measure, with the reason given by the first host.

    >>> shell = "sh -c 'exec headstack measure-agent' ssh"
    >>> results = hs.measure_hosts(["a", "b"], "null:1ms", depth=4, time="200ms", ssh_command=shell)
    >>> [row["system"] for row in results]
    ['a, b', 'a:null:1ms', 'b:null:1ms']
    """
    own_targets = [f"{name}={os.fspath(place)}" for name, place in targets.items()]
    named = _named(hosts)
    if not isinstance(named, str):
        named = with_targets(named, own_targets)
    files = file if isinstance(file, Mapping) else {}
    _check(named, files, file is not None and workload is not None)
    request = MeasurementRequest(
        targets=[os.fspath(path) for path in ([target] if isinstance(target, str | os.PathLike) else target)],
        demands=None if workload is None else several(workload),
        access=Access(
            destroy=tuple(destroy),
            over=tuple(over),
            create=create,
            overwrite=overwrite,
            buffered=buffered,
            engine=engine,
            threads=threads,
            slots=slots,
            connections=connections,
        ),
        options={name: texts(value) for name, value in options.items()},  # type: ignore[arg-type]
        luns=luns,
        file=None if file is None or isinstance(file, Mapping) else _read(file),
        files={name: _read(job) for name, job in files.items()},
    )
    return measure_from(
        named, own_targets, request, HostAccess(ssh_command, remote_command, ready_within), progress, tell
    )


def _named(hosts: str | Iterable[str]) -> Sequence[Host] | str:
    if isinstance(hosts, str):
        return hosts if hosts.startswith(DASK) else hosts_of(hosts)
    return name_uniquely([host_of(text) for text in hosts])


def _check(hosts: Sequence[Host] | str, files: Mapping[str, Job], has_both: bool) -> None:
    if has_both:
        raise InputError("a job file has its own workload; remove the workload", key="file")
    if isinstance(hosts, str):
        return
    names = [host.name for host in hosts]
    for host in hosts:
        if host.job_file is not None:
            raise InputError(f"{host.name}={host.job_file}: pass the job file of a host with file=", key="hosts")
        if files and host.name not in files:
            raise InputError(f"{host.name} has no job file; name a job file for it", key="file")
    for name in files:
        if name not in names:
            raise InputError(f"host {name!r} is unknown; allowed: {', '.join(names)}", key="file")


def _read(job: Job) -> JobFile:
    return job if isinstance(job, JobFile) else JobFile.load(job)
