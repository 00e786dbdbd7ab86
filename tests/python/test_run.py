"""How `make test` runs: its stages, what a test leaves behind, and how test programs are compiled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

from conftest import REPOSITORY, lacks, load_script

LEAVES_A_PROCESS = f"""
import subprocess, sys
sys.path.insert(0, {str(REPOSITORY / "tests")!r})
import leftovers
leftovers.PATIENCE_S = 0.1
leftovers.adopt_orphans()
kept = leftovers.children()
orphan = "from subprocess import *; print(Popen(['sleep', '1000'], stdout=DEVNULL, stderr=DEVNULL).pid)"
print(subprocess.run([sys.executable, "-c", orphan], capture_output=True, text=True).stdout.strip())
print(*leftovers.end_processes(kept), sep=";")
print(*leftovers.end_processes(kept), sep=";")
"""


def test_an_orphan_of_a_test_is_ended_and_named() -> None:
    done = subprocess.run([sys.executable, "-c", LEAVES_A_PROCESS], capture_output=True, text=True, check=True)
    number, first, second = done.stdout.splitlines()
    assert (first, second) == ("process: sleep 1000", "")
    assert not Path(f"/proc/{number}").exists()


def test_a_loop_device_of_a_test_is_detached_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import leftovers

    backing = tmp_path / "backing"
    backing.write_bytes(bytes(1 << 20))
    made = subprocess.run(["losetup", "--find", "--show", backing], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        lacks("loop", f"no loop device: {made.stderr.strip()}")
    device = made.stdout.strip()
    monkeypatch.setattr(leftovers, "PATIENCE_S", 0.1)
    assert leftovers.end_mounts_and_loops(tmp_path, [device]) == []
    assert leftovers.end_mounts_and_loops(tmp_path) == [f"loop device: {device}"]
    deadline_s = time.monotonic() + 10
    while leftovers.loops_below(tmp_path) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert leftovers.loops_below(tmp_path) == []


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    """tests/run.py as a module."""
    return load_script(REPOSITORY / "tests" / "run.py")


@pytest.fixture
def target(runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of logs, instead of the checkout's own."""
    monkeypatch.setattr(runner, "TARGET", tmp_path)
    (tmp_path / "stages").mkdir()
    return tmp_path


def test_a_stage_starts_after_those_that_it_needs_and_not_if_one_failed(
    runner: ModuleType, target: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first = runner.Stage("first", ["sh", "-c", f"sleep 0.2; echo made >{target}/made"])
    second = runner.Stage("second", ["sh", "-c", f"cat {target}/made; exit 7"], [first])
    third = runner.Stage("third", ["touch", f"{target}/third"], [second])
    runner.run_all([first, second, third])
    assert [stage.code for stage in (first, second, third)] == [0, 7, None]
    assert not (target / "third").exists()
    shown = capfd.readouterr().out
    assert "made\n" in shown, "the output of a stage that failed is shown"
    assert "[second] failed with exit code 7" in shown
    table = runner.table([first, second, third], 1.0)
    assert "not run" in table.splitlines()[3]


RUNS_TWO_STAGES = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(REPOSITORY / "tests")!r})
import run
run.TARGET = Path(sys.argv[1])
(run.TARGET / "stages").mkdir()
first = run.Stage("first", ["sh", "-c", f"touch {{run.TARGET}}/begun; exec sleep 1000"])
run.run_all([first, run.Stage("second", ["true"], [first])])
print(first.code)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_with_all_of_its_stages(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", RUNS_TWO_STAGES, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    while not (tmp_path / "begun").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    shown, _ = process.communicate(timeout=60)
    assert shown.splitlines()[-1] == str(-number)


def test_a_process_that_starts_while_a_signal_arrives_is_ended_too(runner: ModuleType) -> None:
    running = runner.Running()
    running.end(signal.SIGTERM)
    process = subprocess.Popen(["sleep", "1000"], process_group=0)
    running.add(process)
    assert process.wait() == -signal.SIGTERM


@pytest.mark.parametrize("fails", ["no-such-program", "/"])
def test_a_stage_that_cannot_start_keeps_no_other_waiting(
    runner: ModuleType, target: Path, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    first = runner.Stage("first", [fails])
    second = runner.Stage("second", ["true"], [first])
    third = runner.Stage("third", ["true"])
    runner.run_all([first, second, third])
    assert [stage.code for stage in (first, second, third)] == [None, None, 0]


@pytest.mark.parametrize("is_all", [False, True])
def test_each_stage_needs_only_stages_of_the_plan(runner: ModuleType, is_all: bool) -> None:
    stages = runner.plan(is_all)
    names = [stage.name for stage in stages]
    assert len(set(names)) == len(names)
    for stage in stages:
        assert all(any(earlier is one for one in stages) for earlier in stage.after), stage.name


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--crate-name", "suite", "--test"], "--crate-name suite --test -C opt-level=0\n"),
        (["--crate-name", "sim", "-C", "opt-level=2"], "--crate-name sim -C opt-level=2\n"),
    ],
)
def test_only_test_programs_are_compiled_without_optimisation(arguments: list[str], expected: str) -> None:
    wrapper = REPOSITORY / "tests" / "rustc.sh"
    assert os.access(wrapper, os.X_OK)
    done = subprocess.run([wrapper, "echo", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout == expected
