"""Ctrl-C, SIGTERM and SIGHUP are one wish: nothing half-written is left, and what was measured is kept."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import random
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from conftest import CHEETAH

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
COMMAND = [sys.executable, "-c", "from headstack.cli.main import main; main()"]
NULL = "null:1ms"
LONG = ("--time", "1000s")
PATIENCE_S = 60


def started(folder: Path, *arguments: str, **how: object) -> subprocess.Popen[str]:
    """A command, once it hears signals."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
    process: subprocess.Popen[str] = subprocess.Popen([*COMMAND, *arguments], cwd=folder, text=True, **pipes)  # type: ignore[call-overload]
    wait_for(lambda: hears(process.pid) or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return process


def measuring(folder: Path, *outputs: str) -> subprocess.Popen[str]:
    """A measurement under way: a thread makes requests, one waits for it, and Python's listens."""
    process = started(folder, "measure", NULL, *LONG, "-q", *outputs)
    wait_for(lambda: len(os.listdir(f"/proc/{process.pid}/task")) >= 3)
    return process


def hears(process: int) -> bool:
    """Whether it has a handler for SIGTERM, which Python by itself has not."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def wait_for(holds: object) -> None:
    """Waits until it is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.005)


def ended(process: subprocess.Popen[str], number: int) -> tuple[str, str]:
    """What it says after that signal; the exit code is the shell's."""
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number, err
    assert "Traceback" not in err
    return out, err


def left(folder: Path) -> set[str]:
    """The names of all files, hidden ones too."""
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("number", ENDING)
def test_a_simulation_writes_nothing(number: int, tmp_path: Path) -> None:
    outputs = ("--json", "r.json", "--record", "r.parquet")
    process = started(tmp_path, "run", CHEETAH, "-w", "file-server", "--requests", "1000000000", *outputs)
    wait_for(lambda: left(tmp_path))
    _, err = ended(process, number)
    # After the terminal's own ^C, the line stands by itself.
    assert err.strip() == "headstack: interrupted; nothing is written"
    assert left(tmp_path) == set()


@pytest.mark.parametrize("number", ENDING)
def test_a_measurement_is_kept(number: int, tmp_path: Path) -> None:
    process = measuring(tmp_path, "--json", "m.json", "--csv", "m.csv")
    time.sleep(random.uniform(0, 0.2))
    out, err = ended(process, number)
    assert err == "headstack: ended early; results up to then are kept: stopped by hand\n"
    assert "IOPS" in out
    [run] = json.loads((tmp_path / "m.json").read_text())
    assert run["ended_early"] == "stopped by hand"
    assert left(tmp_path) == {"m.json", "m.csv"}


def test_what_begins_after_the_signal_ends_at_once() -> None:
    """A test of many short measurements ends too, though each is over before anybody looks whether to go on."""
    script = """
import os, signal, headstack as hs
from headstack.io import signals
from headstack.measurement.measurement import Access, Opened, Step
from headstack.catalogue.workload import Workload
signals.install()
with signals.held():
    opened = Opened(["null:1ms"], Access(), writing=False)
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(3):
        print(opened.measure([Step(Workload.uniform().copy(), limits={"time_ns": 10**12})])[0]["ended_early"])
    try:
        Opened(["null:1ms"], Access(), writing=False)
    except KeyboardInterrupt:
        print("nothing is opened any more")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.stdout, done.stderr) == (3 * "stopped by hand\n" + "nothing is opened any more\n", "")


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("command", [("import", "-o", "t.parquet"), ("split", "-o", "volumes")])
def test_an_import_or_split_leaves_nothing(command: tuple[str, ...], number: int, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "endless.csv")
    process = started(tmp_path, "trace", *command, "endless.csv", "--format", "msr")
    with open(tmp_path / "endless.csv", "w", encoding="ascii") as file:
        try:
            for i in range(200_000):
                file.write(f"{128166372003061629 + 10_000 * i},hm,0,Read,{4096 * (i % 999)},4096,100\n")
            process.send_signal(number)
            for i in range(200_000, 10_000_000):
                file.write(f"{128166372003061629 + 10_000 * i},hm,0,Read,{4096 * (i % 999)},4096,100\n")
        except BrokenPipeError:
            pass
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err.strip()) == (128 + number, "headstack: interrupted; nothing is written")
    (tmp_path / "endless.csv").unlink()
    assert left(tmp_path) == set()


@pytest.mark.parametrize("number", ENDING)
def test_a_file_half_created_is_removed(number: int, tmp_path: Path) -> None:
    process = started(tmp_path, "measure", "./new", "--create", "3GiB", "--buffered", "--size", "4KiB")
    wait_for(lambda: left(tmp_path))
    ended(process, number)
    assert left(tmp_path) == set()


@pytest.mark.parametrize("number", ENDING)
def test_a_conditioning_goes_on_where_it_was(number: int, tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(bytes(1 << 23))
    module = ("measure", "condition", "./disk", "--read-only", "--buffered", "-q")
    log = ("--log", "c.log", "--json", "c.json")
    process = started(tmp_path, *module, "--block", "512B", "--ahead", "1", "--interval", "10ms", *log)
    wait_for(lambda: (tmp_path / "c.log").exists() and (tmp_path / "c.log").read_bytes().count(b"\n") > 1)
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    # A quick machine may be done, and its program on the way out, where nobody hears a signal any more.
    is_done = (tmp_path / "c.json").exists()
    assert process.returncode in (0, 128 + number) or (is_done and process.returncode == -number), err
    gone_on = subprocess.run([*COMMAND, *module, *log, "--resume"], cwd=tmp_path, capture_output=True, text=True)
    assert gone_on.returncode == 0, gone_on.stderr
    assert json.loads((tmp_path / "c.json").read_text())["is_whole"]
    assert left(tmp_path) == {"disk", "c.log", "c.json"}


CHARACTERIZING = """
import sys, time
from headstack.prediction import predictor; from headstack.io import signals
from headstack.prediction.predictor import Axes; from headstack.prediction import grid, stored_tests
from headstack.prediction.device_tests import Device

target, pause_after = sys.argv[1], int(sys.argv[2])
few = dict(
    depths=(1, 4), sizes_bytes=(4096,), range_steps=(8,), streams=(2,), switches=(0.0, 1.0),
    random_shares=(0.5, 1.0), read_shares=(0.0, 1.0), mixed_sizes_bytes=(4096,), mixed_ranges=(0,), open_shares=(1,),
    hot_ranges=(1,), loads=(0.5,), requests=100, warm_up=1, environments=10,
)
stored_tests.EVERY_S = 0.0
stored_tests.BATCH = 10
made = [0]

def counted(make, tests_of):
    def counting(*arguments):
        found = make(*arguments)
        made[0] += tests_of(arguments)
        if made[0] >= pause_after:
            print("under way", flush=True)
            time.sleep(60)
        return found
    return counting

grid.run = counted(grid.run, lambda arguments: len(arguments[0]))
# A device that a busy machine starved is measured again for the same test: tests are counted, not measurements.
Device.run = counted(Device.run, lambda arguments: len(arguments[1]))
signals.install()
real = target.startswith("null")
try:
    found = predictor.characterize(target, axes=Axes(**few), **({"time": "2s"} if real else {}))
except KeyboardInterrupt:
    sys.exit(signals.exit_code())
print(made[0], "tests")
print("" if real else found.to_json(), end="")
"""
"""Makes few tests, and waits for a signal once so many are made."""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Of each target the number of tests, and what they come to."""

    def made(target: str) -> tuple[int, str]:
        done = characterizing(tmp_path_factory.mktemp("whole"), target)
        out, err = done.communicate(timeout=PATIENCE_S)
        assert done.returncode == 0, err
        tests, _, found = out.partition(" tests\n")
        return int(tests), found

    return {target: made(target) for target in (CHEETAH, NULL)}


def characterizing(folder: Path, target: str, pause_after: int = 10**9) -> subprocess.Popen[str]:
    """A characterization under way, whose cache is this folder."""
    command = [sys.executable, "-c", CHARACTERIZING, target, str(pause_after)]
    environment = os.environ | {"XDG_CACHE_HOME": str(folder)}
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize(
    ("target", "number"),
    [*((CHEETAH, number) for number in (*ENDING, signal.SIGKILL)), (NULL, signal.SIGHUP), (NULL, signal.SIGKILL)],
)
def test_a_characterization_goes_on_where_it_was(
    target: str, number: int, tmp_path: Path, uninterrupted: dict[str, tuple[int, str]]
) -> None:
    tests, whole = uninterrupted[target]
    process = characterizing(tmp_path, target, pause_after=25)
    assert process.stdout is not None
    assert process.stdout.readline() == "under way\n"
    process.send_signal(number)
    assert process.wait(timeout=PATIENCE_S) == (-number if number == signal.SIGKILL else 128 + number)
    # Of those that were handed over last, nobody has heard what they came to.
    (folder,) = (tmp_path / "headstack/characterizations").glob("*/*")
    keys = [key for path in folder.glob("[0-9a-f]*.json") for key in json.loads(path.read_text())]
    assert 20 <= len(keys) < 25
    out, err = characterizing(tmp_path, target).communicate(timeout=PATIENCE_S)
    assert out == f"{tests - len(keys)} tests\n{whole}", err
    # What is whole needs its tests no more.
    assert not folder.exists()


def test_what_ends_a_characterization_is_told(tmp_path: Path) -> None:
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    process = started(tmp_path, "lab", "characterize", "dc-s3700-400gb", "-q", env=environment)
    wait_for(lambda: list((tmp_path / "cache").rglob("[0-9a-f]*.json")))
    _, err = ended(process, signal.SIGTERM)
    assert err == "headstack: interrupted; finished tests are kept: repeat the command to resume\n"
    assert left(tmp_path) == {"cache"}


@pytest.mark.parametrize("number", ENDING)
def test_an_export_ends_with_its_report_and_its_trace(number: int, tmp_path: Path) -> None:
    """An end by a signal is the end that a service has."""
    export = ("--nbd", f"unix:{tmp_path}/s", "--record", "t.parquet", "--json", "f.json")
    process = started(tmp_path, "serve", CHEETAH, *export)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")
    assert left(tmp_path) == {"t.parquet", "f.json"}


def test_signals_in_quick_succession_are_one(tmp_path: Path) -> None:
    """A terminal's end comes twice, from the kernel and from the shell."""
    process = measuring(tmp_path, "--json", "m.json")
    for _ in range(3):
        process.send_signal(signal.SIGHUP)
    ended(process, signal.SIGHUP)
    assert left(tmp_path) == {"m.json"}


def test_a_third_signal_ends_what_two_do_not() -> None:
    script = """
import os, signal, time
from headstack.io import signals
signals.install()
try:
    with signals.held():
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(2 * signals.SAME_SIGNAL_S)
        print("goes on", flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        print("never")
except KeyboardInterrupt:
    print(signals.exit_code())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S)
    # The code is that of the first.
    assert (done.stdout, done.stderr) == ("goes on\n143\n", "")


def test_a_second_signal_takes_no_results_with_it(tmp_path: Path) -> None:
    """It may come when the run has ended and its results are being written."""
    script = """
import os, signal, sys, time
from pathlib import Path
from headstack.io import atomic_files, signals
signals.install()

def slowly(path):
    for part in ("first ", "second ", "third"):
        with open(path, "a") as file:
            file.write(part)
        if part != "third":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(2 * signals.SAME_SIGNAL_S)

try:
    atomic_files.write_all([(sys.argv[1], slowly)])
except KeyboardInterrupt:
    print("interrupted behind it")
"""
    there = tmp_path / "m.json"
    command = [sys.executable, "-c", script, str(there)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.stdout, done.stderr) == ("interrupted behind it\n", "")
    assert there.read_text() == "first second third"


def test_what_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As under nohup: the end comes by another signal."""
    script = f"trap '' HUP; exec {sys.executable} -c 'from headstack.cli.main import main; main()' \"$@\""
    process = subprocess.Popen(
        ["bash", "-c", script, "sh", "measure", NULL, *LONG, "--json", "m.json", "-q"],
        cwd=tmp_path,
        stderr=-1,
        text=True,
    )
    wait_for(lambda: len(os.listdir(f"/proc/{process.pid}/task")) >= 3)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert process.poll() is None
    ended(process, signal.SIGTERM)
    assert left(tmp_path) == {"m.json"}


def test_a_terminal_that_is_gone_takes_nothing_with_it(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    terminal = dict.fromkeys(("stdin", "stdout", "stderr"), slave)
    own = {"start_new_session": True, "preexec_fn": lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0)}
    process = started(tmp_path, "measure", NULL, *LONG, "--json", "m.json", **terminal, **own)
    os.close(slave)
    # A line of progress shows that it measures.
    os.read(master, 1)
    os.close(master)
    assert process.wait(timeout=PATIENCE_S) == 128 + signal.SIGHUP
    [run] = json.loads((tmp_path / "m.json").read_text())
    assert run["ended_early"] == "stopped by hand"
