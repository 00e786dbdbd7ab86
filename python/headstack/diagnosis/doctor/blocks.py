"""``BlockDevice``: a block device with its settings, as ``/sys/block`` shows them to any user."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from headstack.diagnosis.doctor.machine import Machine
from headstack.diagnosis.inspection.sysfs import SECTOR_BYTES


class Kind(StrEnum):
    """Kinds of block devices."""

    DISK = "HDD"
    SATA_SSD = "SATA/SAS SSD"
    NVME_SSD = "NVMe SSD"
    CLOUD = "cloud volume"
    VIRTUAL = "virtual disk"
    MD = "md array"
    DM = "device mapper"
    OTHER = "other"

    @property
    def is_drive(self) -> bool:
        """True for a physical drive, whose settings describe the hardware."""
        return self in (Kind.DISK, Kind.SATA_SSD, Kind.NVME_SSD)


@dataclass(frozen=True)
class CloudVolume:
    """A volume of a cloud, which a rule of its type limits outside of this machine."""

    model: re.Pattern[str]
    """Pattern of vendor and model in sysfs."""
    name: str
    limited_by: str
    """The limits, and the command that prints them."""
    stated_as: str
    """An example for ``judge --limits``."""


CLOUD_VOLUMES = (
    CloudVolume(
        re.compile(r"Amazon Elastic Block Store"),
        "Amazon EBS volume",
        "IOPS and bytes/s of its type and of the instance: aws ec2 describe-volumes",
        "gp3:3000/s,125MiB/s",
    ),
    CloudVolume(
        re.compile(r"Amazon EC2 NVMe Instance Storage"),
        "Amazon instance store",
        "IOPS of the instance type: aws ec2 describe-instance-types",
        "100000/s",
    ),
    CloudVolume(
        re.compile(r"Msft\s+Virtual Disk|MSFT NVMe Accelerator", re.IGNORECASE),
        "Azure or Hyper-V disk",
        "IOPS and bytes/s of the disk and of the VM size: az disk show",
        "p30:5000/s,200MB/s",
    ),
    CloudVolume(
        re.compile(r"Google\s+PersistentDisk|nvme_card-pd"),
        "Google Persistent Disk",
        "IOPS and bytes/s by size, type and vCPUs: gcloud compute disks describe",
        "pd-balanced:3600/s,168MiB/s",
    ),
)
"""Models by which guests recognize cloud volumes; facts from the providers' documentation of device names."""

VIRTUAL = re.compile(r"QEMU|VMware|VBOX|Msft\s+Virtual|Google\s|XENSRC|Virtio|Amazon|nvme_card|MSFT", re.IGNORECASE)
VIRTUAL_NAME = re.compile(r"(vd|xvd)[a-z]+")
HIDDEN_NAME = re.compile(r"(ram|loop|zram|fd|sr)\d+|nvme\d+c\d+n\d+")
"""Devices in memory, on files or removable, and paths of multipath NVMe, which are left out."""


@dataclass(frozen=True)
class BlockDevice:
    """A block device with its settings."""

    name: str
    number: str
    """``MAJ:MIN``, as control groups name it."""
    kind: Kind
    model: str | None
    size_bytes: int
    driver: str | None
    is_ata: bool
    """True for a SATA disk, whose cache ``hdparm`` sets."""
    is_usb: bool
    settings: Mapping[str, str]
    """Files of ``queue`` and ``device/queue_depth`` by name."""
    slaves: tuple[str, ...]
    """Devices that it is built from."""
    label: str | None
    """Name and UUID prefix of a device mapper device, or the level of an md array."""
    partitions: Mapping[str, int]
    """First byte of each partition."""
    hardware_queues: int
    cloud: CloudVolume | None = None

    def setting(self, name: str) -> str | None:
        """Returns a setting as text; ``None`` if the kernel does not state it."""
        return self.settings.get(name)

    def value(self, name: str) -> int | None:
        """Returns a setting as a number; ``None`` if it is none."""
        text = self.settings.get(name, "")
        return int(text) if text.isdigit() else None

    @property
    def scheduler(self) -> str | None:
        """The chosen I/O scheduler."""
        chosen = re.search(r"\[(\S+)\]", self.settings.get("scheduler", ""))
        return chosen[1] if chosen else None


def block_devices(machine: Machine) -> tuple[BlockDevice, ...]:
    """Returns all block devices with a size, except those in memory and on files, such as the loop devices of snaps."""
    names = [name for name in machine.names("sys/block") if not HIDDEN_NAME.fullmatch(name)]
    return tuple(_device(machine, name) for name in names if machine.number(f"sys/block/{name}/size"))


def _device(machine: Machine, name: str) -> BlockDevice:
    folder = f"sys/block/{name}"
    vendor, model = (machine.text(f"{folder}/device/{key}") or "" for key in ("vendor", "model"))
    # The vendor of a virtio device is a number.
    called = " ".join(f"{'' if vendor.startswith('0x') else vendor} {model}".split())
    settings = {
        file: text
        for file in machine.names(f"{folder}/queue")
        if machine.path(f"{folder}/queue/{file}").is_file()
        and (text := machine.text(f"{folder}/queue/{file}")) is not None
    }
    if (depth := machine.text(f"{folder}/device/queue_depth")) is not None:
        settings["queue_depth"] = depth
    driver = machine.link(f"{folder}/device/driver")
    cloud = next((volume for volume in CLOUD_VOLUMES if volume.model.search(called)), None)
    return BlockDevice(
        name=name,
        number=machine.text(f"{folder}/dev") or "",
        kind=_kind(name, called, driver, cloud, settings),
        model=called.removeprefix("ATA ") or None,
        size_bytes=(machine.number(f"{folder}/size") or 0) * SECTOR_BYTES,
        driver=driver,
        is_ata=vendor == "ATA",
        is_usb="/usb" in str(machine.path(folder).resolve()),
        settings=settings,
        slaves=tuple(machine.names(f"{folder}/slaves")),
        label=_label(machine, folder),
        partitions={
            part: (machine.number(f"{folder}/{part}/start") or 0) * SECTOR_BYTES
            for part in machine.names(folder)
            if machine.path(f"{folder}/{part}/partition").exists()
        },
        hardware_queues=len(machine.names(f"{folder}/mq")),
        cloud=cloud,
    )


def _kind(name: str, called: str, driver: str | None, cloud: CloudVolume | None, settings: Mapping[str, str]) -> Kind:
    if cloud is not None:
        return Kind.CLOUD
    if VIRTUAL_NAME.fullmatch(name) or VIRTUAL.search(called) or driver in ("virtio_blk", "vbd"):
        return Kind.VIRTUAL
    if name.startswith("md"):
        return Kind.MD
    if name.startswith("dm-"):
        return Kind.DM
    if name.startswith("nvme"):
        return Kind.NVME_SSD
    if re.fullmatch(r"[sh]d[a-z]+", name):
        return Kind.DISK if settings.get("rotational") == "1" else Kind.SATA_SSD
    return Kind.OTHER


def _label(machine: Machine, folder: str) -> str | None:
    if (name := machine.text(f"{folder}/dm/name")) is not None:
        kind = (machine.text(f"{folder}/dm/uuid") or "").partition("-")[0]
        return f"{name} ({kind})" if kind else name
    return machine.text(f"{folder}/md/level")


def drives_below(name: str, devices: Iterable[BlockDevice]) -> tuple[str, ...]:
    """Returns the names of the devices at the bottom of a device, which is a partition or any block device."""
    by_name = {device.name: device for device in devices}
    whole = {part: device.name for device in by_name.values() for part in device.partitions}
    bottom: dict[str, None] = {}

    def descend(at: str) -> None:
        device = by_name.get(whole.get(at, at))
        if device is None:
            return
        if not device.slaves:
            bottom[device.name] = None
        for slave in device.slaves:
            descend(slave)

    descend(name)
    return tuple(bottom)
