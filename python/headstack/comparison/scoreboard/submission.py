"""`submission`: a measured target in the scoreboard's format, without anything that identifies the unit or its host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from headstack._native import InputError, version
from headstack.catalogue.drive import Drive
from headstack.catalogue.system import load_system
from headstack.comparison.scoreboard.measured_device import LATENCIES, MeasuredDevice, Point
from headstack.results.results import Results

DEPTHS = (1, 2, 4, 8, 16, 32)
"""Measured queue depths."""
SIZE = "4KiB"
READS = ("100",)
"""Percentages of reads without permission to write."""
MIXES = ("0", "70", "100")
"""Percentages of reads with permission to write; writes come first, so that reads find written addresses."""
LICENCE = "CC0-1.0"


def submission(results: Results, system: str, folder: Path, host: str = "", range_: str = "") -> MeasuredDevice:
    """Returns a device with the complete measurements among these results.

    The device has the name of its description: model strings, serial numbers, paths and host names of the measured
    target are not taken over. Raises ``InputError`` if nothing was measured completely, or the description is a file
    outside of the folder.
    """
    points = [
        _point(row, float(results.whole(run)["workload"]["lines"][0]["read_percent"]), range_)
        for run, row in enumerate(results)
        if row["ended_early"] is None and not row["errors"] and row["iops"]
    ]
    if not points:
        raise InputError("no measurement is complete and without failed requests, so there is nothing to write")
    loaded = load_system(system)
    name = loaded.summary["name"] if isinstance(loaded, Drive) else loaded.name
    return MeasuredDevice(
        device=str(name),
        system=_relative(system, folder),
        described="sheet and host" if host else "sheet",
        source=f"measured with headstack {version()}, {date.today():%Y-%m}",
        licence=LICENCE,
        points=tuple(points),
        host=host,
        folder=folder,
    )


def _relative(system: str, folder: Path) -> str:
    """Returns the name of a description as the files state it."""
    path = Path(system)
    if not path.is_file():
        return system
    if not os.path.samefile(path.parent, folder):
        raise InputError(
            f"{system}: is not in {folder}, where the scoreboard looks for it; copy it there", key="system"
        )
    return path.name


def _point(row: Mapping[str, Any], reads: float, range_: str) -> Point:
    figures = {"rate": row["iops"]}
    figures |= {figure: row[f"{figure.replace('.', '')}_ms"] for figure in LATENCIES}
    return Point(
        rw={100.0: "randread", 0.0: "randwrite"}.get(reads, "randrw"),
        figures={figure: value for figure, value in figures.items() if value is not None},
        depth=int(row["depth"]),
        jobs=1,
        read_percent=reads,
        block_size=SIZE,
        range=range_,
    )
