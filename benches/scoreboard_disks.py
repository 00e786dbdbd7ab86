"""Disks for `scoreboard.py`: StorageReview's seven, the five traces of DiskSim, and reads of the disk of diskplorer."""

from __future__ import annotations

import csv
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import headstack as hs
from headstack import _native
from headstack.comparison.scoreboard.measured_device import MeasuredDevice, Point

STORAGEREVIEW = Path(__file__).resolve().parent.parent / "python/headstack/studies/shipped/storagereview/published.csv"
TUNED_ON = "cheetah-x15-36lp"
"""Three constants of drives of its time were tuned on it."""
TUNED = "the overhead, the host's tags and the order of completions"

FITTED_FAMILY = "firmware and seeks of desktop drives, to this drive and another"

DISKPLORER = "scylladb/diskplorer 33a5db3", "Apache-2.0"
DT01ACA200 = """name = "Toshiba DT01ACA200 2 TB"
year = 2012
[capacity]
size = "2TB"
[geometry]
platters = 2
heads = 4
[spindle]
speed = "7200rpm"
[seek]
read_average = "8.5ms"
[media]
sustained_outer_rate = "185MB/s"
[buffer]
size = "64MiB"
[interface]
kind = "sata"
rate = "600MB/s"
[sources]
default = "C the sheet, from memory"
"seek.read_average" = "D disks of its class; its sheet states none"
"""


SHORT_SHEET: dict[str, tuple[str, ...]] = {
    "capacity": ("size", "logical_blocks", "logical_block", "physical_sector"),
    "geometry": ("platters", "heads"),
    "spindle": ("speed",),
    "media": ("sustained_outer_rate",),
    "seek": ("read_average",),
    "buffer": ("size", "write_cache"),
    "interface": ("kind", "rate"),
}
"""Keys that also the shortest data sheets of disks state."""


NO_MORE: Mapping[str, tuple[str, ...]] = MappingProxyType({})


def short_sheet(text: str, more: Mapping[str, tuple[str, ...]] = NO_MORE) -> str | None:
    """Returns a disk's file with only the keys that short data sheets state, as many disks of the catalogue have,
    and ``more``; ``None`` for a disk that they cannot describe."""
    stated = tomllib.loads(text)
    if "read_average" not in stated.get("seek", {}):
        return None
    lines = [f'name = "{stated["name"]}"', f"year = {stated['year']}"]
    for section, keys in {**SHORT_SHEET, **more}.items():
        values = {key: stated[section][key] for key in keys if key in stated.get(section, {})}
        lines += [f"[{section}]"] * bool(values)
        lines += [f'{key} = "{own}"' if isinstance(own, str) else f"{key} = {own}" for key, own in values.items()]
    return "\n".join([*lines, ""])


def storagereview(_data: Path, folder: Path) -> Iterator[tuple[str, MeasuredDevice]]:
    """Yields seven drives under Iometer: rates, and the means that follow from them by Little's law."""
    with open(STORAGEREVIEW, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for drive in dict.fromkeys(row["system"] for row in rows):
        points = tuple(
            Point(
                row["workload"],
                {"rate": float(row["iometer_iops"]), "mean": int(row["depth"]) / float(row["iometer_iops"]) * 1e3},
                depth=int(row["depth"]),
            )
            for row in rows
            if row["system"] == drive
        )
        fitted = TUNED if drive == TUNED_ON else ""
        source, licence = "StorageReview, 2001", "published figures, in the study storagereview"
        name = hs.Drive.load(drive).name
        yield drive, MeasuredDevice(name, drive, "sheet", source, licence, points, fitted=fitted, folder=folder)
        if (text := short_sheet(_native.drive_toml(drive))) is not None and not fitted:
            (folder / f"{drive}-short.toml").write_text(text, encoding="utf-8")
            common = (f"{drive}-short.toml", "short sheet", source, licence, points)
            yield f"{drive}-by-short-sheet", MeasuredDevice(name, *common, folder=folder)


def disksim(data: Path, folder: Path) -> Iterator[tuple[str, MeasuredDevice]]:
    """Yields five drives with parameters extracted by others, replayed at queue depth 1."""
    for trace in sorted((data / "disksim").glob("*.trace")):
        files = sorted((data / "disksim").glob(f"{trace.stem}*"))
        for file in files:
            shutil.copyfile(file, folder / file.name)
        for file in (data / "disksim").glob("*.model"):
            shutil.copyfile(file, folder / file.name)
        for file in (data / "disksim").glob("*.seek"):
            shutil.copyfile(file, folder / file.name)
        times = sorted(float(line.split()[4]) / 1e3 for line in trace.read_text().split("\n") if line.strip())
        mean = sum(times) / len(times)
        figures = {"rate": 1e3 / mean, "mean": mean}
        figures |= {name: times[int(len(times) * at)] for name, at in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))}
        parameters = folder / f"{trace.stem}.parv"
        name = hs.import_disksim(parameters).drives[0].name
        points = (Point(trace.name, figures),)
        common = ("DiskSim 4.0, valid/; parameters extracted by its authors", "DiskSim's licence", points)
        yield f"{trace.stem}-replay", MeasuredDevice(name, parameters.name, "sheet", *common, folder=folder)


def diskplorer(data: Path, folder: Path) -> Iterator[tuple[str, MeasuredDevice]]:
    """Yields a disk under random reads at arrival rates, without writes. Cells at the ends of its color scale, and
    rates from 70 % of the largest on, where a small error of the rate decides the queue, are left out."""
    with open(data / "measured" / "diskplorer_reads_beside_writes.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["system"] == "hdd-toshiba-DT01ACA200"]
    alone = [row for row in rows if float(row["offered_write_mb_s"]) == 0 and float(row["offered_read_iops"]) > 0]
    most = max(float(row["offered_read_iops"]) for row in alone)
    points = []
    for row in alone:
        figures = {name: float(row[f"read_{name}_ms"]) for name in ("p50", "p95") if row[f"read_{name}_ms"]}
        rate = float(row["offered_read_iops"])
        if figures and rate < 0.7 * most:
            size = f"{row['read_bytes']}B"
            points.append(Point("randread", figures, read_percent=100.0, block_size=size, offered_iops=rate))
    (folder / "dt01aca200-sheet.toml").write_text(DT01ACA200, encoding="utf-8")
    common = ("dt01aca200-sheet.toml", "sheet", *DISKPLORER, tuple(points))
    yield "dt01aca200", MeasuredDevice("Toshiba DT01ACA200 2 TB", *common, fitted=FITTED_FAMILY, folder=folder)
