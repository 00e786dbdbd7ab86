"""What caches would make of a trace: misses of many policies at many sizes, what goes to the back end, and response
times before a system of the catalogue."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstack import _native
from headstack._native import Field, InputError, version
from headstack.atomic_files import write_text
from headstack.runs import System, loaded
from headstack.stored import Stored
from headstack.tables import to_csv, to_parquet
from headstack.traces import Progress, Trace
from headstack.values import choice, duration_ns, number, percent, size_bytes, whole

if TYPE_CHECKING:
    from headstack.report.figures import Report

STORED = Stored("cache-lab")

POLICIES = (
    "lru",
    "fifo",
    "clock",
    "arc",
    "s3-fifo",
    "sieve",
    "lirs",
    "twoq",
    "slru",
    "lfu",
    "wtinylfu",
    "belady",
)
SPELLINGS = {"s3fifo": "s3-fifo", "2q": "twoq", "w-tinylfu": "wtinylfu", "opt": "belady"}
"""Other names of policies."""
USUAL = "lru,arc,s3-fifo,belady"
UNITS = ("blocks", "objects", "bytes")
WRITES = ("through", "back", "around", "read-only")
OUTSIDE = ("refuse", "fold", "drop")
POINTS = 8
"""Sizes of a range, where nobody says how many."""
SMALLEST = 0.01
"""Of what a trace touches: the smallest cache, where nobody says which."""

FIELDS = (
    Field("policy", "text", "", "which of what is held gives way"),
    Field("cache", "count", "", "size of the cache: blocks, objects, or bytes of objects"),
    Field("cache_bytes", "count", "bytes", "the same in bytes; empty where objects are counted"),
    Field("miss_ratio", "figure", "", "references that miss, over all"),
    Field("miss_ratio_low", "figure", "", "low end of its band of 95 %; empty where it is exact"),
    Field("miss_ratio_high", "figure", "", "high end of its band of 95 %; empty where it is exact"),
    Field("read_miss_ratio", "figure", "", "the same of reads"),
    Field("write_miss_ratio", "figure", "", "the same of writes"),
    Field("back_reads", "count", "", "reads of the back end, those of neighbours as one; empty of samples"),
    Field("back_read_bytes", "figure", "bytes", "read from the back end"),
    Field("back_writes", "count", "", "writes to the back end, destages among them; empty of samples"),
    Field("back_write_bytes", "figure", "bytes", "written to the back end"),
    Field("dirty_bytes", "figure", "bytes", "what the back end lacks in the end"),
    Field("mean_ms", "figure", "ms", "mean response time before the cache, simulated; empty without a system behind"),
    Field("p99_ms", "figure", "ms", "its 99th percentile"),
    Field("read_mean_ms", "figure", "ms", "mean response time of reads"),
    Field("read_p99_ms", "figure", "ms", "its 99th percentile"),
    Field("write_mean_ms", "figure", "ms", "mean response time of writes"),
    Field("write_p99_ms", "figure", "ms", "its 99th percentile"),
)
TIMES = tuple(field.name for field in FIELDS[-6:])


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
    """What caches of these policies and sizes would make of a trace, in one reading of it.

    A size is one of bytes (``"1GiB"``), a number of blocks or objects, or a range with ``points`` sizes, each as many
    times the one before (``"1GiB..1TiB"``); where none is given, they reach from a hundredth of what the trace touches
    to all of it. A cache ``holds`` ``"blocks"`` of ``block`` bytes, ``"objects"``, whole requests known by their first
    byte, or ``"bytes"`` of such. ``writes`` are taken in and go ``"through"`` at once or ``"back"`` when they leave or
    more than ``dirty`` of the cache is dirty, in runs of up to ``destage``; they go ``"around"`` and update what is
    held, or the cache is ``"read-only"``, and they throw it out. ``admit`` takes in ``"all"`` that misses, what misses
    for the ``"second"`` time, requests up to a size (``"64KiB"``), or a share by chance (``"50%"``).

    With ``sample``, such as 0.01, ``samples`` independent samples of so many of the blocks stand for all, and figures
    have a band. What misses is replayed in virtual time on a system ``behind`` the cache, where one is named; a hit
    takes ``hit_time``.

    >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
    >>> lab = hs.caches("t.parquet", "lru,belady", "1MiB")
    >>> lab.miss_ratio("belady", lab.rows[1]["cache"]) <= lab.miss_ratio("lru", lab.rows[0]["cache"])
    True
    """
    traced = trace if isinstance(trace, Trace) else Trace(trace)
    asked: dict[str, Any] = {
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
        raise InputError("sample: a system behind a cache has to see all that misses; leave one of them out")
    before = None
    if behind is not None:
        (system,) = loaded(behind, {})
        if isinstance(system, str | os.PathLike) or system.span is not None:
            raise InputError(f"behind: a whole system stands behind a cache, not {behind}")
        before = {
            "system_name": system.name,
            "system": json.loads(json.dumps(system.system)),
            "hit_ns": duration_ns("hit_time", hit_time),
            "outside": choice("outside", outside, OUTSIDE),
            "seed": 1,
        }
    asked["sizes"] = sizes_of(sizes, points, asked["unit"]) or usual_sizes(traced, points, asked, progress)
    report = json.loads(_native.trace_cache(traced.source, json.dumps(asked), progress))
    times = None
    if before is not None:
        told = _native.trace_cache_behind(traced.source, json.dumps(asked), json.dumps(before), progress)
        times = json.loads(told)
    named = None if before is None else {"system": before["system_name"], "hit_ns": before["hit_ns"]}
    return CacheLab(traced.name, asked, report, named, times)


def policies_of(given: str | Iterable[str]) -> list[str]:
    """Names of policies, each once, as the compiled part takes them."""
    names = given.split(",") if isinstance(given, str) else list(given)
    known = [SPELLINGS.get(name.strip().lower(), name.strip().lower()) for name in names]
    return list(dict.fromkeys(choice("policy", name, POLICIES) for name in known))


def unit_of(holds: str, block: str) -> Any:
    """What a cache holds, as the compiled part takes it."""
    match choice("holds", holds, UNITS):
        case "blocks":
            return {"blocks": {"bytes": size_bytes("block", block)}}
        case "objects":
            return "objects"
        case _:
            return "object_bytes"


def admission_of(text: str) -> Any:
    """What is taken in, as the compiled part takes it."""
    if text in ("all", "second"):
        return text
    if text.endswith("%"):
        return {"share": {"share": percent("admit", text) / 100}}
    try:
        return {"up_to": {"length_bytes": size_bytes("admit", text)}}
    except InputError:
        raise InputError(
            f"admit: {text!r} is unknown; allowed: all, second, a size such as 64KiB, a share such as 50%"
        ) from None


def sizes_of(given: str | int | Iterable[str | int] | None, points: int, unit: Any) -> list[int]:
    """Sizes of caches, in order, each once; empty where none is given."""
    if given is None:
        return []
    if points < 2:
        raise InputError(f"points: must be at least 2, not {points}")
    parts: Sequence[str | int] = (
        given.split(",") if isinstance(given, str) else [given] if isinstance(given, int) else list(given)
    )
    sizes: list[int] = []
    for part in parts:
        low, separator, high = (end.strip() for end in str(part).partition(".."))
        if separator:
            sizes += between(size_of(low, unit), size_of(high, unit), points, str(part))
        else:
            sizes.append(size_of(low, unit))
    return sorted(set(sizes))


def size_of(text: str, unit: Any) -> int:
    """A size in what the cache is measured by: a bare number counts blocks, objects or bytes."""
    if text.isdigit():
        size = whole("size", text)
    elif unit == "objects":
        raise InputError(f"size: caches of so many objects have no size in bytes, such as {text}; --holds bytes has")
    else:
        size = size_bytes("size", text) // (unit["blocks"]["bytes"] if isinstance(unit, dict) else 1)
    if size < 1:
        raise InputError(f"size: {text} is less than one block or object")
    return size


def between(low: int, high: int, points: int, text: str) -> list[int]:
    """So many sizes, each as many times the one before."""
    if low >= high:
        raise InputError(f"size: the range {text} is empty; the lower end comes first")
    return [round(low * (high / low) ** (step / (points - 1))) for step in range(points)]


def usual_sizes(trace: Trace, points: int, asked: dict[str, Any], progress: Progress | None) -> list[int]:
    """Sizes up to all that the trace touches, of which one more reading tells how much it is."""
    if asked["unit"] == "object_bytes":
        raise InputError("size: say how many bytes of whole requests caches hold")
    told = json.loads(
        _native.trace_cache(trace.source, json.dumps(asked | {"policies": ["fifo"], "sizes": [1]}), progress)
    )
    touched = math.ceil(told["distinct"])
    if touched < 1:
        raise InputError(f"{trace.name}: none of its requests transfers data")
    low = max(1, round(touched * SMALLEST))
    return sorted(set(between(low, touched, max(2, points), ""))) if low < touched else [touched]


@dataclass(frozen=True)
class CacheLab:
    """What caches made of a trace."""

    name: str
    """The trace's."""
    asked: dict[str, Any]
    """What was asked for."""
    report: dict[str, Any]
    """What was counted: shares from 0 to 1, sizes in bytes."""
    behind: dict[str, Any] | None
    """The ``system`` behind, and ``hit_ns``; ``None`` without one."""
    times: list[dict[str, Any]] | None
    """Response times before each cache, in ns; of those that know the future there are none."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each policy and size, with the columns of ``FIELDS``."""
        times = {(entry["policy"], entry["cache"]): entry for entry in self.times or []}
        rows = []
        for entry in self.report["caches"]:
            row: dict[str, Any] = {field.name: entry.get(field.name) for field in FIELDS}
            row["miss_ratio_low"], row["miss_ratio_high"] = entry["miss_ratio"]["low"], entry["miss_ratio"]["high"]
            for name in ("miss_ratio", "read_miss_ratio", "write_miss_ratio"):
                row[name] = None if entry[name] is None else entry[name]["value"]
            time = times.get((entry["policy"], entry["cache"]), {})
            for name in TIMES:
                ns = time.get(name.replace("_ms", "_ns"))
                row[name] = None if ns is None else ns / 1e6
            rows.append(row)
        return rows

    def miss_ratio(self, policy: str, cache: int) -> float:
        """Misses over references of one of the caches, by its size in blocks, objects or bytes as ``rows`` has it.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> lab = hs.caches("t.parquet", "lru", "1MiB,4MiB")
        >>> 0 < lab.miss_ratio("lru", 256) <= 1
        True
        """
        (name,) = policies_of(policy)
        for row in self.rows:
            if (row["policy"], row["cache"]) == (name, cache):
                return float(row["miss_ratio"])
        raise InputError(f"{self.name}: no {name} cache of {cache} was asked about")

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Everything as JSON text; written to ``path`` if one is given.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> lab = hs.caches("t.parquet", "lru", "1MiB,4MiB")
        >>> '"cache": 256' in lab.to_json("lab.json")
        True
        """
        told = STORED.head | {
            "trace": self.name,
            "version": version(),
            "asked": self.asked,
            "report": self.report,
            "behind": self.behind,
            "times": self.times,
        }
        text = json.dumps(told, ensure_ascii=False, indent=1) + "\n"
        if path is not None:
            write_text(path, text)
        return text

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CacheLab:
        """What ``to_json`` wrote.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> lab = hs.caches("t.parquet", "lru", "1MiB,4MiB")
        >>> _ = lab.to_json("lab.json")
        >>> hs.CacheLab.load("lab.json") == lab
        True
        """
        try:
            told = json.loads(Path(path).read_text(encoding="utf-8"))
            told = STORED.upgraded(os.fspath(path), dict(told))
            return cls(told["trace"], told["asked"], told["report"], told["behind"], told["times"])
        except InputError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{os.fspath(path)}: is not what caches made of a trace: {error!r}") from None

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """``rows`` as CSV.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> lab = hs.caches("t.parquet", "lru", "1MiB,4MiB")
        >>> lab.to_csv().splitlines()[1].split(",")[:3]
        ['lru', '256', '1048576']
        """
        return to_csv([field.name for field in FIELDS], self.rows, path)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """``rows`` as Parquet.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> lab = hs.caches("t.parquet", "lru", "1MiB,4MiB")
        >>> lab.to_parquet("lab.parquet")
        """
        to_parquet(FIELDS, self.rows, path)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws misses over sizes; the suffix is png, svg or pdf.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> lab = hs.caches("t.parquet", "lru", "1MiB,4MiB")
        >>> lab.plot("lab.png")
        """
        from headstack.report.cache_report import misses_of
        from headstack.report.draw import draw

        draw(misses_of(self), path)

    def to_report(self) -> Report:
        """Misses, response times and the table as a report, which notebooks show.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> lab = hs.caches("t.parquet", "lru", "1MiB,4MiB")
        >>> lab.to_report().title
        't.parquet'
        """
        from headstack.report.cache_report import report_of

        return report_of(self)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes ``to_report`` as one HTML file. Needs the page, which a build of the package holds.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> lab = hs.caches("t.parquet", "lru", "1MiB,4MiB")
        >>> lab.to_html("lab.html")
        """
        from headstack.report.html import write_html

        write_html(self.to_report(), path)

    @property
    def remarks(self) -> list[str]:
        """How figures came about, in sentences."""
        report = self.report
        reads, writes = report["references"]
        what = "blocks" if report["unit"] == "blocks" else "whole requests"
        told = [
            f"{report['requests']:,} requests refer to {what} {reads + writes:,} times, {writes:,} of them to write."
        ]
        if report["samples"] > 1:
            told.append(
                f"Estimated from {report['samples']} independent samples of 1 in {1 / report['sampled_rate']:,.0f}; "
                "the bands are of 95 %."
            )
        else:
            told.append(f"Exact; {report['distinct']:,.0f} of them are different.")
        if self.behind is not None:
            hit = _native.format_duration_ns(self.behind["hit_ns"])
            told.append(
                "Response times are simulated: what misses is replayed at its recorded time on "
                f"{self.behind['system']}, and a hit takes {hit}, which is stated."
            )
        return told


def sample_of(text: str | None) -> float | None:
    """A share of the blocks, as typed."""
    return None if text is None else number("--sample", text)
