"""``headstack drives`` and ``headstack workloads``."""

from __future__ import annotations

import json
from typing import Any

import click

import headstack as hs
from headstack import _native
from headstack.catalogue import listings
from headstack.catalogue.drive import Drive, import_disksim
from headstack.catalogue.drives import INTERFACES, KINDS, PRICES, SORTS
from headstack.catalogue.workload import Workload
from headstack.cli.catalogue.sheets import new_drive
from headstack.cli.completing import DRIVE, WORKLOAD, Among
from headstack.cli.files import OUTPUT, SOURCE
from headstack.cli.loading import Commands
from headstack.cli.output import SOURCES, print_table, say, wide_option
from headstack.io.atomic_files import write_text
from headstack.io.columns import Figures
from headstack.io.tables import to_json


@click.group(cls=Commands)
def drives() -> None:
    """List, show, import and create drives.

    \b
    headstack catalog drives list --kind ssd --year 2022..
    headstack catalog drives show 990-pro-2tb
    headstack catalog drives show exos-x24-24tb --toml > mine.toml
    """


@drives.command("list")
@click.option(
    "--kind",
    metavar="disk|ssd|volume|instance",
    type=Among(KINDS),
    help="Kind of drive: disk (or hdd), ssd, cloud volume, or local disks of a cloud instance.",
)
@click.option(
    "--family",
    metavar="NAME",
    type=Among(hs.drives.families),
    help="Family of cloud instances, or a list, for example i4g,i7i: one row for each instance.",
)
@click.option("--since", metavar="YEAR", help="Introduced in this year or later, for example 2018.")
@click.option("--until", metavar="YEAR", help="Introduced in this year or earlier.")
@click.option("--year", metavar="RANGE", help="Year of introduction, for example 2001 or 2010..2020.")
@click.option("--min-capacity", metavar="SIZE", help="Smallest capacity, for example 4TB.")
@click.option("--max-capacity", metavar="SIZE", help="Largest capacity, for example 20TB.")
@click.option("--capacity", metavar="RANGE", help="Capacity, for example 1TB, 1TB.., ..40GB or 1..4TB.")
@click.option("--rpm", metavar="RANGE", help="Spindle speed in rpm, for example 15000 or 10000..")
@click.option(
    "--interface", metavar="KIND", type=Among(INTERFACES), help=f"Interface, or a list: {', '.join(INTERFACES)}."
)
@click.option(
    "--vendor",
    metavar="NAME",
    type=Among(hs.drives.vendors),
    help='Vendor, in full or by initials, or a list, for example seagate,"western digital",wd.',
)
@click.option(
    "--price", metavar="CLASS", type=Among(PRICES), help=f"Price class in dollars, or a list: {', '.join(PRICES)}."
)
@click.option(
    "--prices", metavar="FILE.csv", type=SOURCE, help="Price file of your own, which overrides the shipped prices."
)
@click.option("--sort", metavar="KEY", type=Among(tuple(SORTS)), help=f"Sort by: {', '.join(SORTS)}.  [default: name]")
@click.option("--reverse", is_flag=True, help="Sort in descending order.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@wide_option
def list_drives(as_json: bool, prices: str | None, **conditions: Any) -> None:
    """List the drives of the catalogue, or those that match.

    \b
    headstack catalog drives list --kind ssd --year 2022.. --min-capacity 4TB
    headstack catalog drives list --kind disk --vendor wd,seagate --sort capacity --reverse
    headstack catalog drives list --rpm 10000.. --capacity 1..80GB --interface scsi,fc
    headstack catalog drives list --kind instance
    headstack catalog drives list --family i4g

    --kind instance alone prints one row for each family of instances; every other condition, one for each instance.

    A RANGE is LOW..HIGH (both ends included), LOW.. or ..HIGH; a single capacity or speed matches within 1 %. Prices
    are the newest known; --json has their dates. Drives without a price have no price class and are sorted last. A
    price file has the columns item, price, currency, date, confidence and source; check it with "headstack catalog
    prices check".
    """
    own_prices = () if prices is None else hs.prices.read(prices)
    names = hs.drives.list(prices=own_prices, **conditions)
    if as_json:
        print(to_json([Drive.load(name).summary_with(own_prices) for name in names]), end="")
    elif not names:
        print(f"no drive matches ({len(hs.drives.list())} searched)")
    elif names[0] not in _native.instance_ids():
        print_table(*listings.drives(names, own_prices))
    elif any(value for option, value in conditions.items() if option != "kind"):
        print_table(*listings.instances(names))
    else:
        print_table(*listings.instance_families(names))
        say("\nFor the instances of a family, add --family NAME.")


@drives.command("show")
@click.argument("name", metavar="NAME|FILE.toml", type=DRIVE, help="Drive: a catalogue name or a file.")
@click.option("--json", "as_json", is_flag=True, help="Print the complete description as JSON.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the catalogue file, to edit as your own.")
@wide_option
def show_drive(name: str, as_json: bool, as_toml: bool) -> None:
    """Show each value of a drive with its source.

    \b
    headstack catalog drives show 990-pro-2tb
    headstack catalog drives show exos-x24-24tb --toml > mine.toml

    Derived values show their rule. The letter before a source grades its confidence: A read in the named source, S
    stated by a study's document, M read second-hand or in part, B and C general knowledge of high and medium
    confidence, D an estimate, I inferred.
    """
    if as_toml:
        print(_native.drive_toml(name), end="")
        return
    drive = Drive.load(name)
    if as_json:
        print(to_json(drive.description), end="")
        return
    recording = ""
    if "disk" in drive.system["drive"]:
        is_shingled = drive.system["drive"]["disk"].get("shingles") is not None
        recording = ", shingled (SMR)" if is_shingled else ", not described as shingled (SMR)"
    say(f"{drive.description['name']} ({_native.format_bytes(drive.capacity_bytes)}){recording}\n")
    rows = [[value["key"], value["value"], value["source"] or ""] for value in drive.stated]
    if not name.endswith(".toml"):
        dated = [price for price in hs.prices.shipped_prices() if price.item == drive.name.partition("@")[0]]
        rows += [
            [
                "price",
                f"${price.usd:,g} in {price.date}, ${price.usd_per_gb(drive.capacity_bytes):.3g} per GB",
                f"{price.confidence} {price.source}",
            ]
            for price in sorted(dated, key=lambda price: price.until, reverse=True)
        ]
    rows += [[value["key"], value["value"], f"derived: {value['rule']}"] for value in drive.derived]
    print_table(SOURCES, rows)


@drives.command("import")
@click.argument("path", metavar="FILE", type=SOURCE, help="DiskSim parameter file (.parv or .diskspecs).")
@click.option(
    "-o", "--output", type=OUTPUT, metavar="FILE.toml", help="Write the drive to this file.  [default: print it]"
)
@click.option("--name", metavar="NAME", help="Drive to import, if the file describes several.")
@click.option("--unmapped", is_flag=True, help="List parameters without a counterpart, with the reason.")
def import_drive(path: str, output: str | None, name: str | None, unmapped: bool) -> None:
    """Import a drive from a DiskSim parameter file (.parv or .diskspecs).

    \b
    headstack catalog drives import cheetah9LP.parv -o mine.toml

    A warning on stderr reports where the drive will behave differently from its file. Most parameters without a
    counterpart change nothing or follow the model's own rules; they are counted.
    """
    imported = import_disksim(path)
    if name in imported.refused:
        raise hs.InputError(imported.refused[name])
    matching = [drive for drive in imported.drives if name in (None, drive.name)]
    if len(matching) != 1:
        names = ", ".join(drive.name for drive in imported.drives) or "none"
        raise hs.InputError(f"{path}: select one drive with --name: {names}")
    drive = matching[0]
    text = drive.to_toml()
    left_out = imported.unmapped[drive.name]
    if unmapped:
        for parameter in left_out:
            click.echo(f"headstack: no counterpart: {parameter}", err=True)
    elif left_out:
        click.echo(f"headstack: {len(left_out)} parameters have no counterpart (list them with --unmapped)", err=True)
    for other, error in imported.refused.items():
        click.echo(f"headstack: warning: skipped {other}: {error}", err=True)
    for warning in imported.warnings:
        click.echo(f"headstack: warning: {warning}", err=True)
    if output is None:
        print(text, end="")
    else:
        write_text(output, text)


drives.add_command(new_drive)


@click.group(cls=Commands)
def workloads() -> None:
    """List and show workloads.

    \b
    headstack catalog workloads list
    headstack catalog workloads show oltp-8k --toml > mine.toml
    """


@workloads.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@wide_option
def list_workloads(as_json: bool) -> None:
    """List the workloads of the catalogue."""
    if as_json:
        print(to_json([Workload.load(name).description for name in hs.workloads.list()]), end="")
        return
    print_table(*listings.workloads(hs.workloads.list()))


@workloads.command("show")
@click.argument("name", metavar="NAME|FILE.toml", type=WORKLOAD, help="Workload: a catalogue name or a file.")
@click.option("--json", "as_json", is_flag=True, help="Print the complete workload as JSON.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the catalogue file, to edit as your own.")
@wide_option
def show_workload(name: str, as_json: bool, as_toml: bool) -> None:
    """Show the access lines of a workload, and how its requests arrive.

    \b
    headstack catalog workloads show oltp-8k
    headstack catalog workloads show oltp-8k --toml > mine.toml
    """
    if as_toml:
        print(_native.workload_toml(name), end="")
        return
    description = Workload.load(name).description
    if as_json:
        print(to_json(description), end="")
        return
    say(f"{description.get('specification', description['name'])}\n{description['source']}\n")
    rows = [
        [
            f"{line['share_percent']:g}",
            line["size"],
            f"{line['read_percent']:g}",
            f"{line['random_percent']:g}",
            line.get("align", "sector"),
            line["delay"],
        ]
        for line in description["lines"]
    ]
    columns = [Figures(heading, 0) for heading in ("share %", "size", "read %", "random %")]
    print_table([*columns, Figures("aligned to"), Figures("delay")], rows)
    print()
    keys = ["addresses", "arrivals", "streams", "stream_turn", "flush_every", "warm_up", "run_length"]
    for key in filter(description.__contains__, keys):
        say(f"{key}: {json.dumps(description[key])}")
