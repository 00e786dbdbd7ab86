"""Writing all of a target once, so that what is measured afterwards is not the emptiness of it.

Storage that allocates at the first write (virtual arrays, thin volumes, solid-state drives) lays out together what
comes together: LUNs that are filled one after the other lie one after the other, those that are filled at the same time
lie interleaved.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headstack import _native
from headstack._native import Field, InputError, format_bytes
from headstack.classic.latency import Logged
from headstack.classic.outcome import NOTHING_ALLOWED, Outcome, at_least, joined, part_of, requests, whole_blocks
from headstack.measurement import Access, Opened, Progress, Step
from headstack.results import Results
from headstack.values import choice, size_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDERS = ("serial", "concurrent")
SIZE, DEPTH = "1MiB", 4
POINTS_MAX = 4096
"""Of the course of a LUN; when there are more, every second one is left out."""
POINTS_AT_ONCE = 16
"""Of what comes back between two looks."""
SECTIONS, SECTION_REQUESTS = 100, 16
"""Sections of a LUN for which rates are given; fewer where they had less requests than that, several of which
come back at once."""


@dataclass
class Lun:
    """One of the parts that are filled, and the course of it."""

    name: str
    target: int
    start_bytes: int
    length_bytes: int
    written_bytes: int = 0
    requests: int = 0
    failed: int = 0
    points: list[tuple[int, int]] = field(default_factory=list)
    """When (nanoseconds of the monotonic clock) so many bytes were written; begins with the first request and 0."""

    def add(self, logged: Sequence[Logged]) -> None:
        """Takes what came back since the last time."""
        step = max(1, len(logged) // POINTS_AT_ONCE)
        for number, (_, _, _, length, intended_ns, response_ns, failed, _) in enumerate(logged, 1):
            if not self.points:
                self.points.append((intended_ns, 0))
            if failed:
                self.failed += 1
                continue
            self.written_bytes += length
            self.requests += 1
            if number % step == 0 or number == len(logged):
                self.points.append((intended_ns + response_ns, self.written_bytes))
        if len(self.points) > POINTS_MAX:
            # The first and the last one stay.
            self.points = [*self.points[:-1:2], self.points[-1]]

    @property
    def begun_ns(self) -> int | None:
        """When its first request was made."""
        return self.points[0][0] if self.points else None

    @property
    def ended_ns(self) -> int | None:
        """When its last request came back."""
        return self.points[-1][0] if self.points else None

    @property
    def mb_per_s(self) -> float | None:
        """Over all of its time."""
        if not self.written_bytes or self.points[-1][0] == self.points[0][0]:
            return None
        return self.written_bytes * 1e3 / (self.points[-1][0] - self.points[0][0])

    def sections(self) -> list[tuple[int, int, int, float]]:
        """Equal sections of what was written: first byte in the target, begin and end in nanoseconds, and MB/s."""
        count = max(1, min(SECTIONS, self.requests // SECTION_REQUESTS))
        edges = [self.written_bytes * number // count for number in range(count + 1)]
        times = [self._time_at(edge) for edge in edges] if self.written_bytes else []
        return [
            (self.start_bytes + edges[at], times[at], times[at + 1], (edges[at + 1] - edges[at]) * 1e3 / passed)
            for at in range(len(times) - 1)
            if (passed := times[at + 1] - times[at]) > 0
        ]

    def _time_at(self, written_bytes: int) -> int:
        """When so much was written, between two points in proportion."""
        after = min(bisect_right(self.points, written_bytes, key=lambda point: point[1]), len(self.points) - 1)
        (early_ns, less), (late_ns, more) = self.points[max(0, after - 1)], self.points[after]
        share = (written_bytes - less) / (more - less) if more > less else 1.0
        return round(early_ns + min(1.0, share) * (late_ns - early_ns))


@dataclass(frozen=True)
class Prefill(Outcome):
    """The LUNs that were filled, and how fast."""

    FIELDS = (
        Field("lun", "text", "", "the LUN that was filled"),
        Field("position_bytes", "count", "bytes", "where the section begins"),
        Field("from_s", "figure", "s", "when its first write began, after the start"),
        Field("to_s", "figure", "s", "when its last write was complete"),
        Field("mb_per_s", "figure", "10^6 bytes/s", "rate of the section"),
    )

    order: str
    luns: list[Lun]

    @property
    def test(self) -> str:
        """Its name."""
        return "prefill"

    @property
    def complete(self) -> bool:
        """Whether every byte was written."""
        return all(lun.written_bytes == lun.length_bytes for lun in self.luns)

    def since_start_s(self, at_ns: int | None) -> float | None:
        """Seconds after the first request of all."""
        first_ns = min((lun.begun_ns for lun in self.luns if lun.begun_ns is not None), default=None)
        return None if at_ns is None or first_ns is None else (at_ns - first_ns) / 1e9

    @property
    def duration_s(self) -> float:
        """From the first request to the last completion."""
        ends = (self.since_start_s(lun.ended_ns) for lun in self.luns)
        return max((end for end in ends if end is not None), default=0.0)

    @property
    def mb_per_s(self) -> float | None:
        """Of all LUNs together."""
        written = sum(lun.written_bytes for lun in self.luns)
        return written / self.duration_s / 1e6 if self.duration_s else None

    def figures(self) -> dict[str, Any]:
        """``order``, ``complete``, ``mb_per_s`` of all together, and the ``luns``, each with its ``sections``."""
        return {
            "order": self.order,
            "complete": self.complete,
            "duration_s": self.duration_s,
            "mb_per_s": self.mb_per_s,
            "luns": [
                {
                    "name": lun.name,
                    "start_bytes": lun.start_bytes,
                    "length_bytes": lun.length_bytes,
                    "written_bytes": lun.written_bytes,
                    "failed": lun.failed,
                    "begun_s": self.since_start_s(lun.begun_ns),
                    "ended_s": self.since_start_s(lun.ended_ns),
                    "mb_per_s": lun.mb_per_s,
                    "sections": [row for row in self.rows() if row["lun"] == lun.name],
                }
                for lun in self.luns
            ],
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row for each hundredth of a LUN: where it begins, when, and its rate."""
        return [
            {
                "lun": lun.name,
                "position_bytes": at,
                "from_s": self.since_start_s(begin_ns),
                "to_s": self.since_start_s(end_ns),
                "mb_per_s": rate,
            }
            for lun in self.luns
            for at, begin_ns, end_ns, rate in lun.sections()
        ]

    def answer(self) -> str:
        """How much was written, and how fast."""
        from headstack.report.words import number, time

        written = format_bytes(sum(lun.written_bytes for lun in self.luns))
        rate = "" if self.mb_per_s is None else f", {number(self.mb_per_s)} MB/s"
        return f"{written} written in {time(1000 * self.duration_s)}{rate}{'' if self.complete else ', not all of it'}."

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Rates over position and over time."""
        from headstack.classic import pictures

        return pictures.drawn(pictures.prefill(self), path)


def prefill(
    targets: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    access: Access = NOTHING_ALLOWED,
    *,
    order: str = "serial",
    parts: int = 1,
    size: str = SIZE,
    depth: int = DEPTH,
    range: str | None = None,
    progress: Progress | None = None,
) -> Prefill:
    """Writes all of one or several files or devices once, with data that cannot be compressed.

    Each target is a LUN, or a single one ``parts`` of them. They are filled one after the other (``serial``) or all at
    the same time (``concurrent``), each by sequential writes of ``size``, ``depth`` at a time. It takes the permission
    that ``access`` holds. Raises ``InputError`` when a target cannot be written or divided.

    >>> _ = Path("data.bin").write_bytes(bytes(16 << 20))
    >>> hs.prefill("data.bin", hs.Access(overwrite=True, buffered=True)).rows()[0]["position_bytes"]
    0
    """
    paths = [os.fspath(targets)] if isinstance(targets, str | os.PathLike) else [os.fspath(path) for path in targets]
    choice("order", order, ORDERS)
    at_least("targets", len(paths), 1), at_least("parts", parts, 1), at_least("depth", depth, 1)
    if len(paths) > 1 and parts > 1:
        raise InputError(f"parts: {len(paths)} targets are {len(paths)} LUNs already; only a single one is divided")
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise InputError("a target is named twice: it would be written twice")
    opened = Opened(paths, access, writing=True)
    luns = [lun for number, _ in enumerate(paths) for lun in _divided(opened, number, parts, range)]
    written = size_bytes("size", size)
    made: list[Results] = []
    for group in [[lun] for lun in luns] if order == "serial" else [luns]:
        for steps_of in (_fill, _rest):
            steps = [(lun, step) for lun in group for step in steps_of(opened, lun, written, depth)]
            if steps and opened.ended is None:
                made.append(_filled(opened, steps, progress))
    return Prefill(joined(made), opened.ended, order, luns)


def _divided(opened: Opened, target: int, parts: int, text: str | None) -> list[Lun]:
    """A target's LUNs: equal parts of whole blocks, the last with what is left."""
    start, length = part_of(opened, text, target)
    name, block_bytes = opened.paths[target], whole_blocks(opened, 1, target)
    each = length // parts // block_bytes * block_bytes
    if not each:
        raise InputError(f"{name}: {_native.format_bytes(length)} cannot be divided into {parts} parts")
    lengths = [each] * (parts - 1) + [length - (parts - 1) * each]
    names = [name] if parts == 1 else [f"{name} part {number + 1}" for number in range(parts)]
    return [Lun(one, target, start + number * each, lengths[number]) for number, one in enumerate(names)]


def _fill(opened: Opened, lun: Lun, wanted_bytes: int, depth: int) -> list[Step]:
    """All of a LUN in whole requests."""
    bytes_ = whole_blocks(opened, wanted_bytes, lun.target)
    count = lun.length_bytes // bytes_ if bytes_ else 0
    if not bytes_:
        raise InputError("size: 0 bytes are not allowed; a block or more is")
    if not count:
        return []
    described = requests(f"prefill {lun.name}", bytes_, read_percent=0, depth=min(depth, count), count=count)
    span = lun.start_bytes, count * bytes_
    return [Step(described, span, {"requests": count}, {"lun": lun.name}, target=lun.target)]


def _rest(opened: Opened, lun: Lun, wanted_bytes: int, _: int) -> list[Step]:
    """What whole requests leave at the end of a LUN, as one."""
    bytes_ = whole_blocks(opened, wanted_bytes, lun.target)
    rest = lun.length_bytes % bytes_
    if not rest:
        return []
    described = requests(f"prefill {lun.name}", rest, read_percent=0)
    end = lun.start_bytes + lun.length_bytes
    return [Step(described, (end - rest, rest), {"requests": 1}, {"lun": lun.name}, target=lun.target)]


def _filled(opened: Opened, steps: list[tuple[Lun, Step]], progress: Progress | None) -> Results:
    """Fills LUNs at the same time and follows the course of each."""
    log = _native.RequestLog()

    def follow() -> None:
        logged = log.take()
        for number, (lun, _) in enumerate(steps):
            lun.add([one for one in logged if one[0] == number])

    def look(now: dict[str, Any]) -> None:
        follow()
        if progress is not None:
            progress(now)

    results = opened.measure_together([step for _, step in steps], look, log=log)
    follow()
    return results
