"""The cache lab: simulates many policies and sizes on one trace, with miss ratios, back-end traffic, and response times
of a system behind the cache. See docs/design/cache-lab.md."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.array import Array
from headstack.catalogue.drive import Drive
from headstack.catalogue.stack import Stack
from headstack.io.values import choice, duration_ns, number, percent, size_bytes, whole
from headstack.simulation.runs import System, loaded
from headstack.traces.cache_report import misses_of, report_of
from headstack.traces.traces import Progress, Trace

if TYPE_CHECKING:
    from headstack.report.figures import Report
from headstack.traces.cache_runs import CacheRuns, policies_of
from headstack.traces.cache_types import Admission, Behind, BehindReport, LabOptions, LabReport, Responses, Unit

USUAL = "lru,arc,s3-fifo,belady"

UNITS = ("blocks", "objects", "bytes")

WRITES = ("through", "back", "around", "read-only")

OUTSIDE = ("refuse", "fold", "drop")

POINTS = 8
"""Default number of sizes in a range."""

SMALLEST = 0.01
"""Size of the smallest cache by default, as a share of the trace's working set."""


def caches(
    trace: Trace | str | os.PathLike[str],
    policies: str | Iterable[str] = USUAL,
    sizes: str | int | Iterable[str | int] | None = None,
    *,
    points: int = POINTS,
    block: str = "4KiB",
    holds: str = "blocks",
    writes: str = "through",
    dirty: str = "100%",
    destage: str = "64KiB",
    admit: str = "all",
    sample: float | None = None,
    samples: int = 8,
    seed: int = 0,
    memory: str = "1GiB",
    behind: System | None = None,
    hit_time: str = "100us",
    outside: str = "refuse",
    progress: Progress | None = None,
) -> CacheLab:
    """Simulates caches of these policies and sizes in one pass over a trace.

    A size is in bytes (``"1GiB"``), a number of blocks or objects, or a range with ``points`` sizes in geometric steps
    (``"1GiB..1TiB"``); by default sizes range from 1 % of the trace's working set to all of it. A cache ``holds``
    ``"blocks"`` of ``block`` bytes, ``"objects"``, which are whole requests identified by their first byte, or
    ``"bytes"`` of objects. ``writes`` are cached and written ``"through"`` at once or ``"back"`` when they are evicted
    or more than ``dirty`` of the cache is dirty, in runs of up to ``destage``; ``"around"`` writes bypass the cache and
    update cached data, and a ``"read-only"`` cache invalidates them. ``admit`` caches ``"all"`` misses, the
    ``"second"`` miss, requests up to a size (``"64KiB"``), or a random share (``"50%"``).

    With ``sample``, such as 0.01, ``samples`` independent samples of this share of the blocks are simulated, and
    figures have a confidence band. If a system is given as ``behind``, misses are replayed on it in virtual time; a hit
    takes ``hit_time``.

    >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
    >>> lab = hs.caches("t.parquet", "lru,belady", "1MiB")
    >>> lab.miss_ratio("belady", lab.rows[1]["cache"]) <= lab.miss_ratio("lru", lab.rows[0]["cache"])
    True
    """
    traced = trace if isinstance(trace, Trace) else Trace(trace)
    options: LabOptions = {
        "policies": policies_of(policies),
        "sizes": [],
        "unit": unit_of(holds, block),
        "writes": choice("writes", writes, WRITES),
        "dirty_share": percent("dirty", dirty) / 100,
        "destage_bytes": size_bytes("destage", destage),
        "admission": admission_of(admit),
        "rate": 1.0 if sample is None else sample,
        "samples": samples,
        "seed": seed,
        "memory_bytes": size_bytes("memory", memory),
    }
    if behind is not None and sample is not None:
        raise InputError("the system behind a cache needs all misses; remove --sample or --behind", key="sample")
    system: Drive | Array | Stack | None = None
    hit_ns = 0
    if behind is not None:
        system, hit_ns = whole_system(behind), duration_ns("hit_time", hit_time)
        outside = choice("outside", outside, OUTSIDE)
    options["sizes"] = sizes_of(sizes, points, options["unit"]) or usual_sizes(traced, points, options, progress)
    report = cast(LabReport, _native.trace_cache(traced.source, options, progress))
    times: list[Responses] | None = None
    named: Behind | None = None
    if system is not None:
        before = {
            "system_name": system.name,
            "system": system.system,
            "hit_ns": hit_ns,
            "outside": outside,
            "seed": 1,
        }
        replayed = cast(BehindReport, _native.trace_cache_behind(traced.source, options, before, progress))
        times = replayed["times"]
        named = {"system": system.name, "hit_ns": hit_ns, "notes": replayed["notes"]}
    return CacheLab(traced.name, options, report, named, times)


def whole_system(named: System) -> Drive | Array | Stack:
    """Returns the system behind a cache. Raises ``InputError`` for a range of a system."""
    (system,) = loaded(named, {})
    if isinstance(system, str | os.PathLike) or system.span is not None:
        raise InputError(f"needs a whole system; remove the range from {named}", key="behind")
    return system


def unit_of(holds: str, block: str) -> Unit:
    """Returns the contents of a cache in the form of the compiled module."""
    match choice("holds", holds, UNITS):
        case "blocks":
            return {"blocks": {"bytes": size_bytes("block", block)}}
        case "objects":
            return "objects"
        case _:
            return "object_bytes"


def admission_of(text: str) -> Admission:
    """Returns the admission policy in the form of the compiled module."""
    if text == "all":
        return "all"
    if text == "second":
        return "second"
    if text.endswith("%"):
        return {"share": {"share": percent("admit", text) / 100}}
    try:
        return {"up_to": {"length_bytes": size_bytes("admit", text)}}
    except InputError:
        raise InputError(
            f"{text!r} is unknown; use all, second, a size such as 64KiB, or a share such as 50%", key="admit"
        ) from None


def sizes_of(stated: str | int | Iterable[str | int] | None, points: int, unit: Unit) -> list[int]:
    """Returns the distinct sizes of caches in order; empty if none is given."""
    if stated is None:
        return []
    if points < 2:
        raise InputError(f"must be at least 2, not {points}", key="points")
    parts: Sequence[str | int] = (
        stated.split(",") if isinstance(stated, str) else [stated] if isinstance(stated, int) else list(stated)
    )
    sizes: list[int] = []
    for part in parts:
        low, separator, high = (end.strip() for end in str(part).partition(".."))
        if separator:
            sizes += between(size_of(low, unit), size_of(high, unit), points, str(part))
        else:
            sizes.append(size_of(low, unit))
    return sorted(set(sizes))


def size_of(text: str, unit: Unit) -> int:
    """Parses a size in the cache's unit; a number without a unit counts blocks, objects or bytes."""
    if text.isdigit():
        size = whole("size", text)
    elif unit == "objects":
        raise InputError(f"{text} is a size in bytes, but the cache counts objects; use --holds bytes", key="size")
    else:
        size = size_bytes("size", text) // (unit["blocks"]["bytes"] if isinstance(unit, dict) else 1)
    if size < 1:
        raise InputError(f"{text} is smaller than one block or object", key="size")
    return size


def between(low: int, high: int, points: int, text: str) -> list[int]:
    """Returns sizes in geometric steps."""
    if low >= high:
        raise InputError(f"the range {text} is empty; put the lower end first", key="size")
    return [round(low * (high / low) ** (step / (points - 1))) for step in range(points)]


def usual_sizes(trace: Trace, points: int, options: LabOptions, progress: Progress | None) -> list[int]:
    """Returns sizes up to the trace's working set, which another pass determines."""
    if options["unit"] == "object_bytes":
        raise InputError("required for --holds bytes; give the cache sizes", key="size")
    report = _native.trace_cache(trace.source, {**options, "policies": ["fifo"], "sizes": [1]}, progress)
    touched = math.ceil(report["distinct"])
    if touched < 1:
        raise InputError(f"{trace.name}: no request transfers data")
    low = max(1, round(touched * SMALLEST))
    return sorted(set(between(low, touched, max(2, points), ""))) if low < touched else [touched]


class CacheLab(CacheRuns):
    """The result of the cache lab."""

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws miss ratios over sizes; the suffix is png, svg or pdf.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> lab = hs.caches("t.parquet", "lru", "1MiB,4MiB")
        >>> lab.plot("lab.png")
        """
        from headstack.report.draw import draw  # start-up time

        draw(misses_of(self), path)

    def to_report(self) -> Report:
        """Returns miss ratios, response times and the table as a report, which notebooks show.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> lab = hs.caches("t.parquet", "lru", "1MiB,4MiB")
        >>> lab.to_report().title
        't.parquet'
        """
        return report_of(self)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes ``to_report`` as one HTML file. Needs the page, which every built package contains.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> lab = hs.caches("t.parquet", "lru", "1MiB,4MiB")
        >>> lab.to_html("lab.html")
        """
        from headstack.report.html import write_html  # start-up time

        write_html(self.to_report(), path)


def sample_of(text: str | None) -> float | None:
    """Parses the share of the blocks to sample."""
    return None if text is None else number("--sample", text)
