"""The scoreboard's shipped errors: `scoreboard.py FOLDER [OUTPUT]`, five minutes of processor time.

Converts the validation data of FOLDER, of which this repository ships none, to the scoreboard's format, one folder per
source (kept in OUTPUT if it is given); scores them as `headstack lab scoreboard` does; writes
python/headstack/results/intervals/catalogue.json, which has only logarithms of ratios; and renews the tables of
docs/scoreboard.md and docs/accuracy.md.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import scoreboard_disks
import scoreboard_fio
import scoreboard_ssds

from headstack.comparison.scoreboard.board import Scoreboard
from headstack.comparison.scoreboard.measured_device import MeasuredDevice, read_folder, write_device
from headstack.comparison.scoreboard.scoring import Scored, score
from headstack.comparison.scoreboard.shipped import write_catalogue
from headstack.comparison.scoreboard.tables import headline
from headstack.results.intervals import calibration

Convert = Callable[[Path, Path], Iterator[tuple[str, MeasuredDevice]]]
"""Yields the devices of a source with their file names; also writes descriptions and traces next to them."""

SOURCES: dict[str, Convert] = {
    "storagereview": scoreboard_disks.storagereview,
    "disksim": scoreboard_disks.disksim,
    "diskplorer": scoreboard_disks.diskplorer,
    "fio-disks": scoreboard_fio.disks,
    "fio-ssds": scoreboard_fio.ssds,
    "fio-arrays": scoreboard_fio.arrays,
    "ssdiq": scoreboard_ssds.ssdiq,
    "iocost": scoreboard_ssds.iocost,
    "sabrent": scoreboard_ssds.sabrent,
    "scylla": scoreboard_ssds.scylla,
}


def convert(data: Path, output: Path) -> list[Path]:
    """Writes the folders of all sources, and returns them."""
    folders = []
    for name, source in SOURCES.items():
        folder = output / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, device in source(data, folder):
            write_device(device, folder, file)
        folders.append(folder)
    return folders


def main() -> None:
    data = Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="headstack-scoreboard-") as name:
        folders = convert(data, Path(sys.argv[2] if len(sys.argv) > 2 else name))
        scored: list[Scored] = []
        for folder in folders:
            scored += score(read_folder(folder))
            print(f"{folder.name}: {len(scored)} devices so far", flush=True)
    write_catalogue(scored)
    calibration.catalogue_scores.cache_clear()
    print(headline(Scoreboard.shipped()))
    print("renew the pages: HEADSTACK_WRITE_DOCS=1 pytest tests/python/test_scoreboard.py")


if __name__ == "__main__":
    main()
