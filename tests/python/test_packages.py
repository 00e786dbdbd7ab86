"""The installed package, wheel or sdist, where there is no checkout, no Rust and no Node, and the unpacked sdist.

`make test` installs the wheel, `make test-all` and `make validate` the sdist too: see `packages.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import headstack as hs
from conftest import CHEETAH, INSTALLED, REPOSITORY, environment_of
from packages import path_to_build

pytestmark = pytest.mark.skipif(INSTALLED is None, reason="`make test` installs the packages, and names them")

BUILT = INSTALLED is not None and INSTALLED.name == "sdist"
"""Whether the sdist was compiled, as it is on the machine of a user."""


def installed() -> Path:
    """The environment that holds the package."""
    assert INSTALLED is not None
    return INSTALLED


def unpacked() -> Path:
    """The files of the sdist."""
    return installed().parent / f"headstack-{hs.__version__}"


def call(folder: Path, *command: str) -> str:
    """Runs a program of the environment and returns what it prints."""
    program, *arguments = command
    done = subprocess.run(
        [installed() / "bin" / program, *arguments],
        cwd=folder,
        env=environment_of(INSTALLED),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return done.stdout


def test_it_is_this_version_with_this_catalogue(tmp_path: Path) -> None:
    said = call(tmp_path, "headstack", "--version")
    assert said == f"headstack, version {hs.__version__}\ncatalogue {hs.catalogue_hash()}\n"
    place = call(tmp_path, "python", "-c", "import headstack; print(headstack.__file__)").strip()
    assert Path(place).is_relative_to(installed())


def test_its_metadata_are_whole(tmp_path: Path) -> None:
    code = """
import json
from importlib.metadata import distribution
told = distribution("headstack")
licences = [path.name for path in told.files if "licenses" in path.parts]
print(json.dumps([told.metadata.json, licences]))
"""
    metadata, licences = json.loads(call(tmp_path, "python", "-c", code))
    assert metadata["version"] == hs.__version__
    assert metadata["license_expression"] == "Apache-2.0"
    assert licences == ["LICENSE"]
    assert metadata["description"].strip() == (REPOSITORY / "README.md").read_text(encoding="utf-8").strip()
    assert metadata["requires_python"] == ">=3.11"
    for field in ("summary", "author", "classifier", "keywords"):
        assert metadata[field], field


def files(package: Path) -> dict[str, bytes]:
    """What lies in a folder, without what was compiled."""
    found = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(package)): path.read_bytes() for path in found if path.suffix != ".so"}


def test_all_hold_the_package_of_the_checkout() -> None:
    checkout = files(Path(hs.__file__).parent)
    assert files(next(installed().glob("lib/*/site-packages/headstack"))) == checkout
    assert files(unpacked() / "python/headstack") == checkout


def test_the_sdist_holds_what_a_build_reads() -> None:
    """All of the crates that the module is made of, and what these read; cargo finds a workspace in it."""
    command = ["cargo", "metadata", "--offline", "--format-version", "1"]
    done = subprocess.run(command, cwd=unpacked(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    packages = json.loads(done.stdout)["packages"]
    crates = [Path(one["manifest_path"]).parent.relative_to(unpacked()) for one in packages if one["source"] is None]
    assert Path("crates/python") in crates
    assert Path("crates/sim") in crates
    for folder in [*(crate / "src" for crate in crates), Path("catalogue"), Path("packaging")]:
        assert files(unpacked() / folder) == files(REPOSITORY / folder), folder
    for name in ("Cargo.lock", "LICENSE", "README.md", "pyproject.toml", *(f"{crate}/build.rs" for crate in crates)):
        assert (unpacked() / name).is_file() == (REPOSITORY / name).is_file(), name


def test_it_computes_the_same_bytes_as_the_checkout(tmp_path: Path) -> None:
    command = ("run", CHEETAH, "-w", "file-server", "--depth", "4", "--requests", "2000", "--json", "-")
    program = [sys.executable, "-m", "headstack"]
    checkout = subprocess.run([*program, *command], cwd=tmp_path, capture_output=True, text=True, check=True)
    package = call(tmp_path, "headstack", *command)
    assert json.loads(package)
    assert package == checkout.stdout


def test_studies_and_reports_are_in_it(tmp_path: Path) -> None:
    listed = call(tmp_path, "headstack", "study", "list")
    assert all(name in listed for name in hs.studies.listed())
    assert len(hs.studies.listed()) == 9
    call(tmp_path, "headstack", "run", CHEETAH, "--requests", "2000", "--html", "report.html")
    assert "<script>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_demo_draws_what_it_can(tmp_path: Path) -> None:
    assert "could not write" not in call(tmp_path, "headstack", "demo", "-o", "all")
    without = "import sys; sys.modules['matplotlib'] = None; from headstack.cli.start import main; main()"
    said = call(tmp_path, "python", "-c", without, "demo", "-o", "some")
    assert "could not write some/curves.png: plots need" in said
    written = {folder: {path.name for path in (tmp_path / folder).iterdir()} for folder in ("all", "some")}
    assert written["some"] == {"curves.html", "results.json", "results.parquet"}
    assert written["all"] == written["some"] | {"curves.png"}


def test_it_serves(tmp_path: Path) -> None:
    call(tmp_path, "headstack", "serve", CHEETAH, "--run", "true")


HOOK = [
    *[sys.executable, "-c"],
    "import sys; sys.path.insert(0, 'packaging'); import backend; backend.build_wheel(sys.argv[1])",
]
MATURIN = ["maturin", "build", "--profile", "dev", "--out"]


def test_it_writes_a_page_that_simulates(tmp_path: Path) -> None:
    if not (REPOSITORY / ENGINE).is_file():
        pytest.skip("the engine is not built: make web, with Rust for WebAssembly")
    call(tmp_path, "headstack", "explore", "-o", "page.html", "--no-open")
    assert (tmp_path / "page.html").stat().st_size > (REPOSITORY / ENGINE).stat().st_size / 5


ENGINE = "python/headstack/report/engine.wasm.lzma"
PAGE, DRIVES = "python/headstack/report/bundle.js", "catalogue/drives"
LACKING = [(PAGE, HOOK, "bundle.js is missing: `make web` builds it with Node 20 or newer")]
if BUILT:
    LACKING += [
        (PAGE, MATURIN, "bundle.js: No such file or directory"),
        (DRIVES, MATURIN, "catalogue/drives: No such file or directory"),
        (f"{DRIVES}/*", MATURIN, "catalogue/drives: no TOML file in this folder"),
    ]


@pytest.mark.parametrize(("lacking", "command", "said"), LACKING)
def test_nothing_is_built_that_lacks_a_part(lacking: str, command: list[str], said: str, tmp_path: Path) -> None:
    source, away = unpacked(), tmp_path / "away"
    taken = source / lacking.removesuffix("/*")
    os.rename(taken, away)
    try:
        if lacking.endswith("/*"):
            taken.mkdir()
        environment = {"CARGO_TARGET_DIR": str(source.parent / "target")} | os.environ | {"PATH": path_to_build()}
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
