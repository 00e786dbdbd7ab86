"""The options that change runs, as ``headstack.options`` has them, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from headstack.cli.completing import Among
from headstack.cli.files import SOURCE_LIST
from headstack.options import Option


def option_of(option: Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """It takes one value or a comma list, whose values the shell completes."""
    name = f"--{option.name.replace('_', '-')}"
    kind = SOURCE_LIST if option.metavar == "FILE" else Among(option.values)
    return click.option(name, option.name, metavar=option.metavar, help=option.help, type=kind)
