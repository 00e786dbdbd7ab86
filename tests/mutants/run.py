#!/usr/bin/env python3
"""Holds the tests against changes of the code: `make mutants`.

    tests/mutants/run.py                           every mutant of every folder, which takes days
    tests/mutants/run.py --sample 20               of each folder about so many, the same for the same --seed
    tests/mutants/run.py --sample 20 crates/result/src
    tests/mutants/run.py --sample 30 --seed 7 python/headstack/comparison

In Rust, cargo-mutants changes one function or operator at a time, in Python package.py does; a mutant that no test
notices has survived. Those that may are in survivors.txt, each with the reason. Any other that survives makes this
fail, so that their number only falls. What was caught is printed for each folder, and written to
target/mutants/report.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import package

REPOSITORY = Path(__file__).resolve().parents[2]
SURVIVORS = Path(__file__).parent / "survivors.txt"
OUTPUT = REPOSITORY / "target" / "mutants"

FOLDERS = {
    "crates/sim/src/array": ["headstack-sim", "headstack-catalogue"],
    "crates/sim/src/drive": ["headstack-sim", "headstack-catalogue"],
    "crates/sim/src/power_cut": ["headstack-sim", "headstack-live"],
    "crates/load/src/engine": ["headstack-load"],
    "crates/load/src/target": ["headstack-load"],
    "crates/live/src/nbd": ["headstack-live"],
    "crates/result/src": ["headstack-result"],
}
"""What is changed, and the crates whose tests are to notice."""

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

TOO_LONG = ["--timeout-multiplier", "4", "--minimum-test-timeout", "60"]
"""A mutant that takes so many times longer to test than the code as it is hangs, which counts as noticed."""

MEMORY_BYTES = 8 << 30
"""What any one program may take: a loop that a mutant makes endless must not eat the machine."""

Mutant = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description="Holds the tests against changes of the code.")
    parser.add_argument("folders", nargs="*", default=[*FOLDERS, *PACKAGES], metavar="FOLDER")
    parser.add_argument("--sample", type=int, metavar="COUNT", help="So many mutants of each folder.")
    parser.add_argument("--seed", type=int, default=1, help="Which ones; 1 by default.")
    asked = parser.parse_args()
    known = (*FOLDERS, *PACKAGES)
    unknown = [folder for folder in asked.folders if not folder.startswith(known)]
    if unknown:
        parser.error(f"{', '.join(unknown)}: none of {', '.join(known)}, nor in one")
    if any(folder in FOLDERS for folder in asked.folders) and shutil.which("cargo-mutants") is None:
        sys.exit("cargo-mutants is not installed: cargo install --locked cargo-mutants")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    tree = copy_of_the_checkout()
    report, surprises = {}, []
    for folder in asked.folders:
        if folder.startswith("python/"):
            outcomes = of_package(folder, asked.sample, asked.seed)
        else:
            names = None if asked.sample is None else chosen(tree, folder, asked.sample, asked.seed)
            outcomes = tested(tree, folder, names)
        missed = sorted(stable(outcome["name"]) for outcome in outcomes if outcome["summary"] == "MissedMutant")
        viable = sum(outcome["summary"] != "Unviable" for outcome in outcomes)
        report[folder] = {"viable": viable, "caught": viable - len(missed), "missed": missed}
        print(f"{folder}: {viable - len(missed)} of {viable} viable mutants caught", flush=True)
        surprises += [name for name in missed if name not in listed()]
    (OUTPUT / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for name in surprises:
        print(f"survived, and not in {SURVIVORS.name}: {name}")
    return 1 if surprises else 0


def copy_of_the_checkout() -> Path:
    """The files of the checkout where they may be changed. Those that are as they were keep their dates, by which cargo
    knows that they need not be compiled again."""
    tree = OUTPUT / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (REPOSITORY / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, tree / name)
    return tree


def mutants(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"CARGO_TARGET_DIR": str(OUTPUT / "build")}
    command = ["cargo", "mutants", "--no-config", *arguments]
    return subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=False)


def chosen(tree: Path, folder: str, sample: int, seed: int) -> list[str]:
    """The names of some of the folder's mutants."""
    found = mutants(tree, "--list", "--json", "--file", f"{folder}/**/*.rs")
    if found.returncode != 0:
        sys.exit(f"cargo mutants: exit code {found.returncode}")
    names = sorted(mutant["name"] for mutant in json.loads(found.stdout))
    return random.Random(seed).sample(names, min(sample, len(names)))


def tested(tree: Path, folder: str, names: list[str] | None) -> list[Mutant]:
    """What became of each mutant of these names, or of all."""
    output = OUTPUT / folder.replace("/", "-")
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    arguments = ["--in-place", "--no-shuffle", "--file", f"{folder}/**/*.rs"]
    if names is not None:
        arguments += ["--re", "^(" + "|".join(re.escape(name) for name in names) + ")$"]
    arguments += [*TOO_LONG, "--test-package", ",".join(FOLDERS[folder]), "--output", str(output)]
    done = mutants(tree, *arguments)
    # 2: some have survived; 3: some took too long.
    if done.returncode not in (0, 2, 3):
        sys.exit(f"{done.stdout}cargo mutants: exit code {done.returncode}; see {output}/mutants.out/log")
    outcomes = json.loads((output / "mutants.out/outcomes.json").read_text(encoding="utf-8"))["outcomes"]
    return [
        {"name": outcome["scenario"]["Mutant"]["name"], "summary": outcome["summary"]}
        for outcome in outcomes
        if outcome["scenario"] != "Baseline"
        # Fields deleted from expressions are tested whatever --re says (cargo-mutants 27.1): not of the sample.
        and (names is None or outcome["scenario"]["Mutant"]["name"] in names)
    ]


def of_package(folder: str, sample: int | None, seed: int) -> list[Mutant]:
    """What became of mutants of a folder of the Python package."""
    below = folder.removeprefix("python/headstack/")
    found = package.outcomes(below, sample, seed, OUTPUT / folder.replace("/", "-"))
    return [{"name": name, "summary": "CaughtMutant" if noticed else "MissedMutant"} for name, noticed in found]


def stable(name: str) -> str:
    """A mutant's name without its line, which other changes move."""
    return re.sub(r"^(\S+?):\d+:\d+: ", r"\1: ", name)


def listed() -> set[str]:
    """The mutants that may survive. Each stands on a line, behind the lines of its reason, which begin with a #."""
    lines = SURVIVORS.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


if __name__ == "__main__":
    sys.exit(main())
