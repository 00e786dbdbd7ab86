"""Exit codes: an internal error never ends with the code of a verdict, and wrong usage ends with 2."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import click
import pytest

from conftest import Headstack
from headstack.cli.loading import Implied, every
from headstack.cli.main import main
from headstack.io import signals

EXIT_VERDICT, EXIT_USAGE, EXIT_INTERNAL = 1, 2, 70
GROUPS = {words: command for words, command in every(main) if isinstance(command, click.Group)}
LEAVES = {
    # A command that goes without saying is named, as its group prints help without any word.
    (*words, group.implied) if isinstance(group := GROUPS.get(words), Implied) else words: command
    for words, command in every(main)
    if not isinstance(command, click.Group)
}
"""All commands without subcommands, by their words."""


def raise_error(error: BaseException) -> NoReturn:
    raise error


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_an_error_inside_any_command_ends_with_70(
    words: tuple[str, ...], headstack: Headstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = LEAVES[words]
    monkeypatch.setattr(command, "params", [])
    monkeypatch.setattr(command, "callback", lambda **_: raise_error(IndexError("made up")))
    done = headstack(*words)
    assert done.returncode == EXIT_INTERNAL, done.stderr
    assert "internal error: IndexError: made up; please report it" in done.stderr
    assert "Traceback" in done.stderr


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_an_unknown_option_of_any_command_ends_with_2(words: tuple[str, ...], headstack: Headstack) -> None:
    done = headstack(*words, "--no-such-option")
    assert (done.returncode, done.stdout) == (EXIT_USAGE, "")
    assert "--no-such-option" in done.stderr


ERRORS = [AssertionError("made up"), MemoryError(), RecursionError(), SystemExit("text"), SystemExit(True)]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_no_error_ends_with_the_code_of_a_verdict(
    error: BaseException, headstack: Headstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headstack.cli.start.text", lambda _: raise_error(error))
    assert headstack().returncode == EXIT_INTERNAL


@pytest.mark.parametrize("code", [True, "text", 1.0, [1]], ids=repr)
def test_a_command_cannot_return_anything_but_a_number(
    code: object, headstack: Headstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = LEAVES["catalog", "drives", "list"]
    monkeypatch.setattr(command, "callback", lambda **_: code)
    done = headstack("catalog", "drives", "list")
    assert done.returncode == EXIT_INTERNAL
    assert "a command returned" in done.stderr


def test_verdicts_pass_through(headstack: Headstack, monkeypatch: pytest.MonkeyPatch) -> None:
    for code in (EXIT_VERDICT, 4):
        monkeypatch.setattr(LEAVES["catalog", "drives", "list"], "callback", lambda code=code, **_: code)
        assert headstack("catalog", "drives", "list").returncode == code


def test_an_error_while_commands_are_loaded_ends_with_70(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise ImportError('made up')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "headstack", "run"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_INTERNAL
    assert "ImportError: made up" in done.stderr


@pytest.mark.parametrize(("heard", "code"), [([signal.SIGINT], 130), ([], 70)])
def test_a_query_that_a_signal_ended_is_no_internal_error(
    heard: list[int], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def invoke(_context: click.Context) -> None:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(signals, "_heard", heard)
    monkeypatch.setattr(signals, "install", lambda: None)
    monkeypatch.setattr(main, "invoke", invoke)
    with pytest.raises(SystemExit) as ended:
        main.main(["run"])
    assert ended.value.code == code
