"""Errors of SSDs under random requests, for `intervals.py`: data-center drives of ssdiq, consumer drives of iocost.

Left out of FOLDER/measured: reads beside writes (the law of suspended programs was fitted to the same drives);
diskplorer's systems (open loop); the Sabrent drive, whose sheet was not read; instance disks of clouds, which are
described by these measurements; and models without a description or with an ambiguous name, such as Samsung SSD 870.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import headstack as hs
from headstack.results.intervals.calibration import Load, Refusal
from headstack.results.intervals.described import stated_share
from headstack.results.intervals.workloads import load_of, state_of

Cell = dict[str, Any]

REQUESTS = 400_000
"""Requests of a worn-in drive: 16 or more of its write buffers and hundreds of collected blocks."""

SSDIQ = "gabriel-haas/ssdiq-pub 8a0a3f4 (PVLDB 18(11), 2025)"
WRITERS_DEPTH = 512
"""Outstanding writes of four threads: rate times median latency is 512 on three of the drives."""
FULL_DEPTH = 8
"""A worn-in drive is saturated from this depth on: while its buffer has space, it acknowledges a write in 8 to 12 us,
so that eight outstanding writes request four times its rate or more. Its rate is then that at depth 512, and its mean
latency follows by Little's law."""

IOCOST = "iocost-benchmark/iocost-benchmarks b2fc8dd (Apache-2.0)"
CONSUMER = {
    "Samsung SSD 990 PRO 2TB": "990-pro-2tb",
    "Lexar SSD NM790 2TB": "nm790-2tb",
    "WD_BLACK SN770 1TB": "black-sn770-1tb",
}
FILE = "0..16GiB"
"""The file on btrfs, without copy-on-write, through which iocost measured."""


class Sheet(NamedTuple):
    """The data sheet of a drive of ssdiq, as quoted by its authors (paper/devices.csv)."""

    year: int
    size_bytes: int
    generation: str
    read_iops: int
    write_iops: int
    read_mb_per_s: int
    write_mb_per_s: int
    latencies_us: tuple[int, int] | None = None
    """Latencies of reads and of writes; ``None`` if not stated."""

    def text(self, name: str) -> str:
        """Returns the drive's file."""
        latencies = "" if self.latencies_us is None else 'read_latency = "{}us"\nwrite_latency = "{}us"\n'
        return (
            f'name = "{name}"\nyear = {self.year}\n[capacity]\nsize = "{self.size_bytes}B"\n'
            f'[flash]\ngeneration = "{self.generation}"\n[buffer]\npower_loss_protected = true\n'
            '[interface]\nkind = "nvme"\ngeneration = 4\n[stated]\n'
            f"random_read = {{ iops = {self.read_iops}, depth = 256 }}\n"
            f'random_write = {{ iops = {self.write_iops}, depth = 256, state = "steady" }}\n'
            f'sequential_read = "{self.read_mb_per_s}MB/s"\nsequential_write = "{self.write_mb_per_s}MB/s"\n'
        ) + latencies.format(*(self.latencies_us or ()))


SHEETS = {
    "Samsung PM9A3 960GB": Sheet(2021, 960_197_124_096, "tlc-128", 580_000, 70_000, 6500, 1500),
    "Solidigm D7-P5520 1.92TB": Sheet(2022, 1_920_383_410_176, "tlc-128", 700_000, 114_000, 5300, 1900, (75, 15)),
    "Micron 7450 PRO 960GB": Sheet(2022, 960_197_124_096, "tlc-176", 530_000, 85_000, 6800, 1400, (80, 15)),
    "Micron 7450 MAX": Sheet(2022, 800_166_076_416, "tlc-176", 530_000, 145_000, 6800, 1400, (80, 15)),
}


def cells(workload: str, load: Load | Refusal, measured: dict[str, float], predicted: dict[str, float]) -> list[Cell]:
    """Returns the scores of a load, for the measured figures."""
    assert isinstance(load, Load), load
    return [
        {
            "workload": workload,
            "kind": load.kind,
            "depth": load.depth,
            "size_bytes": round(load.size_bytes),
            **({"state": load.state} if load.state else {}),
            "figure": figure,
            "log_ratio": round(math.log(value / predicted[figure]), 5),
        }
        for figure, value in measured.items()
    ]


def named(device: str, described: hs.Drive, scores: list[Cell]) -> dict[str, Any]:
    """Returns a device with its scores."""
    year = described.summary["year"]
    return {"device": device, "year": year, "stated_share": stated_share(described), "cells": scores}


def figures_of(row: dict[str, Any]) -> dict[str, float]:
    """Returns the simulated figures."""
    return {"rate": row["iops"], "mean": row["mean_ms"], "p50": row["p50_ms"], "p99": row["p99_ms"]}


def load_in_state(results: hs.Results, run: int, state: str) -> Load | Refusal:
    """Returns the load of a run of an SSD that begins in a state."""
    load = load_of(results.whole(run), results[run])
    return load._replace(state=state_of(load.kind, {"ssd": {"state": state}})) if isinstance(load, Load) else load


def of_ssdiq(folder: Path, temporary: Path) -> Iterator[dict[str, Any]]:
    """Yields four models under random writes until steady, alone and next to 4 to 8 % reads at a fixed rate. Both units
    of the P5520 are one model."""
    with open(folder / "ssdiq_writes_by_pattern.csv", newline="", encoding="utf-8") as file:
        patterns = [row for row in csv.DictReader(file) if row["pattern"] == "uniform" and row["threads"] == "4"]
    with open(folder / "ssdiq_latency_under_load.csv", newline="", encoding="utf-8") as file:
        probed = list(csv.DictReader(file))
    for model, sheet in SHEETS.items():
        path = temporary / f"{model.replace(' ', '-').lower()}.toml"
        path.write_text(sheet.text(model), encoding="utf-8")
        # A smaller used capacity is another amount of spare flash.
        whole_gib = sheet.size_bytes // 2**30
        alone = [
            row for row in patterns if row["device"].startswith(model) and abs(int(row["size_gib"]) - whole_gib) <= 1
        ]
        rate = statistics.median(float(row["steady_writes_per_s"]) for row in alone)
        p50, p99 = (statistics.median(float(row[name]) for row in alone) / 1e3 for name in ("w50_us", "w99_us"))
        mean = WRITERS_DEPTH / rate * 1e3
        scores = _steady_writes(path, 0.0, {"rate": rate, "mean": mean, "p50": p50, "p99": p99})
        for unit in sorted({row["device"] for row in probed if row["device"].startswith(model)}):
            of_unit = [row for row in probed if row["device"] == unit]
            most = max(float(row["total_writes_per_s"]) for row in of_unit)
            saturated = [row for row in of_unit if float(row["offered_rate"]) > 1.05 * most]
            reads, writes = (
                statistics.median(float(row[f"total_{kind}_per_s"]) for row in saturated)
                for kind in ("reads", "writes")
            )
            both = reads + writes
            scores += _steady_writes(path, 100 * reads / both, {"rate": both, "mean": WRITERS_DEPTH / both * 1e3})
        yield named(model, hs.Drive.load(path), scores) | {"source": SSDIQ}


def _steady_writes(path: Path, reads_percent: float, measured: dict[str, float]) -> list[Cell]:
    """Returns the scores of random writes of a worn-in drive, at depth 512 and, for figures that follow from the rate,
    at depth 8."""
    workload = "4 KiB random writes" + (f", {reads_percent:.0f} % reads" if reads_percent else "")
    options = {"read": f"{reads_percent:.6g}", "state": "steady", "requests": REQUESTS}
    results = hs.run(str(path), depth=[FULL_DEPTH, WRITERS_DEPTH], **options)
    shallow = {"rate": measured["rate"], "mean": FULL_DEPTH / measured["rate"] * 1e3}
    return [
        cell
        for run, of_depth in enumerate((shallow, measured))
        for cell in cells(workload, load_in_state(results, run, "steady"), of_depth, figures_of(results[run]))
    ]


def of_iocost(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields three consumer drives under fio for 120 s per workload: random 4 KiB reads and writes of one job at depth
    64, including its processor core and file system, and sequential reads."""
    with open(folder / "iocost_rates.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for model, drive in CONSUMER.items():
        scores: list[Cell] = []
        for workload, column, request_bytes, state, options in (
            ("4 KiB random reads", "rand_read_4k_iops", None, "filled", {"read": "100", "depth": 64}),
            ("4 KiB random writes", "rand_write_4k_iops", None, "steady", {"read": "0", "depth": 64}),
            ("sequential reads", "seq_read_bytes_per_s", 2**27, "filled", {"random": "0", "size": "128MiB"}),
        ):
            requests = REQUESTS if request_bytes is None else 2000
            results = hs.run(drive, range=FILE, state=state, requests=requests, **options)
            rate = statistics.median(float(row[column]) for row in rows if row["device_model"] == model)
            rate /= request_bytes or 1
            measured = {"rate": rate, "mean": results[0]["depth"] / rate * 1e3}
            scores += cells(workload, load_in_state(results, 0, state), measured, figures_of(results[0]))
        yield named(drive, hs.Drive.load(drive), scores) | {"source": IOCOST}
