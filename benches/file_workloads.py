"""File creation and stat rates with one thread, compared with fio's engines for them, in the same folder and run.

python benches/file_workloads.py [FOLDER]      FOLDER is by default /dev/shm
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import headstack as hs

FILES = 20_000
ROUNDS = 5

TREE = "fsd=t,anchor={anchor},depth=1,width=1,files={files},size=4k\n"


def ours(folder: Path) -> tuple[float, float]:
    """Returns the files created per second, and those looked up."""
    text = TREE.format(anchor=folder / "ours", files=FILES)
    text += "fwd=c,fsd=t,operation=create,fileselect=once\nfwd=s,fsd=t,operation=getattr,fileselect=once\n"
    text += "rd=c,fwd=c,fwdrate=max,format=directories,elapsed=60,interval=1\n"
    text += "rd=s,fwd=s,fwdrate=max,elapsed=60,interval=1\n"
    path = folder / "ours.vdbench"
    path.write_text(text)
    results = hs.measure_files(path)
    rate = [{row["operation"]: row["count_per_s"] for row in results.operations_of(run)} for run in range(2)]
    shutil.rmtree(folder / "ours")
    return rate[0]["create"], rate[1]["getattr"]


def fios(folder: Path) -> tuple[float, float]:
    """Returns the same rates for fio."""
    rates = []
    place = folder / "fio"
    place.mkdir()
    for engine in ("filecreate", "filestat"):
        command = ["fio", "--name=x", f"--ioengine={engine}", f"--nrfiles={FILES}", "--filesize=4k", "--openfiles=1"]
        command += [f"--directory={place}", "--fallocate=none", "--output-format=json", "--create_on_open=1"]
        command += ["--file_service_type=sequential", "--thread", "--create_serialize=0"]
        if engine == "filestat":
            command.remove("--create_on_open=1")
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        [job] = json.loads(printed[printed.index("{") :])["jobs"]
        rates.append(job["read"]["iops"] or job["write"]["iops"])
    shutil.rmtree(place)
    return rates[0], rates[1]


def main() -> None:
    """Alternates both, and prints the medians."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else "/dev/shm") as name:
        folder = Path(name)
        rounds = [(ours(folder), fios(folder)) for _ in range(ROUNDS)]
    for index, what in enumerate(("created", "looked at")):
        own, other = (median(one[side][index] for one in rounds) for side in (0, 1))
        print(f"{what}: {own:,.0f} files/s, fio {other:,.0f}, ratio {own / other:.2f}")


if __name__ == "__main__":
    main()
