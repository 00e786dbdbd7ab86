"""``Prefill``: writes a whole target once, so that later measurements do not hit unallocated space.

Storage that allocates at the first write (virtual arrays, thin volumes, SSDs) places data in the order of writes: LUNs
filled one after the other are contiguous; LUNs filled concurrently are interleaved.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from headstack import _native
from headstack._native import Field, InputError, format_bytes
from headstack.io.values import choice, size_bytes
from headstack.measurement.access import Access, Progress
from headstack.measurement.measurement import Opened, Step
from headstack.measurement.specs import ProgressReport
from headstack.measurement.tests.classic.outcome import (
    NOTHING_ALLOWED,
    Outcome,
    at_least,
    join_results,
    part_of,
    requests,
    whole_blocks,
)
from headstack.results import words
from headstack.results.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from headstack.measurement.tests.classic.figures import Lun

ORDERS = ("serial", "concurrent")

SIZE, DEPTH = "1MiB", 4


class SectionFigures(TypedDict):
    """A section of a LUN."""

    lun: str
    position_bytes: int
    from_s: float | None
    """Start of the first write of the section, relative to the start of the test."""
    to_s: float | None
    mb_per_s: float


@dataclass(frozen=True)
class Prefill(Outcome):
    """The filled LUNs, and their rates."""

    fields = (
        Field("lun", "text", "", "name of the LUN"),
        Field("position_bytes", "count", "bytes", "start of the section"),
        Field("from_s", "figure", "s", "start of its first write, after the start of the test"),
        Field("to_s", "figure", "s", "completion of its last write, after the start of the test"),
        Field("mb_per_s", "figure", "10^6 bytes/s", "rate of the section"),
    )

    order: str
    luns: list[Lun]

    @property
    def test(self) -> str:
        """The name of the test."""
        return "prefill"

    @property
    def complete(self) -> bool:
        """Whether every byte was written."""
        return all(lun.written_bytes == lun.length_bytes for lun in self.luns)

    def since_start_s(self, at_ns: int | None) -> float | None:
        """Returns the time since the first request of the test, in seconds."""
        first_ns = min((lun.begun_ns for lun in self.luns if lun.begun_ns is not None), default=None)
        return None if at_ns is None or first_ns is None else (at_ns - first_ns) / 1e9

    @property
    def duration_s(self) -> float:
        """Time from the first request to the last completion, in seconds."""
        ends = (self.since_start_s(lun.ended_ns) for lun in self.luns)
        return max((end for end in ends if end is not None), default=0.0)

    @property
    def mb_per_s(self) -> float | None:
        """Total rate of all LUNs, in 10^6 bytes/s."""
        written = sum(lun.written_bytes for lun in self.luns)
        return written / self.duration_s / 1e6 if self.duration_s else None

    def figures(self) -> Mapping[str, object]:
        """``order``, ``complete``, the total ``mb_per_s``, and the ``luns``, each with its ``sections``."""
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

    def rows(self) -> list[SectionFigures]:
        """Returns a row for each hundredth of a LUN: position, time and rate."""
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
        """Returns a sentence with the amount written and the rate."""
        written = format_bytes(sum(lun.written_bytes for lun in self.luns))
        rate = "" if self.mb_per_s is None else f", {words.number(self.mb_per_s)} MB/s"
        took = words.time(1000 * self.duration_s)
        return f"{written} written in {took}{rate}{'' if self.complete else ' (incomplete)'}."

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Plots rates over position and over time."""
        from headstack.measurement.tests.classic import pictures  # start-up time

        return pictures.drawn(
            pictures.prefill(self.luns, self.order, self.mb_per_s, self.since_start_s, self.results[0]["seed"]), path
        )


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
    """Writes all of one or several files or devices once, with incompressible data.

    Each target is a LUN; a single target is divided into ``parts`` LUNs. LUNs are filled one after the other
    (``serial``) or at the same time (``concurrent``), each with sequential writes of ``size`` at queue depth ``depth``.
    Writing needs the permission that ``access`` contains. Raises ``InputError`` if a target cannot be written or
    divided.

    >>> _ = Path("data.bin").write_bytes(bytes(16 << 20))
    >>> hs.prefill("data.bin", hs.Access(overwrite=True, buffered=True)).rows()[0]["position_bytes"]
    0
    """
    paths = [os.fspath(targets)] if isinstance(targets, str | os.PathLike) else [os.fspath(path) for path in targets]
    choice("order", order, ORDERS)
    at_least("targets", len(paths), 1), at_least("parts", parts, 1), at_least("depth", depth, 1)
    if len(paths) > 1 and parts > 1:
        raise InputError(
            f"{len(paths)} targets are {len(paths)} LUNs already; only a single target can be divided", key="parts"
        )
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise InputError("a target is named twice; name each target once")
    opened = Opened(paths, access, writing=True)
    luns = [lun for number, _ in enumerate(paths) for lun in _divided(opened, number, parts, range)]
    written = size_bytes("size", size)
    made: list[Results] = []
    for group in [[lun] for lun in luns] if order == "serial" else [luns]:
        for steps_of in (_fill, _rest):
            steps = [(lun, step) for lun in group for step in steps_of(opened, lun, written, depth)]
            if steps and opened.ended is None:
                made.append(_filled(opened, steps, progress))
    return Prefill(join_results(made), opened.ended, order, luns)


def _divided(opened: Opened, target: int, parts: int, text: str | None) -> list[Lun]:
    """Returns the LUNs of a target, which are equal parts of whole blocks; the last LUN includes the remainder."""
    start, length = part_of(opened, text, target)
    name, block_bytes = opened.paths[target], whole_blocks(opened, 1, target)
    each = length // parts // block_bytes * block_bytes
    if not each:
        raise InputError(f"{_native.format_bytes(length)} cannot be divided into {parts} parts", file=name)
    lengths = [each] * (parts - 1) + [length - (parts - 1) * each]
    names = [name] if parts == 1 else [f"{name} part {number + 1}" for number in range(parts)]
    return [Lun(lun, target, start + number * each, lengths[number]) for number, lun in enumerate(names)]


def _fill(opened: Opened, lun: Lun, wanted_bytes: int, depth: int) -> list[Step]:
    """Returns the steps that fill a LUN with whole requests."""
    bytes_ = whole_blocks(opened, wanted_bytes, lun.target)
    count = lun.length_bytes // bytes_ if bytes_ else 0
    if not bytes_:
        raise InputError("0 bytes is out of range; must be one block or more", key="size")
    if not count:
        return []
    described = requests(f"prefill {lun.name}", bytes_, read_percent=0, depth=min(depth, count), count=count)
    span = lun.start_bytes, count * bytes_
    return [Step(described, span, {"requests": count}, {"lun": lun.name}, target=lun.target)]


def _rest(opened: Opened, lun: Lun, wanted_bytes: int, _: int) -> list[Step]:
    """Returns the step that writes the remainder at the end of a LUN as one request."""
    bytes_ = whole_blocks(opened, wanted_bytes, lun.target)
    rest = lun.length_bytes % bytes_
    if not rest:
        return []
    described = requests(f"prefill {lun.name}", rest, read_percent=0)
    end = lun.start_bytes + lun.length_bytes
    return [Step(described, (end - rest, rest), {"requests": 1}, {"lun": lun.name}, target=lun.target)]


def _filled(opened: Opened, steps: list[tuple[Lun, Step]], progress: Progress | None) -> Results:
    """Fills LUNs at the same time and records the progress of each."""
    log = _native.RequestLog()

    def record_completions() -> None:
        logged = log.take()
        for number, (lun, _) in enumerate(steps):
            lun.add([request for request in logged if request[0] == number])

    def poll(now: ProgressReport) -> None:
        record_completions()
        if progress is not None:
            progress(now)

    results = opened.measure_together([step for _, step in steps], poll, log=log)
    record_completions()
    return results
