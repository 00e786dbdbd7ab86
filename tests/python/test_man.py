"""The manual: everything is documented, and everything documented is in it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import click
import pytest

from conftest import Headstack, needs_program
from headstack.cli.loading import every
from headstack.cli.main import main
from headstack.cli.man import escape_request, escape_roff, first_sentence, page_name, pages, paragraphs

ALL = list(every(main))
PARAMETERS = [(words, parameter) for words, command in ALL for parameter in command.params]


def read(page: str) -> str:
    """A page as people read it, on one line."""
    text = re.sub(r"\\\[u([0-9A-F]+)\]", lambda found: chr(int(found[1], 16)), page)
    for written, letter in {"\\&": "", "\\-": "-", "\\(aq": "'", "\\(ga": "`", "\\(ha": "^", "\\(ti": "~"}.items():
        text = text.replace(written, letter)
    words = (line.removeprefix(".BR ").removeprefix(".B ") for line in text.split("\n"))
    return " ".join(" ".join(words).replace("\\e", "\\").split())


@pytest.fixture(scope="module")
def manual() -> dict[str, str]:
    return pages(main)


def test_everything_has_help() -> None:
    assert len(ALL) > 50
    assert len(PARAMETERS) > 300
    undocumented = [" ".join(words) for words, command in ALL if not (command.help or "").strip()]
    for words, parameter in PARAMETERS:
        assert isinstance(parameter, click.Option | click.Argument)
        if not (parameter.help or "").strip():
            undocumented.append(" ".join((*words, parameter.opts[-1])))
    assert undocumented == []


def test_every_command_has_a_page_with_all_that_it_takes(manual: dict[str, str]) -> None:
    assert set(manual) == {f"{page_name(words)}.1" for words, _ in ALL}
    for words, command in ALL:
        told = read(manual[f"{page_name(words)}.1"])
        assert command.hidden or isinstance(command, click.Group) or first_sentence(command) in told
        for parameter in command.params:
            record = parameter.get_help_record(click.Context(command))
            assert record is not None
            assert " ".join(" ".join(record).split()) in told, (words, record)
    for words, command in ALL:
        if words and not command.hidden:
            assert f"{page_name(words)} (1) {first_sentence(command)}" in read(manual[f"{page_name(words[:-1])}.1"])


def test_exit_codes_are_in_the_first_page(manual: dict[str, str]) -> None:
    assert ".SH EXIT STATUS" in manual["headstack.1"]
    assert "128+N" in read(manual["headstack.1"])


def test_roff_escapes_special_characters() -> None:
    assert escape_roff("a\\b -x 'y' ±") == "a\\eb \\-x \\(aqy\\(aq \\[u00B1]"
    assert escape_request(".TH") == "\\&.TH"
    assert list(paragraphs("One\nline.\n\n\b\n  as it is\n.x\n\n.y")) == [
        "One",
        "line.",
        ".PP",
        ".nf",
        "  as it is",
        "\\&.x",
        ".fi",
        ".PP",
        "\\&.y",
    ]


def test_it_is_written_by_one_command(tmp_path: Path, headstack: Headstack, manual: dict[str, str]) -> None:
    shown = headstack("man", "-o", "share/man1", SOURCE_DATE_EPOCH="0")
    assert shown.returncode == 0, shown.stderr
    assert {path.name for path in (tmp_path / "share/man1").iterdir()} == set(manual)
    assert "1970-01-01" in (tmp_path / "share/man1/headstack-run.1").read_text()
    (tmp_path / "file").write_text("")
    assert headstack("man", "-o", "file").returncode == 2


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("mandoc", ["mandoc", "-T", "lint", "-W", "style"]),
        ("groff", ["groff", "-man", "-ww", "-z", "-T", "utf8"]),
        ("man", ["man", "--warnings", "-E", "UTF-8", "-l", "-Z"]),
    ],
)
def test_the_pages_are_clean(program: str, command: list[str], manual: dict[str, str], tmp_path: Path) -> None:
    needs_program(program)
    for name, text in manual.items():
        (tmp_path / name).write_text(text)
        shown = subprocess.run([*command, name], cwd=tmp_path, capture_output=True, text=True, check=False)
        complaints = shown.stderr + (shown.stdout if program == "mandoc" else "")
        # Of mandoc's style, where lines of help are as long as lines of code.
        left = [line for line in complaints.splitlines() if "input text line longer than 80 bytes" not in line]
        assert left == []
