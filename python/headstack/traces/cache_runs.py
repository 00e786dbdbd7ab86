"""``CacheRuns``, the data of the cache lab: miss ratios of policies at sizes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from headstack import _native
from headstack._native import Field, InputError, version
from headstack.io.atomic_files import write_text
from headstack.io.json_text import read_json
from headstack.io.stored import Stored
from headstack.io.tables import Tabular
from headstack.io.values import choice
from headstack.traces.cache_types import Behind, CacheReport, CacheRow, LabOptions, LabReport, Responses, Share

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


def policies_of(given: str | Iterable[str]) -> list[str]:
    """Returns the distinct names of policies, as the compiled part takes them."""
    names = given.split(",") if isinstance(given, str) else list(given)
    known = [SPELLINGS.get(name.strip().lower(), name.strip().lower()) for name in names]
    return list(dict.fromkeys(choice("policy", name, POLICIES) for name in known))


def _row(entry: CacheReport, times: Responses | None) -> CacheRow:
    """Returns the row of a cache, with its response times if there is a system behind it."""
    return {
        "policy": entry["policy"],
        "cache": entry["cache"],
        "cache_bytes": entry["cache_bytes"],
        "miss_ratio": entry["miss_ratio"]["value"],
        "miss_ratio_low": entry["miss_ratio"]["low"],
        "miss_ratio_high": entry["miss_ratio"]["high"],
        "read_miss_ratio": _value(entry["read_miss_ratio"]),
        "write_miss_ratio": _value(entry["write_miss_ratio"]),
        "back_reads": entry["back_reads"],
        "back_read_bytes": entry["back_read_bytes"],
        "back_writes": entry["back_writes"],
        "back_write_bytes": entry["back_write_bytes"],
        "dirty_bytes": entry["dirty_bytes"],
        "mean_ms": None if times is None else _ms(times["mean_ns"]),
        "p99_ms": None if times is None else _ms(times["p99_ns"]),
        "read_mean_ms": None if times is None else _ms(times["read_mean_ns"]),
        "read_p99_ms": None if times is None else _ms(times["read_p99_ns"]),
        "write_mean_ms": None if times is None else _ms(times["write_mean_ns"]),
        "write_p99_ms": None if times is None else _ms(times["write_p99_ns"]),
    }


def _value(share: Share | None) -> float | None:
    return None if share is None else share["value"]


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6


@dataclass(frozen=True)
class CacheRuns(Tabular):
    """Miss ratios of cache policies at sizes, and response times with a system behind them. ``CacheLab`` draws and
    writes them.
    """

    name: str
    """The trace's name."""
    asked: LabOptions
    """The options of the lab."""
    report: LabReport
    """The counts: shares from 0 to 1, sizes in bytes."""
    behind: Behind | None
    """The ``system`` behind, ``hit_ns``, and ``notes`` on the trace's clock and addresses; ``None`` without one."""
    times: list[Responses] | None
    """Response times with each cache, in ns; policies that know the future have none."""

    fields = FIELDS

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """A row for each policy and size."""
        return self.rows

    @property
    def rows(self) -> list[CacheRow]:
        """A row for each policy and size, with the columns of ``FIELDS``."""
        times = {(entry["policy"], entry["cache"]): entry for entry in self.times or []}
        return [_row(entry, times.get((entry["policy"], entry["cache"]))) for entry in self.report["caches"]]

    def miss_ratio(self, policy: str, cache: int) -> float:
        """Returns the miss ratio of one of the caches, by its size in blocks, objects or bytes as in ``rows``.

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
        """Returns all data as JSON text and, if ``path`` is given, writes it there.

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
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Loads the output of ``to_json``.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> lab = hs.caches("t.parquet", "lru", "1MiB,4MiB")
        >>> _ = lab.to_json("lab.json")
        >>> hs.CacheLab.load("lab.json") == lab
        True
        """
        try:
            told = read_json(Path(path))
            told = STORED.upgraded(os.fspath(path), dict(told))
            return cls(told["trace"], told["asked"], told["report"], told["behind"], told["times"])
        except InputError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{os.fspath(path)}: is not what caches made of a trace: {error!r}") from None

    @property
    def remarks(self) -> list[str]:
        """Notes on the method of the figures, in sentences."""
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
            told += [f"{note[0].upper()}{note[1:]}." for note in self.behind.get("notes", [])]
        return told
