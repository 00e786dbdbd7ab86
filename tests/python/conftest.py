"""What the tests share: the command line as a process, and short runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import headstack as hs

REPOSITORY = Path(__file__).parents[2]
SHARED = Path(os.environ.get("HEADSTACK_SHARED", REPOSITORY.parent / "shared"))

INSTALLED = Path(os.environ["HEADSTACK_INSTALLED"]).resolve() if "HEADSTACK_INSTALLED" in os.environ else None
"""An environment that packages.py has installed, in which the README is tried instead of the checkout."""

CHEETAH, ATLAS = "cheetah-x15-36lp", "atlas-10k-iii-73"
SHORT = ("--requests", "2000", "--warm-up", "100")

Headstack = Callable[..., subprocess.CompletedProcess[str]]
Attach = Callable[[Path], str]


NEEDS = ("root", "loop", "programs", "kernel", "data", "stores")
"""What a machine may lack, as ``HEADSTACK_REQUIRE`` names it: a list such as ``loop,root``."""


def lacks(need: str, what: str) -> NoReturn:
    """Skips the calling test for lack of something; it fails where ``HEADSTACK_REQUIRE`` names the need."""
    required = [name.strip() for name in os.environ.get("HEADSTACK_REQUIRE", "").split(",") if name.strip()]
    unknown = sorted({need, *required} - set(NEEDS))
    assert not unknown, f"HEADSTACK_REQUIRE: {', '.join(unknown)}: none of {', '.join(NEEDS)}"
    if need in required:
        pytest.fail(f"{what} ({need}), which HEADSTACK_REQUIRE={','.join(required)} does not allow", pytrace=False)
    pytest.skip(f"{what} ({need})")


def nvme(serial: str) -> str:
    """What the kernel calls the NVMe drive of that serial number, such as ``nvme0``; it counts them as they answer. One
    that is not there is called ``nvme-missing``."""
    for path in Path("/sys/class/nvme").glob("nvme*/serial"):
        if path.read_text(encoding="ascii").strip() == serial:
            return path.parent.name
    return "nvme-missing"


def environment_of(installed: Path | None) -> dict[str, str]:
    """The variables for a program of such an environment, in whose shell ``headstack`` is found: nothing leads from an
    installed one to the checkout, Rust or Node."""
    if installed is None:
        return os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = [str(installed / "bin"), str(installed.parent / "programs"), os.environ["PATH"]]
    return variables | {"PATH": os.pathsep.join(path)}


def needs_program(program: str) -> None:
    """Skips the calling test where a program is not installed."""
    if shutil.which(program) is None:
        lacks("programs", f"{program} is not installed")


@pytest.fixture
def headstack(tmp_path: Path) -> Headstack:
    """Runs the command line in an empty folder, as a user does."""

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from headstack.cli import main; main()", *arguments],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=100,
        )

    return call


def interrupt(process: subprocess.Popen[Any], after_s: float = 1) -> None:
    """Ctrl-C, once a process has been at work for a while: with threads beside the interpreter's own."""
    while process.poll() is None and len(os.listdir(f"/proc/{process.pid}/task")) == 1:
        time.sleep(0.001)
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)


@pytest.fixture(scope="session")
def results() -> hs.Results:
    """A saturation curve of two systems."""
    return hs.curve([CHEETAH, f"{ATLAS}@36.7GB"], "file-server", depth=[1, 4, 16], requests=2000)


@pytest.fixture(scope="session")
def validation_folder() -> Path:
    """Measured traces with DiskSim's parameters."""
    folder = SHARED / "validation" / "disksim"
    if not folder.is_dir():
        lacks("data", f"no validation data in {folder}")
    return folder


@pytest.fixture
def attach() -> Iterator[Attach]:
    """Makes a block device of a file, for as long as the test lasts."""
    if os.geteuid() != 0:
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
    """A block device of 16 MiB, and the file behind it."""
    backing = tmp_path / "backing"
    backing.write_bytes(os.urandom(1 << 24))
    return attach(backing), backing
