"""``headstack validate``."""

from __future__ import annotations

from pathlib import Path

import click

from headstack._native import InputError
from headstack.cli.files import OUTPUT_FOLDER, SOURCE_FOLDER, check_folder
from headstack.cli.output import print_table, progress, wide_option
from headstack.comparison.validation import Validation
from headstack.comparison.validation import validate as replay
from headstack.io.atomic_files import write_all
from headstack.io.columns import Figures, Names
from headstack.io.tables import to_json
from headstack.io.values import percent

EXIT_LIMIT = 1
EXIT_INPUT = 2


@click.command()
@click.argument(
    "folder", metavar="DIR", type=SOURCE_FOLDER, help="Folder of measured traces with the parameters of their drives."
)
@click.option(
    "--dump", metavar="FOLDER", type=OUTPUT_FOLDER, help="Write the simulated latencies to NAME.txt: ms, one per line."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option("--limit", metavar="PERCENT", help="Exit with code 1 if a relative demerit exceeds this, for example 5%.")
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def validate(folder: str, dump: str | None, as_json: bool, limit: str | None, quiet: bool) -> int:
    """Replay measured traces, and print the simulation error.

    \b
    headstack lab validate traces/
    headstack lab validate traces/ --json

    DIR has files NAME.trace with NAME.parv or NAME.diskspecs (DiskSim's formats). The demerit is the root mean square
    horizontal distance between the measured and the simulated latency distributions (Ruemmler and Wilkes, 1994); the
    paired rms compares request by request. DiskSim's own figures are shown if DIR has them.
    """
    limit_share = None if limit is None else percent("--limit", limit) / 100
    dump_to = None if dump is None else Path(dump)
    if dump_to is not None:
        check_folder(dump_to)
    failures: list[InputError] = []
    with progress("replay", quiet) as show:
        scores = replay(folder, progress=show, failed=failures.append)
    if dump_to is not None:
        dump_to.mkdir(exist_ok=True)
        write_all((dump_to / f"{score.name}.txt", score.dump) for score in scores)
    if as_json:
        print(to_json([score.figures() for score in scores]), end="")
    elif scores:
        print_scores(scores)
    for failure in failures:
        click.echo(f"headstack: {failure}", err=True)
    missed = [s for s in scores if limit_share is not None and s.demerit_relative > limit_share]
    for score in missed:
        click.echo(f"headstack: {score.name}: demerit {score.demerit_relative:.2%} exceeds {limit}", err=True)
    if failures:
        return EXIT_INPUT
    return EXIT_LIMIT if missed else 0


def print_scores(scores: list[Validation]) -> None:
    """Prints one row per drive."""
    columns = [
        Names("drive"),
        Figures("requests", 3),
        Figures("measured\nms"),
        Figures("simulated\nms"),
        Figures("demerit\nms", 0),
        Figures("relative", 0),
        Figures("paired\nrms ms", 2),
        Figures("worst\npercentile", 4),
        Figures("DiskSim 4.0\nms"),
    ]
    rows = [
        [
            score.name,
            f"{score.requests:,}",
            f"{score.mean_measured_ms:.2f}",
            f"{score.mean_simulated_ms:.2f}",
            f"{score.demerit_ms:.4f}",
            f"{score.demerit_relative:.2%}",
            f"{score.paired_rms_ms:.4f}",
            f"p{score.worst_percentile:.4g}: {score.worst_percentile_error_ms:+.2f} ms",
            "" if score.published_ms is None else f"{score.published_ms:.4f}",
        ]
        for score in scores
    ]
    print_table(columns, rows)
