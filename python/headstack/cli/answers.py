"""The first line of commands: the answer in one sentence, with its number and interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headstack._native import format_bytes, format_duration_ns
from headstack.io.counts import agreed, counted
from headstack.results.words import UNDECIDED, number, time

if TYPE_CHECKING:
    from headstack.crash.findings import Exploration
    from headstack.crash.states import Moment
    from headstack.diagnosis.inspection.model import Inspection
    from headstack.traces.report_types import TraceReport

NAMED_MAX = 3
"""Maximum number of devices that a sentence names."""
SECOND_NS = 10**9


def answer_of_trace(report: TraceReport) -> str:
    """Returns a sentence with the rate, read share, request size and latency of a trace."""
    if not report["requests"]:
        return f"{UNDECIDED}: the trace has no requests"
    parts = []
    rate = report["requests_per_s"]
    if rate is not None:
        peaks = [s["mean"] * s["peak_over_mean"] for s in report["arrivals"]["scales"] if s["bin_ns"] == SECOND_NS]
        peak = f" (at most {number(peaks[0])} in a second)" if peaks and peaks[0] > rate else ""
        parts.append(f"{number(rate)} IOPS on average{peak}")
    amounts = report["operations"]
    reads, writes = (amounts[name]["requests"] if name in amounts else 0 for name in ("read", "write"))
    if reads + writes:
        parts.append(f"{100 * reads / (reads + writes):.3g} % reads")
    parts.append(f"mean size {format_bytes(round(report['bytes'] / report['requests']))}")
    times = report["response"]["all_ns"]
    if times is not None:
        parts.append(f"median latency {time(times['p50'] / 1e6)} (p99 {time(times['p99'] / 1e6)})")
    long = f" in {format_duration_ns(report['duration_ns'])}" if report["duration_ns"] else ""
    return f"{counted(report['requests'], 'request')}{long}: {', '.join(parts)}"


def answer_of_devices(devices: Sequence[Inspection]) -> str:
    """Returns a sentence with the number of devices to replace or watch, and the first reason for each."""
    from headstack.diagnosis.inspection.catalogued import shingled  # start-up time
    from headstack.diagnosis.inspection.verdict import REPLACE, UNKNOWN, WATCH, judge  # start-up time

    judgements = [(device, judge(device)) for device in devices]
    by_verdict = {
        verdict: [(device, judgement) for device, judgement in judgements if judgement.verdict == verdict]
        for verdict in (REPLACE, WATCH, UNKNOWN)
    }
    urgent = by_verdict[REPLACE] or by_verdict[WATCH]
    count = len(devices)
    unknown = len(by_verdict[UNKNOWN])
    rest = f"; not enough data for a verdict on {unknown}" if unknown and unknown < count else ""
    if urgent:
        word = "replace" if by_verdict[REPLACE] else "watch"
        named = []
        for device, judgement in urgent[:NAMED_MAX]:
            reason = next(reason for reason in judgement.reasons if reason.verdict == judgement.verdict)
            named.append(f"{device.label}: {reason.finding}")
        more = f"; and {len(urgent) - NAMED_MAX} more" if len(urgent) > NAMED_MAX else ""
        head = f"{word} {len(urgent)} of {counted(count, 'device')}" if count > 1 else word
        return f"{head}: {'; '.join(named)}{more}{rest}"
    if unknown == count:
        return f"{UNDECIDED}: no health data were read from {counted(count, 'device')}"
    passed = count - unknown
    if count == 1:
        (device,) = devices
        hours = "" if device.power_on_hours is None else f" after {device.power_on_hours:,} power-on hours"
        recording = "" if shingled(device) is None else "; it is shingled (SMR)"
        return f"{device.label}: no sign of failure{hours}{recording}"
    return f"no sign of failure in {counted(passed, 'device')}{rest}"


def answer_of_exploration(exploration: Exploration) -> str:
    """Returns a sentence with the number of failing crash states and the share of all states that was checked."""
    coverage = exploration.coverage
    if not coverage.states:
        return f"{UNDECIDED}: no crash state was checked"
    share = coverage.subsets / coverage.possible if coverage.possible else 1.0
    checked = "all" if share >= 1 else f"{100 * share:.2g} %" if share >= 1e-3 else "less than 0.1 %"
    scope = f"{checked} of the subsets of this recording were checked"
    if not exploration.violations:
        return f"no failure in {counted(coverage.states, 'crash state')}; {scope}"
    failing = f"{exploration.violations:,} of {counted(coverage.states, 'crash state')}"
    return f"{failing} {agreed(exploration.violations, 'fails', 'fail')} the check; {scope}"


def answer_of_journal(moments: Sequence[Moment], summary: Mapping[str, object]) -> str:
    """Returns a sentence with the number of crash states that a journal allows."""
    possible = sum(moment["possible"] for moment in moments)
    amount = f"{possible:,.0f}" if possible < 1e9 else f"{possible:.2g}"
    largest = max((moment["open"] for moment in moments), default=0)
    if not moments:
        return f"{UNDECIDED}: the journal has no point at which a crash could lose data"
    return (
        f"{amount} crash states in {counted(len(moments), 'window')} of up to {counted(largest, 'open change')}, from "
        f"{summary['changes']:,} changes and {summary['flushes']:,} flushes"
    )
