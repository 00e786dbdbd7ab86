"""Readers of interfaces and of the rates of their links."""

from __future__ import annotations

import re

from headstack.catalogue.sheets import figures
from headstack.catalogue.sheets.performance import KeyValues, per_second, rate_to

LINES = {"1.5": 150, "3": 300, "6": 600, "12": 1200, "22.5": 2400, "24": 2400}
"""Payload in MB/s of a serial link by its rate in Gbit/s."""
NAMED = {"sata": {"1": 150, "2": 300, "3": 600}, "sas": {"1": 300, "2": 600, "3": 1200, "4": 2400}}
"""Payload in MB/s by the version of the standard."""
ROMAN = {"iii": "3", "ii": "2", "i": "1"}
LANES = ("1", "2", "4", "8", "16")


def interface(label: str, value: str) -> KeyValues:
    """Reads the kind of interface with its rate, or its generation and lanes."""
    text = value.lower().replace("®", "")
    if re.search(r"nvme|pci\s*-?\s*e|\bu\.[23]\b", f"{label} {text}"):
        lanes = next((lane for lane in re.findall(r"[x×]\s*(\d+)|(\d+)\s*lanes?", text)), None)
        count = next((part for part in lanes or () if part), None)
        express = re.search(r"(?:pci\s*-?\s*e(?:xpress)?|gen(?:eration)?)\D{0,12}?(\d)(?:\.\d)?", text)
        return {
            "interface.kind": "nvme",
            "interface.generation": int(express[1]) if express else None,
            "interface.lanes": int(count) if count in LANES else None,
        }
    for kind, pattern in (("sata", r"sata|serial ata"), ("sas", r"\bsas\b|\bsas-?\d|serial attached")):
        if re.search(pattern, text):
            return {"interface.kind": kind, "interface.rate": _line(text) or _version(kind, text)}
    if re.search(r"fib(re|er) channel|\bfc(-al)?\b", text):
        return {"interface.kind": "fc", "interface.rate": _fibre(text)}
    if re.search(r"\bscsi\b|ultra ?\d{3}", text):
        wide = re.search(r"ultra ?-?(\d{3})", text)
        return {"interface.kind": "scsi", "interface.rate": f"{wide[1]}MB/s" if wide else None}
    if re.search(r"\b(e?ide|p?ata)\b|ata[-/ ]?\d", text):
        mode = re.search(r"ata[-/ ]?(33|66|100|133)\b", text)
        return {"interface.kind": "ata", "interface.rate": f"{mode[1]}MB/s" if mode else None}
    return {}


def _line(text: str) -> str | None:
    """Returns the payload of a serial link, without the overhead of its line code."""
    rate = re.search(r"(\d+(?:\.\d+)?)\s*g(?:b|bits?|bit)?(?:/s|ps)?\b", text)
    megabytes = LINES.get(f"{float(rate[1]):g}") if rate else None
    return f"{megabytes}MB/s" if megabytes else None


def _version(kind: str, text: str) -> str | None:
    """Returns the payload of a link whose standard has a version, such as `SATA III` or `SAS-3`."""
    version_match = re.search(rf"{kind}[- ]?(?:rev(?:ision|\.)? ?)?(iii|ii|i|[1-4])(?:\.\d)?\b", text)
    version = ROMAN.get(version_match[1], version_match[1]) if version_match else ""
    megabytes = NAMED[kind].get(version)
    return f"{megabytes}MB/s" if megabytes else None


def _fibre(text: str) -> str | None:
    gigabits = re.search(r"(\d+)\s*g", text)
    return f"{100 * int(gigabits[1])}MB/s" if gigabits else None


def link(label: str, value: str) -> KeyValues:
    """Reads the rate of the link between drive and host."""
    in_gigabits = re.search(r"g(?:b|bits?)(?:/s|ps)", label)
    line = _line(
        f"{value.lower()} gb/s" if in_gigabits and re.fullmatch(figures.NUMBER, value.strip()) else value.lower()
    )
    if line:
        return {"interface.rate": line}
    if re.search(r"error", label):
        return {}
    rates = figures.rates(label, value)
    return (
        {"interface.rate": per_second(rates[0]) if rates else None}
        if rates
        else rate_to("interface.rate")(label, value)
    )
