"""The report of fio's results: throughput and latency by queue depth and jobs, distributions, logs over time, and a
comparison of folders."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headstack._native import version
from headstack.measurement.fio.logs import windowed
from headstack.report.figures import Axis, Bars, Figure, Grid, Lines, Report, Section, Series, Table

if TYPE_CHECKING:
    from headstack.measurement.fio.collection import Collection
    from headstack.measurement.fio.loads import Load
    from headstack.measurement.fio.logs import Log

LINES_MAX = 12
"""Maximum number of lines in a figure; more could not be distinguished."""
LOADS_MAX = 8
"""Maximum number of loads whose distributions are drawn; the first loads are used."""
MEASURES = {"iops": "IOPS", "bw": "Bandwidth", "lat": "Latency", "clat": "Completion latency", "slat": "Submission"}
SHOWN = (
    "folder",
    "jobname",
    "kind",
    "rw",
    "bs",
    "iodepth",
    "numjobs",
    "iops",
    "mb_per_s",
    "mean_ms",
    "p99_ms",
    "p999_ms",
)
WORDS = ("folder", "job", "kind", "rw", "bs", "depth", "jobs", "IOPS", "MB/s", "mean ms", "p99 ms", "p99.9 ms")


def report_of(collection: Collection) -> Report:
    """Returns all results as a report."""
    sections = [
        Section("Over depth and jobs", "", [figure for group in groups(collection.loads) for figure in _over(*group)]),
        Section("Side by side", "", list(_folder_bars(collection.loads))),
        Section("Distributions", "", list(_distributions(collection.loads))),
        Section("Over time", "", list(_courses(collection.logs))),
        Section("Results", "", [_table(collection.loads)] if collection.loads else []),
    ]
    shown = [section for section in sections if section.figures]
    bad = "".join(f"Could not be read and is left out: {file}.\n\n" for file in collection.bad)
    versions = sorted({load.row["version"] for load in collection.loads if load.row["version"]})
    origin = f", of {', '.join(versions)}" if versions else ""
    remarks = f"{bad}Figures are fio's own{origin}." if collection.loads else bad
    return Report(collection.name, "", collection.headline, shown, (), (), version(), remarks=remarks.strip())


def groups(loads: Iterable[Load]) -> list[tuple[str, list[Load]]]:
    """Returns groups of loads that differ only in queue depth and jobs, each with a name."""
    by: dict[str, list[Load]] = {}
    for load in loads:
        row = load.row
        mix = f" {row['rwmixread']} %" if row["rwmixread"] is not None else ""
        kind = f", {row['kind']}s" if row["rwmixread"] is not None and row["kind"] != "mixed" else ""
        name = f"{row['rw'] or row['jobname']}{mix} {row['bs'] or ''}".strip() + kind
        by.setdefault(f"{row['folder']}: {name}" if row["folder"] else name, []).append(load)
    return list(by.items())


def _slug(text: str) -> str:
    return "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in text.lower())


def _by_place(loads: Sequence[Load]) -> dict[tuple[int, int], Load]:
    """Returns the last run of each queue depth and number of jobs."""
    return {(load.row["iodepth"], load.row["numjobs"]): load for load in loads}


def _over(name: str, loads: Sequence[Load]) -> Iterable[Figure]:
    """Yields throughput and latency over queue depth: a line for each number of jobs, and a map if both vary."""
    by = _by_place(loads)
    depths, jobs = (sorted({place[n] for place in by}) for n in (0, 1))
    if len(by) < 2:
        return
    if len(depths) > 1 and len(jobs) > 1:
        for figure, unit in (("iops", "IOPS"), ("mean_ms", "ms")):
            values = [[by[depth, n].row[figure] if (depth, n) in by else None for depth in depths] for n in jobs]
            quantity = "IOPS" if figure == "iops" else "Mean latency"
            yield Grid(
                f"{figure.replace('_', '-')}-map-{_slug(name)}",
                f"{quantity} of {name}",
                [f"{n}" for n in jobs],
                "jobs",
                [f"{depth}" for depth in depths],
                "depth",
                values,
                unit,
                says=_most(by, "iops", "IOPS") if figure == "iops" else "",
            )
    # The parameter with more values is on the x axis.
    along, rest = (0, 1) if len(depths) >= len(jobs) else (1, 0)
    words = ("Depth of each job", "Jobs")
    for figure, axis in (("iops", Axis("IOPS")), ("mean_ms", Axis("Latency (ms)"))):
        series = []
        for other in sorted({place[rest] for place in by})[:LINES_MAX]:
            own = [(place[along], load.row) for place, load in sorted(by.items()) if place[rest] == other]
            label = f"{other} job{'s' * (other > 1)}" if rest == 1 else f"depth {other}"
            p99 = [row["p99_ms"] for _, row in own] if figure == "mean_ms" else []
            xs, ys = [place for place, _ in own], [row[figure] for _, row in own]
            series.append(Series(label, xs, ys, p99=p99 if any(p99) else ()))
        note = "Thin lines: the 99th percentile, if fio reports it." if figure == "mean_ms" else ""
        title = f"{'IOPS' if figure == 'iops' else 'Mean latency'} of {name}"
        x = Axis(words[along], log=True)
        says = _most(by, "iops", "IOPS") if figure == "iops" and min(len(depths), len(jobs)) == 1 else ""
        yield Lines(f"{figure.replace('_', '-')}-{_slug(name)}", title, x, axis, series, note=note, says=says)


def _most(by: dict[tuple[int, int], Load], figure: str, unit: str) -> str:
    (depth, jobs), load = max(by.items(), key=lambda entry: entry[1].row[figure])
    return f"The maximum is {load.row[figure]:,.0f} {unit}, at depth {depth} with {jobs} job{'s' * (jobs > 1)}."


def _folder_bars(loads: Sequence[Load]) -> Iterable[Bars]:
    """Yields figures that compare folders load by load. Error bars are the deviation between runs of a load."""
    folders = list(dict.fromkeys(load.row["folder"] for load in loads))
    names = list(dict.fromkeys(load.name for load in sorted(loads, key=_place)))
    if len(folders) < 2 or not names:
        return
    common = [name for name in names if len({load.row["folder"] for load in loads if load.name == name}) > 1]
    if not common:
        return
    shown = common[: 2 * LOADS_MAX]
    for figure, axis in (("iops", Axis("IOPS")), ("mean_ms", Axis("Latency (ms)"))):
        series = [
            _side(
                folder,
                [
                    [_figure_of(load, figure) for load in loads if (load.row["folder"], load.name) == (folder, name)]
                    for name in shown
                ],
            )
            for folder in folders[:LINES_MAX]
        ]
        quantity = "IOPS" if figure == "iops" else "Mean latency"
        rest = f" {len(common) - len(shown)} more loads are in the table." if len(common) > len(shown) else ""
        note = f"Error bars: one standard deviation, between runs if there are several, or of fio's samples.{rest}"
        yield Bars(f"beside-{figure.replace('_', '-')}", f"{quantity} of each folder", axis, shown, series, note=note)


def _place(load: Load) -> tuple[str, int, int]:
    return load.name.partition(", depth")[0], load.row["numjobs"], load.row["iodepth"]


def _figure_of(load: Load, figure: str) -> tuple[float, float | None]:
    return load.row[figure], load.row["iops_sd" if figure == "iops" else "sd_ms"]


def _side(folder: str, runs_by_load: Sequence[Sequence[tuple[float, float | None]]]) -> Series:
    """Returns the mean and the deviation over the runs of a folder."""
    means: list[float | None] = []
    deviations: list[float | None] = []
    for runs in runs_by_load:
        values = [value for value, _ in runs]
        mean = math.fsum(values) / len(values) if values else None
        means.append(mean)
        if mean is None:
            deviations.append(None)
        elif len(values) > 1:
            deviations.append(math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)))
        else:
            deviations.append(runs[0][1])
    low = [None if m is None or a is None else max(0.0, m - a) for m, a in zip(means, deviations, strict=True)]
    high = [None if m is None or a is None else m + a for m, a in zip(means, deviations, strict=True)]
    has_any = any(a is not None for a in deviations)
    return Series(folder, (), means, low=low if has_any else (), high=high if has_any else ())


def _distributions(loads: Sequence[Load]) -> Iterable[Figure]:
    """Yields percentiles, and shares of requests by latency."""
    many = len({load.row["folder"] for load in loads}) > 1

    def name(load: Load) -> str:
        return f"{load.row['folder']}: {load.name}" if many else load.name

    # Each load once, with its last run.
    chosen = list({name(load): load for load in loads}.items())[:LOADS_MAX]
    detailed = [(label, load) for label, load in chosen if load.latency.percentiles]
    if detailed:
        series = [
            Series(label, [p for p, _ in ordered], [ms for _, ms in ordered])
            for label, load in detailed
            for ordered in [sorted(load.latency.percentiles.items())]
        ]
        title = "Latency by percentile"
        yield Lines(
            "percentiles", title, Axis("Percentile"), Axis("Latency (ms)", log=True), series, x_is_percentile=True
        )
    # Reads and writes of a job share its buckets.
    jobs = list({tuple(load.shares.items()): (label, load) for label, load in reversed(chosen)}.values())[::-1]
    bounds = sorted({end for _, load in jobs for end, share in load.shares.items() if share})
    if bounds:
        series = [
            Series(label.replace(f" ({load.row['kind']}s)", ""), (), [load.shares.get(end, 0.0) for end in bounds])
            for label, load in jobs
        ]
        note = "Share of all requests of a job, reads and writes together, up to each bound, as fio counts them."
        groups = [_bound(end) for end in bounds]
        yield Bars("histogram", "Requests by latency", Axis("Share (%)", log=False), groups, series, note=note)


def _bound(end_ms: float) -> str:
    if math.isinf(end_ms):
        return "more"
    for unit, ms in (("ms", 1.0), ("µs", 1e-3), ("ns", 1e-6)):
        if end_ms >= ms * (1 - 1e-9):
            return f"{end_ms / ms:,.6g} {unit}"
    return f"{end_ms * 1e6:.6g} ns"


def _courses(logs: Sequence[Log]) -> Iterable[Lines]:
    """Yields each measure over time, a line for each job and direction."""
    for measure, quantity in MEASURES.items():
        own = [log for log in logs if log.measure == measure]
        series = []
        for log in own:
            for direction, entries in log.entries.items():
                points = windowed(entries)
                name = f"{log.name}{f' job {log.job}' if log.job else ''}, {direction}s"
                series.append(Series(name, [at for at, _ in points], [value for _, value in points]))
        if series:
            more = f" {len(series) - LINES_MAX} more lines are left out." if len(series) > LINES_MAX else ""
            note = f"Logs of more than 300 entries are drawn as means.{more}"
            axis = Axis(f"{quantity} ({own[0].unit})" if quantity != own[0].unit else quantity)
            title = f"{quantity} over time"
            yield Lines(f"log-{measure}", title, Axis("Time (s)", log=False), axis, series[:LINES_MAX], note=note)


def _table(loads: Sequence[Load]) -> Table:
    rows = [[load.row[name] for name in SHOWN] for load in loads]
    return Table("results", "Every result", WORDS, rows)
