"""Reader of ``hdparm -I``: the identify data of an ATA device, one feature per line.

Lines are recognised by their words, not by their indentation, which documents often lose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TypedDict, Unpack

from headstack._native import InputError
from headstack.diagnosis.inspection.model import Capability, Identity, Inspection, slug

START = re.compile(r"^\s*(ATA device|ATAPI \S.*?|CompactFlash ATA device), with (non-)?removable media\s*$")

SECTIONS = {
    "Standards": "standards",
    "Configuration": "configuration",
    "Capabilities": "capabilities",
    "Commands/features": "features",
    "Security": "security",
    "Device Sleep": "sleep",
    "HW reset results": "reset",
    "Logical Unit WWN Device Identifier": "wwn",
}

KEYS = {
    "SMART feature set": "smart",
    "Security Mode feature set": "security",
    "Power Management feature set": "power_management",
    "Write cache": "write_cache",
    "Look-ahead": "read_lookahead",
    "Host Protected Area feature set": "hpa",
    "Advanced Power Management feature set": "apm",
    "Automatic Acoustic Management feature set": "aam",
    "Power-Up In Standby feature set": "power_up_in_standby",
    "SET_FEATURES required to spinup after power up": "spinup_by_set_features",
    "SET_MAX security extension": "set_max_security",
    "48-bit Address feature set": "lba48",
    "Device Configuration Overlay feature set": "dco",
    "Mandatory FLUSH_CACHE": "flush_cache",
    "FLUSH_CACHE_EXT": "flush_cache_ext",
    "SMART error logging": "smart_error_log",
    "SMART self-test": "smart_self_test",
    "General Purpose Logging feature set": "general_purpose_logging",
    "64-bit World wide name": "wwn",
    # ACS-2 calls what hdparm calls READ/WRITE_DMA_QUEUED the TCQ feature set (word 83 bit 1).
    "READ/WRITE_DMA_QUEUED": "tcq",
    "WRITE_DMA_QUEUED_FUA_EXT": "tcq_fua",
    "Release interrupt": "tcq_release_interrupt",
    "SERVICE interrupt": "tcq_service_interrupt",
    "WRITE_{DMA|MULTIPLE}_FUA_EXT": "fua",
    "Native Command Queueing (NCQ)": "ncq",
    "Native Command Queuing (NCQ)": "ncq",
    "NCQ priority information": "ncq_priority",
    "NCQ Queue Management Command": "ncq_queue_management",
    "SEND/RECEIVE FPDMA QUEUED": "ncq_send_receive",
    "Idle-Unload when NCQ is active": "ncq_idle_unload",
    "IDLE_IMMEDIATE with UNLOAD": "idle_unload",
    "Host-initiated interface power management": "hipm",
    "Device-initiated interface power management": "dipm",
    "Device automatic Partial to Slumber transitions": "dipm_auto_slumber",
    "Host automatic Partial to Slumber transitions": "hipm_auto_slumber",
    "Device Sleep (DEVSLP)": "devslp",
    "Gen1 signaling speed (1.5Gb/s)": "sata_gen1",
    "SATA-I signaling speed (1.5Gb/s)": "sata_gen1",
    "Gen2 signaling speed (3.0Gb/s)": "sata_gen2",
    "SATA-II signaling speed (3.0Gb/s)": "sata_gen2",
    "Gen3 signaling speed (6.0Gb/s)": "sata_gen3",
    # hdparm versions before 2009 have no name for word 76 bit 3, which is the third generation.
    "unknown 76[3]": "sata_gen3",
    "Phy event counters": "phy_event_counters",
    "Software settings preservation": "software_settings_preservation",
    "In-order data delivery": "in_order_delivery",
    "Non-Zero buffer offsets in DMA Setup FIS": "dma_setup_nonzero_offsets",
    "DMA Setup Auto-Activate optimization": "dma_setup_auto_activate",
    "SMART Command Transport (SCT) feature set": "sct",
    "SCT Long Sector Access (AC1)": "sct_long_sector",
    "SCT Read/Write Long (AC1), obsolete": "sct_long_sector",
    "SCT LBA Segment Access (AC2)": "sct_write_same",
    "SCT Write Same (AC2)": "sct_write_same",
    "SCT Error Recovery Control (AC3)": "sct_erc",
    "SCT Features Control (AC4)": "sct_feature_control",
    "SCT Data Tables (AC5)": "sct_data_tables",
    "Write-Read-Verify feature set": "write_read_verify",
    "Data Set Management TRIM supported": "trim",
    "Deterministic read data after TRIM": "trim_deterministic",
    "Deterministic read ZEROs after TRIM": "trim_zeroes",
    "SANITIZE feature set": "sanitize",
    "BLOCK_ERASE_EXT command": "sanitize_block_erase",
    "OVERWRITE_EXT command": "sanitize_overwrite",
    "CRYPTO_SCRAMBLE_EXT command": "sanitize_crypto",
    "Device encrypts all user data": "encrypts_user_data",
    "DOWNLOAD_MICROCODE": "download_microcode",
    "Segmented DOWNLOAD_MICROCODE": "download_microcode_segmented",
    "Free-fall Control feature set": "free_fall",
    "Extended Power Conditions feature set": "epc",
}


def _letters(name: str) -> str:
    """Removes changes that documents make to a name."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


BY_LETTERS = {_letters(name): key for name, key in KEYS.items()}


def is_listing(text: str) -> bool:
    """Whether the text contains an identify listing."""
    return any(START.match(line) for line in text.splitlines())


def read_hdparm(file: str, text: str) -> list[Inspection]:
    """Returns the inspection of every identify listing in a text. Raises ``InputError`` with the line of an invalid
    value.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if START.match(line)]
    ends = [*starts[1:], len(lines)]
    return [_Listing(file, start).read(lines[start:end]) for start, end in zip(starts, ends, strict=True)]


class Stated(TypedDict, total=False):
    """The parts of an ``Identity`` that a listing contains."""

    model: str | None
    serial: str | None
    firmware: str | None
    wwn: str
    capacity_bytes: int
    rpm: int
    form_factor: str
    interface: str
    interface_max_gbps: float
    logical_block_bytes: int
    physical_block_bytes: int


@dataclass
class _Listing:
    file: str
    first_line: int
    identity: Identity = field(default_factory=lambda: Identity(protocol="ATA"))
    sectors: int | None = None
    megabytes: int | None = None
    capabilities: dict[str, Capability] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    number: int = 0

    def read(self, lines: list[str]) -> Inspection:
        section = "head"
        for number, line in enumerate(lines, self.first_line + 1):
            self.number = number
            text = " ".join(line.split())
            heading = SECTIONS.get(text.split(":")[0].strip())
            if heading is not None:
                section = heading
                self.seen.add(section)
            if text and text.strip("-"):
                self._line(section, text)
            if text.startswith("Checksum:"):
                break
        return self._finished()

    def wrong(self, problem: str, allowed: str) -> InputError:
        return InputError(f"{self.file}: line {self.number}: {problem}; allowed: {allowed}")

    def _line(self, section: str, text: str) -> None:
        if text.startswith(("Checksum:", "Integrity word")):
            self.seen.add("checksum")
            if text != "Checksum: correct":
                self.notes.append(f"hdparm: {text[0].lower()}{text[1:]}: the listing may be wrong")
            return
        match section:
            case "head":
                self._head(text)
            case "configuration":
                self._configuration(text)
            case "capabilities":
                self._capability(text)
            case "features":
                self._feature(text)
            case "security":
                self._security(text)
            case "standards":
                self._standard(text)
            case "wwn":
                if match := re.search(r"Identifier: *([0-9a-f]{16})", text):
                    self._identify(wwn=match[1])
            case _:
                self._stated(text)

    def _head(self, text: str) -> None:
        name, _, value = (part.strip() for part in text.partition(":"))
        match name:
            case "Model Number":
                self._identify(model=value or None)
            case "Serial Number":
                self._identify(serial=value or None)
            case "Firmware Revision":
                self._identify(firmware=value or None)
            case "Transport":
                self._identify(interface=value)
            case _:
                pass

    def _standard(self, text: str) -> None:
        name, _, value = (part.strip() for part in text.partition(":"))
        key = {"Used": "ata_revision", "Supported": "ata_versions", "Likely used": "ata_version"}.get(name)
        if key is not None and value:
            self._put(key, Capability(f"ATA standard {name.lower()}", value=value))

    def _configuration(self, text: str) -> None:
        name, _, value = (part.strip() for part in re.sub(r"\s*=\s*(?=[^=]*$)", ":", text, count=1).partition(":"))
        if name in ("LBA user addressable sectors", "LBA48 user addressable sectors"):
            self.sectors = max(self._whole(name, value), self.sectors or 0)
        elif name in ("Logical/Physical Sector size", "Logical Sector size", "Physical Sector size"):
            size = self._whole(name, value.removesuffix("bytes"))
            if "logical" in name.lower():
                self._identify(logical_block_bytes=size)
            if "physical" in name.lower():
                self._identify(physical_block_bytes=size)
        elif name == "Form Factor":
            self._identify(form_factor=value.replace("inch", "inches").replace("inchess", "inches"))
        elif name == "Nominal Media Rotation Rate":
            self._identify(rpm=0 if value == "Solid State Device" else self._whole(name, value))
        elif text.startswith("device size with M = 1000*1000"):
            self.megabytes = self._whole("device size", text.rpartition(": ")[2].partition(" MB")[0])
        elif name == "cache/buffer size":
            self._put("buffer_size", Capability(name, value=None if value == "unknown" else value))

    def _whole(self, name: str, text: str) -> int:
        if not re.fullmatch(r"\s*[0-9]{1,20}\s*", text):
            raise self.wrong(f"{name}: {text.strip()[:40]!r} is not a whole number", "0 or more")
        return int(text)

    def _capability(self, text: str) -> None:
        name, colon, value = (part.strip() for part in text.partition(":"))
        if name == "Capabilities":
            return
        if not colon:
            for part in text.split(", "):
                self._put(slug(part.partition("(")[0]), Capability(part, True))
        elif name == "Queue depth":
            self._put("queue_depth", Capability(name, value=self._whole(name, value)))
        elif name in ("DMA", "PIO"):
            self._modes(name, value.split())
        elif name == "Cycle time":
            # The line follows the modes that it describes.
            self._put(
                "pio_cycle_time" if "pio" in self.capabilities else "dma_cycle_time", Capability(name, value=value)
            )
        elif name == "R/W multiple sector transfer":
            for bound, figure in re.findall(r"(Max|Current) = (\d+)", value):
                self._put(f"multiple_sectors_{bound.lower()}", Capability(f"{name} {bound}", value=int(figure)))
        elif name == "Advanced power management level":
            level = re.match(r"\d+", value)
            self._put("apm_level", Capability(name, value=int(level[0]) if level else value))
        elif match := re.match(r"Recommended acoustic management value: (\d+), current value: (\d+)", text):
            self._put("aam_recommended", Capability("Recommended acoustic management value", value=int(match[1])))
            self._put("aam_level", Capability("Acoustic management value", value=int(match[2])))
        else:
            self._stated(text)

    def _modes(self, name: str, modes: list[str]) -> None:
        """Parses ``udma5 *udma6``, a list of supported modes with a star at the current mode."""
        offered: dict[str, list[str]] = {}
        used: dict[str, str] = {}
        for mode in modes:
            kind = mode.lstrip("*").rstrip("0123456789")
            offered.setdefault(kind, []).append(mode.lstrip("*"))
            if mode.startswith("*"):
                used[kind] = mode.lstrip("*")
        for kind, names in offered.items():
            if kind == "pio":
                self._put("pio", Capability(name, True, value=names[-1]))
            else:
                self._put(kind, Capability(f"{name} mode in use", True, value=used.get(kind, "not in use")))
                self._put(f"{kind}_fastest", Capability(f"{name} fastest mode", value=names[-1]))

    def _feature(self, text: str) -> None:
        if text.startswith(("Commands/features", "Enabled Supported")):
            return
        enabled = text.startswith("*")
        name = text.lstrip("* ")
        if not name:
            raise self.wrong("a star without a feature", "* NAME, or NAME if it is not enabled")
        plain, limit = name, None
        if match := re.fullmatch(r"(Data Set Management TRIM supported) \(limit (\d+|unknown)(?: blocks?)?\)", name):
            plain, limit = match[1], match[2]
        key = BY_LETTERS.get(_letters(plain)) or slug(plain)
        self._put(key, Capability(plain, True, enabled, listed=True))
        if limit is not None and limit.isdigit():
            self._put("trim_limit_blocks", Capability("TRIM ranges a command, in blocks", value=int(limit)))

    def _security(self, text: str) -> None:
        if minutes := re.findall(r"(\d+)\s*min for (ENHANCED )?SECURITY ERASE UNIT", text):
            for figure, enhanced in minutes:
                # ACS counts to 508 minutes; longer times are "more than 508min".
                key = "enhanced_erase_minutes" if enhanced else "erase_minutes"
                self._put(key, Capability(f"{enhanced}SECURITY ERASE UNIT".capitalize(), value=int(figure)))
            return
        if text.startswith("Master password revision code"):
            self._put("master_password_revision", Capability("Master password revision code", value=text.split()[-1]))
            return
        is_so = not text.startswith("not ")
        match text.removeprefix("not ").rstrip(": "):
            case "supported":
                self._put("security_erase", Capability("Security erase", is_so))
            case "supported: enhanced erase":
                self._put("security_enhanced_erase", Capability("Enhanced security erase", is_so))
            case "enabled" | "locked" | "frozen" as state:
                self._put(f"security_{state}", Capability(f"Security {state}", enabled=is_so))

    def _stated(self, text: str) -> None:
        """Stores any other line under its own name, so that nothing is lost."""
        name, colon, value = (part.strip() for part in text.partition(":"))
        if colon and name and value:
            self._put(slug(name), Capability(name, value=value))

    def _identify(self, **stated: Unpack[Stated]) -> None:
        self.identity = replace(self.identity, **stated)

    def _put(self, key: str, capability: Capability) -> None:
        if key:
            self.capabilities.setdefault(key, replace(capability, source="hdparm"))

    def _finished(self) -> Inspection:
        if not self.identity.model:
            raise InputError(f"{self.file}: line {self.first_line + 1}: no Model Number follows; allowed: hdparm -I")
        if self.sectors is not None:
            block_bytes = self.identity.logical_block_bytes
            capacity_bytes = self.sectors * (512 if block_bytes is None else block_bytes)
            self._identify(capacity_bytes=capacity_bytes)
            megabytes = capacity_bytes // 10**6
            if self.megabytes is not None and abs(megabytes - self.megabytes) > 1:
                self.notes.append(f"hdparm: {self.sectors:,} sectors are {megabytes:,} MB, not {self.megabytes:,} MB")
        complete = "features" in self.seen and bool(self.seen & {"security", "checksum", "wwn"})
        if not complete:
            self.notes.append("hdparm: the listing of features is incomplete: missing features are unknown")
        elif "checksum" not in self.seen:
            self.notes.append("hdparm: the listing ends without its checksum; it may be truncated")
        for gbps, key in ((6.0, "sata_gen3"), (3.0, "sata_gen2"), (1.5, "sata_gen1")):
            if key in self.capabilities:
                self._identify(interface_max_gbps=gbps)
                break
        return Inspection(
            name=self.file,
            identity=self.identity,
            capabilities=self.capabilities,
            listings=("hdparm",) if complete else (),
            read_from=(f"hdparm: {self.file}",),
            notes=tuple(self.notes),
        )
