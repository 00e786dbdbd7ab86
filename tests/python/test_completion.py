"""What shells complete, asked by the shells themselves."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

import headstack as hs
from conftest import ATLAS, needs_program, slow_but
from headstack._native import POLICIES
from headstack.cli.completing import RANGES, SHELLS
from headstack.cli.files import OutputFile
from headstack.cli.loading import every
from headstack.cli.main import main
from headstack.traces.replays import MODES
from headstack.traces.traces import export_formats, formats

DRIVERS = {
    # Each function answers for one command line, a completion a line; ``+option`` is what it asks the shell for.
    "bash": """
        compopt() { echo "+$*"; }
        source <(headstack completion bash)
        asked() {
            COMP_LINE=$1 COMP_POINT=${#1}
            _headstack_completion headstack
            printf '%s\\n' "${COMPREPLY[@]}"
        }
        asked "$LINE"
    """,
    "zsh": """
        compdef() { }
        eval "$(headstack completion zsh)"
        compadd() { print -l -- $completions }
        _describe() { print -l -- ${completions_with_descriptions%%:*} }
        _path_files() { [[ $1 == -/ ]] && print -- "+-o dirnames" || print -- "+-o default" }
        words=("${(@Q)${(z)LINE}}")
        [[ $LINE == *' ' ]] && words+=('')
        CURRENT=$#words
        _headstack_completion
    """,
    "fish": """
        headstack completion fish | source
        function __fish_complete_path; echo "+-o default"; end
        function __fish_complete_directories; echo "+-o dirnames"; end
        function commandline; test $argv[1] = -t; and string match -r '[^ ]*$' -- $LINE; or echo $LINE; end
        for answer in (_headstack_completion); string split \\t -- $answer | head -1; end
    """,
}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    """Each shell that is installed."""
    needs_program(request.param)
    return str(request.param)


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment with the command line on its path, in an empty folder."""
    program = tmp_path / "bin" / "headstack"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from headstack.cli.start import main; main()' \"$@\"\n")
    program.chmod(0o755)
    return os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}


def completed(shell: str, line: str, environment: dict[str, str]) -> list[str]:
    """What a shell is told to complete the end of a line by, each as the whole word."""
    flags = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    told = subprocess.run(
        [shell, *flags, "-c", DRIVERS[shell]],
        env=environment | {"LINE": line},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert told.stderr == ""
    found = told.stdout.split("\n")[:-1]
    if shell != "bash":
        return [value for value in found if value]
    # Bash replaces what it has after the last of its word breaks alone, of which ``@`` is part of what it has.
    kept = re.match(r"(.*(?:[=:]|(?=@)))?", line.rpartition(" ")[2])
    before = "" if kept is None else kept[0]
    return [value if value.startswith("+") else before + value for value in found if value and value != "+-o nospace"]


CASES = [
    ("catalog drives sh", ["show"]),
    ("run atl", [name for name in hs.drives.list() if name.startswith("atl")]),
    ("curve va-", ["va-7100"]),
    (f"run {ATLAS}@", [f"{ATLAS}@{part}" for part in RANGES]),
    (f"run {ATLAS}@50", [f"{ATLAS}@50%..100%"]),
    (f"run {ATLAS} -w file-server,web-s", ["file-server,web-server"]),
    (f"run {ATLAS} -w demartek-b", ["demartek-boot-storm"]),
    (f"run {ATLAS} --policy ", list(POLICIES)),
    (f"run {ATLAS} --policy fcfs,", [f"fcfs,{name}" for name in POLICIES if name != "fcfs"]),
    (f"run {ATLAS} --policy=ss", ["--policy=sstf"]),
    (f"run {ATLAS} --write-c", ["--write-cache"]),
    (f"run {ATLAS} --json ", ["+-o default"]),
    ("run ./", ["+-o default"]),
    ("catalog drives show ultrastar-ss", ["ultrastar-ssd800mm-400gb"]),
    ("catalog arrays show compaq-raid5", ["compaq-raid5-7"]),
    ("catalog workloads show web", ["web-server"]),
    ("catalog scenarios show hp-oltp-2", ["hp-oltp-2k"]),
    ("lab study run mark", ["mark5c", "mark5c-2012"]),
    ("lab study show mark5c -o ", ["+-o dirnames"]),
    ("trace replay x y --mode timed,", [f"timed,{mode}" for mode in MODES if mode != "timed"]),
    ("trace info x --format ", list(formats())),
    ("trace export x --to ", list(export_formats())),
    ("trace import ", ["+-o default"]),
    ("measure zo", ["zones"]),
    ("measure /de", ["+-o default"]),
    ("measure null --engine ", ["auto", "ring", "psync"]),
    ("measure --des", ["--destroy"]),
    ("inspect his", ["history"]),
    ("sweep x --sample ", ["grid", "random", "sobol"]),
    ("completion ", list(SHELLS)),
]
"""Lines, and what completes their last word."""


@pytest.mark.parametrize(("line", "expected"), slow_but(CASES, *CASES[::3], reason="each starts a shell"))
def test_names_values_and_files_are_completed(
    shell: str, line: str, expected: list[str], installed: dict[str, str]
) -> None:
    assert sorted(completed(shell, f"headstack {line}", installed)) == sorted(expected)


def test_bash_completes_as_it_is_typed(installed: dict[str, str], tmp_path: Path) -> None:
    needs_program("bash")
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execvpe("bash", ["bash", "--norc", "-i"], installed | {"PS1": "$ ", "TERM": "dumb"})
    try:
        os.write(terminal, b"source <(headstack completion bash); echo read''y\n")
        until(terminal, "ready")
        os.write(terminal, f"headstack run {ATLAS[:-3]}\t".encode())
        until(terminal, f"run {ATLAS} ")
        os.write(terminal, b"\x08@90\t")
        until(terminal, "@90%..100%")
    finally:
        os.close(terminal)
        os.waitpid(process, 0)


def until(terminal: int, expected: str) -> None:
    """Reads what a terminal shows until something is in it."""
    shown, end_s = "", time.monotonic() + 60
    while expected not in shown:
        assert select.select([terminal], [], [], end_s - time.monotonic())[0], shown
        shown += os.read(terminal, 4096).decode()


def test_completion_loads_nothing_slow(installed: dict[str, str]) -> None:
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from headstack.cli.start import main; main()"
    )
    for line in ("run atl", "lab study run ", "trace export x --to "):
        asked = {"_HEADSTACK_COMPLETE": "bash_complete", "COMP_LINE": f"headstack {line}"}
        loaded = subprocess.check_output([sys.executable, "-c", code], env=installed | asked, text=True).split()
        assert "headstack.cli.main" in loaded
        assert not {"distributed", "duckdb", "matplotlib", "numpy", "polars", "rich"} & set(loaded), line


def test_every_option_that_takes_a_word_of_a_list_completes_it() -> None:
    """A list in help that the shell does not know would be forgotten there."""
    lists = 0
    for words, command in every(main):
        for option in command.params:
            context = click.Context(command)
            metavar = option.make_metavar(context) if isinstance(option, click.Option) else None
            values = [value for value in (metavar or "").strip("[]").split("|") if re.fullmatch("[a-z-]+", value)]
            if metavar is None or "|" not in metavar or not values or isinstance(option.type, OutputFile):
                continue
            lists += 1
            found = {item.value for item in option.shell_complete(context, "")}
            assert set(values) <= found, (words, option.opts, found)
    assert lists > 20
