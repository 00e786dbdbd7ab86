"""``headstack measure settings``: settings of programs from a measured device or a model."""

from __future__ import annotations

import sys
from typing import Any

import click

from headstack.cli.command import Brief
from headstack.cli.completing import SYSTEM, Among
from headstack.cli.formats import output_options
from headstack.cli.measure.measure import refuse_simulated
from headstack.cli.output import Outputs, print_notes_of, print_table, say, verbose_option, wide_option
from headstack.cli.simulate.runs import split_list
from headstack.cli.targets import access_of, exit_code_of_early_end, measurement_progress, permission_options
from headstack.io import signals
from headstack.io.columns import Figures, Names, Prose, Words, is_plain
from headstack.io.terminal import remark
from headstack.io.values import whole
from headstack.measurement.tests.settings import settings as deriving
from headstack.measurement.tests.settings.outcome import DeviceSettings, format_interval, format_value
from headstack.measurement.tests.settings.products.table import PRODUCTS
from headstack.measurement.tests.settings.properties import DESCRIBED, Property


@click.command(cls=Brief)
@click.argument(
    "target", type=SYSTEM, metavar="TARGET|SYSTEM", help="File, block device or export to measure, or a model."
)
@click.option(
    "--for",
    "products",
    required=True,
    metavar="ceph,...",
    type=Among(tuple(PRODUCTS)),
    help=f"Products: {', '.join(PRODUCTS)}.",
)
@click.option(
    "--time",
    metavar="TIME",
    default=deriving.TIME,
    show_default=True,
    help="Time of a cell, in all rounds together.",
)
@click.option(
    "--steady-time",
    metavar="TIME",
    default=deriving.STEADY_TIME,
    show_default=True,
    help="Time of a run of writes until no cache is left.",
)
@click.option("--rounds", metavar="N", default=str(deriving.ROUNDS), show_default=True, help="Rounds of the cells.")
@click.option("--range", metavar="RANGE", help="Address range to use, for example 36.7GB, 10GB..20GB or 0%..50%.")
@click.option(
    "--worn-in", is_flag=True, help="The device has no write cache to fill, or has been overwritten randomly."
)
@click.option("--read-p99", metavar="TIME", help="Limit of reads next to compactions of RocksDB, for example 2ms.")
@permission_options
@output_options(
    DeviceSettings,
    json="Write settings, properties and a row per run as JSON (- for stdout).",
    csv="Write a row per setting (- for stdout).",
    parquet="Write a row per setting as Parquet.",
)
@wide_option
@verbose_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@signals.held()
def settings(target: str, products: str, quiet: bool, **options: Any) -> int:
    """Derive settings of programs from a device or a model.

    \b
    headstack measure settings /dev/nvme0n1 --for ceph,zfs --destroy nvme0n1 --steady-time 30m
    headstack measure settings /var/lib/pg/test.bin --create 8GiB --for postgresql
    headstack measure settings 7450-pro-7680gb --for ceph,scylla,io.cost

    Prints the lines to paste, each with the figure behind it, its interval, the product's default and the source of the
    formula. Reads come first; writes need permission (--destroy, --overwrite or --create), otherwise settings that need
    them are not known. If TARGET is a catalogue name, a drive file or a calibrated model, nothing is measured and the
    figures are predicted.

    A rate of writes counts only if no SLC cache can still take them: run for longer (--steady-time), or state that the
    device is worn in (--worn-in). Otherwise the setting is not known, with an upper bound.
    """
    access = access_of(options)
    if target.startswith("/dev/"):
        refuse_simulated(target, access)
    outputs = Outputs(options, DeviceSettings)

    def announce(plan: str) -> None:
        remark(sys.stderr, f"headstack: {plan}", not is_plain(sys.stderr))

    with measurement_progress(quiet) as progress:
        result = deriving.settings(
            target,
            split_list(products),
            access,
            time=options["time"],
            steady_time=options["steady_time"],
            rounds=whole("rounds", options["rounds"]),
            range=options["range"],
            worn_in=options["worn_in"],
            read_p99=options["read_p99"],
            announce=None if quiet else announce,
            progress=progress,
        )
    outputs.write(result, lambda: print_settings(result))
    return exit_code_of_early_end(result.ended_early)


def print_settings(result: DeviceSettings) -> None:
    """Prints the answer, the settings, the properties, the lines to paste, and notes."""
    say(result.answer())
    print()
    rows = [
        [
            row["product"],
            row["setting"],
            row["value"] or "not known",
            _format_range(row["low"], row["high"], row["at_most"]),
            row["default"],
            row["formula"],
            row["confidence"],
            row["source"],
        ]
        for row in result.rows()
    ]
    columns = [Names("product"), Names("setting"), Figures("value", 0), Words("interval", 1), Words("default", 2)]
    columns += [Prose("formula", 3, least=20), Words("confidence\nin formula", 4), Prose("source", 5, least=16)]
    print_table(columns, rows)
    print()
    estimates = result.context.properties.estimates
    properties = [
        [
            DESCRIBED[prop].words,
            format_value(estimates[prop].value, DESCRIBED[prop].unit),
            format_interval(estimates[prop], DESCRIBED[prop].unit),
            estimates[prop].origin,
        ]
        for prop in Property
        if prop in estimates
    ]
    print_table([Names("property"), Figures("figure", 0), Words("interval", 0), Words("origin", 1)], properties)
    print()
    print(result.block())
    print()
    print_notes_of(result.remarks())


def _format_range(low: float | None, high: float | None, at_most: float | None) -> str:
    """Formats the interval of a setting's value."""
    if at_most is not None:
        return f"at most {_number(at_most)}"
    return "not known" if low is None or high is None else f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
