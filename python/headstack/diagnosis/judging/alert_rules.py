"""``alert_rules``: alerting rules for Prometheus, whose thresholds are the figures behind the verdicts.

The rules use metrics of node_exporter, so that they work without headstack. A threshold is that of one disk: its own
latency at each load, the limit that it reached, its own queue.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headstack.diagnosis.judging.evidence import Z_MAX
from headstack.diagnosis.judging.fleet import SEVERE
from headstack.diagnosis.judging.latencies import time_text
from headstack.diagnosis.judging.steps import REQUESTS_MIN, STEP_S
from headstack.diagnosis.judging.suspects.limits import Limit, limit_for
from headstack.diagnosis.judging.suspects.phases import Phase
from headstack.diagnosis.judging.suspects.record import PLACE, Array, Record
from headstack.diagnosis.judging.suspects.thresholds import AT_LIMIT, PRESSURE
from headstack.diagnosis.judging.verdict import FINE, SLOW, UNDECIDED, Verdict

if TYPE_CHECKING:
    from headstack.diagnosis.judging.session import Session

SLOWER = math.exp(float(SEVERE[0]))
"""Slowdown that a rule tolerates at least, as the test for disks at half their speed does."""
INTERVALS_MIN = 8.0
"""Intervals of a load from which it has a threshold: the two hours of a comparison, in steps."""
DEEPER = 2.0
"""Queue depth relative to the deepest interval in order, from which a queue is long."""
QUEUE_LEAST = 2.0
"""Requests in flight from which some of them wait."""
WINDOW = f"{STEP_S / 60:.0f}m"
HOLD = "30m"
"""Two windows that do not overlap, so that one bad window does not alert."""
VERDICT_RULES = """\
  - name: headstack
    rules:
      - alert: DiskSlow
        expr: headstack_disk_verdict{verdict="slow"} == 1
        annotations: { summary: "{{ $labels.host }} {{ $labels.disk }} is slow" }
      - alert: DiskWaits
        expr: headstack_disk_verdict{verdict=~"limit|queue|host|neighbour"} == 1
        for: 30m
        annotations: { summary: "{{ $labels.host }} {{ $labels.disk }} waits: {{ $labels.verdict }}" }
      - alert: JudgeStopped
        expr: time() - headstack_judge_last_interval_timestamp_seconds > 900
"""
"""Rules for the metrics of ``--export``."""
KINDS = (
    ("read", "node_disk_read_time_seconds_total", "node_disk_reads_completed_total"),
    ("write", "node_disk_write_time_seconds_total", "node_disk_writes_completed_total"),
)
KERNEL = re.compile(
    r"(sd|vd|xvd|hd|dasd)[a-z]+|nvme\d+n\d+|mmcblk\d+|(md|dm-|rbd|nbd|bcache|drbd|pmem)\d+|(a?da|nda|nvd|vtbd)\d+"
)
"""Names of devices in node_exporter's metrics. Any other name of a disk is its serial number."""
HEAD = """\
# Alerting rules by headstack judge; check them with promtool check rules FILE.
# Thresholds are of {window} means, from node_exporter. The label instance must begin with the name of the host.
"""


class Load(NamedTuple):
    """The latency of a disk in order at one load."""

    rate_max: float
    """Requests per second, of any kind, up to which it applies."""
    intervals: float
    latency_s: float
    threshold_s: float


def alert_rules(session: Session, *, is_exported: bool = False) -> str:
    """Returns the text of a file of rules for the disks of a session, and for the metrics of ``--export``."""
    records = {
        (disk["host"], disk["disk"]): Record.of(disk["record"])
        for disk in (session.state["disks"] if session.state else [])
        if "record" in disk
    }
    limits = session.settings.get("limits") or {}
    lines = [HEAD.format(window=WINDOW), "groups:\n"]
    if is_exported:
        lines.append(VERDICT_RULES)
    rules: list[str] = []
    for verdict in sorted(session.verdicts, key=lambda of: (of.host, of.disk)):
        record = records.get((verdict.host, verdict.disk))
        if record is not None:
            rules += _of_disk(verdict, record.rows(), limit_for(verdict.disk, limits))
    for host in dict.fromkeys(host for host, _ in sorted(records)):
        rows = np.concatenate([record.rows() for (of, _), record in records.items() if of == host])
        rules.append(_of_host(host, rows))
    lines += ["  - name: headstack-devices\n", "    rules:\n", *rules] if rules else []
    return "".join(lines) if rules or is_exported else f"{lines[0]}groups: []\n"


def _of_disk(verdict: Verdict, rows: Array, limit: Limit | None) -> Iterator[str]:
    """Yields the rules of a disk."""
    rows = rows[rows[:, PLACE["requests"]] > 0]
    healthy, origin = in_order(verdict, rows)
    name = f"{verdict.host} {verdict.disk}".strip()
    for kind, time, count in KINDS:
        loads = loads_of(healthy, kind) or _loads_of_twin(verdict, kind)
        if loads:
            yield _latency_rule(verdict, loads, origin, (kind, time, count))
        elif not (rows[:, PLACE[f"{kind}s"]] == 0).all():
            yield f"      # {_one_line(name)}: no threshold of {kind}s, because {_why_none(healthy, kind)}.\n"
    yield from _limit_rules(verdict, rows, limit)
    yield from _queue_rule(verdict, healthy, origin)


def in_order(verdict: Verdict, rows: Array) -> tuple[Array, str]:
    """Returns the rows in which a disk was in order, and their origin in words."""
    if verdict.kind in (FINE, UNDECIDED):
        return rows, f"the disk is {verdict.kind}"
    if verdict.since_s is None:
        return rows[:0], ""
    return rows[rows[:, PLACE["start_s"]] < verdict.since_s], f"before it became {_became(verdict)}"


def _became(verdict: Verdict) -> str:
    return "slow" if verdict.kind == SLOW else f"a case of {verdict.kind}"


def loads_of(rows: Array, kind: str) -> list[Load]:
    """Returns thresholds of the latency of reads or writes by load, in steps of a factor of 2 of the rate. More load is
    no reason for a lower threshold."""
    wait_s, count = rows[:, PLACE[f"{kind}_wait_s"]], rows[:, PLACE[f"{kind}s"]]
    seen = (count > 0) & np.isfinite(wait_s) & (wait_s > 0)
    rows, wait_s, count = rows[seen], wait_s[seen], count[seen]
    rates = rows[:, PLACE["requests"]] / rows[:, PLACE["length_s"]]
    steps = np.ceil(np.log2(rates)).astype(int)
    loads: list[Load] = []
    for step in sorted(set(steps.tolist())):
        here = steps == step
        intervals = float(rows[here, PLACE["intervals"]].sum())
        if intervals < INTERVALS_MIN or count[here].sum() < REQUESTS_MIN:
            continue
        mean_s = float(wait_s[here].sum() / count[here].sum())
        spread = float(np.log(wait_s[here] / count[here]).std())
        threshold_s = mean_s * max(SLOWER, math.exp(Z_MAX * spread))
        below_s = loads[-1].threshold_s if loads else 0.0
        loads.append(Load(2.0**step, intervals, mean_s, max(threshold_s, below_s)))
    return loads


def _loads_of_twin(verdict: Verdict, kind: str) -> list[Load]:
    """Returns the threshold of a disk that was compared only with the prediction of a simulated drive."""
    of = verdict.predicted
    if of is None or of.high_s is None or of.requests != f"{kind}s":
        return []
    return [Load(of.iops, 0.0, of.latency_s, SLOWER * of.high_s)]


def _why_none(rows: Array, kind: str) -> str:
    if not len(rows):
        return "no interval is known in which the disk was in order"
    if not np.isfinite(rows[:, PLACE[f"{kind}_wait_s"]]).any():
        return f"the input has no latency of {kind}s"
    return f"no load has {INTERVALS_MIN:.0f} intervals and {REQUESTS_MIN:.0f} {kind}s"


def _latency_rule(verdict: Verdict, loads: list[Load], origin: str, metrics: tuple[str, str, str]) -> str:
    kind, time, count = metrics
    latency = f"{_rate(verdict, time)} / {_rate(verdict, count)}"
    rate = " + ".join(_rate(verdict, metric) for _, _, metric in KINDS)
    comments = [
        f"{kind}s took {time_text(of.latency_s)} in {of.intervals:,.0f} intervals at up to {of.rate_max:g} IOPS, "
        f"{origin}; the threshold is {of.threshold_s / of.latency_s:.2f} times that"
        for of in loads
        if of.intervals
    ]
    if not comments and verdict.predicted is not None:
        system, high_s = verdict.predicted.system, verdict.predicted.high_s or math.nan
        comments = [
            f"{system} is predicted at {time_text(loads[0].latency_s)}, at most {time_text(high_s)}; the threshold is "
            f"{SLOWER:.2f} times the latter"
        ]
    cases = [f"({latency} > {of.threshold_s:.4g}\n and {rate} <= {of.rate_max:g})" for of in loads]
    enough = f"{_rate(verdict, count)} > {REQUESTS_MIN / STEP_S:.3g}"
    # Fewer requests than REQUESTS_MIN in a window do not count.
    either = "\n or ".join(cases)
    expression = f"({either})\nand {enough}"
    return _rule(
        f"Disk{kind.capitalize()}LatencyHigh",
        _of_serial(verdict, expression),
        comments,
        f"{kind}s of {{{{ $labels.device }}}} at {{{{ $labels.instance }}}} take {{{{ $value | humanizeDuration }}}}",
        verdict,
    )


def _limit_rules(verdict: Verdict, rows: Array, limit: Limit | None) -> Iterator[str]:
    rate = " + ".join(_rate(verdict, metric) for _, _, metric in KINDS)
    amount = " + ".join(
        _rate(verdict, metric) for metric in ("node_disk_read_bytes_total", "node_disk_written_bytes_total")
    )
    summary = "{{ $labels.device }} at {{ $labels.instance }} is at its limit"
    if limit is not None:
        origin = f"the stated limit{' of ' + limit.name if limit.name else ''}, {limit}"
        limits = [("DiskAtIopsLimit", rate, limit.requests_per_s), ("DiskAtThroughputLimit", amount, limit.bytes_per_s)]
    elif verdict.kind == "limit" and verdict.since_s is not None:
        now = Phase(rows[rows[:, PLACE["start_s"]] >= verdict.since_s])
        origin = f"the rate at which it stays since the change, {now.rate:,.0f} IOPS"
        limits = [("DiskAtIopsLimit", rate, now.rate)]
    else:
        return
    for alert, expression, value in limits:
        if math.isfinite(value):
            comment = f"{AT_LIMIT:.0%} of {origin}"
            yield _rule(
                alert,
                _of_serial(verdict, f"{expression} >= {AT_LIMIT * value:.6g}"),
                [comment],
                summary,
                verdict,
            )


def _queue_rule(verdict: Verdict, rows: Array, origin: str) -> Iterator[str]:
    depths = rows[:, PLACE["in_flight_s"]] / rows[:, PLACE["length_s"]]
    depths = depths[np.isfinite(depths)]
    if not len(depths):
        return
    deepest = float(depths.max())
    threshold = max(DEEPER * deepest, QUEUE_LEAST)
    yield _rule(
        "DiskQueueLong",
        _of_serial(verdict, f"{_rate(verdict, 'node_disk_io_time_weighted_seconds_total')} > {threshold:.4g}"),
        [
            f"at most {deepest:.3g} requests were in flight in an interval, {origin}; the threshold is {DEEPER:g} "
            f"times that, at least {QUEUE_LEAST:g}"
        ],
        "{{ $value | humanize }} requests wait at {{ $labels.device }} of {{ $labels.instance }}",
        verdict,
    )


def _of_host(host: str, rows: Array) -> str:
    shares = rows[:, PLACE["io_pressure_s"]] / rows[:, PLACE["length_s"]]
    shares = shares[np.isfinite(shares)]
    usual = float(np.quantile(shares, 0.99)) if len(shares) else None
    threshold = PRESSURE if usual is None else min(max(PRESSURE, DEEPER * usual), 0.95)
    comment = (
        f"this log has no pressure; {PRESSURE:.0%} is the share of time in which stalls count as evidence"
        if usual is None
        else f"programs waited for I/O in {usual:.1%} of the time or less in 99 % of the intervals; the threshold is "
        f"{DEEPER:g} times that, at least {PRESSURE:.0%}"
    )
    metric = "node_pressure_io_waiting_seconds_total"
    return _rule(
        "HostWaitsForIo",
        f"rate({metric}{{{_instance(host)}}}[{WINDOW}]) > {threshold:.3g}",
        [comment],
        "programs of {{ $labels.instance }} wait for I/O in {{ $value | humanizePercentage }} of the time",
        host=host,
    )


def _rule(
    alert: str, expression: str, comments: list[str], summary: str, verdict: Verdict | None = None, host: str = ""
) -> str:
    name, labels = "", {"severity": "warning", "host": host}
    if verdict is not None:
        name = f"{f'{verdict.host} {verdict.disk}'.strip()}: "
        labels |= {"host": verdict.host, "disk": verdict.disk}
    # Labels distinguish the rules of disks. JSON's texts are YAML's, too.
    listed = ", ".join(f"{key}: {json.dumps(value)}" for key, value in labels.items() if value)
    said = "".join(f"      # {_one_line(name + comment)}.\n" for comment in comments)
    lines = expression.replace("\n", "\n          ")
    return (
        f"{said}      - alert: {alert}\n        expr: |-\n          {lines}\n        for: {HOLD}\n"
        f"        labels: {{ {listed} }}\n        annotations:\n          summary: '{summary}'\n"
    )


def _one_line(text: str) -> str:
    """Returns a text without line breaks and control characters, which YAML does not allow."""
    return "".join(character for character in " ".join(text.split()) if character.isprintable())


def _rate(verdict: Verdict, metric: str) -> str:
    labels = [_instance(verdict.host)] if verdict.host else []
    if KERNEL.fullmatch(verdict.disk):
        labels.append(f'device="{_quoted(verdict.disk)}"')
    return f"rate({metric}{{{','.join(labels)}}}[{WINDOW}])"


def _of_serial(verdict: Verdict, expression: str) -> str:
    """Restricts an expression to the disk of a serial number, by which inputs with one name it."""
    if KERNEL.fullmatch(verdict.disk):
        return expression
    serial = f'node_disk_info{{serial="{_quoted(verdict.disk)}"}}'
    return f"({expression}) and on (instance, device) {serial}"


def _instance(host: str) -> str:
    """Returns the matcher of a host, with or without the exporter's port."""
    pattern = re.sub(r"([.+*?()|\[\]{}^$\\])", r"\\\1", host)
    return f'instance=~"{_quoted(pattern)}(:[0-9]+)?"' if host else 'instance=~".+"'


def _quoted(text: str) -> str:
    return _one_line(text).replace("\\", r"\\").replace('"', r"\"")
