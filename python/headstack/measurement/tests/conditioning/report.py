"""Figures from the log of a conditioning: rates over the module, the limiting device, and each device's block times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from statistics import median
from typing import Literal

from headstack._native import format_bytes
from headstack.io.counts import counted
from headstack.measurement.specs import DeviceShare
from headstack.measurement.tests.conditioning.records import Line, ModuleRecord

JUDGED_SHARE = 0.5
"""Minimum length of an interval as a share of the normal length. A shorter interval is merged with the previous
interval: the last interval of a pass or session may take milliseconds, in which a few blocks determine the rate."""
HOLDING_UP_FACTOR = 1.2
"""Minimum factor by which the other devices would be faster without a device that is reported as limiting the
module."""
SLOW_NS = 36_000_000
"""Minimum time of a slow block: longer than rotation and a seek, so the drive has retried or slept."""
SLOW_MIN, SLOW_TIMES = 10, 10
"""Minimum number of slow blocks of a suspect device, and minimum ratio to the median of the other devices."""


@dataclass(frozen=True)
class Interval:
    """A part of the module that was streamed without interruption."""

    position_bytes: int
    """First byte of the interval in the module."""
    bytes: int
    elapsed_s: float
    """Time from the start of the pass to the end of the interval, without breaks between sessions."""
    duration_s: float
    held_ns: list[int]
    """For each device, the time in which the oldest block of the stream was on it."""
    devices: list[DeviceShare]
    """Figures of each device from the log; empty for merged intervals."""

    @property
    def mbit_per_s(self) -> float:
        """The rate of the whole module, in 10^6 bits per second."""
        return self.bytes * 8 / self.duration_s / 1e6

    @property
    def holder(self) -> int:
        """Number of the device that held the oldest block of the stream for the longest time."""
        return max(range(len(self.held_ns)), key=lambda number: self.held_ns[number])

    def held_share(self, number: int) -> float:
        """Returns the share of time for which a device delayed the others."""
        return self.held_ns[number] / (self.duration_s * 1e9)


def _merge_intervals(first: Interval, second: Interval) -> Interval:
    """Merges two intervals, and keeps the sums that rates and positions need."""
    held_ns = [first_ns + second_ns for first_ns, second_ns in zip(first.held_ns, second.held_ns, strict=True)]
    duration_s, count = first.duration_s + second.duration_s, first.bytes + second.bytes
    return Interval(first.position_bytes, count, second.elapsed_s, duration_s, held_ns, [])


@dataclass(frozen=True)
class Device:
    """A device in one pass."""

    number: int
    """Position of the device in the stripe, from 0."""
    path: str
    """Path by which the device was opened."""
    shares: Sequence[DeviceShare]
    duration_s: float
    limits_ns: Sequence[int]

    @property
    def name(self) -> str:
        """Name of the device: its position in the stripe, from 1, and its path."""
        return f"{self.number + 1} {self.path}"

    def _sum(self, key: Literal["blocks", "errors", "busy_ns", "held_ns", "sum_ns"]) -> int:
        return sum(share[key] for share in self.shares)

    @cached_property
    def blocks(self) -> int:
        """Number of processed blocks, including failed blocks."""
        return self._sum("blocks")

    @cached_property
    def errors(self) -> int:
        """Number of failed blocks."""
        return self._sum("errors")

    @cached_property
    def classes(self) -> list[int]:
        """Number of block times in each class."""
        return [sum(column) for column in zip(*(share["classes"] for share in self.shares), strict=True)]

    @cached_property
    def mean_ms(self) -> float | None:
        """Mean block time; ``None`` if no block completed."""
        good = self.blocks - self.errors
        return self._sum("sum_ns") / good / 1e6 if good else None

    @cached_property
    def max_ms(self) -> float:
        """The longest block time."""
        return float(max(share["max_ns"] for share in self.shares) / 1e6)

    @cached_property
    def _responses(self) -> tuple[list[int], list[int]]:
        counts: Counter[int] = Counter()
        for share in self.shares:
            for ns, count in share["responses"]:
                counts[ns] += count
        times = sorted(counts)
        return times, list(accumulate(counts[ns] for ns in times))

    def quantile_ms(self, q: float) -> float | None:
        """Returns a quantile of the block times with a resolution of 3 %; ``None`` if no block completed."""
        times, below = self._responses
        if not times:
            return None
        rank = max(1.0, q * below[-1])
        index = next(index for index, count in enumerate(below) if count >= rank - 1e-9)
        return min(times[index] / 1e6, self.max_ms)

    @cached_property
    def held_share(self) -> float:
        """Share of the time in which the oldest block of the stream was on this device."""
        return float(self._sum("held_ns") / (self.duration_s * 1e9))

    def own_mb_per_s(self, block_bytes: int) -> float | None:
        """Returns the rate while the device was busy, in 10^6 bytes per second. This is at most the rate that the
        device is capable of; it is lower if the device waited for others between blocks."""
        busy_ns = self._sum("busy_ns")
        return (self.blocks - self.errors) * block_bytes / busy_ns * 1e3 if busy_ns else None

    @cached_property
    def slow(self) -> int:
        """Number of blocks that took ``SLOW_NS`` or longer."""
        first = next((index for index, limit in enumerate(self.limits_ns, 1) if limit >= SLOW_NS), len(self.limits_ns))
        return sum(self.classes[first:])


@dataclass(frozen=True)
class Pass:
    """One pass over the module, including all sessions."""

    number: int
    kind: str
    intervals: list[Interval]
    devices: list[Device]
    interval_s: float
    module_bytes: int
    flush_s: float | None
    """Time that the devices took to flush their caches at the end."""

    @property
    def bytes(self) -> int:
        """Number of processed bytes."""
        return sum(interval.bytes for interval in self.intervals)

    @property
    def is_whole(self) -> bool:
        """Whether the pass covered the whole module."""
        return self.bytes == self.module_bytes

    @property
    def duration_s(self) -> float:
        """Duration without breaks between sessions."""
        return sum(interval.duration_s for interval in self.intervals)

    @property
    def mean_mbit_per_s(self) -> float:
        """Mean rate of the module, in 10^6 bits per second."""
        return self.bytes * 8 / self.duration_s / 1e6

    @cached_property
    def judged(self) -> list[Interval]:
        """The intervals, with short ones merged into their neighbours."""
        joined: list[Interval] = []
        for interval in self.intervals:
            short = JUDGED_SHARE * self.interval_s
            if joined and (interval.duration_s < short or joined[-1].duration_s < short):
                joined[-1] = _merge_intervals(joined[-1], interval)
            else:
                joined.append(interval)
        return joined

    @property
    def lowest(self) -> Interval:
        """The slowest interval."""
        return min(self.judged, key=lambda interval: interval.mbit_per_s)

    def below(self, mbit_per_s: float) -> list[Interval]:
        """Returns the intervals slower than this rate."""
        return [interval for interval in self.judged if interval.mbit_per_s < mbit_per_s]


def passes_of(module: ModuleRecord, lines: Sequence[Line]) -> list[Pass]:
    """Returns the passes of a log with at least one interval."""
    limits_ns = module["class_limits_ns"]
    passes = []
    for number, kind in enumerate(module["passes"]):
        stretches = [line for line in lines if line["record"] == "stretch" and line["pass"] == number]
        if not stretches:
            continue
        ends = list(accumulate(stretch["duration_ns"] / 1e9 for stretch in stretches))
        intervals = [
            Interval(
                stretch["position_bytes"],
                stretch["bytes"],
                end,
                stretch["duration_ns"] / 1e9,
                [share["held_ns"] for share in stretch["devices"]],
                stretch["devices"],
            )
            for stretch, end in zip(stretches, ends, strict=True)
        ]
        devices = [
            Device(lane, target["path"], [stretch["devices"][lane] for stretch in stretches], ends[-1], limits_ns)
            for lane, target in enumerate(module["targets"])
        ]
        flushes = [r["flush_ns"] for r in lines if r["record"] == "pass" and r["pass"] == number and r["flush_ns"]]
        flush_s = flushes[-1] / 1e9 if flushes else None
        interval_s, module_bytes = module["interval_ns"] / 1e9, module["module_bytes"]
        passes.append(Pass(number, kind, intervals, devices, interval_s, module_bytes, flush_s))
    return passes


def verdict(lane: int, passes: Iterable[Pass], block_bytes: int, require_mbit_per_s: float | None) -> str:
    """Returns the faults of a device, or ``ok``."""
    faults = [
        f"{pass_.kind}: {fault}"
        for pass_ in passes
        for fault in (
            _failing(pass_, lane),
            _holding_up(pass_, lane, block_bytes),
            _slow_blocks(pass_, lane),
            None if require_mbit_per_s is None else _too_slow(pass_, lane, require_mbit_per_s),
        )
        if fault is not None
    ]
    return "; ".join(faults) or "ok"


def _failing(pass_: Pass, lane: int) -> str | None:
    errors = pass_.devices[lane].errors
    return f"{counted(errors, 'block')} failed" if errors else None


def _holding_up(pass_: Pass, lane: int, block_bytes: int) -> str | None:
    """Returns a fault if the other devices could be faster without this device. Each device is capable of at least its
    rate while busy."""
    own, *others = (pass_.devices[number].own_mb_per_s(block_bytes) for number in _first(lane, len(pass_.devices)))
    next_slowest = min((rate for rate in others if rate is not None), default=None)
    if (
        own is None
        or next_slowest is None
        or next_slowest < HOLDING_UP_FACTOR * own
        or pass_.devices[lane].held_share < 0.5
    ):
        return None
    return f"limits the module: {own:,.1f} MB/s while busy; all other devices reach {next_slowest:,.1f} or more"


def _first(lane: int, count: int) -> list[int]:
    return [lane, *(number for number in range(count) if number != lane)]


def _slow_blocks(pass_: Pass, lane: int) -> str | None:
    """Returns a fault if the device has many more slow blocks than the others. A healthy drive has no slow blocks."""
    own, *others = (pass_.devices[number].slow for number in _first(lane, len(pass_.devices)))
    if not others or own < max(SLOW_MIN, SLOW_TIMES * median(others)):
        return None
    return f"{own:,} blocks of {SLOW_NS / 1e6:g} ms or longer, others {median(others):,.0f}"


def _too_slow(pass_: Pass, lane: int, require_mbit_per_s: float) -> str | None:
    """Returns a fault if this device keeps the module below the required rate. There is no fault if all devices do so
    in turn."""
    below = pass_.below(require_mbit_per_s)
    held = sum(interval.holder == lane and interval.held_share(lane) >= 0.5 for interval in below)
    # The threshold is halfway between a fair share and all intervals.
    if len(pass_.devices) == 1 or held < max(2, (1 + 1 / len(pass_.devices)) / 2 * len(below)):
        return None
    return f"limits the module in {held} of the {len(below)} intervals below {require_mbit_per_s:,.0f} Mb/s"


def judgement(pass_: Pass, require_mbit_per_s: float | None) -> str:
    """Summarizes a pass in one line: the mean rate, the lowest rate with its position and limiting device, and whether
    the required rate was met."""
    lowest = pass_.lowest
    at = f"{format_decimal(lowest.position_bytes)} ({100 * lowest.position_bytes / pass_.module_bytes:.0f} %)"
    holder = pass_.devices[lowest.holder]
    words = [
        f"{pass_.kind}: mean {pass_.mean_mbit_per_s:,.0f} Mb/s, lowest {lowest.mbit_per_s:,.0f} Mb/s at {at}, "
        f"limited by device {holder.name} for {100 * lowest.held_share(holder.number):.0f} % of the time"
    ]
    if require_mbit_per_s is not None:
        below = pass_.below(require_mbit_per_s)
        if below:
            first = format_decimal(below[0].position_bytes)
            words.append(
                f"below the required {require_mbit_per_s:,.0f} Mb/s in {len(below)} of {len(pass_.judged)} intervals, "
                f"first at {first}"
            )
        else:
            words.append(f"at least the required {require_mbit_per_s:,.0f} Mb/s throughout")
    if not pass_.is_whole:
        words.append(f"ended at {format_decimal(pass_.bytes)} of {format_decimal(pass_.module_bytes)}")
    if pass_.flush_s is not None:
        words.append(f"flushing the caches took another {pass_.flush_s:,.2f} s")
    return "; ".join(words)


def format_decimal(count: int) -> str:
    """Formats a position in the module with decimal units, like the capacity of a drive."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:,.2f} {unit}"
    return format_bytes(count)
