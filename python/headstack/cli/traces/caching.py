"""``headstack trace cache``: simulates caches on a trace."""

from __future__ import annotations

from typing import Unpack

import click

from headstack._native import format_bytes
from headstack.cli.command import Brief
from headstack.cli.completing import SYSTEM, Among
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, print_table, say, wide_option
from headstack.cli.traces.traces import SourceOptions, open_trace, show_progress, source_options
from headstack.io.columns import Figures, Names
from headstack.traces.cache_lab import OUTSIDE, POINTS, UNITS, USUAL, WRITES, CacheLab, caches, sample_of
from headstack.traces.cache_report import figure, format_size, share
from headstack.traces.cache_runs import POLICIES


class CacheOptions(SourceOptions):
    """Options of the command, as typed, except output files."""

    policy: str
    size: str | None
    points: int
    block: str
    holds: str
    writes: str
    dirty: str
    destage: str
    admit: str
    sample: str | None
    samples: int
    seed: int
    memory: str
    behind: str | None
    hit_time: str
    outside: str


@click.command("cache", cls=Brief)
@source_options
@click.option(
    "--policy",
    metavar="LIST",
    type=Among(POLICIES),
    default=USUAL,
    show_default=True,
    help=f"Policies to compare, a list of {', '.join(POLICIES)}.",
)
@click.option(
    "--size",
    metavar="LIST",
    help="Cache sizes: 1GiB, a number of blocks or objects, or a range such as 1GiB..1TiB.  [default: 1 % to 100 % of "
    "the touched data]",
)
@click.option("--points", type=int, metavar="N", default=POINTS, show_default=True, help="Number of sizes in a range.")
@click.option("--block", metavar="SIZE", default="4KiB", show_default=True, help="Block size of the cache.")
@click.option(
    "--holds",
    metavar="|".join(UNITS),
    type=Among(UNITS),
    default=UNITS[0],
    show_default=True,
    help="Unit of the cache: blocks, whole requests by number, or whole requests by bytes.",
)
@click.option(
    "--writes",
    metavar="|".join(WRITES),
    type=Among(WRITES),
    default=WRITES[0],
    show_default=True,
    help="Write policy; see --help --all.",
)
@click.option(
    "--dirty",
    metavar="SHARE",
    default="100%",
    show_default=True,
    help="With --writes back: largest dirty share, for example 20%.",
)
@click.option(
    "--destage",
    metavar="SIZE",
    default="64KiB",
    show_default=True,
    help="With --writes back: most data to destage at once.",
)
@click.option(
    "--admit",
    metavar="all|second|SIZE|SHARE",
    type=Among(("all", "second")),
    default="all",
    show_default=True,
    help="Misses to admit into the cache.",
)
@click.option("--sample", metavar="SHARE", help="Estimate from a sample of the blocks, for example 0.01.")
@click.option("--samples", type=int, metavar="N", default=8, show_default=True, help="Number of independent samples.")
@click.option("--seed", type=int, metavar="N", default=0, show_default=True, help="Random seed of the samples.")
@click.option("--memory", metavar="SIZE", default="1GiB", show_default=True, help="Memory limit.")
@click.option(
    "--behind", metavar="SYSTEM", type=SYSTEM, help="Replay the misses on this drive or array, in virtual time."
)
@click.option(
    "--hit-time",
    metavar="TIME",
    default="100us",
    show_default=True,
    help="Latency of a hit, with --behind, for example 50us.",
)
@click.option(
    "--outside",
    metavar="|".join(OUTSIDE),
    type=Among(OUTSIDE),
    default=OUTSIDE[0],
    show_default=True,
    help="How to treat requests above the capacity of the system behind.",
)
@output_options(
    CacheLab,
    json="Write all figures as JSON (- for stdout).",
    csv="Write the table as CSV (- for stdout).",
    plot="Draw the miss ratio over cache size.",
)
@wide_option
def cache(files: tuple[str, ...], quiet: bool, **options: Unpack[CacheOptions]) -> None:
    """Print the miss ratio of cache policies and sizes.

    \b
    headstack trace cache fs.parquet --policy lru,arc,s3-fifo,belady --size 64MiB..8GiB --points 8
    headstack trace cache fs.parquet --writes back --dirty 20% --behind exos-x24-24tb --hit-time 50us

    Write policies: through (write to cache and system), back (write to the system on eviction), around (write to the
    system and update cached blocks), read-only (write to the system and invalidate cached blocks). "belady" knows the
    future: no policy of blocks misses less.
    """
    outputs = Outputs(options, CacheLab)
    lab = simulate_caches(files, quiet, options)
    outputs.write(lab, lambda: print_lab(lab))


def simulate_caches(files: tuple[str, ...], quiet: bool, options: CacheOptions) -> CacheLab:
    """Simulates the caches of the options."""
    trace = open_trace(files, options)
    with show_progress("cache", quiet) as show:
        return caches(
            trace,
            options["policy"],
            options["size"],
            holds=options["holds"],
            sample=sample_of(options["sample"]),
            outside=options["outside"],
            progress=show,
            points=options["points"],
            block=options["block"],
            writes=options["writes"],
            dirty=options["dirty"],
            destage=options["destage"],
            admit=options["admit"],
            samples=options["samples"],
            seed=options["seed"],
            memory=options["memory"],
            behind=options["behind"],
            hit_time=options["hit_time"],
        )


def print_lab(lab: CacheLab) -> None:
    """Prints the table of miss ratios and remarks on the method."""
    rows = lab.rows
    is_sampled = rows[0]["miss_ratio_low"] is not None
    columns = [Names("policy"), Figures("cache", 0), Figures("misses\n%", 0)]
    columns += [Figures("from\n%", 1), Figures("to\n%", 1)] if is_sampled else []
    columns += [Figures("of reads\n%", 2), Figures("of writes\n%", 2)]
    columns += [
        Figures("back-end\nreads", 4),
        Figures("read", 3),
        Figures("back-end\nwrites", 4),
        Figures("written", 3),
    ]
    columns += [Figures("mean\nms", 1), Figures("p99\nms", 1)] if lab.times else []
    table = [
        [
            row["policy"],
            format_size(row),
            share(row["miss_ratio"]),
            *([share(row["miss_ratio_low"]), share(row["miss_ratio_high"])] if is_sampled else []),
            share(row["read_miss_ratio"]),
            share(row["write_miss_ratio"]),
            "" if row["back_reads"] is None else f"{row['back_reads']:,}",
            format_bytes(round(row["back_read_bytes"])),
            "" if row["back_writes"] is None else f"{row['back_writes']:,}",
            format_bytes(round(row["back_write_bytes"])),
            *([figure(row["mean_ms"]), figure(row["p99_ms"])] if lab.times else []),
        ]
        for row in rows
    ]
    print_table(columns, table)
    print()
    for remark in lab.remarks:
        say(remark)
