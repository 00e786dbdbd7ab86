"""The layers of the package: who may use whom, and where an import may stand."""

from __future__ import annotations

import ast
import re

from conftest import REPOSITORY
from modules import Graph, of_package

PACKAGE = REPOSITORY / "python/headstack"
PAGE = REPOSITORY / "docs/design/python-package.md"
REASON = "# start-up time"


def layers() -> list[str]:
    """The packages as the design lists them, the lowest first."""
    (listed,) = re.findall(r"```\n(cli .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [line.split()[0].removesuffix(".pyi") for line in reversed(listed.splitlines())]


def upwards(graph: Graph, order: list[str]) -> list[str]:
    """Imports of a package above the importing one. The root, which names the API, stands right below the commands."""

    def place(module: tuple[str, ...]) -> float:
        if not module:
            return order.index("cli") - 0.5
        return order.index(module[0]) if module[0] != "__main__" else len(order)

    return sorted(
        f"{'.'.join(module)} imports {'.'.join(used) or 'headstack'}"
        for module, uses in graph.items()
        for used in uses
        if place(used) > place(module)
    )


def imports_in_functions(tree: ast.Module, lines: list[str]) -> list[int]:
    """The lines of imports in functions that do not say why they stand there."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    inner = {
        node for function in functions for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return sorted(
        node.lineno for node in inner if not any(REASON in line for line in lines[node.lineno - 1 : node.end_lineno])
    )


def test_packages_use_those_below_them() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert folders | {"_native"} == set(layers())
    assert upwards(of_package(PACKAGE), layers()) == []
    # It notices what it names.
    assert upwards({("io", "values"): {("results", "table")}, (): {("studies",)}}, layers()) == [
        "io.values imports results.table"
    ]


def test_imports_in_functions_say_why() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found += [
            f"{path.relative_to(PACKAGE)}:{line}" for line in imports_in_functions(ast.parse(text), text.split("\n"))
        ]
    assert found == []
    silent = "def f():\n    import os\n    import sys  # start-up time\n"
    assert imports_in_functions(ast.parse(silent), silent.split("\n")) == [2]


def test_the_package_is_seen_at_a_glance() -> None:
    entries = [path for path in PACKAGE.iterdir() if path.name != "__pycache__" and ".so" not in path.suffixes]
    assert len(entries) <= 20


def test_a_package_of_the_root_shadows_no_function() -> None:
    """A package that is imported becomes an attribute of the root, and would hide a function of its name."""
    import headstack

    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert folders & set(headstack.__all__) == {"crash", "studies"}


def test_hashed_files_exist() -> None:
    """What a stored result depends on is hashed by its path: see ``chunk.engine``."""
    from headstack.prediction import stored_tests
    from headstack.simulation.chunks import chunk

    assert [name for name in (*chunk._SPECIFYING, *stored_tests._MAKING) if not (PACKAGE / name).is_file()] == []
