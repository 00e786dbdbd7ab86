"""What a trace is like: figures computed by hand, files that are written, and how bad input is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import headstack as hs
from conftest import CHEETAH, REPOSITORY, SHARED, Headstack, lacks, slow_but
from headstack.report.figures import Bars, Lines
from headstack.traces.analysis import Analysis

SAMPLES = REPOSITORY / "crates" / "trace" / "samples"
UNKNOWN = SAMPLES / "oracle-general.bin"
CLOUD_PHYSICS = SHARED / "traces" / "cloudphysics" / "cloudPhysicsIO.vscsi"

# Every 10 ms a request of 10 us: two reads of 4 KiB in sequence, a write of 8 KiB far off, the first read again.
LINES = """128166372000000000,hm,0,Read,0,4096,100
128166372000100000,hm,0,Read,4096,4096,100
128166372000200000,hm,0,Write,1048576,8192,100
128166372000300000,hm,0,Read,0,4096,100
"""


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """Four requests to one device."""
    path = tmp_path / "t.csv"
    path.write_text(LINES)
    return path


def cells(text: str, title: str) -> dict[str, list[str]]:
    """The rows of the table under a title: first cells and the others."""
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(title) and lines[i + 2].startswith("──"))
    rows = []
    for line in lines[start + 3 :]:
        if "  " not in line:
            break
        rows.append(line.split())
    return {row[0]: row[1:] for row in rows}


def test_tables_have_the_figures_computed_by_hand(headstack: Headstack, csv: Path) -> None:
    done = headstack("trace", "analyze", csv.name)
    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout
    assert "4 requests, from 2007-02-22 17:00:00 UTC, 30ms long" in text
    # Shares, bytes, mean size; requests and MB over the 30 ms.
    assert cells(text, "mix")["read"] == ["3", "75.0", "12KiB", "4KiB", "100", "0.41"]
    assert cells(text, "mix")["write"] == ["1", "25.0", "8KiB", "8KiB", "33.3", "0.273"]
    assert cells(text, "mix")["all"][:4] == ["4", "100.0", "20KiB", "5KiB"]
    assert cells(text, "sizes") == {"4KiB": ["3", "75.0", "3", "0"], "8KiB": ["1", "25.0", "0", "1"]}
    assert "gaps between arrivals: mean 10ms, median 10ms" in text
    # One of the three that could continue the one before does.
    assert cells(text, "sequential runs")["strict"][:3] == ["33.3", "3", "1.33"]
    assert cells(text, "sequential runs")["strict"][-4:] == ["33.3", "0.0", "0.0", "0.0"]
    # Two seeks: 1,040,384 bytes on, and 1,056,768 back.
    assert cells(text, "seeks") == {
        "forward": ["33.3", "0.0", "0.0", "33.3", "0.0", "0.0", "0.0", "0.0"],
        "backward": ["0.0", "0.0", "0.0", "0.0", "33.3", "0.0", "0.0", "0.0"],
    }
    assert cells(text, "alignment")["both"][2] == "100.0"
    assert "overlap with a request in flight: 0.0 %" in text
    assert cells(text, "working set")["whole"] == ["trace", "16KiB"]
    assert "read 8KiB, written 8KiB" in text
    # Three other blocks between the first and its second use: a hit in four blocks and not in three.
    assert cells(text, "re-use of blocks of 4KiB, exact") == {
        "4KiB": ["100.00"],
        "8KiB": ["100.00"],
        "12KiB": ["100.00"],
        "16KiB": ["80.00"],
    }
    assert "5 references to 4 blocks of 4KiB" in text
    assert cells(text, "requests in flight")["0"][1:] == ["4", "10us"]
    assert cells(text, "latency")["write"] == ["1", *6 * ["10us"]]
    assert "processes: not recorded" in text
    assert cells(text, "environment") == {
        "read": ["25.0", "50.0", "75.0"],
        "write": ["0.0", "25.0", "25.0"],
        "all": ["25.0", "75.0", "100.0"],
    }
    assert "sizes: 4KiB 75.0 %, 8KiB 25.0 %" in text
    assert "length of sequential runs: 1.33 requests" in text


def test_what_a_trace_does_not_say_is_not_a_figure(headstack: Headstack) -> None:
    text = headstack("trace", "analyze", str(UNKNOWN)).stdout
    for what in ("requests in flight", "latency", "processes", "environment"):
        assert f"\n{what}: not recorded" in text
    assert "overlap with a request in flight: not recorded" in text


def test_options_reach_the_analysis(csv: Path) -> None:
    trace = hs.Trace(csv)
    assert trace.analyze(reuse=None).report["reuse"] is None
    by_request = trace.analyze(reuse="request")
    assert by_request.report["reuse"] is not None
    assert by_request.report["reuse"]["block_bytes"] is None
    # Two other requests between the first and the same again.
    assert [by_request.miss_ratio(cache) for cache in (0, 2, 3, 9)] == [1, 1, 0.75, 0.75]
    coarse = trace.analyze(block="8KiB")
    assert coarse.report["working_set"] is not None
    assert coarse.report["working_set"]["touched_bytes"] == 16384
    assert [coarse.miss_ratio(cache) for cache in (4096, 8192, 16384)] == [1, 0.75, 0.5]
    assert trace.with_steps("kind=read").analyze().report["requests"] == 3
    with pytest.raises(hs.InputError, match="re-use was not counted"):
        trace.analyze(reuse=None).miss_ratio(1)


def test_a_sample_is_said_to_be_one(headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "t.trace").write_text(
        "".join(f"{index}.5 0 {index % 40_000 * 8} 8 1\n" for index in range(60_000)), encoding="ascii"
    )
    text = headstack("trace", "analyze", "t.trace", "--sample", "0.01").stdout
    assert "re-use of blocks of 4KiB, estimated from 1 block in 4: misses of an LRU cache" in text
    report = hs.Trace(tmp_path / "t.trace").analyze(sample=0.01).report["reuse"]
    # 40,000 blocks in a circle: a third of the uses is of a block used before, at the distance of all others.
    assert report is not None
    last = report["lru_curve"][-1]
    assert last["low"] is not None
    assert last["high"] is not None
    assert last["low"] <= 2 / 3 <= last["high"]
    assert abs(report["distinct"] - 40_000) < 2_000


def test_json_goes_round(headstack: Headstack, csv: Path, tmp_path: Path) -> None:
    done = headstack("trace", "analyze", csv.name, "--json", "a.json")
    assert done.returncode == 0, done.stderr
    found = hs.Trace(csv).analyze()
    loaded = Analysis.load(tmp_path / "a.json")
    assert loaded == found
    assert loaded.to_json() == (tmp_path / "a.json").read_text()
    assert headstack("trace", "analyze", csv.name, "--json", "-").stdout == found.to_json()
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(hs.InputError, match=r"b\.json: not an analysis"):
        Analysis.load(tmp_path / "b.json")


def test_an_analysis_of_before_the_time_axis_is_read(csv: Path, tmp_path: Path) -> None:
    told = json.loads(hs.Trace(csv).analyze().to_json())
    for key in ("timeline", "latency", "phases"):
        del told["report"][key]
    (tmp_path / "old.json").write_text(json.dumps(told | {"schema": 1}))
    loaded = Analysis.load(tmp_path / "old.json")
    assert loaded.report["timeline"]["bins"] == []
    names = {figure.name for section in loaded.to_report().sections for figure in section.figures}
    assert "rate" in names
    assert "times-over-time" not in names


def test_the_time_axis_is_told_in_tables_and_figures(headstack: Headstack, tmp_path: Path) -> None:
    # A read of 4 KiB each 100 ms for 4 s, at 1 ms, then for as long of the same places, ten times as slow.
    lines = [
        f"{128166372000000000 + n * 1_000_000},hm,0,Read,{n % 40 * 4096},4096,{10_000 if n < 40 else 100_000}\n"
        for n in range(80)
    ]
    (tmp_path / "t.csv").write_text("".join(lines))
    done = headstack("trace", "analyze", "t.csv")
    assert done.returncode == 0, done.stderr
    # Rates, then responses, then the share of blocks that were read before: none in the first half, all in the second.
    course = {line.split("  ")[0]: line.split()[-4:] for line in done.stdout.split("\n") if line.startswith("re")}
    assert course["reads p99"] == ["1ms", "1ms", "10ms", "4s"]
    assert course["re-used %"] == ["0.0", "0.0", "100.0", "4s"]
    assert "phases: not recorded" in done.stdout
    report = hs.Trace(tmp_path / "t.csv").analyze().to_report()
    shown = [figure for section in report.sections for figure in section.figures]
    figures = {figure.name: figure for figure in shown if isinstance(figure, Lines)}
    median, p99 = figures["times-over-time"].series
    assert [one.name for one in (median, p99)] == ["reads, median", "reads, p99"]
    known = [y for y in median.y if y is not None]
    assert [known[0], known[-1]] == pytest.approx([1.0, 10.0], rel=0.01)
    assert figures["distribution"].series[0].y[-1] == 100
    assert figures["set-over-time"].series[0].y[-1] == pytest.approx(40 * 4096 / 1e6)
    assert "phases" not in {figure.name for figure in shown}


def test_phases_are_told_by_the_names_of_btt(headstack: Headstack, tmp_path: Path) -> None:
    for name in ("sample.blktrace.0", "sample.blktrace.1"):
        (tmp_path / name).write_bytes((SAMPLES / name).read_bytes())
    files = ("sample.blktrace.0", "sample.blktrace.1")
    assert headstack("trace", "import", *files, "-o", "t.parquet").returncode == 0
    # What is stored knows as much.
    told = [headstack("trace", "analyze", *of).stdout.split("phases, named")[1] for of in (files, ("t.parquet",))]
    assert told[0].split("processes")[0] == told[1].split("processes")[0]
    # One of the sample's requests has a G, a us behind its Q; none has an I.
    assert "Q2G: queued to got" in told[0]
    assert "G2I, I2D: not recorded" in told[0]
    found = hs.Trace(*(tmp_path / name for name in files)).analyze()
    assert found.report["phases"] is not None
    q2g = found.report["phases"]["all"]["q2g"]
    assert (q2g["count"], q2g["mean_ns"]) == (1, 1000.0)
    shown = [figure for section in found.to_report().sections for figure in section.figures]
    (phases,) = (figure for figure in shown if isinstance(figure, Bars) and figure.name == "phases")
    assert phases.groups[0] == "Q2G: queued to got"


PICTURED = ["msr.csv", "oracle-general.bin", "sample.blktrace.0", "disksim.txt"]


@pytest.mark.parametrize("name", slow_but(PICTURED, "msr.csv", reason="each is drawn twice; msr.csv represents them"))
def test_a_picture_is_drawn_and_equal_twice(tmp_path: Path, name: str) -> None:
    found = hs.Trace(SAMPLES / name).analyze()
    found.plot(tmp_path / "a.png")
    found.plot(tmp_path / "b.png")
    png = (tmp_path / "a.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert len(png) > 50_000
    assert png == (tmp_path / "b.png").read_bytes()


def test_a_picture_names_trace_requests_and_span(headstack: Headstack, csv: Path, tmp_path: Path) -> None:
    done = headstack("trace", "analyze", csv.name, "--plot", "a.svg")
    assert done.returncode == 0, done.stderr
    # Letters are outlines; matplotlib keeps the text beside them.
    svg = (tmp_path / "a.svg").read_text()
    for text in ("t.csv", "4 requests in 30ms", "Addresses over time: reads", "Misses of an LRU cache (exact)"):
        assert f"<!-- {text}" in svg


def test_an_empty_trace_has_tables_and_a_picture(headstack: Headstack, csv: Path, tmp_path: Path) -> None:
    done = headstack("trace", "analyze", csv.name, "-s", "kind=trim", "--plot", "a.png")
    assert done.returncode == 0, done.stderr
    assert "0 requests" in done.stdout
    assert (tmp_path / "a.png").exists()


def test_the_workload_runs_and_has_the_mix(headstack: Headstack, csv: Path, tmp_path: Path) -> None:
    done = headstack("trace", "analyze", csv.name, "--workload", "w.toml")
    assert done.returncode == 0, done.stderr
    done = headstack("run", CHEETAH, "-w", "w.toml", "--requests", "2000", "--json", "-")
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)
    counts = {kind: run["kinds"][kind]["count"] for kind in ("read", "write")}
    assert counts["read"] / sum(counts.values()) == pytest.approx(0.75, abs=0.04)
    lines = hs.Workload.load(tmp_path / "w.toml").description["lines"]
    share = sum(line["share_percent"] * line["read_percent"] for line in lines) / 100
    sequential = sum(line["share_percent"] * (100 - line["random_percent"]) for line in lines) / 100
    assert (share, sequential) == (pytest.approx(75), pytest.approx(25))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--block", "4G"], "--block: "),
        (["--block", "1000B"], "block: must be a power of two from 512 to 2^30, not 1000"),
        (["--block", "8GiB"], "block: must be at most 2^30 bytes"),
        (["--sample", "0"], "sample: must be above 0 and up to 1, not 0"),
        (["--sample", "2"], "sample: must be above 0 and up to 1, not 2"),
        (["--sample", "few"], "--sample: 'few' is not a number"),
        (["--sample", "0.1", "--reuse", "off"], "--sample: needs re-use"),
        (["--reuse", "often"], "--reuse: 'often' is unknown; allowed: block, request, off"),
        (["--plot", "a.xyz"], "a.xyz: unknown picture format; allowed: png, svg, pdf"),
        (["--json", "nosuch/a.json"], "nosuch/a.json: the directory nosuch does not exist"),
        (["--json", "a", "--workload", "a"], "a: is named twice"),
        (["-s", "kind=reed"], "step: kind: must be one of"),
        (["nosuch.csv"], "nosuch.csv: there is no such file"),
    ],
)
def test_bad_input_is_one_line(headstack: Headstack, csv: Path, arguments: list[str], message: str) -> None:
    done = headstack("trace", "analyze", csv.name, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in csv.parent.iterdir()] == [csv.name]


def test_a_workload_that_cannot_be_is_one_line(headstack: Headstack, tmp_path: Path) -> None:
    done = headstack("trace", "analyze", str(UNKNOWN), "--workload", "w.toml", "--json", "a.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("headstack: oracle-general.bin: no workload: the trace does not record operations\n")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_extra_is_one_sentence(csv: Path) -> None:
    code = "import sys; sys.modules['matplotlib'] = None; from headstack.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "trace", "analyze", csv.name, "--plot", "p.png"]
    shown = subprocess.run(command, cwd=csv.parent, capture_output=True, text=True, check=False)
    assert shown.returncode == 2
    assert shown.stderr == "headstack: plots need matplotlib: pip install 'headstack[plot]'\n"


def test_tables_need_nothing_heavy(csv: Path) -> None:
    code = (
        "import sys, headstack.cli.main\n"
        "try: headstack.cli.main.main(sys.argv[1:])\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "trace", "analyze", csv.name]
    shown = subprocess.run(command, cwd=csv.parent, capture_output=True, text=True, check=True)
    assert "environment" in shown.stdout
    assert not {"duckdb", "matplotlib", "numpy", "rich"} & set(shown.stderr.split())


def test_a_real_trace_has_the_figures_that_other_programs_count(headstack: Headstack) -> None:
    if not CLOUD_PHYSICS.is_file():
        lacks("data", f"no {CLOUD_PHYSICS}")
    done = headstack("trace", "analyze", str(CLOUD_PHYSICS))
    assert done.returncode == 0, done.stderr
    assert cells(done.stdout, "mix")["read"][0] == "46,974"
    assert cells(done.stdout, "sizes")["64KiB"][0] == "38,389"
    assert "1,141,869 references to 269,210 blocks of 4KiB" in done.stdout
    reuse = json.loads(headstack("trace", "analyze", str(CLOUD_PHYSICS), "--json", "-").stdout)["report"]["reuse"]
    hits = {point["cache_bytes"]: point["hits"] for point in reuse["lru_curve"]}
    # As an independent program counts them.
    assert (hits[1 << 20], hits[1 << 30]) == (101_580, 872_630)


MSR = "{time},hm,0,{kind},{offset},{size},{response}\n"
DEGENERATE: dict[str, list[dict[str, object]]] = {
    "one request": [{}],
    "one request of no time": [{"response": 0}],
    "answered at once": [{"response": 0, "time": n} for n in range(5)],
    "all at once": [{} for _ in range(5)],
    "the same again and again": [{"time": 100_000 * n} for n in range(200)],
    "writes of no time, reads of some": [
        {"kind": kind, "response": 100 * (kind == "Read"), "time": 50_000 * n, "offset": 4096 * n}
        for n, kind in enumerate(["Read", "Write"] * 100)
    ],
    "some of no time": [{"response": 100 * (n % 3), "time": 10**8 * n, "offset": 4096 * n} for n in range(100)],
    "years apart": [{"time": 3 * 10**14 * n} for n in range(3)],
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_traces_of_constant_and_zero_figures_have_page_and_picture(
    name: str, headstack: Headstack, tmp_path: Path
) -> None:
    usual = {"time": 0, "kind": "Read", "offset": 0, "size": 4096, "response": 100}
    rows = [usual | one for one in DEGENERATE[name]]
    lines = [MSR.format(**row | {"time": 128166372000000000 + int(str(row["time"]))}) for row in rows]
    (tmp_path / "t.csv").write_text("".join(lines))
    done = headstack("trace", "analyze", "t.csv", "--html", "t.html", "--markdown", "t.md", "--plot", "t.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert "nan" not in done.stdout


RECORDED = (
    "blktrace/loop0_poisson1500_8s.blktrace.bin",
    "cloudphysics/cloudPhysicsIO.vscsi",
    "msr/msr-cambridge1-sample.csv",
    "systor17/systor17-traces-sample.csv",
)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_traces_have_page_and_picture(name: str, headstack: Headstack) -> None:
    path = SHARED / "traces" / name
    if not path.is_file():
        lacks("data", f"no {path}")
    done = headstack("trace", "analyze", path, "--html", "t.html", "--plot", "t.png", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
