"""``Maintenance``: windows whose intervals are left out, such as nightly backups and scrubs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

import numpy as np
import polars as pl

from headstack._native import InputError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
NAMES = {day: at for at, day in enumerate(DAYS)} | {
    name: at for at, name in enumerate(("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"))
}
RECURRING = re.compile(r"(?:(?P<days>[a-z,\-]+) )?(?P<begin>\d\d:\d\d)-(?P<end>\d\d:\d\d)", re.IGNORECASE)
CLOCK = re.compile(r"\d\d:\d\d(:\d\d)?")
ALLOWED = "allowed: 2026-11-29T02:00/04:00, daily 02:00-04:00, sun 01:00-05:00, mon-fri 22:00-02:00"
YEARS_S = 20 * 365 * 86_400.0
"""Times below this one, 1990, are counted from 1970 because the input has none."""


@dataclass(frozen=True)
class Weekly:
    """A window on days of the week, by the local clock."""

    days: frozenset[int]
    """Days of its beginning, from Monday as 0."""
    begin_min: int
    """Minutes since midnight."""
    end_min: int
    """Minutes since the same midnight; more than a day for a window that ends on the next day."""

    def between(self, from_s: float, to_s: float, zone: tzinfo) -> Iterator[tuple[float, float]]:
        """Yields the beginnings and ends that may overlap a range of time, in seconds since 1970."""
        day = datetime.fromtimestamp(from_s, zone).date() - timedelta(days=2)
        last = datetime.fromtimestamp(to_s, zone).date()
        while day <= last:
            if day.weekday() in self.days:
                yield _at(day, self.begin_min, zone, 0), _at(day, self.end_min, zone, 1)
            day += timedelta(days=1)


@dataclass(frozen=True)
class Once:
    """A window with a date, in seconds since 1970."""

    begin_s: float
    end_s: float

    def between(self, from_s: float, to_s: float, zone: tzinfo) -> Iterator[tuple[float, float]]:
        """Yields itself."""
        yield self.begin_s, self.end_s


@dataclass(frozen=True)
class Maintenance:
    """Windows, and the time zone of their clock."""

    texts: tuple[str, ...] = ()
    windows: tuple[Weekly | Once, ...] = ()
    zone: tzinfo = UTC

    @staticmethod
    def of(texts: Iterable[str], zone: tzinfo | None) -> Maintenance:
        """Parses windows, whose times without an offset are of a zone, by default UTC. Raises ``InputError``.

        >>> from headstack.diagnosis.judging.maintenance import Maintenance
        >>> Maintenance.of(["2026-11-29T02:00/04:00", "sat,sun 22:00-02:00"], None).windows[1].end_min // 60
        26
        """
        written, own = tuple(texts), zone or UTC
        return Maintenance(written, tuple(_window(text.strip(), own) for text in written), own)

    def is_inside(self, start_s: pl.Series, length_s: pl.Series) -> pl.Series:
        """Returns whether intervals overlap a window. Raises ``InputError`` for data without times."""
        if not len(start_s) or not self.windows:
            return pl.repeat(False, len(start_s), dtype=pl.Boolean, eager=True)
        starts = start_s.to_numpy()
        ends = starts + length_s.to_numpy()
        if starts.min() < YEARS_S:
            raise InputError("the input has no times, which windows need", key="--maintenance")
        spans = _joined(
            [span for window in self.windows for span in window.between(starts.min(), ends.max(), self.zone)]
        )
        if not spans:
            return pl.repeat(False, len(start_s), dtype=pl.Boolean, eager=True)
        begins, closes = np.array(spans).T
        # The first window that ends after the start of an interval; a millisecond, because times are sums of floats.
        at = np.searchsorted(closes, starts + 1e-3, side="right")
        after = np.append(begins, np.inf)[at]
        return pl.Series(after < ends - 1e-3)

    def sentence(self, left_out: int) -> str:
        """Returns how many intervals the windows left out."""
        count = f"{left_out:,} interval{'s' * (left_out != 1)}" if left_out else "no interval"
        verb = "is" if left_out <= 1 else "are"
        return f"{count} {verb} left out as maintenance: {'; '.join(self.texts)} ({self.zone})"


def _at(day: date, minutes: int, zone: tzinfo, fold: int) -> float:
    """Returns a local time of a day, in seconds since 1970. In the hour that occurs twice in autumn, a window begins
    with the first (fold 0) and ends with the second."""
    later = day + timedelta(days=minutes // (24 * 60))
    clock = time(minutes // 60 % 24, minutes % 60)
    return datetime.combine(later, clock, zone).replace(fold=fold).timestamp()


def _joined(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Returns spans in order, with overlapping ones joined."""
    joined: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((begin, end))
    return joined


def _window(text: str, zone: tzinfo) -> Weekly | Once:
    if match := RECURRING.fullmatch(text):
        begin_min, end_min = _minutes(text, match["begin"]), _minutes(text, match["end"])
        if begin_min == end_min:
            raise InputError(f"{text}: the window is empty; {ALLOWED}", key="--maintenance")
        days = frozenset(range(7)) if match["days"] is None else _days(text, match["days"].lower())
        return Weekly(days, begin_min, end_min + 24 * 60 * (end_min < begin_min))
    first, _, last = text.partition("/")
    try:
        begin = datetime.fromisoformat(first)
        # ISO 8601 allows an end without the parts that it shares with the beginning.
        end = datetime.fromisoformat(f"{first.partition('T')[0]}T{last}" if CLOCK.fullmatch(last) else last)
    except ValueError:
        raise InputError(f"{text}: not a window; {ALLOWED}", key="--maintenance") from None
    if CLOCK.fullmatch(last):
        end = end.replace(tzinfo=begin.tzinfo)
    once = Once(_local(begin, zone, 0), _local(end, zone, 1))
    if once.end_s <= once.begin_s:
        raise InputError(f"{text}: the window ends before it begins; {ALLOWED}", key="--maintenance")
    return once


def _local(moment: datetime, zone: tzinfo, fold: int) -> float:
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone, fold=fold)).timestamp()


def _minutes(text: str, clock: str) -> int:
    hours, minutes = map(int, clock.split(":"))
    if minutes > 59 or hours * 60 + minutes > 24 * 60:
        raise InputError(f"{text}: {clock} is no time of day; {ALLOWED}", key="--maintenance")
    return hours * 60 + minutes


def _days(text: str, words: str) -> frozenset[int]:
    """Parses ``daily``, or days and ranges of them, separated by commas."""
    if words == "daily":
        return frozenset(range(7))
    days: set[int] = set()
    for word in words.split(","):
        first, dash, last = word.partition("-")
        if first not in NAMES or (dash and last not in NAMES):
            raise InputError(f"{text}: {word} is no day; allowed: daily, {', '.join(DAYS)}", key="--maintenance")
        count = (NAMES[last] - NAMES[first]) % 7 + 1 if dash else 1
        days |= {(NAMES[first] + at) % 7 for at in range(count)}
    return frozenset(days)
