"""Which stores lose what on which drives: the data of docs/crash-study.md, and the tables that the page shows of them.

`python -m stores.study` measures and writes docs/crash-study.json; with `--tables` it prints the tables of that.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import headstack as hs
from headstack import _native
from headstack.live.filesystems import MEMORY
from stores.__main__ import lacking
from stores.cases import Case, named
from stores.exploring import Outcome, tried
from stores.recording import BEGIN, recorded
from stores.verdicts import BrokenError, Kind

DATA = Path(__file__).parents[3] / "docs" / "crash-study.json"
STATES = 40
"""Number of states of each recording."""
SEEDS = (1, 2)
"""Seeds of the recordings: a fault seen in only one of them is not reported as found."""
ROUNDS_MAX = 60
"""Number of writes of a recording that are lost or torn, one at a time."""


@dataclass(frozen=True)
class Column:
    """A drive, and its state at power losses."""

    name: str
    drive: str
    mount: str = ""
    torn: int = 0


# Ignored flushes have no effect on a file system that sends none.
COLUMNS = (
    Column("capacitors", "7400-pro-7680gb"),
    Column("volatile cache", "wd1200bb"),
    Column("and torn, 512 B", "wd1200bb", torn=512),
    Column("flush lies", "wd1200bb", mount="nobarrier"),
)
STORES = {
    "SQLite, WAL, FULL": "G2",
    "SQLite, WAL, NORMAL": "S7",
    "SQLite, DELETE, FULL": "S5",
    "SQLite, DELETE, OFF": "S1",
    "LMDB": "G5",
    "bbolt": "G8",
    "sled 0.34.7, flush()": "S23",
    "fsync, rename, fsync of the folder": "G11",
    "fsync, rename": "S17",
    "rename": "S15",
}
"""Cases of the configurations, by their rows in the table."""
SINGLE = ("SQLite, WAL, FULL", "LMDB", "bbolt")
"""Configurations of which single writes are lost and torn."""
NOTICED = {Kind.CORRUPT, Kind.DIED, Kind.UNOPENED, Kind.NO_FILE_SYSTEM}
"""Kinds that the store itself reports to its reader; others are read without an error."""

Json = dict[str, Any]


def case_of(store: str, column: Column) -> Case:
    case = named(STORES[store])
    return replace(case, drive=column.drive, mount=column.mount or case.mount, torn=column.torn, must=frozenset())


def cell(outcome: Outcome, seed: int) -> Json:
    """Returns the result of a recording."""
    smallest = min(outcome.findings, key=lambda one: len(one.missing) + len(one.torn), default=None)
    told: Json = {"seed": seed, "states": outcome.states, "kinds": dict(sorted(outcome.kinds.items()))}
    if smallest is not None:
        files = [file for write in [*smallest.missing, *smallest.torn] for file in write.files]
        told["least"] = {
            "writes": len(smallest.missing) + len(smallest.torn),
            "files": sorted(set(files)),
            "message": smallest.message[:160],
        }
    return told


def cuts() -> Iterator[Json]:
    """Yields power losses of every store on every drive."""
    for store in STORES:
        for column in COLUMNS:
            case = case_of(store, column)
            print(f"{store}, {column.name}", flush=True)
            recordings = [cell(tried(case, str(STATES), seed), seed) for seed in SEEDS]
            yield {"store": store, "column": column.name, "drive": column.drive, "recordings": recordings}


def singles() -> Iterator[Json]:
    """Yields states in which one write of a recording is acknowledged but not stored, or only its first half, and all
    others are.
    """
    for store in SINGLE:
        case = case_of(store, COLUMNS[-1])
        for seed in SEEDS:
            with tempfile.TemporaryDirectory(prefix="headstack-study-", dir=MEMORY) as name:
                yield {"store": store, "seed": seed, **of_one_write(case, Path(name))}


def of_one_write(case: Case, folder: Path) -> Json:
    recorded(case, folder / "journal", folder)
    recording = hs.crash.open(folder / "journal")
    native = recording.native
    request = recording.search_request("any", "512", BEGIN, (), 0)
    (folder / "image").mkdir()
    image = _native.CrashImage(str(folder / "image"), native, None, request["rules"])
    events = recording.described["events"]
    before = set(native.open_after(recording.moments(start=BEGIN)[0]["events"]))
    # Without flushes all writes stay open to the end, except for overwritten ones.
    open_writes = [change for change in native.open_after(events) if change not in before]
    chosen = open_writes[:: -(-len(open_writes) // ROUNDS_MAX)]
    seen = {"lost": Counter[str](), "shorn": Counter[str]()}
    for write, said in zip(chosen, native.changes(chosen), strict=True):
        atoms = said["length_bytes"] // 512
        half = [{"change": write, "kept": [[0, atoms // 2]]}]
        for how, state in (("lost", {"missing": [write], "torn": []}), ("shorn", {"missing": [], "torn": half})):
            image.take({"events": events, **state})
            try:
                case.check(Path(str(image.path)), native.marks_before(events))
                seen[how]["nothing"] += 1
            except BrokenError as broken:
                seen[how]["noticed" if broken.kind in NOTICED else "unnoticed"] += 1
            image.restore()
    return {"writes": len(chosen), **{how: dict(sorted(count.items())) for how, count in seen.items()}}


def measured() -> Json:
    began_s = time.monotonic()
    for store, name in STORES.items():
        if (lack := lacking(named(name))) is not None:
            raise hs.RunError(f"{store}: {lack}")
    data: Json = {"kernel": platform.release(), "headstack": hs.__version__, "file_system": "ext4, 1 KiB blocks"}
    data["cuts"] = list(cuts())
    data["singles"] = list(singles())
    data["seconds"] = round(time.monotonic() - began_s)
    return data


def shown(recordings: list[Json]) -> str:
    """Formats kinds seen in every recording; those seen in only one are in brackets."""
    sets = [set(one["kinds"]) for one in recordings]
    both, some = set.intersection(*sets), set.union(*sets)
    words = [kind for kind in Kind if kind in both] + [f"({kind})" for kind in Kind if kind in some - both]
    return ", ".join(words) if words else "—"


def tables(data: Json) -> str:
    """Returns the tables of the page."""
    cells = {(one["store"], one["column"]): one["recordings"] for one in data["cuts"]}
    names = [column.name for column in COLUMNS]
    lines = [f"| store | {' | '.join(names)} |", "| --- |" + " --- |" * len(names)]
    for store in STORES:
        lines.append(f"| {store} | {' | '.join(shown(cells[store, name]) for name in names)} |")
    states = sum(recording["states"] for recordings in cells.values() for recording in recordings)
    lines += ["", f"{states:,} states of {sum(map(len, cells.values()))} recordings.", ""]
    lines += ["| store | writes | lost: nothing, noticed, unnoticed | shorn: nothing, noticed, unnoticed |"]
    lines += ["| --- | ---: | ---: | ---: |"]
    for store in SINGLE:
        rows = [one for one in data["singles"] if one["store"] == store]
        counts = [
            ", ".join(str(sum(row[how].get(what, 0) for row in rows)) for what in ("nothing", "noticed", "unnoticed"))
            for how in ("lost", "shorn")
        ]
        lines.append(f"| {store} | {sum(row['writes'] for row in rows)} | {' | '.join(counts)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m stores.study", description=__doc__)
    parser.add_argument("--tables", action="store_true")
    if parser.parse_args().tables:
        print(tables(json.loads(DATA.read_text(encoding="utf-8"))), end="")
    else:
        DATA.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
