"""Readers of what devices and the kernel report of a device: NVMe's SMART log, Amazon's log, dmesg."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from headstack._native import InputError
from headstack.diagnosis.judging.suspects.statements import Statement
from headstack.diagnosis.judging.verdict import Suspect

SMART_TEXT = re.compile(r"^Smart Log for NVME device:|^critical_warning\s*:|^Critical Warning\s*:", re.MULTILINE)
LINE = re.compile(r"^([A-Za-z][\w /()-]*?)\s*:\s*(-?[\d,.]+)\s*(%|C|°C|K)?(?:\s|$)", re.MULTILINE)
KELVIN = 273
HOT_C, WARM_C = 80.0, 70.0
"""Composite temperatures: drives report 70 to 85 C as their warning threshold (WCTEMP), many consumer drives 81 to 84,
and most slow down there; below 70 C hardly any does."""
THERMAL, SPARE, DEGRADED, READ_ONLY = 2, 1, 4, 8
"""Bits of the critical warning (NVMe base specification, SMART / health information log)."""
WARNED = ("warning_temp_time", "warning_temperature_time", "warning_comp_temperature_time", "critical_comp_time")
"""Names of the minutes above the warning temperature."""
AMZN = "ebs_volume_performance_exceeded_iops"
EXCEEDED = {
    "ebs_volume_performance_exceeded_iops": "the volume's IOPS",
    "ebs_volume_performance_exceeded_tp": "the volume's throughput",
    "ec2_instance_ebs_performance_exceeded_iops": "the instance's IOPS",
    "ec2_instance_ebs_performance_exceeded_tp": "the instance's throughput",
    "ec2_instance_performance_exceeded_iops": "the instance's IOPS",
    "ec2_instance_performance_exceeded_tp": "the instance's throughput",
}
"""Times over a limit in us since the volume was attached."""
OFTEN = 0.01
"""Share of the summed time of requests from which an exceeded limit matters."""
NVME_INSPECT = "headstack inspect, and iostat -x 5 while it is slow"


def smart_log(text: str, name: str) -> list[Statement]:
    """Reads ``nvme smart-log``, as text or JSON."""
    device = re.search(r"Smart Log for NVME device:\s*(\S+)", text)
    values = _smart_values(text)
    weights: dict[Suspect, float] = {}
    said = []
    celsius = _celsius(values)
    warning = int(values.get("critical_warning", 0))
    throttled = sum(v for k, v in values.items() if re.fullmatch(r"(thm_temp|thermal_management_t)[12]_trans_count", k))
    warned = sum(values.get(key, 0.0) for key in WARNED)
    if celsius is not None:
        said.append(f"{celsius:.0f} C")
        weights["limit"] = 3.5 if celsius >= HOT_C else 1.0 if celsius >= WARM_C else -1.0
    if warning & THERMAL:
        said.append("critical warning: temperature")
        weights["limit"] = max(weights.get("limit", 0.0), 4.0)
    if throttled or warned:
        said.append(
            f"thermal throttling {throttled:,.0f} times, {warned:,.0f} min above the warning temperature so far"
        )
        weights["limit"] = weights.get("limit", 0.0) + 1.5
    for bit, words, weight in ((SPARE, "spare blocks are low", 1.0), (DEGRADED, "reliability is degraded", 3.0),
                               (READ_ONLY, "the medium is read-only", 3.5)):  # fmt: skip
        if warning & bit:
            said.append(f"critical warning: {words}")
            weights["device"] = max(weights.get("device", 0.0), weight)
    if values.get("media_errors", 0) > 0:
        said.append(f"{values['media_errors']:,.0f} media errors")
        weights["device"] = max(weights.get("device", 0.0), 1.0)
    used = max(values.get("percentage_used", 0.0), values.get("percent_used", 0.0))
    if used >= 100:
        said.append(f"{used:.0f} % of its endurance used")
        weights["device"] = max(weights.get("device", 0.0), 1.0)
    hot = " (drives slow down from 70 to 85 C)" if celsius is not None and celsius >= WARM_C else ""
    evidence = (", ".join(said) or "no temperature") + hot
    return [Statement(device[1] if device else name, evidence, weights, False, "nvme smart-log", NVME_INSPECT)]


def _smart_values(text: str) -> dict[str, float]:
    """Returns the figures by name in small letters with underscores."""
    if text.lstrip().startswith("{"):
        with suppress(ValueError):
            values = json.loads(text)
            warning = values.get("critical_warning")
            if isinstance(warning, Mapping):
                values["critical_warning"] = warning.get("value", 0)
            return {key.lower().replace(" ", "_"): float(v) for key, v in values.items() if isinstance(v, int | float)}
    values = {}
    for key, figure, unit in LINE.findall(text):
        with suppress(ValueError):
            value = float(figure.replace(",", "").rstrip("."))
            word = re.sub(r"\W+", "_", key.strip().lower()).strip("_")
            values[word] = value + KELVIN if word == "temperature" and unit in ("C", "°C") else value
    if match := re.search(r"^[Cc]ritical.[Ww]arning\s*:\s*0x([0-9a-fA-F]+)", text, re.MULTILINE):
        values["critical_warning"] = int(match[1], 16)
    return values


def _celsius(values: Mapping[str, float]) -> float | None:
    """Returns the temperature. Logs have kelvin, and some programs have converted it."""
    value = values.get("temperature")
    if value is None or value <= 0:
        return None
    return value - KELVIN if value > KELVIN - 40 else value


def amazon(text: str, name: str) -> list[Statement]:
    """Reads ``nvme amzn stats -o json``: times over the limits of a volume and of its instance."""
    try:
        document: Any = json.loads(text)
    except ValueError as error:
        raise InputError(f"{name}: not valid JSON: {error}") from None
    flat = {key: float(v) for key, v in document.items() if isinstance(v, int | float)}
    spent = flat.get("total_read_time", 0.0) + flat.get("total_write_time", 0.0)
    over = {title: flat[key] for key, title in EXCEEDED.items() if flat.get(key, 0.0) > 0}
    needed = "the same log again after a minute: its sums begin when the volume was attached"
    if not over:
        return [Statement(name, "no limit was ever exceeded", {"limit": -4.0}, False, "nvme amzn stats", needed)]
    shown = ", ".join(f"{title} for {us / 1e6:,.1f} s" for title, us in over.items())
    share = max(over.values()) / spent if spent else 1.0
    weights: dict[Suspect, float] = {"limit": 4.0 if share >= OFTEN else 1.0}
    return [Statement(name, f"more was asked than {shown}", weights, False, "nvme amzn stats", needed)]


ERRORS: tuple[tuple[str, re.Pattern[str], float], ...] = (
    (
        "medium errors",
        re.compile(r"critical medium error|Medium Error|Unrecovered read error|UNC\b", re.IGNORECASE),
        3.5,
    ),
    (
        "I/O errors",
        re.compile(r"I/O error, dev (\w+)|Buffer I/O error on dev(?:ice)? (\w+)|blk_update_request:.*error"),
        3.0,
    ),
    ("time-outs", re.compile(r"nvme (\w+): I/O \d+.*timeout|\[(\w+)\].*timing out command|task abort: SUCCESS"), 2.5),
    (
        "resets",
        re.compile(r"hard resetting link|reset controller|controller is down|resetting (?:controller|device)"),
        2.5,
    ),
    ("failed commands", re.compile(r"ata[\d.]+: (?:exception Emask|failed command)"), 2.0),
    ("a link slower than 6 Gb/s", re.compile(r"SATA link up (?:1\.5|3\.0) Gbps|limiting SATA link speed"), 2.0),
    ("hung tasks", re.compile(r"task \S+ blocked for more than \d+ seconds"), 0.0),
    ("thermal throttling", re.compile(r"[Tt]hermal.*(?:throttl|critical)|[Cc]ooling.*throttl"), 0.0),
)
"""Messages of the kernel: title, pattern, log-likelihood ratio of the device."""
DMESG = re.compile("|".join(f"(?:{pattern.pattern})" for _, pattern, _ in ERRORS))
DEVICE = re.compile(r"\b(sd[a-z]+|nvme\d+(?:n\d+)?|vd[a-z]+|xvd[a-z]+|ata\d+)\b")


def dmesg(text: str, name: str) -> list[Statement]:
    """Reads messages of the kernel: errors, resets and time-outs by device."""
    counts: dict[str, Counter[str]] = {}
    for line in text.splitlines():
        for title, pattern, _ in ERRORS:
            if pattern.search(line):
                device = DEVICE.search(line)
                counts.setdefault(device[1] if device else name, Counter())[title] += 1
                break
    weight_of = {title: weight for title, _, weight in ERRORS}
    stated = []
    for device_name, seen in counts.items():
        shown = ", ".join(f"{title} ({count} times)" if count > 1 else title for title, count in seen.items())
        weight = max(weight_of[title] for title in seen)
        weights: dict[Suspect, float] = {"device": weight, "none": -1.0}
        if "thermal throttling" in seen:
            weights["limit"] = 2.5
        needed = f"headstack inspect /dev/{device_name}" if device else "headstack inspect"
        stated.append(Statement(device_name, f"the kernel reports {shown}", weights, False, "dmesg", needed))
    return stated or [Statement(name, "no error of a disk", {"device": -1.0}, False, "dmesg", NVME_INSPECT)]
