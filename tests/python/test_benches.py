"""`make bench` and `make validate` run to their ends: every row and step at a tiny size."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from conftest import REPOSITORY, lacks, load_script, needs_program

BUILD_WITHIN_S = 200
"""`make test` has built the programs before; on its own, this test would build all Rust tests first."""


@pytest.fixture(scope="module")
def validate() -> ModuleType:
    return load_script(REPOSITORY / "benches" / "validate.py")


@pytest.fixture(scope="module")
def speed(validate: ModuleType) -> str:
    """The program of `make bench`, built as the tests are."""
    needs_program("cargo")
    command = ["cargo", "test", "--workspace", "--no-run", "--quiet"]
    try:
        subprocess.run(command, cwd=REPOSITORY, timeout=BUILD_WITHIN_S, check=True)
    except subprocess.TimeoutExpired:
        lacks("programs", f"the Rust tests are not built: run {' '.join(command)}")
    return str(validate.built_programs()["headstack-benches", "speed"])


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"HEADSTACK_PYTHON": sys.executable} | more


def run_to_end(command: list[str], output: Path) -> Any:
    """Runs a program, fails the test if a row or the program failed, and returns the JSON of its new output file."""
    output.unlink(missing_ok=True)
    done = subprocess.run(command, cwd=REPOSITORY, env=environment(), capture_output=True, text=True, check=False)
    shown = done.stdout[-4000:] + done.stderr[-4000:]
    assert output.is_file(), shown
    written = json.loads(output.read_text(encoding="utf-8"))
    assert written["failed"] == [], shown
    assert done.returncode == 0, shown
    return written


def test_every_row_of_bench_is_measured(speed: str) -> None:
    written = run_to_end([speed, "--smoke"], REPOSITORY / "target" / "bench-smoke.json")
    assert written["machine"]["bare_loop_per_s"] > 0
    assert len(written["rows"]) > 60
    assert {one["bar_met"] for one in written["rows"]} == {None}
    if shutil.which("fio") and shutil.which("nbdkit"):
        names = [one["name"] for one in written["rows"]]
        for group in ("one hour of OLTP", "reading it for a replay", "sweep of", "predictions", "live over NBD"):
            assert any(name.startswith(group) for name in names), group


def test_every_step_of_validate_runs(speed: str) -> None:
    command = [sys.executable, "benches/validate.py", "--smoke"]
    written = run_to_end(command, REPOSITORY / "target" / "validate-smoke.json")
    assert written["machine"]["bare_loop_per_s"] > 0


# A step that fails.


def test_a_step_that_fails_leaves_the_rows_of_the_others(validate: ModuleType, tmp_path: Path) -> None:
    def broken(is_smoke: bool) -> Any:
        raise ValueError("broken")

    def whole(is_smoke: bool) -> Any:
        return validate.Found([validate.row("figure", 1.0, "ms", 2, "at most")])

    class There(validate.Validation):  # type: ignore[misc, name-defined]
        path = tmp_path / "validate.json"

    validation = There(is_smoke=False, machine={})
    for name, step in {"first": whole, "second": broken, "third": whole}.items():
        validation.attempt(name, step)
    written = json.loads(There.path.read_text())
    assert written["failed"] == [{"name": "second", "reason": "ValueError: broken"}]
    assert [one["name"] for one in written["rows"]].count("figure") == 2


@pytest.mark.parametrize(
    ("printed", "code", "reason"),
    [
        ("running 0 tests", 0, "no test has this name"),
        ("running 2 tests", 1, "exit code 1"),
        ("running 2 tests", 0, None),
    ],
)
def test_a_command_that_fails_or_runs_no_test_is_a_failure(
    validate: ModuleType, printed: str, code: int, reason: str | None
) -> None:
    command = [sys.executable, "-c", f"print({printed!r}); raise SystemExit({code})"]
    if reason is None:
        validate.run(command, validate.Found(), needs_tests=True)
        return
    with pytest.raises(validate.FailedError, match=reason):
        validate.run(command, validate.Found(), needs_tests=True)


def test_rows_of_a_step_are_collected_and_its_other_lines_printed(
    validate: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    prints = (
        "print('a table'); print('skipped: no data'); print('row: ' + '{\"name\": \"one\", \"value\": 1.5}'); exit(3)"
    )
    found = validate.Found()
    with pytest.raises(validate.FailedError, match="exit code 3"):
        validate.run([sys.executable, "-c", prints], found)
    assert (found.rows, found.skipped) == ([{"name": "one", "value": 1.5}], ["no data"])
    assert capfd.readouterr().out == "a table\nskipped: no data\n"
    assert validate.row("demerit", 0.3, "ms", 0.25, "at most")["bar_met"] is False
    assert validate.row("demerit", 0.3, "ms")["bar_met"] is None


def test_rows_that_changed_or_went_missing_are_named(validate: ModuleType) -> None:
    def run(**values: float) -> dict[str, Any]:
        return {"rows": [validate.row(name, value, "ms", 10, "at most") for name, value in values.items()]}

    changed = validate.changes(run(a=1.0, b=9.9, c=2.0, d=3.0), run(a=1.01, b=10.1, c=4.0))
    assert changed == ["b: 9.9 -> 10.1 ms", "c: 2 -> 4 ms", "not measured this time: d"]
