"""Mutants of the Python package: what is changed, one at a time."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from conftest import REPOSITORY, load_script

package = load_script(REPOSITORY / "tests/mutants/package.py")

CODE = '''
LIMIT = 4


def least(values, strict=True):
    """The least value."""
    if not values or len(values) >= LIMIT:
        raise ValueError(f"{len(values) + 1} values")
    return values[0] - 1
'''
CHANGES = [
    "the condition is negated",
    "None is returned",
    "Or becomes And",
    "Sub becomes Add",
    "not is deleted",
    "GtE becomes Gt",
    "0 becomes 1",
    "1 becomes 2",
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "code.py").write_text(CODE, encoding="utf-8")
    return tmp_path / "code.py"


def test_what_is_computed_in_functions_is_changed_and_errors_are_not(file: Path) -> None:
    assert sorted(mutant.what for mutant in package.mutants(file)) == sorted(CHANGES)


def test_each_mutant_differs_from_the_code_and_from_the_others(file: Path) -> None:
    texts = [package.text_of(mutant) for mutant in package.mutants(file)]
    assert len({*texts, ast.unparse(ast.parse(CODE))}) == len(CHANGES) + 1


def test_tests_of_a_folder_are_those_that_name_it() -> None:
    named = {Path(path).name for path in package.tests_that_name("comparison/differences")}
    assert "test_differences.py" in named
    assert "test_live.py" not in named
