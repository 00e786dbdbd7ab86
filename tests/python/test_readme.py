"""Every command of the README and of docs/ is run, word for word, and its Python too."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from conftest import INSTALLED, environment_of, lacks, needs_program, slow
from headstack.cli.loading import every
from headstack.cli.main import MOVED, main
from terminals import ESCAPES, on_terminal

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PYTHON = INSTALLED / "bin" / "python" if INSTALLED else Path(sys.executable)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[tuple[str, str]]:
    """(Page, text) of each fenced block in the language."""
    return [
        (page.name, text)
        for page in PAGES
        for found, text in FENCE.findall(page.read_text(encoding="utf-8"))
        if found == language
    ]


def commands(text: str) -> list[str]:
    """The lines of a block without their comments."""
    return [command for line in text.splitlines() if (command := line.split(" #")[0].strip())]


LONG = {"choosing.md", "measuring.md", "sweeps.md"}
"""Pages with commands of half a minute and more. `make test` runs the shortest block of each, and all other pages."""
WHOLE = {"studies.md": "test_scorecard.py carries out a study", "twin.md": "test_twin.py calibrates a disk"}
"""Those of the long pages with one block alone, which is long."""


def stories() -> list[Any]:
    """The blocks of commands; those of the long pages, but for the shortest of each, are slow."""
    found = [block for block in blocks("sh") if "headstack " in block[1]]
    first = {page: min(len(text) for name, text in found if name == page) for page in LONG}
    shortest = slow("half a minute and more; the page's shortest block represents it")

    def case(page: str, text: str) -> Any:
        if page in WHOLE:
            return pytest.param(page, text, marks=slow(WHOLE[page]))
        return pytest.param(page, text, marks=shortest) if len(text) > first.get(page, len(text)) else (page, text)

    return [case(page, text) for page, text in found]


CRASH_EXAMPLE = "examples/crash/record_sqlite.py"


def needs_crash_example() -> None:
    """Skips the calling test without what the example program needs: root, loop devices and programs of ext4."""
    if os.geteuid() != 0:
        lacks("root", f"{CRASH_EXAMPLE} mounts a device")
    if not os.path.exists("/dev/loop-control"):
        lacks("loop", "there are no loop devices")
    for needed in ("mkfs.ext4", "e2fsck", "debugfs"):
        needs_program(needed)


@pytest.mark.parametrize(("page", "text"), stories())
def test_headstack_commands(page: str, text: str, tmp_path: Path) -> None:
    """A block is one story: its commands run one after the other in one folder."""
    program = PYTHON.with_name("headstack")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    # A block of TOML that begins with the name of a file is that file; a text of the name of a table is what follows.
    for _, file in (block for kind in ("toml", "text") for block in blocks(kind) if block[0] == page):
        first, _, rest = file.partition("\n")
        if first.startswith("# ") and first.endswith((".toml", ".csv")):
            (tmp_path / first.removeprefix("# ")).write_text(rest if first.endswith(".csv") else file)
    for command in commands(text):
        words = shlex.split(command)
        assert words[0] == "headstack", f"{page}: {command}: a block is of headstack or of make"
        if "--run" in words:
            run = words[words.index("--run") + 1].split()[0]
            if run == CRASH_EXAMPLE:
                needs_crash_example()
            elif run != program.name:
                needs_program(run)
        done = subprocess.run(
            [program, *words[1:]],
            cwd=tmp_path,
            env=environment_of(INSTALLED),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{page}: {command}\n{done.stderr}"
        assert done.stdout
        for option in ("--plot", "--html", "--parquet", "--json", "-o", "--record", "--workload"):
            # "drives list --json" names no file.
            for name in words[words.index(option) + 1 :][:1] if option in words else []:
                assert name == "-" or (tmp_path / name).stat().st_size > 0


@pytest.mark.parametrize(
    ("page", "command"),
    [(page, c) for page, text in blocks("sh") if "headstack " not in text for c in commands(text)],
)
def test_other_commands_are_targets_of_the_makefile(page: str, command: str) -> None:
    words = command.split()
    assert words[0] == "make", f"{page}: {command}: neither headstack nor make, so it would never be tried"
    done = subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{page}: {command}\n{done.stderr}"


def test_the_crash_check_of_the_readme_fails_without_sync(tmp_path: Path) -> None:
    """SQLite with synchronous=NORMAL loses acknowledged transactions, and the commands of the README find that."""
    needs_crash_example()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    record, explore = next(commands(text) for page, text in blocks("sh") if page == "README.md" and "crash" in text)
    codes = [
        subprocess.run(
            [PYTHON.with_name("headstack"), *shlex.split(command)[1:]],
            cwd=tmp_path,
            env=environment_of(INSTALLED),
            capture_output=True,
            check=False,
        ).returncode
        for command in (record.replace("$device", "$device NORMAL"), explore)
    ]
    assert codes == [0, 1]


SHOWN = re.compile(r"^```sh\n(headstack [^\n]*)\n```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), SHOWN.findall(PAGES[0].read_text(encoding="utf-8")))
def test_what_is_shown_is_what_comes(command: str, shown: str, tmp_path: Path) -> None:
    """Lines are left out of the README's tables; those that are there come so, on a terminal of 100 columns."""
    comes = ESCAPES.sub("", on_terminal(shlex.split(command)[1:], 100, tmp_path)).splitlines()
    assert not [line for line in shown.splitlines() if line not in comes], "\n".join(comes)


def test_questions_are_shown_with_their_answers() -> None:
    assert len(SHOWN.findall(PAGES[0].read_text(encoding="utf-8"))) == 3


@pytest.mark.parametrize(("page", "text"), blocks("python"))
def test_python(page: str, text: str, tmp_path: Path) -> None:
    environment = environment_of(INSTALLED) | {"MPLBACKEND": "Agg"}
    done = subprocess.run(
        [PYTHON, "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{page}\n{done.stderr}"


def test_there_is_something_to_try() -> None:
    assert sum(len(commands(text)) for _, text in blocks("sh")) >= 8
    assert blocks("python")


TOLD_IN = [
    *PAGES,
    *sorted((ROOT / "docs" / "design").glob("*.md")),
    *sorted((ROOT / "python" / "headstack" / "studies" / "shipped").rglob("*.md")),
    *sorted((ROOT / "catalogue").rglob("*.md")),
    *(ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG", "SECURITY")),
]
"""Where commands are named, in a sentence or a block that is not run."""
INLINE = re.compile(r"`(headstack [^`]+)`")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^\s*(?:srun )?(headstack [^\n]*?)(?: \\)?$", re.MULTILINE)


def wrong_with(command: str, known: dict[tuple[str, ...], set[str]]) -> str:
    """What of a command the program does not know, in words; nothing where it knows all of it."""
    words = shlex.split(command, comments=True)[1:]
    path: tuple[str, ...] = ()
    while words and (*path, words[0]) in known:
        path = (*path, words.pop(0))
    below = {words[len(path)] for words in known if words[: len(path)] == path and len(words) > len(path)}
    first = words[0] if words else ""
    if not path and (first == "FILE" or "." in first):
        # A file instead of a command is identified.
        return ""
    # A group that does something without a name takes arguments; others take the names of what is below them.
    if below and first and not first.startswith("-") and "" not in known[path]:
        return f"{first!r} is none of {', '.join(sorted(below))}"
    options = [word.partition("=")[0] for word in words[: words.index("--") if "--" in words else None]]
    options = [word.rstrip(",.;:)") for word in options if re.match(r"--?[a-z]", word)]
    return ", ".join(f"no option {option}" for option in options if option not in known[path])


def test_commands_that_are_named_are_commands() -> None:
    """What is run is tried above; of what is only named, the words and the options exist."""
    known: dict[tuple[str, ...], set[str]] = {}
    for path, command in every(main):
        options = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        known.setdefault(path, {"--help"}).update(options | ({""} if command.hidden else set()))
    wrong, tried = [], 0
    # Hidden commands still work. Only a changelog uses earlier names of commands.
    for name in ("curve", "completion", "demo", "man"):
        hidden = main.get_command(click.Context(main), name)
        assert hidden is not None
        known[(name,)] = {"--help"} | {option for one in hidden.params for option in one.opts}
    with_earlier = dict(known)
    for earlier, today in MOVED.items():
        below = [(words[len(today) :], options) for words, options in known.items() if words[: len(today)] == today]
        with_earlier |= {(earlier, *words): options for words, options in below}
    for page in TOLD_IN:
        text = page.read_text(encoding="utf-8")
        for command in [*INLINE.findall(text), *(one for block in FENCED.findall(text) for one in LINE.findall(block))]:
            tried += 1
            found = wrong_with(command, with_earlier if page.name == "CHANGELOG.md" else known)
            wrong += [f"{page.name}: {command}: {found}"] if found else []
    assert not wrong, "\n".join(wrong)
    assert tried > 250
    assert wrong_with("headstack replay trace.csv data.bin", known).startswith("'replay' is none of")
    assert wrong_with("headstack lab study play compaq", known) == "'play' is none of list, run, scorecard, show"
    assert wrong_with("headstack run DRIVE --deep 4", known) == "no option --deep"
