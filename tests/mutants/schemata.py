"""Builds the tests of Rust crates once with all mutants in them, and runs for each mutant the tests that reach it."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rust

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import leftovers

WORKERS = 2
TIMES_AS_LONG, LEAST_S = 5, 20
"""A mutant with which no test ends for so many times as long as the longest takes hangs, which counts as noticed."""
QUICK_S = 1.0
"""Tests up to this duration run before the others."""


@dataclass
class Outcome:
    """What became of a mutant that was drawn from a folder."""

    folder: str
    name: str
    """The file, the line and the change."""
    is_viable: bool = True
    noticed_by: str | None = None


@dataclass(frozen=True)
class Test:
    """A test of a test program."""

    program: Path
    crate: Path
    name: str


@dataclass
class Trial:
    """A copy of the crates with numbered mutants, and the tests that reach each of them."""

    tree: Path
    build: Path
    place: Path
    mutants: dict[int, tuple[Path, rust.Mutant]]
    originals: dict[Path, bytes] = field(default_factory=dict)
    reached_by: dict[int, list[Test]] = field(default_factory=lambda: defaultdict(list))
    took_s: dict[Test, float] = field(default_factory=dict)


def crate_of(path: Path) -> Path:
    """The crate that a file or folder belongs to."""
    return next(folder for folder in (path, *path.parents) if (folder / "Cargo.toml").is_file())


def package_of(crate: Path) -> str:
    """The name of a crate, as cargo takes it."""
    return str(tomllib.loads((crate / "Cargo.toml").read_text(encoding="utf-8"))["package"]["name"])


def drawn(tree: Path, folder: str, sample: int | None, seed: int) -> list[tuple[Path, rust.Mutant]]:
    """Mutants of a folder, the same for the same seed."""
    files = rust.sources(tree / folder, crate_of(tree / folder))
    found = [(path, mutant) for path in files for mutant in rust.mutants(path.read_bytes())]
    chosen = (
        range(len(found)) if sample is None else random.Random(seed).sample(range(len(found)), min(sample, len(found)))
    )
    return [found[index] for index in sorted(chosen)]


def outcomes(
    tree: Path, build: Path, folders: Mapping[str, Sequence[str]], sample: int | None, seed: int
) -> list[Outcome]:
    """What became of the mutants drawn from each folder of a copy of the crates, by the tests of the packages that are
    named with it and of its own crate."""
    begin_s = time.monotonic()
    each = [(folder, *one) for folder in folders for one in drawn(tree, folder, sample, seed)]
    found = {
        number: Outcome(folder, f"{path.relative_to(tree)}:{mutant.line}: {mutant.what}")
        for number, (folder, path, mutant) in enumerate(each, start=1)
    }
    # Tests of live exports make sockets, whose paths are short.
    place = Path(tempfile.mkdtemp(prefix="hs-"))
    place.chmod(0o755)
    trial = Trial(tree, build, place, {number: each[number - 1][1:] for number in found})
    packages = sorted(
        {name for folder, more in folders.items() for name in (package_of(crate_of(tree / folder)), *more)}
    )
    try:
        programs = built(trial, packages)
        built_s = time.monotonic()
        run_without_mutant(trial, programs)
        print(f"{len(trial.took_s)} tests pass without a mutant", flush=True)
        reached_s = time.monotonic()

        def noticed_or_printed(number: int) -> str | None:
            noticed = noticed_by(trial, number)
            if noticed is None:
                print(f"survives: {found[number].name}", flush=True)
            return noticed

        with ThreadPoolExecutor(WORKERS) as threads:
            noticed = dict(zip(trial.mutants, threads.map(noticed_or_printed, trial.mutants), strict=True))
    finally:
        # Programs that were ended leave mounts and loop devices.
        leftovers.end_mounts_and_loops(place)
        shutil.rmtree(place, ignore_errors=True)
    for number, outcome in found.items():
        outcome.is_viable, outcome.noticed_by = number in noticed, noticed.get(number)
    parts = (built_s - begin_s, reached_s - built_s, time.monotonic() - reached_s)
    print(
        "built in {:.0f} s, run without a mutant in {:.0f} s, with each mutant in {:.0f} s".format(*parts), flush=True
    )
    return list(found.values())


def write(trial: Trial) -> None:
    """Writes the files that have mutants, and the switch into each crate that has some."""
    files = {path for path, _ in trial.mutants.values()} | trial.originals.keys()
    libraries = {crate_of(path) / "src/lib.rs" for path in files}
    for path in files | libraries:
        original = trial.originals.setdefault(path, path.read_bytes())
        source = rust.schemata(
            original, [(number, one) for number, (file, one) in trial.mutants.items() if file == path]
        )
        if path in libraries:
            source += rust.SWITCH.format(count=max(trial.mutants, default=0) + 1).encode()
        update(path, source)


def update(path: Path, content: bytes) -> None:
    """Writes a file unless it is so already: cargo compiles again what has a new date."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def built(trial: Trial, packages: Sequence[str]) -> list[tuple[Path, Path]]:
    """The test programs of some packages, each with its crate. Mutants that do not compile are dropped on the way."""
    while True:
        write(trial)
        named = [word for name in packages for word in ("-p", name)]
        command = ["cargo", "test", "--no-run", "--quiet", "--no-fail-fast", "--message-format=json", *named]
        environment = os.environ | {"CARGO_TARGET_DIR": str(trial.build)}
        done = subprocess.run(command, cwd=trial.tree, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode == 0:
            return [
                (Path(one["executable"]), Path(one["manifest_path"]).parent)
                for one in messages
                if one["reason"] == "compiler-artifact" and one["executable"] and one["profile"]["test"]
            ]
        errors = [one["message"] for one in messages if one["reason"] == "compiler-message"]
        errors = [one for one in errors if one["level"] == "error"]
        dropped = {number for error in errors for number in at_fault(trial, error)}
        if not dropped:
            sys.exit("".join(error["rendered"] for error in errors) or "cargo test: the build fails")
        for number in dropped:
            trial.mutants.pop(number, None)


def at_fault(trial: Trial, error: dict[str, Any]) -> list[int]:
    """The mutants that an error of rustc is about."""
    numbers = []
    for span in error["spans"]:
        path = trial.tree / span["file_name"]
        if span["is_primary"] and path.is_file():
            numbers += rust.at_fault(path.read_bytes(), span["byte_start"], span["byte_end"])
    return numbers


def environment(trial: Trial, crate: Path, more: Mapping[str, str]) -> dict[str, str]:
    """The environment in which cargo would run a test of a crate, with more variables."""
    config = trial.tree / ".cargo/config.toml"
    stated = tomllib.loads(config.read_text(encoding="utf-8")).get("env", {}) if config.is_file() else {}
    own = {"CARGO_MANIFEST_DIR": str(crate), "TMPDIR": str(trial.place)}
    return {**os.environ, **stated, **own, **more}


def failed(trial: Trial, tests: Sequence[Test], limit_s: float, more: Mapping[str, str]) -> str | None:
    """The first test of a program that fails, or why the program ended; nothing where all pass. The program ends when
    no test of it has ended for the time limit."""
    program, crate = tests[0].program, tests[0].crate
    process = subprocess.Popen(
        [str(program), "--exact", *(test.name for test in tests)],
        cwd=crate,
        env=environment(trial, crate, more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        process_group=0,
    )
    assert process.stdout is not None
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(limit_s, end)
    timer.start()
    try:
        for line in process.stdout:
            timer.cancel()
            timer = threading.Timer(limit_s, end)
            timer.start()
            if line.startswith("test ") and line.rstrip().endswith("FAILED"):
                return line.split()[1]
        code = process.wait()
    finally:
        timer.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()
    if is_late.is_set():
        return f"the time limit of {limit_s:.0f} s"
    return f"exit code {code}" if code else None


def run_without_mutant(trial: Trial, programs: Sequence[tuple[Path, Path]]) -> None:
    """Runs each test alone, and keeps how long it took and which mutants it reached."""
    tests = []
    for program, crate in programs:
        listed = subprocess.run([program, "--list"], cwd=crate, capture_output=True, text=True, check=True).stdout
        names = [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]
        tests += [Test(program, crate, name) for name in names]

    def run(test: Test) -> str | None:
        folder = Path(tempfile.mkdtemp(dir=trial.place))
        folder.chmod(0o777)
        begin_s = time.monotonic()
        failure = failed(trial, [test], 600, {"HEADSTACK_MUTANTS_REACHED": str(folder)})
        trial.took_s[test] = time.monotonic() - begin_s
        for path in folder.iterdir():
            trial.reached_by[int(path.name)].append(test)
        return f"{test.program.name}: {test.name}: {failure}" if failure else None

    with ThreadPoolExecutor(WORKERS) as threads:
        for failure in threads.map(run, tests):
            if failure:
                threads.shutdown(wait=False, cancel_futures=True)
                sys.exit(f"a test fails as the code is: {failure}")


def noticed_by(trial: Trial, number: int) -> str | None:
    """The test that fails with a mutant, or why its program ended; nothing where all pass. Quick tests run first."""
    groups = defaultdict(list)
    for test in trial.reached_by[number]:
        groups[trial.took_s[test] > QUICK_S, str(test.program)].append(test)
    for _, tests in sorted(groups.items()):
        limit_s = max(LEAST_S, TIMES_AS_LONG * max(trial.took_s[test] for test in tests))
        failure = failed(trial, tests, limit_s, {"HEADSTACK_MUTANT": str(number)})
        if failure:
            return failure
    return None
