"""`zpool iostat -w` and `-r` are read as facts: percentiles of waits, and sizes of requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import headstack as hs
from headstack.diagnosis.judging.sources.kinds import kind_of
from headstack.diagnosis.judging.sources.zpool_histogram import histograms
from headstack.diagnosis.judging.suspects.statements import Statement

NEW = ("syncq_wait", "asyncq_wait", ("scrub", "trim", "rebuild"))
OLD = ("sync_queue", "async_queue", ("scrub",))
Counts = Mapping[str, Mapping[int, float]]


def label(power: int) -> str:
    """The upper end of a bucket, as zpool prints it."""
    value_ns = 2 ** (power + 1) - 1
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if value_ns >= size:
            return f"{value_ns // size}{unit}"
    return f"{value_ns}ns"


def format_count(count: float) -> str:
    return f"{count / 1024:.3g}K" if count >= 1024 else f"{count:g}"


def histogram(name: str, counts: Counts, layout: tuple[str, str, tuple[str, ...]] = NEW) -> str:
    """Returns a histogram as zpool prints it. ``counts`` are by column and by the power of two of nanoseconds."""
    sync, asynchronous, single = layout
    columns = [f"{wait} {kind}" for wait in ("total", "disk", "sync", "async") for kind in ("read", "write")]
    columns += single
    lines = [
        f"\n{name:<12} total_wait     disk_wait    {sync}    {asynchronous}",
        "latency      read  write   read  write   read  write   read  write  " + "  ".join(single),
        "----------  " + "  ".join(["-----"] * len(columns)),
    ]
    for power in range(37):
        cells = [format_count(counts.get(column, {}).get(power, 0)) for column in columns]
        lines.append(f"{label(power):<10}  " + "  ".join(f"{cell:>5}" for cell in cells))
    return "\n".join([*lines, "-" * 80]) + "\n"


def statement_of(statements: list[Statement], name: str, kind: str) -> Statement:
    (statement,) = [of for of in statements if of.disk == name and f" {kind} take " in of.evidence]
    return statement


# 16.8 to 33.6 ms, as disks in order take, and a few at 67 ms.
DISK: Counts = {"disk read": {24: 900, 25: 90, 26: 20}, "total read": {24: 900, 25: 90, 26: 20}}


@pytest.mark.parametrize("layout", [NEW, OLD])
def test_percentiles_of_the_disk_and_of_the_total_wait(
    tmp_path: Path, layout: tuple[str, str, tuple[str, ...]]
) -> None:
    path = tmp_path / "pool.txt"
    path.write_text(histogram("tank", DISK, layout), encoding="utf-8")
    kind = kind_of(path)
    assert kind is not None
    assert kind.name == "zpool-histogram"
    (verdict,) = hs.judge(path).verdicts
    assert (verdict.disk, verdict.kind) == ("tank", "undecided")
    assert "Half of 1,010 reads take 16 ms to 33 ms at the disk, 99 % less than 134 ms" in verdict.why
    assert "since the import of the pool" in verdict.why
    assert "zpool iostat -vly 5" in verdict.next_step


def test_requests_that_wait_in_zfs_are_a_queue() -> None:
    # Half a second in all, 16 ms at the disk.
    waits: Counts = {"disk write": {23: 5000}, "total write": {28: 5000}, "async write": {28: 5000}}
    (since_import,) = histograms(histogram("tank", waits), "f")
    assert since_import.weights == {"queue": 1.25, "host": 0.25, "device": -0.5, "limit": -0.5}
    assert "with the time in ZFS' queues 268 ms to 536 ms" in since_import.evidence
    again = histograms(histogram("tank", waits) + histogram("tank", waits), "f")
    assert statement_of(again, "tank", "writes").weights["queue"] == 2.5
    # One bucket apart is the same.
    near = histograms(histogram("tank", {"disk write": {23: 500}, "total write": {24: 500}}), "f")
    assert statement_of(near, "tank", "writes").weights == {}


def test_retries_and_fast_devices() -> None:
    slow = statement_of(histograms(histogram("sda", {"disk read": {24: 900, 30: 100}}), "f"), "sda", "reads")
    assert slow.weights == {"device": 0.75, "none": -0.5}
    assert "99 % less than 2 s: longer than a full queue" in slow.evidence
    fast = statement_of(histograms(histogram("nvme0n1", {"disk read": {16: 900}}), "f"), "nvme0n1", "reads")
    assert fast.weights == {"device": -1.5, "none": 0.75}
    # A percentile needs requests.
    few = statement_of(histograms(histogram("sda", {"disk read": {24: 90, 30: 9}}), "f"), "sda", "reads")
    assert few.weights == {}
    assert "99 %" not in few.evidence


def test_a_disk_unlike_the_others_of_its_pool() -> None:
    slow: Counts = {"disk read": {27: 1000}}
    text = "".join(histogram(name, DISK) for name in ("tank", "mirror-0", "sda", "sdb", "sdc")) + histogram("sdd", slow)
    stated = histograms(text, "f")
    assert {of.disk for of in stated} == {"sda", "sdb", "sdc", "sdd"}
    assert statement_of(stated, "sdd", "reads").weights == {"device": 0.75}
    assert "half of those of the other disks take less than 33 ms" in statement_of(stated, "sdd", "reads").evidence
    assert statement_of(stated, "sda", "reads").weights == {}


def test_the_last_interval_counts_and_a_scrub_is_other_work() -> None:
    text = histogram("tank", {"disk read": {30: 1000}}) + histogram("tank", {**DISK, "scrub": {26: 3000}})
    reads, scrub = histograms(text, "f")
    assert "half of 1,010 reads" in reads.evidence
    assert "since the import" not in reads.evidence
    assert scrub.weights == {"neighbour": 2.0}
    assert re.match(r"3,00\d requests of a scrub or resilver, half of which take 67 ms to 134 ms", scrub.evidence)


def test_scripted_lines_have_no_header(tmp_path: Path) -> None:
    lines = [
        f"{2 ** (power + 1) - 1}\t" + "\t".join(["0", "0", "500" if power == 24 else "0", *["0"] * 8])
        for power in range(37)
    ]
    path = tmp_path / "pool.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    kind = kind_of(path)
    assert kind is not None
    assert kind.name == "zpool-histogram"
    (statement,) = histograms(path.read_text(encoding="utf-8"), "pool")
    assert (statement.disk, "half of 500 reads take 16.8 ms to 33.6 ms" in statement.evidence) == ("pool", True)


SIZES = """
tank          sync_read    sync_write    async_read    async_write      scrub         trim
req_size      ind    agg    ind    agg    ind    agg    ind    agg    ind    agg    ind    agg
----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----
512             0      0      0      0      0      0      0      0      0      0      0      0
4K            300      0      0      0      0      0     10      0      0      0      0      0
128K          100      0      0      0      0      0      0     30      0      0      0      0
1M              0      0      0      0      0      0      0     60      0      0      0      0
"""


def test_sizes_of_requests() -> None:
    (statement,) = histograms(SIZES, "f")
    assert (statement.disk, dict(statement.weights)) == ("tank", {})
    assert statement.evidence == (
        "median request sizes: sync_read 4KiB (400 requests, 0% aggregated), async_write 1MiB (100 requests, 90% "
        "aggregated)"
    )


def test_a_header_alone_names_what_to_give() -> None:
    (statement,) = histograms("tank  total_wait  disk_wait  syncq_wait  asyncq_wait\n", "f")
    assert statement.needed == "zpool iostat -vly 5"
