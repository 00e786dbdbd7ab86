"""Converts smartctl's text (``-a``, ``-x``) to the shape of its JSON, so that one reader handles both."""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from headstack._native import InputError
from headstack.diagnosis.inspection.fields import Fields

START = re.compile(r"^smartctl (pre-)?\d+\.\d+\b.*|^=== START OF INFORMATION SECTION ===$")

ROW = re.compile(
    r"\s*(?P<id>\d{1,3})\s+(?P<name>\S+)\s+(?P<flags>0x[0-9a-f]{4}|[POSRCK+-]{6,7})\s+"
    r"(?P<value>\d{1,3}|---)\s+(?P<worst>\d{1,3}|---)\s+(?P<thresh>\d{1,3}|---)\s+(?P<rest>\S.*)"
)
SELF_TEST = re.compile(
    r"#\s*\d+\s+(?P<kind>\S.*?)(?:\s{2,}|\t)(?P<status>\S.*?)\s+(?P<left>\d\d)%\s+(?P<hours>\d+)\s+\S+"
)
SCSI_TEST = re.compile(r"#\s*\d+\s+(?P<kind>\S.*?)\s{2,}(?P<status>\S.*?)\s+(?:-|\d+)\s+(?P<hours>\d+|NOW)\s+\S+\s+\[")
NVME_TEST = re.compile(r"\s*\d+\s+(?P<kind>Short|Extended|Vendor\S*)\s{2,}(?P<status>\S.*?)\s{2,}(?P<hours>\d+)\s")

COUNTERS = ("read", "write", "verify")

INFORMATION = {
    "Device Model": "model_name",
    "Model Number": "model_name",
    "Model Family": "model_family",
    "Serial Number": "serial_number",
    "Serial number": "serial_number",
    "Firmware Version": "firmware_version",
    "Revision": "scsi_revision",
    "Compliance": "scsi_version",
    "Logical Unit id": "logical_unit_id",
    "ATA Version is": "ata_version.string",
    "NVMe Version": "nvme_version.string",
    "Form Factor": "form_factor.name",
    "Transport protocol": "scsi_transport_protocol.name",
    "Zoned Device": "zoned_device.capability.name",
}
"""Labels of text values, with their paths in the JSON."""

FIGURES = {
    "User Capacity": "user_capacity.bytes",
    "Total NVM Capacity": "nvme_total_capacity",
    "Namespace 1 Size/Capacity": "user_capacity.bytes",
    "Namespace 1 Size": "user_capacity.bytes",
    "Namespace 1 Formatted LBA Size": "logical_block_size",
    "Number of Namespaces": "nvme_number_of_namespaces",
    "Logical block size": "logical_block_size",
    "Physical block size": "physical_block_size",
    "Critical Warning": "nvme_smart_health_information_log.critical_warning",
    "Available Spare": "nvme_smart_health_information_log.available_spare",
    "Available Spare Threshold": "nvme_smart_health_information_log.available_spare_threshold",
    "Percentage Used": "nvme_smart_health_information_log.percentage_used",
    "Data Units Read": "nvme_smart_health_information_log.data_units_read",
    "Data Units Written": "nvme_smart_health_information_log.data_units_written",
    "Unsafe Shutdowns": "nvme_smart_health_information_log.unsafe_shutdowns",
    "Media and Data Integrity Errors": "nvme_smart_health_information_log.media_errors",
    "Error Information Log Entries": "nvme_smart_health_information_log.num_err_log_entries",
    "Warning Comp. Temperature Time": "nvme_smart_health_information_log.warning_temp_time",
    "Critical Comp. Temperature Time": "nvme_smart_health_information_log.critical_comp_time",
    "Power Cycles": "power_cycle_count",
    "Power On Hours": "power_on_time.hours",
    "Temperature": "temperature.current",
    "Current Drive Temperature": "temperature.current",
    "Drive Trip Temperature": "temperature.drive_trip",
    "Current Temperature": "temperature.current",
    "Elements in grown defect list": "scsi_grown_defect_list",
    "Non-medium error count": "scsi_non_medium_error_count",
    "Percentage used endurance indicator": "scsi_percentage_used_endurance_indicator",
    "Accumulated start-stop cycles": "scsi_start_stop_cycle_counter.accumulated_start_stop_cycles",
    "Accumulated load-unload cycles": "scsi_start_stop_cycle_counter.accumulated_load_unload_cycles",
    "ATA Error Count": "ata_smart_error_log.extended.count",
    "Device Error Count": "ata_smart_error_log.extended.count",
}
"""Labels of whole numbers in any unit, with their paths in the JSON."""

SWITCHES = {
    "Rd look-ahead is": "read_lookahead",
    "Read Cache is": "read_lookahead",
    "Write cache is": "write_cache",
    "Writeback Cache is": "write_cache",
    "AAM feature is": "ata_aam",
    "APM feature is": "ata_apm",
    "DSN feature is": "ata_dsn",
    "Wt Cache Reorder": "write_cache_reorder",
}

SUPPORTS = {
    "SCT Error Recovery Control supported.": "ata_sct_capabilities.error_recovery_control_supported",
    "SCT Feature Control supported.": "ata_sct_capabilities.feature_control_supported",
    "SCT Data Table supported.": "ata_sct_capabilities.data_table_supported",
    "Self-test supported.": "ata_smart_data.capabilities.self_tests_supported",
    "Conveyance Self-test supported.": "ata_smart_data.capabilities.conveyance_self_test_supported",
    "Selective Self-test supported.": "ata_smart_data.capabilities.selective_self_test_supported",
    "Error logging supported.": "ata_smart_data.capabilities.error_logging_supported",
    "General Purpose Logging supported.": "ata_smart_data.capabilities.gp_logging_supported",
}


def is_smartctl_text(text: str) -> bool:
    """Whether a text is output of smartctl."""
    return any(START.match(line.strip()) for line in text.splitlines())


def read_text(file: str, text: str) -> list[Fields]:
    """Returns the outputs in a text, one per device. Raises ``InputError`` with the line of an invalid row."""
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if START.match(line.strip())]
    # A banner and the section below it belong to one output.
    starts = [n for k, n in enumerate(starts) if "INFORMATION" not in lines[n] or k == 0 or n - starts[k - 1] > 4]
    ends = [*starts[1:], len(lines)]
    return [_Output(file).read(lines[start:end], start) for start, end in zip(starts, ends, strict=True)]


@dataclass
class _Output:
    file: str
    data: dict[str, object] = field(default_factory=dict)
    table: list[dict[str, object]] = field(default_factory=list)
    tests: list[dict[str, object]] = field(default_factory=list)
    nvme_tests: list[dict[str, object]] = field(default_factory=list)
    messages: list[dict[str, str]] = field(default_factory=list)
    number: int = 0

    def read(self, lines: list[str], before: int) -> Fields:
        in_table = False
        for number, line in enumerate(lines, before + 1):
            self.number = number
            text = " ".join(line.split())
            if text.startswith("ID# ATTRIBUTE_NAME"):
                in_table = True
            elif in_table and re.match(r"\s*\d", line):
                self._row(line)
            else:
                in_table = False
                self._line(line, text)
        self._finish()
        return Fields(self.file, self.data)

    def put(self, path: str, value: object) -> None:
        """Sets a value that is not set yet."""
        here = self.data
        *way, last = path.split(".")
        for step in way:
            inner = here.setdefault(step, {})
            assert isinstance(inner, dict), path
            here = inner
        here.setdefault(last, value)

    def _row(self, line: str) -> None:
        match = ROW.fullmatch(line.rstrip())
        if match is None:
            raise InputError(
                f"{self.file}: line {self.number}: {line.strip()[:40]!r} is not an attribute; "
                "allowed: ID NAME FLAG VALUE WORST THRESH ... RAW_VALUE"
            )
        flags, rest = match["flags"], match["rest"].split()
        brief = not flags.startswith("0x")
        failed, raw = (rest[0], rest[1:]) if brief else (rest[2] if len(rest) > 2 else "", rest[3:])
        if not raw:
            raise InputError(f"{self.file}: line {self.number}: attribute {match['id']} has no raw value")
        when = {"NOW": "now", "FAILING_NOW": "now", "Past": "past", "In_the_past": "past"}.get(failed, "")
        row: dict[str, object] = {
            "id": int(match["id"]),
            "name": match["name"],
            "when_failed": when,
            "flags": {"prefailure": flags.startswith("P") if brief else bool(int(flags, 16) & 1)},
            "raw": {"value": self._raw(raw), "string": " ".join(raw)},
        }
        for key in ("value", "worst", "thresh"):
            if match[key] != "---":
                row[key] = int(match[key])
        self.table.append(row)

    def _raw(self, words: list[str]) -> int:
        if len(words) == 3 and all(word.isdigit() and int(word) < 2**16 for word in words):
            # Three words of 16 bits, the highest first.
            return int(words[0]) << 32 | int(words[1]) << 16 | int(words[2])
        if match := re.match(r"0x([0-9a-f]{1,16})$", words[0]):
            return int(match[1], 16)
        if match := re.match(r"(\d{1,20})", words[0]):
            return int(match[1])
        raise InputError(f"{self.file}: line {self.number}: raw value {words[0][:30]!r}; allowed: a number")

    def _line(self, line: str, text: str) -> None:
        name, _, value = (part.strip() for part in text.partition(":"))
        for reader in (self._test, self._counter):
            if reader(line, text):
                return
        if text in SUPPORTS:
            self.put(SUPPORTS[text], True)
        elif name in INFORMATION and value:
            self.put(INFORMATION[name], value)
        elif name in FIGURES and (figure := _figure(value)) is not None:
            self.put(FIGURES[name], figure)
        elif name in SWITCHES:
            self._switch(SWITCHES[name], value)
        elif (special := SPECIAL.get(name)) is not None:
            special(self, value)
        elif re.match(r"(?i)(smartctl|/dev/\S+): ?.*(failed|unable|unknown|permission|no such)", text):
            self._message(text)
        elif match := re.match(r"Accumulated power on time, hours:minutes (\d+):", text):
            self.put("power_on_time.hours", int(match[1]))
        elif match := re.match(r"0x07 0x008 \d (\d+) \S+ Percentage Used Endurance Indicator", text):
            self.put("endurance_used.current_percent", int(match[1]))
        elif match := re.match(r"0x01 0x018 \d (\d+) \S+ Logical Sectors Written", text):
            row = {"name": "Logical Sectors Written", "value": int(match[1])}
            self.put("ata_device_statistics.pages", [{"table": [row]}])

    def _message(self, text: str) -> None:
        self.messages.append({"string": text})

    def _switch(self, path: str, value: str) -> None:
        word = value.split(",")[0].split(" ")[0].lower()
        if word in ("enabled", "disabled"):
            self.put(f"{path}.available", True)
            self.put(f"{path}.enabled", word == "enabled")
        elif word == "unavailable":
            self.put(f"{path}.available", False)

    def _test(self, line: str, text: str) -> bool:
        """Parses a row of a self-test log."""
        match = SELF_TEST.match(line.strip())
        if match is not None:
            status: dict[str, str | bool] = {"string": match["status"]}
            if not re.match(r"(?i)aborted|interrupted|self-test routine in progress", match["status"]):
                status["passed"] = match["status"].lower().startswith("completed without error")
            self.tests.append(
                {"type": {"string": match["kind"]}, "status": status, "lifetime_hours": int(match["hours"])}
            )
            return True
        if (match := SCSI_TEST.match(line.strip())) is not None:
            self._scsi_test(match)
            return True
        if (match := NVME_TEST.match(line)) is not None and re.match(r"(?i)completed|aborted|fatal", match["status"]):
            failed = re.search(r"(?i)failed|fatal", match["status"])
            result = 7 if failed else 0 if match["status"].lower().startswith("completed") else 1
            row = {
                "self_test_code": {"string": match["kind"]},
                "self_test_result": {"value": result, "string": match["status"]},
                "power_on_hours": int(match["hours"]),
            }
            self.nvme_tests.append(row)
            return True
        return False

    def _scsi_test(self, match: re.Match[str]) -> None:
        words = match["status"].lower()
        passed = words.startswith("completed") and "fail" not in words and "error" not in words
        undecided = words.startswith(("aborted", "interrupted", "self test in progress", "in progress"))
        row: dict[str, object] = {
            "code": {"string": match["kind"]},
            "result": {"value": 1 if undecided else 0 if passed else 7, "string": match["status"]},
        }
        if match["hours"] != "NOW":
            row["power_on_time"] = {"hours": int(match["hours"])}
        number = sum(key.startswith("scsi_self_test_") for key in self.data)
        self.put(f"scsi_self_test_{number}", row)

    def _counter(self, line: str, text: str) -> bool:
        """Parses a row of the SCSI error counter log."""
        name, _, value = text.partition(": ")
        figures = value.split()
        if name not in COUNTERS or len(figures) != 7 or not all(re.fullmatch(r"[\d.]+", word) for word in figures):
            return False
        if not (figures[3].isdigit() and figures[6].isdigit()):
            raise InputError(f"{self.file}: line {self.number}: {name}: error counts are whole numbers")
        row = {
            "total_errors_corrected": int(figures[3]),
            "gigabytes_processed": figures[5],
            "total_uncorrected_errors": int(figures[6]),
        }
        self.put(f"scsi_error_counter_log.{name}", row)
        return True

    def _finish(self) -> None:
        data = self.data
        if self.table:
            self.put("ata_smart_attributes.table", self.table)
        if self.messages:
            self.put("smartctl.messages", self.messages)
        if self.nvme_tests:
            self.put("nvme_self_test_log.table", self.nvme_tests)
        if self.tests:
            # -x prints the extended log, followed by the standard log if both exist.
            distinct = [test for n, test in enumerate(self.tests) if test not in self.tests[:n]]
            self.put("ata_smart_self_test_log.extended.table", distinct)
        vendor, product = data.pop("vendor", None), data.pop("product", None)
        if product:
            self.put("model_name", f"{vendor} {product}" if vendor else product)
        if "nvme_version" in data or "nvme_smart_health_information_log" in data:
            self.put("device.protocol", "NVMe")
        elif "scsi_version" in data or product:
            self.put("device.protocol", "SCSI")
        else:
            self.put("device.protocol", "ATA")


def _figure(value: str) -> int | None:
    """Returns the whole number at the start of a value, with any thousands separator."""
    if match := re.match(r"0x([0-9a-fA-F]{1,32})\b", value):
        return int(match[1], 16)
    match = re.match(r"\d{1,3}(?:[,.'’*\u00a0\u202f\ufffd ]\d{3})+(?!\d)|\d{1,39}", value)
    return int(re.sub(r"\D", "", match[0])) if match else None


def _sector_sizes(output: _Output, value: str) -> None:
    for size, kind in re.findall(r"(\d+) bytes (logical/physical|logical|physical)", value):
        for word in kind.split("/"):
            output.put(f"{word}_block_size", int(size))


def _rotation(output: _Output, value: str) -> None:
    if value.startswith("Solid State"):
        output.put("rotation_rate", 0)
    elif (rpm := _figure(value)) is not None:
        output.put("rotation_rate", rpm)


def _sata_version(output: _Output, value: str) -> None:
    output.put("sata_version.string", value.split(",")[0])
    if match := re.search(r"([\d.]+) Gb/s", value):
        output.put("interface_speed.max", _speed(match[1]))
    if match := re.search(r"current: ([\d.]+) Gb/s", value):
        output.put("interface_speed.current", _speed(match[1]))


def _speed(gbps: str) -> dict[str, int]:
    return {"units_per_second": round(float(gbps) * 10), "bits_per_unit": 10**8}


def _smart_support(output: _Output, value: str) -> None:
    match value.split(" ")[0].rstrip(","):
        case "Available":
            output.put("smart_support.available", True)
        case "Unavailable":
            output.put("smart_support.available", False)
        case "Enabled" | "Disabled" as word:
            output.put("smart_support.enabled", word == "Enabled")


def _security(output: _Output, value: str) -> None:
    if value.startswith(("Disabled", "ENABLED")):
        output.put("ata_security.available", True)
        output.put("ata_security.enabled", value.startswith("ENABLED"))
        output.put("ata_security.frozen", "NOT FROZEN" not in value and "frozen" in value.lower())


def _recovery(way: str) -> Callable[[_Output, str], None]:
    def put(output: _Output, value: str) -> None:
        output.put(f"ata_sct_erc.{way}.enabled", value != "Disabled")
        if (tenths := _figure(value)) is not None:
            output.put(f"ata_sct_erc.{way}.deciseconds", tenths)

    return put


def _level(key: str) -> Callable[[_Output, str], None]:
    def put(output: _Output, value: str) -> None:
        if (level := _figure(value)) is not None:
            output.put(f"{key}.enabled", True)
            output.put(f"{key}.level", level)

    return put


def _health(output: _Output, value: str) -> None:
    output.put("smart_status.passed", value.upper() in ("PASSED", "OK"))


def _local_time(output: _Output, value: str) -> None:
    """Parses smartctl's time as UTC, because names of time zones are ambiguous and hours do not matter in a trend."""
    words = value.split()
    try:
        taken = calendar.timegm(time.strptime(" ".join(words[:5]), "%a %b %d %H:%M:%S %Y"))
    except (ValueError, OverflowError):
        return
    output.put("local_time.time_t", max(taken, 0))


SPECIAL: dict[str, Callable[[_Output, str], None]] = {
    "Vendor": lambda output, value: output.put("vendor", value),
    "Product": lambda output, value: output.put("product", value),
    "Sector Size": _sector_sizes,
    "Sector Sizes": _sector_sizes,
    "Rotation Rate": _rotation,
    "SATA Version is": _sata_version,
    "SMART support is": _smart_support,
    "TRIM Command": lambda output, value: output.put("trim.supported", value.startswith("Available")),
    "ATA Security is": _security,
    "AAM level is": _level("ata_aam"),
    "APM level is": _level("ata_apm"),
    "SMART overall-health self-assessment test result": lambda o, value: _health(o, value.split(" ")[0].rstrip("!")),
    "SMART Health Status": _health,
    "Read": _recovery("read"),
    "Write": _recovery("write"),
    "Local Time is": _local_time,
    "LU WWN Device Id": lambda output, value: output.put("logical_unit_id", value.replace(" ", "")),
}
