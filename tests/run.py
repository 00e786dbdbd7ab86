#!/usr/bin/env python3
"""Builds and runs the tests, in stages that overlap: `make test`, and with --all `make test-all`.

    tests/run.py            what every change needs
    tests/run.py --all      that and the tests marked as slow, with the engine and the packages as they ship

The compiler runs first, while the environment and the pages are made. Then the Rust tests run together with the Python
tests, which use three workers because many of them sleep. The run ends with a table of the stages, with their wall and
CPU time.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import leftovers

REPOSITORY = Path(__file__).resolve().parent.parent
TARGET = REPOSITORY / "target"
BIN = REPOSITORY / os.environ.get("VENV", ".venv") / "bin"
SKIPPED = TARGET / "skipped.txt"
UNTRACKED = ["git", "ls-files", "--others", "--exclude-standard"]
PACKAGE_TESTS = "tests/python/test_packages.py"
WORKERS = 3
"""pytest processes: one more than the cores of a small machine, since tests of live exports sleep."""
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Stage:
    """A command, the stages that must have ended well before it starts, and what it took."""

    name: str
    command: list[str]
    after: list[Stage] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    shown: bool = False
    """True prints the output live; False prints it only if the stage fails."""
    code: int | None = None
    wall_s: float = 0.0
    cpu_s: float = 0.0
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def log(self) -> Path:
        """The file that receives the output of a stage that is not shown."""
        return TARGET / "stages" / f"{self.name.replace(' ', '-')}.log"


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds and runs the tests.", allow_abbrev=False)
    parser.add_argument("--all", action="store_true", help="Also the tests marked as slow.")
    options = parser.parse_args()
    (TARGET / "stages").mkdir(parents=True, exist_ok=True)
    SKIPPED.unlink(missing_ok=True)
    before = untracked()
    leftovers.adopt_orphans()
    folder = Path(tempfile.mkdtemp(prefix="hs-"))
    # Tests run servers as other users too, whose data are below it.
    folder.chmod(0o755)
    os.environ["TMPDIR"] = str(folder)
    # uv installs no bytecode, and some machines forbid to write it: hundreds of processes would compile their imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(TARGET / "pycache")
    stages = plan(options.all)
    start_s = time.monotonic()
    run_all(stages)
    left = [*leftovers.end_processes(set()), *leftovers.end_mounts_and_loops(folder)]
    shutil.rmtree(folder, ignore_errors=True)
    wall_s = time.monotonic() - start_s
    report_skipped()
    print(table(stages, wall_s), flush=True)
    failed = [stage.name for stage in stages if stage.code != 0]
    left += [f"file in the checkout: {name}" for name in sorted(set(untracked()) - set(before))]
    if left:
        print("the tests left behind:", *left, sep="\n", file=sys.stderr)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed or left else 0


def plan(is_all: bool) -> list[Stage]:
    """The stages in the order of their start."""
    make = ["make", "--silent"]
    choice = {"HEADSTACK_TEST_ALL": "1"} if is_all else {}
    engine = Stage("page engine", [*make, "engine" if is_all else "quick-engine"])
    pages = Stage("pages", [*make, "python/headstack/report/bundle.js"])
    environment = Stage("environment", [*make, "environment"])
    module = Stage("module", [*make, "module"], [environment])
    wheel = package("wheel", [module, pages, engine])
    # Building a package builds the engine of its pages: the same one as above.
    wheel.environment = {} if is_all else {"QUICK_ENGINE": "1"}
    rust_build = Stage("Rust tests, build", ["cargo", "test", "--workspace", "--quiet", "--no-run"], [module])
    rust = Stage(
        "Rust tests, run",
        ["cargo", "test", "--workspace", "--quiet", "--no-fail-fast"],
        [rust_build],
        environment=choice | {"HEADSTACK_SKIPPED": str(SKIPPED)},
    )
    pytest = [str(BIN / "pytest"), "-m", "slow or not slow" if is_all else "not slow"]
    workers = ["-n", str(WORKERS), "--dist", "loadscope", "--max-worker-restart", "0"]
    # These run the program of `make bench`, which the build of the Rust tests makes.
    benches = "tests/python/test_benches.py"
    smoke = Stage("bench and validate", [*pytest, benches], [rust_build, environment], environment=choice)
    python = Stage(
        "Python tests",
        [*pytest, *workers, f"--ignore={benches}"],
        [wheel],
        environment=choice | installed("wheel"),
        shown=True,
    )
    stages = [environment, engine, pages, module, wheel, rust_build, python, rust, smoke]
    if is_all:
        # After the wheel, since both write the page and the engine.
        sdist = package("sdist", [wheel])
        stages += [sdist, Stage("sdist tests", [*pytest, PACKAGE_TESTS], [sdist], choice | installed("sdist"))]
    return stages


def package(kind: str, after: list[Stage]) -> Stage:
    """Builds and installs the wheel or the sdist. At nice 19: compiling the sdist takes as long as many tests."""
    nice = ["nice", "-n", "19"] if kind == "sdist" else []
    build = [str(BIN / "python"), "tests/python/packages.py", f"target/packages-{kind}", kind]
    return Stage(kind, [*nice, *build], after)


def installed(kind: str) -> dict[str, str]:
    """The variable that names the environment to test, for conftest.py."""
    return {"HEADSTACK_INSTALLED": f"target/packages-{kind}/{kind}"}


def run_all(stages: list[Stage]) -> None:
    """Runs each stage in a thread, once those before it have ended; signals end all of them."""
    running = Running()

    def end_all(number: int, _: object) -> None:
        running.end(number)

    # A terminal that hangs up ends a run that was started without nohup; its tests set the signals that they rely on.
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end_all)
    threads = [threading.Thread(target=run_stage, args=(stage, running)) for stage in stages]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)


class Running:
    """The processes of stages, and the signal that ends them; also one that a stage starts while the signal arrives."""

    def __init__(self) -> None:
        self.processes: set[subprocess.Popen[bytes]] = set()
        self.number: int | None = None

    def add(self, process: subprocess.Popen[bytes]) -> None:
        self.processes.add(process)
        # A signal that arrived after the process was started and before it was added has missed it.
        if self.number is not None:
            self.end(self.number)

    def end(self, number: int) -> None:
        self.number = number
        for process in list(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)


def run_stage(stage: Stage, running: Running) -> None:
    """Waits for the stages before, runs the command, and keeps exit code and times."""
    for earlier in stage.after:
        earlier.ended.wait()
    try:
        if all(earlier.code == 0 for earlier in stage.after) and running.number is None:
            run_command(stage, running)
            report(stage)
    finally:
        # Otherwise the stages after a fault of this program would wait forever.
        stage.ended.set()


def run_command(stage: Stage, running: Running) -> None:
    """Runs the command of a stage in a process group of its own."""
    start_s = time.monotonic()
    output = None if stage.shown else stage.log.open("wb")
    process = subprocess.Popen(
        stage.command,
        cwd=REPOSITORY,
        env=os.environ | stage.environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        process_group=0,
    )
    running.add(process)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = stage.code = os.waitstatus_to_exitcode(status)
    running.processes.discard(process)
    stage.wall_s = time.monotonic() - start_s
    stage.cpu_s = usage.ru_utime + usage.ru_stime


def report(stage: Stage) -> None:
    """One line about a stage that has ended, and its output where it failed."""
    if stage.code != 0 and not stage.shown:
        sys.stdout.write(stage.log.read_text(errors="replace"))
    how = "done" if stage.code == 0 else f"failed with exit code {stage.code}: {shlex.join(stage.command)}"
    print(f"[{stage.name}] {how} in {stage.wall_s:.0f} s", flush=True)


def report_skipped() -> None:
    """The Rust tests that skipped something; pytest reports its own."""
    if SKIPPED.is_file():
        print("Rust tests, or parts of them, that were skipped:")
        print(*sorted(set(SKIPPED.read_text().splitlines())), sep="\n")


def untracked() -> list[str]:
    """Files in the checkout that git neither has nor ignores; none where there is no git."""
    try:
        return subprocess.run(UNTRACKED, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return []


def table(stages: list[Stage], wall_s: float) -> str:
    """Wall and processor time of each stage. Stages overlap: their wall times add up to more than the total."""
    lines = [f"{'stage':<20} {'wall s':>7} {'CPU s':>7}"]
    for stage in stages:
        took = f"{stage.wall_s:>7.0f} {stage.cpu_s:>7.0f}" if stage.code is not None else f"{'not run':>15}"
        lines.append(f"{stage.name:<20} {took}")
    lines.append(f"{'total':<20} {wall_s:>7.0f} {sum(stage.cpu_s for stage in stages):>7.0f}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
