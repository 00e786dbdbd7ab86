"""The compiled module and its stub are in step."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import headstack as hs
from headstack import _native

STUB = ast.parse((Path(hs.__file__).parent / "_native.pyi").read_text())

# What Python or the sequence protocol adds to every class.
GIVEN = {"__doc__", "__module__", "__new__", "__weakref__", "__init__"}


def stubbed(body: list[ast.stmt]) -> set[str]:
    names: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.add(statement.target.id)
        elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(statement.name)
    return names


def test_every_name_is_in_the_stub() -> None:
    assert {name for name in dir(_native) if not name.startswith("__")} == stubbed(STUB.body)


@pytest.mark.parametrize("name", ["Results", "Table"])
def test_every_method_is_in_the_stub(name: str) -> None:
    (body,) = (node.body for node in STUB.body if isinstance(node, ast.ClassDef) and node.name == name)
    methods = {
        method
        for method in vars(getattr(_native, name))
        if not method.startswith("__") or method in ("__len__", "__getitem__", "__arrow_c_stream__")
    }
    assert methods == stubbed(body)


def test_everything_is_documented() -> None:
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            assert getattr(_native, node.name).__doc__, node.name


def test_quantities_are_those_of_the_crates() -> None:
    assert _native.parse_bytes("64KiB") == 65536
    assert _native.parse_duration_ns("8.5ms") == 8_500_000
    assert _native.format_bytes(36_700_000_000) == "36.7GB"
    assert _native.format_duration_ns(8_512_345) == "8.512ms"
    with pytest.raises(hs.InputError, match="ambiguous"):
        _native.parse_bytes("4G")


def test_malformed_specifications_are_refused() -> None:
    for text in ("", "{}", "[{}]", '[{"system_name": 1}]'):
        with pytest.raises(hs.InputError):
            _native.run(text)
    assert len(_native.run("[]")) == 0
