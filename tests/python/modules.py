"""Dependency graphs of modules, in the crates and in the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

Module = tuple[str, ...]
"""The path of a module within its crate or package; the crate itself has none."""
Graph = dict[Module, set[Module]]

USE = re.compile(r"^[ ]*(pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
INLINE = re.compile(r"(?<![\w:])((?:crate|super|self)(?:::\w+)+)")
TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod \w+ \{")


def of_crate(source: Path) -> Graph:
    """Returns the modules of a crate, each with those that it uses. Re-exported items count for the module that defines
    them.
    """
    texts = {
        _module(path.relative_to(source)): _code(path.read_text(encoding="utf-8"))
        for path in source.rglob("*.rs")
        if "tests" not in path.relative_to(source).with_suffix("").parts
    }
    exported = {
        module: {name: names for public, tree in USE.findall(text) if public for name, names in _paths(tree)}
        for module, text in texts.items()
    }

    def defined(module: Module, names: Module) -> Module | None:
        """Returns the module that defines a name used in ``module``; ``None`` for another crate's."""
        at: Module = ()
        match names[0]:
            case "crate":
                names = names[1:]
            case "self":
                at, names = module, names[1:]
            case "super":
                at = module
                while names and names[0] == "super":
                    at, names = at[:-1], names[1:]
            case first:
                if (*module, first) not in texts:
                    return None
                at = module
        for place, name in enumerate(names):
            if (*at, name) in texts:
                at = (*at, name)
            elif name in exported[at] and exported[at][name] != names[place:]:
                return defined(at, exported[at][name] + names[place + 1 :]) or at
            else:
                break
        return at

    graph: Graph = {}
    for module, text in texts.items():
        # Re-exporting a name does not count as using it.
        paths = [names for public, tree in USE.findall(text) if not public for _, names in _paths(tree)]
        paths += [tuple(path.split("::")) for path in INLINE.findall(USE.sub("", text))]
        graph[module] = {found for names in paths if (found := defined(module, names)) is not None} - {module}
    return graph


def _module(path: Path) -> Module:
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] in ("lib", "main", "mod", "__init__") else parts


def _code(text: str) -> str:
    """Returns a file without its comments and its tests, which are its last module."""
    return re.sub(r"//.*", "", TESTS.split(text)[0])


def _paths(tree: str, before: Module = ()) -> Iterator[tuple[str, Module]]:
    """Yields ``a::{b, c::d as e}`` as ``a::b`` and ``a::c::d``, each after its local name."""
    depth, parts = 0, [""]
    for sign in re.sub(r"\s+", " ", tree):
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    for part in (part.strip() for part in parts if part.strip()):
        head, brace, rest = part.partition("{")
        path, _, alias = head.partition(" as ")
        names = (*before, *(name.strip() for name in path.split("::") if name.strip()))
        if brace:
            yield from _paths(rest.removesuffix("}"), names)
        else:
            yield alias.strip() or names[-1], names


def of_package(package: Path) -> Graph:
    """Returns the modules of a Python package, each with those that it imports: on loading, in a function, or only for
    types."""
    files = {
        _module(path.relative_to(package)): path for path in package.rglob("*.py*") if path.suffix in (".py", ".pyi")
    }

    def imported(tree: ast.Module) -> Iterator[Module]:
        for node in ast.walk(tree):
            match node:
                case ast.ImportFrom(module=str(name)) if name.split(".")[0] == package.name:
                    at = tuple(name.split(".")[1:])
                    for alias in node.names:
                        yield (*at, alias.name) if (*at, alias.name) in files else at
                case ast.Import():
                    names = [tuple(alias.name.split(".")) for alias in node.names]
                    yield from (name[1:] for name in names if name[0] == package.name)
                case _:
                    pass

    return {
        module: {
            found
            for found in imported(ast.parse(path.read_text(encoding="utf-8")))
            if found in files and found != module
        }
        for module, path in files.items()
    }


def cycles(graph: Mapping[Module, set[Module]]) -> list[list[Module]]:
    """Returns groups of modules that all depend on each other (Tarjan's strongly connected components)."""
    order: dict[Module, int] = {}
    lowest: dict[Module, int] = {}
    path: list[Module] = []
    found: list[list[Module]] = []

    def visit(module: Module) -> None:
        order[module] = lowest[module] = len(order)
        path.append(module)
        for used in graph[module]:
            if used not in order:
                visit(used)
                lowest[module] = min(lowest[module], lowest[used])
            elif used in path:
                lowest[module] = min(lowest[module], order[used])
        if lowest[module] == order[module]:
            at = path.index(module)
            group, path[at:] = path[at:], []
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in order:
            visit(module)
    return sorted(found)
