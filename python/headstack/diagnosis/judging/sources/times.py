"""``Times``: parser of the times in monitoring files, as seconds since 1970."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headstack._native import InputError

EPOCH = re.compile(r"\d{9,10}(\.\d+)?")
ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d([.,]\d+)?\s*(Z|UTC|[+-]\d\d:?\d\d)?")
DATE = re.compile(r"\w{3} (\w{3} +\d+ \d\d:\d\d:\d\d)(?: ([AP]M))?(?: (\w+|[+-]\d\d))? (\d{4})")
"""The default format of date(1)."""
LOCAL = (
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%y %I:%M:%S %p",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
    "%Y/%m/%d %H:%M:%S",
)
"""Formats of sysstat in various locales; the first that fits all times so far is used."""
IN_NAMES = re.compile(r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)[-_T ]?(\d\d)[-:.]?(\d\d)(?:[-:.]?(\d\d))?(?!\d)")
BEFORE = re.compile(r"^(zzz )?[\s*#=]*(timestamp|time|date|ts)?\s*[:=]?\s*", re.IGNORECASE)
"""Text before a time on a line of its own."""
ASSUMED = "local times without a zone are taken as UTC; set another zone with --timezone"
FAR_S = 7200.0
"""Maximum step back of local times in seconds: an hour in autumn, two hours nowhere with data centres."""


def zone_of(name: str) -> tzinfo:
    """Returns a time zone by its name. Raises ``InputError``."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"--timezone: {name!r} is unknown; allowed: names such as Europe/Berlin, UTC") from None


class Times:
    """Parses the times of a file, which are in order: ambiguous local times are resolved by the previous one."""

    def __init__(self, zone: tzinfo | None) -> None:
        self.zone = zone
        self.is_assumed = False
        """Whether local times of an unknown zone were taken for UTC."""
        self._last_s: float | None = None
        self._formats: tuple[str, ...] = LOCAL

    def of_line(self, line: str) -> float | None:
        """Returns the time on a line of its own; ``None`` for other lines."""
        return self.read(line[BEFORE.match(line).end() :].rstrip(" *\r\n"))  # type: ignore[union-attr]

    def of_name(self, path: Path) -> float | None:
        """Returns the time in a file's name: seconds since 1970, or a date with hours and minutes."""
        if match := re.search(r"(?<!\d)\d{10}(?!\d)", path.name):
            return float(match[0])
        if match := IN_NAMES.search(path.name):
            year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
            return self._local(datetime(year, month, day, hour, minute, second))
        return None

    def read(self, text: str) -> float | None:
        """Parses a time in any known format."""
        if EPOCH.fullmatch(text):
            return float(text)
        if match := ISO.fullmatch(text):
            return self._iso(text, match[2])
        if match := DATE.fullmatch(text):
            hours = "%I:%M:%S %p" if match[2] else "%H:%M:%S"
            naive = datetime.strptime(f"{match[1]} {match[2] or ''} {match[4]}".replace("  ", " "), f"%b %d {hours} %Y")
            is_utc = match[3] in ("UTC", "GMT", "Z", "+00")
            return naive.replace(tzinfo=UTC).timestamp() if is_utc else self._local(naive)
        for number, form in enumerate(self._formats):
            try:
                naive = datetime.strptime(text, form)
            except ValueError:
                continue
            # Day and month are distinguished by the first day after the 12th.
            self._formats = self._formats[number:]
            return self._local(naive)
        return None

    def note_zone(self, remarks: Counter[str]) -> None:
        """Adds a remark on the assumed time zone, if there were any times."""
        if self.is_assumed:
            remarks[ASSUMED] = 1

    def _iso(self, text: str, zone: str | None) -> float:
        if zone is None:
            return self._local(datetime.fromisoformat(text.replace(",", ".")))
        plain = text.removesuffix(zone).strip().replace(",", ".")
        return datetime.fromisoformat(plain + ("+00:00" if zone in ("Z", "UTC") else zone)).timestamp()

    def _local(self, naive: datetime) -> float:
        if self.zone is None:
            self.is_assumed = True
        zone = self.zone or UTC
        time_s = naive.replace(tzinfo=zone).timestamp()
        if self._last_s is not None and -FAR_S < time_s - self._last_s < 0:
            # The hour that occurs twice in autumn.
            time_s = max(time_s, naive.replace(tzinfo=zone, fold=1).timestamp())
        self._last_s = time_s
        return time_s
