"""Readers of nvme-cli: ``id-ctrl``, ``id-ns`` and ``smart-log``, as JSON or as text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headstack.diagnosis.inspection.fields import Fields
from headstack.diagnosis.inspection.model import Capability, Identity, Inspection, NvmeHealth
from headstack.diagnosis.inspection.smartctl import NVME_UNIT_BYTES

SOURCE = "nvme"

TITLES = {
    "id-ctrl": re.compile(r"^NVME Identify Controller"),
    "id-ns": re.compile(r"^NVME Identify Namespace"),
    "smart-log": re.compile(r"^Smart Log for NVME device", re.IGNORECASE),
}

SIGNS = {"id-ctrl": {"sn", "mn"}, "id-ns": {"nsze", "lbafs"}, "smart-log": {"critical_warning", "data_units_written"}}
"""Keys unique to each document."""

RENAMED = {
    "avail_spare": "available_spare",
    "spare_thresh": "available_spare_threshold",
    "percent_used": "percentage_used",
    "warning_temperature_time": "warning_temp_time",
    "critical_composite_temperature_time": "critical_comp_time",
}
"""Alternative names of fields in JSON and in the text of each version."""

OPTIONAL_COMMANDS = {
    1: ("write_uncorrectable", "Write Uncorrectable"),
    2: ("trim", "Dataset Management"),
    3: ("write_zeroes", "Write Zeroes"),
    5: ("reservations", "Reservations"),
    7: ("verify", "Verify"),
}
"""Bits of ONCS (NVM Express base specification, Identify Controller, bytes 520 and 521)."""

ADMIN_COMMANDS = {
    0: ("security_send_receive", "Security Send and Receive"),
    1: ("format_nvm", "Format NVM"),
    2: ("firmware_download", "Firmware Download"),
    3: ("namespace_management", "Namespace Management"),
    4: ("self_test", "Device Self-test"),
}
"""Bits of OACS (bytes 256 and 257)."""


def json_kind(data: Mapping[str, object]) -> str | None:
    """Returns the kind of a document of nvme-cli."""
    renamed = {RENAMED.get(key, key) for key in data}
    return next((kind for kind, signs in SIGNS.items() if signs <= renamed), None)


def text_kind(text: str) -> str | None:
    """Returns the kind of a text of nvme-cli."""
    for line in text.splitlines():
        for kind, title in TITLES.items():
            if title.match(line):
                return kind
    return None


def read_text(file: str, text: str) -> Fields:
    """Parses the fields of a text into the shape of the JSON. ``device`` is the name in the title."""
    data: dict[str, object] = {}
    formats: list[dict[str, int]] = []
    for line in text.splitlines():
        if match := re.match(r"Smart Log for NVME device:\s*(\S+)", line, re.IGNORECASE):
            data["device"] = match[1]
        elif match := re.match(r"lbaf\s+(\d+)\s*: ms:\s*(\d+)\s+(?:lbads|ds):\s*(\d+)(.*)", line):
            formats.append({"ms": int(match[2]), "ds": int(match[3])})
            data.setdefault("lbafs", formats)
            if "(in use)" in match[4]:
                data["flbas"] = int(match[1])
        elif match := re.match(r"([A-Za-z_][\w ]*?)\s*:\s*(\S.*)", line):
            key = re.sub(r"\W+", "_", match[1].lower())
            data.setdefault(RENAMED.get(key, key), _value(key, match[2].strip()))
    return Fields(file, data)


def _value(key: str, text: str) -> int | str:
    """Returns the number at the start of a text, otherwise the text; names are unchanged."""
    if key in ("sn", "mn", "fr"):
        return text
    if match := re.match(r"0x([0-9a-f]{1,32})$", text):
        return int(match[1], 16)
    match = re.match(r"(\d{1,3}(?:,\d{3})+|\d{1,39})(?:\s*%|\s*°?\s*C\b.*|\s+\(.*)?$", text)
    return int(match[1].replace(",", "")) if match else text


def read_nvme(kind: str, data: Fields) -> Inspection:
    """Returns the inspection of a document of nvme-cli."""
    data = Fields(data.file, {RENAMED.get(key, key): value for key, value in data.data.items()})
    read = {"id-ctrl": _controller, "id-ns": _namespace, "smart-log": _health}[kind]
    return read(data, f"{SOURCE} {kind}: {data.file}")


def _controller(data: Fields, read_from: str) -> Inspection:
    version = data.integer("ver") or 0
    capabilities: dict[str, Capability] = {}

    def put(key: str, name: str, supported: bool | None, value: int | str | None = None) -> None:
        capabilities[key] = Capability(name, supported, None, value, SOURCE)

    for register, bits in (("oncs", OPTIONAL_COMMANDS), ("oacs", ADMIN_COMMANDS)):
        set_bits = data.integer(register)
        if set_bits is not None:
            for bit, (key, name) in bits.items():
                put(key, name, bool(set_bits >> bit & 1))
    if (cache := data.integer("vwc")) is not None:
        put("write_cache", "Volatile write cache", bool(cache & 1))
    if (apsta := data.integer("apsta")) is not None:
        put("apst", "Autonomous power state transitions", bool(apsta & 1))
    if (transfer := data.integer("mdts")) is not None:
        put(
            "max_transfer_pages",
            "Maximum data transfer",
            None,
            "unlimited" if transfer == 0 else 1 << min(transfer, 64),
        )
    for key, name in (("nn", "Number of namespaces"), ("npss", "Number of power states")):
        if (figure := data.integer(key)) is not None:
            put({"nn": "namespaces", "npss": "power_states"}[key], name, None, figure + (key == "npss"))
    return Inspection(
        name=data.file,
        identity=Identity(
            model=data.text("mn"),
            serial=data.text("sn"),
            firmware=data.text("fr"),
            capacity_bytes=data.integer("tnvmcap") or None,
            rpm=0,
            protocol="NVMe",
            # Before NVMe 1.2 the register was optional.
            interface=f"NVMe {version >> 16}.{version >> 8 & 0xFF}" if version else "NVMe",
        ),
        capabilities=capabilities,
        read_from=(read_from,),
    )


def _namespace(data: Fields, read_from: str) -> Inspection:
    formats = data.objects("lbafs")
    chosen = (data.integer("flbas") or 0) & 0xF
    power = formats[chosen].integer("ds") if chosen < len(formats) else None
    block_bytes = None if power is None or not 9 <= power <= 20 else 1 << power
    blocks = data.integer("nsze")
    features = data.integer("nsfeat")
    capabilities = {}
    if features is not None:
        capabilities["thin_provisioning"] = Capability("Thin provisioning", bool(features & 1), source=SOURCE)
    if formats:
        sizes = ", ".join(str(1 << ds) for f in formats if (ds := f.integer("ds")) is not None and 9 <= ds <= 20)
        capabilities["lba_formats_bytes"] = Capability("LBA formats", value=sizes, source=SOURCE)
    capacity = None if block_bytes is None or blocks is None else blocks * block_bytes
    identity = Identity(rpm=0, protocol="NVMe", capacity_bytes=capacity, logical_block_bytes=block_bytes)
    return Inspection(name=data.file, identity=identity, capabilities=capabilities, read_from=(read_from,))


def _health(data: Fields, read_from: str) -> Inspection:
    warning = data.data.get("critical_warning")
    # nvme-cli 2 can print the bits by name, including their sum.
    critical = data.integer("critical_warning.value") if isinstance(warning, dict) else data.integer("critical_warning")
    written = data.integer("data_units_written")
    temperature = data.integer("temperature")
    if temperature is not None and temperature > 200:
        # The JSON has kelvins, the text degrees Celsius.
        temperature -= 273
    return Inspection(
        name=data.text("device") or data.file,
        identity=Identity(rpm=0, protocol="NVMe"),
        nvme=NvmeHealth(
            critical_warning=critical,
            available_spare_percent=data.integer("available_spare"),
            available_spare_threshold_percent=data.integer("available_spare_threshold"),
            percentage_used=data.integer("percentage_used"),
            data_units_read=data.integer("data_units_read"),
            data_units_written=written,
            unsafe_shutdowns=data.integer("unsafe_shutdowns"),
            media_errors=data.integer("media_errors"),
            error_log_entries=data.integer("num_err_log_entries"),
            warning_temperature_minutes=data.integer("warning_temp_time"),
            critical_temperature_minutes=data.integer("critical_comp_time"),
        ),
        power_on_hours=data.integer("power_on_hours"),
        power_cycles=data.integer("power_cycles"),
        temperature_celsius=temperature,
        written_bytes=None if written is None else written * NVME_UNIT_BYTES,
        endurance_used_percent=data.integer("percentage_used"),
        read_from=(read_from,),
    )
