#!/usr/bin/env python3
"""Changes the code and reports which changes no test notices: `make mutants`.

    tests/mutants/run.py --sample 20               20 mutants of each folder, the same for the same --seed
    tests/mutants/run.py --sample 20 crates/result/src crates/load/src/hosts.rs
    tests/mutants/run.py --sample 30 --seed 7 python/headstack/comparison

rust.py and schemata.py change Rust: any folder or file of a crate. package.py changes Python. A mutant that no test
notices has survived. Equivalent mutants are listed in survivors.txt, each with the reason. Any other that survives
makes this fail. The figures of each folder are printed, and written to target/mutants/report.json with the test that
noticed each mutant.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import package
import schemata
from schemata import Outcome

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests"))
import leftovers  # noqa: E402

SURVIVORS = Path(__file__).parent / "survivors.txt"
OUTPUT = REPOSITORY / "target" / "mutants"

CRATES = [
    "crates/cache/src",
    "crates/live/src/budget.rs",
    "crates/live/src/nbd",
    "crates/live/src/verdict.rs",
    "crates/load/src/conditioning.rs",
    "crates/load/src/engine",
    "crates/load/src/flow.rs",
    "crates/load/src/hosts.rs",
    "crates/load/src/target",
    "crates/result/src",
    "crates/sim/src/array",
    "crates/sim/src/drive",
    "crates/sim/src/power_cut",
]
"""Folders and files of Rust that are changed unless others are named."""

TESTED_BY = {
    "crates/sim/src/array": ["headstack-catalogue"],
    "crates/sim/src/drive": ["headstack-catalogue"],
    "crates/sim/src/power_cut": ["headstack-live"],
}
"""Packages whose tests are to notice a change, next to those of the folder's own crate."""

PACKAGES = [
    f"python/headstack/{folder}"
    for folder in (
        "catalogue",
        "choice",
        "comparison",
        "crash",
        "diagnosis/inspection",
        "diagnosis/judging",
        "io",
        "live",
        "measurement",
        "prediction",
        "report",
        "results",
        "simulation",
        "studies",
        "traces",
        "twin",
    )
]
"""Folders of the Python package, whose tests are those that name them."""

MEMORY_BYTES = 8 << 30
"""Address space of any one program: a loop that a mutant makes endless must not use up the memory of the machine."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Changes the code and reports which changes no test notices.")
    parser.add_argument("folders", nargs="*", default=[*CRATES, *PACKAGES], metavar="FOLDER")
    parser.add_argument("--sample", type=int, metavar="COUNT", help="Mutants of each folder; all by default.")
    parser.add_argument("--seed", type=int, default=1, help="Chooses the mutants; 1 by default.")
    parser.add_argument("--jobs", type=int, default=2, help="Mutants that are tried at once; 2 by default.")
    asked = parser.parse_args()
    package.WORKERS = schemata.WORKERS = asked.jobs
    unknown = [
        folder
        for folder in asked.folders
        if not re.match("crates/[^/]+/src|python/headstack/", folder) or not (REPOSITORY / folder).exists()
    ]
    if unknown:
        parser.error(f"{', '.join(unknown)}: not in a crate's src or in python/headstack")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    # The copy of the crates lies elsewhere: tests would not find the shared data next to the checkout.
    os.environ.setdefault("HEADSTACK_SHARED", str(REPOSITORY.parent / "shared"))
    leftovers.adopt_orphans()
    report, surprises = {}, []
    for folder, outcomes in tried(asked.folders, asked.sample, asked.seed):
        viable = [one for one in outcomes if one.is_viable]
        missed = [one.name for one in viable if one.noticed_by is None]
        survived = [name for name in missed if stable(name) not in listed()]
        equivalent, noticed = (
            len(missed) - len(survived),
            {one.name: one.noticed_by for one in viable if one.noticed_by},
        )
        report[folder] = {"viable": len(viable), "equivalent": equivalent, "survived": survived, "noticed": noticed}
        print(
            f"{folder}: {len(noticed)} of {len(viable) - equivalent} noticed; {equivalent} equivalent, "
            f"{len(outcomes) - len(viable)} do not compile",
            flush=True,
        )
        surprises += survived
    (OUTPUT / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for name in surprises:
        print(f"survived, and not in {SURVIVORS.name}: {name}")
    return 1 if surprises else 0


def tried(folders: Sequence[str], sample: int | None, seed: int) -> Iterator[tuple[str, list[Outcome]]]:
    """The mutants of each folder. Those of Rust are built at once."""
    crates = {folder.rstrip("/"): packages_that_test(folder) for folder in folders if folder.startswith("crates/")}
    if crates:
        found = schemata.outcomes(copy_of_the_checkout(), OUTPUT / "build", crates, sample, seed)
        leftovers.end_processes(set())
        for folder in crates:
            yield folder, [one for one in found if one.folder == folder]
    for folder in folders:
        if folder.startswith("python/"):
            yield folder, of_package(folder, sample, seed)


def packages_that_test(folder: str) -> list[str]:
    """The packages with tests of a folder of Rust, next to its own."""
    return [name for known, names in TESTED_BY.items() if folder.startswith(known) for name in names]


def copy_of_the_checkout() -> Path:
    """The files of the checkout where they may be changed. Those unchanged since the last run keep their dates,
    by which cargo knows that they need not be compiled again."""
    tree = OUTPUT / "tree"
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    names = {name for name in listed.split("\0") if (REPOSITORY / name).is_file()}
    for path in tree.rglob("*"):
        if path.is_file() and str(path.relative_to(tree)) not in names:
            path.unlink()
    for name in names:
        schemata.update(tree / name, (REPOSITORY / name).read_bytes())
        shutil.copymode(REPOSITORY / name, tree / name)
    return tree


def of_package(folder: str, sample: int | None, seed: int) -> list[Outcome]:
    """What became of mutants of a folder of the Python package."""
    below = folder.removeprefix("python/headstack/").rstrip("/")
    found = package.outcomes(below, sample, seed, OUTPUT / folder.replace("/", "-"))
    return [Outcome(folder, name, noticed_by="a test" if noticed else None) for name, noticed in found]


def stable(name: str) -> str:
    """A mutant's name without its line number, which other changes move."""
    return re.sub(r"^(\S+?):\d+: ", r"\1: ", name)


def listed() -> set[str]:
    """The mutants that may survive. Each is on a line of its own, after its reason in lines that begin with a #."""
    lines = SURVIVORS.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


if __name__ == "__main__":
    sys.exit(main())
