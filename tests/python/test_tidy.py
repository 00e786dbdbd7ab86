"""What a checkout must keep to: where files lie, how long lines are, who uses whom, what is linked."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from conftest import REPOSITORY, lacks
from modules import Graph, cycles, of_crate, of_package

COMPILED = REPOSITORY / "tests/python/compiled.txt"

DESIGN = [REPOSITORY / "ARCHITECTURE.md", REPOSITORY / "CONTRIBUTING.md", *sorted(REPOSITORY.glob("docs/design/*.md"))]

PLACES = {
    "": ".gitignore .md .lock .toml LICENSE Makefile",
    ".cargo": ".toml",
    ".ci": "run",
    "benches": ".py .rs .toml",
    "catalogue": ".md .toml",
    "crates": ".rs .toml .txt .proptest-regressions",
    "crates/python/src": ".py .rs",
    "crates/result/tests/fixtures": ".json",
    "crates/trace/samples": ".txt .csv .iolog .bin .blktrace .blkparse .trace .0 .1",
    "crates/trace/tests/fixtures": ".parquet",
    "docs": ".css .ipynb .json .md .png .py .rst",
    "examples": ".py .yml Dockerfile",
    "fuzz": ".lock .rs .sh .toml",
    "fuzz/seeds": "any",
    "packaging": ".py",
    "python": ".csv .json .md .py .pyi .toml .txt .typed",
    "tests": ".py .sh .txt",
    "tests/python/samples": ".json .txt",
    "tests/python/stores": ".go .lock .mod .py .rs .sum .toml",
    "tests/vm": "init .sh",
    "web": ".css .json .mjs .sh .ts",
}
"""The folders that files lie in, and how the names of those in each end; the innermost folder counts."""

LINE_MAX = 150
STRING = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`")
"""Texts are as long as they are."""
WRITTEN = (".rs", ".py", ".pyi", ".ts", ".mjs", ".css", ".sh", "Makefile", "run")
"""Files of code; those of data and prose have lines of any length."""

UNSAFE = (
    "crates/load",
    "crates/files/src/place.rs",
    "crates/live/src/budget.rs",
    "crates/live/src/stream.rs",
    "crates/ublk",
    "crates/web/src/lib.rs",
)
"""Where code may be unsafe: system calls that rustix has no safe form of, rings, memory that others write to, and names
that a module exports."""


@cache
def files() -> list[PurePosixPath]:
    """All files of the checkout but those that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        lacks("programs", "this is no checkout of git")
    return [PurePosixPath(name) for name in done.stdout.split("\0") if name and (REPOSITORY / name).is_file()]


@cache
def words() -> set[str]:
    """All words of the code."""
    code = (file for file in files() if file.suffix in (".rs", ".py", ".ts") and file.name != "test_tidy.py")
    return {word for file in code for word in re.findall(r"\w+", text_of(file))}


def text_of(file: PurePosixPath) -> str:
    return (REPOSITORY / file).read_text(encoding="utf-8")


def test_every_file_lies_where_its_kind_belongs() -> None:
    def belongs(file: PurePosixPath) -> bool:
        folder = next(str(place) for place in file.parents if str(place) in PLACES or str(place) == ".")
        ends = PLACES["" if folder == "." else folder].split()
        return ends == ["any"] or file.name in ends or (file.suffix in ends and (folder != "." or len(file.parts) == 1))

    assert [str(file) for file in files() if not belongs(file)] == []
    # fio leaves such files where it was called.
    assert not belongs(PurePosixPath("local-a-0-verify.state"))


def test_no_line_of_code_is_too_long() -> None:
    written = [file for file in files() if file.name.endswith(WRITTEN)]
    assert len(written) > 500
    assert [
        f"{file}:{number}: {len(line)} columns"
        for file in written
        for number, line in enumerate(text_of(file).split("\n"), 1)
        if len(STRING.sub("", line)) > LINE_MAX
    ] == []


@pytest.mark.parametrize("crate", sorted(path.parent.name for path in REPOSITORY.glob("crates/*/tests")))
def test_every_file_of_rust_tests_is_compiled(crate: str) -> None:
    """``autotests = false``: a file that nobody names would never run."""
    folder = REPOSITORY / "crates" / crate
    manifest = tomllib.loads((folder / "Cargo.toml").read_text(encoding="utf-8"))
    tests = {path.stem for path in folder.glob("tests/*.rs")} | {
        path.parent.name for path in folder.glob("tests/*/mod.rs")
    }
    if manifest["package"].get("autotests", True):
        return
    programs = {program["name"] for program in manifest["test"]}
    named = set(
        re.findall(r"^(?:pub )?mod (\w+);", (folder / "tests/suite.rs").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert tests - programs - named == set()


def sources() -> list[tuple[str, Graph]]:
    """The crates and the package, each with the graph of its modules."""
    crates = [(f"crates/{path.parent.name}", of_crate(path)) for path in sorted(REPOSITORY.glob("crates/*/src"))]
    return [*crates, ("python/headstack", of_package(REPOSITORY / "python/headstack"))]


def test_no_modules_use_each_other() -> None:
    """To understand one module of a cycle you have to understand all. Move what both need to a file below both."""
    found = [(name, group) for name, graph in sources() for group in cycles(graph)]
    assert [f"{name}: {' '.join('::'.join(module) or 'lib' for module in group)}" for name, group in found] == []


def test_cycles_are_found(tmp_path: Path) -> None:
    crate, package = tmp_path / "crate", tmp_path / "package"
    for name, text in {
        "crate/lib.rs": "mod a;\nmod b;\nmod c;\npub use b::{B, deeper::C as D};\n",
        "crate/a.rs": "use std::fmt;\nuse crate::B;\nfn a() { super::c::c() }\n",
        "crate/b/mod.rs": "mod deeper;\nuse crate::{c::{self, X}, a as other};\n"
        "#[cfg(test)]\nmod tests {\nuse super::*; }\n",
        "crate/b/deeper.rs": "use super::super::D;\n// use crate::a;\n",
        "crate/c.rs": "pub fn c() {}\n#[cfg(test)]\n#[cfg(unix)]\nmod tests {\nuse super::*; }\n",
        "package/__init__.py": "from package import one\n",
        "package/one.py": "from package.two import x\n",
        "package/two.py": "def f():\n    from package import one\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    graph = of_crate(crate)
    assert graph == {
        (): set(),
        ("a",): {("b",), ("c",)},
        ("b",): {("a",), ("c",)},
        ("b", "deeper"): set(),
        ("c",): set(),
    }
    assert cycles(graph) == [[("a",), ("b",)]]
    assert of_package(package) == {(): {("one",)}, ("one",): {("two",)}, ("two",): {("one",)}}


@pytest.mark.parametrize("page", DESIGN, ids=lambda page: page.name)
def test_the_names_on_a_page_of_the_design_are_in_the_code(page: Path) -> None:
    """Types, constants and functions; `test_design.py` looks for the paths."""
    quoted = set(re.findall(r"`([A-Za-z_]\w*(?:::\w+)+|[A-Z]\w+|\w+_\w+)(?:\(\))?`", page.read_text(encoding="utf-8")))
    assert sorted(name for name in quoted if not set(name.split("::")) <= words()) == []


def allows(expression: str, allowed: set[str]) -> bool:
    """Whether a licence is among those allowed, as SPDX says it: one of those that OR joins, and all that AND joins."""
    expression = expression.replace("/", " OR ")
    while "(" in expression:
        expression = re.sub(r"\(([^()]*)\)", lambda inner: "yes" if allows(inner[1], allowed) else "no", expression)
    either = (part.split(" AND ") for part in expression.split(" OR "))
    return any(all(name.strip() in allowed | {"yes"} for name in part) for part in either)


def test_every_dependency_has_a_licence_that_is_allowed() -> None:
    allowed = set(tomllib.loads((REPOSITORY / "deny.toml").read_text(encoding="utf-8"))["licenses"]["allow"])
    assert allows("(MIT OR GPL-3.0) AND ISC", allowed)
    assert not allows("MIT AND GPL-3.0", allowed)
    assert not allows("LGPL-2.1-or-later/GPL-3.0", allowed)
    if shutil.which("cargo") is None:
        lacks("programs", "cargo is not installed")
    command = ["cargo", "metadata", "--offline", "--locked", "--format-version", "1"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    packages = json.loads(done.stdout)["packages"]
    assert len(packages) > 100
    assert [
        f"{package['name']}: {package['license']}"
        for package in packages
        if not allows(package["license"] or "none", allowed)
    ] == []


def test_no_more_is_compiled_for_the_package_than_is_listed() -> None:
    """What a first build takes minutes for. A new dependency is put on the list by whoever wants it."""
    if shutil.which("cargo") is None:
        lacks("programs", "cargo is not installed")
    asked = "--offline --locked --package headstack-python --edges normal,build --target x86_64-unknown-linux-gnu"
    command = ["cargo", "tree", *asked.split(), "--prefix", "none", "--format", "{p}"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = "".join(f"{name}\n" for name in sorted({line.split()[0] for line in done.stdout.splitlines() if line}))
    if os.environ.get("HEADSTACK_WRITE_DOCS"):
        COMPILED.write_text(found, encoding="utf-8")
    advice = f"{COMPILED.name} is not current: HEADSTACK_WRITE_DOCS=1 pytest tests/python/test_tidy.py renews it"
    assert found == COMPILED.read_text(encoding="utf-8"), advice


def test_code_is_unsafe_only_where_it_may_be() -> None:
    def is_unsafe(file: PurePosixPath) -> bool:
        code = re.sub(r"//.*", "", text_of(file))
        return re.search(r"\bunsafe\b|\ballow\(unsafe_code", code) is not None

    unsafe = [str(file) for file in files() if file.suffix == ".rs" and is_unsafe(file)]
    assert [name for name in unsafe if not name.startswith(UNSAFE)] == []
    assert [place for place in UNSAFE if not any(name.startswith(place) for name in unsafe)] == []
