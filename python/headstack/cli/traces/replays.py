"""``headstack trace replay``."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any, cast

import click

from headstack._native import InputError, format_bytes, format_duration_ns
from headstack.cli.command import Brief
from headstack.cli.completing import MAP, Among, systems_argument
from headstack.cli.files import OUTPUT, SOURCE
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, print_results, print_table, say, verbose_option, wide_option
from headstack.cli.simulate.runs import Command, split_list
from headstack.cli.simulate.varying import option_of
from headstack.cli.targets import access_of, error_option, exit_code_of_runs, measurement_progress, one_thread_options
from headstack.cli.traces.traces import Decorator, SourceOptions, open_trace, reading_options, show_progress
from headstack.io import signals
from headstack.io.columns import Figures, Names
from headstack.io.counts import counted
from headstack.io.tables import to_csv
from headstack.io.values import whole
from headstack.measurement.playback import WRITES, Playback
from headstack.measurement.replays import ReplayRequest, replay_all
from headstack.results.results import Results
from headstack.traces.replays import FIELDS, MODES, OUTSIDE, SYSTEM_OPTIONS


def replay_options(command: Command) -> Command:
    """Adds the options of a replay, of its systems, and of outputs."""
    decorators: list[Decorator] = [
        click.argument("trace", type=SOURCE, metavar="TRACE", help="Trace file in any format."),
        systems_argument("Drives, arrays, files or block devices."),
        click.option(
            "-m",
            "--mode",
            default="timed",
            metavar="|".join(MODES),
            type=Among(MODES),
            help="When to issue requests; see --help --all.",
        ),
        click.option(
            "--depth", metavar="N", help="Queue depth of asap.  [default: most requests in flight in the trace]"
        ),
        click.option("--time-scale", default="1", metavar="N", help="Time factor of timed: 0.5 is twice as fast."),
        click.option(
            "--within",
            metavar="TIME",
            help="With dependent: wait for all requests that completed within this time before.  [default: those "
            "since the previous request]",
        ),
        click.option(
            "--outside",
            default="refuse",
            metavar="|".join(OUTSIDE),
            type=Among(OUTSIDE),
            help="How to treat requests above the capacity of the system.",
            show_default=True,
        ),
        click.option(
            "--map",
            type=MAP,
            metavar="MAP",
            help="Placement of volumes: stacked, round-robin, hashed, VOLUME=LUN@SIZE,... or a file of such "
            "lines; see --help --all.",
        ),
        click.option("--requests", metavar="N", help="Replay only the first requests."),
        click.option("--time", metavar="TIME", help="Replay only the first part of the trace, for example 10min."),
        click.option("--record", type=OUTPUT, metavar="FILE.parquet", help="Write the replayed requests as a trace."),
        click.option(
            "--writes",
            default="as-recorded",
            metavar="|".join(WRITES),
            type=Among(WRITES),
            help="How to treat writes on real systems.",
            show_default=True,
        ),
        click.option("--realtime", is_flag=True, help="On real systems, run with real-time priority."),
        one_thread_options,
        error_option,
        *reading_options(),
        *(option_of(option) for option in SYSTEM_OPTIONS),
        output_options(Results, json="Write the complete results as JSON (- for stdout)."),
        click.option(
            "--volumes",
            "volumes_path",
            type=OUTPUT,
            metavar="FILE",
            help="Write a CSV line for each volume of --map (- for stdout).",
        ),
        wide_option,
        verbose_option,
    ]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


@click.command(cls=Brief)
@replay_options
@signals.held()
def replay(trace: str, systems: tuple[str, ...], mode: str, depth: str | None, quiet: bool, **options: Any) -> int:
    """Replay a trace on simulated or real systems.

    \b
    headstack trace replay db.parquet 990-pro-2tb exos-x24-24tb
    headstack trace replay db.parquet aws-gp3-500 --mode timed,asap --json replay.json
    headstack trace replay db.parquet /dev/sdb --mode asap --destroy sdb

    \b
    timed      at the recorded times, even if the system falls behind
    asap       as fast as possible at a queue depth, in recorded order (RankDisk)
    closed     by clients with the recorded think times
    dependent  each request after the completion of those that it waited for

    Modes, queue depths and options of the systems take lists (--mode timed,asap); headstack replays all combinations.
    --step transforms the trace. A trace of several volumes needs --map: stacked one after the other, over the LUNs
    round-robin or hashed by name, or as given: hm.0=lun0,hm.1=lun1@100GB. The table then has a line for each volume.
    The fidelity of a replay shows its lateness, causality violations, and achieved over recorded rate.

    A file or block device is measured under the rules of "headstack measure": a trace that writes needs --destroy with
    the device's name or serial number, --overwrite for a file, or --writes skip. After Ctrl-C or a device failure the
    results up to then are kept.
    """
    values = {o.name: split_list(options[o.name]) for o in SYSTEM_OPTIONS if options[o.name] is not None}
    settings = {
        "depth": None if depth is None else split_list(depth),
        "requests": None if options["requests"] is None else whole("--requests", options["requests"]),
        **{name: options[name] for name in ("time_scale", "within", "outside", "time", "map")},
    }
    if options["volumes_path"] is not None and options["map"] is None:
        raise InputError("--volumes: needs --map")
    outputs = Outputs(options, Results, volumes=write_volumes_csv)
    playback = Playback(access_of(options), options["writes"], options["realtime"])
    request = ReplayRequest(
        open_trace((trace,), cast(SourceOptions, options)), systems, tuple(split_list(mode)), settings, values, playback
    )
    with show_progress("replay", quiet) as show, measurement_progress(quiet) as show_measurement:
        results = replay_all(request, options["record"], show, show_measurement)

    def print_all() -> None:
        print_results(results)
        print_fidelity(results)
        print_volumes(results)

    outputs.write(results, print_all)
    # With --faults, failed requests are expected.
    return exit_code_of_runs(results, options["continue_on_error"] or options["faults"] is not None)


def write_volumes_csv(results: Results, path: Path | None = None) -> str:
    """Writes one CSV row per replay and volume."""
    return to_csv([field.name for field in FIELDS], results.volumes, path)


def print_volumes(results: Results) -> None:
    """Prints one row per mapped volume."""
    if not results.volumes:
        return
    rows = [
        [
            row["system"],
            row["mode"],
            row["volume"],
            format_bytes(row["start_bytes"]),
            f"{row['requests']:,}",
            "" if row["iops"] is None else f"{row['iops']:,.1f}",
            "" if row["mean_ms"] is None else format_duration_ns(round(row["mean_ms"] * 1e6)),
            "" if row["p99_ms"] is None else format_duration_ns(round(row["p99_ms"] * 1e6)),
        ]
        for row in results.volumes
    ]
    say("\nvolumes")
    columns = [
        Names("system"),
        Names("mode"),
        Names("volume"),
        Figures("from", 3),
        Figures("requests", 2),
        Figures("IOPS", 0),
        Figures("mean", 0),
        Figures("p99", 1),
    ]
    print_table(columns, rows)
    for column, effect in (("folded", "wrapped into the volume"), ("dropped", "skipped")):
        total = sum(row[column] for row in results.volumes)
        if total:
            say(f"note: {counted(total, 'request')} above the end of a volume: {effect}")


def print_fidelity(results: Results) -> None:
    """Prints the fidelity of each replay: rate, queue depth, lateness and order compared with the trace."""
    rows = []
    for row in results:
        ratio = row["rate_ratio"]
        late = (format_duration_ns(round(row[f"lateness_{q}_ms"] * 1e6)) for q in ("p50", "p99", "max"))
        rows.append(
            [
                row["system"],
                f"{row['mode']}" + (f", depth {row['depth']}" if row["depth"] is not None else ""),
                "" if row["recorded_per_s"] is None else f"{row['recorded_per_s']:,.1f}",
                "" if ratio is None else f"{ratio:.4g}",
                "" if row["recorded_depth_mean"] is None else f"{row['recorded_depth_mean']:.4g}",
                f"{row['achieved_depth_mean']:.4g}",
                *late,
                f"{row['causality_violations']:,}",
                f"{row['reordered']:,}",
            ]
        )
    say("\nfidelity")
    columns = [
        Names("system"),
        Names("mode"),
        Figures("recorded\nIOPS", 3),
        Figures("achieved\n/ recorded", 0),
        Figures("in flight\nrecorded", 5),
        Figures("in flight\nachieved", 5),
        Figures("late\np50", 6),
        Figures("late\np99", 1),
        Figures("late\nmax", 2),
        Figures("before\ncause", 3),
        Figures("out of\norder", 4),
    ]
    print_table(columns, rows)
    for name, meaning in (
        ("folded", "requests above the capacity of the system were wrapped into it"),
        ("dropped", "requests above the capacity of the system were skipped"),
        ("rounded", "requests were widened to whole blocks of the system"),
        ("without_completion", "requests have no recorded completion"),
    ):
        largest = max(row[name] for row in results)
        if largest:
            say(f"note: {largest:,} {meaning}")
