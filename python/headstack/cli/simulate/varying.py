"""Command-line options of the run options in ``headstack.catalogue.options``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from headstack.catalogue.options import Option
from headstack.cli.completing import Among, Named
from headstack.cli.files import SOURCE


def option_of(option: Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns the option for one value or a list of values, which the shell completes."""
    name = f"--{option.name.replace('_', '-')}"
    kind: click.ParamType[str] = Among(option.values)
    if "FILE" in option.metavar:
        kind = Named(option.values) if option.values() else SOURCE
    return click.option(name, option.name, metavar=option.metavar, help=option.help, type=kind)
