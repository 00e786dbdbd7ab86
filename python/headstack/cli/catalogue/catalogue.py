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
from headstack.cli.output import SOURCES, print_table, say, wide_option
from headstack.io.atomic_files import write_text
from headstack.io.columns import Figures
from headstack.io.tables import to_json


@click.group()
def drives() -> None:
    """The drives of the catalogue, and their sources."""


@drives.command("list")
@click.option(
    "--kind",
    metavar="disk|ssd|volume",
    type=Among(KINDS),
    help="Disks (hdd is the same), solid-state drives, or volumes of clouds.",
)
@click.option("--since", metavar="YEAR", help="Introduced in that year or later.")
@click.option("--until", metavar="YEAR", help="Introduced in that year or before.")
@click.option("--year", metavar="RANGE", help="Year of introduction: 2001, 2010..2020.")
@click.option("--min-capacity", metavar="SIZE", help="As large or larger: 4TB.")
@click.option("--max-capacity", metavar="SIZE", help="As large or smaller.")
@click.option("--capacity", metavar="RANGE", help="Capacity: 1TB, 1TB.., ..40GB, 1..4TB.")
@click.option("--rpm", metavar="RANGE", help="Turns of the spindle a minute: 15000, 10000..")
@click.option(
    "--interface", metavar="KIND", type=Among(INTERFACES), help=f"How it is attached; a list: {', '.join(INTERFACES)}."
)
@click.option(
    "--vendor",
    metavar="NAME",
    type=Among(hs.drives.vendors),
    help='Its maker, in full or by initials; a list: seagate, "western digital", wd.',
)
@click.option(
    "--price", metavar="CLASS", type=Among(PRICES), help=f"What one cost, in dollars; a list: {', '.join(PRICES)}."
)
@click.option(
    "--prices", metavar="FILE.csv", type=SOURCE, help="Prices of your own, which go before those that headstack knows."
)
@click.option("--sort", metavar="KEY", type=Among(tuple(SORTS)), help=f"Order: {', '.join(SORTS)}; name otherwise.")
@click.option("--reverse", is_flag=True, help="The largest first.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@wide_option
def list_drives(as_json: bool, prices: str | None, **wanted: Any) -> None:
    """List the drives of the catalogue, or those that are as wanted.

    A RANGE is LOW..HIGH with both ends, LOW.. or ..HIGH; a capacity or a speed alone is taken to 1 %. A price is the
    newest that is known, of the day that the JSON names; drives whose price is not known have no class and are sorted
    last. A file of prices has the columns item, price, currency, date, confidence and source (headstack prices check).

    \b
    headstack drives list --kind ssd --since 2018 --interface nvme --min-capacity 4TB
    headstack drives list --rpm 10000.. --capacity 1..80GB --interface scsi,fc
    headstack drives list --vendor wd,seagate --sort capacity --reverse
    """
    ours = () if prices is None else hs.prices.read(prices)
    names = hs.drives.list(prices=ours, **wanted)
    if as_json:
        print(to_json([Drive.load(name).told(ours) for name in names]), end="")
    elif names:
        print_table(*listings.drives(names, ours))
    else:
        print(f"none of the {len(hs.drives.list())} drives is so")


@drives.command("show")
@click.argument("name", metavar="NAME|FILE.toml", type=DRIVE, help="A drive of the catalogue, or a file.")
@click.option("--json", "as_json", is_flag=True, help="Print the complete description as JSON.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the catalogue's file: a start for one of your own.")
@wide_option
def show_drive(name: str, as_json: bool, as_toml: bool) -> None:
    """Show a drive: every value with its source, or the rule that it is derived by.

    The letter before a source says how sure it is: A read in the named source, S stated by a study's document, M read
    at second hand or in part, B and C general knowledge of high and medium confidence, D an estimate, I inferred.
    """
    if as_toml:
        print(_native.drive_toml(name), end="")
        return
    drive = Drive.load(name)
    if as_json:
        print(to_json(drive.description), end="")
        return
    say(f"{drive.description['name']} ({_native.format_bytes(drive.capacity_bytes)})\n")
    rows = [[value["key"], value["value"], value["source"] or ""] for value in drive.stated]
    if not name.endswith(".toml"):
        dated = [price for price in hs.prices.known() if price.item == drive.name.partition("@")[0]]
        rows += [
            [
                "price",
                f"${price.usd:,g} in {price.date}, ${price.usd_per_gb(drive.capacity_bytes):.3g} a GB",
                f"{price.confidence} {price.source}",
            ]
            for price in sorted(dated, key=lambda price: price.until, reverse=True)
        ]
    rows += [[value["key"], value["value"], f"derived: {value['rule']}"] for value in drive.derived]
    print_table(SOURCES, rows)


@drives.command("import")
@click.argument("path", metavar="FILE", type=SOURCE, help="DiskSim's parameters.")
@click.option("-o", "--output", type=OUTPUT, metavar="FILE.toml", help="Write the drive there; printed otherwise.")
@click.option("--name", metavar="NAME", help="The drive to take, where the file describes several.")
@click.option("--unmapped", is_flag=True, help="List the parameters without a counterpart, and why they have none.")
def import_drive(path: str, output: str | None, name: str | None, unmapped: bool) -> None:
    """Import a drive from DiskSim's parameters (.parv or .diskspecs).

    Where the drive will behave otherwise than its file says, a warning on stderr says so. Most parameters without a
    counterpart in the model change nothing, or are left to the model's own rules: they are counted.
    """
    imported = import_disksim(path)
    if name in imported.refused:
        raise hs.InputError(imported.refused[name])
    found = [drive for drive in imported.drives if name in (None, drive.name)]
    if len(found) != 1:
        names = ", ".join(drive.name for drive in imported.drives) or "none"
        raise hs.InputError(f"{path}: name one of its drives with --name: {names}")
    drive = found[0]
    text = drive.to_toml()
    left_out = imported.unmapped[drive.name]
    if unmapped:
        for parameter in left_out:
            click.echo(f"headstack: no counterpart: {parameter}", err=True)
    elif left_out:
        click.echo(f"headstack: {len(left_out)} parameters have no counterpart (--unmapped lists them)", err=True)
    for other, error in imported.refused.items():
        click.echo(f"headstack: warning: {other} is left out: {error}", err=True)
    for warning in imported.warnings:
        click.echo(f"headstack: warning: {warning}", err=True)
    if output is None:
        print(text, end="")
    else:
        write_text(output, text)


drives.add_command(new_drive)


@click.group()
def workloads() -> None:
    """The workloads of the catalogue."""


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
@click.argument("name", metavar="NAME|FILE.toml", type=WORKLOAD, help="A workload of the catalogue, or a file.")
@click.option("--json", "as_json", is_flag=True, help="Print the complete workload as JSON.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the catalogue's file: a start for one of your own.")
@wide_option
def show_workload(name: str, as_json: bool, as_toml: bool) -> None:
    """Show a workload: its lines, and how its requests arrive."""
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
