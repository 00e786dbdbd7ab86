"""Mutants of Python and of Rust: which expressions are changed, and which changes tests notice."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from conftest import REPOSITORY, load_script, needs_program

package = load_script(REPOSITORY / "tests/mutants/package.py")
rust = load_script(REPOSITORY / "tests/mutants/rust.py")
schemata = load_script(REPOSITORY / "tests/mutants/schemata.py")

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


RUST = """
const LIMIT: u32 = 4 + 1;

#[derive(Debug, PartialEq)]
struct Full;

/// Adds a value, if there is space.
fn add(values: &mut Vec<u32>, value: u32) -> Result<usize, Full> {
    debug_assert!(value > 0);
    if values.len() >= LIMIT as usize || value == 9 {
        return Err(Full);
    }
    match value {
        7 if values.is_empty() => {}
        _ => values.push(value),
    }
    values.sort();
    Ok(values.len())
}

const fn twice(value: u32) -> u32 {
    2 * value
}

fn half(value: f64) -> f64 {
    value / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_added_until_the_limit() {
        let mut values = vec![4, 1, 3, 2];
        assert_eq!(add(&mut values, 5), Ok(5));
        assert_eq!(add(&mut values, 6), Err(Full));
        assert_eq!(twice(2) + 1, 5);
    }
}
"""
RUST_CHANGES = {
    "Ok(0) is returned": True,
    "Ok(1) is returned": True,
    "the condition is negated": True,
    ">= becomes >": True,
    "== becomes !=": True,
    "|| becomes &&": True,
    "9 becomes 9 + 1": False,
    "the call is deleted": False,
    "0.0 is returned": False,
    "1.0 is returned": False,
    "/ becomes *": False,
    "2.0 becomes 2.0 + 1.0": False,
}
"""The changes of that, and whether its test notices them."""


@pytest.fixture
def crate(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/lib.rs").write_text(RUST, encoding="utf-8")
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2024"\n', encoding="utf-8"
    )
    return tmp_path


def change(what: str) -> str:
    """A change without the line of its source."""
    return what.partition(" in `")[0]


def test_rust_is_changed_outside_tests_constants_patterns_and_macros() -> None:
    assert sorted(change(mutant.what) for mutant in rust.mutants(RUST.encode())) == sorted(RUST_CHANGES)


def test_changes_within_each_other_are_written_into_one_source() -> None:
    source = b"fn f(a: u8, b: u8) -> bool { a + 1 < b }"
    found = rust.mutants(source)
    written = rust.schemata(source, list(enumerate(found, start=1))).decode()
    assert [change(one.what) for one in found] == [
        "false is returned",
        "true is returned",
        "< becomes <=",
        "+ becomes -",
        "1 becomes 1 + 1",
    ]
    assert (
        "(if crate::mutants::is(3) { (a + 1) <= (b) } else { /*4[*/(if crate::mutants::is(4) { (a) - (1) }" in written
    )


def test_an_error_of_the_compiler_is_assigned_to_the_innermost_mutant_around_it() -> None:
    source = b"fn f(a: u8) -> bool { a + 1 < 3 }"
    written = rust.schemata(source, list(enumerate(rust.mutants(source), start=1)))
    at = written.index(b"(a) - (1)")
    assert rust.at_fault(written, at, at + 9) == [4]
    assert rust.at_fault(written, 0, len(written)) == [1, 2, 3, 4, 5, 6]


def test_the_tests_of_a_crate_notice_changes_of_what_they_check(crate: Path) -> None:
    needs_program("cargo")
    found = schemata.outcomes(crate, crate / "target", {"src": []}, sample=None, seed=1)
    assert {change(one.name.partition(": ")[2]): one.noticed_by is not None for one in found} == RUST_CHANGES
    assert {one.noticed_by for one in found} == {"tests::values_are_added_until_the_limit", None}
    assert all(one.is_viable for one in found)


def test_changes_that_do_not_compile_are_dropped(crate: Path) -> None:
    needs_program("cargo")
    source = (
        'pub fn name(of: &str) -> String { String::from(of) + "s" }\n#[test]\nfn f() { assert_eq!(name("a"), "as") }\n'
    )
    (crate / "src/lib.rs").write_text(source, encoding="utf-8")
    found = schemata.outcomes(crate, crate / "target", {"src/lib.rs": []}, sample=None, seed=1)
    assert [(change(one.name), one.is_viable, one.noticed_by) for one in found] == [
        ("src/lib.rs:1: Default::default() is returned", True, "f"),
        ("src/lib.rs:1: + becomes -", False, None),
    ]
