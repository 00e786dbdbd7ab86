"""The documents of the design: what they name is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("docs/design/*.md")), *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md"))]
SOURCES = [*ROOT.glob("crates/**/*.rs"), *ROOT.glob("tests/python/*.py")]
PATH = re.compile(r"`((?:crates|python|docs|tests|catalogue|benches|web|fuzz|packaging)/[\w./-]*)`")
"""A path from the root. Names of files beside it, such as `check.rs`, are relative to one of these."""

FILE = re.compile(r"`([\w-]+\.(?:rs|py|ts))`")


@pytest.fixture(scope="module")
def tests() -> set[str]:
    """The names of all tests."""
    rust = re.compile(r"^\s*fn (\w+)\(", re.MULTILINE)
    python = re.compile(r"^def (test_\w+)\(", re.MULTILINE)
    return {name for path in SOURCES for name in (rust if path.suffix == ".rs" else python).findall(path.read_text())}


def named(text: str) -> list[str]:
    """The tests that a page names."""
    return [rust or python for rust, python in re.findall(r"`(?:test: (\w+)|(test_\w+))`", text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page: Path, tests: set[str]) -> None:
    missing = [name for name in named(page.read_text()) if name not in tests]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text().replace("NAME", "*")
    missing = [path for path in PATH.findall(text) if not (ROOT / path).exists()]
    names = {
        path.name
        for folder in ("crates", "python", "tests", "web/src", "packaging")
        for path in (ROOT / folder).rglob("*.*")
    }
    missing += [name for name in FILE.findall(text) if name not in names]
    assert missing == []


def test_every_mechanism_names_tests() -> None:
    silent = [
        page.name
        for page in ROOT.glob("docs/design/*.md")
        if page.name != "index.md" and len(named(page.read_text())) < 3
    ]
    assert silent == []


def test_the_architecture_is_read_in_five_minutes() -> None:
    words = len((ROOT / "ARCHITECTURE.md").read_text().split())
    assert words < 1_300, "at 250 words a minute"
