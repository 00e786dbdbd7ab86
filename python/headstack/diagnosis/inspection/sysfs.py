"""Reader of the Linux kernel's data on a block device: ``/sys/block``."""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from headstack._native import InputError
from headstack.diagnosis.inspection.fields import Fields
from headstack.diagnosis.inspection.model import Capability, Identity, Inspection

SOURCE = "sysfs"
MARK = "headstack_sysfs"
"""Key that identifies headstack's record of sysfs."""

SYS = Path("/sys")
SECTOR_BYTES = 512
"""Unit of sizes in sysfs in bytes, independent of the block size."""

FOLDERS = {
    "": ("size", "ro", "removable", "serial", "wwid", "cache_type"),
    "queue": (),
    "device": (
        *("model", "vendor", "rev", "serial", "firmware_rev", "queue_depth", "queue_type", "wwid", "transport"),
        *("current_link_speed", "current_link_width", "max_link_speed", "max_link_width", "cntrltype", "sata_spd"),
    ),
    "device/device": ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width"),
    "loop": ("backing_file", "dio"),
    "dm": ("name", "uuid"),
    "md": ("level", "raid_disks", "array_state"),
}
"""Files to read in each folder; all files if none is named."""

GBPS = re.compile(r"([\d.]+) Gbps")


class Driver(TypedDict, total=False):
    """The driver of a device, if it has a driver."""

    driver: str


class Record(TypedDict):
    """Stored files of sysfs about a device."""

    headstack_sysfs: int
    """Version of the record."""
    device: str
    """The kernel's name of the device."""
    taken_unix_s: int
    files: dict[str, str]
    """Content of each file, by its path in the folder of the device."""
    driver: NotRequired[str]
    holders: list[str]
    """Devices built from this device."""
    slaves: list[str]
    """Devices that this device is built from."""
    partitions: list[str]


def block_device(path: str) -> str:
    """Returns the kernel's name of the whole device for a path: a device, a partition of it, or a file on it.

    Raises ``InputError`` if there is none.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    if stat.S_ISCHR(status.st_mode):
        return _namespace_of(path)
    number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    link = SYS / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    if not link.exists() and not stat.S_ISBLK(status.st_mode):
        link = _mounted(path, number)
    if not link.exists():
        raise InputError(f"{path}: the kernel has no block device {os.major(number)}:{os.minor(number)} in {SYS}")
    folder = link.resolve()
    return folder.parent.name if (folder / "partition").exists() else folder.name


def _namespace_of(path: str) -> str:
    """Returns the first namespace of an NVMe controller, which is a character device."""
    name = os.path.basename(os.path.realpath(path))
    namespaces = sorted(entry.name for entry in (SYS / "class" / "nvme" / name).glob(f"{name}n*"))
    if not re.fullmatch(r"nvme\d+", name) or not namespaces:
        raise InputError(f"{path}: a character device; allowed: a block device, an NVMe controller, a file or a folder")
    return namespaces[0]


def _mounted(path: str, number: int) -> Path:
    """Returns the device below a file system that has its own device number, such as btrfs."""
    own = f"{os.major(number)}:{os.minor(number)}"
    kind = "unknown"
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        left, _, right = line.partition(" - ")
        if left.split()[2] == own:
            kind, source = right.split()[:2]
            if source.startswith("/dev/") and os.path.exists(source):
                device = os.stat(source).st_rdev
                return SYS / "dev" / "block" / f"{os.major(device)}:{os.minor(device)}"
    raise InputError(f"{path}: on {kind}, which is not a block device; name the device")


def record(name: str) -> Record:
    """Returns the files of sysfs about a device, as text."""
    folder = SYS / "class" / "block" / name
    files: dict[str, str] = {}
    for part, names in FOLDERS.items():
        for path in sorted((folder / part).iterdir() if not names and (folder / part).is_dir() else ()):
            _keep(files, path, f"{part}/{path.name}")
        for file in names:
            _keep(files, folder / part / file, f"{part}/{file}".lstrip("/"))
    driver = folder / "device" / "driver"
    stated: Driver = {"driver": driver.resolve().name} if driver.exists() else {}
    contents: Record = {
        "headstack_sysfs": 1,
        "device": name,
        "taken_unix_s": int(time.time()),
        "files": files,
        **stated,
        "holders": _names(folder / "holders"),
        "slaves": _names(folder / "slaves"),
        "partitions": sorted(entry.parent.name for entry in folder.glob("*/partition")),
    }
    serial = _unit_serial(folder)
    if serial:
        files.setdefault("device/vpd_pg80", serial)
    _keep_link(files, folder)
    return contents


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def is_behind_usb(name: str) -> bool:
    """Whether a device is on a USB bus."""
    return re.search(r"/usb\d+/", str((SYS / "class" / "block" / name).resolve())) is not None


def _keep(files: dict[str, str], path: Path, key: str) -> None:
    try:
        if path.is_file():
            files[key] = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        # Some files, such as wbt_lat_usec, cannot be read if the driver has no value.
        return


def _unit_serial(folder: Path) -> str:
    """Returns the serial number of a SCSI device: the vital product data page 80h, after its four bytes of header."""
    try:
        page = (folder / "device" / "vpd_pg80").read_bytes()
    except OSError:
        return ""
    return page[4:].decode("ascii", errors="replace").strip("\x00 ")


def _keep_link(files: dict[str, str], folder: Path) -> None:
    """Adds the negotiated speed of a SATA link, which sysfs has under the port."""
    port = re.search(r"/ata(\d+)/", str(folder.resolve()))
    if port:
        for file in ("sata_spd", "hw_sata_spd_limit"):
            _keep(files, SYS / "class" / "ata_link" / f"link{port[1]}" / file, f"ata_link/{file}")


def read_sysfs(data: Fields) -> Inspection:
    """Returns the inspection of a record."""
    files, name = data.object("files"), data.text("device") or data.file
    sectors = files.integer("size") if "size" in files else None
    known_kind = re.match(r"(sd|nvme|hd)", name) is not None
    vendor, model = (files.text(f"device/{key}") for key in ("vendor", "model"))
    protocol = "NVMe" if name.startswith("nvme") else "ATA" if vendor == "ATA" else "SCSI" if known_kind else None
    return Inspection(
        name=name,
        identity=Identity(
            model=f"{vendor} {model}" if protocol == "SCSI" and vendor and model else model,
            serial=files.text("device/serial") or files.text("device/vpd_pg80") or files.text("serial"),
            firmware=files.text("device/firmware_rev") or files.text("device/rev"),
            capacity_bytes=None if sectors is None else sectors * SECTOR_BYTES,
            rpm=0 if known_kind and files.text("queue/rotational") == "0" else None,
            protocol=protocol or data.text("driver") or re.sub(r"\d+$", "", name),
            interface_max_gbps=_gbps(files.text("ata_link/hw_sata_spd_limit")),
            interface_now_gbps=_gbps(files.text("ata_link/sata_spd")),
            logical_block_bytes=files.integer("queue/logical_block_size"),
            physical_block_bytes=files.integer("queue/physical_block_size"),
        ),
        capabilities=_capabilities(data, files),
        taken_unix_s=data.integer("taken_unix_s"),
        read_from=(f"{SOURCE}: {data.file}",),
    )


def _gbps(text: str | None) -> float | None:
    match = GBPS.match(text or "")
    return float(match[1]) if match else None


def _capabilities(data: Fields, files: Fields) -> dict[str, Capability]:
    capabilities: dict[str, Capability] = {}

    def put(key: str, name: str, **state: Any) -> None:
        capabilities[key] = Capability(name, source=SOURCE, **state)

    if (cache := files.text("queue/write_cache")) is not None:
        put("write_cache", "queue/write_cache", supported=cache == "write back" or None, enabled=cache == "write back")
    if (fua := files.text("queue/fua")) is not None:
        put("kernel_fua", "queue/fua", supported=fua == "1")
    if (discard := files.text("queue/discard_max_bytes")) is not None:
        put("kernel_discard", "queue/discard_max_bytes", supported=discard != "0")
    if chosen := re.search(r"\[(\S+)\]", files.text("queue/scheduler") or ""):
        put("scheduler", "queue/scheduler", value=chosen[1])
    for key in ("holders", "slaves", "partitions"):
        names = data.data.get(key)
        if isinstance(names, list) and names:
            put(key, key, value=" ".join(map(str, names)))
    if "driver" in data:
        put("driver", "driver", value=data.text("driver"))
    for path in files.data:
        folder, _, name = path.rpartition("/")
        text = files.text(path)
        if text is None or name in ("write_cache", "fua", "scheduler", "size", "serial", "vpd_pg80", "wwid"):
            continue
        if folder == "queue":
            put(name, path, value=_number(text))
        elif folder != "device" or name in ("queue_depth", "queue_type", "transport"):
            put(
                f"kernel_{name}" if folder in ("", "device") else f"{folder.split('/')[0]}_{name}",
                path,
                value=_number(text),
            )
    return capabilities


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch(r"\d{1,39}", text) else text
