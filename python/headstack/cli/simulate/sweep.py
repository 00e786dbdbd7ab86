"""``headstack sweep``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import click

from headstack._native import InputError
from headstack.catalogue.options import OPTIONS, SYNCS
from headstack.cli.completing import DEMAND, EXECUTOR, FOLDER, systems_argument
from headstack.cli.files import OUTPUT, SOURCE
from headstack.cli.formats import output_options, report_writers
from headstack.cli.loading import with_subcommands
from headstack.cli.output import Outputs, print_notes_of, print_table, progress, say, verbose_option, wide_option
from headstack.cli.simulate.runs import Command, Grouped
from headstack.cli.simulate.varying import option_of
from headstack.io import signals
from headstack.io.atomic_files import write_all
from headstack.results.answers import overlap, whole
from headstack.results.table import between
from headstack.results.words import UNDECIDED
from headstack.simulation.designs import SAMPLES
from headstack.simulation.shards import Shard
from headstack.simulation.shards import merge as merged

if TYPE_CHECKING:
    from headstack.simulation.sweeps import Sweep

EXIT_RUN = 3


def run_options(command: Command) -> Command:
    """Adds the options of ``headstack run``, each of which takes one or several values."""
    decorators = [option_of(option) for option in OPTIONS if option.name not in SYNCS]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


@with_subcommands({"merge": "simulate.sweep"})
@click.command(cls=Grouped)
@systems_argument("Drives, arrays, cloud volumes or TOML files; NAME@RANGE uses a part.")
@click.option(
    "-w",
    "--workload",
    type=DEMAND,
    metavar="NAME|FILE.toml",
    help="Workload or scenario: a catalogue name or a file, for example oltp-8k.",
)
@click.option(
    "--vary",
    multiple=True,
    metavar="FIELD=VALUES",
    help="Parameter to vary: a field of the system's or workload's file, or an option; values a,b,c or "
    "LOW..HIGH[:STEPS][:log].",
)
@click.option(
    "--sample",
    type=click.Choice(SAMPLES),
    default="grid",
    help="How to choose points of the parameter space.  [default: grid]",
)
@click.option(
    "--points",
    type=click.IntRange(1),
    metavar="N",
    help="Number of points for --sample random or sobol, for example 1000.",
)
@click.option(
    "--shard",
    metavar="I/N",
    help="Run only part I of N, for example 2/8; -o writes it for `headstack sweep merge`.",
)
@click.option(
    "--where",
    metavar="CONDITION",
    help="SQL condition: show only configurations that meet it, for example 'p99_ms < 20'.",
)
@click.option("--best", metavar="COLUMN", help="Column to maximize.  [default: iops]")
@click.option("--min", "least", metavar="COLUMN", help="Column to minimize, for example mean_ms.")
@click.option(
    "--top", type=click.IntRange(1), default=10, metavar="N", help="Number of configurations to show.  [default: 10]"
)
@click.option(
    "-o", "--output", type=OUTPUT, metavar="FILE.parquet|csv", help="Write the table: one row for each configuration."
)
@output_options(plot="Draw the column of --best or --min over the varied parameters.", html=None, markdown=None)
@click.option(
    "--executor",
    default="local",
    metavar="local|dask://HOST:PORT",
    type=EXECUTOR,
    help="Where to run: local, or a Dask cluster.  [default: local]",
)
@click.option(
    "--store", metavar="DIR", type=FOLDER, help="Folder of finished runs.  [default: ~/.cache/headstack/chunks]"
)
@wide_option
@verbose_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@run_options
def sweep(
    systems: tuple[str, ...],
    workload: str | None,
    vary: tuple[str, ...],
    sample: str,
    points: int | None,
    shard: str | None,
    where: str | None,
    best: str | None,
    least: str | None,
    top: int,
    output: str | None,
    plot_path: str | None,
    html_path: str | None,
    markdown_path: str | None,
    executor: str,
    store: str | None,
    quiet: bool,
    **options: Any,
) -> int:
    """Simulate systems over a parameter space, and print the best.

    \b
    headstack sweep exos-x24-24tb -w file-server --depth 1..64:7:log --where 'p99_ms < 200' --plot sweep.png
    headstack sweep md-raid6-12x16tb -w oltp-8k --drives 6..12:4 --depth 1,16 --min mean_ms
    headstack sweep exos-x24-24tb -w file-server --depth 16 --sample sobol --points 1000 \\
        --vary seek.read_average=3ms..9ms --vary queue.depth=1..64:log -o sweep.parquet

    Vary any field of the system's or workload's file, or any option of "headstack run". -o writes all configurations;
    an impossible one is a row with the reason. CONDITION is DuckDB SQL over the columns; quote names that contain
    dots: '"seek.read_average_ms" < 5'.

    Finished runs are kept: after an interruption, repeat the command to resume. --seed sets the seed of all runs and of
    the sample. To use several machines, run a shard on each and merge them:

    \b
    headstack sweep exos-x24-24tb -w file-server --depth 1..64:7:log --shard 1/2 -o 1.parquet
    headstack sweep exos-x24-24tb -w file-server --depth 1..64:7:log --shard 2/2 -o 2.parquet
    headstack sweep merge 1.parquet 2.parquet -o whole.parquet
    """
    from headstack.simulation.report import report_of  # start-up time
    from headstack.simulation.sweeps import run_plan  # start-up time
    from headstack.simulation.swept import Plan  # start-up time

    if best is not None and least is not None:
        raise InputError("--best, --min: give only one of them")
    part = None if shard is None else Shard.parse(shard)
    if part is not None and not (output or "").endswith(".parquet"):
        raise InputError("--shard: needs -o FILE.parquet for its part of the table")
    plan = Plan(systems, workload, varied_fields(vary, options), sample, points, part)
    column = least or best or "iops"
    plan.check_column(column)
    if where is not None:
        plan.check_where(where)
    if plot_path is not None and sample != "grid":
        raise InputError("--plot: needs a grid; remove --sample, or write the table with -o")
    paths = {"plot_path": plot_path, "html_path": html_path, "markdown_path": markdown_path}
    exports: dict[str, Callable[..., Any]] = {
        "plot": lambda swept, path: swept.plot(path, column, where),
        **report_writers(lambda swept: report_of(swept, column, least is None, where)),
    }
    outputs = Outputs(paths, exports)
    if output is not None:
        check_suffix(output)
    try:
        with progress(f"{len(plan):,} configurations", quiet) as show:
            swept = run_plan(plan, store, executor, show)
    except (KeyboardInterrupt, RuntimeError) as error:
        # DuckDB raises RuntimeError instead of the interrupt that ends a query.
        if isinstance(error, RuntimeError) and not signals.heard():
            raise
        click.echo("headstack: interrupted; finished runs are kept: repeat the command to resume", err=True)
        return signals.exit_code()
    if output is not None:
        written = swept.to_shard if part else swept.to_csv if output.endswith(".csv") else swept.to_parquet
        write_all([(output, written)])
    outputs.write(swept, partial(print_sweep, swept, column, least is None, top, where))
    return EXIT_RUN if swept.failed else 0


@click.command()
@click.argument(
    "shards",
    nargs=-1,
    required=True,
    type=SOURCE,
    metavar="SHARD.parquet...",
    help="All tables of `headstack sweep --shard`, in any order.",
)
@click.option("-o", "--output", type=OUTPUT, required=True, metavar="FILE.parquet|csv", help="Write the merged table.")
def merge(shards: tuple[str, ...], output: str) -> None:
    """Merge the shards of a sweep into one table.

    \b
    headstack sweep merge part-1.parquet part-2.parquet -o whole.parquet

    Name all shards of one `headstack sweep --shard`, in any order. Missing and duplicate shards are reported.
    """
    check_suffix(output)
    say(f"{merged(shards, output):,} configurations from {len(shards)} shards")


def check_suffix(output: str) -> None:
    """Raises ``InputError`` if the file name does not end with a table format."""
    if not output.endswith((".parquet", ".csv")):
        raise InputError(f"-o: {output}: unknown file format; the name must end with .parquet or .csv")


def print_sweep(swept: Sweep, column: str, descending: bool, top: int, where: str | None) -> None:
    """Prints the best configurations, and counts the impossible and failed ones."""
    from headstack.simulation.report import configuration_columns, headline  # start-up time

    rows = [row | between(row) for row in swept.rows_with_model_errors(column, descending, top, where)]
    if rows:
        say(f"{headline(swept, rows[0], column, descending, where)}\n")
        columns, cells = configuration_columns(swept, rows, column)
        print_table(list(columns.values()), cells)
        print()
    else:
        reason = f"no configuration meets {where}" if where else "no configuration has a result"
        say(f"{UNDECIDED}: {reason}\n")
    impossible = f", {swept.impossible:,} of them impossible" if swept.impossible else ""
    fulfilling = "" if where is None else f", {len(swept.rows(where=where)):,} where {where}"
    say(f"{len(swept):,} configurations{impossible}{fulfilling}; shown: {'most' if descending else 'least'} {column}")
    alike = {row["system"] for row in rows if whole(row) != whole(rows[0]) and overlap(rows[0], row)}
    notes = [*swept.notes]
    if alike:
        notes.insert(
            0, f"indistinguishable from the first: {', '.join(sorted(alike))}: their prediction intervals overlap"
        )
    notes += [f"model error: {words}" for words in dict.fromkeys(row["model_error"] for row in rows) if words]
    print_notes_of(notes)
    for why, count in swept.reasons():
        say(f"impossible: {count:,}: {why}")
    for why, count in swept.reasons("failed"):
        click.echo(f"headstack: failed: {count:,}: {why}", err=True)
    for row in [] if not swept.failed else swept.rows("failed", limit=3):
        parameters = ", ".join(f"{name} {row[name]}" for name in swept.varied)
        click.echo(f"headstack: failed: {parameters}", err=True)


def varied_fields(vary: tuple[str, ...], options: dict[str, Any]) -> dict[str, str]:
    """Returns the values of each varied field."""
    values_by_field: dict[str, str] = {}
    for text in vary:
        field, separator, values = text.partition("=")
        if not separator or not field.strip():
            raise InputError(f"--vary {text}: expected FIELD=VALUES, for example spindle.speed=7200rpm,10000rpm")
        if field.strip() in values_by_field:
            raise InputError(f"--vary {field.strip()}: given twice; put all values into one list")
        values_by_field[field.strip()] = values
    for name, values in options.items():
        if values is not None:
            if name in values_by_field:
                raise InputError(f"--vary {name}, --{name.replace('_', '-')}: give only one of them")
            values_by_field[name] = values
    if not values_by_field:
        raise InputError("nothing varies; add --vary FIELD=VALUES")
    return values_by_field
