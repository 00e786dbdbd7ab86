"""The report of the cache lab: miss ratios and response times over sizes, and the table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headstack._native import format_bytes, version
from headstack.report.figures import Axis, Figure, Lines, Report, Section, Series, Table
from headstack.traces.cache_types import CacheRow

if TYPE_CHECKING:
    from headstack.traces.cache_runs import CacheRuns

BYTES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def report_of(lab: CacheRuns) -> Report:
    """Returns all results of the lab as a report."""
    figures: list[Figure] = [misses_of(lab)]
    if lab.times:
        figures.append(times_of(lab))
    sections = [Section("Caches", "", figures), Section("All caches", "", [table_of(lab)])]
    return Report(lab.name, "", answer(lab), sections, version=version(), remarks="\n\n".join(lab.remarks))


def misses_of(lab: CacheRuns) -> Lines:
    """Returns miss ratios over the size of the cache."""
    divisor, unit = unit_of(lab)
    series = [
        Series(
            policy,
            [size_of(row) / divisor for row in rows],
            [100 * row["miss_ratio"] for row in rows],
            low=[100 * row["miss_ratio_low"] for row in rows if row["miss_ratio_low"] is not None],
            high=[100 * row["miss_ratio_high"] for row in rows if row["miss_ratio_high"] is not None],
        )
        for policy, rows in by_policy(lab)
    ]
    axes = Axis(f"Cache ({unit})", log=True), Axis("Misses (%)", log=False)
    return Lines("misses", "Misses over the size of the cache", *axes, series, lab.remarks[1], says=answer(lab))


def times_of(lab: CacheRuns) -> Lines:
    """Returns mean response times over the size of the cache, with the 99th percentile."""
    divisor, unit = unit_of(lab)
    timed = [(policy, [row for row in rows if row["mean_ms"] is not None]) for policy, rows in by_policy(lab)]
    series = [
        Series(
            policy,
            [size_of(row) / divisor for row in rows],
            [row["mean_ms"] for row in rows],
            p99=[row["p99_ms"] for row in rows],
        )
        for policy, rows in timed
        if rows
    ]
    means = [(row["mean_ms"], row) for _, rows in timed for row in rows if row["mean_ms"] is not None]
    mean_ms, fastest = min(means, key=lambda entry: entry[0])
    says = f"{fastest['policy']} of {format_size(fastest)} is fastest: {mean_ms:.3g} ms on average."
    axes = Axis(f"Cache ({unit})", log=True), Axis("Response time (ms)")
    return Lines("times", "Latency in front of the cache", *axes, series, lab.remarks[-1], says=says)


def table_of(lab: CacheRuns) -> Table:
    """Returns a row for each cache."""
    timed = bool(lab.times)
    columns = [
        "policy",
        "cache",
        "misses (%)",
        "read misses (%)",
        "write misses (%)",
        "back-end reads",
        "back-end writes",
    ]
    columns += ["mean (ms)", "p99 (ms)"] if timed else []
    rows = [
        [
            row["policy"],
            format_size(row),
            share(row["miss_ratio"]),
            share(row["read_miss_ratio"]),
            share(row["write_miss_ratio"]),
            format_bytes(round(row["back_read_bytes"])),
            format_bytes(round(row["back_write_bytes"])),
            *([figure(row["mean_ms"]), figure(row["p99_ms"])] if timed else []),
        ]
        for row in lab.rows
    ]
    return Table("caches", "Misses and back-end traffic", columns, rows)


def answer(lab: CacheRuns) -> str:
    """Returns a sentence that names the policy with the fewest misses at the middle size."""
    policies = [(policy, rows) for policy, rows in by_policy(lab) if policy != "belady"]
    if not policies:
        row = lab.rows[-1]
        return f"The optimal policy (Belady) misses {100 * row['miss_ratio']:.1f} % with {format_size(row)}."
    middle = len(policies[0][1]) // 2
    best = min((rows[middle] for _, rows in policies), key=lambda row: row["miss_ratio"])
    worst = max((rows[middle] for _, rows in policies), key=lambda row: row["miss_ratio"])
    text = f"With {format_size(best)}, {best['policy']} misses {100 * best['miss_ratio']:.1f} %"
    if worst["policy"] != best["policy"]:
        text += f", {worst['policy']} {100 * worst['miss_ratio']:.1f} %"
    return f"{text}."


def by_policy(lab: CacheRuns) -> Iterable[tuple[str, list[CacheRow]]]:
    """Yields the rows of each policy, by size."""
    rows = lab.rows
    return [(policy, [row for row in rows if row["policy"] == policy]) for policy in lab.options["policies"]]


def unit_of(lab: CacheRuns) -> tuple[float, str]:
    """Returns the unit of the axis of sizes."""
    if lab.report["unit"] == "objects":
        return 1, "requests"
    largest = max(size_of(row) for row in lab.rows)
    return next(((float(size), name) for size, name in BYTES if largest >= size), (1.0, "B"))


def size_of(row: CacheRow) -> float:
    """Returns a size in bytes, or in objects."""
    return float(row["cache"] if row["cache_bytes"] is None else row["cache_bytes"])


def format_size(row: CacheRow) -> str:
    """Formats a size with its unit."""
    return f"{row['cache']:,} requests" if row["cache_bytes"] is None else format_bytes(row["cache_bytes"])


def share(value: float | None) -> str:
    """Formats a share in percent."""
    return "" if value is None else f"{100 * value:.2f}"


def figure(value: float | None) -> str:
    """Formats a value with three digits."""
    return "" if value is None else f"{value:.3g}"
