"""What the tests share: the command line as a process, and short runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headstack as hs

REPOSITORY = Path(__file__).parents[2]
SHARED = Path(os.environ.get("HEADSTACK_SHARED", REPOSITORY.parent / "shared"))

CHEETAH, ATLAS = "cheetah-x15-36lp", "atlas-10k-iii-73"
SHORT = ("--requests", "2000", "--warm-up", "100")

Headstack = Callable[..., subprocess.CompletedProcess[str]]


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
            timeout=120,
        )

    return call


@pytest.fixture(scope="session")
def results() -> hs.Results:
    """A saturation curve of two systems."""
    return hs.curve([CHEETAH, f"{ATLAS}@36.7GB"], "file-server", depth=[1, 4, 16], requests=2000)


@pytest.fixture(scope="session")
def validation_folder() -> Path:
    """Measured traces with DiskSim's parameters."""
    folder = SHARED / "validation" / "disksim"
    if not folder.is_dir():
        pytest.skip(f"no validation data in {folder}")
    return folder


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A block device of 16 MiB, and the file behind it."""
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("loop devices need root and losetup")
    backing = tmp_path / "backing"
    backing.write_bytes(os.urandom(1 << 24))
    made = subprocess.run(["losetup", "--find", "--show", backing], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no loop device: {made.stderr.strip()}")
    device = made.stdout.strip()
    yield device, backing
    subprocess.run(["losetup", "--detach", device], check=True)
