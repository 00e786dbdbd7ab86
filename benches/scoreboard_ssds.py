"""SSDs and local disks of cloud instances for `scoreboard.py`: SSD-iq, resctl-bench, one Sabrent drive, iotune.

Left out of FOLDER/measured: models of resctl-bench without a sheet, with an ambiguous name, such as Samsung SSD 870, or
slower than their link allows, such as Micron 2200 and 3400; and reported arrays, which state no queue depth.
"""

from __future__ import annotations

import csv
import statistics
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scoreboard_fio import point, with_totals

import headstack as hs
from headstack import _native
from headstack.comparison.scoreboard.measured_device import MeasuredDevice, Point

SSDIQ = "gabriel-haas/ssdiq-pub 8a0a3f4 (PVLDB 18(11), 2025)", "none stated; not shipped"
WRITERS_DEPTH = 512
"""Outstanding writes of four threads: rate times median latency is 512 on three of the drives."""
FULL_DEPTH = 8
"""A worn-in drive is saturated from this depth on: while its buffer has space, it acknowledges a write in 8 to 12 us,
so that eight outstanding writes request four times its rate or more. Its rate is then that at depth 512, and its mean
latency follows by Little's law."""
FITTED_READS = "the law of suspended programs, to reads next to writes of four drives including this one"
BELOW = 0.9
"""Share of the largest write rate below which latencies under load are scored; above, the queue grows."""

IOCOST = "iocost-benchmark/iocost-benchmarks b2fc8dd", "Apache-2.0"
FILE = "0..16GiB"
"""The file on btrfs, without copy-on-write, through which resctl-bench measured."""
LARGE = 2**27

SABRENT = "SamYaple/fio-plot-results 7a6f8e9", "none stated; not shipped"
RATES = Path(__file__).resolve().parent.parent / "catalogue/instances/rates.toml"
SCYLLA = "scylladb/scylla-machine-image f25b2c5, iotune", "Apache-2.0"
FITTED_RATES = "its rates, which are those of this measurement"
IOTUNE_DEPTH = 4096
"""A queue depth at which every entry of the catalogue reaches its rate."""


class Sheet(NamedTuple):
    """The data sheet of a drive."""

    year: int
    size_bytes: int
    generation: str
    read_iops: int | None
    write_iops: int | None
    read_mb_per_s: int
    write_mb_per_s: int
    latencies_us: tuple[int, int] | None = None
    """Latencies of reads and of writes; ``None`` if not stated."""
    is_protected: bool = True
    """Whether capacitors protect the buffer, as in drives for data centers."""
    pcie: int = 4

    def text(self, name: str) -> str:
        """Returns the drive's file."""
        latencies = "" if self.latencies_us is None else 'read_latency = "{}us"\nwrite_latency = "{}us"\n'
        depth, state = (256, "steady") if self.is_protected else (32, "burst")
        reads = f"random_read = {{ iops = {self.read_iops}, depth = {depth} }}\n" if self.read_iops else ""
        writes = (
            f'random_write = {{ iops = {self.write_iops}, depth = {depth}, state = "{state}" }}\n'
            if self.write_iops
            else ""
        )
        return (
            f'name = "{name}"\nyear = {self.year}\n[capacity]\nsize = "{self.size_bytes}B"\n'
            f'[flash]\ngeneration = "{self.generation}"\n'
            f"[buffer]\npower_loss_protected = {str(self.is_protected).lower()}\n"
            f'[interface]\nkind = "nvme"\ngeneration = {self.pcie}\n[stated]\n{reads}{writes}'
            f'sequential_read = "{self.read_mb_per_s}MB/s"\nsequential_write = "{self.write_mb_per_s}MB/s"\n'
        ) + latencies.format(*(self.latencies_us or ()))


SHEETS = {
    "Samsung PM9A3 960GB": Sheet(2021, 960_197_124_096, "tlc-128", 580_000, 70_000, 6500, 1500),
    "Solidigm D7-P5520 1.92TB": Sheet(2022, 1_920_383_410_176, "tlc-128", 700_000, 114_000, 5300, 1900, (75, 15)),
    "Micron 7450 PRO 960GB": Sheet(2022, 960_197_124_096, "tlc-176", 530_000, 85_000, 6800, 1400, (80, 15)),
    "Micron 7450 MAX": Sheet(2022, 800_166_076_416, "tlc-176", 530_000, 145_000, 6800, 1400, (80, 15)),
}
"""As quoted by the authors of SSD-iq (paper/devices.csv)."""


def _consumer(year: int, gb: int, generation: str, rates: tuple[int, ...], pcie: int) -> Sheet:
    """Returns the sheet of a consumer drive of a nominal capacity, from memory: confidence C."""
    reads, writes, read_mb, write_mb = rates
    return Sheet(year, gb * 10**9, generation, reads or None, writes or None, read_mb, write_mb, None, False, pcie)


CONSUMER: dict[str, str | Sheet] = {
    "Samsung SSD 990 PRO 2TB": "990-pro-2tb",
    "Lexar SSD NM790 2TB": "nm790-2tb",
    "WD_BLACK SN770 1TB": "black-sn770-1tb",
    "WD_BLACK SN850X 1000GB": _consumer(2022, 1000, "tlc-128", (800_000, 1_100_000, 7300, 6300), 4),
    "KINGSTON SA2000M8250G": _consumer(2019, 250, "tlc-96", (150_000, 180_000, 2000, 1100), 3),
    "CT1000P3PSSD8": _consumer(2022, 1000, "qlc-192", (0, 0, 5000, 3600), 4),
    "INTEL SSDPEKKA256G7": _consumer(2017, 256, "tlc-32", (71_000, 112_000, 1570, 540), 3),
    "SAMSUNG MZVLW256HEHP-00000": _consumer(2016, 256, "tlc-64", (250_000, 180_000, 2800, 1100), 3),
}
ROCKET = _consumer(2021, 2000, "tlc-96", (650_000, 700_000, 7100, 6600), 4)
ROCKET_NAME = "Sabrent Rocket 4 Plus 2TB"


def _described(sheet: str | Sheet, name: str, folder: Path) -> str:
    """Writes the drive's file, and returns its name; a drive of the catalogue has its own."""
    if isinstance(sheet, str):
        return sheet
    file = f"{name.replace(' ', '-').lower()}-sheet.toml"
    (folder / file).write_text(sheet.text(name), encoding="utf-8")
    return file


def ssdiq(data: Path, folder: Path) -> Iterator[tuple[str, MeasuredDevice]]:
    """Yields four models under random writes until steady, alone and next to 4 to 8 % reads at a fixed rate, and their
    latencies at arrival rates, to which a law was fitted. Both units of the P5520 are one model."""
    measured = data / "measured"
    with open(measured / "ssdiq_writes_by_pattern.csv", newline="", encoding="utf-8") as file:
        patterns = [row for row in csv.DictReader(file) if row["pattern"] == "uniform" and row["threads"] == "4"]
    with open(measured / "ssdiq_latency_under_load.csv", newline="", encoding="utf-8") as file:
        probed = list(csv.DictReader(file))
    for model, sheet in SHEETS.items():
        described = _described(sheet, model, folder)
        # A smaller used capacity is another amount of spare flash.
        whole_gib = sheet.size_bytes // 2**30
        alone = [
            row for row in patterns if row["device"].startswith(model) and abs(int(row["size_gib"]) - whole_gib) <= 1
        ]
        rate = statistics.median(float(row["steady_writes_per_s"]) for row in alone)
        p50, p99 = (statistics.median(float(row[name]) for row in alone) / 1e3 for name in ("w50_us", "w99_us"))
        points = _steady(0.0, {"rate": rate, "mean": WRITERS_DEPTH / rate * 1e3, "p50": p50, "p99": p99})
        loaded: list[Point] = []
        for unit in sorted({row["device"] for row in probed if row["device"].startswith(model)}):
            of_unit = [row for row in probed if row["device"] == unit]
            most = max(float(row["total_writes_per_s"]) for row in of_unit)
            saturated = [row for row in of_unit if float(row["offered_rate"]) > 1.05 * most]
            reads, writes = (
                statistics.median(float(row[f"total_{kind}_per_s"]) for row in saturated)
                for kind in ("reads", "writes")
            )
            both = reads + writes
            points += _steady(100 * reads / both, {"rate": both, "mean": WRITERS_DEPTH / both * 1e3})
            loaded += [one for row in of_unit if float(row["total_writes_per_s"]) < BELOW * most for one in _probe(row)]
        name = model.replace(" ", "-").lower()
        yield name, MeasuredDevice(model, described, "sheet", *SSDIQ, tuple(points), folder=folder)
        common = ("sheet", *SSDIQ, tuple(loaded))
        yield f"{name}-load", MeasuredDevice(model, described, *common, fitted=FITTED_READS, folder=folder)


def _steady(reads_percent: float, measured: dict[str, float]) -> list[Point]:
    """Returns random writes of a worn-in drive at depth 512 and, for figures that follow from the rate, at depth 8."""
    shallow = {"rate": measured["rate"], "mean": FULL_DEPTH / measured["rate"] * 1e3}
    return [
        Point("randrw", figures, depth, 1, reads_percent, "4KiB", state="steady")
        if reads_percent
        else Point("randwrite", figures, depth, 1, 0.0, "4KiB", state="steady")
        for depth, figures in ((FULL_DEPTH, shallow), (WRITERS_DEPTH, measured))
    ]


def _probe(row: dict[str, str]) -> Iterator[Point]:
    """Yields the latencies of reads and of writes of a probe, next to random writes at a rate."""
    reads, writes = float(row["total_reads_per_s"]), float(row["total_writes_per_s"])
    quantiles = {"p50": "50p", "p95": "95p", "p99": "99p", "p99.9": "99p9", "mean": "mean"}
    for kind in ("read", "write"):
        yield Point(
            "randrw",
            {figure: float(row[f"{kind}_{name}_us"]) / 1e3 for figure, name in quantiles.items()},
            read_percent=round(100 * reads / (reads + writes), 2),
            block_size="4KiB",
            latency_of=f"{kind}s",
            offered_iops=round(reads + writes),
            state="steady",
        )


def iocost(data: Path, folder: Path) -> Iterator[tuple[str, MeasuredDevice]]:
    """Yields consumer drives under fio for 120 s per workload: random 4 KiB reads and writes of one job at depth 64,
    including its processor core and file system, and sequential reads."""
    with open(data / "measured" / "iocost_rates.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for model, sheet in CONSUMER.items():
        points = []
        for rw, column, depth, size, state in (
            ("randread", "rand_read_4k_iops", 64, "4KiB", "filled"),
            ("randwrite", "rand_write_4k_iops", 64, "4KiB", "steady"),
            ("read", "seq_read_bytes_per_s", 1, "128MiB", "filled"),
        ):
            rate = statistics.median(float(row[column]) for row in rows if row["device_model"] == model)
            rate /= LARGE if rw == "read" else 1
            figures = {"rate": rate, "mean": depth / rate * 1e3}
            reads = 0.0 if rw == "randwrite" else 100.0
            points.append(Point(rw, figures, depth, 1, reads, size, state=state, range=FILE))
        name = hs.Drive.load(sheet).name if isinstance(sheet, str) else model
        common = (_described(sheet, model, folder), "sheet", *IOCOST, tuple(points))
        yield model.replace(" ", "-").lower(), MeasuredDevice(name, *common, folder=folder)


def sabrent(data: Path, folder: Path) -> Iterator[tuple[str, MeasuredDevice]]:
    """Yields one drive with one job: writes when it was fresh, reads and mixes when it was worn in. Its worn-in writes
    alternate between two rates (a cache that empties), which no mean of a minute describes, so they are left out."""
    with open(data / "measured" / "sabrent_rocket4plus_fio.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["numjobs"] == "1"]
    fresh = [row for row in rows if row["system"].endswith("unstated_sector") and row["rw"] == "randwrite"]
    worn = [row for row in rows if not row["system"].endswith("unstated_sector")]
    reads = [point(row, "filled") for row in worn if row["rw"] == "randread"]
    mixes = [
        mix
        for system in dict.fromkeys(row["system"] for row in worn)
        for mix in with_totals(
            tuple(point(row, "steady") for row in worn if (row["system"], row["rw"]) == (system, "randrw"))
        )
    ]
    points = (*(point(row, "fresh") for row in fresh), *reads, *mixes)
    common = (_described(ROCKET, ROCKET_NAME, folder), "sheet", *SABRENT, points)
    yield "rocket-4-plus-2tb", MeasuredDevice(ROCKET_NAME, *common, folder=folder)


def _of_one_of_several() -> set[str]:
    """Returns the instances with several disks of which one was measured."""
    families = tomllib.loads(RATES.read_text(encoding="utf-8"))["families"]
    return {name for family in families for name, disks, *_ in family.get("of-disk", ()) if disks > 1}


def scylla(data: Path, folder: Path) -> Iterator[tuple[str, MeasuredDevice]]:
    """Yields the local disks of cloud instances. The catalogue's rates are these, so that they only check the entry.
    Instances whose rates are those of one of several disks are left out."""
    with open(data / "measured" / "scylla_instance_disks.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    in_catalogue = set(_native.instance_ids()) - _of_one_of_several()
    for row in rows:
        if row["instance_type"] not in in_catalogue:
            continue
        points = tuple(
            Point(f"rand{kind}", {"rate": float(row[f"{kind}_iops"])}, IOTUNE_DEPTH, 1, percent, "4KiB")
            for kind, percent in (("read", 100.0), ("write", 0.0))
        )
        common = (row["instance_type"], "calibrated", *SCYLLA, points)
        name = f"{row['cloud']} {row['family']}, local disks"
        yield row["instance_type"].lower(), MeasuredDevice(name, *common, fitted=FITTED_RATES, folder=folder)
