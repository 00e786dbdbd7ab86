"""``headstack trace cache``: what caches would make of a trace, as table, JSON, CSV, Parquet, picture and report."""

from __future__ import annotations

from typing import Unpack

import click

from headstack._native import format_bytes
from headstack.cli.command import Brief
from headstack.cli.completing import SYSTEM, Among
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, print_table, say, wide_option
from headstack.cli.traces.traces import SourceOptions, counting, opened, source_options
from headstack.io.columns import Figures, Names
from headstack.traces.cache_lab import OUTSIDE, POINTS, UNITS, USUAL, WRITES, CacheLab, caches, sample_of
from headstack.traces.cache_report import figure, share, size_told
from headstack.traces.cache_runs import POLICIES


class CacheOptions(SourceOptions):
    """Options of the command, as typed, without those of its outputs."""

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
    help=f"Of {', '.join(POLICIES)}.",
)
@click.option(
    "--size",
    metavar="LIST",
    help="Sizes: 1GiB, numbers of blocks or objects, ranges such as 1GiB..1TiB.  [default: from 1 % of what is touched "
    "to all]",
)
@click.option("--points", type=int, metavar="N", default=POINTS, show_default=True, help="Sizes of a range.")
@click.option("--block", metavar="SIZE", default="4KiB", show_default=True, help="Blocks that caches hold.")
@click.option(
    "--holds",
    metavar="|".join(UNITS),
    type=Among(UNITS),
    default=UNITS[0],
    show_default=True,
    help="What caches hold: blocks, whole requests by number, whole requests by bytes.",
)
@click.option(
    "--writes",
    metavar="|".join(WRITES),
    type=Among(WRITES),
    default=WRITES[0],
    show_default=True,
    help="What becomes of writes; see above.",
)
@click.option(
    "--dirty", metavar="SHARE", default="100%", show_default=True, help="back: what of the cache may be dirty."
)
@click.option(
    "--destage", metavar="SIZE", default="64KiB", show_default=True, help="back: most that is destaged at once."
)
@click.option(
    "--admit",
    metavar="all|second|SIZE|SHARE",
    type=Among(("all", "second")),
    default="all",
    show_default=True,
    help="What of misses is taken in.",
)
@click.option("--sample", metavar="SHARE", help="Estimate from samples of the blocks, such as 0.01.")
@click.option("--samples", type=int, metavar="N", default=8, show_default=True, help="Independent samples.")
@click.option("--seed", type=int, metavar="N", default=0, show_default=True, help="Which blocks samples hold.")
@click.option("--memory", metavar="SIZE", default="1GiB", show_default=True, help="What the lab may need.")
@click.option(
    "--behind", metavar="SYSTEM", type=SYSTEM, help="Replay what misses on this drive or array, in virtual time."
)
@click.option("--hit-time", metavar="TIME", default="100us", show_default=True, help="What a hit takes, with --behind.")
@click.option(
    "--outside",
    metavar="|".join(OUTSIDE),
    type=Among(OUTSIDE),
    default=OUTSIDE[0],
    show_default=True,
    help="What becomes of requests beyond the system behind.",
)
@output_options(
    CacheLab,
    json="Write every figure (- for stdout).",
    csv="Write the table as CSV (- for stdout).",
    plot="Draw misses over sizes.",
)
@wide_option
def cache(files: tuple[str, ...], quiet: bool, **given: Unpack[CacheOptions]) -> None:
    """Say how often caches would miss: many policies, many sizes, one reading.

    Writes are taken in and go through at once, or back when they leave; they go around, and update what is held; or the
    cache is read-only, and they throw it out. "belady" knows the future: no policy of blocks misses less.

    \b
    headstack trace cache fs.parquet --policy lru,arc,s3-fifo,belady --size 64MiB..8GiB --points 8
    headstack trace cache fs.parquet --writes back --dirty 20% --behind cheetah-x15-36lp --hit-time 50us
    """
    outputs = Outputs(given, CacheLab)
    found = looked_at(files, quiet, given)
    outputs.write(found, lambda: print_lab(found))


def looked_at(files: tuple[str, ...], quiet: bool, given: CacheOptions) -> CacheLab:
    """Simulates the caches that the options state."""
    trace = opened(files, given)
    with counting("cache", quiet) as show:
        return caches(
            trace,
            given["policy"],
            given["size"],
            holds=given["holds"],
            sample=sample_of(given["sample"]),
            outside=given["outside"],
            progress=show,
            points=given["points"],
            block=given["block"],
            writes=given["writes"],
            dirty=given["dirty"],
            destage=given["destage"],
            admit=given["admit"],
            samples=given["samples"],
            seed=given["seed"],
            memory=given["memory"],
            behind=given["behind"],
            hit_time=given["hit_time"],
        )


def print_lab(lab: CacheLab) -> None:
    """The table, and how its figures came about."""
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
            size_told(row),
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
