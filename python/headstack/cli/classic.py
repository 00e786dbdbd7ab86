"""``headstack measure zones`` and the other classic tests: one command each, with a picture."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, TypeVar

import click

from headstack._native import InputError
from headstack.classic import zones as zones_test
from headstack.classic.outcome import Outcome
from headstack.cli.output import check_writable, print_table, write_all
from headstack.cli.runs import Command
from headstack.cli.targets import access_of, course, ending, permission_options
from headstack.measurement import Progress
from headstack.values import whole

T = TypeVar("T", bound=Outcome)

EXPORTS: dict[str, Callable[..., Any]] = {
    "json": lambda outcome, path=None: outcome.to_json(path),
    "csv": lambda outcome, path=None: outcome.to_csv(path),
    "parquet": lambda outcome, path: outcome.results.to_parquet(path),
    "plot": lambda outcome, path: outcome.plot(path),
}


def outputs(command: Command) -> Command:
    """What may be done to targets, and where the figures go."""
    decorators = [
        permission_options,
        click.option("--json", "json_path", metavar="FILE", help="Write figures and whole results (- for stdout)."),
        click.option("--csv", "csv_path", metavar="FILE", help="Write the figures as a table (- for stdout)."),
        click.option("--parquet", "parquet_path", metavar="FILE", help="Write the table of runs as Parquet."),
        click.option("--plot", "plot_path", metavar="FILE.png", help="Draw the picture."),
        click.option("-q", "--quiet", is_flag=True, help="No progress."),
    ]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


def carry_out(given: dict[str, Any], work: Callable[[Progress | None], T], show: Callable[[T], None]) -> T:
    """Does a test, writes what was asked for, and shows the rest."""
    files = {name: given.pop(f"{name}_path") for name in EXPORTS}
    files = {name: path for name, path in files.items() if path is not None}
    to_stdout = [name for name in ("json", "csv") if files.get(name) == "-"]
    if len(to_stdout) > 1:
        raise InputError("--json -, --csv -: only one of them can have stdout")
    for name in to_stdout:
        del files[name]
    check_writable(files.values())
    if "plot" in files:
        from headstack.plots import picture_format

        picture_format(files["plot"])
    with course(given.pop("quiet")) as tell:
        outcome = work(tell)
    write_all((path, partial(EXPORTS[name], outcome)) for name, path in files.items())
    for name in to_stdout:
        print(EXPORTS[name](outcome), end="")
    if not to_stdout:
        show(outcome)
        for note in outcome.results.notes:
            print(f"note: {note}")
    return outcome


@click.command()
@click.argument("systems", nargs=-1, required=True, metavar="TARGET|SYSTEM...")
@click.option("--positions", metavar="N", default="64", show_default=True, help="Places at which the rate is measured.")
@click.option("--size", metavar="SIZE", default="1MiB", show_default=True, help="Of sequential requests.")
@click.option("--depth", metavar="N", default="2", show_default=True, help="Sequential requests at a time.")
@click.option("--part", metavar="SIZE", default="32MiB", show_default=True, help="What is read at each place ...")
@click.option("--time", metavar="TIME", default="2s", show_default=True, help="... but no longer than this.")
@click.option("--accesses", metavar="N", default="500", show_default=True, help="Random accesses; 0 for none.")
@click.option("--access-size", metavar="SIZE", default="4KiB", show_default=True, help="Of random accesses.")
@click.option("--range", metavar="RANGE", help="Part of the system that is used: 36.7GB, 10GB..20GB or 0%..50%.")
@click.option("--write", is_flag=True, help="Write instead of reading; what is there is lost.")
@outputs
def zones(systems: tuple[str, ...], **given: Any) -> int:
    """Transfer rate and access time from the outer to the inner edge.

    The rate of sequential requests at evenly spread places, then the time of single random accesses over all of it, as
    hdtune shows them. On a disk the steps of its zones show where places are many enough (--positions 256).

    Beside files and block devices, SYSTEM may be a drive or an array of the catalogue: measured and simulated, side by
    side:

    \b
    headstack measure zones /dev/sdb constellation2-1tb --plot zones.png
    """
    access = access_of(given)
    options: dict[str, Any] = {name: whole(name, given.pop(name)) for name in ("positions", "depth", "accesses")}
    options |= {name: given.pop(name) for name in ("size", "part", "time", "access_size", "range", "write")}

    def work(tell: Progress | None) -> zones_test.Zones:
        return zones_test.zones(systems, access, **options, progress=tell)

    return ending(carry_out(given, work, show_zones).results)


def show_zones(test: zones_test.Zones) -> None:
    """Rates and access times of each system, then the zones that stand out."""
    found = [profile.figures() for profile in test.profiles]
    headings = ["system", "", "outer\nMB/s", "inner\nMB/s", "min\nMB/s", "mean\nMB/s", "max\nMB/s"]
    headings += ["outer\nMb/s", "inner\nMb/s", "access\nms", "p99\nms"]
    rows = []
    for one in found:
        rates = [one["mb_per_s"][name] for name in ("outer", "inner", "minimum", "mean", "maximum")]
        bits = [one["megabits_per_s"][name] for name in ("outer", "inner")]
        times = [one["access"][name] for name in ("mean_ms", "p99_ms")]
        cells = [*(figure(rate, ".1f") for rate in rates), *(figure(rate, ".0f") for rate in bits)]
        rows.append([one["system"], one["mode"], *cells, *(figure(time, ".3f") for time in times)])
    print_table(headings, rows, [True, True] + [False] * 9)
    steps = [
        [
            one["system"],
            str(number),
            f"{zone['start_bytes'] / 1e9:,.1f}",
            figure(zone["mb_per_s"], ".1f"),
            figure(8 * zone["mb_per_s"], ".0f"),
        ]
        for one in found
        for number, zone in enumerate(one["zones"])
    ]
    if steps:
        print("\nzones, where their steps are clear:")
        print_table(["system", "zone", "from\nGB", "MB/s", "Mb/s"], steps, [True] + [False] * 4)


def figure(value: float | None, form: str) -> str:
    """A figure for people; nothing where there is none."""
    return "" if value is None else f"{value:,{form}}"
