"""``headstack sweep``."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import click

from headstack import signals
from headstack._native import InputError
from headstack.atomic_files import write_all
from headstack.cli.completing import DEMAND, EXECUTOR, FOLDER, SYSTEM
from headstack.cli.files import OUTPUT
from headstack.cli.output import print_table, progress, wide_option
from headstack.cli.runs import Command, Grouped
from headstack.cli.varying import option_of
from headstack.columns import Column, Figures, Words
from headstack.designs import SAMPLES
from headstack.options import OPTIONS

if TYPE_CHECKING:
    from headstack.sweeps import Plan, Sweep

EXIT_RUN = 3

SHOWN = (
    (Figures("IO/s", 0), "iops", "{:,.1f}"),
    (Figures("MB/s", 2), "mb_per_s", "{:,.2f}"),
    (Figures("mean\nms", 0), "mean_ms", "{:,.2f}"),
    (Figures("p99\nms", 1), "p99_ms", "{:,.2f}"),
    (Figures("busy\n%", 4), "utilisation_percent", "{:.0f}"),
    (Words("bottleneck", 3), "bottleneck", "{}"),
)


def options_of_runs(command: Command) -> Command:
    """The options of ``headstack run``, each with one value or several."""
    decorators = [option_of(option) for option in OPTIONS]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


@click.command(cls=Grouped)
@click.argument("system", type=SYSTEM, metavar="SYSTEM")
@click.option(
    "-w",
    "--workload",
    type=DEMAND,
    metavar="NAME|FILE.toml",
    help="A workload or scenario of the catalogue, or a file.",
)
@click.option(
    "--vary",
    multiple=True,
    metavar="FIELD=VALUES",
    help="A field of the system's or the workload's file, or an option: a,b,c or LOW..HIGH[:STEPS][:log].",
)
@click.option("--sample", type=click.Choice(SAMPLES), default="grid", help="Which points.  [default: grid]")
@click.option("--points", type=click.IntRange(1), metavar="N", help="How many, of random and sobol.")
@click.option("--best", metavar="COLUMN", help="Show those with the most of it.  [default: iops]")
@click.option("--min", "least", metavar="COLUMN", help="Show those with the least of it, such as mean_ms.")
@click.option("--top", type=click.IntRange(1), default=10, metavar="N", help="How many to show.  [default: 10]")
@click.option(
    "-o", "--output", type=OUTPUT, metavar="FILE.parquet|csv", help="Write the table, a row for each configuration."
)
@click.option(
    "--executor",
    default="local",
    metavar="local|dask://HOST:PORT",
    type=EXECUTOR,
    help="Who runs them.  [default: local]",
)
@click.option(
    "--store", metavar="DIR", type=FOLDER, help="Where what is finished is kept.  [default: ~/.cache/headstack/chunks]"
)
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@options_of_runs
def sweep(
    system: str,
    workload: str | None,
    vary: tuple[str, ...],
    sample: str,
    points: int | None,
    best: str | None,
    least: str | None,
    top: int,
    output: str | None,
    executor: str,
    store: str | None,
    quiet: bool,
    **given: Any,
) -> int:
    """Run one system at many points of a space of parameters.

    Any value of the system's or the workload's file can be varied, and any option of `headstack run`, which may also be
    given as such:

    \b
    headstack sweep cheetah-x15-36lp -w file-server --depth 16 --requests 10000 \\
        --vary spindle.speed=7200rpm,10000rpm,15000rpm --vary seek.read_average=3ms..9ms:4
    headstack sweep cheetah-x15-36lp -w file-server --sample sobol --points 1000 \\
        --vary seek.read_average=3ms..9ms --vary queue.depth=1..64:log -o sweep.parquet

    A configuration that is impossible is a row that says why. What is finished is kept: the same command goes on where
    it was interrupted. --seed is the seed of all runs, and of the sample.
    """
    from headstack.sweeps import Plan, carried_out

    if best is not None and least is not None:
        raise InputError("--best, --min: only one of them can be given")
    plan = Plan(system, workload, fields(vary, given), sample, points)
    plan.check_column(least or best or "iops")
    if output is not None and not output.endswith((".parquet", ".csv")):
        raise InputError(f"-o: {output}: the ending is unknown; allowed: .parquet, .csv")
    try:
        with progress(f"{len(plan):,} configurations", quiet) as show:
            swept = carried_out(plan, store, executor, show)
    except KeyboardInterrupt:
        click.echo("headstack: interrupted; what is finished is kept, the same command goes on from there", err=True)
        return signals.exit_code()
    order, rows = best_rows(swept, best, least, top)
    if output is not None:
        write_all([(output, swept.to_csv if output.endswith(".csv") else swept.to_parquet)])
    print_rows(plan, rows)
    impossible = f", {swept.impossible:,} of them impossible" if swept.impossible else ""
    print(f"\n{len(swept):,} configurations{impossible}; shown: {order}")
    for why, count in swept.reasons():
        print(f"impossible: {count:,}: {why}")
    for why, count in swept.reasons("failed"):
        click.echo(f"headstack: failed: {count:,}: {why}", err=True)
    for row in [] if not swept.failed else swept.rows("failed", limit=3):
        what = ", ".join(f"{column} {row[column]}" for column in plan.columns)
        click.echo(f"headstack: failed: {what}", err=True)
    return EXIT_RUN if swept.failed else 0


def fields(vary: tuple[str, ...], given: dict[str, Any]) -> dict[str, str]:
    """What is varied, by field."""
    found: dict[str, str] = {}
    for text in vary:
        field, separator, values = text.partition("=")
        if not separator or not field.strip():
            raise InputError(f"--vary {text}: write FIELD=VALUES, such as spindle.speed=7200rpm,10000rpm")
        if field.strip() in found:
            raise InputError(f"--vary {field.strip()}: given twice; list its values once")
        found[field.strip()] = values
    for name, values in given.items():
        if values is not None:
            if name in found:
                raise InputError(f"--vary {name}, --{name.replace('_', '-')}: only one of them can be given")
            found[name] = values
    if not found:
        raise InputError("nothing is varied; give --vary FIELD=VALUES")
    return found


def best_rows(swept: Sweep, best: str | None, least: str | None, top: int) -> tuple[str, list[dict[str, Any]]]:
    """The rows to show, and by what they are chosen."""
    if least is not None:
        return f"least {least}", swept.rows(least, limit=top)
    column = best or "iops"
    return f"most {column}", swept.rows(column, descending=True, limit=top)


def print_rows(plan: Plan, rows: list[dict[str, Any]]) -> None:
    """A row for each configuration: what was varied, where it differs, and the figures."""
    several = [
        (column, number)
        for column, number, axis in zip(plan.columns, plan.numeric, plan.design.axes, strict=True)
        if len(getattr(axis, "values", "..")) > 1
    ]
    columns = [Column(column.replace(".", "\n", 1), is_text=not number, rank=0) for column, number in several]

    def cell(value: Any, form: str) -> str:
        return "" if value is None else form.format(value)

    cells = [
        [cell(row[column], "{:g}" if number else "{}") for column, number in several]
        + [cell(row[name], form) for _, name, form in SHOWN]
        for row in rows
    ]
    print_table([*columns, *(column for column, _, _ in SHOWN)], cells)
