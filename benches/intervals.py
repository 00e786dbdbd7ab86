"""Errors of the catalogue's models on measured devices: `intervals.py FOLDER`, half a minute of processor time.

Writes python/headstack/results/intervals/catalogue.json, the errors by device, and the table in docs/accuracy.md of the
intervals learned from them, with their coverage of devices that are left out, and prints both. FOLDER has
fio-systems.csv, disksim/ and measured/ (the validation data; this repository ships none of them, the file has only
logarithms of ratios). StorageReview's results are in the study of that name. `interval_ssds.py` has the SSDs of
measured/.

A device counts where nothing of its description was fitted to its own measurements. The firmware of the three disks
under fio was, so that each is described as one would describe it without them: its sheet, and the plan, the margin and
the weight of age that the other two have on average. What else was fitted goes back to what sheets and rules give: the
Travelstar's seeks to the 10 ms of its class, both write caches to the default, and nothing reads what it wrote.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import interval_table
from interval_ssds import Cell, cells, figures_of, load_in_state, named, of_iocost, of_ssdiq

import headstack as hs
from headstack import _native
from headstack.io.atomic_files import write_text
from headstack.results.intervals import calibration
from headstack.results.intervals.workloads import load_of

REPOSITORY = Path(__file__).resolve().parent.parent
REQUESTS = 40_000
STALL_MS = 29_000.0
"""libata resets a device that has not answered for 30 s: rows with such a stall are recognised by this maximum."""

STORAGEREVIEW = REPOSITORY / "python/headstack/studies/shipped/storagereview/published.csv"
CHOSEN_ON = "cheetah-x15-36lp"
"""Three constants of drives of its time were tuned on it."""

DISKS = {
    "spinpoint-f1-1tb": ["SATA_AHCI_SAMSUNGF1_1TB_7K2RPM"],
    "travelstar-7k100-100gb": ["SATA_AHCI_HGST_HTS72101_100GB_7K2RPM"],
    "raptor-wd740gd": ["SATA_AHCI_WD740GD_74GB_10RPM/RUN1", "SATA_AHCI_WD740GD_74GB_10RPM/RUN2"],
}
HOST = "HPMICROSERVERG10"
TAGS = 32
"""Queue depth of native command queueing."""

SSDS = {
    "d3-s4610-480gb": {
        "ahci": "HPMICROSERVERG10/SATA_AHCI_INTEL_D3-S4610_SSDSC2KG48",
        "ahci-3g": "HPMICROSERVERG8/SATA300/INTELD3S4610",
        "m1015": "SERVER/IBM_M1015/INTEL_D3-S4610_SSDSC2KG48",
        "p420i-hba": "HPDL380G8/HBA/INTEL_D3_S4610",
    },
    "pm883-480gb": {
        "ahci": "HPMICROSERVERG10/SATA_AHCI_SAMSUNG_PM833_MZ7LH480HAHQ",
        "ahci-3g": "HPMICROSERVERG8/SATA300/SAMSUNGPM833",
        "m1015": "SERVER/IBM_M1015/SAMSUNG_PM883",
    },
}
FITTED_HOSTS = "the hosts' times, to this drive's rates on them"


def of_storagereview() -> Iterator[dict[str, Any]]:
    """Yields seven drives under Iometer: rates, and the means that follow from them by Little's law."""
    with open(STORAGEREVIEW, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for drive in dict.fromkeys(row["system"] for row in rows):
        found: list[Cell] = []
        for row in (row for row in rows if row["system"] == drive):
            depth, rate = int(row["depth"]), float(row["iometer_iops"])
            results = hs.run(drive, row["workload"], depth=depth, requests=REQUESTS)
            load = load_of(results.whole(0), results[0])
            measured = {"rate": rate, "mean": depth / rate * 1e3}
            found += cells(row["workload"], load, measured, figures_of(results[0]))
        one = named(drive, hs.Drive.load(drive), found)
        yield one | (
            {"fitted": "the overhead, the host's tags and the order of completions"} if drive == CHOSEN_ON else {}
        )


def measured_by_fio(
    rows: list[dict[str, str]], systems: Iterable[str], rw: str, one_job: bool
) -> dict[int, dict[str, float]]:
    """Returns figures by queue depth, averaged over all distributions of requests over jobs."""
    found: dict[int, list[dict[str, float]]] = defaultdict(list)
    for row in rows:
        jobs, outstanding = int(row["numjobs"]), int(row["iodepth"]) * int(row["numjobs"])
        is_short = outstanding <= (64 if one_job else TAGS) and (jobs == 1 or not one_job)
        if row["system"] in systems and row["rw"] == rw and is_short and float(row["lat_max_ms"]) < STALL_MS:
            names = {"rate": "iops", "mean": "lat_mean_ms", "p50": "p50_ms", "p99": "p99_ms"}
            found[outstanding].append({figure: float(row[name]) for figure, name in names.items()})
    return {
        depth: {figure: sum(one[figure] for one in of) / len(of) for figure in of[0]}
        for depth, of in sorted(found.items())
    }


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

    queue = {
        "committed": f"{mean('committed'):.4g}",
        "rotation_margin": f'"{mean("rotation_margin_ns") / 1e6:.4g}ms"',
        "age_weight": f"{mean('age_weight'):.4g}",
    }
    text = re.sub(r"\[slow\]\nwrite_verify = true\n", "", _native.drive_toml(disk).split("# A read in")[0])
    text = with_keys(with_keys(text, "queue", queue), "buffer", {"dirty_extents_max": None})
    if disk.startswith("travelstar"):
        text = with_keys(text, "seek", {"read_average": '"10ms"', "write_average": '"11ms"'})
    return text


def of_fio_disks(rows: list[dict[str, str]], folder: Path) -> Iterator[dict[str, Any]]:
    """Yields three disks under fio on an AHCI host."""
    for disk, systems in DISKS.items():
        path = folder / f"{disk}.toml"
        path.write_text(without_own_measurements(disk), encoding="utf-8")
        found: list[Cell] = []
        for rw, read in (("randread", "100"), ("randwrite", "0")):
            measured = measured_by_fio(rows, [f"{HOST}/{system}" for system in systems], rw, one_job=False)
            results = hs.run(str(path), read=read, depth=list(measured), requests=REQUESTS)
            for index, (row, of) in enumerate(zip(results, measured.values(), strict=True)):
                load = load_of(results.whole(index), row)
                found += cells(f"4 KiB {rw}", load, of, figures_of(row))
        yield named(disk, hs.Drive.load(path), found)


def of_traces(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields five drives with parameters extracted by others, replayed at queue depth 1."""
    for score in hs.validate(folder):
        lines = (folder / f"{score.name}.trace").read_text(encoding="utf-8").split("\n")
        recorded = [line.split() for line in lines if line.strip()]
        measured = sorted(float(line[4]) / 1e3 for line in recorded)
        simulated = sorted(score.simulated_ms)

        def at(times: list[float]) -> dict[str, float]:
            mean = sum(times) / len(times)
            return {
                "rate": 1e3 / mean,
                "mean": mean,
                "p50": times[len(times) // 2],
                "p99": times[len(times) * 99 // 100],
            }

        size = sum(int(line[3]) for line in recorded) * 512 / len(recorded)
        load = calibration.Load("replay", 1, size)
        imported = hs.import_disksim(folder / f"{score.name}.parv").drives[0]
        # A program extracted its parameters, so that its errors are not those of drives known from their sheets.
        device = {"device": imported.name, "stated_share": 1.0}
        yield device | {"cells": cells("recorded trace", load, at(measured), at(simulated))}


def of_fio_ssds(rows: list[dict[str, str]]) -> Iterator[dict[str, Any]]:
    """Yields two SSDs under fio on their hosts, one job."""
    for drive, hosts in SSDS.items():
        found: list[Cell] = []
        for host, system in hosts.items():
            for rw, read in (("randread", "100"), ("randwrite", "0")):
                measured = measured_by_fio(rows, [system], rw, one_job=True)
                results = hs.run(drive, read=read, depth=list(measured), host=host, requests=REQUESTS)
                for index, (row, of) in enumerate(zip(results, measured.values(), strict=True)):
                    load = load_in_state(results, index, "filled")
                    found += cells(f"4 KiB {rw} on {host}", load, of, figures_of(row))
        one = named(drive, hs.Drive.load(drive), found)
        yield one | ({"fitted": FITTED_HOSTS} if drive.startswith("d3-s4610") else {})


def written(classes: dict[str, list[dict[str, Any]]]) -> str:
    """Formats the file, one device per line."""
    of_classes = []
    for name, devices in classes.items():
        lines = ",\n".join(json.dumps(device, separators=(",", ":")) for device in devices)
        of_classes.append(f'"{name}": {{"devices": [\n{lines}\n]}}')
    return '{"version": 1, "classes": {\n' + ",\n".join(of_classes) + "\n}}\n"


def print_class(name: str, scores: calibration.ClassScores) -> None:
    """Prints the mean and worst error of each device."""
    for device in scores.devices:
        by_figure: dict[tuple[str, str], list[float]] = defaultdict(list)
        for cell in device.cells:
            by_figure[cell.load.kind, cell.figure].append(abs(cell.log_ratio))
        shown = (f"{k} {f} {sum(e) / len(e):.1%} ({max(e):.1%})" for (k, f), e in by_figure.items())
        print(f"{name} {device.name}{' (fitted)' * bool(device.fitted)}: {', '.join(shown)}")


def main() -> None:
    folder = Path(sys.argv[1])
    with open(folder / "fio-systems.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with tempfile.TemporaryDirectory(prefix="headstack-intervals-") as name:
        temporary = Path(name)
        classes = {
            "disk": [*of_storagereview(), *of_fio_disks(rows, temporary), *of_traces(folder / "disksim")],
            "data-center-nvme": list(of_ssdiq(folder / "measured", temporary)),
            "consumer-nvme": list(of_iocost(folder / "measured")),
            "data-center-sata": list(of_fio_ssds(rows)),
        }
    write_text(calibration.CATALOGUE, written(classes))
    calibration.catalogue_scores.cache_clear()
    for of_class, scores in calibration.catalogue_scores().items():
        print_class(of_class, scores)
    print(interval_table.table(calibration.catalogue_scores()))
    interval_table.write_page(calibration.catalogue_scores())


if __name__ == "__main__":
    main()
