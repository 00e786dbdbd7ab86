"""Reading fio's output: ten versions that were run for ``samples/fio``, and variants of other versions."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import Headstack
from headstack.measurement.fio.collected import fio_results
from headstack.measurement.fio.documents import documents
from headstack.measurement.fio.loads import FIELDS, Load, loads_in, loads_of
from headstack.measurement.fio.logs import read as read_log
from headstack.measurement.fio.logs import windowed

SAMPLES = Path(__file__).parent / "samples/fio"
VERSIONS = ("2.2.10", "3.1", "3.16", "3.25", "3.28", "3.33", "3.36", "3.38", "3.39", "3.41")
"""Each has carried out ``job.txt``: two jobs that mix reads and writes and flush, two that are reported as a group, and
large writes. 3.1, 3.25 and 3.41 wrote json+."""


def by_name(loads: list[Load]) -> dict[str, Load]:
    return {f"{load.row['jobname']} {load.row['kind']}": load for load in loads}


def raw_of(version: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SAMPLES / f"{version}.json").read_text())
    return document


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_read(version: str) -> None:
    loads = by_name(loads_of(SAMPLES / f"{version}.json"))
    assert list(loads) == ["mixed read", "mixed write", "grouped read", "large write"]
    rows = {name: load.row for name, load in loads.items()}
    assert rows["mixed read"]["requests"] + rows["mixed write"]["requests"] == 512
    assert (rows["grouped read"]["requests"], rows["large write"]["requests"]) == (512, 32)
    assert {row["version"] for row in rows.values()} == {version}
    assert [row["jobs"] for row in rows.values()] == [2, 2, 1, 1]
    for name, size in (("mixed read", 4096), ("grouped read", 4096), ("large write", 65536)):
        row = rows[name]
        assert row["mb_per_s"] * 1e6 / row["iops"] == pytest.approx(size, rel=0.01)
        assert 0 < row["min_ms"] <= row["mean_ms"] <= row["max_ms"] < 1000 or version == "2.2.10"
    for row in (rows["grouped read"], rows["large write"]):
        assert row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"] <= row["p999_ms"] <= 1.02 * row["max_ms"] + 0.01
    for load in loads.values():
        assert sum(load.shares.values()) == pytest.approx(100, abs=1)
    # Version 2 prints no options of jobs, and versions after 3.1 count flushes.
    stated = (rows["mixed read"]["rw"], rows["mixed read"]["rwmixread"], rows["large write"]["bs"])
    assert stated == ((None, None, None) if version == "2.2.10" else ("randrw", 70, "64k"))
    flushes = rows["mixed read"]["syncs"]
    assert (flushes > 0) == (version not in ("2.2.10", "3.1"))


@pytest.mark.parametrize("version", VERSIONS)
def test_latencies_have_their_unit(version: str) -> None:
    [large] = [load for load in loads_of(SAMPLES / f"{version}.json") if load.row["jobname"] == "large"]
    printed = raw_of(version)["jobs"][-1]["write"]
    mean_ms = printed["lat_ns"]["mean"] / 1e6 if "lat_ns" in printed else printed["lat"]["mean"] / 1e3
    assert large.row["mean_ms"] == pytest.approx(mean_ms)
    # A request of 64 KiB from memory takes some microseconds.
    assert 0.003 < large.row["mean_ms"] < 5


def test_jobs_of_one_load_are_joined() -> None:
    raw = [job["read"] for job in raw_of("3.25")["jobs"] if job["jobname"] == "mixed"]
    joined = by_name(loads_of(SAMPLES / "3.25.json"))["mixed read"]
    assert joined.row["iops"] == pytest.approx(sum(job["iops"] for job in raw))
    count = sum(job["total_ios"] for job in raw)
    mean_ms = sum(job["total_ios"] * job["lat_ns"]["mean"] for job in raw) / count / 1e6
    assert joined.row["mean_ms"] == pytest.approx(mean_ms)
    assert sum(joined.latency.bins.values()) == count
    below = sum(n for middle, n in joined.latency.bins.items() if middle <= joined.row["p50_ms"])
    assert below >= count / 2 > below - joined.latency.bins[joined.row["p50_ms"]]
    # Percentiles of two jobs together cannot be computed without bins.
    assert by_name(loads_of(SAMPLES / "3.33.json"))["mixed read"].row["p99_ms"] is None


def test_notes_before_and_after() -> None:
    [load] = loads_of(SAMPLES / "3.33-with-text.txt")
    assert (load.row["requests"], load.name) == (256, "randread 4k, depth 1")


def test_the_last_status_of_a_run_counts() -> None:
    text = (SAMPLES / "3.33-status.txt").read_text()
    assert text.count('"fio version"') > 2
    [load] = loads_of(SAMPLES / "3.33-status.txt")
    assert load.row["requests"] == 200
    # Consecutive runs stay separate.
    first = raw_of("3.33")
    later = copy.deepcopy(first)
    later["timestamp_ms"] += 60_000
    assert len(documents(json.dumps(first) + "\n" + json.dumps(later))) == 2


def test_reads_and_writes_that_fio_joined() -> None:
    [load] = loads_of(SAMPLES / "3.33-unified.json")
    assert (load.row["kind"], load.row["requests"]) == ("mixed", 256)
    assert load.row["p99_ms"] is not None


def changed(**fields: Any) -> dict[str, Any]:
    """A document of 3.33 with one job, changed by hand."""
    document = raw_of("3.33")
    document["jobs"] = [copy.deepcopy(document["jobs"][2])]
    document["jobs"][0]["read"] |= fields
    return document


def test_nan_and_inf_are_read_as_unknown() -> None:
    text = json.dumps(changed(iops_stddev=math.nan)).replace("NaN", "-nan").replace('"slat_ns"', '"x": inf, "slat_ns"')
    assert "-nan" in text
    [load] = loads_in(documents(text), "hand", "")
    assert load.row["requests"] == 512


def test_counts_beyond_32_and_53_bits() -> None:
    [load] = loads_in([changed(total_ios=(1 << 63) + 1)], "hand", "")
    assert load.row["requests"] == (1 << 63) + 1


def test_clients_of_a_server() -> None:
    document = changed()
    job_entry = document.pop("jobs")[0]
    document["client_stats"] = [
        job_entry | {"hostname": "a"},
        job_entry | {"hostname": "b"},
        job_entry | {"jobname": "All clients"},
    ]
    loads = loads_in(documents(json.dumps(document)), "hand", "")
    assert [load.row["requests"] for load in loads] == [512, 512]
    # Two files of the same clients are two runs, and later versions have the options of each.
    shared = [{"hostname": name, "port": 0, "bs": size} for name, size in (("a", "8k"), ("b", "16k"))]
    for job in document["client_stats"]:
        job["port"] = 0
        job["job options"] = {"rw": "randread"}
    document["global options"] = shared
    later = document | {name: document[name] + 3600 for name in ("timestamp",) if name in document}
    later["timestamp_ms"] = document.get("timestamp_ms", 0) + 3_600_000
    loads = loads_in(documents(json.dumps(document) + "\n" + json.dumps(later)), "hand", "")
    assert [(load.row["run"], load.row["host"], load.row["bs"]) for load in loads] == [
        (1, "a", "8k"),
        (1, "b", "16k"),
        (2, "a", "8k"),
        (2, "b", "16k"),
    ]


def test_clients_on_one_host_are_distinguished_by_port(headstack: Headstack, tmp_path: Path) -> None:
    sample = SAMPLES / "3.33-clients.json"
    loads = loads_of(sample)
    assert len(loads) == 6
    assert {load.row["host"] for load in loads} == {"127.0.0.1:8765", "127.0.0.1:8766"}
    assert all(load.row["requests"] in (93, 107, 200) for load in loads)
    assert loads[0].row["disk_util"] == "vda:0/0/0.0"
    found = hs.difference([sample, sample, sample], [sample, sample, sample])
    assert {cell.load for cell in found} == {load.name for load in loads}
    assert headstack("compare", "plot", str(sample), "-o", str(tmp_path)).returncode == 0
    assert list(tmp_path.glob("*.png"))


def test_runs_with_errors_are_named(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(json.dumps(changed()))
    failing = changed()
    failing["jobs"][0]["error"] = 5
    (tmp_path / "failing.json").write_text(json.dumps(failing))
    found = hs.difference(tmp_path / "failing.json", tmp_path / "good.json")
    named = f"some requests failed, the others are included: {tmp_path / 'failing.json'}"
    assert named in found.remarks


def test_a_steady_state_and_unknown_fields_do_no_harm() -> None:
    document = changed(new_field={"a": [1]})
    document["jobs"][0]["steadystate"] = {"ss": "iops:5%", "data": {"iops": [200], "bw": [1]}}
    assert len(loads_in([document], "hand", "")) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no fio JSON"),
        ("fio: job failed {\n", "no fio JSON"),
        ('{"jobs": [', "cut off"),
        ('note\n{\n  "fio version" : "fio-3.33",\n  "jobs" : [\n', "line 5"),
        ('{"a": 1}', "no fio JSON"),
        ('{"jobs": [{"read": {"total_ios": 3, "iops": "many"}}]}', "differs from fio's format"),
        ('{"jobs": [3]}', "differs from fio's format"),
    ],
)
def test_a_file_without_results_is_refused_by_name(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(hs.InputError, match=r"bad\.json") as refused:
        loads_of(tmp_path / "bad.json")
    assert why in str(refused.value)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As bench-fio leaves them: two devices, two patterns, depths and jobs, 196 files, and three that are none."""
    top = tmp_path_factory.mktemp("bench")
    for device, base in (("one", 7000.0), ("two", 9000.0)):
        for rw in ("randread", "randwrite"):
            for depth in (1, 2, 4, 8, 16, 32, 64):
                for jobs in (1, 2, 4, 8, 16, 32, 64):
                    document = changed(iops=min(base * depth * jobs**0.8, 9 * base), iops_stddev=50.0, iops_samples=9)
                    job = document["jobs"][0]
                    if rw == "randwrite":
                        job["read"], job["write"] = job["write"], job["read"]
                    job["job options"] = {"rw": rw, "bs": "4k", "iodepth": str(depth), "numjobs": str(jobs)}
                    path = top / device / "4k" / f"{rw}-{depth}-{jobs}.json"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(json.dumps(document))
    (top / "one/4k/randread-3-3.json").write_text('{"jobs": [')
    (top / "one/4k/empty.json").write_text("")
    (top / "two/notes.txt").write_text("by night\n")
    return top


def test_a_folder_of_two_hundred_files_is_read_and_bad_ones_are_named(bench: Path) -> None:
    collection = fio_results(bench)
    assert len(collection) == 196
    assert {Path(line.partition(": ")[0]).name for line in collection.bad} == {
        "randread-3-3.json",
        "empty.json",
        "notes.txt",
    }
    assert {load.row["folder"] for load in collection} == {"one/4k", "two/4k"}
    rows = collection.to_csv().splitlines()
    assert rows[0].split(",") == [field.name for field in FIELDS]
    assert len(rows) == 197
    for load in collection:
        stem = f"{load.row['rw']}-{load.row['iodepth']}-{load.row['numjobs']}"
        assert Path(load.row["source"]).stem == stem


def test_file_names_supply_the_options_that_version_2_omits(tmp_path: Path) -> None:
    (tmp_path / "randread-16-4.json").write_text((SAMPLES / "2.2.10.json").read_text())
    assert {load.row["iodepth"] for load in loads_of(tmp_path / "randread-16-4.json")} == {16}


def test_pictures_of_a_folder(bench: Path, tmp_path: Path, headstack: Headstack) -> None:
    figures = {f.name: f for section in fio_results(bench).report().sections for f in section.figures}
    grid = figures["iops-map-one-4k--randread-4k"]
    assert grid.kind == "grid"
    assert (len(grid.rows), len(grid.columns)) == (7, 7)
    assert grid.values[0][0] == 7000
    lines = figures["mean-ms-two-4k--randwrite-4k"]
    assert lines.kind == "lines"
    assert [series.name for series in lines.series][:2] == ["1 job", "2 jobs"]
    bars = figures["beside-iops"]
    assert bars.kind == "bars"
    assert [series.name for series in bars.series] == ["one/4k", "two/4k"]
    assert (bars.series[0].low[0], bars.series[0].high[0]) == (6950, 7050)
    done = headstack("compare", "plot", str(bench), "-o", "pictures", "--html", "page.html", "--json", "all.json")
    assert done.returncode == 0, done.stderr
    assert "196 results from 196 files, 3 could not be read." in done.stdout
    assert (tmp_path / "pictures/percentiles.png").read_bytes()[:4] == b"\x89PNG"
    assert len(list((tmp_path / "pictures").iterdir())) == len(figures) - 1
    assert "randread" in (tmp_path / "page.html").read_text()
    assert len(json.loads((tmp_path / "all.json").read_text())["loads"]) == 196


def test_folders_of_fio_are_compared_load_by_load(bench: Path) -> None:
    found = hs.difference(bench / "one", bench / "two", figures="throughput")
    assert len(found) == 98
    # A run of each says by how much, but not whether that is the device.
    assert {cell.verdict for cell in found} == {"too short"}
    assert found.cells[0].estimate.log == pytest.approx(math.log(7 / 9))


def test_logs_of_jobs_are_drawn_over_time(tmp_path: Path) -> None:
    (tmp_path / "w_bw.1.log").write_text("500, 1000, 0, 0, 0\n500, 2000, 1, 0, 0\n1000, 3000, 0, 0, 0\n")
    (tmp_path / "w_lat.2.log").write_text("1, 2000000, 0, 4096\n2, 4000000, 0, 4096, 8192, 0x0004, 77\n")
    (tmp_path / "w_slat.1.log").write_text("")
    (tmp_path / "w_clat_hist.1.log").write_text("1000, 0, 4096, 1, 2, 3\n")
    found = fio_results(tmp_path)
    assert [(log.measure, log.job, log.unit) for log in found.logs] == [("bw", 1, "MB/s"), ("lat", 2, "ms")]
    assert [at_s for at_s, _ in found.logs[0].entries["read"]] == [0.5, 1.0]
    assert [value for _, value in found.logs[0].entries["read"]] == pytest.approx([1.024, 3.072])
    assert found.logs[1].entries["read"] == [(0.001, 2.0), (0.002, 4.0)]
    assert ["w_clat_hist" in line for line in found.bad] == [True]
    [bandwidth, latency] = [figure for section in found.report().sections for figure in section.figures]
    assert bandwidth.kind == "lines"
    assert [series.name for series in bandwidth.series] == ["w job 1, reads", "w job 1, writes"]
    assert latency.name == "log-lat"
    (tmp_path / "x_iops.log").write_text("1, 2\n")
    with pytest.raises(hs.InputError, match=r"x_iops\.log: line 1"):
        read_log(tmp_path / "x_iops.log")


def test_long_logs_are_means_of_windows() -> None:
    entries = [(n / 1000, float(n % 2)) for n in range(1, 10_001)]
    shown = windowed(entries)
    assert len(shown) == 300
    assert all(0.4 < value < 0.6 for _, value in shown)
    assert windowed(entries[:300]) == entries[:300]
