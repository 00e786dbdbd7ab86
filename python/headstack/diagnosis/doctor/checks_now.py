"""Checks of what is wrong now: data at risk, and what requests were seen to wait for."""

from __future__ import annotations

from collections.abc import Iterator

from headstack.diagnosis.doctor.blocks import drives_below
from headstack.diagnosis.doctor.effects import Effect, of_protection
from headstack.diagnosis.doctor.findings import Check, Finding, Host, Urgency
from headstack.diagnosis.doctor.limits import rate_text
from headstack.diagnosis.doctor.load import DeviceLoad
from headstack.diagnosis.inspection.verdict import REPLACE, judge
from headstack.diagnosis.judging.suspects.thresholds import AT_LIMIT, CPU_FULL, PRESSURE, STEAL
from headstack.diagnosis.judging.verdict import SLOW, Kind

BUSY_FLUSHES = 0.5
"""Share of the time spent in flushes from which commits wait for them more than for everything else."""
SLOW_FLUSH_S = 0.001
"""Latency of a flush from which a protected drive would be at least ten times as fast (settings.md: drives with
power-loss protection answer in 0.02 to 0.1 ms)."""
OFTEN = 0.5
"""Share of the readings in which writers wait, from which it is the usual state."""
BIG_DISCARDS = 0.1
"""Share of the time of all requests spent in discards: their removal saves at most that."""
SWAPS_PER_S = 10.0
"""Pages swapped per second from which swapping continues: below it, cold pages leave once."""
MUCH_LONGER = 2.0
"""Ratio of the time of waiting for the host to that for I/O from which the host is named although a device is busy."""
NEED_NO_PAST: tuple[Kind, ...] = (SLOW, "limit", "queue")
"""Verdicts that ``judge`` gives without an earlier phase, or, if slow, after 30 intervals of it (deciding.py)."""
WAITING = 1.0
"""Mean requests in flight from which one waits for the device all the time."""


def health(host: Host) -> Iterator[Finding]:
    """Drives that are about to fail, by the verdict of ``inspect`` (its sources: inspection/verdict.py). Does not apply
    without health data."""
    for device in host.devices:
        if (inspection := host.inspections.get(device.name)) is None:
            continue
        judgement = judge(inspection)
        if judgement.verdict == REPLACE:
            seen = next(reason.finding for reason in judgement.reasons if reason.verdict == REPLACE)
            why = "the drive is about to fail: copy its data now"
            yield Finding(
                Check.HEALTH, device.name, Urgency.DANGER, seen, why, f"headstack inspect /dev/{device.name}", kind=SLOW
            )


def temperature(host: Host) -> Iterator[Finding]:
    """Drives at or above their warning temperature: NVMe drives slow down there (NVMe base specification, WCTEMP; the
    hwmon files temp1_input and temp1_max of the drivers nvme and drivetemp). Does not apply without these files."""
    for name, (celsius, warning) in host.temperatures.items():
        if celsius >= warning:
            yield Finding(
                Check.TEMPERATURE,
                name,
                Urgency.WAITING,
                f"temp1_input is {celsius:.0f} °C, temp1_max {warning:.0f} °C",
                "from its warning temperature a drive limits its speed to protect itself",
                f"headstack inspect /dev/{name}, then improve the air flow",
                kind=SLOW,
            )


def degraded(host: Host) -> Iterator[Finding]:
    """Arrays with missing members (md.rst: ``degraded``). Does not apply to a complete array."""
    for array in host.stack.arrays:
        if array.degraded:
            work = "" if array.action == "idle" else f"; {array.action} is running ({array.done or 'no progress yet'})"
            yield Finding(
                Check.DEGRADED,
                array.name,
                Urgency.DANGER,
                f"/sys/block/{array.name}/md/degraded is {array.degraded} ({array.level}){work}",
                "the array has less redundancy than its level, and reads of the missing member are computed",
                f"mdadm --detail /dev/{array.name}, then mdadm /dev/{array.name} --add DEVICE",
                kind=SLOW,
            )


def barrier(host: Host) -> Iterator[Finding]:
    """Mounts without barriers on a device with a volatile write cache: a power loss corrupts them (ext4.rst:
    ``barrier``; queue-sysfs: ``write_cache`` is "write back" with a volatile cache). Does not apply to "write through"
    devices."""
    for device in host.drives:
        if device.setting("write_cache") != "write back":
            continue
        for mount in host.mounts_on(device):
            if {"nobarrier", "barrier=0"} & set(mount.options):
                yield Finding(
                    Check.BARRIER,
                    mount.folder,
                    Urgency.DANGER,
                    f"/proc/mounts has nobarrier; /sys/block/{device.name}/queue/write_cache is write back",
                    "after a power loss the file system may be corrupt, as its journal is not flushed",
                    f"mount -o remount,barrier=1 {mount.folder}",
                )


def verdict(host: Host) -> Iterator[Finding]:
    """Verdicts of ``judge`` on the observation (docs/judge.md). Does not apply to devices without a request in flight
    for most of the time, for which an even rate is no limit, or to verdicts from a change of the load, as programs that
    start or end within half a minute look like other work or a starved host."""
    for name, judged in (host.load.verdicts if host.load is not None else {}).items():
        load = host.load_of(name)
        if judged.kind not in NEED_NO_PAST or load is None or load.in_flight < WAITING:
            continue
        why = f"{judged.why.rstrip('.')} ({judged.confidence:.0%} sure)" if judged.confidence else judged.why
        seen = f"{load.iops:,.0f} IOPS with {load.in_flight:.2g} requests in flight"
        yield Finding(
            Check.VERDICT, name, Urgency.WAITING, seen, why.rstrip("."), judged.next_step.rstrip("."), kind=judged.kind
        )


def group_limit(host: Host) -> Iterator[Finding]:
    """Control groups whose rate is at their limit (cgroup-v2.rst: ``io.max``; ``AT_LIMIT`` of ``judge``). Does not
    apply to limits that are not reached: they are listed only."""
    rates = {} if host.load is None else host.load.group_rates
    for limit, rate in rates.items():
        if rate < AT_LIMIT * limit.per_s:
            continue
        name = next((each.name for each in host.devices if each.number == limit.number), limit.number)
        raised = f"{limit.number} {limit.key}=RATE" if limit.file.endswith("/io.max") else f"{limit.number} RATE"
        yield Finding(
            Check.GROUP_LIMIT,
            f"{name}, group {limit.group}",
            Urgency.WAITING,
            f"{limit.file}: {limit.text}; observed {rate_text(limit.key, rate)}",
            f"requests of the group wait in the kernel for its limit of {limit.rate_text}; the device may be idle",
            f"echo '{raised}' > {limit.file}",
            kind="limit",
        )


def starved_host(host: Host) -> Iterator[Finding]:
    """Hosts that have no processor or memory left, while storage has little part in it (psi.rst; the limits of
    ``judge``). Does not apply if a device has a request in flight most of the time, unless tasks wait for I/O at most
    half as long."""
    load = host.load
    busiest = max((host.load_of(device.name) for device in host.drives), key=_in_flight, default=None)
    if load is None or busiest is None:
        return
    is_idle, waited = busiest.in_flight < WAITING, load.stalled.get("io")
    cpu, memory = load.stalled.get("cpu", 0.0), load.stalled.get("memory", 0.0)

    def exceeds_storage(share: float) -> bool:
        return is_idle or (waited is not None and share >= MUCH_LONGER * waited)

    if load.cpu_steal is not None and load.cpu_steal > STEAL and is_idle:
        seen = f"/proc/stat: {load.cpu_steal:.0%} of processor time stolen by other guests"
        command = "use a larger guest or dedicated processors: vmstat 5 shows steal as st"
    elif load.cpu_idle is not None and load.cpu_idle < CPU_FULL and cpu > OFTEN and exceeds_storage(cpu):
        seen = (
            f"/proc/stat: processors {load.cpu_idle:.0%} idle; /proc/pressure/cpu: tasks waited {cpu:.0%} of the time"
        )
        command = "top, or systemd-cgtop, shows what uses the processors; faster storage would change little"
    elif memory > PRESSURE and exceeds_storage(memory):
        seen = f"/proc/pressure/memory: tasks waited {memory:.0%} of the time"
        command = "systemd-cgtop -m shows what uses the memory"
    else:
        return
    for_storage = "" if waited is None else f" ({waited:.0%} of the time)"
    why = (
        f"programs wait for the host more than for storage{for_storage}, which has {busiest.in_flight:.2g} requests in "
        "flight on average"
    )
    yield Finding(Check.STARVED_HOST, "host", Urgency.WAITING, seen, why, command, kind="host")


def _in_flight(load: DeviceLoad | None) -> float:
    return -1.0 if load is None else load.in_flight


def dirty_throttle(host: Host) -> Iterator[Finding]:
    """Writers that the kernel pauses, as too many pages are dirty (``load.exceeds_free_run``). Does not apply to
    single readings above it."""
    load = host.load
    if load is None or load.throttled < OFTEN:
        return
    rates = {device.name: of.write_bytes_per_s for device in host.drives if (of := host.load_of(device.name))}
    name, rate_per_s = max(rates.items(), key=lambda item: item[1], default=("", 0.0))
    if rate_per_s == 0:
        return
    yield Finding(
        Check.DIRTY_THROTTLE,
        name,
        Urgency.WAITING,
        f"/proc/vmstat: nr_dirty + nr_writeback above the middle of both limits in {load.throttled:.0%} of readings",
        "programs write faster than the device, so that each write to the page cache waits for it",
        f"pidstat -d 5 shows who writes (now {rate_per_s / 1e6:,.0f} MB/s); headstack choose finds a faster device",
        kind="queue",
    )


def sync_action(host: Host) -> Iterator[Finding]:
    """Background work of md arrays that serve requests (md.rst: ``sync_action``, ``sync_speed_max``). Does not apply to
    an idle array, or to a degraded one, whose recovery must not be slowed down."""
    for array in host.stack.arrays:
        load = host.load_of(array.name)
        if array.action in ("idle", "frozen") or array.degraded or load is None or load.iops == 0:
            continue
        folder = f"/sys/block/{array.name}/md"
        is_check = array.action == "check"
        yield Finding(
            Check.SYNC_ACTION,
            array.name,
            Urgency.WAITING,
            f"{folder}/sync_action is {array.action} ({array.done or 'just begun'}), next to {load.iops:,.0f} IOPS",
            "it reads all members while programs use them",
            f"echo idle > {folder}/sync_action, and repeat it at night"
            if is_check
            else f"echo 20000 > {folder}/sync_speed_max",
            kind="neighbour",
        )


def swap(host: Host) -> Iterator[Finding]:
    """Continued swapping on a device that also has file systems (proc_vmstat: ``pswpin``, ``pswpout``). Does not apply
    to zram, or to swap that is only filled."""
    if host.load is None or host.load.swapped_per_s < SWAPS_PER_S:
        return
    for device in host.drives:
        sources = [source for source in host.stack.swaps if device.name in drives_below(source, host.devices)]
        if sources and host.mounts_on(device):
            yield Finding(
                Check.SWAP,
                device.name,
                Urgency.WAITING,
                f"/proc/vmstat: {host.load.swapped_per_s:,.0f} pages/s swapped, to {sources[0]}",
                "memory is short, and swapping competes with the file systems of the device",
                "free memory, or swap to another device or zram: systemd-cgtop -m shows who uses it",
                kind="neighbour",
            )


def flushes(host: Host) -> Iterator[Finding]:
    """Flushes that take most of the time of an SSD with a volatile cache (iostats.rst: fields 19 and 20). Does not
    apply to "write through" devices, to disks, whose flush takes a rotation in any case, and to rare flushes."""
    for device in host.drives:
        load = host.load_of(device.name)
        latency_s = None if load is None else load.flush_latency_s
        if load is None or latency_s is None or not device.kind.is_drive or device.setting("rotational") == "1":
            continue
        busy = load.flushes_per_s * latency_s
        if busy >= BUSY_FLUSHES and latency_s >= SLOW_FLUSH_S and device.setting("write_cache") == "write back":
            yield Finding(
                Check.FLUSHES,
                device.name,
                Urgency.WAITING,
                f"{load.flushes_per_s:,.0f} flushes/s of {latency_s * 1e3:.2g} ms each: {busy:.0%} of the time",
                "each commit (fsync) waits until the volatile cache is on flash",
                "group commits, or move the log to an SSD with power-loss protection; headstack measure fsync compares",
                of_protection(latency_s),
                kind="queue",
            )


def discards(host: Host) -> Iterator[Finding]:
    """Discards at each deletion that take a notable share of the time (xfs.rst and ext4.rst: ``discard``; fstrim(8)
    recommends a weekly run). Does not apply to btrfs, which discards in the background, or to quick discards."""
    for device in host.drives:
        load = host.load_of(device.name)
        if load is None or load.discard_share < BIG_DISCARDS:
            continue
        for mount in host.mounts_on(device):
            if "discard" in mount.options and mount.kind != "btrfs":
                yield Finding(
                    Check.DISCARDS,
                    mount.folder,
                    Urgency.WAITING,
                    f"/proc/mounts has discard; {load.discards:,.0f} discards of {device.name} took "
                    f"{load.discard_share:.0%} of the time of its requests since boot",
                    "each deletion sends discards, for which other requests wait",
                    f"mount -o remount,nodiscard {mount.folder} (also in fstab); systemctl enable --now fstrim.timer",
                    Effect(f"up to {load.discard_share:.0%} less time of requests (observed)", "observed"),
                )
