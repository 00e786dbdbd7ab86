"""An error about the value of an option names the option as typed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import click
import pytest

from conftest import Headstack
from headstack._native import InputError
from headstack.cli.main import format_input_error, main


def options() -> Iterator[tuple[list[str], str]]:
    """Yields the words of each command, and each of its options that takes a value."""

    def of(command: click.Command, context: click.Context, words: list[str]) -> Iterator[tuple[list[str], str]]:
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.is_flag:
                yield words, max(parameter.opts, key=len)
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                sub = command.get_command(context, name)
                assert sub is not None
                yield from of(sub, click.Context(sub, info_name=name, parent=context), [*words, name])

    return of(main, click.Context(main, info_name="headstack"), [])


def test_errors_of_all_commands_name_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = 0
    for words, option in options():
        name = option.removeprefix("--").replace("-", "_")
        for typed in ([option, "x"], [f"{option}=x"]):
            monkeypatch.setattr(sys, "argv", ["headstack", *words, *typed])
            assert format_input_error(InputError("is wrong", key=name)) == f"{option}: is wrong", words
        checked += 1
    assert checked > 300


def test_a_key_of_a_file_or_of_no_typed_option_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["headstack", "choose", "--capacity", "1TB"])
    assert format_input_error(InputError("is wrong", file="a.toml", line=3, key="capacity")) == (
        "a.toml:3: capacity: is wrong"
    )
    assert format_input_error(InputError("is wrong", key="spindle")) == "spindle: is wrong"
    assert format_input_error(InputError("is wrong", key="capacity, spindle")) == "capacity, spindle: is wrong"
    assert format_input_error(InputError("is wrong", key="--limits")) == "--limits: is wrong"
    assert format_input_error(InputError("is wrong")) == "is wrong"
    monkeypatch.setattr(sys, "argv", ["headstack", "choose", "--capacity", "1TB", "--years", "3"])
    assert format_input_error(InputError("give one", key="capacity, years")) == "--capacity, --years: give one"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("measure", "settings", "file", "--for", "cehp"), "--for: 'cehp' is unknown; allowed: ceph, scylla"),
        (("choose", "--capacity", "x"), '--capacity: "x" is not a size'),
        (("catalog", "drives", "list", "--min-capacity=x"), '--min-capacity: "x" is not a size'),
        (("catalog", "drives", "list", "--kind", "x"), "--kind: 'x' is unknown; allowed: disk"),
        (("catalog", "drives", "list", "--year", "x"), "--year: 'x' is not a whole number"),
    ],
)
def test_commands_print_the_option(headstack: Headstack, arguments: Sequence[str], message: str) -> None:
    done = headstack(*arguments)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"headstack: {message}")
