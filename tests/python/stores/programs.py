"""The stores by name: the process that runs transactions, and the reader of the result."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headstack as hs
from stores import files, lightning, lsm, outside, postgres, sqlite
from stores.model import Rows

Settings = dict[str, Any]
Acknowledge = Callable[[int], None]


@dataclass(frozen=True)
class Store:
    """How a store is run and read. `run` is ``None`` for stores that are programs in other languages."""

    read: Callable[[Path, Settings], Rows]
    run: Callable[[Path, Settings, int, Acknowledge], None] | None
    module: str = "sqlite3"
    """The required module."""
    prepare: Callable[[Path], None] | None = None
    """Preparation before the recording."""
    transactions: int = 24
    image_mib: int = 32


def _outside(name: str) -> Store:
    return Store(lambda folder, settings: outside.read(name, folder, settings), None)


STORES = {
    "sqlite": Store(sqlite.read, sqlite.run),
    "lmdb": Store(lightning.read, lightning.run, "lmdb"),
    "leveldb": Store(lsm.read_level, lsm.run_level, "plyvel", transactions=48),
    "rocksdb": Store(lsm.read_rocks, lsm.run_rocks, "rocksdict", transactions=48),
    "bolt": _outside("bolt"),
    "redb": _outside("redb"),
    "sled": _outside("sled"),
    "postgres": Store(postgres.read, postgres.run, prepare=postgres.prepare, transactions=40, image_mib=64),
    "rename": Store(files.read_rename, files.run_rename),
    "log": Store(files.read_log, files.run_log),
    "in-place": Store(files.read_in_place, files.run_in_place),
}


def command(name: str, folder: Path, settings: Settings) -> list[str]:
    """Returns the process that runs a store's transactions: it prints the number of each committed one, and waits for a
    line until the acknowledgement is recorded. Raises ``RunError`` for a store that is not available."""
    store = STORES[name]
    if importlib.util.find_spec(store.module) is None:
        raise hs.RunError(f"{store.module} is not installed")
    if name == "postgres":
        postgres.binary("initdb")
    words = [str(folder), json.dumps(settings), str(store.transactions)]
    if store.run is None:
        return [*outside.program(name), "run", *words]
    return [sys.executable, "-m", "stores.programs", name, *words]


def main(name: str, folder: str, settings: str, transactions: str) -> None:
    def acknowledge(number: int) -> None:
        print(number, flush=True)
        if not sys.stdin.readline():
            raise SystemExit("nobody listens")

    run = STORES[name].run
    assert run is not None
    run(Path(folder), json.loads(settings), int(transactions), acknowledge)


if __name__ == "__main__":
    main(*sys.argv[1:])
