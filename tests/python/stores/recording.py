"""Recordings of a store on a live device that keeps a journal."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import headstack as hs
from headstack.live.control import Control
from headstack.live.filesystems import file_system, new_file_system
from headstack.live.writeback import background_syncs, background_thread, sync_file_system
from stores.cases import FOLDER, Case
from stores.programs import command

BEGIN = "ready"
"""The mark from which on power losses are tried: everything before it is synced."""

Mark = Callable[[str], None]


@contextmanager
def beside_a_neighbour(folder: Path) -> Iterator[None]:
    """Runs another program that permanently syncs a file of its own, so that commits occur during any operation of a
    store.
    """

    def repeat(over: threading.Event) -> None:
        with open(folder / "neighbour", "wb", buffering=0) as file:
            while not over.is_set():
                file.write(b"line\n")
                os.fsync(file.fileno())

    with background_thread(repeat):
        yield


def work(case: Case, folder: Path, mark: Mark, pause_s: float = 0) -> int:
    """Runs a store's transactions, and marks each acknowledged one before the next; returns their number."""
    # Makes this package importable in the process.
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    words = command(case.store, folder, case.settings)
    count = 0
    with subprocess.Popen(
        words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            mark(line.strip())
            count += 1
            # Gives the background time to write the data of each transaction.
            time.sleep(pause_s)
            process.stdin.write("\n")
            process.stdin.flush()
        said = process.stderr.read()
    if process.returncode != 0 or count != case.program.transactions:
        raise RuntimeError(f"{case.name}: {count} transactions, exit code {process.returncode}: {said.strip()[-500:]}")
    return count


def carried_out(case: Case, file: Path, mark: Mark) -> None:
    """Runs a case on a device behind a file: a new file system, the store's transactions, and the end."""
    with new_file_system(file, case.file_system, case.mount) as root:
        folder = root / FOLDER
        folder.mkdir()
        if case.program.prepare is not None:
            case.program.prepare(folder)
        sync_file_system(root)
        mark(BEGIN)
        every_s = case.background_ms / 1e3
        background = background_syncs(root, every_s) if every_s else nullcontext()
        with background, beside_a_neighbour(root) if case.neighbour else nullcontext():
            work(case, folder, mark, every_s / 2)


def size_mib(case: Case) -> int:
    return max(case.program.image_mib, file_system(case.file_system).least_mib)


def recorded(case: Case, journal: Path, scratch: Path) -> None:
    """Writes the journal of a run."""
    place = scratch / "fuse"
    place.mkdir()
    part = f"{case.drive}@0..{size_mib(case)}MiB"
    served = hs.serve(
        part, speed=case.speed, fuse=str(place), control=str(scratch / "control"), journal=str(journal), realtime=False
    )
    with served as live, Control(scratch / "control") as control:
        carried_out(case, Path(live.files[0]), lambda text: control.order({"do": "mark", "text": text}))
