"""Limits that the user states for disks: ``--limits gp3:3000/s``, ``--limits sdb=500/s,100MB/s``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headstack._native import InputError

UNITS = {"": 1.0, "k": 1e3, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024.0, "MiB": 1048576.0, "GiB": 1073741824.0}
RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(k?)/s")
BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG]B|[KMG]iB)/s")
ALLOWED = "allowed: [DISK=][NAME:]RATE/s and BYTES/s, such as gp3:3000/s,125MiB/s or sdb=500/s"


@dataclass(frozen=True)
class Limit:
    """The maximum rate of a volume, an instance or a control group."""

    name: str
    """Its origin, such as ``gp3``; empty if unknown."""
    requests_per_s: float = math.inf
    bytes_per_s: float = math.inf

    def __str__(self) -> str:
        rates = [f"{self.requests_per_s:,.0f} IOPS"] if math.isfinite(self.requests_per_s) else []
        rates += [f"{self.bytes_per_s / 1e6:,.0f} MB/s"] if math.isfinite(self.bytes_per_s) else []
        return " and ".join(rates)


def limits_of(texts: Iterable[str]) -> dict[str, Limit]:
    """Parses the values of ``--limits``; returns limits by disk, with the key ``""`` for all other disks. Raises
    ``InputError``.

    >>> from headstack.diagnosis.judging.suspects.limits import limits_of
    >>> limits = limits_of(["gp3:3000/s,125MiB/s", "sdb=500/s"])
    >>> str(limits[""]), str(limits["sdb"])
    ('3,000 IOPS and 131 MB/s', '500 IOPS')
    """
    limits: dict[str, Limit] = {}
    for text in texts:
        disk, equals, limit = text.rpartition("=")
        if disk in limits:
            which = f"of {disk}" if equals else "of all disks"
            raise InputError(f"{text}: the limit {which} is given twice; remove one", key="--limits")
        limits[disk] = _limit(text, limit)
    return limits


def _limit(text: str, limit: str) -> Limit:
    name, colon, rates = limit.rpartition(":")
    rates_by_key: dict[str, float] = {}
    for rate in rates.split(","):
        requests, amount = RATE.fullmatch(rate.strip()), BYTES.fullmatch(rate.strip())
        match = requests or amount
        if match is None or (colon and not name):
            raise InputError(f"{text}: {rate.strip() or 'nothing'} is not a rate; {ALLOWED}", key="--limits")
        key = "requests_per_s" if requests else "bytes_per_s"
        if key in rates_by_key:
            raise InputError(f"{text}: two rates of one kind; {ALLOWED}", key="--limits")
        rates_by_key[key] = float(match[1]) * UNITS[match[2]]
        if rates_by_key[key] <= 0:
            raise InputError(f"{text}: a limit must be above 0", key="--limits")
    return Limit(name, **rates_by_key)


def limit_for(disk: str, limits: Mapping[str, Limit]) -> Limit | None:
    """Returns the stated limit of a disk."""
    return limits.get(disk, limits.get(""))
