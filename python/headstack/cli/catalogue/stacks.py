"""``headstack catalog stacks``."""

from __future__ import annotations

import click

import headstack as hs
from headstack import _native
from headstack.catalogue import listings
from headstack.catalogue.stack import Stack
from headstack.cli.completing import STACK
from headstack.cli.loading import Commands
from headstack.cli.output import SOURCES, print_table, say, wide_option
from headstack.io.tables import to_json


@click.group(cls=Commands)
def stacks() -> None:
    """List and show stacks: file systems, networks and instance limits over drives and arrays.

    \b
    headstack catalog stacks list
    headstack catalog stacks show ext4-nvme
    headstack catalog stacks show ext4-nvme --toml > mine.toml
    """


@stacks.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@wide_option
def list_stacks(as_json: bool) -> None:
    """List the stacks of the catalogue."""
    if as_json:
        print(to_json([Stack.load(name).summary for name in hs.stacks.list()]), end="")
        return
    print_table(*listings.stacks(hs.stacks.list()))


@stacks.command("show")
@click.argument("name", metavar="NAME|FILE.toml", type=STACK, help="Stack: a catalogue name or a file.")
@click.option("--json", "as_json", is_flag=True, help="Print the complete description as JSON.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the catalogue file, to edit as your own.")
@wide_option
def show_stack(name: str, as_json: bool, as_toml: bool) -> None:
    """Show the layers of a stack, and the source of each value.

    \b
    headstack catalog stacks show ext4-nvme
    headstack catalog stacks show ext4-nvme --toml > mine.toml

    Derived values show their rule. The letter before a source grades its confidence; see "headstack catalog drives show
    --help".
    """
    if as_toml:
        print(_native.stack_toml(name), end="")
        return
    stack = Stack.load(name)
    if as_json:
        print(to_json(stack.description), end="")
        return
    summary = stack.summary
    layers = ", ".join(summary["layers"])
    size = _native.format_bytes(stack.capacity_bytes)
    say(f"{summary['name']} ({size}): {layers} over {summary['over']}")
    rows = [[value["key"], value["value"], value["source"] or ""] for value in stack.stated]
    rows += [[value["key"], value["value"], f"derived: {value['rule']}"] for value in stack.derived]
    print()
    print_table(SOURCES, rows)
