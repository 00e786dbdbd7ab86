"""Checks of settings that cost speed under some loads."""

from __future__ import annotations

from collections.abc import Iterator

from headstack.diagnosis.doctor.blocks import BlockDevice, Kind
from headstack.diagnosis.doctor.effects import (
    Effect,
    of_elevator,
    of_page_faults,
    of_queue,
    of_write_cache,
    sequential_write_bytes_per_s,
)
from headstack.diagnosis.doctor.findings import Check, Finding, Host, Urgency

DEFAULT_READ_AHEAD_KIB = 128
"""The kernel's default (``VM_READAHEAD_PAGES`` in include/linux/pagemap.h)."""
LARGE_READ_AHEAD_KIB = 1024
"""Read-ahead from which a page fault reads more than the largest request of usual drivers (``max_sectors_kb``: 512 to
1,280 KiB)."""
FAULTS_PER_S = 1.0
"""Page faults that read, per second, from which programs read mapped files."""
MANY_PROCESSORS = 4
"""Processors from which one shared queue is a bottleneck worth a look."""
BACKGROUND_S, LIMIT_S = 2.0, 10.0
"""Seconds of sequential writing that the suggested limits of dirty pages hold (settings.md 1.7: background writing
should begin after 1 to 2 s of the device's rate)."""
NCQ_DEPTH = 31
"""Commands that Linux queues at a SATA disk (libata keeps one of 32 tags)."""


def write_cache(host: Host) -> Iterator[Finding]:
    """SATA disks whose write cache is off (queue-sysfs: ``write_cache``; hdparm(8): ``-W``). Does not apply to SSDs,
    SAS disks, and disks behind controllers, whose cache is off on purpose or replaced."""
    for device in host.drives:
        if (
            device.kind == Kind.DISK
            and device.is_ata
            and not device.is_usb
            and device.setting("write_cache") == "write through"
        ):
            yield Finding(
                Check.WRITE_CACHE,
                device.name,
                Urgency.SETTING,
                f"/sys/block/{device.name}/queue/write_cache is write through",
                "each write waits for the platter. File systems and databases flush the cache where they must; keep it "
                "off for programs that write without fsync and cannot lose the last seconds",
                f"hdparm -W1 /dev/{device.name}",
                of_write_cache(device),
            )


def queue_depth(host: Host) -> Iterator[Finding]:
    """Disks and SSDs that get one command at a time (``device/queue_depth``; libata: NCQ). Does not apply to USB
    storage, whose protocol has one command, or to NVMe, whose queues have no such file."""
    for device in host.drives:
        if device.value("queue_depth") == 1 and device.is_ata and not device.is_usb:
            yield Finding(
                Check.QUEUE_DEPTH,
                device.name,
                Urgency.SETTING,
                f"/sys/block/{device.name}/device/queue_depth is 1",
                "the drive cannot reorder commands (NCQ) or serve them in parallel",
                f"echo {NCQ_DEPTH} > /sys/block/{device.name}/device/queue_depth (refused without NCQ)",
                of_queue(device),
            )


def scheduler(host: Host) -> Iterator[Finding]:
    """Schedulers against the kernel's default: none for disks (elevator.c: mq-deadline for one hardware queue), bfq for
    NVMe, whose work per request is the reason for its limit (bfq-iosched.rst). Does not apply to virtual disks, which
    are called rotational without rotating, or below a device that schedules itself."""
    for device in host.drives:
        path = f"/sys/block/{device.name}/queue/scheduler"
        if device.kind == Kind.DISK and device.scheduler == "none":
            yield Finding(
                Check.SCHEDULER,
                device.name,
                Urgency.SETTING,
                f"{path} is none on a rotating disk",
                "requests beyond the queue of the disk are served in order of arrival, and writes can starve reads",
                f"echo mq-deadline > {path}",
                of_elevator(device),
            )
        elif device.kind == Kind.NVME_SSD and device.scheduler == "bfq":
            yield Finding(
                Check.SCHEDULER,
                device.name,
                Urgency.SETTING,
                f"{path} is bfq on an NVMe SSD",
                "bfq spends processor time on each request under one lock; keep it only for its fairness",
                f"echo none > {path}",
            )


def hardware_queues(host: Host) -> Iterator[Finding]:
    """NVMe SSDs with one hardware queue for many processors (nvme-pci: one queue per processor). Does not apply to
    cloud volumes and guests, whose hypervisor chooses the number."""
    for device in host.drives:
        if device.kind == Kind.NVME_SSD and device.hardware_queues == 1 and host.processors >= MANY_PROCESSORS:
            yield Finding(
                Check.HARDWARE_QUEUES,
                device.name,
                Urgency.SETTING,
                f"/sys/block/{device.name}/mq has 1 queue for {host.processors} processors",
                "all processors share one lock and one interrupt",
                "dmesg | grep -i 'nvme.*queues' (a quirk of the drive, or too few interrupt vectors)",
            )


def link(host: Host) -> Iterator[Finding]:
    """Drives whose link is slower than they support: PCI Express width and speed (sysfs-bus-pci: ``current_link_*``,
    ``max_link_*``), SATA speed. Does not apply if the files are missing, as in guests."""
    for name, (now, best, ratio) in host.links.items():
        yield Finding(
            Check.LINK,
            name,
            Urgency.SETTING,
            f"link {now}, supported {best}",
            "large transfers are limited by the link; check the slot, its lanes in the BIOS, and the cable",
            f"lspci -vv | grep -i lnk; headstack inspect /dev/{name}",
            Effect(f"up to {ratio:.2g} times the bandwidth of large transfers (computed)", "computed", ratio),
        )


def alignment(host: Host) -> Iterator[Finding]:
    """Partitions that begin within a physical block (queue-sysfs: ``physical_block_size``). Does not apply where
    physical and logical blocks are equal."""
    for device in host.drives:
        block = device.value("physical_block_size") or 0
        if block <= (device.value("logical_block_size") or block):
            continue
        for name, start in device.partitions.items():
            if start % block:
                yield Finding(
                    Check.ALIGNMENT,
                    name,
                    Urgency.SETTING,
                    f"/sys/block/{device.name}/{name}/start is {start // 512}, no multiple of {block} bytes",
                    "each aligned write of a block changes parts of two physical blocks, which are read first",
                    f"move the partition: parted -a optimal /dev/{device.name} (copy its data first)",
                    Effect(
                        "2 instead of 1 physical blocks per small write, each read first (computed)", "computed", 2.0
                    ),
                )


def read_ahead(host: Host) -> Iterator[Finding]:
    """Read-ahead far from the default: large where programs fault in mapped files, which reads that much around each
    page (``do_sync_mmap_readahead`` in mm/filemap.c); none on disks. Does not apply to large read-ahead unless that
    much is read for each fault in requests of that size, as it helps sequential reads, or to arrays."""
    for device in host.drives:
        path = f"/sys/block/{device.name}/queue/read_ahead_kb"
        now = device.value("read_ahead_kb")
        if now is None or not host.mounts_on(device):
            continue
        per_fault_kib = _read_per_fault_kib(host, device)
        if min(now, per_fault_kib) >= LARGE_READ_AHEAD_KIB:
            yield Finding(
                Check.READ_AHEAD,
                device.name,
                Urgency.SETTING,
                f"{path} is {now}; {per_fault_kib:,.0f} KiB are read for each page fault",
                f"a page fault in a mapped file reads up to {now:,} KiB around the page; files read in sequence gain",
                f"echo {DEFAULT_READ_AHEAD_KIB} > {path}",
                of_page_faults(device, now, DEFAULT_READ_AHEAD_KIB),
            )
        elif now == 0 and device.kind == Kind.DISK:
            yield Finding(
                Check.READ_AHEAD,
                device.name,
                Urgency.SETTING,
                f"{path} is 0",
                "files read in sequence wait for the disk at each request",
                f"echo {DEFAULT_READ_AHEAD_KIB} > {path}",
            )


def _read_per_fault_kib(host: Host, device: BlockDevice) -> float:
    """Returns the observed KiB that a device reads for each page fault; 0 with few faults, or if most requests are
    smaller than those of read-ahead, so that something else reads."""
    load = host.load_of(device.name)
    if host.load is None or load is None or host.load.major_faults_per_s < FAULTS_PER_S or not load.reads_per_s:
        return 0.0
    request_kib = load.read_bytes_per_s / load.reads_per_s / 1024
    largest_kib = min(device.value("read_ahead_kb") or 0, device.value("max_sectors_kb") or LARGE_READ_AHEAD_KIB)
    return load.read_bytes_per_s / host.load.major_faults_per_s / 1024 if request_kib >= largest_kib / 2 else 0.0


def dirty_limits(host: Host) -> Iterator[Finding]:
    """Dirty pages that a device needs longer to write than the kernel lets them age (vm.rst: ``dirty_ratio``,
    ``dirty_expire_centisecs``). Does not apply to devices of unknown rate, such as virtual disks."""
    dirty = host.stack.dirty
    if dirty is None:
        return
    slowest: tuple[float, str, str] | None = None
    for device in host.drives:
        if not any(mount.is_writable for mount in host.mounts_on(device)):
            continue
        if (rate := sequential_write_bytes_per_s(device)) is not None and (slowest is None or rate[0] < slowest[0]):
            slowest = (rate[0], rate[1], device.name)
    if slowest is None or dirty.limit_bytes / slowest[0] <= dirty.expire_s:
        return
    rate_per_s, model, name = slowest
    seconds = dirty.limit_bytes / rate_per_s
    background, limit = (int(rate_per_s * s) >> 20 << 20 for s in (BACKGROUND_S, LIMIT_S))
    yield Finding(
        Check.DIRTY_LIMITS,
        name,
        Urgency.SETTING,
        f"nr_dirty_threshold of /proc/vmstat allows {dirty.limit_bytes / 1e9:.3g} GB: {seconds:,.0f} s of writing at "
        f"{rate_per_s / 1e6:,.0f} MB/s",
        "sync, unmount and writers at the limit wait that long, more than the "
        f"{dirty.expire_s:.0f} s after which the kernel wants data written",
        f"sysctl vm.dirty_background_bytes={background} vm.dirty_bytes={limit}",
        Effect(f"at most {LIMIT_S:.0f} instead of {seconds:,.0f} s (computed, rate simulated: {model})", "computed"),
    )


def mount_options(host: Host) -> Iterator[Finding]:
    """Mounts that write more than needed: ``sync`` and access times at each read (``strictatime``, both mount(8)), data
    written twice (``data=journal``, ext4.rst). Does not apply to read-only mounts."""
    for device in host.drives:
        for mount in host.mounts_on(device):
            if not mount.is_writable:
                continue
            options = set(mount.options)
            if "sync" in options:
                text, why, fix = (
                    "sync",
                    "each write to a file waits for the device",
                    f"mount -o remount,async {mount.folder}",
                )
            elif "data=journal" in options:
                text = "data=journal"
                why = "all data are written twice, first to the journal"
                fix = f"unmount, and mount with data=ordered: {mount.folder}"
            elif not options & {"noatime", "relatime"}:
                text = "neither relatime nor noatime"
                why, fix = "each read of a file writes its access time", f"mount -o remount,relatime {mount.folder}"
            else:
                continue
            yield Finding(Check.MOUNT_OPTIONS, mount.folder, Urgency.SETTING, f"/proc/mounts has {text}", why, fix)
