"""``headstack arrays``."""

from __future__ import annotations

import itertools
from typing import Any

import click

import headstack as hs
from headstack import _native
from headstack.catalogue import listings
from headstack.catalogue.array import Array, device_names, shortened
from headstack.cli.completing import ARRAY
from headstack.cli.loading import Commands
from headstack.cli.output import SOURCES, print_table, say, wide_option
from headstack.io.columns import Figures, Names, Prose, Words
from headstack.io.tables import to_json

Description = dict[str, Any]


@click.group(cls=Commands)
def arrays() -> None:
    """List and show arrays: drives, links, RAID groups and LUNs.

    \b
    headstack catalog arrays list
    headstack catalog arrays show zfs-raidz2-8-nas
    headstack catalog arrays show md-raid6-12x16tb --toml > mine.toml
    """


@arrays.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@wide_option
def list_arrays(as_json: bool) -> None:
    """List the arrays of the catalogue."""
    if as_json:
        print(to_json([Array.load(name).summary for name in hs.arrays.list()]), end="")
        return
    print_table(*listings.arrays(hs.arrays.list()))


@arrays.command("show")
@click.argument("name", metavar="NAME|FILE.toml", type=ARRAY, help="Array: a catalogue name or a file.")
@click.option("--json", "as_json", is_flag=True, help="Print the complete description as JSON.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the catalogue file, to edit as your own.")
@wide_option
def show_array(name: str, as_json: bool, as_toml: bool) -> None:
    """Show the layout of an array, and the source of each value.

    \b
    headstack catalog arrays show zfs-raidz2-8-nas
    headstack catalog arrays show md-raid6-12x16tb --toml > mine.toml

    Derived values show their rule. The letter before a source grades its confidence; see "headstack catalog drives show
    --help".
    """
    if as_toml:
        print(_native.array_toml(name), end="")
        return
    array = Array.load(name)
    if as_json:
        print(to_json(array.description), end="")
        return
    say(f"{array.description['name']} ({_native.format_bytes(array.capacity_bytes)})")
    for print_part in (print_luns, print_groups, print_drives, print_links, print_controller):
        print()
        print_part(array.description)
    rows = [[value["key"], value["value"], value["source"] or ""] for value in array.stated]
    rows += [[value["key"], value["value"], f"derived: {value['rule']}"] for value in array.derived]
    print()
    print_table(SOURCES, rows)


def print_luns(description: Description) -> None:
    """Prints the exported LUNs."""
    groups = description["groups"]
    size = _native.format_bytes
    rows = [[lun["name"], groups[lun["group"]]["name"], size(lun["length_bytes"])] for lun in description["luns"]]
    print_table([Names("LUN"), Words("group"), Figures("size", 0)], rows)


def print_groups(description: Description) -> None:
    """Prints the RAID groups."""
    size = _native.format_bytes
    rows = [
        [
            group["name"],
            group["level"] if group["spans"] == 1 else f"{group['level']} in {group['spans']} spans",
            format_members(description, group["members"]),
            format_members(description, group["spares"]),
            size(group["chunk_bytes"]) if group["level"] not in ("concat", "raid1") else "",
            size(group["member_bytes"]),
        ]
        for group in description["groups"]
    ]
    columns = [Names("group"), Words("level", 0), Words("drives", 0), Words("spares")]
    print_table([*columns, Figures("chunk size"), Figures("of each drive", 2)], rows)


def print_drives(description: Description) -> None:
    """Prints the drives and their paths to the controller; equal neighbours share one line."""
    names = device_names(description)

    def kind(member: Description) -> tuple[str, str]:
        paths = [" > ".join(description["links"][link]["name"] for link in way) for way in member["ways"]]
        return names[member["device"]], " or ".join(way for way in paths if way)

    runs = itertools.groupby(description["members"], key=kind)
    rows = [[shortened([member["name"] for member in run]), *path] for path, run in runs]
    print_table([Names("drives"), Words("drive", 2), Words("path to the controller")], rows)


def print_links(description: Description) -> None:
    """Prints the links with their rates; equal neighbours share one line."""
    time = _native.format_duration_ns

    def figures(numbered: tuple[int, Description]) -> list[str]:
        number, link = numbered
        traits = {
            "full duplex": link["full_duplex"],
            "held by each command": link["held_by_command"],
            "to the host": number in description["host_links"],
        }
        return [
            link["kind"],
            f"{1e3 / link['ns_per_byte']:,.4g}" if link["ns_per_byte"] else "",
            time(link["command_ns"]),
            f"{time(link['read_ns'])}, {time(link['write_ns'])}",
            time(link["latency_ns"]),
            ", ".join(trait for trait, applies in traits.items() if applies),
        ]

    runs = itertools.groupby(enumerate(description["links"]), key=figures)
    rows = [[shortened([link["name"] for _, link in run]), *cells] for cells, run in runs]
    if rows:
        number_columns = [Figures("MB/s", 0), Figures("command", 2), Figures("read, write", 2), Figures("latency", 3)]
        print_table([Names("link"), Words("kind"), *number_columns, Prose("")], rows)
    else:
        say("links: only the drives' own ports")


def print_controller(description: Description) -> None:
    """Prints the controller, its cache and scheduled incidents."""
    size, time = _native.format_bytes, _native.format_duration_ns
    controller = description["controller"]
    say(
        f"controller: {time(controller['request_ns'])} per request, {time(controller['command_ns'])} per drive "
        f"command, {controller['processors']} processor{'s' * (controller['processors'] > 1)}"
    )
    cache = controller["cache"]
    if cache is None:
        say("cache: none")
    else:
        holder = format_members(description, cache["flash_members"]) or size(cache["memory_bytes"])
        say(
            f"cache: write-{cache['writes']}, {size(cache['data_bytes'])} of {holder} for data, "
            f"at most {size(cache['dirty_bytes_max'])} dirty, pages of {size(cache['page_bytes'])}, "
            f"destages {cache['destage']}"
        )
    for incident in description["incidents"]:
        say(f"at {time(incident['at_ns'])}: {describe_incident(description, incident['what'])}")


def describe_incident(description: Description, incident: str | Description) -> str:
    """Describes an incident."""
    if isinstance(incident, str):
        return incident.replace("-", " ")
    return f"{description['members'][incident['member-fails']['member']]['name']} fails"


def format_members(description: Description, members: list[int]) -> str:
    """Formats the names of members."""
    return shortened([description["members"][member]["name"] for member in members])
