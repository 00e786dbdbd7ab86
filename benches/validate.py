"""`make validate`: how far headstack's answers are from measured and published ones.

    python benches/validate.py            every step; takes hours
    python benches/validate.py --smoke    every step in its smallest form, in about a minute: shows that all of them run
    python benches/validate.py --only choices --only studies

Each step prints its table as it goes. Rows come from `headstack lab validate --json`, from outcomes of the studies, and
from the lines `row: {...}` that tests print. They are written to target/validate.json after each step
(target/validate-smoke.json with `--smoke`) in the form of target/bench.json. A run of all steps is appended to
history/validate.jsonl, and the rows that changed since the last run are printed; `HEADSTACK_HISTORY` names another
folder. Exits with 1 if a step failed. A step fails if its command fails or selects no test.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import headstack as hs

REPOSITORY = Path(__file__).resolve().parent.parent
HEADSTACK = [sys.executable, "-c", "from headstack.cli.main import main; main()"]
PYTEST = [sys.executable, "-m", "pytest"]
WITH_TESTS = ["env", "PYTHONPATH=" + os.pathsep.join(["tests/python", *filter(None, sys.path)]), sys.executable]
ROW, SKIPPED = "row: ", "skipped: "
RUNNING = re.compile(r"running (\d+) tests?$")
CHANGE = 0.05
"""Rows are printed as changed from this relative difference on. Most of them are deterministic."""

Row = dict[str, Any]


class FailedError(Exception):
    """A step that did not succeed, and why."""


@dataclass
class Found:
    """The rows of a step, and the parts of it that this machine skipped."""

    rows: list[Row] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


Step = Callable[[bool], Found]
"""Runs a step, or its smallest form if the argument is true."""


def row(name: str, value: float | None, unit: str, bar: Any = None, bar_is: str | None = None) -> Row:
    """A row in the form of target/bench.json."""
    met = None
    if bar is not None and value is not None:
        met = {"at least": value >= bar, "at most": value <= bar}[str(bar_is)]
    return {"name": name, "value": value, "unit": unit, "bar": bar, "bar_is": bar_is, "bar_met": met}


def run(command: Sequence[str], found: Found, needs_tests: bool = False) -> None:
    """Runs a command, prints its output and collects its rows. Raises if it fails, or runs no test."""
    tests = 0
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(ROW):
                found.rows.append(json.loads(line.removeprefix(ROW)))
                continue
            if line.startswith(SKIPPED):
                found.skipped.append(line.removeprefix(SKIPPED).strip())
            elif (running := RUNNING.match(line.strip())) is not None:
                tests += int(running[1])
            print(line, end="", flush=True)
    if process.returncode != 0:
        raise FailedError(f"exit code {process.returncode}")
    if needs_tests and tests == 0:
        raise FailedError("no test has this name")


def program(command: Sequence[str], smoke: Sequence[str]) -> Step:
    """A step that is one command, with another one for its smallest form."""

    def carry_out(is_smoke: bool) -> Found:
        found = Found()
        run(smoke if is_smoke else command, found)
        return found

    return carry_out


def cargo_test(package: str, program: str, name: str, *options: str) -> Step:
    """The tests of a Rust test program whose path contains ``name``. The smallest form only lists them."""

    def carry_out(is_smoke: bool) -> Found:
        found = Found()
        if is_smoke:
            command = [built_programs()[package, program], name, *options, "--list"]
            listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
            if ": test" not in listed:
                raise FailedError(f"no test of {package} has a name with {name}")
            return found
        command = ["cargo", "test", "--quiet", "-p", package, "--test", program, "--", name, *options, "--nocapture"]
        run(command, found, needs_tests=True)
        return found

    return carry_out


@cache
def built_programs() -> dict[tuple[str, str], str]:
    """The programs of `cargo test --workspace` by package and name. Builds those that are not up to date; after
    `make test` all of them are."""
    command = ["cargo", "test", "--workspace", "--no-run", "--quiet", "--message-format=json"]
    done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True)
    programs = {}
    for message in map(json.loads, done.stdout.splitlines()):
        if message["reason"] == "compiler-artifact" and message["executable"] is not None:
            # The unit tests of a program have its name, but are not the program.
            is_test, target = message["profile"]["test"], message["target"]
            if is_test == (target["kind"] == ["test"]):
                package = message["package_id"].partition("#")[2].partition("@")[0]
                programs[package, target["name"]] = message["executable"]
    return programs


def studies(is_smoke: bool) -> Found:
    """Returns claims of each study by verdict."""
    found = Found()
    if is_smoke:
        with tempfile.TemporaryDirectory() as folder:
            run([*HEADSTACK, "study", "run", SMALLEST_STUDY, "-o", folder, "--quiet"], found)
            found.rows = claims(Path(folder), [SMALLEST_STUDY])
        return found
    folder = REPOSITORY / "target" / "studies"
    run([*HEADSTACK, "study", "run", "--all", "-o", str(folder), "--quiet"], found)
    found.rows += claims(folder, hs.studies.listed())
    return found


SMALLEST_STUDY = "mark5c-2012"


def claims(folder: Path, names: Sequence[str]) -> list[Row]:
    """Returns claims of each study by verdict."""
    rows = []
    for name in names:
        stored = folder / name / "outcome.json"
        outcome = json.loads((stored if stored.is_file() else folder / "outcome.json").read_text(encoding="utf-8"))
        verdicts = [claim["verdict"] for claim in outcome["claims"]]
        rows += [row(f"study {name}: {word}", verdicts.count(word), "claims") for word in dict.fromkeys(verdicts)]
    return rows


def demerits(is_smoke: bool) -> Found:
    """Demerit figures of `headstack lab validate`, compared with those that DiskSim publishes."""
    folder = Path(os.environ.get("HEADSTACK_SHARED", REPOSITORY / ".." / "shared")) / "validation" / "disksim"
    if not folder.is_dir():
        reason = f"no validation data in {folder} (HEADSTACK_SHARED names another folder)"
        print(f"{SKIPPED}{reason}")
        return Found(skipped=[reason])
    command = [*HEADSTACK, "validate", str(folder), "--json", "--quiet"]
    shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if shown.returncode != 0:
        raise FailedError(f"exit code {shown.returncode}")
    rows = []
    for drive in json.loads(shown.stdout):
        published = drive["published_ms"]
        bar = () if published is None else (published, "at most")
        rows.append(row(f"{drive['name']}: demerit", drive["demerit_ms"], "ms", *bar))
        rows.append(row(f"{drive['name']}: demerit over mean", 100 * drive["demerit_relative"], "%"))
    return Found(rows)


def twins(family: str, smoke_family: str) -> Step:
    """Calibrates models of hidden devices. The smallest form takes one device of a family that needs little time."""
    command = [*HEADSTACK, "twin", "validate", "--seed", "3", "--family"]
    return program([*command, family, "--devices", "12"], [*command, smoke_family, "--devices", "1"])


CHOOSING = [sys.executable, "benches/choosing.py"]
TOUR = ["tests/python/test_packages.py", "tests/python/test_readme.py"]
STEPS: dict[str, Step] = {
    "published measurements": cargo_test("headstack-catalogue", "suite", "published::"),
    "power cuts": cargo_test("headstack-live", "suite", "power::", "--ignored"),
    "sampling errors": cargo_test("headstack-catalogue", "suite", "sampling::", "--ignored"),
    "live verdicts": cargo_test("headstack-live", "verdict", "a_verdicts_bound_holds", "--ignored"),
    "crash tests of stores": program([*WITH_TESTS, "-m", "stores"], [*WITH_TESTS, "-m", "stores", "--list"]),
    "inverse studies": program([sys.executable, "benches/fits.py"], [sys.executable, "benches/fits.py", "--smoke"]),
    "twins of hidden devices": twins("disk", "volume"),
    "devices of no family": twins("strangers", "strangers"),
    "the machine's own disk": program(
        [sys.executable, "benches/own_disk.py"], [sys.executable, "benches/own_disk.py", "--smoke"]
    ),
    "choices": program(CHOOSING, [*CHOOSING, "--smoke"]),
    "tests in a virtual machine": program(
        ["make", "--silent", "vm-tests"], ["make", "--silent", "--dry-run", "vm-tests"]
    ),
    "fio's requests": program(
        [sys.executable, "tests/python/fio_conformance.py"],
        [sys.executable, "tests/python/fio_conformance.py", "--smoke"],
    ),
    "the sdist, built from nothing": program(
        [sys.executable, "tests/python/packages.py", "target/packages", "sdist"],
        [*WITH_TESTS, "-c", "import packages"],
    ),
    "the installed sdist, and the commands of the README with it": program(
        ["env", "HEADSTACK_INSTALLED=target/packages/sdist", *PYTEST, *TOUR],
        [*PYTEST, "--collect-only", "-p", "no:cacheprovider", *TOUR],
    ),
    "studies": studies,
    "demerits": demerits,
}


def bare_loop_per_s(is_smoke: bool) -> float:
    """The machine's own speed, as in target/bench.json: requests a second of the bare loop."""
    release = ["cargo", "run", "--quiet", "--release", "-p", "headstack-benches", "--bin", "speed", "--"]
    program = [built_programs()["headstack-benches", "speed"]] if is_smoke else release
    done = subprocess.run([*program, "--bare-loop"], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def commit() -> str | None:
    """The commit that is checked out, with ``-dirty`` if the checkout has changes."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    try:
        return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


@dataclass
class Validation:
    """The steps that have run so far."""

    is_smoke: bool
    machine: dict[str, Any]
    speeds_per_s: list[float] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return REPOSITORY / "target" / ("validate-smoke.json" if self.is_smoke else "validate.json")

    def attempt(self, name: str, work: Step) -> None:
        """Runs a step. Its failure is reported, and the rows of the others are kept."""
        print(f"\n{name}", flush=True)
        began_s = time.monotonic()
        found, reason = Found(), None
        try:
            found = work(self.is_smoke)
        except FailedError as failure:
            reason = str(failure)
        except Exception as error:
            traceback.print_exc()
            reason = f"{type(error).__name__}: {error}"
        if self.is_smoke:
            found.rows = [one | {"bar": None, "bar_is": None, "bar_met": None} for one in found.rows]
        self.rows += found.rows
        self.rows.append(row(f"{name}: limits that did not hold", 0 if reason is None else 1, "steps", 0, "at most"))
        self.skipped += [{"name": name, "reason": skipped} for skipped in found.skipped]
        self.steps.append({"name": name, "seconds": time.monotonic() - began_s, "failed": reason is not None})
        if reason is not None:
            self.failed.append({"name": name, "reason": reason})
            print(f"{name}: FAILED: {reason}", flush=True)
        self.write()

    def measure_machine(self) -> None:
        """Measures the machine's own speed once more."""

        def measured(is_smoke: bool) -> Found:
            self.speeds_per_s.append(bare_loop_per_s(is_smoke))
            self.machine["bare_loop_per_s"] = statistics.median(self.speeds_per_s)
            print(f"bare loop {self.speeds_per_s[-1]:,.0f} requests/s")
            return Found()

        self.attempt("the machine's own speed", measured)

    def document(self) -> dict[str, Any]:
        """Returns the content of the JSON file."""
        parts = {"steps": self.steps, "rows": self.rows, "skipped": self.skipped, "failed": self.failed}
        return {"machine": self.machine} | parts

    def write(self) -> None:
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(self.document(), indent=2) + "\n", encoding="utf-8")


def history() -> Path:
    """The runs of this checkout: outside target, so that `make clean` keeps them."""
    return Path(os.environ.get("HEADSTACK_HISTORY", REPOSITORY / "history")) / "validate.jsonl"


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """A line for each row that changed between two runs, or is missing from the second."""
    old, new = ({one["name"]: one for one in run["rows"]} for run in (before, after))
    lines = []
    for name, one in new.items():
        if name not in old or None in (one["value"], old[name]["value"]):
            continue
        was, value = old[name]["value"], one["value"]
        if abs(value - was) > CHANGE * abs(was) or one["bar_met"] != old[name]["bar_met"]:
            lines.append(f"{name}: {was:.4g} -> {value:.4g} {one['unit']}")
    return lines + [f"not measured this time: {name}" for name in old if name not in new]


def keep(run: dict[str, Any]) -> None:
    """Prints the changes since the last run, and appends this one."""
    path = history()
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    if lines:
        before = json.loads(lines[-1])
        changed = changes(before, run)
        print(f"changes since commit {before['machine']['commit']}: {'none' if not changed else ''}")
        print("".join(f"  {line}\n" for line in changed), end="")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(run) + "\n")
    print(f"run appended to {path}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="run every step in its smallest form")
    parser.add_argument("--only", metavar="STEP", action="append", choices=STEPS, help="run this step; may be repeated")
    given = parser.parse_args()
    began_s = int(time.time())
    machine = {"version": hs.__version__, "commit": commit(), "measured_unix_s": began_s, "cores": os.cpu_count()}
    validation = Validation(given.smoke, machine)
    validation.measure_machine()
    for name, work in STEPS.items():
        if given.only is None or name in given.only:
            validation.attempt(name, work)
    if not given.smoke:
        validation.measure_machine()
    judged = [one["bar_met"] for one in validation.rows if one["bar_met"] is not None]
    print(f"\n{sum(judged)} of {len(judged)} bars met; rows in {validation.path.relative_to(REPOSITORY)}")
    if not given.smoke and given.only is None:
        keep(validation.document())
    for failure in validation.failed:
        print(f"FAILED: {failure['name']}: {failure['reason']}")
    return 1 if validation.failed else 0


if __name__ == "__main__":
    sys.exit(main())
