"""Scenarios: those of the catalogue and one's own, runs of every kind of client, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

import headstack as hs
from conftest import ATLAS, CHEETAH
from headstack.cli.main import main
from headstack.simulation.runs import specify

SMALL_ARRAY = "four.toml"

# A stream of every kind.
EVERYTHING = """\
name = "everything"
cpus = 2
network = "100MB/s"
pool = { closed = { queue_depth = 2 } }
run_length = { time = "5s" }

[[streams]]
name = "processes"
range = ["0%", "10%"]
[streams.access]
arrivals = { closed = { queue_depth = 3, think = { fixed = "5ms" } } }
lines = [{ size = "4KiB", read_percent = 60, random_percent = 80 }]

[[streams]]
name = "cold"
range = ["10%", "20%"]
[streams.access]
share_percent = 25
lines = [{ size = "4KiB", read_percent = 100, random_percent = 100 }]

[[streams]]
name = "hot"
range = ["10%", "20%"]
[streams.access]
share_percent = 75
lines = [{ size = "4KiB", read_percent = 100, random_percent = 100 }]

[[streams]]
name = "pages"
range = ["20%", "30%"]
[streams.web]
users = 2
files = 1000
smallest_file = "15KiB"
mean_file = "64KiB"
largest_file = "256KiB"
hot_files_percent = 20
hot_pages_percent = 80
layout = "contiguous"
request = "64KiB"

[[streams]]
name = "guests"
range = ["30%", "40%"]
[streams.boot]
guests = 3
interval = "100ms"
phases = [{ requests = 20, lines = [{ size = "4KiB", read_percent = 90, random_percent = 50 }] }]

[[streams]]
name = "video"
range = ["40%", "50%"]
[streams.video]
reads = 1
frame = "300000B"
frames_per_s = 5
buffer_frames = 3
request = "64KiB"
queue_depth = 2

[[streams]]
name = "transactions"
range = ["50%", "60%"]
[streams.transactions]
clients = 2
think = { exponential = "20ms" }
requests = 3
lines = [{ size = "2KiB", read_percent = 67, random_percent = 100 }]

[[streams]]
name = "sequential"
range = ["60%", "70%"]
[streams.sequential]
streams = 2
direction = "read"
block = "64KiB"
think = { fixed = "10ms" }

[[streams]]
name = "prefill"
range = ["0B", "5MB"]
[streams.prefill]
order = "serial"
block = "1MiB"
queue_depth = 2
"""

STREAMS = ["processes", "cold", "hot", "pages", "guests", "video", "transactions", "sequential", "prefill"]


def called(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def refused(shown: Result, start: str, words: str) -> None:
    assert shown.exit_code == 2, shown.output
    assert shown.stderr.count("\n") == 1
    assert shown.stderr.startswith(f"headstack: {start}"), shown.stderr
    assert words in shown.stderr
    assert shown.stdout == ""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "everything.toml").write_text(EVERYTHING)
    (tmp_path / SMALL_ARRAY).write_text(
        'name = "Four"\n[[drives]]\ndrive = "re4-2tb"\ncount = 4\n[[groups]]\nlevel = "raid10"\n'
        '[[luns]]\nname = "data"\nsize = "1TB"\n[[luns]]\nname = "log"\n'
    )
    return tmp_path


@pytest.fixture
def everything(folder: Path) -> hs.Results:
    return hs.run(SMALL_ARRAY, folder / "everything.toml")


def test_list_and_show() -> None:
    names = hs.scenarios.list()
    assert len(names) >= 19
    shown = called("catalog", "scenarios", "list")
    assert all(name in shown.stdout for name in names)
    assert [entry["name"] for entry in json.loads(called("catalog", "scenarios", "list", "--json").stdout)] == list(
        names
    )
    for name in names:
        scenario = hs.scenarios.show(name)
        assert scenario.name == name
        text = called("catalog", "scenarios", "show", name).stdout
        assert all(f"\n{stream['name']}: " in text for stream in scenario.description["streams"])
    assert "guests: 60" in called("catalog", "scenarios", "show", "demartek-boot-storm").stdout
    assert "log: access, LUN log" in called("catalog", "scenarios", "show", "demartek-oltp").stdout
    assert "serverbench" in hs.Scenario.load("serverbench")._repr_html_()


def test_show_prints_what_can_be_run(folder: Path) -> None:
    (folder / "mine.toml").write_text(called("catalog", "scenarios", "show", "serverbench", "--toml").stdout)
    assert hs.Scenario.load("mine.toml") == hs.Scenario.load("serverbench")
    assert json.loads(called("catalog", "scenarios", "show", "mine.toml", "--json").stdout)["cpus"] == 2


def test_every_scenario_of_the_catalogue_runs() -> None:
    anywhere = [
        name
        for name in hs.scenarios.list()
        if not any("lun" in stream for stream in hs.scenarios.show(name).description["streams"])
    ]
    results = hs.run([CHEETAH, "va-7100"], anywhere, requests=200, warm_up=10)
    assert len(results) == 2 * len(anywhere)
    assert results.failed_checks() == []
    assert [row["workload"] for row in results][: len(anywhere)] == anywhere
    assert {row["requests"] for row in results} == {200}


def test_streams_and_facts_of_every_kind(everything: hs.Results) -> None:
    (row,) = everything
    assert row["workload"] == "everything"
    assert row["depth"] is None
    streams = pl.DataFrame(everything.streams())
    assert streams.columns == ["run", "system", "stream", "requests", "iops", "mb_per_s", "mean_ms", "p99_ms"]
    assert streams["stream"].to_list() == STREAMS
    assert streams["requests"].sum() == row["requests"]
    assert streams["iops"].sum() == pytest.approx(row["iops"])
    assert streams["mb_per_s"].sum() == pytest.approx(row["mb_per_s"])
    assert streams.filter(pl.col("mean_ms") <= 0).is_empty()

    of_their_own = {stream["stream"]: stream["facts"] for stream in everything.streams_of(0)}
    assert of_their_own["guests"]["booted"] == 3
    assert of_their_own["guests"]["guest_3_boot_s"] > 0
    assert of_their_own["video"]["frames_complete"] >= 20
    assert of_their_own["transactions"]["transactions_per_s"] > 1
    assert of_their_own["pages"]["pages"] > 10
    assert of_their_own["prefill"]["prefill_bytes"] == pytest.approx(5e6, abs=4096)
    assert of_their_own["processes"] == of_their_own["hot"] == of_their_own["sequential"] == {}
    facts = pl.DataFrame(everything.facts())
    assert facts.columns == ["run", "system", "stream", "name", "value"]
    pairs = {(stream, name): value for stream, facts in of_their_own.items() for name, value in facts.items()}
    assert {(row["stream"], row["name"]): row["value"] for row in facts.to_dicts()} == pairs


def test_json_carries_everything(everything: hs.Results) -> None:
    (document,) = json.loads(everything.to_json())
    assert [stream["name"] for stream in document["streams"]] == STREAMS
    assert {"name": "booted", "value": 3.0} in document["streams"][4]["facts"]
    assert document["workload"]["streams"][4]["boot"]["guests"] == 3
    assert {"host processors", "client network"} <= {part["name"] for part in document["components"]}


def test_run_prints_one_line_a_stream(folder: Path) -> None:
    shown = called("run", SMALL_ARRAY, "-w", "everything.toml,database", "--time", "5s")
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    by_stream = {name: [line for line in lines if line.startswith(f"  1  four    {name} ")] for name in STREAMS}
    assert all(len(found) == 1 for found in by_stream.values()), shown.stdout
    assert "booted 3" in by_stream["guests"][0]
    assert "last booted" in by_stream["guests"][0]
    assert "(mean of 3)" in by_stream["guests"][0]
    assert "frames dropped" in by_stream["video"][0]
    assert "transactions/s" in by_stream["transactions"][0]
    assert "pages/s" in by_stream["pages"][0]
    assert "prefill bytes 5MB" in by_stream["prefill"][0]
    # The other run is of a workload, which has no streams of this kind.
    assert "  2  " not in shown.stdout


def test_a_lone_stream_without_facts_is_not_printed_twice() -> None:
    shown = called("run", CHEETAH, "-w", "hp-oltp-8k", "--requests", "200")
    assert shown.exit_code == 0
    assert "processes" not in shown.stdout


def test_depth_is_the_number_of_clients() -> None:
    results = hs.run(CHEETAH, "serverbench", depth=[1, 8], time="10s", warm_up="1s")
    assert [row["depth"] for row in results] == [1, 8]
    assert results[1]["iops"] > 2 * results[0]["iops"]
    (one, _) = json.loads(results.to_json())
    assert one["workload"]["streams"][0]["transactions"]["clients"] == 1
    assert one["workload"]["run_length"] == {"time": "10s"}
    scenario = hs.Scenario.load("serverbench")
    assert scenario.with_clients(8).description["streams"][0]["transactions"]["clients"] == 8
    assert scenario.description["streams"][0]["transactions"]["clients"] == 60


def test_curve_has_a_knee(folder: Path) -> None:
    arguments = ("--depth", "1,4,16,64", "--time", "5s", "--limit", "25ms", "--plot", "curve.png")
    shown = called("curve", "va-7100", "-w", "hp-random-read-8k", *arguments)
    assert shown.exit_code == 0, shown.output
    knee = [line for line in shown.stdout.splitlines() if line.startswith("va-7100 ")][-1]
    assert "not reached" not in knee
    assert (folder / "curve.png").stat().st_size > 0
    assert len(hs.curve(CHEETAH, "hp-random-read-8k", requests=100)) == 9


def test_other_options_reach_the_run() -> None:
    values: dict[str, Any] = {"requests": 300, "warm_up": "1s", "interval": "1s", "seed": 9, "policy": "fcfs"}
    (spec,) = specify(ATLAS, "hp-oltp-8k", values | {"range": "10%..20%"})
    assert "workload" not in spec
    assert spec["scenario"]["run_length"] == {"requests": 300}
    assert spec["scenario"]["warm_up"] == {"requests": 0, "time": "1s"}
    assert (spec["seed"], spec["interval_ns"], "clients" in spec) == (9, 10**9, False)
    results = hs.run(ATLAS, "hp-oltp-8k", **values)
    assert (results[0]["seed"], results[0]["requests"], results[0]["policy"]) == (9, 300, "fcfs")
    assert pl.DataFrame(results.intervals())["requests"].sum() == 300
    whole, part = hs.run([ATLAS, f"{ATLAS}@5%"], "hp-random-read-8k", time="10s")
    assert part["mean_ms"] < 0.9 * whole["mean_ms"]


def test_workloads_and_scenarios_side_by_side(folder: Path) -> None:
    changed = hs.Scenario(hs.Scenario.load("neds-play").copy() | {"name": "short", "run_length": {"time": "1s"}})
    results = hs.run(CHEETAH, ["database", "hp-oltp-8k", changed, hs.Workload.load("file-server")], time="2s")
    assert [row["workload"] for row in results] == ["database", "hp-oltp-8k", "short", "file-server"]
    assert set(pl.DataFrame(results.streams())["run"]) == {1, 2}
    assert hs.run(CHEETAH, "HP OLTP 8 KB", requests=10)[0]["workload"] == "oltp-8k"
    results.plot(folder / "runs.png")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", "4KiB"),
        ("read", "50"),
        ("random", "50"),
        ("streams", "4"),
        ("rate", "50"),
        ("arrivals", "fixed"),
        ("think", "5ms"),
        ("confidence", "2%"),
    ],
)
def test_what_a_scenario_states_itself_is_refused(name: str, value: str) -> None:
    shown = called(
        "run", CHEETAH, "-w", "database,serverbench" if name == "rate" else "serverbench", f"--{name}", value
    )
    refused(shown, f"--{name}: ", "the scenario serverbench has its own")


def test_what_does_not_fit_is_refused(folder: Path) -> None:
    refused(called("run", CHEETAH, "-w", "neds-play", "--depth", "2"), "--depth: ", "no stream of neds-play")
    refused(called("run", CHEETAH, "-w", "hp-oltp-8k", "--depth", "0"), "--depth: ", "1 to 65536")
    refused(called("run", CHEETAH, "-w", "hp-oltp-8k", "--depth", str(2**40)), "--depth: ", "1 to 65536")
    refused(called("run", CHEETAH, "-w", "hp-oltp-8k", "--depth", "x"), "--depth: 'x'", "")
    refused(called("run", SMALL_ARRAY, "-w", "demartek-oltp", "--lun", "data"), "--lun: ", "demartek-oltp has its own")
    refused(called("run", CHEETAH, "-w", "demartek-oltp"), "streams[0].lun: ", "; allowed: drive, or omit the key")
    refused(called("run", CHEETAH, "-w", "serverbnch"), "no workload or scenario", "closest: serverbench, web-server")
    refused(called("catalog", "scenarios", "show", "serverbnch"), "no scenario", "closest: serverbench")
    refused(called("catalog", "scenarios", "show", "database", "--toml"), "no scenario", "`headstack scenarios list`")
    (folder / "w.toml").write_text(called("catalog", "workloads", "show", "database", "--toml").stdout)
    refused(called("catalog", "scenarios", "show", "w.toml"), "w.toml: ", "no [[streams]]")
    refused(called("catalog", "workloads", "show", "everything.toml"), "everything.toml: ", "this is a scenario")


@pytest.mark.parametrize(
    ("good", "bad", "start", "words"),
    [
        ('range = ["0%", "10%"]', 'lun = "dta"', "streams[0].lun: ", 'no LUN "dta"; allowed: data, log'),
        ("share_percent = 25", "share_percent = 20", "bad.toml:", "95"),
        ("share_percent = 25", "", "bad.toml:", "share_percent"),
        ("[streams.video]", "[streams.vdeo]", "bad.toml:", "did you mean `video`?"),
        ("users = 2", "users = 0", "bad.toml:32: streams[3].web.users: ", "1 to 65536"),
        ('["40%", "50%"]', '["50%", "40%"]', "bad.toml:", "not above its start"),
        ('name = "hot"', 'name = "cold"', "bad.toml:", "already the name of a stream"),
        ('{ time = "5s" }', '{ tim = "5s" }', "bad.toml:5: run_length.tim: ", "did you mean `time`?"),
        ("cpus = 2", "cpus = 0", "bad.toml:2: cpus: ", "1 to 4096"),
    ],
)
def test_a_bad_file_is_one_line(good: str, bad: str, start: str, words: str, folder: Path) -> None:
    assert good in EVERYTHING
    (folder / "bad.toml").write_text(EVERYTHING.replace(good, bad, 1))
    refused(called("run", SMALL_ARRAY, "-w", "bad.toml", "--json", "out.json"), start, words)
    assert not (folder / "out.json").exists()


def test_open_streams_that_pile_up_are_told_and_end(folder: Path) -> None:
    """However many clients of other streams wait for their answers."""
    text = (
        'name = "mixed"\nrun_length = {{ requests = 400 }}\n[[streams]]\nname = "rate"\n[streams.access]\n'
        'arrivals = {{ open = {{ rate_per_s = {rate}, process = "poisson" }} }}\n'
        'lines = [{{ size = "4KiB", read_percent = 100, random_percent = 100 }}]\n[[streams]]\nname = "many"\n'
        "[streams.access]\narrivals = {{ closed = {{ queue_depth = {clients} }} }}\n"
        'lines = [{{ size = "4KiB", read_percent = 100, random_percent = 100 }}]\n'
    )

    def at(rate: float, clients: int) -> dict[str, Any]:
        path = folder / "mixed.toml"
        path.write_text(text.format(rate=rate, clients=clients))
        [told] = json.loads(hs.run(CHEETAH, path).to_json())
        assert isinstance(told, dict)
        return told

    carried, piling, endless = at(5, 200), at(500, 8), at(1e6, 8)
    assert (carried["saturated"], carried.get("ended_early")) == (False, None)
    assert (piling["saturated"], piling.get("ended_early")) == (True, None)
    assert endless["saturated"]
    assert endless["ended_early"].startswith("more than 65536 requests wait")
