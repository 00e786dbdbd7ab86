"""Shared fixtures and helpers of the tests: the command line, short runs, and requirements of the machine."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import pytest

import headstack as hs
from headstack.cli.main import main
from headstack.io import signals

REPOSITORY = Path(__file__).parents[2]
SHARED = Path(os.environ.get("HEADSTACK_SHARED", REPOSITORY.parent / "shared"))

INSTALLED = Path(os.environ["HEADSTACK_INSTALLED"]).resolve() if "HEADSTACK_INSTALLED" in os.environ else None
"""An environment installed by packages.py, in which the README is tested instead of the checkout."""

CHEETAH, ATLAS = "cheetah-x15-36lp", "atlas-10k-iii-73"
SHORT = ("--requests", "2000", "--warm-up", "100")


class Done(NamedTuple):
    """A finished command."""

    returncode: int
    stdout: str
    stderr: str

    def check_returncode(self) -> None:
        """Fails unless the command succeeded."""
        assert self.returncode == 0, self.stderr


Headstack = Callable[..., Done]
Attach = Callable[[Path], str]


NEEDS = ("root", "loop", "programs", "kernel", "data", "stores")
"""Requirements that a machine may lack, by their names in ``HEADSTACK_REQUIRE``: a list such as ``loop,root``."""


sys.path.insert(0, str(REPOSITORY / "tests"))
import leftovers  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    """Sets the environment of tests, wherever they are started: signals (``nohup`` ignores one), umask, locale, time
    zone, and a writable home."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    os.umask(0o022)
    if not hasattr(config, "workerinput"):
        home = Path.home()
        for name, folder in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")):
            os.environ.setdefault(name, str(home / folder))
        config.stash[HOME] = tempfile.TemporaryDirectory(prefix="home-")
        os.environ.update(HOME=config.stash[HOME].name, LC_ALL="C.UTF-8", TZ="UTC")
        # Fonts are looked up once, not by each process.
        os.environ.setdefault("MPLCONFIGDIR", str(REPOSITORY / "target" / "matplotlib"))
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "LANGUAGE", "SOURCE_DATE_EPOCH"):
            os.environ.pop(name, None)
    time.tzset()
    leftovers.adopt_orphans()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Removes the home of the tests."""
    if home := config.stash.get(HOME, None):
        home.cleanup()


HOME = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


@pytest.fixture(autouse=True)
def nothing_left(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[None]:
    """Ends processes that a test leaves behind, and fails it for them unless it has failed already."""
    folder = tmp_path_factory.getbasetemp()
    kept, mounted = leftovers.children(), leftovers.mounts_below(folder) + leftovers.loops_below(folder)
    yield
    left = leftovers.end_processes(kept)
    left += leftovers.end_mounts_and_loops(folder, mounted)
    assert not left, f"the test left {'; '.join(left)}"


DURATIONS = Path(__file__).with_name("durations.txt")
"""Duration of each test in a full run, in seconds; the file omits tests shorter than 0.5 s."""
WRITE_DURATIONS = os.environ.get("HEADSTACK_WRITE_DURATIONS")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives each worker one test at a time, or all tests of a file that share a fixture, in the order of collection."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Starts with the longest tests, and the longest groups of tests."""
    lines = DURATIONS.read_text(encoding="utf-8").splitlines() if DURATIONS.exists() else []
    seconds = {name: float(took) for took, _, name in (line.partition(" ") for line in lines)}
    units: dict[str, float] = {}
    for item in items:
        unit = unit_of(item.nodeid)
        units[unit] = units.get(unit, 0) + seconds.get(item.nodeid, 0)
    items.sort(key=lambda item: -units[unit_of(item.nodeid)])


def unit_of(nodeid: str) -> str:
    """Returns the unit that xdist schedules: a file whose tests share fixtures or are marked ``together``, or a
    test."""
    file = nodeid.partition("::")[0]
    return file if shares_fixtures(Path(file).name) else nodeid


@cache
def shares_fixtures(name: str) -> bool:
    """Whether the file has a module fixture or the mark ``together``."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return 'scope="module"' in text or "pytest.mark.together" in text


_took: dict[str, float] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds up the times of set-up, call and tear-down."""
    _took[report.nodeid] = _took.get(report.nodeid, 0) + report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Updates the durations if requested."""
    if WRITE_DURATIONS and not hasattr(session.config, "workerinput"):
        long = sorted((took, name) for name, took in _took.items() if took >= 0.5)
        Path(WRITE_DURATIONS).write_text(
            "".join(f"{took:.1f} {name}\n" for took, name in reversed(long)), encoding="utf-8"
        )


IS_TEST_ALL = "HEADSTACK_TEST_ALL" in os.environ
"""Whether `make test-all` runs; tests of random cases then try all of them."""


def slow(reason: str) -> pytest.MarkDecorator:
    """Restricts a test, or a case of one, to `make test-all`."""
    return pytest.mark.slow(reason=reason)


def slow_but(cases: Iterable[Any], *kept: Any, reason: str) -> list[Any]:
    """Returns the cases of a test, of which all but some are restricted to `make test-all`."""
    return [case if case in kept else pytest.param(*as_values(case), marks=slow(reason)) for case in cases]


def as_values(case: Any) -> tuple[Any, ...]:
    """Returns the values of a case as a tuple."""
    return case if isinstance(case, tuple) else (case,)


def is_privileged() -> bool:
    """Whether this process can mount file systems and attach loop devices; root in a container often cannot."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    effective = re.search(r"^CapEff:\s*(\w+)", status, re.MULTILINE)
    cap_sys_admin = 21
    return effective is not None and int(effective[1], 16) >> cap_sys_admin & 1 == 1


def needs_quiet_machine() -> None:
    """Skips a test of durations unless ``HEADSTACK_QUIET_MACHINE`` states that no other load runs."""
    if "HEADSTACK_QUIET_MACHINE" not in os.environ:
        pytest.skip("needs a quiet machine: set HEADSTACK_QUIET_MACHINE=1")


def lacks(need: str, what: str) -> NoReturn:
    """Skips the calling test for a missing requirement; fails it if ``HEADSTACK_REQUIRE`` names the requirement."""
    required = [name.strip() for name in os.environ.get("HEADSTACK_REQUIRE", "").split(",") if name.strip()]
    unknown = sorted({need, *required} - set(NEEDS))
    assert not unknown, f"HEADSTACK_REQUIRE: {', '.join(unknown)}: none of {', '.join(NEEDS)}"
    if need in required:
        pytest.fail(f"{what} ({need}), which HEADSTACK_REQUIRE={','.join(required)} does not allow", pytrace=False)
    pytest.skip(f"{what} ({need})")


def nvme(serial: str) -> str:
    """Returns the kernel's name of the NVMe drive with that serial number, such as ``nvme0``, which depends on the
    order of detection. The name of a missing drive is ``nvme-missing``."""
    for path in Path("/sys/class/nvme").glob("nvme*/serial"):
        if path.read_text(encoding="ascii").strip() == serial:
            return path.parent.name
    return "nvme-missing"


def environment_of(installed: Path | None) -> dict[str, str]:
    """Returns the variables for a program of such an environment, in whose shell ``headstack`` is found: no path of an
    installed one leads to the checkout, Rust or Node."""
    if installed is None:
        return os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = [str(installed / "bin"), str(installed.parent / "programs"), os.environ["PATH"]]
    return variables | {"PATH": os.pathsep.join(path)}


def needs_program(program: str) -> None:
    """Skips the calling test if a program is not installed."""
    if shutil.which(program) is None:
        lacks("programs", f"{program} is not installed")


def chromium() -> str:
    """Returns Chromium, which Node drives to view pages; skips the calling test without them or the packages of ``npm
    ci``.
    """
    needs_program("node")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        lacks("programs", "chromium is not installed")
    if not (REPOSITORY / "web" / "node_modules").is_dir():
        lacks("programs", "the packages of web/node_modules are not installed (npm ci)")
    return found


@pytest.fixture
def headstack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Headstack:
    """Runs the command line in an empty folder, or in the folder below it to which the test has changed, within this
    process: users' output without half a second of start-up. Use ``headstack_process`` for signals, pipes, threads, and
    anything that outlives a command."""

    def call(*arguments: str | Path, **environment: str) -> Done:
        words = [str(word) for word in arguments]
        with monkeypatch.context() as patch, redirected() as (stdout, stderr):
            if not Path.cwd().is_relative_to(tmp_path):
                patch.chdir(tmp_path)
            patch.setattr(sys, "argv", ["headstack", *words])
            for name, value in environment.items():
                patch.setenv(name, value)
            code = ended_with(words)
        return Done(code, stdout.read_text(), stderr.read_text())

    return call


def ended_with(words: list[str]) -> int:
    """Runs the command line, and returns its exit code."""
    handlers = {number: signal.getsignal(number) for number in signals.ENDING}
    try:
        with pytest.raises(SystemExit) as ended:
            main(words)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert isinstance(ended.value.code, int), ended.value.code
    return ended.value.code


@contextmanager
def redirected() -> Iterator[tuple[Captured, Captured]]:
    """Sends standard output and standard error, Python's and the compiled part's, to temporary files."""
    captured = Captured(1, "stdout"), Captured(2, "stderr")
    try:
        yield captured
    finally:
        for stream in captured:
            stream.restore()


class Captured:
    """Redirects a standard stream to a temporary file until ``restore`` is called."""

    def __init__(self, number: int, name: str) -> None:
        self.number, self.name = number, name
        self.file = tempfile.TemporaryFile()  # noqa: SIM115
        self.before = getattr(sys, name)
        self.before.flush()
        self.saved = os.dup(number)
        os.dup2(self.file.fileno(), number)
        setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115

    def restore(self) -> None:
        """Restores the stream, after all output was written to the file."""
        getattr(sys, self.name).flush()
        setattr(sys, self.name, self.before)
        os.dup2(self.saved, self.number)
        os.close(self.saved)

    def read_text(self) -> str:
        """Returns the text written so far, with line ends as ``subprocess`` with ``text=True`` returns them."""
        self.file.seek(0)
        text = self.file.read().decode()
        self.file.close()
        return text.replace("\r\n", "\n").replace("\r", "\n")


@pytest.fixture
def headstack_process(tmp_path: Path) -> Headstack:
    """Runs the command line as a separate process, in an empty folder."""

    def call(*arguments: str | Path, **environment: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-c", "from headstack.cli.main import main; main()", *arguments],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=280,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return call


def interrupt(process: subprocess.Popen[Any], after_s: float = 1) -> None:
    """Sends Ctrl-C after a process has worked for a while, with threads in addition to the interpreter's own."""
    while process.poll() is None and len(os.listdir(f"/proc/{process.pid}/task")) == 1:
        time.sleep(0.001)
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)


def load_script(path: Path) -> ModuleType:
    """Loads a script of the checkout as a module with the name of its file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module there.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def results() -> hs.Results:
    """Returns a saturation curve of two systems."""
    return hs.curve([CHEETAH, f"{ATLAS}@36.7GB"], "file-server", depth=[1, 4, 16], requests=2000)


@pytest.fixture(scope="session")
def validation_folder() -> Path:
    """Returns measured traces with DiskSim's parameters."""
    folder = SHARED / "validation" / "disksim"
    if not folder.is_dir():
        lacks("data", f"no validation data in {folder}")
    return folder


@pytest.fixture
def attach() -> Iterator[Attach]:
    """Returns a function that creates a block device for a file, until the end of the test."""
    if not is_privileged():
        lacks("root", "loop devices need root")
    needs_program("losetup")
    devices: list[str] = []

    def one(backing: Path) -> str:
        made = subprocess.run(["losetup", "--find", "--show", backing], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            lacks("loop", f"no loop device: {made.stderr.strip()}")
        devices.append(made.stdout.strip())
        return devices[-1]

    try:
        yield one
    finally:
        for device in devices:
            subprocess.run(["losetup", "--detach", device], check=True)


@pytest.fixture
def loop_device(attach: Attach, tmp_path: Path) -> tuple[str, Path]:
    """Returns a block device of 16 MiB, and the file behind it."""
    backing = tmp_path / "backing"
    backing.write_bytes(os.urandom(1 << 24))
    return attach(backing), backing
