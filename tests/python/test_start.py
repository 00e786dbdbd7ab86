"""The first seconds: where to start, help at once, and nothing loaded that a command does not use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import headstack as hs
from headstack.cli.main import COMMANDS, main
from headstack.cli.start import WIDTH, text
from terminals import on_terminal

HEAVY = {"click", "distributed", "duckdb", "matplotlib", "numpy", "polars", "rich", "headstack._native", "typing"}


def started(*arguments: str, loading: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line as the installed script begins it; on stderr, at the end, what was loaded."""
    told = "import atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))" if loading else ""
    code = f"import sys; {told}\nfrom headstack.cli.start import main\nmain()"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_alone_it_says_where_to_start() -> None:
    shown = started(loading=True)
    assert shown.returncode == 0
    assert shown.stdout == text("start.txt")
    assert not set(shown.stderr.split()) & HEAVY
    # As it does for those who come by another way.
    assert CliRunner().invoke(main, []).output == text("start.txt")
    assert subprocess.check_output([sys.executable, "-m", "headstack"], text=True) == text("start.txt")


def test_what_it_says_to_do_exists() -> None:
    told = [line.split() for line in text("start.txt").splitlines() if line.startswith("    headstack ")]
    assert 3 <= len(told) <= 8
    for _, *words in told:
        asked = words[: {"catalog": 3, "trace": 2}.get(words[0], 1)]
        assert CliRunner().invoke(main, [*asked, "--help"]).exit_code == 0
        for option in (word for word in words if word.startswith("-")):
            assert option in CliRunner().invoke(main, [*asked, "--help"]).output


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_is_stored_and_loads_nothing(option: str) -> None:
    shown = started(option, loading=True)
    assert shown.returncode == 0
    assert shown.stdout == text("help.txt")
    assert not set(shown.stderr.split()) & HEAVY


def test_the_stored_help_is_that_of_the_commands() -> None:
    context = click.Context(main, info_name="headstack", terminal_width=WIDTH, **main.context_settings)
    made = main.get_help(context) + "\n"
    if "HEADSTACK_WRITE_DOCS" in os.environ:
        Path(hs.__file__).with_name("cli").joinpath("help.txt").write_text(made, encoding="utf-8")
    assert text("help.txt") == made, "HEADSTACK_WRITE_DOCS=1 pytest tests/python/test_start.py renews cli/help.txt"
    shown = [name for name in COMMANDS if not getattr(main.get_command(context, name), "hidden", False)]
    assert all(f"\n  {name} " in made for name in shown)


def test_on_a_narrow_terminal_help_is_made_to_fit(tmp_path: Path) -> None:
    wide, narrow = (on_terminal(["--help"], columns, tmp_path) for columns in (80, 60))
    assert wide == text("help.txt")
    commands = narrow.partition("\nCommands:")[2].partition("Exit codes")[0]
    assert max(map(len, commands.splitlines())) <= 60
    assert on_terminal(["--help"], 80, tmp_path, COLUMNS="60") == narrow


def test_a_full_disk_is_told_of_help_too() -> None:
    code = "from headstack.cli.start import main; main()"
    for arguments in ([], ["--help"]):
        with open("/dev/full", "wb") as full:
            shown = subprocess.run([sys.executable, "-c", code, *arguments], stdout=full, stderr=subprocess.PIPE)
        assert shown.returncode == 3
        assert shown.stderr == b"headstack: stdout: cannot be written: No space left on device\n"


def test_a_command_loads_its_own_modules_alone() -> None:
    shown = started("catalog", "drives", "list", loading=True)
    loaded = set(shown.stderr.split())
    assert {"click", "headstack.cli.catalogue.catalogue"} <= loaded
    assert not loaded & (HEAVY - {"click", "headstack._native", "typing"})
    assert not loaded & {
        "headstack.results.results",
        "headstack.simulation.runs",
        "headstack.measurement.measurement",
        "headstack.cli.simulate.runs",
    }


def test_every_name_of_the_package_is_there() -> None:
    code = "import headstack; print(*(f'{name}:{getattr(headstack, name).__name__}' for name in headstack.__all__))"
    shown = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert [pair.split(":")[0] for pair in shown.split()] == hs.__all__
    with pytest.raises(AttributeError, match="nothing"):
        _ = hs.nothing
    assert hs.__version__ == hs._native.version()


def test_help_fits_a_screen() -> None:
    context = click.Context(main, info_name="headstack")
    shown = [
        name for name in main.list_commands(context) if not getattr(main.get_command(context, name), "hidden", False)
    ]
    assert len(shown) <= 14
    for name in shown:
        made = CliRunner().invoke(main, [name, "--help"], terminal_width=80, prog_name="headstack").output
        assert made.count("\n") <= 45, name
        whole = CliRunner().invoke(main, [name, "--help", "--all"], terminal_width=80, prog_name="headstack").output
        assert whole.count("\n") >= made.count("\n"), name


def test_earlier_names_of_commands_print_those_of_today() -> None:
    shown = CliRunner().invoke(main, ["drives", "list", "--kind", "volume"])
    assert shown.exit_code == 0
    assert shown.stderr == "headstack: `headstack drives` is now `headstack catalog drives`\n"
