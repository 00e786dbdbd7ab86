"""Every public function and method has an example, and the examples run."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from headstack.cli import documented_tables as fields
from headstack.io import stored
from headstack.report.pages import FOLDER
from headstack.results.explorer import ENGINE

PUBLIC = [hs, fields, stored]
"""Modules, all of whose public functions have examples; of the package, what it names."""


def public_functions() -> Iterator[tuple[str, Any]]:
    for module in PUBLIC:
        names = module.__all__ if module is hs else [n for n, o in vars(module).items() if _is_of(module, o)]
        for name in names:
            found = getattr(module, name)
            if inspect.isfunction(found):
                yield name, found
            elif inspect.isclass(found) and not issubclass(found, dict):
                yield from (
                    (f"{name}.{method}", function)
                    for method, member in vars(found).items()
                    if (function := _function(member)) is not None and not method.startswith("_")
                )


def _is_of(module: object, found: Any) -> bool:
    return getattr(found, "__module__", None) == module.__name__ and not found.__name__.startswith("_")  # type: ignore[attr-defined]


def _function(member: object) -> Callable[..., object] | None:
    if isinstance(member, classmethod | staticmethod):
        return member.__func__
    return member if inspect.isfunction(member) else None


FUNCTIONS = dict(public_functions())


def test_there_are_public_functions() -> None:
    assert {"run", "Results.to_json", "Array.load", "Trace.analyze", "Stored.upgraded"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function = FUNCTIONS[name]
    text = inspect.getdoc(function) or ""
    assert ">>>" in text, f"{name} has no example"
    if re.search(r"\.(plot)\(", text) and importlib.util.find_spec("matplotlib") is None:
        pytest.skip("needs matplotlib")
    if ".to_html(" in text and not (FOLDER / "bundle.js").exists():
        pytest.skip("needs the page of the reports")
    if "hs.explore(" in text and not ENGINE.is_file():
        pytest.skip("needs the simulator for pages")
    monkeypatch.chdir(tmp_path)
    # Some start the command, as hosts do.
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    names = {"hs": hs, "Path": Path} | vars(inspect.getmodule(function))
    example = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    failed, tried = runner.run(example, out=told.append)
    assert tried
    assert not failed, "".join(told)
