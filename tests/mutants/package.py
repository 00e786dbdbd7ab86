"""Mutants of the Python package: an operator, a constant, a condition or what is returned is changed, one at a time.

Each mutant lies in a copy of the package, and only the tests that ran its line are run. What no test ran is tried on
all tests that name the folder.
"""

from __future__ import annotations

import ast
import os
import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "python/headstack"
TESTS = REPOSITORY / "tests/python"
DURATIONS = TESTS / "durations.txt"
TESTED_BY = {
    "choice": ("test_choice_*.py", "test_choose*.py", "test_choosing_*.py"),
    "comparison": ("test_compare.py",),
    "diagnosis/judging": ("test_judge_*.py", "test_judging*.py"),
    "twin": ("test_twin*.py",),
}
"""Tests of a folder by its commands, next to those that name the folder."""
WORKERS = 2
TESTS_MAX = 40
"""A line that more tests run is tried on so many of them, drawn by the seed."""
TIMES_AS_LONG, LEAST_S = 1.5, 60
"""A mutant whose tests take so many times as long as all tests of its folder hangs, which counts as noticed."""

Change = Callable[[Any], object]
COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """A change of a line."""

    file: Path
    line: int
    number: int
    """Which of the changes of its file."""
    what: str

    @property
    def name(self) -> str:
        """The file, the line and the change."""
        return f"{self.file.relative_to(REPOSITORY)}:{self.line}: {self.what}"


def nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """What is computed in functions; errors that are raised, and their texts, are left alone."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            inner = [node for statement in function.body for node in ast.walk(statement)]
            raised = {id(node) for one in inner if isinstance(one, ast.Raise) for node in ast.walk(one)}
            nested = {id(node) for one in inner if isinstance(one, ast.FunctionDef) for node in ast.walk(one)}
            yield from (node for node in inner if id(node) not in raised | nested)


def changes_of(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """The changes of a node, each with its name."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARED:
            compared = COMPARED[type(operator)]
            yield f"{type(operator).__name__} becomes {compared.__name__}", lambda n: setattr(n, "ops", [compared()])
        case ast.BinOp(op=operator, left=left) if type(operator) in COMPUTED and not isinstance(left, ast.JoinedStr):
            computed = COMPUTED[type(operator)]
            yield f"{type(operator).__name__} becomes {computed.__name__}", lambda n: setattr(n, "op", computed())
        case ast.BoolOp(op=operator):
            other = ast.Or if isinstance(operator, ast.And) else ast.And
            yield f"{type(operator).__name__} becomes {other.__name__}", lambda n: setattr(n, "op", other())
        case ast.UnaryOp(op=ast.Not()):
            yield "not is deleted", lambda n: setattr(n, "operand", ast.UnaryOp(ast.Not(), n.operand))
        case ast.Constant(value=bool(value)):
            yield f"{value} becomes {not value}", lambda n: setattr(n, "value", not value)
        case ast.Constant(value=int(value) | float(value)):
            yield f"{value} becomes {value + 1}", lambda n: setattr(n, "value", value + 1)
        case ast.If() | ast.IfExp():
            yield "the condition is negated", lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))
        case ast.Return(value=ast.expr() as returned) if not isinstance(returned, ast.Constant):
            yield "None is returned", lambda n: setattr(n, "value", ast.Constant(None))


def mutants(file: Path) -> list[Mutant]:
    """All mutants of a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = [(node.lineno, what) for node in nodes(tree) for what, _ in changes_of(node)]  # type: ignore[attr-defined]
    return [Mutant(file, line, number, what) for number, (line, what) in enumerate(found)]


def text_of(mutant: Mutant) -> str:
    """The file with the change."""
    tree = ast.parse(mutant.file.read_text(encoding="utf-8"))
    changes = [(node, change) for node in nodes(tree) for _, change in changes_of(node)]
    node, change = changes[mutant.number]
    change(node)
    return ast.unparse(ast.fix_missing_locations(tree))


def tests_that_name(folder: str) -> list[str]:
    """The files of tests that import from a folder of the package, or call what the root has of it."""
    word = f"headstack.{folder.replace('/', '.')}"
    naming = {path for path in TESTS.glob("test_*.py") if word in path.read_text(encoding="utf-8")}
    patterns = [pattern for known, some in TESTED_BY.items() if folder.startswith(known) for pattern in some]
    return sorted(str(path) for path in naming.union(*(TESTS.glob(pattern) for pattern in patterns)))


def durations_s() -> dict[str, float]:
    """Seconds that each of the longer tests takes, over all of its parameters."""
    found: dict[str, float] = defaultdict(float)
    for line in DURATIONS.read_text(encoding="utf-8").splitlines():
        seconds, _, test = line.partition(" ")
        found[str(REPOSITORY / test.partition("[")[0])] += float(seconds)
    return found


def pytest(tests: Sequence[str], package: Path, output: Path, limit_s: float, more: Mapping[str, str]) -> int | None:
    """The exit code of tests of a copy of the package; nothing where they take too long."""
    environment = os.environ | {"PYTHONPATH": str(package.parent), "TMPDIR": str(output), **more}
    begin = [sys.executable, "-m", "coverage", "run"] if more else [sys.executable, "-m"]
    command = [
        *begin,
        *(["-m"] if more else []),
        "pytest",
        "-q",
        "-x",
        "-m",
        "not slow",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    output.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            command, cwd=REPOSITORY, env=environment, capture_output=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    return done.returncode


def ran(folder: str, place: Path) -> tuple[dict[tuple[str, int], list[str]], float]:
    """The tests that run each line of a folder, and how long all of them take."""
    config = place / "coverage.ini"
    data = place / "coverage"
    place.mkdir(parents=True, exist_ok=True)
    source = place / "headstack"
    shutil.copytree(PACKAGE, source, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    config.write_text(
        f"[run]\ndata_file = {data}\ndynamic_context = test_function\ninclude = {source / folder}/*\n", encoding="utf-8"
    )
    begin_s = time.monotonic()
    code = pytest(tests_that_name(folder), source, place / "tmp", 3600, {"COVERAGE_RCFILE": str(config)})
    if code != 0:
        sys.exit(f"{folder}: the tests fail as the code is: exit code {code}")
    measured = coverage.CoverageData(str(data))
    measured.read()
    lines: dict[tuple[str, int], list[str]] = {}
    for path in measured.measured_files():
        for line, contexts in measured.contexts_by_lineno(path).items():
            lines[str(Path(path).relative_to(source)), line] = sorted(one for one in contexts if one)
    return lines, time.monotonic() - begin_s


def node_id(context: str) -> str:
    """A test as pytest names it, of `test_jobs.test_a` or `test_jobs.TestB.test_c`."""
    module, *names = context.rpartition("tests.python.")[2].split(".")
    return "::".join([str(TESTS / f"{module}.py"), *names])


def outcomes(folder: str, sample: int | None, seed: int, place: Path) -> list[tuple[str, bool]]:
    """Each mutant of a folder of the package that is drawn, and whether a test noticed it."""
    drawn = [mutant for path in sorted((PACKAGE / folder).rglob("*.py")) for mutant in mutants(path)]
    if sample is not None:
        drawn = random.Random(seed).sample(drawn, min(sample, len(drawn)))
    lines, all_s = ran(folder, place)
    took_s = durations_s()
    copies = [place / f"copy-{worker}" for worker in range(WORKERS)]
    for one in copies:
        shutil.rmtree(one, ignore_errors=True)
        shutil.copytree(place / "headstack", one / "headstack", ignore=shutil.ignore_patterns("__pycache__"))
    free = list(copies)

    def is_noticed(mutant: Mutant) -> bool:
        relative = mutant.file.relative_to(PACKAGE)
        contexts = lines.get((str(relative), mutant.line), [])
        some = random.Random(seed).sample(contexts, min(TESTS_MAX, len(contexts)))
        # The quick ones first: pytest ends at the first that fails.
        tests = sorted(map(node_id, some), key=lambda test: took_s.get(test, 0.0)) or tests_that_name(folder)
        own = free.pop()
        (own / "headstack" / relative).write_text(text_of(mutant), encoding="utf-8")
        try:
            code = pytest(tests, own / "headstack", own / "tmp", max(LEAST_S, TIMES_AS_LONG * all_s), {})
            if code == 0:
                print(f"survives: {mutant.name}", flush=True)
            return code != 0
        finally:
            shutil.copy2(mutant.file, own / "headstack" / relative)
            free.append(own)

    with ThreadPoolExecutor(WORKERS) as threads:
        return list(zip((mutant.name for mutant in drawn), threads.map(is_noticed, drawn), strict=True))
