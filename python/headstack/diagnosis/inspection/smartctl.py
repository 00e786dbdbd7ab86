"""Reader of smartctl's JSON (``-j -a`` or ``-j -x``) for ATA, NVMe and SCSI devices."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from headstack._native import InputError
from headstack.diagnosis.inspection.fields import Fields
from headstack.diagnosis.inspection.model import (
    Attribute,
    Capability,
    ErrorCounter,
    Identity,
    Inspection,
    NvmeHealth,
    SasHealth,
    SelfTest,
)
from headstack.diagnosis.inspection.raw import REMAINING_LIFE

SOURCE = "smartctl"

SELF_TESTS = ("ata_smart_self_test_log.extended", "ata_smart_self_test_log.standard", "nvme_self_test_log")

SWITCHES = {
    "write_cache": "Write cache",
    "read_lookahead": "Rd look-ahead",
    "ata_apm": "APM feature",
    "ata_aam": "AAM feature",
    "ata_dsn": "DSN feature",
    "ata_security": "ATA Security",
    "write_cache_reorder": "Wt Cache Reorder",
}
"""JSON objects with the key ``enabled``, and smartctl's names for them."""

ATA_CAPABILITIES = {
    "ata_smart_data.capabilities.self_tests_supported": ("smart_self_test", "Self-test"),
    "ata_smart_data.capabilities.conveyance_self_test_supported": ("smart_conveyance_test", "Conveyance Self-test"),
    "ata_smart_data.capabilities.selective_self_test_supported": ("smart_selective_test", "Selective Self-test"),
    "ata_smart_data.capabilities.error_logging_supported": ("smart_error_log", "Error logging"),
    "ata_smart_data.capabilities.gp_logging_supported": ("general_purpose_logging", "General Purpose Logging"),
    "ata_sct_capabilities.error_recovery_control_supported": ("sct_erc", "SCT Error Recovery Control"),
    "ata_sct_capabilities.feature_control_supported": ("sct_feature_control", "SCT Feature Control"),
    "ata_sct_capabilities.data_table_supported": ("sct_data_tables", "SCT Data Table"),
    "trim.supported": ("trim", "TRIM Command"),
    "trim.deterministic": ("trim_deterministic", "TRIM deterministic"),
    "trim.zeroed": ("trim_zeroes", "TRIM zeroed"),
}

NVME_LOG = {
    "critical_warning": "critical_warning",
    "available_spare_percent": "available_spare",
    "available_spare_threshold_percent": "available_spare_threshold",
    "percentage_used": "percentage_used",
    "data_units_read": "data_units_read",
    "data_units_written": "data_units_written",
    "unsafe_shutdowns": "unsafe_shutdowns",
    "media_errors": "media_errors",
    "error_log_entries": "num_err_log_entries",
    "warning_temperature_minutes": "warning_temp_time",
    "critical_temperature_minutes": "critical_comp_time",
}

NVME_UNIT_BYTES = 512_000
"""Size of a data unit in the health log, in bytes: 1,000 blocks of 512 bytes, for any block size."""

SCSI_CYCLES = "scsi_start_stop_cycle_counter"

WRITTEN = {
    "Total_LBAs_Written": None,
    "Host_Writes_32MiB": 32 << 20,
    "Host_Writes_GiB": 1 << 30,
    "Lifetime_Writes_GiB": 1 << 30,
    "Total_Writes_GiB": 1 << 30,
    "Host_Writes_MiB": 1 << 20,
}
"""Attributes that count host writes, with their units in bytes; ``None`` for logical blocks."""


def read_smartctl(data: Fields) -> Inspection:
    """Returns the inspection in smartctl's output. Raises ``InputError`` with the invalid field, or with smartctl's
    message.
    """
    messages = _messages(data)
    if not _model(data) and not data.text("serial_number") and "ata_smart_attributes" not in data:
        reason = "; ".join(messages) or "the output names no device"
        raise InputError(f"{data.file}: smartctl read nothing: {reason}{bridge_hint(reason)}")
    attributes = _attributes(data)
    notes = [f"smartctl: {message}{bridge_hint(message)}" for message in messages]
    nvme, sas = _nvme(data), _sas(data, notes)
    power_on_hours = _power_on_hours(data, attributes)
    identity = _identity(data)
    block_bytes = identity.logical_block_bytes or 512
    return Inspection(
        name=data.text("device.name") or data.file,
        identity=identity,
        capabilities=_capabilities(data),
        attributes=attributes,
        nvme=nvme,
        sas=sas,
        self_tests=_unwrapped(_self_tests(data), data, power_on_hours, notes),
        passed=data.flag("smart_status.passed"),
        power_on_hours=power_on_hours,
        power_cycles=_count(data, "power_cycle_count", attributes, 12),
        start_stop_cycles=_count(data, f"{SCSI_CYCLES}.accumulated_start_stop_cycles", attributes, 4),
        load_cycles=_count(data, f"{SCSI_CYCLES}.accumulated_load_unload_cycles", attributes, 193),
        temperature_celsius=_temperature(data, attributes),
        written_bytes=_written_bytes(data, attributes, block_bytes),
        endurance_used_percent=_endurance_used(data, attributes, identity),
        logged_errors=_logged_errors(data),
        taken_unix_s=data.integer("local_time.time_t"),
        listings=(),
        read_from=(f"{SOURCE}: {data.file}",),
        notes=tuple(notes),
    )


UNKNOWN_BRIDGE = re.compile(r"(?i)unknown usb bridge|specify device type with the -d option")

BRIDGE_TYPES = "sat for a SATA drive, sntjmicron, sntasmedia or sntrealtek for an NVMe drive"
"""Types for ``smartctl -d`` of drives behind USB bridges."""


def bridge_hint(message: str) -> str:
    """Returns a suggestion for smartctl's message on an unknown USB bridge."""
    return f"; try --smartctl-type: {BRIDGE_TYPES}" if UNKNOWN_BRIDGE.search(message) else ""


def _model(data: Fields) -> str | None:
    """Returns the model; from smartctl 7.3 on, SCSI drives have it under another key."""
    stated = data.text("model_name") or data.text("scsi_model_name")
    parts = [data.text(f"scsi_{key}") or data.text(key) for key in ("vendor", "product")]
    return stated or " ".join(part for part in parts if part) or None


def _messages(data: Fields) -> list[str]:
    """Returns smartctl's warnings and errors."""
    texts = (message.text("string") for message in data.object("smartctl").objects("messages"))
    return [text for text in texts if text]


def _identity(data: Fields) -> Identity:
    speed = data.object("interface_speed")
    protocol = data.text("device.protocol")
    version = data.text("nvme_version.string")
    interfaces = {
        "NVMe": f"NVMe {version}" if version else None,
        "ATA": data.text("sata_version.string") or data.text("pata_version.string"),
    }
    namespace = next(iter(data.objects("nvme_namespaces")), Fields(data.file, {}))
    wwn = data.object("wwn")
    naa, oui, unique = (wwn.integer(key) for key in ("naa", "oui", "id"))
    has_wwn = naa is not None and oui is not None and unique is not None
    return Identity(
        model=_model(data),
        family=data.text("model_family"),
        serial=data.text("serial_number"),
        firmware=data.text("firmware_version") or data.text("scsi_revision") or data.text("revision"),
        wwn=f"{naa:x}{oui:06x}{unique:09x}"
        if has_wwn
        else (data.text("logical_unit_id") or "").removeprefix("0x") or None,
        capacity_bytes=data.integer("user_capacity.bytes") or data.integer("nvme_total_capacity"),
        rpm=0 if protocol == "NVMe" else data.integer("rotation_rate"),
        form_factor=data.text("form_factor.name"),
        protocol=protocol,
        interface=interfaces.get(protocol or "") or data.text("scsi_transport_protocol.name") or protocol,
        interface_max_gbps=_gbps(speed.object("max")),
        interface_now_gbps=_gbps(speed.object("current")),
        logical_block_bytes=data.integer("logical_block_size") or namespace.integer("formatted_lba_size"),
        physical_block_bytes=data.integer("physical_block_size"),
    )


def _gbps(speed: Fields) -> float | None:
    units, bits = speed.integer("units_per_second"), speed.integer("bits_per_unit")
    return None if units is None or bits is None else units * bits / 1e9


def _capabilities(data: Fields) -> dict[str, Capability]:
    capabilities: dict[str, Capability] = {}

    def put(key: str, name: str, supported: bool | None, enabled: bool | None = None, value: Any = None) -> None:
        if (supported, enabled, value) != (None, None, None):
            capabilities[key] = Capability(name, supported, enabled, value, SOURCE)

    # smartctl 7.0 to 7.2 have a single Boolean.
    if isinstance(data.data.get("smart_support"), bool):
        put("smart", "SMART support", data.flag("smart_support"), data.flag("smart_support"))
    else:
        put("smart", "SMART support", data.flag("smart_support.available"), data.flag("smart_support.enabled"))
    for field, name in SWITCHES.items():
        switch = data.object(field)
        enabled, key = switch.flag("enabled"), field.removeprefix("ata_")
        put(key, name, switch.flag("available") if enabled is None else True, enabled)
        for level in ("level", "recommended_level"):
            put(f"{key}_{level}", f"{name} {level}".replace("_", " "), None, None, switch.integer(level))
    security = data.object("ata_security")
    put("security_frozen", "Security frozen", None, security.flag("frozen"))
    for path, (key, name) in ATA_CAPABILITIES.items():
        put(key, name, data.flag(path))
    for way in ("read", "write"):
        control = data.object("ata_sct_erc").object(way)
        tenths = control.integer("deciseconds")
        seconds = None if not control.flag("enabled") or tenths is None else tenths / 10
        put(f"sct_erc_{way}_seconds", f"SCT ERC {way}", None, control.flag("enabled"), seconds)
    for field, key in (("ata_version", "ata_revision"), ("scsi_version", "scsi_version")):
        value = data.text(f"{field}.string") if field == "ata_version" else data.text(field)
        put(key, field.replace("_", " "), None, None, value)
    minutes = data.object("ata_smart_data").object("self_test").object("polling_minutes")
    for kind in ("short", "extended", "conveyance"):
        put(f"{kind}_test_minutes", f"{kind.capitalize()} self-test", None, None, minutes.integer(kind))
    put("namespaces", "Number of namespaces", None, None, data.integer("nvme_number_of_namespaces"))
    zoned = data.text("zoned_device.capability.name") if isinstance(data.data.get("zoned_device"), dict) else None
    put("zoned", "Zoned device", None, None, zoned)
    provisioned = data.object("scsi_lb_provisioning")
    put("trim", "Logical block provisioning", provisioned.flag("unmap.supported"))
    return capabilities


def _attributes(data: Fields) -> tuple[Attribute, ...]:
    rows = data.object("ata_smart_attributes").objects("table")
    return tuple(_attribute(row) for row in rows)


def _attribute(row: Fields) -> Attribute:
    number, raw = row.integer("id"), row.integer("raw.value")
    if number is None or not 1 <= number <= 255:
        raise row.wrong("id", number, "an attribute number, 1 to 255")
    if raw is None or raw >= 2**64:
        raise row.wrong("raw.value", raw, "the raw value, below 2^64")
    failed = row.text("when_failed") or ""
    return Attribute(
        id=number,
        name=row.text("name") or "Unknown_Attribute",
        value=row.integer("value"),
        worst=row.integer("worst"),
        threshold=row.integer("thresh"),
        raw=raw,
        raw_text=row.text("raw.string") or str(raw),
        prefailure=row.flag("flags.prefailure") or False,
        when_failed={"now": "now", "FAILING_NOW": "now", "past": "past", "In_the_past": "past"}.get(failed, ""),
    )


def _nvme(data: Fields) -> NvmeHealth | None:
    log = data.object("nvme_smart_health_information_log")
    if not log.data:
        return None
    return NvmeHealth(**{name: log.integer(key) for name, key in NVME_LOG.items()})


DEFECT_BYTES = 8
"""Size in bytes of an entry in the grown defect list that smartctl reads (SBC-3, long formats)."""


def _grown_defects(data: Fields, notes: list[str]) -> int | None:
    """Returns the number of blocks in the grown defect list; smartctl 7.0 prints the number of bytes instead."""
    grown = data.integer("scsi_grown_defect_list")
    if not grown or data.object("smartctl").data.get("version") != [7, 0]:
        return grown
    if grown % DEFECT_BYTES:
        notes.append(
            f"smartctl 7.0 reports the grown defect list in bytes: {grown:,} bytes are not a whole number of blocks"
        )
        return None
    blocks = grown // DEFECT_BYTES
    notes.append(f"smartctl 7.0 reports the grown defect list in bytes: {grown:,} bytes are {blocks:,} blocks")
    return blocks


def _sas(data: Fields, notes: list[str]) -> SasHealth | None:
    grown, log = _grown_defects(data, notes), data.object("scsi_error_counter_log")
    if grown is None and not log.data:
        return None
    return SasHealth(
        grown_defects=grown,
        read=_counter(log, "read"),
        write=_counter(log, "write"),
        verify=_counter(log, "verify"),
        non_medium_errors=data.integer("scsi_non_medium_error_count"),
        trip_celsius=data.celsius("temperature.drive_trip"),
    )


def _counter(log: Fields, way: str) -> ErrorCounter | None:
    row = log.object(way)
    if not row.data:
        return None
    gigabytes = row.text("gigabytes_processed")
    if gigabytes is not None and not re.fullmatch(r"[0-9]{1,20}(\.[0-9]{1,9})?", gigabytes):
        raise row.wrong("gigabytes_processed", gigabytes, "a number of 10^9 bytes")
    return ErrorCounter(
        corrected=row.integer("total_errors_corrected"),
        uncorrected=row.integer("total_uncorrected_errors"),
        processed_bytes=None if gigabytes is None else round(float(gigabytes) * 1e9),
    )


def _self_tests(data: Fields) -> tuple[SelfTest, ...] | None:
    for path in SELF_TESTS:
        *way, last = path.split(".")
        holder = data
        for step in way:
            holder = holder.object(step)
        log = holder.object(last)
        if log.data:
            return tuple(_nvme_test(row) if "nvme" in path else _ata_test(row) for row in log.objects("table"))
    numbered = [data.object(f"scsi_self_test_{number}") for number in range(20)]
    tests = tuple(_scsi_test(row) for row in numbered if row.data)
    return tests or None


HOURS_16_BITS = 1 << 16
"""Limit of the hours in self-test logs, which have two bytes: ATA wraps to 0, SCSI stays at 65,535."""


def _unwrapped(
    tests: tuple[SelfTest, ...] | None, data: Fields, power_on_hours: int | None, notes: list[str]
) -> tuple[SelfTest, ...] | None:
    """Returns self-tests, newest first. The time of each is the latest that its two bytes and the following test
    allow."""
    if not tests or power_on_hours is None or power_on_hours < HOURS_16_BITS or "nvme_self_test_log" in data:
        return tests
    is_ata = "ata_smart_self_test_log" in data
    unwrapped, latest = [], power_on_hours
    for test in tests:
        hours = test.hours
        if hours is not None and is_ata:
            hours += (latest - hours) // HOURS_16_BITS * HOURS_16_BITS if hours <= latest else 0
            latest = min(latest, hours)
        elif hours == HOURS_16_BITS - 1:
            hours = None
        unwrapped.append(replace(test, hours=hours))
    if tuple(unwrapped) != tests:
        limit = "wrap at 65,536: the latest possible time is shown" if is_ata else "end at 65,535"
        notes.append(f"hours of self-tests {limit}")
    return tuple(unwrapped)


def _ata_test(row: Fields) -> SelfTest:
    status = row.text("status.string") or "unknown"
    passed = row.flag("status.passed")
    if re.match(r"(?i)aborted|interrupted|self-test routine in progress", status):
        passed = None
    return SelfTest(row.text("type.string") or "unknown", status, passed, row.integer("lifetime_hours"))


def _nvme_test(row: Fields) -> SelfTest:
    result = row.integer("self_test_result.value")
    # NVMe 1.3, "Self-test Result": 0 completed; 5 fatal or unknown error; 6 and 7 completed with a failed segment.
    passed = {0: True, 5: False, 6: False, 7: False}.get(-1 if result is None else result)
    status = row.text("self_test_result.string") or "unknown"
    return SelfTest(row.text("self_test_code.string") or "unknown", status, passed, row.integer("power_on_hours"))


def _scsi_test(row: Fields) -> SelfTest:
    result = row.integer("result.value")
    # SPC-5, self-test results field: 0 passed; 3 to 7 an error or a failed segment; 1, 2 aborted; 15 under way.
    passed = True if result == 0 else False if result is not None and 3 <= result <= 7 else None
    status = row.text("result.string") or "unknown"
    return SelfTest(row.text("code.string") or "unknown", status, passed, row.integer("power_on_time.hours"))


def _named(attributes: tuple[Attribute, ...], number: int) -> Attribute | None:
    return next((attribute for attribute in attributes if attribute.id == number), None)


def _power_on_hours(data: Fields, attributes: tuple[Attribute, ...]) -> int | None:
    stated = data.integer("power_on_time.hours")
    if stated is not None:
        return stated
    hours = _named(attributes, 9)
    if hours is None:
        return None
    if re.search(r"(?i)minutes|seconds", hours.name) and (match := re.match(r"(\d+)h", hours.raw_text)):
        return int(match[1])
    # Some drives pack minutes into the bits above the hours; no drive has run for 2^32 hours.
    return hours.raw & 0xFFFFFFFF if hours.raw < 2**56 else None


def _count(data: Fields, path: str, attributes: tuple[Attribute, ...], number: int) -> int | None:
    """Returns a count as reported by smartctl, otherwise from the attribute, whose upper words may contain other
    values."""
    stated, attribute = data.integer(path), _named(attributes, number)
    return stated if stated is not None or attribute is None else attribute.raw & 0xFFFFFFFF


def _temperature(data: Fields, attributes: tuple[Attribute, ...]) -> int | None:
    stated = data.celsius("temperature.current")
    if stated is None:
        # For SAS drives from smartctl 7.3 on: the first sensor of the environmental reporting page.
        stated = data.celsius("scsi_environmental_reports.temperature_1.current")
    sensor = _named(attributes, 194) or _named(attributes, 190)
    if stated is not None or sensor is None or "temp" not in sensor.name.lower():
        return stated
    return sensor.raw & 0xFF


def _statistic(data: Fields, name: str) -> int | None:
    """Returns a value of the ATA device statistics log."""
    for page in data.object("ata_device_statistics").objects("pages"):
        for row in page.objects("table"):
            if row.text("name") == name and row.flag("flags.valid") is not False:
                return row.integer("value")
    return None


def _written_bytes(data: Fields, attributes: tuple[Attribute, ...], block_bytes: int) -> int | None:
    units = data.integer("nvme_smart_health_information_log.data_units_written")
    if units is not None:
        return units * NVME_UNIT_BYTES
    counter = _counter(data.object("scsi_error_counter_log"), "write")
    if counter is not None and counter.processed_bytes is not None:
        return counter.processed_bytes
    sectors = _statistic(data, "Logical Sectors Written")
    if sectors is not None:
        return sectors * block_bytes
    for attribute in attributes:
        if attribute.name in WRITTEN:
            return attribute.raw * (WRITTEN[attribute.name] or block_bytes)
    return None


def _endurance_used(data: Fields, attributes: tuple[Attribute, ...], identity: Identity) -> int | None:
    for path in (
        "nvme_smart_health_information_log.percentage_used",
        "scsi_percentage_used_endurance_indicator",
        "endurance_used.current_percent",
    ):
        if (stated := data.integer(path)) is not None:
            return stated
    stated = _statistic(data, "Percentage Used Endurance Indicator")
    if stated is not None or identity.rpm:
        return stated
    for attribute in attributes:
        if REMAINING_LIFE.fullmatch(attribute.name) and attribute.value is not None and attribute.value <= 100:
            return 100 if attribute.value <= 1 else 100 - attribute.value
    return None


def _logged_errors(data: Fields) -> int | None:
    log = data.object("ata_smart_error_log")
    counts = (log.object(kind).integer("count") for kind in ("extended", "summary"))
    return next((count for count in counts if count is not None), None)
