"""The options that change runs, as ``headstack.catalogue.options`` has them, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from headstack.catalogue.options import Option
from headstack.cli.completing import Among, Named
from headstack.cli.files import SOURCE


def option_of(option: Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """It takes one value or a comma list, whose values the shell completes."""
    name = f"--{option.name.replace('_', '-')}"
    kind: click.ParamType[str] = Among(option.values)
    if "FILE" in option.metavar:
        kind = Named(option.values) if option.values() else SOURCE
    return click.option(name, option.name, metavar=option.metavar, help=option.help, type=kind)
