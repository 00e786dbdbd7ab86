#!/usr/bin/env python3
"""Builds a package and installs it in an environment of its own: FOLDER/wheel or FOLDER/sdist.

    tests/python/packages.py FOLDER wheel   builds the wheel from the module of the tests; unpacks the sdist
    tests/python/packages.py FOLDER sdist   builds the sdist and compiles it from nothing, as pip does

FOLDER/programs hides Rust and Node if it is first in the PATH.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]

TARGET = str(REPOSITORY / "target")
RUST, NODE = ("cargo", "rustc"), ("node", "npm")
# Like `make test`, so that the wheel needs no further build.
TESTED = ["--profile", "dev", "--features", "tested"]


def main() -> None:
    folder, kind = Path(sys.argv[1]).resolve(), sys.argv[2]
    shutil.rmtree(folder, ignore_errors=True)
    without(folder / "programs", *RUST, *NODE)
    without(folder / "no-node", *NODE)
    if shutil.which("npm") is None:
        # Like `make` here.
        os.environ["HEADSTACK_WITHOUT_REPORTS"] = "1"
    sdist = build_sdist(folder)
    # `--touch` sets today's dates: all files of an sdist have the same date, and cargo rebuilds by dates.
    run(["tar", "--extract", "--touch", "--file", str(sdist)], folder)
    if kind == "sdist":
        os.environ["CARGO_TARGET_DIR"] = str(folder / "target")
        install(folder / "sdist", f"{sdist}[plot]", folder / "no-node")
    else:
        install(folder / "wheel", f"{build_wheel(folder)}[plot]", folder / "programs")


def without(folder: Path, *programs: str) -> None:
    """Creates a folder that, placed first in the PATH, hides these programs."""
    folder.mkdir(parents=True)
    for name in programs:
        (folder / name).write_text(f"#!/bin/sh\necho 'there is no {name} here' >&2\nexit 127\n")
        (folder / name).chmod(0o755)


def path_to_build(*first: Path) -> str:
    """Returns the PATH for builds, including maturin."""
    return os.pathsep.join([*map(str, first), str(Path(sys.executable).parent), os.environ["PATH"]])


def run(command: list[str], cwd: Path, *first: Path) -> None:
    """Runs a command, whose output is shown only if it fails."""
    environment = {"CARGO_TARGET_DIR": TARGET} | os.environ | {"PATH": path_to_build(*first)}
    done = subprocess.run(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{shlex.join(command)}: exit code {done.returncode}")


def build_wheel(folder: Path) -> Path:
    """Builds the wheel like pip, with the installed maturin and the profile of the tests."""
    settings = f"--config-settings=build-args={shlex.join(TESTED)}"
    run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), settings, "."], REPOSITORY)
    (wheel,) = folder.glob("headstack-*.whl")
    return wheel


def build_sdist(folder: Path) -> Path:
    """Builds the sdist like any front end."""
    call = "import sys; sys.path.insert(0, 'packaging'); import backend; backend.build_sdist(sys.argv[1])"
    run([sys.executable, "-c", call, str(folder)], REPOSITORY)
    (sdist,) = folder.glob("headstack-*.tar.gz")
    return sdist


def install(environment: Path, package: str, first: Path) -> None:
    """Installs the package, with its dependencies from the network."""
    run([sys.executable, "-m", "venv", "--without-pip", str(environment)], environment.parent)
    run([*PIP, "--python", str(environment / "bin" / "python"), "install", package], environment.parent, first)


if __name__ == "__main__":
    main()
