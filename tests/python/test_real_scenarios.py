"""Scenarios on files and targets that store nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import headstack as hs
from conftest import CHEETAH, Headstack, interrupt

TWO_LUNS = """
name = "two"
source = "a test"
run_length = { requests = 400 }
[[streams]]
name = "journal"
lun = "log"
[streams.access]
arrivals = { closed = { queue_depth = 2 } }
lines = [{ size = "8KiB", read_percent = 0, random_percent = 0 }]
[[streams]]
name = "tables"
lun = "data"
[streams.access]
arrivals = { closed = { queue_depth = 1 } }
lines = [{ size = "4KiB", read_percent = 100, random_percent = 100 }]
"""

WEB = """
name = "web"
source = "a test"
warm_up = { time = "200ms" }
run_length = { time = "1s" }
[[streams]]
name = "pages"
[streams.web]
users = 4
files = 20
smallest_file = "16KiB"
mean_file = "64KiB"
largest_file = "128KiB"
hot_files_percent = 10
hot_pages_percent = 50
request = "16KiB"
"""


@pytest.fixture
def web(tmp_path: Path) -> Path:
    path = tmp_path / "web.toml"
    path.write_text(WEB)
    return path


@pytest.fixture
def two_luns(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(TWO_LUNS)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(1 << 22))
    return path


def test_clients_are_swept_as_in_simulation(web: Path) -> None:
    results = hs.measure("null:2ms", web, depth=[1, 8], interval="250ms")
    few, many = results
    assert (few["depth"], many["depth"]) == (1, 8)
    # Each client waits 2 ms for each request: at most 500 requests a second each.
    assert few["iops"] <= 501
    assert few["iops"] < many["iops"] <= 4008
    assert few["duration_s"] == pytest.approx(1)
    for run in (0, 1):
        [stream] = results.streams_of(run)
        assert stream["stream"] == "pages"
        assert stream["facts"]["pages"] > 0
        assert len(results.intervals_of(run)) >= 4


def test_lengths_are_those_of_simulations(web: Path) -> None:
    [by_requests] = hs.measure("null:1ms", web, requests=300, warm_up="0s")
    assert by_requests["requests"] == 300
    [by_time] = hs.measure("null:1ms", web, time="400ms", warm_up="0s")
    assert by_time["duration_s"] == pytest.approx(0.4)


def test_luns_are_files_of_their_own(two_luns: Path, data: Path) -> None:
    log = data.with_name("log")
    log.write_bytes(os.urandom(1 << 22))
    before = (data.read_bytes(), log.read_bytes())
    with pytest.raises(hs.InputError, match=r"log.*overwrite"):
        hs.measure(data, two_luns, luns={"log": str(log)}, buffered=True)
    assert (data.read_bytes(), log.read_bytes()) == before
    results = hs.measure(data, two_luns, luns={"log": str(log)}, buffered=True, overwrite=True)
    [row] = results
    assert row["requests"] == 400
    assert row["errors"] == 0
    assert row["system"] == f"log={log}, data={data}"
    journal, tables = results.streams_of(0)
    assert (journal["stream"], tables["stream"]) == ("journal", "tables")
    assert journal["requests"] + tables["requests"] == row["requests"]
    assert data.read_bytes() == before[0], "nothing writes to it"
    assert log.read_bytes() != before[1]
    # The other way round, TARGET is the log.
    results = hs.measure(log, two_luns, luns={"data": str(data)}, buffered=True, overwrite=True)
    assert data.read_bytes() == before[0]
    assert results[0]["requests"] == 400


def test_what_no_stream_writes_is_opened_for_reading(
    two_luns: Path, loop_device: tuple[str, Path], tmp_path: Path
) -> None:
    device, backing = loop_device
    before = backing.read_bytes()
    log = tmp_path / "log"
    log.write_bytes(bytes(1 << 22))
    # The word is for the file; nobody has named the device.
    [row] = hs.measure(device, two_luns, luns={"log": str(log)}, overwrite=True)
    assert row["requests"] == 400
    assert row["errors"] == 0
    assert backing.read_bytes() == before


def test_a_scenario_is_held_against_its_prediction(web: Path) -> None:
    # A drive of 36.7 GB, of which nothing is known to the null target: the loads belong together.
    comparison = hs.compare(hs.measure("null:2ms", web, depth=[2, 4]), CHEETAH)
    assert [point.name for point in comparison] == ["2 clients", "4 clients"]
    for point in comparison:
        assert (point.measured.figures["p50_ms"] or 0) >= 2
        assert point.share > 0


def test_streams_are_printed_and_written(headstack: Headstack, web: Path, tmp_path: Path) -> None:
    done = headstack("measure", "null:1ms", "-w", str(web), "--time", "300ms", "--json", "web.json")
    assert done.returncode == 0, done.stderr
    assert "stream" in done.stdout
    assert "pages" in done.stdout
    [run] = json.loads((tmp_path / "web.json").read_text())
    assert (run["mode"], run["streams"][0]["name"]) == ("measured", "pages")
    assert [component["name"] for component in run["components"]] == ["host processors"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["DATA", "-w", "TWO"], "names the LUNs log, data; log, data have no target: TARGET is one of them"),
        (["DATA", "-w", "TWO", "--lun", "log=DATA"], "each LUN needs its own file or device"),
        (["DATA", "-w", "TWO", "--lun", "logs=null"], "has no LUN 'logs'; allowed: log, data"),
        (["DATA", "-w", "TWO", "--lun", "log=null", "--lun", "data=null"], "all have a target already, so "),
        (["DATA", "-w", "TWO", "--lun", "log=null"], "null targets cannot be mixed with other targets"),
        (["DATA", "-w", "WEB", "--lun", "log=null"], "allowed: none"),
        (["DATA", "-w", "random-read-4k", "--lun", "log=null"], "only scenarios name LUNs"),
        (["DATA", "-w", "TWO", "--lun", "log"], "--lun: 'log': expected NAME=PATH"),
        (["null", "-w", "WEB", "--range", "0%..50%"], "range: does not apply to a scenario on real targets"),
        (["null", "-w", "WEB", "--rate", "5"], "the scenario web has its own"),
        (["null", "-w", "WEB", "--threads", "2"], "a scenario uses 1 thread"),
        (["null", "-w", "WEB,random-read-4k"], "a scenario must be the only load"),
        (["SMALL", "-w", "WEB"], "streams[0]"),
    ],
)
def test_bad_input_gets_one_line(
    headstack: Headstack, web: Path, two_luns: Path, data: Path, arguments: list[str], message: str
) -> None:
    small = data.with_name("small")
    small.write_bytes(bytes(8192))
    named = {"DATA": data, "TWO": two_luns, "WEB": web, "SMALL": small}
    for name, path in named.items():
        arguments = [text.replace(name, str(path)) for text in arguments]
    done = headstack("measure", *arguments, "--buffered", "-q")
    assert (done.returncode, done.stdout) == (2, ""), done
    assert message in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_ctrl_c_keeps_what_was_measured(web: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    command = "import sys; from headstack.cli.main import main; main(sys.argv[1:])"
    arguments = ["measure", "null:1ms", "-w", str(web), "--time", "60s", "-q", "--json", str(kept)]
    process = subprocess.Popen([sys.executable, "-c", command, *arguments], stderr=subprocess.PIPE, text=True)
    interrupt(process)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    [run] = json.loads(kept.read_text())
    assert run["ended_early"] == "stopped by hand"
    assert run["kinds"]["read"]["count"] > 0
