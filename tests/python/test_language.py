"""How headstack speaks: patterns of translated prose are counted, and no count may rise.

A limit is the count of today: lower it whenever you remove some. Documentation and help have none.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from headstack.cli.loading import every
from headstack.cli.main import main

ROOT = Path(__file__).resolve().parents[2]

PATTERNS = {
    "told": r"\b(is|are|was|were|be|been) told\b|\btells?\b|\btold (by|of)\b",
    "held against": r"\bheld against\b|\bholds? (it|them|that|\w+ \w+) against\b",
    "is said": r"\b(is|are|was) said\b",
    "says what": r"\bsays? (what|so)\b",
    "comes to": r"\b(comes?|came) (to|of)\b|\bmakes? of\b",
    "asked for": r"\b(is|are|was|were) asked for\b|\basks? for\b",
    "nobody": r"\bwhatever\b|\bnobody\b|\bwhoever\b",
    "a third": r"\ba (third|fifth|eighth|tenth|twentieth|hundredth)\b(?! (party|person))",
}
"""The first eight patterns that no text should have, with what to write instead: is reported, is compared with, is
printed, reports, totals, requires, no user, 33 %."""
ANY = re.compile("|".join(PATTERNS.values()), re.IGNORECASE)
FRAGMENT = re.compile(r"(Of|What|Whoever|Where|That)\b")
NAMES = {"told", "asked", "found", "given", "known", "what", "one"}
"""Names that explain nothing."""
RUST_NAMES = NAMES | {"tell", "ask", "says", "said", "heard", "lies", "stands"}
"""The same in Rust, where types and constants count in any case, such as `Known` and `TOLD`."""
RUST_NAME = re.compile(
    r"\b(?:fn|struct|enum|trait|type|mod|const|static|let(?: mut)?)\s+(\w+)"  # items and variables
    r"|(?:\(|, |\|)(?:mut )?([a-z]\w*): "  # arguments of functions and closures
)

GENERATED = {"scorecard.md", "inverse-findings.md", "columns.md", "safety.md", "fio.md", "performance.md"}
"""Pages whose tables come from studies, crates and benches."""
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in GENERATED),
]
PYTHON = sorted((ROOT / "python/headstack").rglob("*.py"))
RUST = sorted(ROOT.glob("crates/*/src/**/*.rs"))
PAGES_SOURCE = sorted((ROOT / "web/src").glob("*.ts"))

LIMITS = {
    "texts in Python": 6,
    "texts in Rust": 0,
    "texts in TypeScript": 0,
    "docstrings that begin with a fragment in Python": 0,
    "doc comments that begin with a fragment in Rust": 0,
    "names in Rust": 214,
    "names in Python": 7,
}


def prose(page: Path) -> str:
    """The text of a page without blocks of code and code in a line."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`", "", text)


def words_of(file: Path) -> Iterator[str]:
    """The comments and strings of a file of Python."""
    for token in tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)):
            yield token.string


def texts_of(file: Path) -> Iterator[str]:
    """The comments and strings of a file of Rust or TypeScript, line by line."""
    for line in file.read_text(encoding="utf-8").splitlines():
        yield from re.findall(r'//.*|"(?:[^"\\]|\\.)*"|`[^`]*`', line)


def docstrings(file: Path) -> Iterator[str]:
    """The docstrings of a file of Python, those of attributes among them."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value.strip()


def doc_comments(file: Path) -> Iterator[str]:
    """The doc comments of a file of Rust: their first lines."""
    before = ""
    for line in file.read_text(encoding="utf-8").splitlines():
        now = line.strip()
        if now.startswith("///") and not before.startswith("///"):
            yield now.removeprefix("///").strip()
        before = now


def names_of(file: Path) -> Iterator[str]:
    """The names that a file of Python gives to functions, arguments and variables."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def rust_names_of(file: Path) -> Iterator[str]:
    """The names that a file of Rust gives to items, arguments and variables."""
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.lstrip().startswith("//"):
            yield from (name or argument for name, argument in RUST_NAME.findall(line))


def counts() -> dict[str, int]:
    """How often each thing is found."""
    return {
        "texts in Python": sum(len(ANY.findall(text)) for file in PYTHON for text in words_of(file)),
        "texts in Rust": sum(len(ANY.findall(text)) for file in RUST for text in texts_of(file)),
        "texts in TypeScript": sum(len(ANY.findall(text)) for file in PAGES_SOURCE for text in texts_of(file)),
        "docstrings that begin with a fragment in Python": sum(
            bool(FRAGMENT.match(text)) for file in PYTHON for text in docstrings(file)
        ),
        "doc comments that begin with a fragment in Rust": sum(
            bool(FRAGMENT.match(text)) for file in RUST for text in doc_comments(file)
        ),
        "names in Rust": sum(name.lower() in RUST_NAMES for file in RUST for name in rust_names_of(file)),
        "names in Python": sum(name in NAMES for file in PYTHON for name in names_of(file)),
    }


def test_no_count_rises() -> None:
    assert {name: count for name, count in counts().items() if count > LIMITS[name]} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documentation_has_no_pattern(page: Path) -> None:
    assert [found.group() for found in ANY.finditer(prose(page))] == []


@pytest.mark.parametrize(
    ("words", "command"), list(every(main)), ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_help_has_no_pattern(words: tuple[str, ...], command: click.Command) -> None:
    texts = [command.help or "", *(getattr(parameter, "help", None) or "" for parameter in command.params)]
    assert [found.group() for text in texts for found in ANY.finditer(text)] == [], words


def test_patterns_are_noticed() -> None:
    for text in ("The limit is told.", "what nobody asks for", "A third of it comes to 5", "held against the device"):
        assert ANY.search(text), text
    assert FRAGMENT.match("Of the mean response time")
    assert not FRAGMENT.match("Offset of the first block")
