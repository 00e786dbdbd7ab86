"""`ResultTable`: results of runs as a table, with rows, curves, knees and limits."""

from __future__ import annotations

import html
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, overload

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.demand import stated
from headstack.catalogue.flash_state import flash_states
from headstack.io.columns import format_repr
from headstack.io.counts import agreed, counted
from headstack.io.tables import Tabular
from headstack.io.values import duration_ns
from headstack.results import answers
from headstack.results.answers import Drives, Gain
from headstack.results.intervals.conformal import format_levels
from headstack.results.reasons import NOT_STEADY

if TYPE_CHECKING:
    from headstack.catalogue.demand import Stated
    from headstack.results.integrity import Integrity
from headstack.results.columns import (
    SHOWN,
    SHOWN_OPERATIONS,
    SHOWN_STREAMS,
    Shown,
    format_capacity,
    format_ms,
    format_per_s,
    format_value,
)

Row = dict[str, Any]

WARM_UPS_MAX = 4
"""Maximum number of runs with a separate note on their warm-up."""


def _unsteady(row: Row) -> str:
    """Returns the text that replaces the confidence interval if a run is not in steady state; otherwise empty."""
    return "not steady" if row["sampling_code"] == NOT_STEADY else ""


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else format_ms(value)


def _between(low: float | None, high: float | None, factor: float = 1) -> str | None:
    """Formats a prediction interval; ``None`` without one."""
    if low is None or high is None:
        return None
    return " to ".join(f"{factor * end:,.0f}" if factor * end >= 1000 else f"{factor * end:.4g}" for end in (low, high))


def _duration_ns(stall: dict[str, int]) -> int:
    return stall["duration_ns"]


def described(facts: dict[str, float]) -> str:
    """Formats named figures for display; of numbered figures (``guest_1_boot_s``, ``guest_2_boot_s``), formats the
    mean."""
    alike: dict[str, list[float]] = {}
    for name, value in facts.items():
        alike.setdefault(re.sub(r"_\d+_", "_", name), []).append(value)
    return ", ".join(_fact(name, sum(values) / len(values), len(values)) for name, values in alike.items())


def between(row: Row, factor: float = 1) -> Row:
    """Formats the prediction interval of each figure; times in ms are multiplied by ``factor``."""
    intervals = {"iops_model": _between(row["iops_model_low"], row["iops_model_high"])}
    for figure in ("mean", "p50", "p99"):
        intervals[f"{figure}_model"] = _between(row[f"{figure}_model_low_ms"], row[f"{figure}_model_high_ms"], factor)
    return intervals


def _fact(name: str, value: float, count: int) -> str:
    words = name.replace("_", " ")
    mean = f" (mean of {count})" if count > 1 else ""
    if words.endswith(" per s"):
        return f"{format_per_s(value)} {words.removesuffix(' per s')}/s{mean}"
    if words.endswith(" bytes"):
        return f"{words} {_native.format_bytes(round(value))}{mean}"
    for unit in ("s", "ms", "us"):
        if words.endswith(f" {unit}"):
            return f"{words.removesuffix(unit)}{_figure(value)} {unit}{mean}"
    return f"{words} {_figure(value)}{mean}"


@dataclass(frozen=True)
class Knee:
    """The knee of a curve: the load at which 1 % more throughput costs 1 % more latency."""

    curve: str
    load: float
    """Queue depth or clients, or IOPS in an open loop."""
    iops: float
    mean_ms: float
    at_first_point: bool
    """Whether the knee is at or before the first point of the curve."""


@dataclass(frozen=True)
class WithinLimit:
    """The highest throughput of a curve within a latency limit."""

    iops: float
    is_at_least: bool
    """Whether ``iops`` is a lower bound, because even the heaviest load of the curve meets the limit."""


def response_limit(name: str, text: str) -> tuple[float | None, int]:
    """Parses a limit on the mean latency (``"20ms"``, ``"mean=20ms"``) or on a percentile (``"p99=20ms"``).

    Returns the quantile from 0 to 1, or ``None`` for the mean, and the limit in ns. Raises an ``InputError`` with the
    key ``name`` for any other text.
    """
    figure, equals, time = text.partition("=")
    if not equals:
        return None, duration_ns(name, text)
    if figure == "mean":
        return None, duration_ns(name, time)
    try:
        percentile = float(figure.removeprefix("p")) if figure.startswith("p") else math.nan
    except ValueError:
        percentile = math.nan
    if not 0 < percentile < 100:
        raise InputError(
            f"{text!r} is not a limit; use for example 20ms or mean=20ms (mean), p99=20ms or p99.9=50ms", key=name
        )
    return percentile / 100, duration_ns(name, time)


class ResultTable(Tabular):
    """Results as a table: rows, curves, knees and limits. ``Results`` adds pictures and files.

    duckdb, polars, pyarrow and pandas read the object itself as a table, without a copy.
    """

    def __init__(self, native: _native.Results, swept: Sequence[str] = ()) -> None:
        self._native = native
        self.volumes: Sequence[Mapping[str, Any]] = []
        """Rows of a replay with a map, one for each run and volume."""
        self._swept = [name for name in swept if name not in ("depth", "rate", "seed")]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Reads the results in a file written by ``to_json``. Raises ``InputError`` if the file cannot be read.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> _ = results.to_json("results.json")
        >>> len(hs.Results.read("results.json"))
        2
        """
        try:
            with open(path, encoding="utf-8") as file:
                return cls(_native.Results.from_json(file.read()))
        except (InputError, UnicodeDecodeError) as error:
            raise InputError(f"{os.fspath(path)}: {error}") from None

    def __len__(self) -> int:
        return len(self._native)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self._native[i] for i in range(*index.indices(len(self)))]
        return self._native[index]

    def __iter__(self) -> Iterator[Row]:
        return (self._native[index] for index in range(len(self)))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return format_repr(*self.shown(), f"runs: {len(self)}", "to_csv has them")

    fields = dict(_native.result_fields())["results"]
    """The columns of every table; columns of the varied options follow."""

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, with their units."""
        return self.table().column_names

    def table_rows(self) -> Iterable[Row]:
        """Returns a row for each run."""
        return self

    def table(self) -> _native.Table:
        """Returns the table, which any consumer of Arrow reads without a copy."""
        return self._native.table()

    def histograms(self) -> _native.Table:
        """Returns histograms of response and service times: a row for each run, kind of request, figure and bin in use.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.histograms().column_names
        ['run', 'system', 'kind', 'figure', 'middle_ms', 'count']
        """
        return self._native.histograms()

    def intervals(self) -> _native.Table:
        """Returns figures over time: a row for each run and interval, for runs with the option ``interval``.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, interval="500ms")
        >>> len(results.intervals()) > 1
        True
        """
        return self._native.intervals()

    def streams(self) -> _native.Table:
        """Returns the streams of scenarios: a row for each run and stream.

        >>> results = hs.run("cheetah-x15-36lp", "neds-record", time="2s", warm_up="0s")
        >>> len(results.streams()) == len(results.streams_of(0))
        True
        """
        return self._native.streams()

    def operations(self) -> _native.Table:
        """Returns operations on files and folders: a row for each run and kind.

        >>> results = hs.run("cheetah-x15-36lp", requests=100)
        >>> len(results.operations())
        0
        """
        return self._native.operations()

    def operations_of(self, index: int) -> list[Row]:
        """Returns the operations on files and folders of one run, by kind.

        >>> hs.run("cheetah-x15-36lp", requests=100).operations_of(0)
        []
        """
        return self._native.operations_of(index)

    def facts(self) -> _native.Table:
        """Returns the streams' own figures, such as dropped frames, with a row for each run, stream and figure.

        >>> results = hs.run("cheetah-x15-36lp", "neds-record", time="2s", warm_up="0s")
        >>> results.facts().column_names
        ['run', 'system', 'stream', 'name', 'value']
        """
        return self._native.facts()

    def streams_of(self, index: int) -> list[Row]:
        """Returns the streams of one run. ``facts`` contains the stream's own figures by name.

        >>> results = hs.run("cheetah-x15-36lp", "neds-record", time="2s", warm_up="0s")
        >>> {type(stream["facts"]) for stream in results.streams_of(0)}
        {<class 'dict'>}
        """
        return self._native.streams_of(index)

    def percentile_ms(self, index: int, percent: float) -> float | None:
        """Returns a percentile of one run's response times, in ms.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.percentile_ms(0, 50) <= results.percentile_ms(0, 99.9)
        True
        """
        return self._native.quantile_ms(index, percent / 100)

    @property
    def flash_states(self) -> list[str]:
        """The initial state of the SSDs of each simulated system: fresh, filled or steady.

        >>> hs.run("980-1tb", requests=100, warm_up=0).flash_states[0][:15]
        '980-1tb: filled'
        """
        states: dict[str, list[str]] = {}
        seen: set[tuple[Any, ...]] = set()
        for index, row in enumerate(self):
            key = (row["system"], row.get("state"), row.get("drive"))
            if key in seen:
                continue
            seen.add(key)
            whole = self.whole(index)
            descriptions = flash_states(whole["system"]["description"]) if whole["mode"] == "simulated" else []
            for state in descriptions:
                systems = states.setdefault(state, [])
                systems += [row["system"]] * (row["system"] not in systems)
        return [f"{', '.join(systems)}: {state}" for state, systems in states.items()]

    @property
    def notes(self) -> list[str]:
        """All notes on the runs: ``warnings``, then ``legend``."""
        return [*self.warnings, *self.legend]

    @property
    def warnings(self) -> list[str]:
        """Notes on the runs, without duplicates: first notes that require action, such as on failed requests, stalls
        and runs that are too short, then descriptions, such as the length of the warm-up."""
        own = [note for note in self._native.notes() if note not in _native.NOTES_OF_TAIL]
        return [
            *own,
            *self._stall_notes(),
            *self._sampling_notes(),
            *self._model_notes(),
            *self._native.method_notes(),
        ]

    @property
    def legend(self) -> list[str]:
        """Explanations of the columns, which are the same for all results with these columns.

        >>> hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=3000).legend[-1]
        '± is the 95 % confidence interval of the mean; it does not include the error of the model'
        """
        rows = list(self)
        legend = [note for note in self._native.notes() if note in _native.NOTES_OF_TAIL]
        capacities = {row["capacity_gb"] for row in rows}
        if "usable" in rows[0] and len(capacities) == 1:
            legend.append(f"capacity: {format_capacity(capacities.pop())} is usable in every run")
        if any(gain is not None for gain in self.gains()):
            times = "latency" if answers.is_of_arrivals(rows[0]) else "IOPS"
            compared = f"{times} compared with {self._first_system()} at the same load"
            legend.append(f"speedup: {compared}; ± is the 95 % confidence interval")
        if any(row["half_width_ms"] is not None for row in rows):
            legend.append("± is the 95 % confidence interval of the mean; it does not include the error of the model")
        return legend

    def _first_system(self) -> str:
        """The system that speedups are relative to, in words."""
        first = self[0]
        ours = [name for name in self._swept if name in answers.OF_SYSTEMS and len({row[name] for row in self}) > 1]
        several = len({row["system"] for row in self}) > 1 or not ours
        options = [f"{name.replace('_', ' ')} {first[name]}" for name in ours if name != "range"]
        return ", ".join([*([first["system"]] if several else []), *options])

    def _stall_notes(self) -> list[str]:
        """Notes on stalls of measured devices, with the latencies including and excluding the stalls."""
        notes = []
        for number, row in enumerate(self, 1):
            if not row["stalls"]:
                continue
            longest = max(self._native.whole(number - 1)["stalls"]["longest"], key=_duration_ns)
            times = "once" if row["stalls"] == 1 else f"{row['stalls']} times"
            calm = [(name, row[f"{name}_ms"], row[f"{name}_calm_ms"]) for name in ("mean", "p99", "p999")]
            compared = "; ".join(
                f"{name.replace('p999', 'p99.9')} {format_ms(value)} ms, {format_ms(other)} ms without"
                for name, value, other in calm
                if value is not None and other is not None
            )
            notes.append(
                f"run {number}: the device stalled {times}, for {row['stalled_s']:.3g} s in total; the longest stall "
                f"began at {longest['start_ns'] / 1e9:.3g} s and lasted {longest['duration_ns'] / 1e9:.3g} s with "
                f"{longest['queue_depth']:,} requests in flight; {compared}"
            )
        return notes

    def _sampling_notes(self) -> list[str]:
        """Notes on runs that are too short for a confidence interval, or not in steady state."""
        rows = list(self)
        notes = []
        reasons = Counter((row["sampling_code"], row["sampling"]) for row in rows if row["sampling"] is not None)
        notes += [
            f"{count} of {counted(len(rows), 'run')} {agreed(count, 'is', 'are')} {words}"
            if code == NOT_STEADY
            else f"no confidence interval for {count} of {counted(len(rows), 'mean')}: {words}"
            for (code, words), count in reasons.items()
        ]
        warm = [(number, row) for number, row in enumerate(rows, 1) if row["warm_up_requests"]]
        notes += [
            f"run {number}: not in steady state until request {row['warm_up_requests']:,} of {row['requests']:,} (use "
            f"--warm-up); then the mean is {format_ms(row['mean_low_ms'])} to {format_ms(row['mean_high_ms'])} ms"
            for number, row in warm[:WARM_UPS_MAX]
            if row["mean_low_ms"] is not None
        ]
        if len(warm) > WARM_UPS_MAX:
            more = len(warm) - WARM_UPS_MAX
            runs = f"{more} more {agreed(more, 'run was', 'runs were')}"
            notes.append(f"{runs} not in steady state either: see warm_up_requests in --csv or --json")
        return notes

    def _model_notes(self) -> list[str]:
        """Notes on the sources of the prediction intervals, and on systems that the intervals cannot distinguish."""
        rows = list(self)
        reasons = Counter(row["model_error"] for row in rows if row["model_error"] is not None)
        whose = {
            words: "" if count == len(rows) else f" of {count} of {len(rows)} runs" for words, count in reasons.items()
        }
        lines = [f"model error{whose[words]}: {words}" for words in reasons]
        return lines + answers.indistinguishable(rows, self._swept)

    def integrity(self, index: int) -> Integrity | None:
        """Returns the verification of the data that one run read, with blocks by class and the first findings.

        ``None`` if the run verified nothing.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.integrity(0) is None
        True
        """
        integrity: Integrity | None = self._native.whole(index)["integrity"]
        return integrity

    def failed_checks(self) -> list[str]:
        """Returns the internal checks that failed, with their runs; empty if all passed.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.failed_checks()
        []
        """
        return [
            f"run {index + 1} ({self[index]['system']}): {check}"
            for index in range(len(self))
            for check in self._native.failed_checks(index)
        ]

    def whole(self, index: int) -> Row:
        """Returns the whole result of one run, in the schema docs/results.schema.json.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.whole(0)["workload"]["name"]
        'file-server'
        """
        whole: Row = self._native.whole(index)
        return whole

    def workload(self, index: int) -> Stated:
        """Returns the workload of one run: a ``Workload``, a ``Scenario``, a ``Replayed`` trace, or a ``Phase`` of a
        job file.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0)
        >>> results.workload(0).name
        'file-server'
        """
        return stated(self.whole(index)["workload"])

    def intervals_of(self, index: int) -> list[Row]:
        """Returns the figures of one run over time, a row for each interval.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, interval="500ms")
        >>> results.intervals_of(0)[0]["duration_s"]
        0.5
        """
        return self._native.intervals_of(index)

    def demerit_ms(self, index: int, measured: ResultTable, measured_index: int) -> float | None:
        """Returns the demerit of one run as a prediction of another: the root mean square horizontal distance of their
        latency distributions, in ms (Ruemmler and Wilkes, 1994). ``None`` if a run has no distribution.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.demerit_ms(0, results, 0)
        0.0
        """
        return self._native.demerit_ms(index, measured._native, measured_index)

    def curves(self) -> dict[str, list[int]]:
        """Returns the runs that differ only in load, by the name of their curve, lightest load first.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.curves()
        {'cheetah-x15-36lp': [0, 1]}
        """
        varying = ["system", "workload", *self._swept]
        several = [name for name in varying if len({row[name] for row in self}) > 1] or ["system"]
        named: dict[str, list[int]] = {}
        for index, row in enumerate(self):
            parts = [str(row[n]) if n in ("system", "workload") else f"{n} {row[n]}" for n in several]
            named.setdefault(", ".join(parts), []).append(index)
        return {name: sorted(runs, key=self.load) for name, runs in named.items()}

    def load(self, index: int) -> float:
        """Returns the load of a run: queue depth or clients, or the offered IOPS in an open loop; 0 for a scenario with
        its own number of clients.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.load(1)
        4.0
        """
        row = self[index]
        return float(row["depth"] or row["rate_per_s"] or 0)

    def knees(self) -> list[Knee]:
        """Returns the knee of each curve that has one.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> [knee.curve for knee in results.knees()] in ([], ["cheetah-x15-36lp"])
        True
        """
        knees = ((name, self._native.knee(runs)) for name, runs in self.curves().items())
        return [Knee(name, **figures) for name, figures in knees if figures is not None]

    def iops_at(self, response: str) -> dict[str, WithinLimit | None]:
        """Returns the highest throughput of each curve within a latency limit: ``"25ms"`` for the mean, ``"p99=25ms"``
        for a percentile; ``None`` if the lightest load exceeds it.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.iops_at("1us")
        {'cheetah-x15-36lp': None}
        """
        quantile, limit_ns = response_limit("response", response)
        limits = {name: self._native.iops_at_response(runs, limit_ns, quantile) for name, runs in self.curves().items()}
        return {name: None if within is None else WithinLimit(*within) for name, within in limits.items()}

    def overloaded(self) -> list[str]:
        """Returns the runs that cannot keep up with the offered rate, in words.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.overloaded()
        []
        """
        return [
            f"{answers.named(row, self._swept)} {answers.load_of(row)}: it serves {row['iops']:,.0f}"
            for row in self
            if row["saturated"]
        ]

    def most_within(self, response: str) -> str:
        """Returns a sentence that names the curve with most IOPS within ``response``, without a confidence interval.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.most_within("1us")
        'no system meets the limit, the mean within 1us'
        """
        throughputs = self.iops_at(response).items()
        carried = {name: None if served is None else (served.iops, served.is_at_least) for name, served in throughputs}
        return answers.most_within(carried, response)

    def gains(self) -> list[Gain | None]:
        """Returns the speedup of each run over the first system at the same load: the ratio of IOPS in a closed loop,
        or of mean latencies if arrivals set the rate; ``None`` for the first system, or without a comparable run.

        Systems differ in name or in any option of arrays and drives. ± is the 95 % confidence interval, without the
        error of the model.

        >>> results = hs.run(["atlas-10k-iii-73", "cheetah-x15-36lp"], "file-server", requests=300, warm_up=0)
        >>> results.gains()[0] is None
        True
        """
        return answers.gains(list(self), self._swept)

    def within(self, response: str) -> list[str]:
        """Returns whether each run meets a limit such as ``"5ms"`` (mean) or ``"p99=20ms"``: ``yes``, ``no``, or
        ``close`` if the limit is within the confidence interval. Saturated runs do not meet it.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.within("10s")
        ['yes', 'yes']
        """
        quantile, limit_ns = response_limit("response", response)
        values = self._latencies_ms(quantile)
        return [answers.within(row, quantile, ms, limit_ns / 1e6) for row, ms in zip(self, values, strict=True)]

    def fewest_drives(self, response: str) -> list[Drives]:
        """Returns the number of drives that meets the limit ``response``, for each system and load, if ``drives``
        varies.

        >>> results = hs.run("va-7100", drives=[6, 8], requests=100, warm_up=0)
        >>> [answer.tried for answer in results.fewest_drives("10s")]
        [(6, 8)]
        """
        quantile, _ = response_limit("response", response)
        return answers.fewest_drives(list(self), self._swept, self._latencies_ms(quantile), self.within(response))

    def _latencies_ms(self, quantile: float | None) -> list[float]:
        """Returns the latency of each run for comparison with a limit: a quantile, or the mean for ``None``."""
        if quantile is None:
            return [row["mean_ms"] for row in self]
        return [self._native.quantile_ms(index, quantile) or math.nan for index in range(len(self))]

    def compared(self, limit: str | None = None) -> list[Row]:
        """Returns the rows, each with its ``speedup`` and its verdict ``within`` a limit. Leaves out capacities if all
        are equal.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> [row["within"] for row in results.compared("10s")]
        ['yes', 'yes']
        """
        verdicts = [None] * len(self) if limit is None else self.within(limit)
        rows = [
            row | between(row) | {"speedup": gain and str(gain), "within": verdict}
            for row, gain, verdict in zip(self, self.gains(), verdicts, strict=True)
        ]
        if len({row["capacity_gb"] for row in rows}) > 1:
            return rows
        return [row | {"capacity_gb": None} for row in rows]

    def shown(self, limit: str | None = None) -> tuple[list[Shown], list[list[str]]]:
        """Returns the columns worth printing, and the cells as text; ``limit`` is a latency limit as for ``within``.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> columns, cells = results.shown()
        >>> [column.heading for column in columns][:2], len(cells)
        (['system', 'depth'], 2)
        """
        # The system's name contains the range or LUN in use.
        swept = [name for name in self._swept if name not in ("range", "lun")]
        varying = ["system", *(["workload"] if len({row["workload"] for row in self}) > 1 else []), *swept]
        named = [Shown(n.replace("_", " "), name=n, format=format_value, is_text=True, rank=0) for n in varying]
        if len({row["seed"] for row in self}) > 1:
            named.append(Shown("seed", name="seed", format=format_value, rank=0))
        rows = self.compared(limit)
        shown = list(SHOWN)
        if all(row["mean_ms"] is not None and row["mean_ms"] < 1 for row in rows):
            shown = [column.in_microseconds() for column in SHOWN]
            rows = [row | between(row, 1000) for row in rows]
        shown = [column.at_levels(format_levels(row["model_level"] for row in rows)) for column in shown]
        cells = {c: [c.format(row[c.name]) for row in rows] for c in (*named, *shown)}
        for column in (column for column in shown if column.name == "half_width_ms"):
            cells[column] = [_unsteady(row) or cell for row, cell in zip(rows, cells[column], strict=True)]
        columns = [column for column in cells if not column.optional or any(cells[column])]
        return columns, [list(row) for row in zip(*(cells[c] for c in columns), strict=True)]

    def shown_streams(self) -> tuple[list[Shown], list[list[str]]]:
        """Like ``shown``, with a row for each stream of runs that have several streams or streams with their own
        figures.

        >>> results = hs.run("cheetah-x15-36lp", "neds-record", time="2s", warm_up="0s")
        >>> columns, cells = results.shown_streams()
        >>> [column.heading for column in columns][:3]
        ['run', 'system', 'stream']
        """
        rows = []
        for run in range(len(self)):
            streams = self.streams_of(run)
            if len(streams) > 1 or any(stream["facts"] for stream in streams):
                rows += [stream | {"run": run + 1, "facts": described(stream["facts"])} for stream in streams]
        return list(SHOWN_STREAMS), [[column.format(row[column.name]) for column in SHOWN_STREAMS] for row in rows]

    def shown_operations(self) -> tuple[list[Shown], list[list[str]]]:
        """Like ``shown``, with a row for each kind of operation on files and folders.

        >>> hs.run("cheetah-x15-36lp", requests=100).shown_operations()[1]
        []
        """
        rows = [row for run in range(len(self)) for row in self.operations_of(run)]
        return list(SHOWN_OPERATIONS), [
            [column.format(row[column.name]) for column in SHOWN_OPERATIONS] for row in rows
        ]

    def _repr_html_(self) -> str:
        columns, rows = self.shown()

        def cell(tag: str, column: Shown, text: str) -> str:
            side = "left" if column.is_text else "right"
            style = f"text-align:{side};padding:2px 10px;font-variant-numeric:tabular-nums"
            return f'<{tag} style="{style}">{html.escape(text)}</{tag}>'

        head = "".join(cell("th", column, column.heading) for column in columns)
        body = "".join(
            "<tr>" + "".join(cell("td", *pair) for pair in zip(columns, row, strict=True)) + "</tr>" for row in rows
        )
        return (
            '<table style="border-collapse:collapse"><thead style="border-bottom:1px solid currentColor">'
            f"<tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )
