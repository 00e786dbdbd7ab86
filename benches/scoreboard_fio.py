"""Disks, SATA SSDs and arrays under fio, for `scoreboard.py`: the systems of fio-systems.csv (fio-plot, BSD 3-Clause).

The firmware of the three disks was fitted to these measurements, so that each is described as one would describe it
without them: its sheet, and the plan, the margin and the weight of age that the other two have on average. What else
was fitted goes back to what sheets and rules give: the Travelstar's seeks to the 10 ms of its class, both write caches
to the default, and nothing reads what it wrote.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from scoreboard_disks import short_sheet

import headstack as hs
from headstack import _native
from headstack.comparison.scoreboard.measured_device import MeasuredDevice, Point

SOURCE, LICENCE = "fio-plot, benchmark_data", "BSD-3-Clause"

STALL_MS = 29_000.0
"""libata resets a device that has not answered for 30 s: rows with such a stall are recognised by this maximum."""
QUEUE = {"queue": ("committed", "rotation_margin", "age_weight")}
"""Keys of a disk's firmware, which come from the other two disks."""
TAGS = 32
"""Queue depth of native command queueing."""

DISKS = {
    "spinpoint-f1-1tb": ["SATA_AHCI_SAMSUNGF1_1TB_7K2RPM"],
    "travelstar-7k100-100gb": ["SATA_AHCI_HGST_HTS72101_100GB_7K2RPM"],
    "raptor-wd740gd": ["SATA_AHCI_WD740GD_74GB_10RPM/RUN1", "SATA_AHCI_WD740GD_74GB_10RPM/RUN2"],
}
DISK_HOST = "HPMICROSERVERG10"

P420I = "HPDL380G8/RAID"
SSDS = {
    "d3-s4610-480gb": {
        "ahci": "HPMICROSERVERG10/SATA_AHCI_INTEL_D3-S4610_SSDSC2KG48",
        "ahci-3g": "HPMICROSERVERG8/SATA300/INTELD3S4610",
        "m1015": "SERVER/IBM_M1015/INTEL_D3-S4610_SSDSC2KG48",
        "p420i-hba": "HPDL380G8/HBA/INTEL_D3_S4610",
        "p420i": f"{P420I}/P420i_INTEL_D3-S4610_SSDSC2KG48/TEST01",
    },
    "pm883-480gb": {
        "ahci": "HPMICROSERVERG10/SATA_AHCI_SAMSUNG_PM833_MZ7LH480HAHQ",
        "ahci-3g": "HPMICROSERVERG8/SATA300/SAMSUNGPM833",
        "m1015": "SERVER/IBM_M1015/SAMSUNG_PM883",
        "p420i": f"{P420I}/P420i_SAMSUNG_PM883_MZ7LH480",
    },
    "mx200.toml": {"p420i": f"{P420I}/P420i_CRUCIAL_MX200"},
}
MODELS = {
    "d3-s4610-480gb": "Intel SSD D3-S4610 480 GB",
    "pm883-480gb": "Samsung PM883 480 GB",
    "mx200.toml": "Crucial MX200",
}
FITTED_HOSTS = "the hosts' times, to this drive's rates on them"
HOSTS_FITTED_TO = "d3-s4610-480gb"

MX200 = """name = "Crucial MX200"
year = 2015
[capacity]
size = "500.1GB"
[flash]
cells = "mlc"
generation = "mlc"
[interface]
kind = "sata"
[stated]
random_read = { iops = 100_000, depth = 32, size = "4KiB" }
random_write = { iops = 87_000, depth = 32, size = "4KiB", state = "burst" }
sequential_read = "555MB/s"
sequential_write = "500MB/s"
[sources]
default = "C the sheet, from memory; the source does not name the capacity, and all capacities state these rates"
"""

RAID0 = {
    "P420i_CRUCIAL_MX200x3_RAIDO": ("256KiB", "the controller's default"),
    "P420i_CRUCIAL_MX200x3_RAID0_8KCHUNK": ("8KiB", "the folder's name"),
}
RAID5 = "SERVER/IBM_M1015/8x2TBRAID5MDADM"
FITTED_SPAN = "the span of the file, to reads at depth 1, and the kinds of members, to their counters"


def array_of_ssds(chunk: str) -> str:
    """Returns the description of the RAID 0 of three SSDs behind a RAID controller."""
    return (
        'name = "RAID 0 of three MX200"\n[[drives]]\ndrive = "mx200.toml"\ncount = 3\n[[groups]]\nlevel = "raid0"\n'
        f'chunk_size = "{chunk}"\n[host]\nadapter = "p420i"\n'
    )


MD_RAID5 = """name = "md RAID 5 of eight unlike drives"
[[drives]]
id = "fast"
drive = "re4-2tb"
count = 5
queue_depth = 32
reordering = 1.0
[[drives]]
id = "slow"
drive = "slow.toml"
count = 3
queue_depth = 32
reordering = 1.0
[[groups]]
level = "raid5"
chunk_size = "512KiB"
rotation = "left-symmetric"
drives = ["fast0..fast1", "slow0", "fast2..fast3", "slow1", "fast4", "slow2"]
drive_size = "500GB"
[groups.bitmap]
chunk = "2183MB"
[host]
adapter = "m1015"
[controller]
request = "10us"
parity_rate = "5GB/s"
"""
"""The description of `crates/catalogue/tests/real_arrays.rs`."""


@cache
def _rows(data: Path) -> list[dict[str, str]]:
    with open(data / "fio-systems.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def points(rows: list[dict[str, str]], most: int, one_job: bool, state: str = "") -> tuple[Point, ...]:
    """Returns measurements up to a queue depth, of one job or of all splits of a depth over jobs, without stalls."""
    return tuple(
        point(row, state)
        for row in rows
        if int(row["iodepth"]) * int(row["numjobs"]) <= most
        and (row["numjobs"] == "1" or not one_job)
        and float(row["lat_max_ms"]) < STALL_MS
    )


def point(row: dict[str, str], state: str = "") -> Point:
    """Returns a measurement of fio. Rows of a mix have the figures of one direction, and its rate."""
    names = {"rate": "iops", "mean": "lat_mean_ms", "p50": "p50_ms", "p95": "p95_ms", "p99": "p99_ms"}
    figures = {figure: float(row[name]) for figure, name in (*names.items(), ("p99.9", "p999_ms")) if row[name]}
    is_mix = row["rw"] == "randrw"
    reads = {"randread": 100.0, "randwrite": 0.0, "randrw": float(row["rwmixread"] or 50)}[row["rw"]]
    return Point(
        rw=row["rw"],
        figures=figures,
        depth=int(row["iodepth"]),
        jobs=int(row["numjobs"]),
        read_percent=reads,
        block_size="4KiB",
        latency_of=f"{row['kind']}s" if is_mix else "",
        state=state,
    )


def with_totals(mixes: tuple[Point, ...]) -> tuple[Point, ...]:
    """Returns the measurements of mixes with those of both directions together: the rate, and the mean latency that
    follows from it by Little's law."""
    rates: dict[tuple[float | None, int, int], float] = {}
    for mix in mixes:
        key = (mix.read_percent, mix.depth, mix.jobs)
        rates[key] = rates.get(key, 0.0) + mix.figures["rate"]
    totals = (
        Point("randrw", {"rate": rate, "mean": 1e3 * depth * jobs / rate}, depth, jobs, reads, "4KiB", state=state)
        for (reads, depth, jobs), rate in rates.items()
        for state in [mixes[0].state]
    )
    return (*mixes, *totals)


def _of(data: Path, *systems: str) -> list[dict[str, str]]:
    return [row for row in _rows(data) if row["system"] in systems]


def disks(data: Path, folder: Path) -> Iterator[tuple[str, MeasuredDevice]]:
    """Yields three disks on an AHCI host."""
    for disk, systems in DISKS.items():
        (folder / f"{disk}-sheet.toml").write_text(without_own_measurements(disk), encoding="utf-8")
        rows = _of(data, *(f"{DISK_HOST}/{system}" for system in systems))
        measured = points(rows, TAGS, one_job=False)
        name = hs.Drive.load(disk).name
        yield disk, MeasuredDevice(name, f"{disk}-sheet.toml", "sheet", SOURCE, LICENCE, measured, folder=folder)
        if (text := short_sheet(without_own_measurements(disk), QUEUE)) is not None:
            (folder / f"{disk}-short.toml").write_text(text, encoding="utf-8")
            common = (f"{disk}-short.toml", "short sheet", SOURCE, LICENCE, measured)
            yield f"{disk}-by-short-sheet", MeasuredDevice(name, *common, folder=folder)


def ssds(data: Path, folder: Path) -> Iterator[tuple[str, MeasuredDevice]]:
    """Yields three SSDs on their hosts: with their host adapter, which was fitted to one of the drives, and without."""
    (folder / "mx200.toml").write_text(MX200, encoding="utf-8")
    for drive, hosts in SSDS.items():
        for host, name in hosts.items():
            rows = _of(data, name)
            measured = points(rows, 64, one_job=True)
            fitted = FITTED_HOSTS if drive == HOSTS_FITTED_TO else ""
            file = f"{drive.removesuffix('.toml')}-{host}"
            common = (SOURCE, LICENCE, measured)
            yield file, MeasuredDevice(MODELS[drive], drive, "sheet and host", *common, host, fitted, folder)
            yield f"{file}-sheet", MeasuredDevice(MODELS[drive], drive, "sheet", *common, folder=folder)
    for drive, name in (("d3-s4610-480gb", "P420i_INTEL_RW"), ("pm883-480gb", "P420i_SAMSUNG_DC_RW")):
        measured = with_totals(points(_of(data, f"{P420I}/NEW/{name}"), 64, one_job=True))
        fitted = FITTED_HOSTS if drive == HOSTS_FITTED_TO else ""
        common = (SOURCE, LICENCE, measured)
        yield f"{drive}-mix", MeasuredDevice(MODELS[drive], drive, "sheet and host", *common, "p420i", fitted, folder)
        yield f"{drive}-mix-sheet", MeasuredDevice(MODELS[drive], drive, "sheet", *common, folder=folder)


def arrays(data: Path, folder: Path) -> Iterator[tuple[str, MeasuredDevice]]:
    """Yields a RAID 0 of three SSDs with two chunk sizes, and an md RAID 5 of eight disks."""
    (folder / "mx200.toml").write_text(MX200, encoding="utf-8")
    for number, (name, (chunk, _)) in enumerate(RAID0.items()):
        (folder / f"raid0-{number}.toml").write_text(array_of_ssds(chunk), encoding="utf-8")
        measured = points(_of(data, f"{P420I}/{name}"), 64, one_job=True)
        model = "3 x Crucial MX200, RAID 0"
        common = (SOURCE, LICENCE, measured)
        yield (
            f"mx200-raid0-{number}",
            MeasuredDevice(model, f"raid0-{number}.toml", "sheet and host", *common, folder=folder),
        )
    fast = _native.drive_toml("re4-2tb")
    slow = fast.replace('"7200rpm"', '"5400rpm"').replace('read_average = "8ms"', 'read_average = "12ms"')
    assert slow.count("5400rpm") == slow.count("12ms") == 1
    (folder / "slow.toml").write_text(slow, encoding="utf-8")
    (folder / "md-raid5.toml").write_text(MD_RAID5, encoding="utf-8")
    measured = points(_of(data, RAID5), 64, one_job=True)
    common = (SOURCE, LICENCE, measured)
    yield (
        "md-raid5-8x2tb",
        MeasuredDevice(
            "8 x 2 TB, md RAID 5", "md-raid5.toml", "calibrated", *common, fitted=FITTED_SPAN, folder=folder
        ),
    )


def with_keys(text: str, section: str, keys: dict[str, str | None]) -> str:
    """Returns a drive's file with other keys in a section; keys with None are removed."""
    lines, inside = [], False
    for line in text.splitlines():
        inside = line == f"[{section}]" if line.startswith("[") else inside
        name = line.split("=")[0].strip()
        if not (inside and name in keys):
            lines.append(line)
        if line == f"[{section}]":
            lines += [f"{key} = {value}" for key, value in keys.items() if value is not None]
    return "\n".join(lines) + "\n"


def without_own_measurements(disk: str) -> str:
    """Returns a disk's file as it would be without its own measurements, from those of the other two."""
    others = [hs.Drive.load(other).description["queue"] for other in DISKS if other != disk]

    def mean(key: str) -> float:
        return sum(queue[key] for queue in others) / len(others)

    queue: dict[str, str | None] = {
        "committed": f"{mean('committed'):.4g}",
        "rotation_margin": f'"{mean("rotation_margin_ns") / 1e6:.4g}ms"',
        "age_weight": f"{mean('age_weight'):.4g}",
    }
    text = re.sub(r"\[slow\]\nwrite_verify = true\n", "", _native.drive_toml(disk).split("# A read in")[0])
    text = with_keys(with_keys(text, "queue", queue), "buffer", {"dirty_extents_max": None})
    if disk.startswith("travelstar"):
        text = with_keys(text, "seek", {"read_average": '"10ms"', "write_average": '"11ms"'})
    return text
