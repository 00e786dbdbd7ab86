"""Wheel and sdist, each installed where there is no checkout, no Rust and no Node: `packages.py` has done it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import headstack as hs
from conftest import CHEETAH, INSTALLED, REPOSITORY, environment_of
from packages import QUICKLY, TARGET, path_to_build

pytestmark = pytest.mark.skipif(INSTALLED is None, reason="`make test` installs the packages, and names them")

KINDS = ("wheel", "sdist")


def installed(kind: str) -> Path:
    assert INSTALLED is not None
    return INSTALLED.parent / kind


def call(kind: str, folder: Path, *command: str) -> str:
    """What a program of the environment prints."""
    program, *arguments = command
    done = subprocess.run(
        [installed(kind) / "bin" / program, *arguments],
        cwd=folder,
        env=environment_of(INSTALLED),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{kind}: {' '.join(command)}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_this_version_with_this_catalogue(kind: str, tmp_path: Path) -> None:
    said = call(kind, tmp_path, "headstack", "--version")
    assert said == f"headstack, version {hs.__version__}\ncatalogue {hs.catalogue_hash()}\n"
    place = call(kind, tmp_path, "python", "-c", "import headstack; print(headstack.__file__)").strip()
    assert Path(place).is_relative_to(installed(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_its_metadata_are_whole(kind: str, tmp_path: Path) -> None:
    code = """
import json
from importlib.metadata import distribution
told = distribution("headstack")
licences = [path.name for path in told.files if "licenses" in path.parts]
print(json.dumps([told.metadata.json, licences]))
"""
    metadata, licences = json.loads(call(kind, tmp_path, "python", "-c", code))
    assert metadata["version"] == hs.__version__
    assert metadata["license_expression"] == "Apache-2.0"
    assert licences == ["LICENSE"]
    assert metadata["description"].strip() == (REPOSITORY / "README.md").read_text(encoding="utf-8").strip()
    assert metadata["requires_python"] == ">=3.11"
    for field in ("summary", "author", "classifier", "keywords"):
        assert metadata[field], field


def test_both_hold_the_files_of_the_checkout() -> None:
    def files(package: Path) -> dict[str, bytes]:
        found = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return {str(path.relative_to(package)): path.read_bytes() for path in found if path.suffix != ".so"}

    wheel, sdist = (files(next(installed(kind).glob("lib/*/site-packages/headstack"))) for kind in KINDS)
    assert wheel == sdist == files(Path(hs.__file__).parent)


def test_both_compute_the_same_bytes(tmp_path: Path) -> None:
    command = ("headstack", "run", CHEETAH, "-w", "file-server", "--depth", "4", "--requests", "2000", "--json", "-")
    wheel, sdist = (call(kind, tmp_path, *command) for kind in KINDS)
    assert json.loads(wheel)
    assert wheel == sdist


@pytest.mark.parametrize("kind", KINDS)
def test_studies_and_reports_are_in_it(kind: str, tmp_path: Path) -> None:
    listed = call(kind, tmp_path, "headstack", "study", "list")
    assert all(name in listed for name in hs.studies.listed())
    assert len(hs.studies.listed()) == 6
    call(kind, tmp_path, "headstack", "run", CHEETAH, "--requests", "2000", "--html", "report.html")
    assert "<script>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_demo_draws_what_it_can(tmp_path: Path) -> None:
    """The wheel is installed with its extra ``plot``, the sdist without."""
    assert "not written" not in call("wheel", tmp_path, "headstack", "demo", "-o", "wheel")
    assert "not written: sdist/curves.png: plots need" in call("sdist", tmp_path, "headstack", "demo", "-o", "sdist")
    written = {kind: {path.name for path in (tmp_path / kind).iterdir()} for kind in KINDS}
    assert written["sdist"] == {"curves.html", "results.json", "results.parquet"}
    assert written["wheel"] == written["sdist"] | {"curves.png"}


@pytest.mark.parametrize("kind", KINDS)
def test_it_serves(kind: str, tmp_path: Path) -> None:
    call(kind, tmp_path, "headstack", "serve", CHEETAH, "--run", "true")


HOOK = [
    *[sys.executable, "-c"],
    "import sys; sys.path.insert(0, 'packaging'); import backend; backend.build_wheel(sys.argv[1])",
]
MATURIN = ["maturin", "build", "--release", *QUICKLY, "--out"]

PAGE, DRIVES = "python/headstack/report/bundle.js", "catalogue/drives"
LACKING = [
    (PAGE, HOOK, "bundle.js is missing: `make web` builds it with Node 20 or newer"),
    (PAGE, MATURIN, "bundle.js: No such file or directory"),
    (DRIVES, MATURIN, "catalogue/drives: No such file or directory"),
    (f"{DRIVES}/*", MATURIN, "catalogue/drives: no TOML file in this folder"),
]


@pytest.mark.parametrize(("lacking", "command", "said"), LACKING)
def test_nothing_is_built_that_lacks_a_part(lacking: str, command: list[str], said: str, tmp_path: Path) -> None:
    assert INSTALLED is not None
    source, away = INSTALLED.parent / f"headstack-{hs.__version__}", tmp_path / "away"
    taken = source / lacking.removesuffix("/*")
    os.rename(taken, away)
    try:
        if lacking.endswith("/*"):
            taken.mkdir()
        environment = {"CARGO_TARGET_DIR": TARGET} | os.environ | {"PATH": path_to_build()}
        done = subprocess.run(
            [*command, str(tmp_path / "built")],
            cwd=source,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        if lacking.endswith("/*"):
            taken.rmdir()
        os.rename(away, taken)
    assert done.returncode != 0
    assert said in done.stderr
    assert not list(tmp_path.glob("built/*"))
