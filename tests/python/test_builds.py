"""Builds for the tests: each crate is compiled once, for the Rust tests and for the module of the Python tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from typing import Any

from conftest import REPOSITORY, needs_program

Unit = tuple[str, str, tuple[str, ...], str]


def library_units(*command: str) -> set[Unit]:
    """Package, kind, features and optimisation of each library that a command of cargo compiles for this machine."""
    done = subprocess.run(
        ["cargo", *command, "--unit-graph", "-Zunstable-options", "--offline"],
        cwd=REPOSITORY,
        # The graph is for tools that follow cargo; its form is checked by what is read from it.
        env=os.environ | {"RUSTC_BOOTSTRAP": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {unit_of(unit) for unit in json.loads(done.stdout)["units"] if is_library(unit)}


def is_library(unit: dict[str, Any]) -> bool:
    return bool(unit["mode"] == "build" and unit["target"]["kind"] == ["lib"])


def unit_of(unit: dict[str, Any]) -> Unit:
    name = re.split(r"[/#]", unit["pkg_id"])[-1]
    package = name if "@" in name else re.split(r"[/#]", unit["pkg_id"])[-2]
    return package, unit["target"]["kind"][0], tuple(unit["features"]), unit["profile"]["opt_level"]


def test_the_module_of_the_tests_shares_the_build_of_the_rust_tests() -> None:
    needs_program("cargo")
    rust = library_units("test", "--workspace", "--no-run")
    module = library_units("rustc", "--package", "headstack-python", "--features", "tested")
    ours = {unit for unit in module if unit[0].startswith("headstack-")}
    assert len(ours) > 10
    packages = {unit[0] for unit in rust}
    twice = sorted(unit for unit in module - rust if unit[0] in packages)
    assert twice == []


def test_each_of_our_crates_is_compiled_with_one_set_of_features() -> None:
    needs_program("cargo")
    rust = library_units("test", "--workspace", "--no-run")
    counts = Counter(unit[0] for unit in rust if unit[0].startswith("headstack-"))
    assert counts
    assert {package for package, count in counts.items() if count > 1} == set()
