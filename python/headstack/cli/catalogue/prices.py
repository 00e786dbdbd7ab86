"""``headstack prices``."""

from __future__ import annotations

import csv
import datetime
import io
import re
from collections.abc import Sequence
from functools import partial

import click

from headstack._native import InputError
from headstack.catalogue.price_checks import Check, check
from headstack.catalogue.price_list import COLUMNS, OPTIONAL, Price, last_day, shipped_prices
from headstack.catalogue.prices import GROUPS, OLD_DAYS, PriceBook
from headstack.cli.completing import Among
from headstack.cli.files import SOURCE
from headstack.cli.formats import output_options
from headstack.cli.loading import Commands
from headstack.cli.output import Outputs, print_table, say, wide_option
from headstack.io.atomic_files import write_text
from headstack.io.columns import Figures, Names, Prose, Words

EXIT_WARNED = 1

on_option = click.option(
    "--on", metavar="DATE", help="Date of the prices, for example 2016, 2016-04 or 2016-04-25.  [default: today]"
)


@click.group(cls=Commands)
def prices() -> None:
    """List and check dated prices of hardware, power and volumes.

    \b
    headstack catalog prices list nearline
    headstack catalog prices check prices.csv
    """


@prices.command("check")
@click.argument("paths", metavar="FILE.csv...", nargs=-1, required=True, type=SOURCE, help="Price files (CSV).")
@on_option
@click.option(
    "--max-age",
    metavar="DAYS",
    default=f"{OLD_DAYS}d",
    show_default=True,
    help="Report older prices, for example 90d; flash prices after at most half a year.",
)
@click.option("--strict", is_flag=True, help="Exit with code 1 if anything is reported.")
@wide_option
def check_prices(paths: tuple[str, ...], on: str | None, max_age: str, strict: bool) -> int:
    """Check price files, and print questionable prices.

    \b
    headstack catalog prices check prices.csv
    headstack catalog prices check prices.csv quotes.csv --max-age 90d --strict

    Reported are unknown items, different prices of one item on one day, old and estimated prices, prices dated after
    the day, and currencies without an exchange rate. Unreadable rows are errors (exit code 2). To price a drive of
    your own, put its file NAME.toml next to the price file, or fill the column "kind".
    """
    days = _parse_days(max_age)
    checks = check(paths, _date_of(on), days)
    for file in checks:
        say(_format_summary(file))
    findings = [finding for file in checks for finding in file.findings]
    if findings:
        print()
        columns = [Names("where"), Words("item", 0), Words("what", 0), Prose("finding", 0)]
        print_table(
            columns,
            [[f"{finding.path}:{finding.line}", finding.item, finding.about, finding.text] for finding in findings],
        )
    for file in checks:
        for finding in file.findings:
            if finding.about == "no rate":
                raise InputError(f"{file.path}:{finding.line}: {finding.text}")
    return EXIT_WARNED if findings and strict else 0


@prices.command("list")
@click.argument(
    "items",
    metavar="[ITEM]...",
    nargs=-1,
    type=Among(lambda: [*GROUPS, *dict.fromkeys(price.item for price in shipped_prices())]),
    help=f"Items, kinds (nearline, ssd-nvme) or {', '.join(GROUPS)}.  [default: all items]",
)
@on_option
@click.option(
    "--prices", "paths", metavar="FILE.csv", type=SOURCE, multiple=True,
    help="Price file of your own, which overrides the shipped prices; may be repeated.",
)  # fmt: skip
@output_options(csv="Write a price file (- for stdout).")
@wide_option
def list_prices(items: tuple[str, ...], on: str | None, paths: tuple[str, ...], csv_path: str | None) -> None:
    """List prices on a date, or all known prices of some items.

    \b
    headstack catalog prices list --on 2012
    headstack catalog prices list nearline
    headstack catalog prices list flash --on 2016 --csv flash.csv

    Without ITEM: the valid price of each item on that date. With ITEM: every price up to the date, newest last; kinds
    and groups include the samples from which prices of their kind are estimated.
    """
    day = _date_of(on)
    book = PriceBook.load(paths or None, on=day)
    selected = _select_prices(book, items, day) if items else [*book]
    outputs = Outputs({"csv_path": csv_path}, {"csv": _write_csv})
    outputs.write(selected, partial(_print_prices, selected, day))


def _select_prices(book: PriceBook, items: Sequence[str], day: str) -> list[Price]:
    """Returns all prices of some items up to a day, by item and date."""
    last, chosen = last_day(day), set[str]()
    for name in items:
        item_names = book.items_of(name)
        if not item_names:
            raise InputError(f"{name}: no known price; allowed: an item, a kind, {', '.join(GROUPS)}")
        chosen |= item_names
    rows = (price for price in (*book.samples, *book.shipped, *book.ours) if price.item in chosen)
    return sorted((row for row in rows if row.since <= last), key=lambda row: (row.item, row.until))


def _print_prices(prices: Sequence[Price], day: str) -> None:
    if not prices:
        print(f"no price on or before {day}")
        return
    columns = [
        Names("item"),
        Figures("$", 0),
        Words("date", 0),
        Figures("days old", 2),
        Words("confidence", 1),
        Prose("source", 3),
        Prose("notes", 4),
    ]
    rows = [
        [
            price.item,
            f"{price.usd:,.6g}",
            price.date,
            f"{price.age_days(day):,}",
            price.confidence,
            *_source_and_notes(price),
        ]
        for price in prices
    ]
    print_table(columns, rows)


def _source_and_notes(price: Price) -> tuple[str, str]:
    stated = "" if price.stated is None else f"{price.stated:,g} {price.currency}"
    return price.source, "; ".join(filter(None, (stated, price.notes)))


def _write_csv(prices: Sequence[Price], path: object = None) -> str:
    """Writes prices in dollars as a price file."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*COLUMNS, *OPTIONAL])
    for price in prices:
        source, notes = _source_and_notes(price)
        capacity = "" if price.capacity_bytes is None else f"{price.capacity_bytes}B"
        row = [
            price.item,
            f"{price.usd:.12g}",
            "USD",
            price.date,
            price.confidence,
            source,
            notes,
            price.kind,
            capacity,
        ]
        table.writerow(row)
    if path is not None:
        write_text(str(path), text.getvalue())
    return text.getvalue()


def _format_summary(file: Check) -> str:
    if not file.rows:
        return f"{file.path}: no rows"
    summary = f"{file.path}: {_format_count(file.rows, 'row')}, {_format_count(file.items, 'item')}"
    summary += f", of {file.first}" + (f" to {file.last}" if file.last != file.first else "") if file.first else ""
    return f"{summary}, in {', '.join(file.currencies)}; {_format_count(len(file.findings), 'finding')}"


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _date_of(on: str | None) -> str:
    """Returns the date of ``--on``, or today without the option. No other function here reads the clock."""
    if on is None:
        return datetime.date.today().isoformat()
    last_day(on, "--on")
    return on


def _parse_days(text: str) -> int:
    match = re.fullmatch(r"(\d{1,6}) ?(d|days)?", text)
    if match is None:
        raise InputError(f"--max-age: {text!r} is not a number of days; write for example 365d")
    return int(match[1])
