"""``MeasurementRequest``: what the hosts of a measurement measure, as one request to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from headstack._native import InputError
from headstack.measurement.access import Access
from headstack.measurement.hosts.host import Host
from headstack.measurement.jobfiles.job_file import JobFile
from headstack.measurement.measurement import scenario_of, workloads_of
from headstack.simulation.runs import Demand, several

if TYPE_CHECKING:
    from headstack.measurement.hosts.messages import HostRequest

INTERVAL = "1s"
"""Default interval; without a time series per host, it would be unknown whether hosts were active together."""


@dataclass(frozen=True)
class MeasurementRequest:
    """The measurement of all hosts: a workload or scenario, or job files."""

    targets: Sequence[str]
    """Targets of all hosts without targets of their own."""
    demands: Sequence[Demand] | None
    access: Access
    options: Mapping[str, list[str]]
    luns: Mapping[str, str]
    file: JobFile | None = None
    """Job file of all hosts without a job file of their own."""
    files: Mapping[str, JobFile] | None = None
    """Job files of single hosts, by the host's name."""

    def file_of(self, host: Host) -> JobFile | None:
        """Returns the job file that a host runs."""
        return (self.files or {}).get(host.name, self.file)

    def requests_by_host(self, hosts: Sequence[Host]) -> dict[str, HostRequest]:
        """Returns the request to each host, by the host's name. Raises ``InputError`` for requests that are impossible
        on every host."""
        demands = several(self.demands)
        scenario = scenario_of(demands)
        workloads: list[Mapping[str, Any]] | None = None
        if scenario is None and self.demands is not None:
            workloads = [load.description for load in workloads_of(demands) if load is not None]
        requests: dict[str, HostRequest] = {}
        for host in hosts:
            file = self.file_of(host)
            targets = list(host.targets or self.targets)
            if file is None and len(targets) != 1:
                raise InputError(
                    f"{host.name}: {len(targets)} targets; name one TARGET, or use --target {host.name}=PATH"
                )
            requests[host.name] = {
                "access": asdict(self.access),
                "options": {"interval": [INTERVAL], **self.options},
                "luns": dict(self.luns),
                "scenario": None if scenario is None else scenario.description,
                "workloads": workloads,
                "targets": targets,
                "file": None if file is None else asdict(file),
            }
        return requests
