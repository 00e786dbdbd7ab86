"""`make validate`: how far what headstack says is from what is so, every row of it in target/validate.json.

Each step prints its table as it goes. Rows come from `headstack validate --json`, from the outcomes of the studies,
and from the lines `row: {...}` that tests print; they have the form of those in target/bench.json. Exits with 1 where a
step failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import headstack as hs

REPOSITORY = Path(__file__).resolve().parent.parent
HEADSTACK = [sys.executable, "-c", "from headstack.cli import main; main()"]
ROW = "row: "


def cargo_test(package: str, program: str, *arguments: str) -> list[str]:
    """The tests of a program that the arguments name."""
    return ["cargo", "test", "--quiet", "-p", package, "--test", program, "--", *arguments, "--nocapture"]


TESTS = {
    "published measurements": cargo_test("headstack-catalogue", "suite", "published::"),
    "power cuts": cargo_test("headstack-live", "suite", "power::", "--ignored"),
    "sampling errors": cargo_test("headstack-catalogue", "suite", "sampling::", "--ignored"),
    "live verdicts": cargo_test("headstack-live", "verdict", "what_a_verdict_states", "--ignored"),
    "crash tests of stores": ["env", "PYTHONPATH=tests/python", sys.executable, "-m", "stores"],
    "inverse studies": [sys.executable, "benches/fits.py"],
    "twins of hidden devices": [*HEADSTACK, "twin", "validate", "--family", "disk", "--devices", "12", "--seed", "3"],
    "devices of no family": [*HEADSTACK, "twin", "validate", "--family", "strangers", "--devices", "12", "--seed", "3"],
    "the machine's own disk": [sys.executable, "benches/own_disk.py"],
    "choices": [sys.executable, "benches/choosing.py"],
    "tests in a virtual machine": ["make", "--silent", "vm-tests"],
    "fio's requests": [sys.executable, "tests/python/fio_conformance.py"],
    "the sdist, built from nothing": [sys.executable, "tests/python/packages.py", "target/packages", "--whole"],
    "the sdist beside the wheel, and the README's tour from it": [
        *["env", "HEADSTACK_INSTALLED=target/packages/sdist", sys.executable, "-m", "pytest"],
        *["tests/python/test_packages.py", "tests/python/test_readme.py"],
    ],
}

Row = dict[str, Any]


def row(name: str, value: float | None, unit: str, bar: Any = None, bar_is: str | None = None) -> Row:
    """A row in the form of target/bench.json."""
    met = None
    if bar is not None and value is not None:
        met = {"at least": value >= bar, "at most": value <= bar}[str(bar_is)]
    return {"name": name, "value": value, "unit": unit, "bar": bar, "bar_is": bar_is, "bar_met": met}


def step(command: list[str]) -> tuple[bool, list[Row]]:
    """Carries out a command; whether it went well, and the rows among its lines. All others are passed on."""
    rows = []
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(ROW):
                rows.append(json.loads(line.removeprefix(ROW)))
            else:
                print(line, end="", flush=True)
    return process.returncode == 0, rows


def passed(name: str, went_well: bool) -> Row:
    """The row of a step whose own limits held, or not."""
    return row(f"{name}: limits that did not hold", 0 if went_well else 1, "steps", 0, "at most")


def demerits(folder: Path) -> list[Row]:
    """What `headstack validate` finds, against DiskSim's own figures."""
    command = [*HEADSTACK, "validate", str(folder), "--json", "--quiet"]
    shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    rows = [passed("demerits", shown.returncode == 0)]
    if shown.returncode != 0:
        return rows
    for drive in json.loads(shown.stdout):
        published = drive["published_ms"]
        bar = () if published is None else (published, "at most")
        rows.append(row(f"{drive['name']}: demerit", drive["demerit_ms"], "ms", *bar))
        rows.append(row(f"{drive['name']}: demerit over mean", 100 * drive["demerit_relative"], "%"))
    return rows


def claims(folder: Path) -> list[Row]:
    """How many claims of each study came to which verdict."""
    rows = []
    for name in hs.studies.listed():
        outcome = json.loads((folder / name / "outcome.json").read_text(encoding="utf-8"))
        verdicts = [claim["verdict"] for claim in outcome["claims"]]
        rows += [row(f"study {name}: {word}", verdicts.count(word), "claims") for word in dict.fromkeys(verdicts)]
    return rows


def main() -> int:
    rows: list[Row] = []
    skipped: list[dict[str, str]] = []
    for name, command in TESTS.items():
        print(f"\n{name}", flush=True)
        went_well, found = step(command)
        rows += [*found, passed(name, went_well)]
    studies = REPOSITORY / "target" / "studies"
    went_well, _ = step([*HEADSTACK, "study", "run", "--all", "-o", str(studies), "--quiet"])
    rows += [passed("studies", went_well), *(claims(studies) if went_well else [])]
    measured = Path(os.environ.get("HEADSTACK_SHARED", REPOSITORY / ".." / "shared")) / "validation" / "disksim"
    if measured.is_dir():
        rows += demerits(measured)
    else:
        skipped.append({"name": "demerits", "reason": f"no validation data in {measured}"})
        print(f"skipped: no validation data in {measured} (HEADSTACK_SHARED names another folder)")
    written = REPOSITORY / "target" / "validate.json"
    machine = {"version": hs.__version__, "measured_unix_s": int(time.time()), "cores": os.cpu_count()}
    written.write_text(json.dumps({"machine": machine, "rows": rows, "skipped": skipped}, indent=2) + "\n")
    judged = [one["bar_met"] for one in rows if one["bar_met"] is not None]
    print(f"\n{sum(judged)} of {len(judged)} bars met; rows in target/validate.json")
    return 0 if all(one["value"] == 0 for one in rows if one["unit"] == "steps") else 1


if __name__ == "__main__":
    sys.exit(main())
