"""`headstack FILE`: what a file is, and the command that takes it; and `compare` of whatever is named."""

from __future__ import annotations

import json
import random
import shlex
from pathlib import Path

import pytest

import headstack as hs
from conftest import CHEETAH, REPOSITORY, Headstack
from headstack.cli.recognition import recognize

SAMPLES = REPOSITORY / "tests/python/samples"
CATALOGUE = REPOSITORY / "catalogue"
IOSTAT = """Linux 6.1.0 (db1) 	11/30/26 	_x86_64_	(8 CPU)

11/30/26 00:00:10
Device         r/s   rkB/s  rrqm/s  %rrqm r_await rareq-sz   w/s   wkB/s  wrqm/s  %wrqm w_await wareq-sz  %util
sda           1.00   16.00    0.00   0.00    5.00    16.00  2.00   32.00    0.00   0.00    6.00    16.00   2.00
"""
JOB = "[reads]\nrw=randread\nsize=64M\nnumber_ios=100\n"
VDBENCH = "sd=sd1,lun=data.bin,size=64m\nwd=wd1,sd=sd1,xfersize=4k,rdpct=100\nrd=rd1,wd=wd1,iorate=max,elapsed=2\n"


def write_fio(path: Path, iops: float, ended_s: int = 5, depths: tuple[int, ...] = (1,)) -> str:
    """Writes fio JSON of random reads, with a throughput that varies by 1 % from file to file."""
    draw, jobs = random.Random(path.name), []
    for depth in depths:
        rate = iops * depth * draw.gauss(1, 0.01)
        mean_ns = 1e9 * depth / rate
        lat = {"min": 1, "max": 9 * mean_ns, "mean": mean_ns, "stddev": mean_ns, "N": 999, "percentile": {}}
        lat["percentile"] = {"50.000000": 0.9 * mean_ns, "99.000000": 2 * mean_ns}
        read = {"iops": rate, "bw_bytes": rate * 4096, "runtime": 60_000, "total_ios": 999, "lat_ns": lat}
        read |= {"clat_ns": lat, "iops_samples": 120, "iops_stddev": 0.04 * rate}
        options = {"rw": "randread", "bs": "4k", "iodepth": str(depth)}
        jobs.append({"jobname": "x", "job options": options, "read": read})
    path.write_text(json.dumps({"fio version": "fio-3.33", "timestamp_ms": 1000 * ended_s, "jobs": jobs}))
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of each kind."""
    folder = tmp_path_factory.mktemp("kinds")
    results = hs.run(CHEETAH, "file-server", depth=[1, 4], requests=300, warm_up=0, record=None)
    results.to_json(folder / "results.json")
    results.to_csv(folder / "results.csv")
    hs.run(CHEETAH, "file-server", requests=300, warm_up=0, record=folder / "trace.parquet")
    (folder / "job.fio").write_text(JOB)
    (folder / "job.vdbench").write_text(VDBENCH)
    (folder / "iostat.log").write_text(IOSTAT)
    write_fio(folder / "fio.json", 1000)
    (folder / "text.out").write_text("a: (g=0): rw=read\nfio-3.1\n  read: IOPS=1200, BW=4\n")
    (folder / "table.csv").write_text("a,b,c\n1,2,3\n")
    (folder / "image.bin").write_bytes(bytes(1 << 16))
    (folder / "notes.txt").write_text("nothing of this kind\n")
    (folder / "empty").write_text("")
    return folder


@pytest.mark.parametrize(
    ("name", "kind", "command"),
    [
        ("results.json", "results", "headstack compare {}"),
        ("results.csv", "results", "headstack compare {}"),
        ("fio.json", "fio", "headstack compare {}"),
        ("trace.parquet", "trace", "headstack trace analyze {}"),
        ("job.fio", "fio job file", "headstack measure --fio {} --parse-only"),
        ("job.vdbench", "vdbench job file", "headstack measure --vdbench {} --parse-only"),
        ("iostat.log", "monitoring", "headstack judge {}"),
        ("image.bin", "image", "headstack measure {}"),
        (SAMPLES / "inspect/disk.smartctl.json", "inspection", "headstack inspect {}"),
        (SAMPLES / "inspect/disk.smartctl.txt", "inspection", "headstack inspect {}"),
        (SAMPLES / "inspect/failing", "inspection", "headstack inspect {}"),
        (SAMPLES / "fio/3.33-with-text.txt", "fio", "headstack compare {}"),
        (CATALOGUE / "drives/990-pro-2tb.toml", "drive", "headstack run {} -w oltp-8k"),
        (CATALOGUE / "arrays/jbod-24-raid60.toml", "array", "headstack run {} -w oltp-8k"),
        (CATALOGUE / "workloads/oltp-8k.toml", "workload", "headstack run 990-pro-2tb -w {}"),
        (REPOSITORY / "crates/trace/samples/msr.csv", "trace", "headstack trace analyze {}"),
        (REPOSITORY / "crates/trace/samples/mqsim.txt", "trace", "headstack trace analyze {}"),
    ],
)
def test_a_file_is_named_with_its_command(
    name: str | Path, kind: str, command: str, files: Path, headstack: Headstack
) -> None:
    path = str(files / name)
    recognized = recognize(path)
    assert recognized is not None
    assert (recognized.kind, recognized.command) == (kind, command.format(path))
    done = headstack(path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path}: {recognized.title}: {recognized.command}\n"


@pytest.mark.parametrize("name", ["results.json", "fio.json", "trace.parquet", "job.fio", "job.vdbench"])
def test_the_printed_command_takes_the_file(name: str, files: Path, headstack: Headstack) -> None:
    recognized = recognize(str(files / name))
    assert recognized is not None
    words = shlex.split(recognized.command)
    assert words[0] == "headstack"
    done = headstack(*words[1:])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("notes.txt", "notes.txt: not recognized"),
        ("empty", "empty: not recognized"),
        ("text.out", "fio output as text; repeat it as JSON: fio --output-format=json"),
        ("table.csv", "CSV table; declare its columns"),
    ],
)
def test_other_files_are_a_usage_error(name: str, message: str, files: Path, headstack: Headstack) -> None:
    done = headstack(str(files / name))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_command_comes_before_a_file_of_its_name(headstack: Headstack, tmp_path: Path) -> None:
    write_fio(tmp_path / "demo", 1000)
    assert headstack("./demo").stdout.startswith("./demo: fio JSON: 1 load of fio 3.33: ")
    assert "Usage: headstack demo" in headstack("demo", "--help").stdout
    unknown = headstack("nosuch.json")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("headstack: No such command 'nosuch.json'; commands: catalog, ")


def test_two_runs_of_fio_have_an_answer_and_a_next_step(headstack: Headstack, tmp_path: Path) -> None:
    for name, iops in (("before.json", 10_000), ("after.json", 12_000)):
        write_fio(tmp_path / name, iops)
    done = headstack("compare", "before.json", "after.json")
    assert done.returncode == 0, done.stderr
    first = done.stdout.partition("\n")[0]
    assert first.startswith("not enough data for a verdict: after.json has ")
    assert " higher throughput than before.json (" in first
    assert "from the variation within the runs), but one run of each does not show how much runs vary" in first
    assert "headstack compare after*.json --against before*.json" in done.stdout
    assert len([line for line in done.stdout.splitlines() if line.startswith("note: ")]) <= 3


def test_repeats_are_two_sides_by_name_or_folder(headstack: Headstack, tmp_path: Path) -> None:
    names = []
    for n in range(1, 6):
        for side, iops in (("before", 10_000), ("after", 12_000)):
            (tmp_path / side).mkdir(exist_ok=True)
            write_fio(tmp_path / f"{side}{n}.json", iops, 10 * n + 5 * (side == "after"))
            write_fio(tmp_path / side / f"{n}.json", iops, 10 * n + 5 * (side == "after"))
            names.append(f"{side}{n}.json")
    done = headstack("compare", *names, "--json", "out.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("after* is faster than before*: throughput ")
    assert " % higher (95 % interval " in done.stdout.partition("\n")[0]
    rows = json.loads((tmp_path / "out.json").read_text())["figures"]
    assert rows[0]["difference_low"] < 0.2 < rows[0]["difference_high"]
    assert headstack("compare", "before", "after").stdout.startswith("after is faster than before: throughput ")
    assert headstack("compare", "after", "before").stdout.startswith("before is slower than after: throughput ")
    same = headstack("compare", *(name for name in names if name.startswith("before")))
    assert same.stdout.startswith("before*: throughput ")
    assert "over 5 runs, which vary by " in same.stdout.partition("\n")[0]
    write_fio(tmp_path / "other.json", 1)
    refused = headstack("compare", *names, "other.json")
    assert refused.returncode == 2
    assert "3 sets of runs (before*, after*, other.json)" in refused.stderr


def test_fio_is_compared_with_predictions(headstack: Headstack, tmp_path: Path) -> None:
    write_fio(tmp_path / "fio.json", 100, depths=(1, 4))
    hs.run(CHEETAH, size="4KiB", depth=[1, 4], requests=300).to_json(tmp_path / "model.json")
    for words in (("fio.json", "model.json"), ("model.json", "fio.json"), ("fio.json", CHEETAH)):
        done = headstack("compare", *words, "--json", "out.json", "--quiet")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"predicted throughput of {CHEETAH} differs by ")
        points = json.loads((tmp_path / "out.json").read_text())["points"]
        assert [point["load"] for point in points] == ["depth 1", "depth 4"]


def test_fio_and_measured_results_match_by_load(headstack: Headstack, tmp_path: Path) -> None:
    write_fio(tmp_path / "fio.json", 1000, depths=(1, 4))
    hs.measure("null:1ms", size="4KiB", depth=[1, 4], requests=50).to_json(tmp_path / "ours.json")
    done = headstack("compare", "fio.json", "ours.json", "--csv", "out.csv")
    assert done.returncode == 0, done.stderr
    assert "random reads of 4KiB, depth 4" in (tmp_path / "out.csv").read_text()


def test_a_file_of_another_kind_is_named_with_its_command(files: Path, headstack: Headstack) -> None:
    for name, command in (
        ("trace.parquet", "headstack trace analyze"),
        ("iostat.log", "headstack judge"),
        ("job.fio", "headstack measure --fio"),
        ("text.out", "fio --output-format=json"),
    ):
        for words in ((name, "fio.json"), ("fio.json", name), ("fio.json", "--against", name)):
            done = headstack("compare", *(str(files / word) if "." in word else word for word in words))
            assert (done.returncode, done.stdout) == (2, "")
            assert f"which compare does not take; use: {command}" in done.stderr
    drive = str(CATALOGUE / "drives/990-pro-2tb.toml")
    done = headstack("compare", drive, str(files / "fio.json"))
    assert done.returncode == 2
    assert f"{drive}: description of a drive, which compare does not take; use: headstack run {drive}" in done.stderr


def test_the_help_of_compare_has_a_whole_example(headstack: Headstack) -> None:
    for words in (("compare", "--help"), ("compare", "--help", "--all")):
        shown = headstack(*words).stdout
        assert "headstack compare before.json after.json" in shown
    assert "fio --name=a" in shown
