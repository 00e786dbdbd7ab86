"""Readers of the metrics of cloud volumes: CloudWatch, Azure Monitor and Google Cloud Monitoring, as JSON or CSV."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from headstack._native import InputError
from headstack.diagnosis.judging.sources.files import How, Row, opened
from headstack.diagnosis.judging.sources.times import Times
from headstack.diagnosis.judging.suspects.statements import Statement
from headstack.diagnosis.judging.suspects.thresholds import AT_LIMIT, BELOW_LIMIT
from headstack.diagnosis.judging.verdict import Suspect


class Meaning(Enum):
    """How a metric's value is read."""

    SUM = "a sum over the period"
    RATE = "a rate per second"
    MEAN = "a mean over the period"
    EXCEEDED = "whether a limit was exceeded"
    BALANCE = "the rest of burst credits in percent"
    USED_CREDITS = "the used share of burst credits in percent"
    CONSUMED = "the share of a limit in percent"
    LIMIT = "the limit of a rate"
    STALLED = "whether requests stood still"


class Metric(NamedTuple):
    """A metric of a provider."""

    meaning: Meaning
    column: str = ""
    """Column of observations; ``read_wait_s`` and ``write_wait_s`` are summed latencies, ``idle_s`` idle time."""
    unit: float = 1.0


SUM, RATE, MEAN = Meaning.SUM, Meaning.RATE, Meaning.MEAN
AMAZON: dict[str, Metric] = {
    "VolumeReadOps": Metric(SUM, "reads"),
    "VolumeWriteOps": Metric(SUM, "writes"),
    "VolumeReadBytes": Metric(SUM, "read_bytes"),
    "VolumeWriteBytes": Metric(SUM, "write_bytes"),
    "VolumeTotalReadTime": Metric(SUM, "read_wait_s"),
    "VolumeTotalWriteTime": Metric(SUM, "write_wait_s"),
    "VolumeIdleTime": Metric(SUM, "idle_s"),
    "VolumeQueueLength": Metric(MEAN, "in_flight"),
    "VolumeAvgReadLatency": Metric(MEAN, "read_latency_s", 1e-3),
    "VolumeAvgWriteLatency": Metric(MEAN, "write_latency_s", 1e-3),
    "VolumeIOPSExceededCheck": Metric(Meaning.EXCEEDED, "IOPS of the volume"),
    "VolumeThroughputExceededCheck": Metric(Meaning.EXCEEDED, "throughput of the volume"),
    "InstanceEBSIOPSExceededCheck": Metric(Meaning.EXCEEDED, "IOPS of the instance"),
    "InstanceEBSThroughputExceededCheck": Metric(Meaning.EXCEEDED, "throughput of the instance"),
    "VolumeStalledIOCheck": Metric(Meaning.STALLED),
    "BurstBalance": Metric(Meaning.BALANCE, "burst credits of the volume"),
    "EBSIOBalance%": Metric(Meaning.BALANCE, "IOPS credits of the instance"),
    "EBSByteBalance%": Metric(Meaning.BALANCE, "throughput credits of the instance"),
    "EBSReadOps": Metric(SUM, "reads"),
    "EBSWriteOps": Metric(SUM, "writes"),
    "EBSReadBytes": Metric(SUM, "read_bytes"),
    "EBSWriteBytes": Metric(SUM, "write_bytes"),
}
"""AWS/EBS and AWS/EC2, with sums over the period for counts (documentation of the namespaces)."""
AZURE: dict[str, Metric] = {
    "Read Operations/Sec": Metric(RATE, "reads"),
    "Write Operations/Sec": Metric(RATE, "writes"),
    "Read Bytes/sec": Metric(RATE, "read_bytes"),
    "Write Bytes/sec": Metric(RATE, "write_bytes"),
    "Latency": Metric(MEAN, "latency_s", 1e-3),
    "Queue Depth": Metric(MEAN, "in_flight"),
    "IOPS Consumed Percentage": Metric(Meaning.CONSUMED, "IOPS"),
    "Bandwidth Consumed Percentage": Metric(Meaning.CONSUMED, "throughput"),
    "Used Burst IO Credits Percentage": Metric(Meaning.USED_CREDITS, "IOPS credits"),
    "Used Burst BPS Credits Percentage": Metric(Meaning.USED_CREDITS, "throughput credits"),
    "Target IOPS": Metric(Meaning.LIMIT, "requests"),
    "IOPS limit": Metric(Meaning.LIMIT, "requests"),
    "Target Bandwidth": Metric(Meaning.LIMIT, "bytes"),
    "Bandwidth limit": Metric(Meaning.LIMIT, "bytes"),
}
"""Microsoft.Compute/virtualMachines, after the kind of disk, such as ``Data Disk`` or ``VM Uncached``."""
GOOGLE: dict[str, Metric] = {
    "max_read_ops_count": Metric(Meaning.MEAN),
    "max_write_ops_count": Metric(Meaning.MEAN),
    "throttled_read_ops_count": Metric(Meaning.EXCEEDED, "reads of the disk"),
    "throttled_write_ops_count": Metric(Meaning.EXCEEDED, "writes of the disk"),
    "throttled_read_bytes_count": Metric(Meaning.EXCEEDED, "read throughput of the disk"),
    "throttled_write_bytes_count": Metric(Meaning.EXCEEDED, "write throughput of the disk"),
    "read_ops_count": Metric(SUM, "reads"),
    "write_ops_count": Metric(SUM, "writes"),
    "read_bytes_count": Metric(SUM, "read_bytes"),
    "write_bytes_count": Metric(SUM, "write_bytes"),
    "average_io_latency": Metric(MEAN, "latency_s", 1e-6),
    "average_io_queue_depth": Metric(MEAN, "in_flight"),
}
"""compute.googleapis.com/instance/disk/, deltas over the period for counts."""
AZURE_NAME = re.compile(r"((?:Data|OS|Temp) Disk|VM (?:Un)?[Cc]ached) (.+)", re.IGNORECASE)
NAMES = re.compile(
    r"Volume(?:Read|Write)(?:Ops|Bytes)|VolumeTotal(?:Read|Write)Time|VolumeQueueLength|VolumeIdleTime|BurstBalance"
    r"|Volume\w+Check|EBS(?:IO|Byte)Balance|InstanceEBS\w+Check|EBS(?:Read|Write)(?:Ops|Bytes)"
    r"|(?:(?:Data|OS) Disk|VM (?:Un)?[Cc]ached) (?:Read|Write|Queue|Latency|IOPS|Bandwidth|Target|Used|Max)"
    r"|compute\.googleapis\.com/instance/disk|instance/disk/\w+"
)
UNNAMED = "volume"
"""Name of the volume of labels without one."""
VOLUME = re.compile(r"\bvol-[0-9a-f]{6,}")
STATISTICS = {Meaning.SUM: ("Sum", "Average"), Meaning.EXCEEDED: ("Maximum", "Sum", "Average")}
LEAST = ("Minimum", "Average", "Maximum", "Sum")
USUAL_S = 60.0
"""Period of these metrics, unless the times show another."""
OFTEN = 0.05
"""Share of periods from which a limit that was exceeded explains the trouble."""
EMPTY, LOW = 1.0, 10.0
"""Rest of burst credits in percent at which the base rate is in force, and that from which it soon will be."""
DISKS = "the operations, times and queue length of the same period"
SUMMED = "values of cloud metrics are means over {:g} s, which hide bursts of seconds"


@dataclass
class Points:
    """Values by disk, time and metric."""

    values: dict[str, dict[float, dict[str, float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )

    def add(self, label: str, time_s: float | None, value: float, disk: str = "") -> None:
        """Adds a value of the metric that a label names."""
        name, prefix = metric_of(label)
        if name:
            volume = VOLUME.search(label)
            self.values[disk or (volume[0] if volume else prefix or UNNAMED)][time_s or 0.0][name] = value

    def join(self) -> None:
        """Adds the metrics without a volume to the only volume that is named."""
        if len(self.values) == 2 and UNNAMED in self.values:
            unnamed = self.values.pop(UNNAMED)
            (named,) = self.values.values()
            for time_s, values in unnamed.items():
                named[time_s].update(values)


def metric_of(label: str) -> tuple[str, str]:
    """Returns the name of the metric in a label, and Azure's kind of disk; empty if there is none.

    >>> from headstack.diagnosis.judging.sources.cloud import metric_of
    >>> metric_of("vol-0123456789 VolumeReadOps"), metric_of("Data Disk IOPS Consumed Percentage (Max), vm1")
    (('VolumeReadOps', ''), ('IOPS Consumed Percentage', 'Data Disk'))
    """
    if match := AZURE_NAME.search(label):
        rest = match[2].lower()
        return next(((name, match[1]) for name in AZURE if rest.startswith(name.lower())), ("", ""))
    for name in (*AMAZON, *GOOGLE):
        if re.search(rf"(?<![A-Za-z_]){re.escape(name)}(?![A-Za-z_])", label):
            return name, ""
    return "", ""


METRICS = AMAZON | AZURE | GOOGLE


def rows(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields the rows of volumes, and notes what their metrics state of limits."""
    times, points = Times(how.zone), Points()
    for path in paths:
        with opened(path) as stream:
            text = stream.read()
        if text.lstrip()[:1] in ("{", "["):
            _json(text, path, times, points)
        else:
            _csv(text, times, points)
    times.note_zone(how.remarks)
    host = how.host or ""
    volume_rows = []
    points.join()
    for disk, of in points.values.items():
        period_s = _period(sorted(of), how)
        how.statements += statements_of(disk, [of[at] for at in sorted(of)], period_s)
        volume_rows += [Row(host, disk, at, period_s, figures) for at in of if (figures := _figures(of[at], period_s))]
    yield from sorted(volume_rows, key=lambda row: (row.start_s, row.disk))


def _period(times_s: list[float], how: How) -> float:
    gaps = [after - before for before, after in pairwise(times_s) if after > before]
    period_s = how.every_s or (median(gaps) if gaps else USUAL_S)
    how.remarks[SUMMED.format(period_s)] = 1
    return period_s


def _figures(values: Mapping[str, float], period_s: float) -> dict[str, float | None]:
    figures: dict[str, float | None] = {}
    for name, value in values.items():
        metric = METRICS[name]
        if metric.column and metric.meaning in (SUM, RATE, MEAN):
            figures[metric.column] = value * metric.unit * (period_s if metric.meaning is RATE else 1.0)
    if ("reads" in figures) != ("writes" in figures):
        # Metrics of only one kind are those of all requests that are known.
        figures["requests"] = figures.get("reads", figures.get("writes"))
        figures["bytes"] = figures.get("read_bytes", figures.get("write_bytes"))
    for kind in ("read", "write"):
        wait_s, count = figures.pop(f"{kind}_wait_s", None), figures.get(f"{kind}s")
        if wait_s is not None and count:
            figures[f"{kind}_latency_s"] = wait_s / count
    if (idle_s := figures.pop("idle_s", None)) is not None:
        figures["busy"] = min(1.0, max(0.0, 1.0 - idle_s / period_s))
    return figures


def statements_of(disk: str, periods: list[dict[str, float]], period_s: float) -> list[Statement]:
    """Returns what the metrics of a disk state of its limits."""
    stated = []
    for name in dict.fromkeys(name for period in periods for name in period):
        metric = METRICS[name]
        values = [period[name] for period in periods if name in period]
        weight, evidence, suspect = _judged(name, metric, values)
        if evidence:
            weights: dict[Suspect, float] = {suspect: weight}
            stated.append(Statement(disk, evidence, weights, False, "cloud metrics", DISKS))
    return stated + _of_stated_limits(disk, periods, period_s)


def _judged(name: str, metric: Metric, values: list[float]) -> tuple[float, str, Suspect]:
    """Returns weight, evidence and suspect of the values of a metric; an empty evidence for measured values."""
    of = f"of {len(values)} periods"
    match metric.meaning:
        case Meaning.EXCEEDED:
            count = sum(value > 0 for value in values)
            if not count:
                return -4.0, f"{name}: the {metric.column} never exceeded their limit in {len(values)} periods", "limit"
            weight = 6.0 if count / len(values) >= OFTEN else 2.0
            return weight, f"{name}: more than the {metric.column} was asked in {count} {of}", "limit"
        case Meaning.BALANCE:
            least = min(values)
            weight = 6.0 if least <= EMPTY else 2.0 if least <= LOW else -1.0
            return weight, f"{name}: {metric.column} fell to {least:.0f} %", "limit"
        case Meaning.USED_CREDITS:
            most = max(values)
            weight = 4.0 if most >= 100 - EMPTY else 1.0 if most >= 100 - LOW else 0.0
            return weight, f"{name}: {most:.0f} % of the {metric.column} were used", "limit"
        case Meaning.CONSUMED:
            count = sum(value >= 100 * AT_LIMIT for value in values)
            weight = 6.0 if count / len(values) >= OFTEN else 2.0 if count else -4.0 * (max(values) < 100 * BELOW_LIMIT)
            return (
                weight,
                f"{name}: at most {max(values):.0f} % of the {metric.column}, at the limit in {count} {of}",
                "limit",
            )
        case Meaning.STALLED:
            count = sum(value > 0 for value in values)
            return (3.5 if count else -1.0), f"{name}: requests stood still in {count} {of}", "device"
        case Meaning.SUM | Meaning.RATE | Meaning.MEAN | Meaning.LIMIT:
            return 0.0, "", "limit"


def _of_stated_limits(disk: str, periods: list[dict[str, float]], period_s: float) -> list[Statement]:
    """Compares the rates with limits among the metrics, the nearer of requests and bytes."""
    shares = []
    for period in periods:
        figures = _figures(period, period_s)
        for name, limit in period.items():
            if METRICS[name].meaning is not Meaning.LIMIT or limit <= 0:
                continue
            parts = ("reads", "writes") if METRICS[name].column == "requests" else ("read_bytes", "write_bytes")
            rate = sum(figures.get(part) or 0.0 for part in parts) / period_s
            if any(figures.get(part) is not None for part in parts):
                shares.append(
                    (rate / limit, f"{rate:,.0f} of {limit:,.0f} {'IOPS' if parts[0] == 'reads' else 'bytes/s'}")
                )
    if not shares:
        return []
    share, shown = max(shares)
    weights: dict[Suspect, float] = {"limit": 6.0} if share >= AT_LIMIT else {"limit": -8.0, "none": 1.0}
    if AT_LIMIT > share >= BELOW_LIMIT:
        weights = {}
    return [Statement(disk, f"{shown}: {share:.0%} of the limit", weights, False, "cloud metrics", DISKS)]


def _json(text: str, path: Path, times: Times, points: Points) -> None:
    decoder, rest = json.JSONDecoder(), text.strip()
    while rest:
        try:
            document, end = decoder.raw_decode(rest)
        except json.JSONDecodeError as error:
            raise InputError(f"{path}: not valid JSON: {error}") from None
        rest = rest[end:].lstrip()
        for answer in document if isinstance(document, list) else [document]:
            try:
                _document(answer, times, points)
            except (AttributeError, TypeError, ValueError) as error:
                raise InputError(f"{path}: unlike the answers of the three clouds: {error}") from None


def _document(document: Mapping[str, Any], times: Times, points: Points) -> None:
    """Adds the values of a document of one of the three providers."""
    for result in document.get("MetricDataResults", []):
        for at, value in zip(result.get("Timestamps", []), result.get("Values", []), strict=False):
            points.add(f"{result.get('Label', '')} {result.get('Id', '')}", _time(at, times), float(value))
    for point in document.get("Datapoints", []):
        label = str(document.get("Label", ""))
        if (value := _statistic(label, point)) is not None:
            points.add(label, _time(point.get("Timestamp"), times), value)
    for metric in document.get("value", []):
        name = metric.get("name", {})
        label = name.get("value", "") if isinstance(name, dict) else str(name)
        for series in metric.get("timeseries", []):
            of = {m.get("name", {}).get("value", ""): m.get("value") for m in series.get("metadatavalues", [])}
            _, prefix = metric_of(label)
            lun = next((str(value) for key, value in of.items() if key.lower() == "lun"), "")
            for point in series.get("data", []):
                value = next(
                    (point[k] for k in ("average", "maximum", "total", "minimum") if point.get(k) is not None), None
                )
                if value is not None:
                    points.add(
                        label, _time(point.get("timeStamp"), times), float(value), f"{prefix} LUN {lun}" if lun else ""
                    )
    for series in document.get("timeSeries", []):
        metric = series.get("metric", {})
        disk = metric.get("labels", {}).get("device_name", "")
        for point in series.get("points", []):
            value = next(iter(point.get("value", {}).values()), None)
            if isinstance(value, int | float | str):
                points.add(
                    metric.get("type", ""), _time(point.get("interval", {}).get("endTime"), times), float(value), disk
                )


def _statistic(label: str, point: Mapping[str, Any]) -> float | None:
    """Returns the statistic of a data point that suits its metric."""
    name, _ = metric_of(label)
    meaning = METRICS[name].meaning if name else MEAN
    wanted = LEAST if meaning is Meaning.BALANCE else STATISTICS.get(meaning, ("Average", "Maximum", "Sum"))
    return next((float(point[key]) for key in wanted if point.get(key) is not None), None)


def _time(text: Any, times: Times) -> float | None:
    return times.read(str(text).replace(".000", "")) if text else None


def _csv(text: str, times: Times, points: Points) -> None:
    """Adds the values of a table: a column per metric, or a line per metric and value."""
    lines = [[cell.strip() for cell in line] for line in csv.reader(text.splitlines()) if any(line)]
    lines = lines if any(len(line) > 1 for line in lines) else [line[0].split("\t") for line in lines if line]
    names = [cell.lower() for cell in lines[0]] if lines else []
    if (metric := _place(names, "metric")) is not None and (value := _place(names, "value", "average")) is not None:
        at, disk = _place(names, "time"), _place(names, "disk", "volume", "lun")
        for line in lines[1:]:
            if (number := _number(line, value)) is not None and len(line) > metric:
                moment = None if at is None else _time(line[at], times)
                points.add(line[metric], moment, number, "" if disk is None else line[disk])
        return
    labels: list[str] = []
    for line in lines:
        time_s = _time(line[0], times)
        if time_s is None:
            labels = [f"{label} {cell}" for label, cell in zip([*labels, *[""] * len(line)], line, strict=False)]
            continue
        for at, label in enumerate(labels[1:], 1):
            if (number := _number(line, at)) is not None:
                points.add(label, time_s, number)


def _place(names: list[str], *words: str) -> int | None:
    return next((at for at, name in enumerate(names) if any(word in name for word in words)), None)


def _number(line: list[str], at: int) -> float | None:
    with suppress(ValueError, IndexError):
        return float(line[at].rstrip("%"))
    return None
