"""``Fsync``: tests whether a file or device writes to stable storage fast enough for a log."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from headstack import _native
from headstack._native import Field, InputError, format_bytes
from headstack.io.values import duration_ns, size_bytes
from headstack.measurement.access import Access, Progress
from headstack.measurement.measurement import Opened, Step
from headstack.measurement.specs import StoredKind, TargetDescription
from headstack.measurement.tests.classic.logged import LoggedRequest
from headstack.measurement.tests.classic.outcome import (
    NOTHING_ALLOWED,
    Outcome,
    at_least,
    join_results,
    own_file,
    part_of,
    requests,
    whole_blocks,
)
from headstack.results import words

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from headstack.measurement.tests.classic.figures import Pairs

SIZES = ("2300B", "4KiB", "8KiB")
"""Default write sizes: 2300 bytes, the mean record of etcd's log and the size in its documentation, and database
pages."""

COUNT, TIME = 10_000, "30s"
"""Default number of writes: as many of 2300 bytes as fit into 22 MiB, as in etcd's documentation."""

LIMIT = "10ms"
"""Limit of the 99th percentile, from etcd's documentation ("Tuning") and the alerts of its mixin
(wal_fsync_duration_seconds).
"""

SPEED_TOLERANCE = 0.05
"""Tolerance as a share of a revolution; spindles keep their speed within 1 %, and timestamps are noisy."""

FASTEST_RPM = 15_000
"""Highest speed of any disk sold, which is assumed if the speed is unknown."""

FILE = "22MiB"


class SizeFigures(TypedDict):
    """Pairs of a write and a flush, for one size; times are ``None`` if no pair completed."""

    size_bytes: int
    asked: str
    """The sizes that were requested, separated by spaces."""
    pairs: int
    failed: int
    pairs_per_s: float | None
    mean_ms: float | None
    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None
    p999_ms: float | None
    max_ms: float | None
    flush_p99_ms: float | None
    """99th percentile of the flushes only."""
    kept: bool
    """Whether the 99th percentile is within the limit, and nothing failed."""


@dataclass(frozen=True)
class Fsync(Outcome):
    """Writes with flushes, and whether they meet the limit."""

    fields = (
        Field("size_bytes", "count", "bytes", "length of a write"),
        Field("asked", "text", "", "requested sizes, before rounding to whole blocks"),
        Field("pairs", "count", "", "completed pairs of a write and a flush"),
        Field("failed", "count", "", "failed pairs"),
        Field("pairs_per_s", "figure", "1/s", "pairs per second, one at a time"),
        Field("mean_ms", "figure", "ms", "mean latency of a pair"),
        Field("p50_ms", "figure", "ms", "median latency of pairs"),
        Field("p90_ms", "figure", "ms", "90th percentile of the latency of pairs"),
        Field("p99_ms", "figure", "ms", "99th percentile of the latency of pairs"),
        Field("p999_ms", "figure", "ms", "99.9th percentile of the latency of pairs"),
        Field("max_ms", "figure", "ms", "maximum latency of a pair"),
        Field("flush_p99_ms", "figure", "ms", "99th percentile of the latency of flushes only"),
        Field("kept", "flag", "", "whether the 99th percentile is within the limit and nothing failed"),
    )

    target: str
    limit_ms: float
    pairs: list[Pairs]
    warnings: list[str]
    """Reasons to doubt the figures."""

    @property
    def test(self) -> str:
        """The name of the test."""
        return "fsync"

    @property
    def kept(self) -> bool:
        """Whether the 99th percentile of every size is within the limit, and nothing failed."""
        return bool(self.pairs) and all(self._keeps(pairs) for pairs in self.pairs)

    def _keeps(self, pairs: Pairs) -> bool:
        p99_ms = pairs.percentile_ms(99)
        return p99_ms is not None and p99_ms <= self.limit_ms and not pairs.failed

    def figures(self) -> Mapping[str, object]:
        """``limit_ms``, ``kept``, ``warnings``, and for each of the ``sizes`` the columns of ``rows``."""
        return {
            "target": self.target,
            "limit_ms": self.limit_ms,
            "kept": self.kept,
            "warnings": self.warnings,
            "sizes": self.rows(),
        }

    def rows(self) -> list[SizeFigures]:
        """Returns a row for each size: percentiles of write and flush together, and of the flush only."""
        return [
            {
                "size_bytes": pairs.size_bytes,
                "asked": " ".join(pairs.requested),
                "pairs": len(pairs.response_ns),
                "failed": pairs.failed,
                "pairs_per_s": len(pairs.response_ns) * 1e9 / sum(pairs.response_ns) if pairs.response_ns else None,
                "mean_ms": sum(pairs.response_ns) / len(pairs.response_ns) / 1e6 if pairs.response_ns else None,
                "p50_ms": pairs.percentile_ms(50),
                "p90_ms": pairs.percentile_ms(90),
                "p99_ms": pairs.percentile_ms(99),
                "p999_ms": pairs.percentile_ms(99.9),
                "max_ms": max(pairs.response_ns, default=0) / 1e6 if pairs.response_ns else None,
                "flush_p99_ms": pairs.flush_p99_ms,
                "kept": self._keeps(pairs),
            }
            for pairs in self.pairs
        ]

    def answer(self) -> str:
        """Returns a sentence with the time of a write and its flush, compared with the limit."""
        sizes = [
            f"{format_bytes(pairs.size_bytes)}: median {words.time(p50_ms)}, p99 {words.time(p99_ms)}"
            for pairs in self.pairs
            if (p50_ms := pairs.percentile_ms(50)) is not None and (p99_ms := pairs.percentile_ms(99)) is not None
        ]
        kept = "kept" if self.kept else "not kept"
        return f"Write and flush on {self.target}: {'; '.join(sizes)}; the limit of {self.limit_ms:g} ms is {kept}."

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Plots the share of pairs that took longer than a time, and the limit."""
        from headstack.measurement.tests.classic import pictures  # start-up time

        return pictures.drawn(
            pictures.fsync(self.target, self.pairs, self.limit_ms, self.kept, self.results[0]["seed"]), path
        )


def fsync(
    target: str | os.PathLike[str],
    access: Access = NOTHING_ALLOWED,
    *,
    sizes: Sequence[str] = SIZES,
    count: int = COUNT,
    time: str = TIME,
    limit: str = LIMIT,
    rpm: int | None = None,
    range: str | None = None,
    progress: Progress | None = None,
) -> Fsync:
    """Writes sequentially, with a flush (fdatasync) after each write.

    For each size, the test makes ``count`` writes, or as many as fit into ``time``. ``limit`` applies to the 99th
    percentile of a write and its flush together. In a folder, a file of 22 MiB is created and removed afterwards.
    ``rpm`` is the speed of an HDD, for checking whether the figures are plausible. Writing needs the permission that
    ``access`` contains.

    >>> _ = Path("data.bin").write_bytes(bytes(16 << 20))
    >>> permission = hs.Access(overwrite=True, buffered=True)
    >>> hs.fsync("data.bin", permission, sizes=["4KiB"], count=5).rows()[0]["pairs"]
    5
    """
    path = os.fspath(target)
    limit_ms = duration_ns("limit", limit) / 1e6
    time_ns = duration_ns("time", time)
    if time_ns <= 0:
        raise InputError(f"{time} is out of range; must be above 0s", key="time")
    at_least("count", count, 1)
    at_least("rpm", FASTEST_RPM if rpm is None else rpm, 1)
    at_least("sizes", len(sizes), 1)
    with own_file(path, access, FILE) as (file, allowed):
        return _measured(
            path, Opened([file], allowed, writing=True), sizes, count, time_ns, range, rpm, limit_ms, progress
        )


def _measured(
    path: str,
    opened: Opened,
    sizes: Sequence[str],
    count: int,
    time_ns: int,
    part: str | None,
    rpm: int | None,
    limit_ms: float,
    progress: Progress | None,
) -> Fsync:
    names_by_size: dict[int, list[str]] = {}
    for size in sizes:
        names_by_size.setdefault(whole_blocks(opened, size_bytes("sizes", size)), []).append(size)
    made, measured = [], []
    for bytes_, names in names_by_size.items():
        described = requests("writes with flushes", bytes_, read_percent=0, flush_every=1, warm_up=2)
        step = Step(described, part_of(opened, part), {"requests": 2 * count, "time_ns": time_ns})
        log = _native.RequestLog()
        results = opened.measure([step], progress, log=log)
        response_ns, failed = pair_with_flushes(log.take())
        p99_ms = _p99_ms(results.whole(0)["kinds"]["flush"])
        measured.append(Pairs(bytes_, tuple(names), response_ns, p99_ms, failed))
        made.append(results)
        if opened.ended is not None:
            break
    return Fsync(
        join_results(made), opened.ended, path, limit_ms, measured, _doubts(opened.described[0], measured, rpm)
    )


def pair_with_flushes(logged: Iterable[LoggedRequest]) -> tuple[list[int], int]:
    """Returns the times of each write with its flush, in nanoseconds, and the number of failed pairs."""
    response_ns, failed = [], 0
    begun: tuple[int, bool] | None = None
    for _, kind, _, _, intended_ns, took_ns, has_failed, _ in logged:
        if kind == "write":
            begun = intended_ns, has_failed
        elif begun is not None:
            if begun[1] or has_failed:
                failed += 1
            else:
                response_ns.append(intended_ns + took_ns - begun[0])
            begun = None
    return response_ns, failed


def _p99_ms(flushes: StoredKind) -> float | None:
    """Returns the 99th percentile of the flushes only, which database monitoring reports."""
    count, seen = flushes["count"], 0
    for middle_ns, in_bin in flushes["latency"]["bins"]:
        seen += in_bin
        if seen >= 0.99 * count:
            return float(middle_ns) / 1e6
    return None


def _doubts(described: TargetDescription, measured: list[Pairs], rpm: int | None) -> list[str]:
    """Returns reasons to doubt the figures."""
    doubts = []
    medians = [median for pairs in measured if (median := pairs.percentile_ms(50)) is not None]
    # The block after the previous write passes the head only after a whole revolution.
    turn_ms = 60e3 / (rpm or FASTEST_RPM)
    median_ms = min(medians, default=turn_ms)
    if (described["rotational"] or rpm is not None) and median_ms < (1 - SPEED_TOLERANCE) * turn_ms:
        speed = f"at {rpm:,} rpm" if rpm is not None else f"even at {FASTEST_RPM:,} rpm"
        doubts.append(
            f"half of the writes took at most {median_ms:.3g} ms, but one revolution of a disk takes "
            f"{turn_ms:.3g} ms {speed}: they were not on the platters when the flush completed, and a power loss "
            "destroys them unless a cache is protected (virtual disks often only claim to rotate)"
        )
    device = described["description"].get("device", {})
    if device.get("write_cache") == "write through":
        doubts.append(
            "the device reports no volatile write cache, so the kernel sends no flushes: "
            "the figures cover only the writes"
        )
    file_system = described["description"].get("file_system", {}).get("type")
    if file_system in ("tmpfs", "ramfs"):
        doubts.append(f"{file_system} is in memory: a power loss destroys its contents")
    if described["kind"] == "null":
        doubts.append("nothing was stored")
    return doubts
