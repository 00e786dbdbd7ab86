"""``Diagnosis``: the findings on a machine, and ``doctor``, which makes them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstack._native import InputError
from headstack.diagnosis.doctor import checks_now, checks_settings
from headstack.diagnosis.doctor.blocks import BlockDevice, Kind
from headstack.diagnosis.doctor.findings import Check, Finding, Host, Urgency
from headstack.diagnosis.doctor.load import Load, observe
from headstack.diagnosis.doctor.machine import Machine
from headstack.diagnosis.doctor.reading import read_host
from headstack.diagnosis.judging.suspects.limits import limits_of
from headstack.io.counts import counted
from headstack.io.tables import written
from headstack.io.values import duration_ns

if TYPE_CHECKING:
    from headstack.results.results import Results

FINDINGS_MAX = 3
"""Maximum number of findings to report: what comes after them changes less."""
TIME_MAX_S = 3600.0
VERSION = 1
MEASURED_DEPTHS = (1, 32)
MEASURED_TIME = "3s"
"""Time of each depth of ``--measure``."""
MEASURED_BYTES_MIN = 64 << 20
"""Minimum size of a file to measure: a smaller one is in a drive's cache."""

CHECKS: Mapping[Check, Callable[[Host], Iterator[Finding]]] = {
    Check.HEALTH: checks_now.health,
    Check.TEMPERATURE: checks_now.temperature,
    Check.DEGRADED: checks_now.degraded,
    Check.BARRIER: checks_now.barrier,
    Check.VERDICT: checks_now.verdict,
    Check.STARVED_HOST: checks_now.starved_host,
    Check.GROUP_LIMIT: checks_now.group_limit,
    Check.DIRTY_THROTTLE: checks_now.dirty_throttle,
    Check.SYNC_ACTION: checks_now.sync_action,
    Check.SWAP: checks_now.swap,
    Check.FLUSHES: checks_now.flushes,
    Check.DISCARDS: checks_now.discards,
    Check.WRITE_CACHE: checks_settings.write_cache,
    Check.QUEUE_DEPTH: checks_settings.queue_depth,
    Check.SCHEDULER: checks_settings.scheduler,
    Check.HARDWARE_QUEUES: checks_settings.hardware_queues,
    Check.LINK: checks_settings.link,
    Check.ALIGNMENT: checks_settings.alignment,
    Check.READ_AHEAD: checks_settings.read_ahead,
    Check.DIRTY_LIMITS: checks_settings.dirty_limits,
    Check.MOUNT_OPTIONS: checks_settings.mount_options,
}
"""The function of each check."""


@dataclass(frozen=True)
class Diagnosis:
    """The state of a machine, with the findings worth changing."""

    host: Host
    findings: tuple[Finding, ...]
    """The most urgent first, at most three."""
    further: int = 0
    """Number of findings that change less than those."""
    unseen: tuple[str, ...] = ()
    """Data that could not be read, a line for each device or reason."""
    measured: Results | None = field(default=None, compare=False)
    """The result of reading at queue depths 1 and 32, if requested."""

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        seconds = "not observed" if self.host.load is None else f"observed for {self.host.load.seconds:.0f} s"
        looked = f"{counted(len(CHECKS), 'check')} on {counted(len(self.host.devices), 'device')}, {seconds}"
        if not self.findings:
            return f"nothing worth changing found: {looked}"
        first = self.findings[0]
        if first.urgency == Urgency.DANGER:
            start = f"{first.subject}: data at risk: {first.seen}"
        elif first.urgency == Urgency.WAITING:
            start = f"{first.subject}: {first.why}"
        else:
            start = f"{first.subject}: no trouble now, but a setting costs speed: {first.seen}"
        return f"{start} ({counted(len(self.findings), 'finding')}; {looked})"

    @property
    def exit_code(self) -> int:
        """The exit code of the command: that of ``judge`` for the first finding with a verdict."""
        from headstack.diagnosis.judging.session import EXIT_CODES  # start-up time

        kinds = {finding.kind for finding in self.findings}
        if any(finding.urgency == Urgency.DANGER for finding in self.findings):
            kinds.add("slow")
        return next((code for kind, code in EXIT_CODES.items() if kind in kinds), 0)

    def to_dict(self) -> dict[str, Any]:
        """Returns the diagnosis in JSON's form.

        >>> sorted(hs.doctor(time="0s").to_dict())[:2]
        ['answer', 'checks']
        """
        load = self.host.load
        return {
            "headstack_doctor": VERSION,
            "answer": self.answer,
            "findings": [{**asdict(each), "urgency": each.urgency.name.lower()} for each in self.findings],
            "further_findings": self.further,
            "checks": [check.value for check in CHECKS],
            "devices": [_device_dict(device, self.host) for device in self.host.devices],
            "stack": asdict(self.host.stack),
            "group_limits": [
                {**asdict(limit), "per_s": limit.per_s if limit.per_s < float("inf") else None}
                for limit in self.host.limits
            ],
            "load": None if load is None else _load_dict(load),
            "unseen": list(self.unseen),
            "measured": None if self.measured is None else [dict(row) for row in self.measured],
        }

    def to_json(self, path: Path | None = None) -> str:
        """Writes the diagnosis as JSON.

        >>> json.loads(hs.doctor(time="0s").to_json())["headstack_doctor"]
        1
        """
        return written(json.dumps(self.to_dict(), indent=1, ensure_ascii=False, default=str) + "\n", path)


def _device_dict(device: BlockDevice, host: Host) -> dict[str, Any]:
    load, inspection = host.load_of(device.name), host.inspections.get(device.name)
    stated = {key: value for key, value in asdict(device).items() if key != "cloud"}
    cloud = None if device.cloud is None else {"name": device.cloud.name, "limited_by": device.cloud.limited_by}
    return {
        **stated,
        "kind": device.kind.value,
        "cloud": cloud,
        "load": None if load is None else asdict(load),
        "inspection": None if inspection is None else inspection.to_dict(),
    }


def _load_dict(load: Load) -> dict[str, Any]:
    return {
        "seconds": load.seconds,
        "stalled": dict(load.stalled),
        "cpu_idle": load.cpu_idle,
        "cpu_steal": load.cpu_steal,
        "writers_throttled": load.throttled,
        "swapped_pages_per_s": load.swapped_per_s,
        "major_faults_per_s": load.major_faults_per_s,
        "group_rates": [
            {"group": limit.group, "device": limit.number, "key": limit.key, "per_s": rate}
            for limit, rate in load.group_rates.items()
        ],
        "verdicts": {name: asdict(verdict) for name, verdict in load.verdicts.items()},
    }


def doctor(
    *,
    time: str = "20s",
    limits: Sequence[str] = (),
    measure: str | os.PathLike[str] | None = None,
    progress: Callable[[float], object] | None = None,
) -> Diagnosis:
    """Diagnoses this machine, read-only: devices, limits in force, the stack above them, current pressure, and at most
    three findings worth changing.

    ``time`` is the length of the observation; ``0s`` skips it. ``limits`` are texts such as ``gp3:3000/s``, as in
    ``judge``. ``measure`` is a device, a file or a folder with a large file, which is read at queue depths 1 and 32
    after the observation; nothing is measured by default, and nothing is ever written. ``progress`` is called with the
    elapsed share of the observation.

    >>> len(hs.doctor(time="0s").findings) <= 3
    True
    """
    time_s = duration_ns("time", time) / 1e9
    if time_s > TIME_MAX_S:
        raise InputError(f"{time} is too long; must be at most 1h; use headstack judge --live for longer", key="time")
    target = None if measure is None else measured_target(os.fspath(measure))
    stated = limits_of(limits)
    machine = Machine()
    host = read_host(machine)
    if time_s > 0:
        host = replace(host, load=observe(machine, host.limits, time_s, stated, progress))
    return replace(diagnose(host, machine), measured=None if target is None else measured(target))


def diagnose(host: Host, machine: Machine) -> Diagnosis:
    """Returns the findings on a machine."""
    findings: dict[tuple[Check, str], Finding] = {}
    for check in CHECKS.values():
        for finding in check(host):
            # A mount on several drives is one subject.
            findings.setdefault((finding.check, finding.subject), finding)
    ordered = sorted(findings.values(), key=lambda finding: finding.rank)
    return Diagnosis(
        host, tuple(ordered[:FINDINGS_MAX]), max(0, len(ordered) - FINDINGS_MAX), tuple(_unseen(host, machine))
    )


def _unseen(host: Host, machine: Machine) -> Iterator[str]:
    """Yields a line on each thing that could not be read."""
    for name, inspection in host.inspections.items():
        if inspection.notes:
            yield f"{name}: {'; '.join(note.removeprefix(f'{name}: ') for note in inspection.notes)}"
    for device in host.drives:
        if device.kind == Kind.VIRTUAL:
            yield (
                f"{device.name}: a virtual disk: its health, cache and limits are those of the host below; state a "
                "limit with --limits"
            )
        if device.cloud is not None:
            yield f"{device.name}: {device.cloud.name}: {device.cloud.limited_by}; --limits {device.cloud.stated_as}"
    if machine.refused:
        files = sorted(machine.refused)
        more = f" and {counted(len(files) - 2, 'more file')}" if len(files) > 2 else ""
        yield f"not permitted to read {', '.join(files[:2])}{more}: run it as root"
    if host.load is not None:
        yield from host.load.notes
        if not host.load.stalled:
            yield "the kernel counts no stalls (PSI): boot with psi=1"


def measured_target(target: str) -> str:
    """Returns the device or file to read; of a folder, its largest file. Raises ``InputError``."""
    if not os.path.isdir(target):
        return target
    files = [entry for entry in os.scandir(target) if entry.is_file(follow_symlinks=False)]
    largest = max(files, key=lambda entry: entry.stat().st_size, default=None)
    if largest is None or largest.stat().st_size < MEASURED_BYTES_MIN:
        raise InputError(
            f"{target}: no file of {MEASURED_BYTES_MIN >> 20} MiB or more to read; name a file or a device",
            key="--measure",
        )
    return largest.path


def measured(target: str) -> Results:
    """Reads a target at random, directly, at queue depths 1 and 32."""
    from headstack.measurement.measurement import measure  # start-up time

    return measure(target, size="4KiB", read=100, random=100, depth=list(MEASURED_DEPTHS), time=MEASURED_TIME)
