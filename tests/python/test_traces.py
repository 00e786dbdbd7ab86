"""Traces from the command line and from Python: import, export, transform, split; what is refused, and how."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import polars as pl
import pytest

import headstack as hs
from conftest import REPOSITORY, Headstack
from headstack.cli.traces.traces import STEPS
from headstack.traces.traces import export_formats, format_lines, formats

SAMPLES = REPOSITORY / "crates" / "trace" / "samples"
MSR = SAMPLES / "msr.csv"

LINES = [
    "128166372003061629,hm,0,Read,8192,4096,100",
    "128166372003161629,hm,1,Write,4096,512,200",
    "128166372004061629,prxy,0,Read,0,65536,300",
]


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """Three requests to three devices."""
    path = tmp_path / "t.csv"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


def test_import_gives_a_parquet_file_that_any_tool_reads(headstack: Headstack, csv: Path, tmp_path: Path) -> None:
    done = headstack("trace", "import", "t.csv", "-o", "t.parquet")
    assert (done.returncode, done.stdout) == (0, "t.parquet: 3 requests\n"), done.stderr
    path = tmp_path / "t.parquet"
    columns = "arrival_ns, operation, offset_bytes, length_bytes, device, pid"
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT {columns} FROM '{path}'").fetchall()
    first_ns = (128166372003061629 - 116444736000000000) * 100
    assert rows == [
        (first_ns, "read", 8192, 4096, "hm.0", None),
        (first_ns + 10_000_000, "write", 4096, 512, "hm.1", None),
        (first_ns + 100_000_000, "read", 0, 65536, "prxy.0", None),
    ]
    frame = pl.read_parquet(path)
    assert frame["response_ns"].to_list() == [10_000, 20_000, 30_000]
    assert frame["wait_ns"].to_list() == [None, None, None]


def test_every_format_of_the_samples_is_told_by_content(headstack: Headstack) -> None:
    told = set()
    for path in sorted(SAMPLES.iterdir()):
        if path.name != "csv.csv":
            meta = hs.Trace(path).info()["meta"]
            told.add(meta["origin"][0]["format"])
    assert told == set(formats()) - {"csv", "parquet"}
    listed = headstack("trace", "formats").stdout
    assert all(name in listed for name in formats())
    assert "128166372003061629,hm,0,Read,383496192,32768,566" in listed


def test_every_format_has_its_row_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "trace-formats.md").read_text()
    for name, line in format_lines().items():
        assert f"| `{name}` |" in page or name == "csv", name
        assert line.startswith("(") or f"`{line}`" in page, line


def test_columns_are_declared_in_files(headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("1.5 a k1 rd\n2.5 b k2 wr\n3.5 a k1 rd\n")
    (tmp_path / "tables").mkdir()
    own = 'separator = "blank"\ntime = "1:ms"\ndevice = "2"\nkey = "3"\nblock = 512\nop = "4"\ncolumns = 4\n'
    (tmp_path / "tables" / "own.toml").write_text(own)
    (tmp_path / "tables" / "other.toml").write_text(own.replace("columns = 4", "columns = 5"))
    for columns in ("tables/own.toml", "tables"):
        done = headstack("trace", "import", "app.log", "--columns", columns, "-o", "own.parquet")
        assert done.returncode == 0, done.stderr
        frame = pl.read_parquet(tmp_path / "own.parquet")
        assert frame["arrival_ns"].to_list() == [1_500_000, 2_500_000, 3_500_000]
        offsets = frame["offset_bytes"].to_list()
        assert offsets[0] == offsets[2] != offsets[1]
    (tmp_path / "tables" / "own.toml").write_text(own + 'when = "1"\n')
    done = headstack("trace", "info", "app.log", "--columns", "tables/own.toml")
    assert (done.returncode, "own.toml: `when` must be time, offset" in done.stderr) == (2, True), done.stderr
    (tmp_path / "tables" / "own.toml").unlink()
    done = headstack("trace", "info", "app.log", "--columns", "tables")
    assert "no table in it matches app.log" in done.stderr


def test_a_file_of_no_format_is_told_its_nearest(headstack: Headstack, tmp_path: Path) -> None:
    line = "128166372003061629,hm,0,{},383496192,32768,566\n"
    (tmp_path / "odd.csv").write_text(line.format("rd") * 3)
    done = headstack("trace", "info", "odd.csv")
    assert "looks most like msr" in done.stderr
    assert "line 1, field 4: type must be Read or Write, not `rd`" in done.stderr


def test_compressed_files_are_read_as_they_are(csv: Path, tmp_path: Path) -> None:
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(csv.read_bytes()))
    assert hs.Trace(packed).info()["summary"] == hs.Trace(csv).info()["summary"]


def test_declared_columns(headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("ts;lba;sectors;rw;ms\n10;8;16;R;1.5\n2010;0;1;W;0.25\n")
    columns = "time=ts:us,offset=lba:512,length=sectors:512,op=rw,response=ms:ms,separator=;"
    done = headstack("trace", "import", "own.csv", "--columns", columns, "-o", "own.parquet")
    assert done.returncode == 0, done.stderr
    frame = pl.read_parquet(tmp_path / "own.parquet")
    assert frame["arrival_ns"].to_list() == [10_000, 2_010_000]
    assert frame["offset_bytes"].to_list() == [4096, 0]
    assert frame["length_bytes"].to_list() == [8192, 512]
    assert frame["response_ns"].to_list() == [1_500_000, 250_000]


@pytest.mark.parametrize("format", export_formats())
def test_what_is_exported_is_imported_again(csv: Path, tmp_path: Path, format: str) -> None:
    written = hs.Trace(csv).export(tmp_path / "out", format)
    assert written["requests"] == 3
    again = hs.Trace(tmp_path / "out").info()
    assert again["meta"]["origin"][0]["format"] == format
    total = again["summary"]["total"]
    assert total["requests"] == {"read": 2, "write": 1}
    assert total["bytes"] == {"read": 69632, "write": 512}
    assert total["arrivals_ns"] is not None
    assert total["arrivals_ns"][1] - total["arrivals_ns"][0] == 100_000_000


def test_what_a_format_cannot_hold_is_said(headstack: Headstack, csv: Path) -> None:
    done = headstack("trace", "export", "t.csv", "-o", "t.iolog", "--to", "iolog")
    assert done.returncode == 0, done.stderr
    assert "lost: 3 response times" in done.stdout


def test_steps_are_carried_out_in_their_order_and_recorded(headstack: Headstack, csv: Path, tmp_path: Path) -> None:
    steps = ["-s", "kind=read", "-s", "time-scale=0.5", "-s", "clip=0-10KB"]
    done = headstack("trace", "import", "t.csv", "-o", "t.parquet", *steps)
    assert "step: kind=read\nstep: time-scale=0.5\nstep: clip=0B-10KB" in done.stdout, done.stderr
    frame = pl.read_parquet(tmp_path / "t.parquet")
    first_ns, second_ns = frame["arrival_ns"]
    assert second_ns - first_ns == 50_000_000
    assert frame["length_bytes"].to_list() == [1808, 10_000]
    again = hs.Trace(tmp_path / "t.parquet").with_steps("first=1")
    assert again.info()["meta"]["steps"] == ["kind=read", "time-scale=0.5", "clip=0B-10KB", "first=1"]


def test_steps_of_the_help_are_steps(headstack: Headstack, csv: Path) -> None:
    for example, _ in STEPS:
        assert hs.Trace(csv, steps=[example]).info()["meta"]["steps"], example
    assert all(example in headstack("trace", "steps").stdout for example, _ in STEPS)


def test_split_and_merge(headstack: Headstack, csv: Path, tmp_path: Path) -> None:
    done = headstack("trace", "split", "t.csv", "-o", "parts")
    assert done.stdout.splitlines() == [f"parts/{d}.parquet: {d}" for d in ("hm.0", "hm.1", "prxy.0")], done.stderr
    parts = sorted((tmp_path / "parts").iterdir())
    assert [path.name for path in parts] == ["hm.0.parquet", "hm.1.parquet", "prxy.0.parquet"]
    hs.Trace(*reversed(parts)).to_parquet(tmp_path / "merged.parquet")
    hs.Trace(csv).to_parquet(tmp_path / "whole.parquet")
    columns = ["arrival_ns", "device", "offset_bytes"]
    merged, whole = (pl.read_parquet(tmp_path / f"{name}.parquet").select(columns) for name in ("merged", "whole"))
    assert merged.equals(whole)


def test_a_folder_of_a_split_is_the_trace(headstack: Headstack, tmp_path: Path) -> None:
    # More devices than files are read side by side, with names that no file has, or two would have.
    names = [f"vol/{i}" if i % 2 else f"VOL_{i - 1}" for i in range(70)]
    rows = [(i * i % 70, i) for i in range(3000)]
    lines = [f"{names[device]},{'R' if i % 3 else 'W'},{i * 4096},4096,{i / 1000:.6f}" for device, i in rows]
    (tmp_path / "t.csv").write_text("device,op,offset,bytes,at\n" + "\n".join(lines) + "\n")
    columns = "time=at:s,offset=offset,length=bytes,op=op,device=device"
    done = headstack("trace", "split", "t.csv", "--columns", columns, "-o", "volumes", "-q")
    assert done.returncode == 0, done.stderr
    used = {device for device, _ in rows}
    assert len(done.stdout.splitlines()) == len(used) == len(list((tmp_path / "volumes").iterdir()))
    one = pl.read_parquet(hs.Trace(tmp_path / "t.csv", columns=columns).split(tmp_path / "again")["vol/1"])
    assert one["offset_bytes"].to_list() == [i * 4096 for device, i in rows if device == 1]
    assert set(one["device"]) == {"vol/1"}
    whole = hs.Trace(tmp_path / "t.csv", columns=columns).analyze().report
    folder = hs.Trace(tmp_path / "volumes").analyze().report
    # The order of names is another, and so is that of devices.
    for report in (whole, folder):
        report["devices"].sort(key=lambda device: device["name"])
        report["environment"]["workload_toml"] = None
    assert folder == whole
    told = headstack("trace", "info", "volumes", "-s", "device=vol/1", "--json", "-")
    assert sum(json.loads(told.stdout)["summary"]["total"]["requests"].values()) == len(one)
    (tmp_path / "empty").mkdir()
    refused = headstack("trace", "info", "empty")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "*.parquet" in refused.stderr


def test_info_says_when_and_where(headstack: Headstack, csv: Path) -> None:
    done = headstack("trace", "info", "t.csv")
    assert "MSR Cambridge" in done.stdout
    assert "from 2007-02-22 17:00:00 UTC, 100ms long" in done.stdout
    assert [line.split()[:4] for line in done.stdout.splitlines() if line.startswith(("hm", "prxy", "all"))] == [
        ["hm.0", "1", "1", "0"],
        ["hm.1", "1", "0", "1"],
        ["prxy.0", "1", "1", "0"],
        ["all", "3", "2", "1"],
    ]
    told = json.loads(headstack("trace", "info", "t.csv", "--json", "-").stdout)
    assert told["summary"]["total"]["highest_end_byte"] == 65536


def broken(csv: Path, number: int, line: str) -> None:
    lines = [*LINES]
    lines[number - 1] = line
    csv.write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    ("number", "line", "message"),
    [
        (2, "128166372003161629,hm,1,Write,4096,512", "t.csv:2: 6 columns"),
        (2, "128166372003161629,hm,1,Wrote,4096,512,200", "t.csv:2: type: must be Read or Write, not `Wrote`"),
        (2, "128166372003161629,hm,1,Write,9223372036854775808,512,200", "t.csv:2: offset: "),
        (2, "128166372003161629,hm,1,Write,4096,4294967296,200", "t.csv:2: size: "),
        (2, "12816637200316,hm,1,Write,4096,512,200", "t.csv:2: timestamp: "),
        (3, "128166372004061629,prxy", "t.csv:3: 2 columns"),
    ],
)
def test_bad_lines_are_refused_or_counted(
    headstack: Headstack, csv: Path, tmp_path: Path, number: int, line: str, message: str
) -> None:
    broken(csv, number, line)
    refused = headstack("trace", "import", "t.csv", "-o", "t.parquet")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"headstack: {message}"), refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"], "nothing half-done is left"
    skipped = headstack("trace", "import", "t.csv", "-o", "t.parquet", "--skip-bad")
    assert skipped.returncode == 0, skipped.stderr
    assert "t.parquet: 2 requests\nskipped: 1 invalid lines or records" in skipped.stdout
    assert message in skipped.stdout


def test_time_going_back_where_the_format_forbids_it(headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "t.trace").write_text("1.5 0 8 8 1\n0.5 0 16 8 0\n2.5 0 24 8 1\n")
    refused = headstack("trace", "info", "t.trace")
    assert refused.returncode == 2
    assert refused.stderr.startswith("headstack: t.trace:2: time: ")
    skipped = headstack("trace", "info", "t.trace", "--skip-bad")
    assert "skipped: 1 invalid lines" in skipped.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "nosuch.csv"], "nosuch.csv: there is no such file"),
        (["info", "empty"], "empty: the file is empty"),
        (["info", "."], ".: is a directory without stored traces"),
        (["info", "prose"], "prose: is in no known format"),
        (["info", "t.csv", "--format", "nosuch"], "format: `nosuch` is unknown; allowed: parquet, "),
        (["info", "t.csv", "--format", "spc"], "t.csv:1: "),
        (["info", "t.csv", "-s", "kind=reed"], "step: kind: must be one of read, write"),
        (["info", "t.csv", "-s", "sort"], "step: `sort` is not a step; allowed: kind="),
        (["info", "t.csv", "--columns", "time=1"], "columns: "),
        (["info", "t.csv", "--at", "noon"], "at: must be queue or issue"),
        (["info", "t.csv", "--sector", "4G"], "--sector: "),
        (["import", "t.csv", "-o", "nosuch/t.parquet"], "nosuch/t.parquet: the directory nosuch does not exist"),
        (["export", "t.csv", "-o", "x", "--to", "nosuch"], "to: `nosuch` is unknown; allowed: blkparse"),
        (["import", "t.csv"], "Missing option '-o'"),
    ],
)
def test_bad_input_gets_one_line(headstack: Headstack, csv: Path, arguments: list[str], message: str) -> None:
    (csv.parent / "empty").touch()
    (csv.parent / "prose").write_text("Call me Ishmael.\nSome years ago\n")
    done = headstack("trace", *arguments)
    assert done.returncode == 2, done
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_stopped_import_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C in mid-import."""
    line = "{},hm,0,Read,{},4096,100\n"
    with open(tmp_path / "long.csv", "w", encoding="ascii") as file:
        file.writelines(line.format(128166372003061629 + 10_000 * i, 4096 * (i % 999)) for i in range(3_000_000))
    command = [sys.executable, "-c", "from headstack.cli.main import main; main()"]
    command += ["trace", "import", "long.csv", "-o", "long.parquet"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    for _ in range(400):
        if any(".partial" in path.name for path in tmp_path.iterdir()):
            break
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert (running.returncode, told.strip()) == (130, "headstack: interrupted; nothing is written")
    assert [path.name for path in tmp_path.iterdir()] == ["long.csv"]


def test_a_file_that_changes_its_format_is_refused_at_that_line(headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "mixed.csv").write_bytes(MSR.read_bytes() + (SAMPLES / "spc.csv").read_bytes())
    line = len(MSR.read_text().splitlines()) + 1
    refused = headstack("trace", "info", "mixed.csv")
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"headstack: mixed.csv:{line}: "), refused.stderr
    skipped = headstack("trace", "info", "mixed.csv", "--skip-bad")
    assert f"skipped: {len((SAMPLES / 'spc.csv').read_text().splitlines())} invalid lines" in skipped.stdout
