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
"""Alternative names of policies."""

FIELDS = (
    Field("policy", "text", "", "eviction policy"),
    Field("cache", "count", "", "size of the cache in blocks, objects, or bytes of objects"),
    Field("cache_bytes", "count", "bytes", "size of the cache in bytes; empty if objects are counted"),
    Field("miss_ratio", "figure", "", "share of the references that miss"),
    Field("miss_ratio_low", "figure", "", "lower bound of its 95 % confidence interval; empty if it is exact"),
    Field("miss_ratio_high", "figure", "", "upper bound of its 95 % confidence interval; empty if it is exact"),
    Field("read_miss_ratio", "figure", "", "share of the reads that miss"),
    Field("write_miss_ratio", "figure", "", "share of the writes that miss"),
    Field("back_reads", "count", "", "reads from the back end, with adjacent blocks merged; empty if sampled"),
    Field("back_read_bytes", "figure", "bytes", "bytes read from the back end"),
    Field("back_writes", "count", "", "writes to the back end, including destages; empty if sampled"),
    Field("back_write_bytes", "figure", "bytes", "bytes written to the back end"),
    Field("dirty_bytes", "figure", "bytes", "dirty bytes in the cache at the end"),
    Field("mean_ms", "figure", "ms", "simulated mean latency in front of the cache; empty without a system behind it"),
    Field("p99_ms", "figure", "ms", "99th percentile of this latency"),
    Field("read_mean_ms", "figure", "ms", "mean latency of reads"),
    Field("read_p99_ms", "figure", "ms", "99th percentile of the latency of reads"),
    Field("write_mean_ms", "figure", "ms", "mean latency of writes"),
    Field("write_p99_ms", "figure", "ms", "99th percentile of the latency of writes"),
)


def policies_of(policies: str | Iterable[str]) -> list[str]:
    """Returns the distinct names of policies, in the form of the compiled module."""
    names = policies.split(",") if isinstance(policies, str) else list(policies)
    spelt = [SPELLINGS.get(name.strip().lower(), name.strip().lower()) for name in names]
    return list(dict.fromkeys(choice("policy", name, POLICIES) for name in spelt))


def _row(entry: CacheReport, times: Responses | None) -> CacheRow:
    """Returns the row of a cache, with latencies if there is a system behind the cache."""
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
    """Miss ratios of cache policies by size, and latencies with a system behind the caches. ``CacheLab`` adds pictures
    and reports."""

    name: str
    """The trace's name."""
    options: LabOptions
    """The options of the lab."""
    report: LabReport
    """Counts of the simulation: shares from 0 to 1, sizes in bytes."""
    behind: Behind | None
    """``system`` behind the caches, ``hit_ns``, and ``notes`` on the trace's clock and addresses; ``None`` without a
    system."""
    times: list[Responses] | None
    """Latencies with each cache, in ns; policies that know the future have none."""

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
        raise InputError(f"{self.name}: no {name} cache of {cache} was simulated")

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns all data as JSON text, and writes the text if ``path`` is given.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> lab = hs.caches("t.parquet", "lru", "1MiB,4MiB")
        >>> '"cache": 256' in lab.to_json("lab.json")
        True
        """
        fields = STORED.head | {
            "trace": self.name,
            "version": version(),
            "asked": self.options,
            "report": self.report,
            "behind": self.behind,
            "times": self.times,
        }
        text = json.dumps(fields, ensure_ascii=False, indent=1) + "\n"
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
            fields = read_json(Path(path))
            fields = STORED.upgraded(os.fspath(path), dict(fields))
            return cls(fields["trace"], fields["asked"], fields["report"], fields["behind"], fields["times"])
        except InputError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{os.fspath(path)}: not a result of trace cache: {error!r}") from None

    @property
    def remarks(self) -> list[str]:
        """Notes on the method of the figures, in sentences."""
        report = self.report
        reads, writes = report["references"]
        kind = "blocks" if report["unit"] == "blocks" else "whole requests"
        notes = [f"{report['requests']:,} requests reference {kind} {reads + writes:,} times, {writes:,} for writes."]
        if report["samples"] > 1:
            notes.append(
                f"Estimated from {report['samples']} independent samples of 1 in {1 / report['sampled_rate']:,.0f}; "
                "bands are 95 % confidence intervals."
            )
        else:
            notes.append(f"The result is exact; {report['distinct']:,.0f} references are distinct.")
        if self.behind is not None:
            hit = _native.format_duration_ns(self.behind["hit_ns"])
            notes.append(
                f"Latencies are simulated: misses are replayed at their recorded times on {self.behind['system']}, "
                f"and a hit takes {hit}, as set."
            )
            notes += [f"{note[0].upper()}{note[1:]}." for note in self.behind.get("notes", [])]
        return notes
