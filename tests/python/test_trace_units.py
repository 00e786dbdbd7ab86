"""What a clock or an address space cannot carry is said, and names stay out of traces that are made to be passed on."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import duckdb
import polars as pl
import pytest

import headstack as hs
from conftest import CHEETAH, REPOSITORY, Headstack

SAMPLES = REPOSITORY / "crates" / "trace" / "samples"
OBJECTS = 60
SIZE = 65_536


def accesses(times: range) -> list[tuple[int, int]]:
    """Time and object, in no order of their numbers."""
    return [(time, (time * 37) % OBJECTS if time % 3 else time % 7) for time in times]


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    """A trace in oracleGeneral of dense numbers, each object of 64 KiB."""
    found = accesses(range(600))
    last: dict[int, int] = {}
    following = [-1] * len(found)
    for number, (_, name) in enumerate(found):
        if name in last:
            following[last[name]] = number + 1
        last[name] = number
    path = tmp_path / "w.bin"
    path.write_bytes(
        b"".join(
            struct.pack("<IQIq", time // 10, name, SIZE, after)
            for (time, name), after in zip(found, following, strict=True)
        )
    )
    return path


def lru_misses(capacity: int) -> float:
    held: list[int] = []
    missed = 0
    found = accesses(range(600))
    for _, name in found:
        missed += name not in held
        held = [name, *(other for other in held if other != name)][:capacity]
    return missed / len(found)


def test_caches_of_objects_miss_as_often_as_a_list_of_them(objects: Path) -> None:
    by_number = hs.caches(str(objects), "lru", [10, 30], holds="objects")
    for capacity in (10, 30):
        assert by_number.miss_ratio("lru", capacity) == pytest.approx(lru_misses(capacity))
    # A block of 4 KiB is of one object.
    by_block = hs.caches(str(objects), "lru", [10 * SIZE // 4096])
    assert by_block.miss_ratio("lru", 10 * SIZE // 4096) == pytest.approx(lru_misses(10))
    by_bytes = hs.caches(str(objects), "lru,w-tinylfu", [30 * SIZE], holds="bytes")
    assert by_bytes.miss_ratio("lru", 30 * SIZE) == pytest.approx(lru_misses(30))


def test_nothing_is_said_of_the_places_of_objects(headstack: Headstack, objects: Path, tmp_path: Path) -> None:
    done = headstack("trace", "analyze", "w.bin", "--json", "a.json", "--html", "a.html", "--markdown", "a.md", "-q")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "a.json").read_text())["report"]
    assert report["sequence"]["streams"]["share"] is None
    assert report["heat"] is None
    assert report["highest_end_bytes"] is None
    assert report["environment"]["random_share"] is None
    assert "note: requests name objects" in done.stdout
    assert "add --sector 512" in done.stdout
    assert "not recorded" in headstack("trace", "info", "w.bin", "-q").stdout
    told = headstack("trace", "info", "w.bin", "-q", "--sector", "512").stdout
    assert "add --sector" not in told
    volumes = json.loads(headstack("trace", "volumes", "w.bin", "-q", "--json", "-").stdout)
    assert volumes[0]["end_bytes"] is None
    assert volumes[0]["busiest_per_s"] == 10
    refused = headstack("trace", "analyze", "w.bin", "--workload", "w.toml", "-q")
    assert refused.returncode == 2
    assert "workload" in refused.stderr


@pytest.mark.parametrize("name", ["twitter.csv", "cachelib.csv", "thesios.csv", "tectonic.txt", "mooncake.txt"])
def test_every_output_is_made_of_traces_without_places(headstack: Headstack, name: str) -> None:
    outputs = ("--html", "a.html", "--plot", "a.png", "--markdown", "a.md")
    done = headstack("trace", "analyze", SAMPLES / name, *outputs, "-q")
    assert done.returncode == 0, done.stderr
    assert "not recorded" in done.stdout


def test_nothing_is_said_of_the_times_of_a_list(headstack: Headstack, tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("".join(f"user:{number % 7}\n" for number in range(100)))
    done = headstack(
        "trace", "analyze", "keys.txt", "--json", "a.json", "--html", "a.html", "--plot", "a.png", "--markdown", "a.md"
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "a.json").read_text())["report"]
    assert (report["requests_per_s"], report["rate"]["bins"], report["timeline"]["bins"]) == (None, [], [])
    assert (report["arrivals"]["mean_gap_ns"], report["first_arrival_ns"], report["duration_ns"]) == (None, None, 0)
    assert "times not recorded" in done.stdout
    assert "time: not recorded" in headstack("trace", "info", "keys.txt").stdout
    volumes = json.loads(headstack("trace", "volumes", "keys.txt", "-q", "--json", "-").stdout)
    assert (volumes[0]["requests_per_s"], volumes[0]["busiest_per_s"], volumes[0]["working_set_bytes"]) == (None,) * 3
    step = ("--step", "unknown=read")
    refused = headstack("trace", "replay", "keys.txt", CHEETAH, "--mode", "timed", "--outside", "fold", *step, "-q")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "--mode asap" in refused.stderr
    played = headstack(
        "trace", "replay", "keys.txt", CHEETAH, "--mode", "asap", "--depth", "2", "--outside", "fold", *step
    )
    assert played.returncode == 0, played.stderr
    assert "offsets name objects" in played.stdout


def test_a_replay_of_whole_seconds_says_that_it_is_one_of_bursts(headstack: Headstack, tmp_path: Path) -> None:
    lines = [f"{1_538_323_200 + number // 50},{number * 64},8,0,7\n" for number in range(500)]
    (tmp_path / "t.csv").write_text("".join(lines))
    done = headstack("trace", "replay", "t.csv", CHEETAH, "-q")
    assert done.returncode == 0, done.stderr
    assert "490 of 500 requests arrive at the same time as the previous one" in done.stdout
    assert "since times have a resolution of 1s; they are issued as bursts" in done.stdout
    asap = headstack("trace", "replay", "t.csv", CHEETAH, "--mode", "asap", "--depth", "4", "-q")
    assert "issued as bursts" not in asap.stdout
    fine = [f"{1_577_808_144_360_767 + number * 20_000},419\n" for number in range(2)]
    (tmp_path / "f.csv").write_text(
        "".join(f"419,R,{n * 4096},4096,{line.split(',')[0]}\n" for n, line in enumerate(fine))
    )
    assert "arrive at the same time" not in headstack("trace", "replay", "f.csv", CHEETAH, "-q").stdout


def named(tmp_path: Path) -> Path:
    """A trace with names of a file, a device and processes."""
    path = tmp_path / "secret-project.csv"
    rows = [f"{n * 1000},vault{n % 2},{n * 4096 % 65536},4096,R,{4711 + n % 3},mysqld\n" for n in range(400)]
    path.write_text("ts,dev,off,len,op,pid,comm\n" + "".join(rows))
    return path


COLUMNS = "time=ts:us,device=dev,offset=off,length=len,op=op,pid=pid,process=comm"
NAMES = ("secret", "vault", "mysqld", "4711", "4712", "4713")


def test_a_twin_carries_no_names(headstack: Headstack, tmp_path: Path) -> None:
    named(tmp_path)
    done = headstack("trace", "synthesize", "secret-project.csv", "--columns", COLUMNS, "-o", "twin.parquet", "-q")
    assert done.returncode == 0, done.stderr
    told = json.loads(headstack("trace", "info", "twin.parquet", "--json", "-").stdout)["meta"]
    table = pl.read_parquet(tmp_path / "twin.parquet")
    text = (
        json.dumps(told) + str(table["device"].unique().to_list()) + str(table.select("pid", "process").unique().rows())
    )
    assert not [name for name in NAMES if name in text], text
    assert len(told["devices"]) == 2
    assert len(told["processes"]) == 3
    assert (tmp_path / "twin.parquet").read_bytes().find(b"mysqld") < 0
    done = headstack("trace", "synthesize", "secret-project.csv", "--columns", COLUMNS, "--scenario", "t.toml", "-q")
    assert done.returncode == 0, done.stderr
    assert not [name for name in NAMES if name in (tmp_path / "t.toml").read_text()]


def test_stripping_names_is_called_what_it_does(headstack: Headstack, tmp_path: Path) -> None:
    named(tmp_path)
    ways = ("secret-project.csv", "--columns", COLUMNS)
    done = headstack("trace", "import", *ways, "--step", "strip-names", "-o", "s.parquet", "-q")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "s.parquet").read_bytes().find(b"mysqld") < 0
    refused = headstack("trace", "import", *ways, "--step", "anonymise", "-o", "a.parquet")
    assert refused.returncode == 2
    assert "strip-names" in refused.stderr
    assert "may identify a trace" in refused.stderr


def test_what_other_programs_rewrite_is_read_again(tmp_path: Path) -> None:
    source = hs.Trace(str(SAMPLES / "msr.csv"))
    source.to_parquet(tmp_path / "t.parquet")
    before = hs.Trace(str(tmp_path / "t.parquet")).info()["summary"]
    pl.read_parquet(tmp_path / "t.parquet").write_parquet(tmp_path / "polars.parquet")
    with duckdb.connect() as connection:
        order = "device, length_bytes::BIGINT AS length_bytes, offset_bytes, operation, arrival_ns, response_ns"
        connection.execute(
            f"COPY (SELECT {order} FROM '{tmp_path}/t.parquet' ORDER BY arrival_ns) TO '{tmp_path}/duckdb.parquet'"
        )
    frame = pl.read_parquet(tmp_path / "t.parquet")
    frame.filter(pl.col("operation") == "read").write_parquet(tmp_path / "reads.parquet", compression="snappy")
    for name in ("polars", "duckdb"):
        told = hs.Trace(str(tmp_path / f"{name}.parquet")).info()
        assert told["summary"]["total"] == before["total"], name
        assert told["meta"]["clock"] == "unix"
        assert any("rewritten by" in note for note in told["meta"]["notes"]), told["meta"]
    reads = hs.Trace(str(tmp_path / "reads.parquet")).info()["summary"]["total"]["requests"]
    assert reads == {"read": before["total"]["requests"]["read"]}
    assert hs.Trace(str(tmp_path / "polars.parquet")).analyze().report["requests"] == frame.height


@pytest.mark.parametrize("method", ["gzip", "lz4", "brotli"])
def test_a_compression_that_is_not_read_is_named(method: str, tmp_path: Path) -> None:
    hs.Trace(str(SAMPLES / "msr.csv")).to_parquet(tmp_path / "t.parquet")
    frame = pl.read_parquet(tmp_path / "t.parquet")
    frame.write_parquet(tmp_path / "c.parquet", compression=method)  # type: ignore[arg-type]
    with pytest.raises(hs.InputError, match=f"is compressed with {method}.*; allowed: zstd, snappy or none$"):
        hs.Trace(str(tmp_path / "c.parquet")).info()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop("offset_bytes"), "it has no column offset_bytes"),
        (lambda frame: frame.sort("arrival_ns", descending=True), "in order of arrival_ns"),
        (
            lambda frame: frame.with_columns(pl.col("arrival_ns").cast(pl.Datetime("us"))),
            "column arrival_ns must be in ns",
        ),
        (lambda frame: frame.with_columns(length_bytes=pl.lit("x")), "column length_bytes must have numbers, not text"),
        (
            lambda frame: frame.with_columns(pl.col("arrival_ns").cast(pl.Float64)),
            "arrival_ns has type DOUBLE; allowed",
        ),
    ],
)
def test_what_is_no_stored_trace_any_more_is_refused(tmp_path: Path, change: object, message: str) -> None:
    hs.Trace(str(SAMPLES / "msr.csv")).to_parquet(tmp_path / "t.parquet")
    changed = change(pl.read_parquet(tmp_path / "t.parquet"))  # type: ignore[operator]
    changed.write_parquet(tmp_path / "c.parquet")
    with pytest.raises(hs.InputError, match=message) as refused:
        hs.Trace(str(tmp_path / "c.parquet")).info()
    assert str(refused.value).count("\n") == 0
