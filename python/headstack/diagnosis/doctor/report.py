"""The report of a diagnosis, and the rows of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headstack._native import version
from headstack.diagnosis.doctor.blocks import BlockDevice, Kind
from headstack.diagnosis.doctor.findings import Finding, Host
from headstack.diagnosis.doctor.stack import uses_of
from headstack.diagnosis.inspection.verdict import judge
from headstack.diagnosis.judging.latencies import time_text
from headstack.report.figures import Report, Section, Table

if TYPE_CHECKING:
    from headstack.diagnosis.doctor.diagnosis import Diagnosis

DEVICE_HEADS = (
    "device",
    "kind",
    "model",
    "size",
    "used by",
    "scheduler",
    "write cache",
    "queue",
    "read-ahead",
    "IOPS",
    "latency",
    "health",
    "verdict",
)


def device_row(device: BlockDevice, host: Host) -> list[str]:
    """Returns the cells of a device, by ``DEVICE_HEADS``."""
    load, inspection = host.load_of(device.name), host.inspections.get(device.name)
    verdict = None if host.load is None else host.load.verdicts.get(device.name)
    latency_s = None if load is None else load.latency_s
    tags = device.setting("queue_depth") or device.setting("nr_requests")
    read_ahead = device.value("read_ahead_kb")
    return [
        device.name,
        device.cloud.name if device.cloud is not None else device.kind.value,
        device.model or device.label or "",
        _size(device.size_bytes),
        ", ".join(_uses(device, host)),
        device.scheduler or "",
        device.setting("write_cache") or "",
        tags or "",
        "" if read_ahead is None else f"{read_ahead:,} KiB",
        "" if load is None else f"{load.iops:,.0f}",
        "" if latency_s is None else time_text(latency_s),
        "" if inspection is None else judge(inspection).verdict,
        "" if verdict is None else verdict.kind,
    ]


def _uses(device: BlockDevice, host: Host) -> list[str]:
    if not device.slaves:
        return uses_of(device.name, host.stack, host.devices)
    mounts = [f"{mount.folder} ({mount.kind})" for mount in host.stack.mounts if mount.source == device.name]
    return [*mounts, f"of {' '.join(device.slaves)}"]


def _size(size_bytes: int) -> str:
    for unit, scale in (("TB", 1e12), ("GB", 1e9)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:.3g} {unit}"
    return f"{size_bytes / 1e6:,.0f} MB"


def limit_lines(host: Host) -> list[str]:
    """Returns a line on each limit in force, and on the stack above the devices."""
    names = {device.number: device.name for device in host.devices}
    lines = []
    for limit in host.limits:
        rate = None if host.load is None else host.load.group_rates.get(limit)
        observed = "" if rate is None else f", observed {rate / limit.per_s:.0%} of it"
        whose = "this process is in it" if limit.is_own else "another group"
        lines.append(
            f"limit of {names.get(limit.number, limit.number)}: {limit.file}: {limit.text} ({whose}{observed})"
        )
    for mount in host.stack.mounts:
        if mount.options_text:
            lines.append(f"{mount.folder}: {mount.kind} on {mount.source}, {mount.options_text}")
    for array in host.stack.arrays:
        bitmap = f", bitmap {array.bitmap}" if array.bitmap else ""
        done = f" ({array.done})" if array.action != "idle" and array.done else ""
        lines.append(f"{array.name}: {array.level}, {array.state}, {array.action}{done}{bitmap}")
    for device, used_bytes in host.stack.swaps.items():
        lines.append(f"swap on {device}: {used_bytes / 1e6:,.0f} MB used")
    if host.stack.dirty is not None:
        dirty = host.stack.dirty
        lines.append(
            f"dirty pages: written from {dirty.background_bytes / 1e9:.3g} GB, writers wait at "
            f"{dirty.limit_bytes / 1e9:.3g} GB"
        )
    if host.power_latency_us is not None and any(device.kind == Kind.NVME_SSD for device in host.devices):
        lines.append(f"NVMe power states: entered when idle if they wake up within {host.power_latency_us:,} us")
    if host.stack.has_zfs:
        lines.append("ZFS is loaded: its pools are not examined; see zpool status and zpool iostat -w")
    return lines


def pressure_line(host: Host) -> str:
    """Returns a sentence on the pressure on the host; empty without an observation."""
    load = host.load
    if load is None:
        return ""
    parts = [f"tasks waited for {name} {share:.0%} of the time" for name, share in load.stalled.items()]
    if load.cpu_idle is not None:
        steal = f", {load.cpu_steal:.0%} stolen" if load.cpu_steal and load.cpu_steal >= 0.005 else ""
        parts.append(f"processors {load.cpu_idle:.0%} idle{steal}")
    if load.swapped_per_s:
        parts.append(f"{load.swapped_per_s:,.0f} pages/s swapped")
    if load.throttled:
        parts.append(f"writers throttled in {load.throttled:.0%} of readings")
    return "pressure: " + ", ".join(parts) if parts else ""


def finding_lines(number: int, finding: Finding) -> list[str]:
    """Returns the lines of a finding."""
    return [
        f"{number}. {finding.subject}: {finding.seen}",
        f"   why: {finding.why}",
        f"   do: {finding.command}",
        f"   effect: {finding.effect.text}",
    ]


def report_of(diagnosis: Diagnosis) -> Report:
    """Returns a diagnosis as a report."""
    host = diagnosis.host
    rows = [device_row(device, host) for device in host.devices]
    shown = [n for n in range(len(DEVICE_HEADS)) if any(row[n] for row in rows)] or [0]
    devices = Table(
        "devices", "Devices", [DEVICE_HEADS[n] for n in shown], [[row[n] or None for n in shown] for row in rows]
    )
    sections = []
    if diagnosis.findings:
        heads = ["subject", "seen", "why", "command", "effect", "origin of the effect"]
        cells = [
            [each.subject, each.seen, each.why, each.command, each.effect.text, each.effect.origin]
            for each in diagnosis.findings
        ]
        sections.append(Section("Findings", "", [Table("findings", "Worth changing", heads, cells)]))
    sections.append(Section("Devices", pressure_line(host), [devices]))
    lines = limit_lines(host)
    if lines:
        sections.append(Section("Limits and stack", "\n\n".join(lines)))
    if diagnosis.measured is not None:
        sections.append(Section("Measured", "\n\n".join(measured_lines(diagnosis))))
    answer = diagnosis.answer
    return Report(
        "Diagnosis of this machine",
        "What limits the storage of this machine, and what is worth changing?",
        f"{answer[:1].upper()}{answer[1:]}.",
        sections,
        version=version(),
        remarks="\n\n".join(diagnosis.unseen),
    )


def measured_lines(diagnosis: Diagnosis) -> list[str]:
    """Returns a line for each measured queue depth."""
    if diagnosis.measured is None:
        return []
    return [
        f"measured {row['system']}: random reads of 4 KiB at queue depth {row['depth']}: {row['iops']:,.0f} IOPS, "
        f"{time_text(row['mean_ms'] / 1e3)}"
        for row in diagnosis.measured
    ]
