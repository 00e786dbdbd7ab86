#!/usr/bin/env python3
"""Runs a test binary for cargo, and ends it once one of its tests takes two minutes: with the name of the test and the
stacks of all threads.

Tests of Rust cannot be ended from within: a thread that hangs stays. Their harness names those that have run for a
minute. Tests that take turns wait for those before them: the two minutes count from the last moment at which one ended.
Time in which a thread could run and had no processor does not count, so that a loaded machine ends nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

LIMIT_S = float(os.environ.get("HEADSTACK_TEST_LIMIT_S", "120"))
# When the harness says the first word.
WARNED_S = min(60.0, LIMIT_S)
# What the debugger may take.
PATIENCE_S = 20

WARNED = re.compile(r"test (\S+) has been running for over 60 seconds")
BEGUN = re.compile(r"test (\S+)(?: - should panic)? \.\.\. ?(.*)")
PASSED = re.compile(r"test \S+(?: - should panic)? \.\.\. (ok|ignored.*)|\s*")


def main() -> int:
    program, *arguments = sys.argv[1:]
    is_test = Path(program).parent.name == "deps"
    if not is_test or {"--list", "--help"} & set(arguments):
        os.execv(program, [program, *arguments])
    is_quiet = bool({"--quiet", "-q"} & set(arguments))
    arguments = [argument for argument in arguments if argument not in ("--quiet", "-q")]
    set_up()
    # A process group of its own, so that what tests have started ends with them.
    child = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, process_group=0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.killpg(child.pid, number))
    hung = watch(child, Harness(is_quiet, Clock(child.pid)))
    if hung is None:
        status = child.wait()
        return status if status >= 0 else 128 - status
    say(f"\ntest {hung} hangs: it has run for {LIMIT_S:g} s. The stacks of {program}, process {child.pid}:\n")
    say(stacks(child.pid))
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    say(f"\ntest {hung} was ended after {LIMIT_S:g} s, and all other tests of {Path(program).name} with it\n")
    return 1


def set_up() -> None:
    """Sets what tests rely on, wherever they are started: signals (``nohup`` ignores one), umask, locale, time zone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o022)
    os.environ.update(LC_ALL="C.UTF-8", TZ="UTC")


class Clock:
    """The time since its start, without that in which a thread of the watched processes waited for a processor."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.now_s = 0.0
        self.read_s = time.monotonic()
        self.waited_ns: dict[int, int] = {}

    def advance(self) -> None:
        read_s, waited_ns = time.monotonic(), dict(waits_of(self.process))
        # A thread that is new since the last reading may have waited for as long as it exists.
        longest_ns = max((wait - self.waited_ns.get(task, 0) for task, wait in waited_ns.items()), default=0)
        self.now_s += max(0.0, read_s - self.read_s - max(0, longest_ns) / 1e9)
        self.read_s, self.waited_ns = read_s, waited_ns


def waits_of(process: int) -> Iterator[tuple[int, int]]:
    """Each thread of a process and of those that it started, and for how many ns it has waited for a processor."""
    with contextlib.suppress(OSError, ValueError):
        for task in Path(f"/proc/{process}/task").iterdir():
            yield int(task.name), int((task / "schedstat").read_text().split()[1])
            for child in (task / "children").read_text().split():
                yield from waits_of(int(child))


class Harness:
    """What the harness has said, which goes on to whoever reads it; quietly, without tests that passed."""

    def __init__(self, is_quiet: bool, clock: Clock) -> None:
        self.is_quiet = is_quiet
        self.line = ""
        self.deadlines: dict[str, float] = {}
        self.clock = clock
        self.heard_s = self.ended_s = clock.now_s

    def hear(self, text: str) -> None:
        self.heard_s = self.clock.now_s
        if not self.is_quiet:
            say(text)
        *lines, self.line = (self.line + text).split("\n")
        for line in lines:
            if warned := WARNED.fullmatch(line):
                self.deadlines[warned[1]] = self.heard_s + LIMIT_S - WARNED_S
            elif begun := BEGUN.match(line):
                self.deadlines.pop(begun[1], None)
                self.ended_s = self.heard_s
            if self.is_quiet and not PASSED.fullmatch(line):
                say(line + "\n")

    def hung(self) -> str | None:
        """A test that has run for too long."""
        now_s = self.clock.now_s
        for name, deadline_s in self.deadlines.items():
            if now_s >= max(deadline_s, self.ended_s + LIMIT_S):
                return name
        if now_s - self.heard_s < LIMIT_S:
            return None
        begun = BEGUN.match(self.line)
        return begun[1] if begun else "of unknown name"


def watch(child: subprocess.Popen[bytes], harness: Harness) -> str | None:
    """Hears a harness to its end, or until one of its tests hangs, which is returned."""
    assert child.stdout is not None
    while True:
        ready, _, _ = select.select([child.stdout], [], [], 0.5)
        harness.clock.advance()
        if ready:
            text = os.read(child.stdout.fileno(), 1 << 16)
            if not text:
                return None
            harness.hear(text.decode(errors="replace"))
        # Who inherited its output may keep that open.
        elif child.poll() is not None:
            return None
        if hung := harness.hung():
            return hung


def stacks(process: int) -> str:
    """Where each thread is: its calls where a debugger is there that may look, and what the kernel says."""
    told = [calls(process)]
    for task in sorted(Path(f"/proc/{process}/task").iterdir(), key=lambda task: int(task.name)):
        facts = {name: read(task / name) for name in ("comm", "wchan", "syscall", "stack")}
        told.append(f"thread {task.name} {facts['comm']}: waits in {facts['wchan']}, system call {facts['syscall']}")
        told.extend(f"    {line}" for line in facts["stack"].splitlines())
    return "\n".join(told) + "\n"


def calls(process: int) -> str:
    commands = {
        "eu-stack": ["eu-stack", "-p", str(process)],
        "gdb": ["gdb", "-nx", "-batch", "-p", str(process), "-ex", "thread apply all bt 40"],
    }
    for program, command in commands.items():
        if shutil.which(program):
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            except subprocess.TimeoutExpired:
                return f"{program} did not find the calls within {PATIENCE_S} s"
            return done.stdout.strip() or f"{program}: {done.stderr.strip()}"
    return f"no calls: none of {', '.join(commands)} is installed"


def read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        return f"({error.strerror})"


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
