"""The compiled module and its stub are in step."""

from __future__ import annotations

import ast
import inspect
import pickle
from pathlib import Path

import pytest

import headstack as hs
from headstack import _native

STUB = ast.parse((Path(hs.__file__).parent / "_native.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}

# What Python adds to every class, and PyO3 to one that is a sequence.
GIVEN = {"__doc__", "__module__", "__weakref__", "__iter__", "__dict__", "__firstlineno__", "__static_attributes__"}


def stubbed(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    names: dict[str, ast.stmt] = {}
    for statement in body:
        is_alias = isinstance(statement, ast.AnnAssign) and ast.unparse(statement.annotation) == "TypeAlias"
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and not is_alias:
            names[statement.target.id] = statement
        elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names[statement.name] = statement
    return names


def parameters(function: ast.FunctionDef) -> list[tuple[str, bool]]:
    """The names of a function's parameters, and whether each may be left out."""
    places = [*function.args.posonlyargs, *function.args.args]
    needed = len(places) - len(function.args.defaults)
    others = [*function.args.kwonlyargs, function.args.vararg, function.args.kwarg]
    assert not any(others), function.name
    return [(place.arg, number >= needed) for number, place in enumerate(places)]


def compiled(function: object) -> list[tuple[str, bool]]:
    """The same of a function of the module."""
    found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return [(one.name, one.default is not inspect.Parameter.empty) for one in found]


def test_every_name_is_in_the_stub() -> None:
    assert {name for name in dir(_native) if not name.startswith("__")} == set(stubbed(STUB.body))


def test_errors_know_their_parts(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(_native.drive_toml("cheetah-x15-36lp").replace("heads     = 8", "heads     = -8"))
    with pytest.raises(hs.InputError) as found:
        hs.Drive.load(str(file))
    error = found.value
    assert (error.file, error.key) == (str(file), "geometry.heads")
    assert str(error) == f"{file}:{error.line}: {error.key}: {error.message}"
    assert file.read_text().splitlines()[(error.line or 0) - 1].startswith("heads")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.file, again.line, again.key) == (str(error), error.file, error.line, error.key)


def test_every_function_takes_what_the_stub_says() -> None:
    functions = [node for node in STUB.body if isinstance(node, ast.FunctionDef)]
    assert len(functions) > 40
    for function in functions:
        assert compiled(getattr(_native, function.name)) == parameters(function), function.name


@pytest.mark.parametrize("name", [name for name in CLASSES if not name.endswith("Error")])
def test_every_class_has_what_the_stub_says(name: str) -> None:
    found = vars(getattr(_native, name))
    members = stubbed(CLASSES[name].body)
    # A type that cannot be made in Python has a __new__ that says so; __repr__ is every object's.
    optional = {"__repr__"} if "__new__" in members else {"__repr__", "__new__"}
    assert set(found) - GIVEN - optional == set(members) - optional
    for member, node in members.items():
        assert isinstance(node, ast.FunctionDef)
        said = parameters(node)
        kinds = [decorator.id for decorator in node.decorator_list if isinstance(decorator, ast.Name)]
        if kinds == ["property"]:
            assert inspect.isdatadescriptor(found[member]), member
            assert [place for place, _ in said] == ["self"]
        elif member == "__new__":
            assert compiled(getattr(_native, name)) == said[1:], member
        elif member == "__getitem__":
            # CPython's own slot has its own name for the place.
            assert len(compiled(found[member])) == len(said)
        elif kinds == ["staticmethod"]:
            assert compiled(getattr(getattr(_native, name), member)) == said, member
        else:
            assert compiled(found[member]) == said, member


@pytest.mark.parametrize("name", [name for name in CLASSES if name.endswith("Error")])
def test_every_error_is_of_the_stated_base(name: str) -> None:
    (base,) = CLASSES[name].bases
    assert isinstance(base, ast.Name)
    assert [one.__name__ for one in getattr(_native, name).__bases__] == [base.id]


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
    for wrong in ({}, {"system_name": 1}, {"system_name": float("nan")}, {"system_name": "a", "seed": {1: 2}}):
        with pytest.raises(hs.InputError):
            _native.run([wrong])
    assert len(_native.run([])) == 0
