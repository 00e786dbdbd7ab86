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
from headstack.cli.output import Outputs, print_table, say, wide_option
from headstack.io.atomic_files import write_text
from headstack.io.columns import Figures, Names, Prose, Words

EXIT_WARNED = 1

on_option = click.option(
    "--on", metavar="DATE", help="Date of the prices, for example 2016, 2016-04 or 2016-04-25.  [default: today]"
)


@click.group()
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
    days = _days(max_age)
    checks = check(paths, _day(on), days)
    for one in checks:
        say(_summary(one))
    findings = [finding for one in checks for finding in one.findings]
    if findings:
        print()
        columns = [Names("where"), Words("item", 0), Words("what", 0), Prose("finding", 0)]
        print_table(columns, [[f"{one.path}:{one.line}", one.item, one.about, one.text] for one in findings])
    for one in checks:
        for finding in one.findings:
            if finding.about == "no rate":
                raise InputError(f"{one.path}:{finding.line}: {finding.text}")
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
    day = _day(on)
    book = PriceBook.load(paths or None, on=day)
    found = _found(book, items, day) if items else [*book]
    outputs = Outputs({"csv_path": csv_path}, {"csv": _csv})
    outputs.write(found, partial(_print, found, day))


def _found(book: PriceBook, items: Sequence[str], day: str) -> list[Price]:
    """All prices of these up to a day, by item and date."""
    last, chosen = last_day(day), set[str]()
    for name in items:
        some = book.items_of(name)
        if not some:
            raise InputError(f"{name}: no known price; allowed: an item, a kind, {', '.join(GROUPS)}")
        chosen |= some
    rows = (price for price in (*book.samples, *book.shipped, *book.ours) if price.item in chosen)
    return sorted((row for row in rows if row.since <= last), key=lambda row: (row.item, row.until))


def _print(found: Sequence[Price], day: str) -> None:
    if not found:
        print(f"no price on or before {day}")
        return
    columns = [
        Names("item"),
        Figures("$", 0),
        Words("date", 0),
        Figures("days old", 2),
        Words("sure", 1),
        Prose("source", 3),
        Prose("notes", 4),
    ]
    rows = [
        [price.item, f"{price.usd:,.6g}", price.date, f"{price.age_days(day):,}", price.confidence, *_told(price)]
        for price in found
    ]
    print_table(columns, rows)


def _told(price: Price) -> tuple[str, str]:
    stated = "" if price.stated is None else f"{price.stated:,g} {price.currency}"
    return price.source, "; ".join(filter(None, (stated, price.notes)))


def _csv(found: Sequence[Price], path: object = None) -> str:
    """A file of prices, in dollars."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*COLUMNS, *OPTIONAL])
    for price in found:
        source, notes = _told(price)
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


def _summary(one: Check) -> str:
    if not one.rows:
        return f"{one.path}: no rows"
    told = f"{one.path}: {_count(one.rows, 'row')}, {_count(one.items, 'item')}"
    told += f", of {one.first}" + (f" to {one.last}" if one.last != one.first else "") if one.first else ""
    return f"{told}, in {', '.join(one.currencies)}; {_count(len(one.findings), 'finding')}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _day(on: str | None) -> str:
    """The day that is meant: the clock is looked at here alone."""
    if on is None:
        return datetime.date.today().isoformat()
    last_day(on, "--on")
    return on


def _days(text: str) -> int:
    found = re.fullmatch(r"(\d{1,6}) ?(d|days)?", text)
    if found is None:
        raise InputError(f"--max-age: {text!r} is not a number of days; write for example 365d")
    return int(found[1])
