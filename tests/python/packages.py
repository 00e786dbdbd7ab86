#!/usr/bin/env python3
"""Installs wheel and sdist each into an environment of its own, FOLDER/wheel and FOLDER/sdist.

    tests/python/packages.py FOLDER           the wheel, of what was compiled for the tests; the sdist is only unpacked
    tests/python/packages.py FOLDER --whole   both as others get them: the sdist is built from nothing

Whoever tries them puts FOLDER/programs first in the PATH: then there is no Rust and no Node.
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
# As `make test` builds it: not another time for the wheel.
TESTED = ["--profile", "dev", "--features", "tested"]


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    without(folder / "programs", *RUST, *NODE)
    without(folder / "no-node", *NODE)
    if shutil.which("npm") is None:
        # As `make` builds it here.
        os.environ["HEADSTACK_WITHOUT_REPORTS"] = "1"
    whole = "--whole" in sys.argv[2:]
    if not whole:
        # With the engine that the tests have built.
        os.environ["QUICK_ENGINE"] = "1"
    install(folder / "wheel", f"{build_wheel(folder, [] if whole else TESTED)}[plot]", folder / "programs")
    sdist = build_sdist(folder)
    # With dates of now: all files of a sdist bear the same, and cargo goes by dates.
    run(["tar", "--extract", "--touch", "--file", str(sdist)], folder)
    if whole:
        os.environ["CARGO_TARGET_DIR"] = str(folder / "target")
        install(folder / "sdist", f"{sdist}[plot]", folder / "no-node")


def without(folder: Path, *programs: str) -> None:
    """A folder which, in front of the others, hides these programs."""
    folder.mkdir(parents=True)
    for name in programs:
        (folder / name).write_text(f"#!/bin/sh\necho 'there is no {name} here' >&2\nexit 127\n")
        (folder / name).chmod(0o755)


def path_to_build(*first: Path) -> str:
    """The folders to look for programs in, maturin among them."""
    return os.pathsep.join([*map(str, first), str(Path(sys.executable).parent), os.environ["PATH"]])


def run(command: list[str], cwd: Path, *first: Path) -> None:
    """Carries out a command, which is heard of only where it fails."""
    environment = {"CARGO_TARGET_DIR": TARGET} | os.environ | {"PATH": path_to_build(*first)}
    done = subprocess.run(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{shlex.join(command)}: exit code {done.returncode}")


def build_wheel(folder: Path, options: list[str]) -> Path:
    """As pip does it, but with the maturin that is here, which gets the options."""
    settings = [f"--config-settings=build-args={shlex.join(options)}"] if options else []
    run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), *settings, "."], REPOSITORY)
    (wheel,) = folder.glob("headstack-*.whl")
    return wheel


def build_sdist(folder: Path) -> Path:
    """As every front end does it."""
    call = "import sys; sys.path.insert(0, 'packaging'); import backend; backend.build_sdist(sys.argv[1])"
    run([sys.executable, "-c", call, str(folder)], REPOSITORY)
    (sdist,) = folder.glob("headstack-*.tar.gz")
    return sdist


def install(environment: Path, package: str, first: Path) -> None:
    """Installs the package, and from the network what it needs."""
    run([sys.executable, "-m", "venv", "--without-pip", str(environment)], environment.parent)
    run([*PIP, "--python", str(environment / "bin" / "python"), "install", package], environment.parent, first)


if __name__ == "__main__":
    main()
