"""``headstack catalog drives new``: creates a drive file from a data sheet."""

from __future__ import annotations

import os
import sys
import tempfile

import click

import headstack as hs
from headstack.catalogue.drive import Drive
from headstack.catalogue.sheets import Line, Sheet, lines_of
from headstack.catalogue.sheets.labels import keys_of
from headstack.catalogue.sheets.sheet import format_remarks
from headstack.cli.files import OUTPUT, SOURCE
from headstack.io.atomic_files import write_text

PROMPTS = {
    "disk": (
        "Name",
        "Vendor",
        "Year of introduction",
        "Capacity, with its unit",
        "Interface, such as SATA 6Gb/s",
        "Spindle speed (RPM)",
        "Platters",
        "Average seek, read (ms)",
        "Max sustained transfer rate OD (MB/s)",
        "Cache (MB)",
        "Random read 4K QD16 (IOPS)",
        "Idle power (W)",
        "Active power (W)",
    ),
    "ssd": (
        "Name",
        "Vendor",
        "Year of introduction",
        "Capacity, with its unit",
        "Interface, such as PCIe 4.0 x4 NVMe",
        "NAND, such as 176-layer TLC",
        "Sequential read (MB/s)",
        "Sequential write (MB/s)",
        "Random read, 4K (IOPS)",
        "Random write, 4K (IOPS)",
        "Read latency (us)",
        "Write latency (us)",
        "Endurance (DWPD)",
    ),
}
"""Labels of data sheets to prompt for, by kind of drive."""


@click.command("new")
@click.option("--from", "sheet", type=SOURCE, metavar="SHEET", help="Data sheet as text, CSV or TOML (- for stdin).")
@click.option(
    "-o", "--output", type=OUTPUT, metavar="FILE.toml", help="Write the drive to this file.  [default: print it]"
)
@click.option(
    "--column",
    type=int,
    metavar="N",
    help="Column of the model, if the sheet has several, for example 2.",
)
@click.option("--source", metavar="TEXT", help="Source to record in the file: the sheet's title and number.")
def new_drive(sheet: str | None, output: str | None, column: int | None, source: str | None) -> None:
    """Create a drive file from a data sheet.

    \b
    headstack catalog drives new --from sheet.txt -o mine.toml
    headstack catalog drives new --from sheet.csv --column 2
    headstack catalog drives new

    SHEET is pasted text with a label and a value on each line (the labels that vendors use, or keys of drive files),
    CSV or TOML. Without --from, on a terminal, headstack prompts for each figure. A sheet looks like this:

    \b
    Capacity: 18TB
    Interface: SATA 6Gb/s
    Spindle Speed (RPM): 7200
    Max. Sustained Transfer Rate OD (MB/s): 270
    geometry.platters: 9

    The file quotes the line behind each value. Missing and contradictory figures are reported; missing ones are
    estimated, and marked so, where the class of drive allows it.
    """
    if sheet is not None:
        lines = lines_of(_text(sheet), _format_of(sheet), column)
        sheet_name = "the standard input" if sheet == "-" else os.path.basename(sheet)
    elif sys.stdin.isatty():
        lines, sheet_name = _prompt(), "as entered by the user"
    else:
        raise hs.InputError("--from: name a data sheet; headstack prompts for figures only on a terminal")
    if not lines:
        raise hs.InputError(f"{sheet}: no line has a label and a value, for example 'Capacity: 18TB'")
    drive_sheet = Sheet.of(lines)
    text = drive_sheet.to_toml(_source(source, sheet_name))
    for line in format_remarks(drive_sheet, drive_sheet.estimates()):
        click.echo(f"headstack: {line}", err=True)
    text = _checked(drive_sheet, text, _source(source, sheet_name))
    if output is None:
        print(text, end="")
    else:
        write_text(output, text)


def _text(sheet: str) -> str:
    if sheet == "-":
        return sys.stdin.read()
    try:
        with open(sheet, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        raise hs.InputError(f"{sheet}: cannot be read: {error.strerror}") from None


def _format_of(sheet: str) -> str:
    return os.path.splitext(sheet)[1].removeprefix(".").lower()


def _source(text: str | None, sheet_name: str) -> str:
    """Returns the source with a confidence grade, A unless the text states another."""
    if text is None:
        return f"A data sheet, {sheet_name}"
    return text if text[:2] in ("A ", "S ", "B ", "C ", "D ", "I ") else f"A {text}"


def _prompt() -> list[Line]:
    """Prompts for each figure on the terminal; an empty answer skips it."""
    kind = click.prompt("Kind of drive", type=click.Choice(tuple(PROMPTS)), err=True)
    lines: list[Line] = []
    for label in PROMPTS[kind]:
        while True:
            value = click.prompt(label, default="", show_default=False, err=True).strip()
            line = Line(len(lines) + 1, label.partition(", such")[0].partition(", with")[0], value)
            if not value or keys_of(line):
                break
            click.echo(f"{value!r} is not understood; enter a number with its unit, or nothing", err=True)
        if value:
            lines.append(line)
    return lines


def _checked(sheet: Sheet, text: str, source: str) -> str:
    """Loads the drive, so that errors in the sheet are reported now; returns its file with hints."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sheet.toml")
        write_text(path, text)
        try:
            drive = Drive.load(path)
        except hs.InputError as error:
            raise hs.InputError(
                f"the sheet does not describe a valid drive: {str(error).replace(f'{path}:', 'line ', 1)}"
            ) from None
    return sheet.to_toml(source, drive.derived)
