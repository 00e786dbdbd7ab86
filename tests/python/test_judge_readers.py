"""Files of monitoring as other programs leave them: other encodings, lists of jq, tables, stacked devices alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headstack.diagnosis.inspection.inspect import inspect
from test_judge_inputs import T, caveats, diskstats, read

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return file


def iostat(disk: str = "sda") -> str:
    """Two blocks of ``iostat -x -o JSON``."""
    blocks = [
        {
            "timestamp": f"2023-11-14T22:13:{20 + 10 * n}+0000",
            "disk": [{"disk_device": disk, "r/s": 5.0, "r_await": 2.0}],
        }
        for n in range(2)
    ]
    host = {"nodename": "db1", "date": "2023-11-14", "statistics": blocks}
    return json.dumps({"sysstat": {"hosts": [host]}}, ensure_ascii=False)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_files_of_other_encodings_say_the_same(tmp_path: Path, encoding: str) -> None:
    text = ("\ufeff" if encoding == "utf-16-be" else "") + iostat()
    path = tmp_path / "a.json"
    path.write_text(text, encoding=encoding)
    rows, _ = read(path)
    assert [(row["host"], row["disk"], row["read_latency_s"]) for row in rows] == [("db1", "sda", pytest.approx(0.002))]


def test_lists_of_jq_are_their_documents(write: Write) -> None:
    answers = [
        {"osdstats": {"osd_perf_infos": [{"id": 1, "perf_stats": {"commit_latency_ms": 5 * n}}]}} for n in (1, 2)
    ]
    rows, _ = read(write("perf.json", json.dumps(answers, indent=2)), every_s=10.0)
    assert [(row["disk"], row["latency_s"]) for row in rows] == [("osd.1", pytest.approx(0.01))]
    host = json.loads(iostat())
    rows, _ = read(write("a.json", json.dumps([host], indent=2)))
    assert len(rows) == 1
    files = []
    for metric, values in (("reads_completed", ["10", "20"]), ("read_time_seconds", ["1", "1.5"])):
        labels = {"__name__": f"node_disk_{metric}_total", "device": "sda", "instance": "db1:9100"}
        series = {"metric": labels, "values": [[T, values[0]], [T + 10, values[1]]]}
        query = {"status": "success", "data": {"resultType": "matrix", "result": [series]}}
        files.append(write(f"{metric}.json", json.dumps([query])))
    found, _ = read(*files)
    assert [(row["reads"], row["read_latency_s"]) for row in found] == [(10, pytest.approx(0.05))]


def test_a_table_of_ceph_is_read_under_its_times(write: Write) -> None:
    head = "osd  commit_latency(ms)  apply_latency(ms)\n"
    table = head + "  2                  {}                 12\n  0                   9                  9\n"
    text = "".join(f"{T + 10 * n}\n{table.format(12 + n)}" for n in range(3))
    rows, how = read(write("perf.txt", text))
    assert [(row["disk"], row["start_s"] - T, round(row["latency_s"] * 1e3)) for row in rows] == [
        ("osd.0", 0, 9), ("osd.2", 0, 13), ("osd.0", 10, 9), ("osd.2", 10, 14),
    ]  # fmt: skip
    assert "whole milliseconds" in caveats(how)
    older = table.replace("commit", "fs_commit").replace("apply", "fs_apply")
    rows, _ = read(write("old.txt", "".join(older.format(n) for n in range(2))), every_s=60.0)
    assert [row["length_s"] for row in rows] == [60, 60]


@pytest.mark.parametrize("name", ["dm-0", "md127", "bcache0"])
def test_devices_that_are_made_of_others_are_judged_where_they_are_alone(write: Write, name: str) -> None:
    dumps = "".join(f"{T + 10 * n}\n{diskstats(name, reads=100 * n, rms=300 * n)}" for n in range(3))
    rows, how = read(write("db1.log", dumps))
    assert [(row["disk"], row["read_latency_s"]) for row in rows] == [(name, pytest.approx(0.003))] * 2
    assert "no physical disks" in caveats(how)
    rows, _ = read(write("db1.json", iostat(name)))
    assert [row["disk"] for row in rows] == [name]
    beside = "".join(
        f"{T + 10 * n}\n{diskstats(name, reads=100 * n, rms=300 * n)}{diskstats('sda', reads=n)}" for n in range(3)
    )
    rows, _ = read(write("db2.log", beside))
    assert {row["disk"] for row in rows} == {"sda"}
    rows, _ = read(write("db3.log", dumps.replace(name, "loop0")))
    assert rows == []


PLOTTED = """\
################################################################################
# Collectl:   V4.3.1-1  HiRes: 1  Options: -sD -P -oT
# Host:       db7  DaemonOpts:
################################################################################
#Date Time [DSK:sda]Name [DSK:sda]Reads [DSK:sda]RMerge [DSK:sda]RKBytes [DSK:sda]WaitR [DSK:sda]Writes \
[DSK:sda]WMerge [DSK:sda]WKBytes [DSK:sda]WaitW [DSK:sda]Request [DSK:sda]QueLen [DSK:sda]Wait [DSK:sda]SvcTim \
[DSK:sda]Util [DSK:dm-0]Reads [DSK:dm-0]Wait
20231114 22:13:20 sda 1 0 4 1 1 0 4 1 4 1 1 1 1 1 1
20231114 22:13:30 sda 100 0 400 8.5 50 3 800 2.5 8 2 6.5 1 75 100 7
20231114 22:13:40 sda 110 0 440 9.5 0 0 0 0 8 2 9.5 1 76 110 9
"""


def test_collectl_is_read_as_it_plots(write: Write) -> None:
    for text in (PLOTTED, PLOTTED.replace(" [DSK", ",[DSK").replace("#Date Time", "#Date,Time")):
        rows, how = read(write("x.dsk", text))
        assert len(rows) == 2
        first = rows[0]
        assert (first["host"], first["disk"], first["start_s"], first["length_s"]) == ("db7", "sda", T, 10)
        assert (first["reads"], first["writes"], first["read_bytes"]) == (1000, 500, 400 * 1024 * 10)
        assert (first["read_latency_s"], first["write_latency_s"]) == (pytest.approx(0.0085), pytest.approx(0.0025))
        assert (first["in_flight"], first["busy"]) == (2, pytest.approx(0.75))
        assert "first block of collectl" in caveats(how)


SHOWN = """\
waiting for 1 second sample...

# DISK STATISTICS (/sec)
#                   <---------reads---------------><---------writes--------------><--------averages--------> Pct
#Time     Name       KBytes Merged  IOs Size  Wait  KBytes Merged  IOs Size  Wait  RWSize  QLen  Wait SvcTim Util
"""


def test_collectl_is_read_as_it_shows(write: Write) -> None:
    line = (
        "{} {}            102      0   50    2    54       8      0    1   20     9      92     3    53      1   96\n"
    )
    times = ("23:59:58", "23:59:59", "00:00:00")
    text = SHOWN + "".join(line.format(time, disk) for time in times for disk in ("sdc", "sdd"))
    rows, how = read(write("db9.txt", text))
    assert [(row["disk"], row["start_s"] - 86398, row["length_s"]) for row in rows] == [
        ("sdc", 0, 1), ("sdd", 0, 1), ("sdc", 1, 1), ("sdd", 1, 1),
    ]  # fmt: skip
    assert rows[0]["read_latency_s"] == pytest.approx(0.054)
    assert "no dates: times of day count" in caveats(how)
    # Before release 4.0.5, and without times.
    old = "#Name       KBytes Merged  IOs Size  KBytes Merged  IOs Size  RWSize  QLen  Wait SvcTim Util\n"
    old += "sda              1      0    2    1      17      1    5    3       2     2     6      2    1\n" * 3
    rows, _ = read(write("old.txt", old), every_s=1.0)
    assert [(row["requests"], row["latency_s"]) for row in rows] == [(7, pytest.approx(0.006))] * 2


def test_a_list_of_inspections_is_read_as_each_of_them(tmp_path: Path) -> None:
    one = {
        "smartctl": {"version": [7, 3]},
        "device": {"name": "/dev/sda", "type": "sat"},
        "model_name": "A",
        "serial_number": "1",
    }
    other = one | {"serial_number": "2"}
    path = tmp_path / "all.json"
    path.write_text(json.dumps([one, other]), encoding="utf-16")
    assert len(inspect(str(path))) == 2


@pytest.mark.parametrize(
    "arguments", [("judge", "-", "--json", "-"), ("trace", "info", "-", "--json", "-", "-q"), ("inspect", "-")]
)
def test_stdin_is_read_for_a_dash(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    one = {"smartctl": {"version": [7, 3]}, "device": {"name": "/dev/sda", "type": "sat"}, "model_name": "A"}
    text = {"judge": iostat(), "inspect": json.dumps(one), "trace": "128166372003061629,hm,0,Read,8192,4096,100\n"}
    done = subprocess.run(
        [sys.executable, "-c", "from headstack.cli.main import main; main()", *arguments],
        cwd=tmp_path, input=text[arguments[0]], capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    # Of two blocks nothing can be told.
    assert done.returncode == (4 if arguments[0] == "judge" else 0), done.stderr
    found = done.stdout
    assert {"judge": "sda", "trace": '"hm.0"', "inspect": "model  A"}[arguments[0]] in found
    assert list(tmp_path.iterdir()) == []
