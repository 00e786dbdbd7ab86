"""What caches would make of a trace: figures worked by hand, files that are written, and how bad input is refused."""

from __future__ import annotations

import csv as csv_module
import json
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack.traces.cache_lab import WRITES, CacheLab, sizes_of
from headstack.traces.cache_runs import POLICIES
from headstack.traces.cache_types import BlockUnit

BLOCKS: BlockUnit = {"blocks": {"bytes": 4096}}

# Every 10 ms a request of one block, the last of two: A B A C A B+1 (which is C's neighbour), and a write of A.
LINES = """128166372000000000,hm,0,Read,0,4096,100
128166372000100000,hm,0,Read,40960,4096,100
128166372000200000,hm,0,Read,0,4096,100
128166372000300000,hm,0,Read,81920,4096,100
128166372000400000,hm,0,Read,0,4096,100
128166372000500000,hm,0,Read,40960,8192,100
128166372000600000,hm,0,Write,0,4096,100
"""


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """Seven requests to one device."""
    path = tmp_path / "t.csv"
    path.write_text(LINES, encoding="utf-8")
    return path


def test_misses_are_those_worked_by_hand(csv: Path) -> None:
    lab = hs.caches(csv, "lru,fifo,belady", ["2", "3", "16KiB"])
    # A B a C a B D A: with two blocks LRU hits A twice, FIFO once (C takes A's place), Belady thrice.
    misses = {(row["policy"], row["cache"]): round(8 * row["miss_ratio"]) for row in lab.rows}
    assert [misses["lru", size] for size in (2, 3, 4)] == [6, 4, 4]
    assert [misses["fifo", size] for size in (2, 3, 4)] == [7, 5, 4]
    assert [misses["belady", size] for size in (2, 3, 4)] == [5, 4, 4]
    row = next(row for row in lab.rows if (row["policy"], row["cache"]) == ("lru", 2))
    # B and its neighbour D miss together: one read of two blocks. The write misses, and goes through.
    assert (row["back_reads"], row["back_read_bytes"]) == (4, 5 * 4096)
    assert (row["back_writes"], row["back_write_bytes"], row["cache_bytes"]) == (1, 4096, 8192)
    assert row["read_miss_ratio"] == pytest.approx(5 / 7)
    assert row["write_miss_ratio"] == 1.0


def test_writes_wait_in_a_cache_that_keeps_them_back(csv: Path) -> None:
    back = hs.caches(csv, "lru", "3", writes="back").rows[0]
    assert (back["back_writes"], back["dirty_bytes"]) == (0, 4096)
    assert hs.caches(csv, "lru", "3", writes="back", dirty="0%").rows[0]["back_writes"] == 1


def test_objects_are_counted_or_weighed(csv: Path) -> None:
    counted = hs.caches(csv, "lru", "3", holds="objects").rows[0]
    assert (counted["cache_bytes"], round(7 * counted["miss_ratio"])) == (None, 3)
    weighed = hs.caches(csv, "lru", "12KiB", holds="bytes").rows[0]
    assert (weighed["cache_bytes"], weighed["cache"]) == (12288, 12288)


def test_response_times_are_those_of_the_system_behind(csv: Path) -> None:
    lab = hs.caches(csv, "lru,belady", ["3"], behind="cheetah-x15-36lp", hit_time="50us")
    lru, belady = lab.rows
    # Three of seven requests hit: what is replayed of the others is slower by milliseconds.
    assert lru["mean_ms"] is not None
    assert lru["p99_ms"] is not None
    assert 0.05 < lru["mean_ms"] < lru["p99_ms"] < 20
    assert belady["mean_ms"] is None
    assert "simulated" in lab.remarks[-1]
    assert "50us" in lab.remarks[-1]
    # All was read at once before: of eight requests the first alone waits for the drive.
    again = csv.parent / "again.csv"
    again.write_text("128166371000000000,hm,0,Read,0,102400,100\n" + LINES.replace("Write", "Read"))
    row = hs.caches(again, "lru", "1000", behind="cheetah-x15-36lp", hit_time="50us").rows[0]
    assert row["p99_ms"] is not None
    assert row["mean_ms"] == pytest.approx(row["p99_ms"] / 8 + 0.05 * 7 / 8, rel=0.02)
    slow = hs.caches(csv, "lru", "1000", behind="cheetah-x15-36lp", hit_time="1s").rows[0]["mean_ms"]
    assert slow is not None
    assert slow > 1000


def test_a_coarse_clock_is_noted_for_response_times_behind(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("".join(f"{1_538_323_200 + number // 50},{number * 64},8,0,7\n" for number in range(500)))
    lab = hs.caches(path, "lru,fifo,belady", ["3", "9"], behind="cheetah-x15-36lp")
    note = "490 of 500 requests arrive at the same time as the previous one, since times have a resolution of 1s"
    assert [note in remark for remark in lab.remarks].count(True) == 1, lab.remarks
    lab.to_json(tmp_path / "lab.json")
    assert hs.CacheLab.load(tmp_path / "lab.json").remarks == lab.remarks
    assert not any("steps of" in remark for remark in hs.caches(path, "lru", ["3"]).remarks)


def test_a_trace_without_times_has_no_response_times_behind(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("".join(f"user:{number % 7}\n" for number in range(100)))
    with pytest.raises(hs.InputError, match="times are not recorded"):
        hs.caches(path, "lru", ["3"], behind="cheetah-x15-36lp", outside="fold")


def test_samples_have_bands(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    hs.run("cheetah-x15-36lp", "file-server", depth=4, requests=4000, warm_up=0, record=path, seed=3)
    exact = hs.caches(path, "lru,s3-fifo", ["4MiB", "16MiB"])
    sampled = hs.caches(path, "lru,s3-fifo", ["4MiB", "16MiB"], sample=0.1, samples=6)
    assert sampled.report["sampled_rate"] == 0.125
    for one, other in zip(exact.rows, sampled.rows, strict=True):
        assert one["miss_ratio_low"] is None
        assert other["miss_ratio_low"] is not None
        assert other["miss_ratio_high"] is not None
        assert other["miss_ratio_low"] <= one["miss_ratio"] <= other["miss_ratio_high"]
        assert other["back_reads"] is None


def test_sizes_are_ranges_and_lists() -> None:
    assert sizes_of("1MiB..16MiB", 5, BLOCKS) == [256, 512, 1024, 2048, 4096]
    assert sizes_of(["100", 20, "4KiB"], 8, BLOCKS) == [1, 20, 100]
    assert sizes_of("10..1000", 3, "objects") == [10, 100, 1000]
    with pytest.raises(hs.InputError, match="put the lower end first"):
        sizes_of("1000..10", 2, "objects")
    with pytest.raises(hs.InputError, match="use --holds bytes"):
        sizes_of("1GiB", 2, "objects")


def test_without_sizes_they_reach_up_to_what_is_touched(csv: Path) -> None:
    assert [row["cache"] for row in hs.caches(csv, "lru", points=3).rows] == [1, 2, 4]


def test_the_command_writes_what_it_shows(headstack: Headstack, csv: Path) -> None:
    outputs = "--json lab.json --csv lab.csv --parquet lab.parquet --plot lab.png --markdown lab.md --html lab.html"
    done = headstack(
        "trace",
        "cache",
        csv.name,
        "--policy",
        "lru,s3fifo",
        "--size",
        "2,3",
        *outputs.split(),
        "--behind",
        "cheetah-x15-36lp",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "s3-fifo" in done.stdout
    assert "Latencies are simulated" in done.stdout
    lab = CacheLab.load(csv.parent / "lab.json")
    rows = list(csv_module.DictReader((csv.parent / "lab.csv").open()))
    assert [row["policy"] for row in rows] == ["lru", "lru", "s3-fifo", "s3-fifo"]
    assert [float(row["miss_ratio"]) for row in rows] == [row["miss_ratio"] for row in lab.rows]
    assert (csv.parent / "lab.png").read_bytes().startswith(b"\x89PNG")
    assert "misses" in (csv.parent / "lab.md").read_text()
    assert "<html" in (csv.parent / "lab.html").read_text()[:200]
    import duckdb

    table = duckdb.connect().execute(f"select count(*), min(cache) from '{csv.parent}/lab.parquet'").fetchall()
    assert table == [(4, 2)]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--policy lrx", "policy: 'lrx' is unknown; allowed: lru"),
        ("--size 0", "size: 0 is smaller than one block or object"),
        ("--size 1KiB", "size: 1KiB is smaller than one block"),
        ("--block 1000B", "block: must be a power of two"),
        ("--sample 2", "sample: must be above 0 and up to 1"),
        ("--admit never", "admit: 'never' is unknown"),
        ("--writes never", "writes"),
        ("--behind nothing", "nothing"),
        ("--sample 0.1 --behind cheetah-x15-36lp", "sample: the system behind a cache needs all misses"),
        ("--memory 100B", "memory: "),
        ("--behind cheetah-x15-36lp@0%..50%", "behind: needs a whole system"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(headstack: Headstack, csv: Path, options: str, says: str) -> None:
    done = headstack("trace", "cache", csv.name, "--size", "2", *options.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_every_policy_and_way_of_writing_is_taken(csv: Path) -> None:
    for writes in WRITES:
        lab = hs.caches(csv, POLICIES, "3", writes=writes)
        assert [row["policy"] for row in lab.rows] == list(POLICIES)
        assert all(0 < row["miss_ratio"] < 1 for row in lab.rows)


def test_what_was_stored_is_read_again(csv: Path, tmp_path: Path) -> None:
    lab = hs.caches(csv, "lru", "2")
    lab.to_json(tmp_path / "lab.json")
    assert CacheLab.load(tmp_path / "lab.json") == lab
    (tmp_path / "other.json").write_text(json.dumps({"format": "headstack analysis", "schema": 1}))
    with pytest.raises(hs.InputError, match="is a headstack analysis"):
        CacheLab.load(tmp_path / "other.json")
