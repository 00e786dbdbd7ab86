"""`report_of`: the report of results, with saturation curves, percentiles, utilization, figures over time, streams and
provenance."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from headstack._native import version
from headstack.catalogue.scenario import Scenario
from headstack.io.counts import agreed, counted
from headstack.report.figures import (
    Axis,
    Bars,
    Cell,
    Figure,
    Grid,
    Lines,
    Provenance,
    Report,
    RunInputs,
    Section,
    Series,
    Table,
)
from headstack.report.looks import DASHES
from headstack.results.explorer_queries import request_of
from headstack.results.words import (
    describe_curves,
    describe_extremes,
    describe_percentiles,
    describe_range,
    headline,
    unit_of,
)

if TYPE_CHECKING:
    from headstack.results.columns import Shown
    from headstack.results.table import ResultTable, Row

THROUGHPUT, RESPONSE = Axis("Throughput (IOPS)"), Axis("Latency (ms)")
MEANS = "Lines: mean; thin lines: 99th percentile."
KNEE = "Ring: the knee; above it, 1 % more IOPS costs more than 1 % more latency."
BAND = "Bands: prediction intervals."
WHISKERS = "Error bars: prediction intervals."
PERCENTS = (0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 99.995, 99.999)
RUNS_MAX = 8
"""Maximum number of runs drawn in one figure; with more runs, one run represents each curve."""
BARS_MAX = 64
"""Maximum number of bars in a figure with one bar per member of a stream, such as the boot times of guests."""


def report_of(results: ResultTable) -> Report:
    """Returns all results as a report."""
    sections = [
        Section("Throughput and latency", "", [*_curves(results), runs_table(results)]),
        Section("Latency distribution", "", list(_percentiles(results))),
        Section("Utilization", "", list(_components(results))),
        Section("Over time", "", list(_intervals(results))),
        Section("Streams", "", list(_streams(results))),
        Section("Fidelity of the replays", "", list(_fidelity(results))),
    ]
    shown = [section for section in sections if section.figures]
    notes = [*results.flash_states, *results.notes]
    remarks = "\n\n".join([*(f"{note[:1].upper()}{note[1:]}." for note in notes), origin(results)])
    runs = provenance(results)
    requests = partial(requests_of, results)
    return Report(_title(results), "", _summary(results), shown, (), runs, version(), remarks=remarks, inputs=requests)


def requests_of(results: ResultTable) -> list[RunInputs]:
    """Returns the request that repeats each run."""
    return [request_of(row, results.whole(index)) for index, row in enumerate(results)]


def provenance(results: ResultTable) -> list[Provenance]:
    """Returns the provenance of each run, which is everything needed to repeat the run."""
    return [provenance_of(results.whole(index)) for index in range(len(results))]


def provenance_of(whole: Row) -> Provenance:
    """Returns the provenance of a run from its whole result."""
    described = {"system": whole["system"]["description"], "workload": whole["workload"]}
    return Provenance(
        system=whole["system"]["name"],
        workload=whole["workload"]["name"],
        seed=whole["seed"],
        version=whole["version"],
        description_hash=whole["system"]["hash"],
        description=json.dumps(described, ensure_ascii=False, separators=(",", ":")),
    )


def _title(results: ResultTable) -> str:
    """Returns the system and the workload if all runs share them, or else the number of runs."""
    alike = [results[0][key] for key in ("system", "workload") if len({row[key] for row in results}) == 1]
    return ", ".join(alike) or f"{len(results)} runs"


def _summary(results: ResultTable) -> str:
    """Returns the answer and its reservations: failed checks, lost data, saturated runs."""
    paragraphs = [headline(results), *(f"Failed check: {check}." for check in results.failed_checks())]
    paragraphs += [f"Run {n} lost data: {row['data_loss']}." for n, row in enumerate(results, 1) if row["data_loss"]]
    paragraphs += [
        f"Run {n} ended early: {row['ended_early']}." for n, row in enumerate(results, 1) if row["ended_early"]
    ]
    saturated = sum(row["saturated"] for row in results)
    if saturated:
        paragraphs.append(
            f"{saturated} of {counted(len(results), 'run')} cannot keep up with the offered rate: their latency "
            "grows with the length of the run."
        )
    return "\n\n".join(paragraphs)


# Saturation curves.


def saturation(results: ResultTable) -> Lines:
    """Draws mean latency over throughput: one curve for runs that differ only in load, ordered by load.

    Labels show the load of points of a closed loop; a ring marks the knee. Runs of a saturated open loop are left out,
    because their latency grows with the length of the run.
    """
    knees = {knee.curve: knee for knee in results.knees()}
    curves = _drawn(results)
    things = _things(results, {name: runs[0] for name, runs in curves.items()})
    series = [
        Series(
            name,
            [results[run]["iops"] for run in runs],
            [results[run]["mean_ms"] for run in runs],
            low=_ends(results, runs, "low"),
            high=_ends(results, runs, "high"),
            p99=[results[run]["p99_ms"] for run in runs],
            thing=things[name],
            labels=[f"{results.load(run):.4g}" for run in runs] if _is_closed(results) else (),
            mark=(knees[name].iops, knees[name].mean_ms) if name in knees else None,
            mark_at_most=name in knees and knees[name].at_first_point,
        )
        for name, runs in curves.items()
    ]
    load = "clients" if _has_clients(results, 0) else "queue depth"
    sentences = [MEANS, *([f"Numbers at points: {load}."] if _is_closed(results) else [])]
    sentences += [KNEE] if knees else []
    at_first = " and ".join(knee.curve for knee in knees.values() if knee.at_first_point)
    sentences += [f"{at_first}: the knee is at or before the first point."] * bool(at_first)
    left_out = len(results) - sum(map(len, curves.values()))
    sentences += [f"{left_out} saturated {agreed(left_out, 'run is', 'runs are')} not shown."] if left_out else []
    sentences += [BAND] if any(line.low for line in series) else []
    title = f"Latency over throughput{_common(results)}"
    note = " ".join([*sentences, origin(results)])
    return Lines("saturation", title, THROUGHPUT, RESPONSE, series, note, says=describe_curves(results, curves))


def _ends(results: ResultTable, runs: Iterable[int], end: str) -> list[float | None]:
    """Returns the lower or the upper bounds of the prediction intervals of a curve's points, in ms; empty if none has
    one."""
    ends = [results[run][f"mean_model_{end}_ms"] for run in runs]
    return ends if any(value is not None for value in ends) else []


def _things(results: ResultTable, runs: Mapping[str, int]) -> dict[str, str]:
    """Returns the owner of the colour of each run or curve: the system if there are several systems, each with no more
    curves than line styles; otherwise the curve."""
    systems = {name: str(results[run]["system"]) for name, run in runs.items()}
    counts = Counter(systems.values())
    shares_colours = len(counts) > 1 and max(counts.values()) <= DASHES
    return systems if shares_colours else {name: name for name in runs}


def _drawn(results: ResultTable) -> dict[str, list[int]]:
    """Returns the curves without saturated runs; a curve with only saturated runs keeps its runs."""
    curves = results.curves()
    unsaturated = {name: [run for run in runs if not results[run]["saturated"]] for name, runs in curves.items()}
    return {name: unsaturated[name] or runs for name, runs in curves.items()}


def _is_closed(results: ResultTable) -> bool:
    return results[0]["depth"] is not None


def _common(results: ResultTable) -> str:
    common = [results[0][key] for key in ("system", "workload") if len({row[key] for row in results}) == 1]
    return bool(common) * ": " + ", ".join(common)


def origin(results: ResultTable) -> str:
    """Returns a sentence with the origin of the figures: mode, version, requests and seeds."""
    modes = {results.whole(index)["mode"] for index in range(len(results))}
    seeds = ", ".join(dict.fromkeys(str(row["seed"]) for row in results))
    requests = min(row["requests"] for row in results)
    how = " and ".join(sorted(modes)).capitalize()
    first = results[0]
    return (
        f"{how} by headstack {first['version']}; at least {requests:,} requests per point; "
        f"seed {seeds} ({first['generator']})."
    )


def _curves(results: ResultTable) -> list[Figure]:
    curves = results.curves()
    if any(len(runs) > 1 for runs in curves.values()):
        return [saturation(results)]
    if len(curves) < 2:
        return []
    rows = {name: results[runs[0]] for name, runs in curves.items()}
    things = _things(results, {name: runs[0] for name, runs in curves.items()})
    return [
        Bars(name, title, axis, list(curves), _bars_of(rows, things, key, ends), note, says=says)
        for name, title, axis, key, ends in (
            ("throughput", "Throughput", THROUGHPUT, "iops", ("iops_model_low", "iops_model_high")),
            ("response", "Mean latency", RESPONSE, "mean_ms", ("mean_model_low_ms", "mean_model_high_ms")),
        )
        for says in [describe_extremes({curve: row[key] for curve, row in rows.items()}, unit_of(axis))]
        for note in ([WHISKERS if any(row[ends[0]] is not None for row in rows.values()) else ""])
    ]


def _bars_of(rows: Mapping[str, Row], things: Mapping[str, str], key: str, ends: tuple[str, str]) -> list[Series]:
    """Returns a series for each colour, with a bar for each run of the colour and gaps for other runs."""

    def only(thing: str, column: str) -> list[float | None]:
        return [row[column] if things[name] == thing else None for name, row in rows.items()]

    return [
        Series(thing, (), only(thing, key), low=only(thing, ends[0]), high=only(thing, ends[1]))
        for thing in dict.fromkeys(things.values())
    ]


def runs_table(results: ResultTable) -> Table:
    """Returns the printed table of results, with exact figures behind the texts."""
    columns, texts = results.shown()
    rows = [[_cell(row[column.name]) for column in columns] for row in results.compared()]
    return Table("runs", "Runs", [_heading(column) for column in columns], rows, texts=texts)


def _heading(column: Shown) -> str:
    return " ".join(column.heading.split()) or column.name


def _cell(value: Any) -> Cell:
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


# Runs one by one.


def _chosen(results: ResultTable) -> tuple[dict[str, int], str]:
    """Returns the runs to draw one by one, by name, and a note on how they were chosen."""
    curves = results.curves()
    if len(results) <= RUNS_MAX:
        named = {_named(results, name, run, len(curves)): run for name, runs in curves.items() for run in runs}
        if len(named) == len(results):
            return named, ""
    knees = {knee.curve: knee.load for knee in results.knees()}
    at_knee = {
        name: min(runs, key=lambda run: abs(results.load(run) - knees[name])) if name in knees else runs[-1]
        for name, runs in curves.items()
    }
    named = {_named(results, name, run, len(curves)): run for name, run in list(at_knee.items())[:RUNS_MAX]}
    left_out = len(curves) - len(named)
    rest = f" {left_out} more curves are not shown." * bool(left_out)
    return named, f"For each curve: the run nearest to its knee, or the heaviest load.{rest}"


def _has_clients(results: ResultTable, run: int) -> bool:
    """Whether the streams of a run are those of a scenario, not jobs of a job file or hosts."""
    return bool(results.streams_of(run)) and isinstance(results.workload(run), Scenario)


def _named(results: ResultTable, curve: str, run: int, curves: int) -> str:
    row = results[run]
    load = ""
    if row["depth"] is not None:
        load = f"{row['depth']} clients" if _has_clients(results, run) else f"depth {row['depth']}"
    if row["rate_per_s"] is not None:
        load = f"{row['rate_per_s']:.4g} IOPS offered"
    return ", ".join(part for part in (curve if curves > 1 or not load else "", load) if part)


def _percentiles(results: ResultTable) -> Iterable[Figure]:
    chosen, note = _chosen(results)
    things = _things(results, chosen)
    series = []
    for name, run in chosen.items():
        count = results[run]["requests"]
        # A percentile needs at least ten requests above it; otherwise it merely repeats the maximum.
        percents = [p for p in PERCENTS if count * (1 - p / 100) >= 10]
        points = [(p, results.percentile_ms(run, p)) for p in (*percents, 100)]
        if points[-1][1] is not None:
            series.append(Series(name, [p for p, _ in points], [ms for _, ms in points], thing=things[name]))
    if series:
        axes = Axis("Percentile (%)"), RESPONSE
        title = f"Latency by percentile{_common(results)}"
        percentiles = {line.name: {x: y for x, y in zip(line.x, line.y, strict=True) if x and y} for line in series}
        says = describe_percentiles(percentiles)
        yield Lines("percentiles", title, *axes, series, note, x_is_percentile=True, says=says)


def _components(results: ResultTable) -> Iterable[Figure]:
    """Draws the utilization of each component; among drives with equal roles, only the busiest."""
    chosen, note = _chosen(results)
    busy = {name: _busy_percent(results.whole(run)) for name, run in chosen.items()}
    rows = list(dict.fromkeys(component for shares in busy.values() for component in shares))
    if not rows:
        return
    values = [[shares.get(row) for shares in busy.values()] for row in rows]
    bottlenecks = [
        f"{name}: {results[run]['bottleneck']}" for name, run in chosen.items() if results[run]["bottleneck"]
    ]
    sentences = [note, f"Bottleneck: {'; '.join(bottlenecks)}." if bottlenecks else ""]
    text = " ".join(part for part in sentences if part)
    name, row, share = max(
        ((name, row, share) for name, shares in busy.items() for row, share in shares.items()), key=lambda cell: cell[2]
    )
    says = f"Highest utilization: {row}, {share:.0f} % ({name})."
    title = "Utilization of components"
    yield Grid("busy", title, rows, "component", list(busy), "run", values, "% utilization", note=text, says=says)


def _busy_percent(whole: Row) -> dict[str, float]:
    """Returns the utilization by component, in percent. ``d0 mechanism`` to ``d14 mechanism`` are one row with the
    value of the busiest, which limits the array."""
    alike: dict[str, dict[str, float]] = {}
    for component in whole["components"]:
        name, time_ns = component["name"], component["servers"] * whole["duration_ns"]
        general = re.sub(r"\d+( |$)", r"\1", name)
        alike.setdefault(general, {})[name] = 100 * component["busy_ns"] / time_ns if time_ns else 0.0
    return {
        next(iter(shares)) + f" and {len(shares) - 1} more: highest" * (len(shares) > 1): max(shares.values())
        for shares in alike.values()
    }


def _intervals(results: ResultTable) -> Iterable[Figure]:
    chosen, note = _chosen(results)
    intervals_by_run = {name: intervals for name, run in chosen.items() if (intervals := results.intervals_of(run))}
    if not intervals_by_run:
        return
    time, things = Axis("Time (s)", log=False), _things(results, {name: chosen[name] for name in intervals_by_run})
    for figure, title, axis, key in (
        ("rate-over-time", "Throughput over time", THROUGHPUT, "iops"),
        ("response-over-time", "Mean latency over time", RESPONSE, "mean_ms"),
    ):
        series = [
            Series(
                name,
                [part["start_s"] - intervals[0]["start_s"] + part["duration_s"] / 2 for part in intervals],
                [part[key] for part in intervals],
                thing=things[name],
            )
            for name, intervals in intervals_by_run.items()
        ]
        says = describe_range([y for line in series for y in line.y if y is not None], unit_of(axis))
        yield Lines(figure, title, time, axis, series, note, says=says)


# Scenarios and replays.


def _streams(results: ResultTable) -> Iterable[Figure]:
    columns, texts = results.shown_streams()
    if not texts:
        return
    rows: list[list[Cell]] = []
    for text in texts:
        run, system, *figures, facts = text
        # The table stores figures as numbers, not as text.
        rows.append([int(run), system, figures[0], *(_number(figure) for figure in figures[1:]), facts])
    yield Table("streams", "Streams", [_heading(column) for column in columns], rows)
    yield from _counted(results)


def _number(text: str) -> float | None:
    return float(text.replace(",", "")) if text else None


def _counted(results: ResultTable) -> Iterable[Figure]:
    """Draws figures of single members of streams, such as the boot time of each guest."""
    alike: dict[str, dict[str, dict[int, float]]] = {}
    chosen, note = _chosen(results)
    for name, run in chosen.items():
        for stream in results.streams_of(run):
            for fact, value in stream["facts"].items():
                numbered = re.fullmatch(r"(.*)_(\d+)_(.*)", fact)
                if numbered:
                    member, number, quantity = numbered.groups()
                    alike.setdefault(f"{member} {quantity}", {}).setdefault(name, {})[int(number)] = value
    for fact, runs in alike.items():
        numbers = sorted({number for values in runs.values() for number in values})
        if 1 < len(numbers) <= BARS_MAX:
            member, quantity = fact.split(" ", 1)
            words = quantity.removesuffix("_s").replace("_", " ")
            series = [Series(name, (), [values.get(number) for number in numbers]) for name, values in runs.items()]
            axis = Axis(
                f"{words.capitalize()} (s)" if quantity.endswith("_s") else quantity.replace("_", " ").capitalize()
            )
            title = f"{axis.label.split(' (')[0]} of each {member}"
            name = f"{member}-{quantity}".replace("_", "-")
            yield Bars(name, title, axis, [str(number) for number in numbers], series, note)


FIDELITY_TIMES = ("recorded_per_s", "rate_ratio", "lateness_p50_ms", "lateness_p99_ms", "lateness_max_ms")
FIDELITY = (*FIDELITY_TIMES, "causality_violations", "reordered", "folded", "dropped", "rounded", "without_completion")


def _fidelity(results: ResultTable) -> Iterable[Figure]:
    rows = [row for row in results if row["causality_violations"] is not None]
    if rows:
        columns = ["system", "mode", *(name.replace("_", " ") for name in FIDELITY)]
        cells = [[row["system"], row["mode"], *(row[name] for name in FIDELITY)] for row in rows]
        yield Table("fidelity", "Fidelity of each replay", columns, cells)
