"""``headstack scenarios``."""

from __future__ import annotations

from typing import Any

import click

import headstack as hs
from headstack import _native
from headstack.catalogue import listings
from headstack.catalogue.scenario import Scenario, kind_of, plain
from headstack.cli.completing import SCENARIO
from headstack.cli.loading import Commands
from headstack.cli.output import print_table, say, wide_option
from headstack.io.tables import to_json


@click.group(cls=Commands)
def scenarios() -> None:
    """List and show scenarios: several kinds of clients at once.

    \b
    headstack catalog scenarios list
    headstack catalog scenarios show demartek-oltp
    """


@scenarios.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@wide_option
def list_scenarios(as_json: bool) -> None:
    """List the scenarios of the catalogue."""
    entries = [Scenario.load(name).description for name in hs.scenarios.list()]
    if as_json:
        print(to_json(entries), end="")
        return
    print_table(*listings.scenarios(hs.scenarios.list()))


@scenarios.command("show")
@click.argument("name", metavar="NAME|FILE.toml", type=SCENARIO, help="Scenario: a catalogue name or a file.")
@click.option("--json", "as_json", is_flag=True, help="Print the complete scenario as JSON.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the catalogue file, to edit as your own.")
def show_scenario(name: str, as_json: bool, as_toml: bool) -> None:
    """Show the streams of a scenario, with their addresses and options.

    \b
    headstack catalog scenarios show demartek-oltp
    """
    if as_toml:
        print(_native.scenario_toml(name), end="")
        return
    description = Scenario.load(name).description
    if as_json:
        print(to_json(description), end="")
        return
    say(f"{description['name']}\n{description['source']}\n")
    for key, value in description.items():
        if key not in ("name", "source", "streams"):
            say(f"{key}: {plain(value)}")
    for stream in description["streams"]:
        kind = kind_of(stream)
        say(f"\n{stream['name']}: {kind}, {describe_addresses(stream)}")
        print_value(stream[kind], "  ")


def describe_addresses(stream: dict[str, Any]) -> str:
    """Describes the addresses of a stream."""
    lun = f"LUN {stream['lun']}" if "lun" in stream else "the whole system"
    return f"{' to '.join(stream['range'])} of {lun}" if "range" in stream else lun


def print_value(table: dict[str, Any], indent: str) -> None:
    """Prints one line per key, and one per entry of a list of tables."""
    for key, value in table.items():
        if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
            for entry in value:
                if any(isinstance(inner, list) for inner in entry.values()):
                    say(f"{indent}{key}:")
                    print_value(entry, indent + "  ")
                else:
                    say(f"{indent}{key}: {plain(entry)}")
        else:
            say(f"{indent}{key}: {plain(value)}")
