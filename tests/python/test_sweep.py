"""Sweeps: any value of a system and its workload varied, at points of a grid, at random or by Sobol."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import headstack as hs
from conftest import Headstack
from headstack import _native
from headstack.report.figures import Bars, Lines, Table
from headstack.simulation.chunks import chunk as chunk_module
from headstack.simulation.designs import Design, axis, sobol
from headstack.simulation.report import MODEL_ERROR_ROWS_MAX, figure, report_of
from headstack.simulation.runs import specify

DRIVE = "cheetah-x15-36lp"


def swept(
    store: Path, vary: dict[str, Any], system: str | list[str] = DRIVE, workload: str | None = "file-server", **how: Any
) -> Any:
    return hs.sweep(system, workload, vary={"requests": 500} | vary, store=store, **how)


# Designs.


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("fcfs, sptf", ["fcfs", "sptf"]),
        ("3ms..12ms:4", ["3ms", "6ms", "9ms", "12ms"]),
        ("500us..1ms:3", ["500us", "750us", "1000us"]),
        ("1..256:9:log", ["1", "2", "4", "8", "16", "32", "64", "128", "256"]),
        ("4KiB..1MiB:5:log", ["4KiB", "16KiB", "64KiB", "256KiB", "1024KiB"]),
        ("0.0..1.0:3", ["0", "0.5", "1"]),
        ("1..3:9", ["1", "2", "3"]),
        ("[1, 2],[3]", ["[1, 2]", "[3]"]),
        ("5400rpm", ["5400rpm"]),
    ],
)
def test_values_of_a_grid(text: str, values: list[str]) -> None:
    assert axis("field", text).grid("field") == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3ms..12ms", "field: a grid needs steps; write 3ms..12ms:5"),
        ("12ms..3ms:4", "field: the range 12ms..3ms:4 is empty"),
        ("3ms..12KiB:4", "field: a range from ms to KiB; both ends need one unit"),
        ("3ms..12ms:1", "field: '1' is unknown after a range"),
        ("0..8:3:log", "field: a range by ratios must begin above 0"),
        ("a,,b", "field: an empty value"),
    ],
)
def test_values_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(hs.InputError, match=message.replace("..", r"\.\.")):
        axis("field", text).grid("field")


def test_sobol_has_the_published_points() -> None:
    # Joe and Kuo, sobol.cc with new-joe-kuo-6.21201: the first ten points of three dimensions.
    published = [
        (0, 0, 0),
        (0.5, 0.5, 0.5),
        (0.75, 0.25, 0.25),
        (0.25, 0.75, 0.75),
        (0.375, 0.375, 0.625),
        (0.875, 0.875, 0.125),
        (0.625, 0.125, 0.875),
        (0.125, 0.625, 0.375),
        (0.1875, 0.3125, 0.9375),
        (0.6875, 0.8125, 0.4375),
    ]
    assert [tuple(point) for point in itertools.islice(sobol(3), 10)] == published


@pytest.mark.parametrize("seed", [None, 7])
def test_sobol_fills_every_dimension_evenly(seed: int | None) -> None:
    points = list(itertools.islice(sobol(21, seed), 256))
    for dimension in range(21):
        assert sorted(int(point[dimension] * 256) for point in points) == list(range(256))


def test_designs_have_their_points() -> None:
    axes = (axis("a", "1..4"), axis("b", "x,y"))
    for sample in ("random", "sobol"):
        design = Design(("a", "b"), axes, sample, 64, seed=3)
        points = list(design)
        assert len(design) == len(points) == 64
        assert points == list(design)
        assert points != list(Design(("a", "b"), axes, sample, 64, seed=4))
        assert {a for a, _ in points} == {"1", "2", "3", "4"}
        assert {b for _, b in points} == {"x", "y"}
    grid = Design(("a", "b"), (axis("a", "1..4:4"), axes[1]))
    assert list(grid) == list(itertools.product("1234", "xy"))
    for wrong, message in (
        ({"sample": "grid", "points": 3}, "points: the values determine the size of a grid"),
        ({"sample": "sobol"}, "points: sobol needs a number"),
        ({"sample": "best"}, "sample: 'best' is unknown; allowed: grid, random, sobol"),
    ):
        with pytest.raises(hs.InputError, match=message):
            Design(("a",), (axes[0],), **wrong)


# What is run.


def test_a_sweep_is_what_files_of_its_own_would_give(tmp_path: Path) -> None:
    found = swept(
        tmp_path / "store",
        {"spindle.speed": "7200rpm,10000rpm", "lines[0].size": ["512B", "4KiB"], "depth": [1, 8], "policy": "sptf"},
    )
    rows = found.rows()
    assert len(found) == len(rows) == 8
    assert [row["spindle.speed_rpm"] for row in rows] == [7200.0] * 4 + [10000.0] * 4
    assert [row["lines[0].size"] for row in rows[:3]] == ["512B", "512B", "4KiB"]
    drive = _native.drive_toml(DRIVE).replace('"15000rpm"', '"7200rpm"')
    workload = _native.workload_toml("file-server").replace('size = "512B"', 'size = "4KiB"', 1)
    (tmp_path / f"{DRIVE}.toml").write_text(drive)
    (tmp_path / "workload.toml").write_text(workload)
    by_hand = hs.run(
        str(tmp_path / f"{DRIVE}.toml"), str(tmp_path / "workload.toml"), depth=8, policy="sptf", requests=500
    )
    row = rows[3]
    assert {name: row[name] for name in by_hand[0] if name in row and name != "policy"} == {
        # Of configurations that are looked at the model's error is shown, in no table of all.
        name: value
        for name, value in by_hand[0].items()
        if name != "policy" and "model_" not in name
    }


def test_arrays_are_varied_in_their_own_file_and_its_base(tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text(_native.drive_toml(DRIVE).replace('"15000rpm"', '"5400rpm"'))
    (tmp_path / "mine.toml").write_text('base = "compaq-raid5-7"\nname = "mine"\n')
    drives = f"{DRIVE},{tmp_path}/slow.toml"
    rows = swept(tmp_path / "store", {"drives[0].drive": drives, "depth": "1,8"}, str(tmp_path / "mine.toml")).rows()
    by_hand = hs.run(str(tmp_path / "mine.toml"), "file-server", drive=drives.split(","), depth=[1, 8], requests=500)
    assert [row["iops"] for row in rows] == [row["iops"] for row in by_hand]
    assert len({row["iops"] for row in rows}) == 4
    # What a drive's file says is part of what is asked.
    (tmp_path / "slow.toml").write_text(_native.drive_toml(DRIVE).replace('"15000rpm"', '"7200rpm"'))
    again = swept(tmp_path / "store", {"drives[0].drive": drives, "depth": "1,8"}, str(tmp_path / "mine.toml")).rows()
    assert again[:2] == rows[:2]
    assert again[2]["iops"] > rows[2]["iops"]


def test_access_of_one_size_and_parts_of_a_drive(tmp_path: Path) -> None:
    rows = swept(tmp_path, {"size": "4KiB,64KiB", "random": 100}, f"{DRIVE}@10GB", None).rows()
    by_hand = hs.run(f"{DRIVE}@10GB", size=["4KiB", "64KiB"], random=100, requests=500)
    assert [row["mb_per_s"] for row in rows] == [row["mb_per_s"] for row in by_hand]
    assert [row["size_KiB"] for row in rows] == [4.0, 64.0]
    assert rows[0]["system"] == f"{DRIVE}@10GB"


def test_scenarios_are_varied(tmp_path: Path) -> None:
    rows = swept(tmp_path, {"streams[0].transactions.cpu": "1ms,4ms", "requests": 200}, workload="serverbench").rows()
    assert rows[0]["iops"] != rows[1]["iops"]


def test_what_is_impossible_is_a_row_that_says_why(tmp_path: Path) -> None:
    found = swept(tmp_path, {"seek.read_average": "3.6ms,30ms", "policy": "sptf,best"})
    assert (len(found), found.impossible, found.failed) == (4, 3, 0)
    possible, policy, *seeks = found.rows()
    assert possible["iops"] > 0
    assert possible["impossible"] is None
    assert policy["impossible"].startswith("policy: 'best' is unknown")
    assert all(row["iops"] is None and row["impossible"].startswith("seek.read_average: ") for row in seeks)
    assert found.rows("iops") == [possible]
    assert sum(count for _, count in found.reasons()) == 3


def test_nothing_possible_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hs.InputError, match=r"no configuration of the sweep is possible: .*read_average"):
        swept(tmp_path, {"seek.read_average": "30ms,40ms"})


def test_a_run_that_cannot_be_is_a_row_too() -> None:
    specs = [specify(DRIVE, None, {"requests": 10})[0] | {"labels": [["=a", name]]} for name in "12"]
    specs[0]["system"]["drive"]["disk"]["mechanics"]["rpm"] = -1.0
    table = _native.run_chunks([json.dumps({"runs": specs, "whole": True})]).table(0, 2)
    columns = table.column_names
    with duckdb.connect() as connection:
        rows = connection.register("answer", table).table("answer").fetchall()
    refused = [row[columns.index("impossible")] for row in rows]
    assert "rpm" in refused[0]
    assert refused[1] is None
    assert [row[columns.index("=a")] for row in rows] == ["1", "2"]
    assert rows[0][columns.index("iops")] is None
    assert rows[1][columns.index("iops")] > 0


# Nothing depends on portions, executors or interruptions.

VARY = {"seek.read_average": "3ms..6ms", "queue.depth": "1..64:log", "policy": "sptf,look", "depth": "1,16"}


def test_where_chunks_end_changes_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    for chunk_s in (0.5, 0.02, 0.0):
        monkeypatch.setattr(chunk_module, "CHUNK_S", chunk_s)
        found = swept(tmp_path / str(chunk_s), VARY, sample="sobol", points=40)
        found.to_parquet(tmp_path / "out.parquet")
        found.to_csv(tmp_path / "out.csv")
        written.append(((tmp_path / "out.parquet").read_bytes(), (tmp_path / "out.csv").read_bytes()))
    assert len(list((tmp_path / "0.5").rglob("*.parquet"))) < 20
    assert len(list((tmp_path / "0.0").rglob("*.parquet"))) == 40
    assert written[0] == written[1] == written[2]


def test_an_interrupted_sweep_goes_on(tmp_path: Path, headstack: Headstack) -> None:
    arguments = [
        *("sweep", DRIVE, "-w", "file-server", "--requests", "60000", "--depth", "64", "--sample", "random"),
        *("--points", "120", "--vary", "seek.read_average=3ms..6ms", "--vary", "queue.depth=1..64"),
    ]
    command = [sys.executable, "-c", "from headstack.cli.main import main; main()", *arguments]

    def kept() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*.parquet")}

    for ending, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 143), (signal.SIGINT, 130)):
        before = kept()
        process = subprocess.Popen(
            [*command, "--store", str(tmp_path / "store")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"RAYON_NUM_THREADS": "1"},
        )
        while len(kept()) < len(before) + 2:
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.02)
        process.send_signal(ending)
        _, errors = process.communicate()
        assert process.returncode == code, errors
        assert before.items() <= kept().items()
    assert "repeat the command to resume" in errors
    before = kept()
    ends = []
    for store in ("store", "other"):
        output = tmp_path / f"{store}.parquet"
        assert headstack(*arguments, "--store", str(tmp_path / store), "-o", str(output)).returncode == 0
        ends.append(output.read_bytes())
    assert before.items() <= kept().items()
    assert ends[0] == ends[1]


# Several systems, conditions, pictures.

SYSTEMS = [DRIVE, "atlas-10k-iii-73@50%"]


def test_several_systems_have_all_points(tmp_path: Path) -> None:
    vary = {"depth": "1,16", "policy": "fcfs,best"}
    found = swept(tmp_path, vary, SYSTEMS)
    alone = [swept(tmp_path, vary, system) for system in SYSTEMS]
    assert (len(found), found.impossible) == (8, 4)
    assert found.rows() == [row for one in alone for row in one.rows()]
    # Those that cannot be have their system too.
    assert [row["system"] for row in found.rows()] == [SYSTEMS[0]] * 4 + [SYSTEMS[1]] * 4
    assert found.varied == ["system", "depth", "policy"]
    assert alone[0].varied == ["depth", "policy"]


def test_conditions_choose_rows(tmp_path: Path) -> None:
    found = swept(tmp_path, {"depth": "1,4,16,64", "seek.read_average": "4ms,6ms"}, SYSTEMS)
    rows = found.rows("mean_ms")
    fit: tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...] = (
        ("p99_ms < 100", lambda row: row["p99_ms"] < 100),
        ("iops > 200 or depth = 1", lambda row: row["iops"] > 200 or row["depth"] == 1),
        ('"seek.read_average_ms" > 5', lambda row: row["seek.read_average_ms"] > 5),
        (f"system = '{DRIVE}'", lambda row: row["system"] == DRIVE),
    )
    for condition, fits in fit:
        expected = [row for row in rows if fits(row)]
        assert 0 < len(expected) < len(rows), condition
        assert found.rows("mean_ms", where=condition) == expected
        assert found.rows("mean_ms", where=condition, limit=1) == expected[:1]
    assert found.rows(where="iops < 0") == []


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("p9_ms < 20", "p9_ms: there is no such column; did you mean p99_ms?"),
        ("p99_ms < < 20", 'where: p99_ms < < 20: syntax error at or near "<"; write a condition'),
        ("p99_ms", "where: p99_ms: this is not a condition; write a condition on columns, such as p99_ms < 20"),
        ("p99_ms < 20; drop table swept", 'syntax error at or near ";"'),
        ("best(p99_ms) < 5", "name best does not exist"),
        ("", "this is not a condition"),
        ("system = 3", "Could not convert"),
    ],
)
def test_what_is_no_condition(tmp_path: Path, headstack: Headstack, condition: str, message: str) -> None:
    arguments = ("sweep", DRIVE, "-w", "file-server", "--depth", "1", "--requests", "100", "--store", str(tmp_path))
    done = headstack(*arguments, "--where", condition, "--plot", "refused.png", "-q")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
    assert not (tmp_path / "refused.png").exists()


def test_a_column_is_drawn_over_what_was_varied(tmp_path: Path) -> None:
    found = swept(tmp_path / "store", {"depth": "1,4,16", "policy": "fcfs,sptf"}, SYSTEMS)
    lines = figure(found, "mean_ms", "depth < 10")
    assert isinstance(lines, Lines)
    assert (lines.x.label, lines.y.label) == ("Requests outstanding", "Mean response time (ms)")
    assert [one.name for one in lines.series] == [f"{s}, policy {p}" for s in SYSTEMS for p in ("fcfs", "sptf")]
    assert [list(one.x) for one in lines.series] == [[1, 4]] * 4
    rows = found.rows(where=f"depth < 10 and policy = 'sptf' and system = '{DRIVE}'")
    assert list(lines.series[1].y) == [row["mean_ms"] for row in rows]
    found.plot(tmp_path / "out.png", "mean_ms")
    assert (tmp_path / "out.png").stat().st_size > 10_000
    bars = figure(swept(tmp_path / "store", {"policy": "fcfs,sptf", "depth": 16}, SYSTEMS), "iops")
    assert isinstance(bars, Bars)
    assert (bars.groups, [one.name for one in bars.series]) == (["fcfs", "sptf"], SYSTEMS)
    report = report_of(found, "mean_ms", False, "depth < 10")
    (lines_again, table) = report.sections[0].figures
    assert lines_again == lines
    assert isinstance(table, Table)
    assert len(table.rows) == 8
    assert [row[table.columns.index("mean ms")] for row in table.rows] == sorted(
        row["mean_ms"] for row in found.rows(where="depth < 10")
    )
    for column, where, message in (
        ("bottleneck", None, "bottleneck is not numeric"),
        ("iops", "iops < 0", "no configuration has a iops where iops < 0"),
    ):
        with pytest.raises(hs.InputError, match=message):
            figure(found, column, where)
    sampled = swept(tmp_path / "store", {"depth": "1..4"}, sample="random", points=3)
    with pytest.raises(hs.InputError, match="sampled points do not form lines"):
        figure(sampled, "iops")
    assert len(report_of(sampled, "iops", True).sections[0].figures) == 1


# The command.


def test_the_command_compares_systems_within_a_condition(tmp_path: Path, headstack: Headstack) -> None:
    done = headstack(
        *("sweep", *SYSTEMS, "-w", "file-server", "--requests", "500", "--depth", "1,4,16", "--store", str(tmp_path)),
        *("--where", "mean_ms < 30", "--plot", "out.png", "-o", "out.csv"),
    )
    assert done.returncode == 0, done.stderr
    assert "6 configurations, 4 where mean_ms < 30; shown: most iops" in done.stdout
    assert done.stdout.startswith("Most throughput: ")
    assert [line.split()[0] for line in done.stdout.splitlines()[5:7]] == SYSTEMS
    assert (tmp_path / "out.png").stat().st_size > 10_000
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 7
    none = headstack(
        *("sweep", DRIVE, "--requests", "500", "--depth", "1", "--store", str(tmp_path), "--where", "mean_ms < 0")
    )
    first, _, rest = none.stdout.partition("\n\n")
    assert first == "not enough data for a verdict: no configuration meets mean_ms < 0"
    assert rest.startswith("1 configurations, 0 where mean_ms < 0")


def test_the_command_prints_the_best(tmp_path: Path, headstack: Headstack) -> None:
    done = headstack(
        *("sweep", DRIVE, "-w", "file-server", "--requests", "500", "--depth", "1,16", "--store", str(tmp_path)),
        *(
            "--vary",
            "spindle.speed=5400rpm,15000rpm",
            "--min",
            "mean_ms",
            "--top",
            "2",
            "-o",
            str(tmp_path / "out.csv"),
        ),
    )
    assert done.returncode == 0, done.stderr
    assert "4 configurations; shown: least mean_ms" in done.stdout
    first = done.stdout.splitlines()[5].split()
    assert first[:2] == ["15,000", "1"]
    # Words with units for people; the names of the fields stay in what is written.
    assert done.stdout.startswith("Least mean response time: ")
    head = " ".join(done.stdout.splitlines()[2].split())
    assert head.startswith("spindle speed")
    assert "_" not in head
    assert (tmp_path / "out.csv").read_text().startswith("spindle.speed_rpm,requests,depth,")
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing varies; add --vary FIELD=VALUES"),
        (["--vary", "spindle.sped=1rpm"], "spindle.sped: unknown key; did you mean `speed`?"),
        (["--vary", "lines[0].sise=4KiB"], "lines[0].sise: unknown key; did you mean `size`?"),
        (["--vary", "dept=4"], "dept: unknown field; did you mean the option depth?"),
        (["--vary", "depth"], "--vary depth: expected FIELD=VALUES"),
        (["--vary", "depth=1", "--depth", "4"], "--vary depth, --depth: give only one of them"),
        (["--vary", "depth=1", "--vary", "depth=4"], "--vary depth: given twice"),
        (["--vary", "depth=1..8"], "--depth: a grid needs steps; write 1..8:5"),
        (["--depth", "1", "--points", "3"], "--points: the values determine the size of a grid"),
        (["--depth", "1", "--best", "iops", "--min", "iops"], "--best, --min: give only one"),
        (["--depth", "1", "--size", "4KiB"], "--size: the workload has its own"),
        (["--depth", "1", "--rate", "5"], "depth, rate: give only one of them"),
        (["--depth", "1", "--executor", "cloud"], "--executor: 'cloud' is unknown"),
        (["--depth", "1", "-o", "x.txt"], "-o: x.txt: unknown file format"),
        (["--sample", "random", "--points", "2", "--depth", "1..4", "--plot", "x.png"], "--plot: needs a grid"),
        (["--depth", "1", "--plot", "x.xls"], "x.xls: unknown picture format"),
        (["dc-s3700-400gb", "--vary", "seek.read_average=5ms"], "dc-s3700-400gb: seek: unknown key"),
        (["nosuch", "--depth", "1"], 'no drive, array or stack "nosuch" in the catalogue'),
        (["--depth", "1", "--best", "iop", "--requests", "10"], "iop: there is no such column; did you mean iops?"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, headstack: Headstack, arguments: list[str], message: str) -> None:
    done = headstack("sweep", DRIVE, "-w", "file-server", "--store", str(tmp_path), *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"headstack: {message}"), done.stderr
    assert done.stderr.count("\n") == 1


def test_a_page_has_more_rows_than_are_told_with_the_error_of_the_model(tmp_path: Path) -> None:
    found = swept(tmp_path, {"depth": "1..64:45"})
    table = next(one for one in report_of(found, "iops", True).sections[0].figures if one.name == "configurations")
    assert isinstance(table, Table)
    assert len(table.rows) == len(table.texts) == len(found) > MODEL_ERROR_ROWS_MAX
    # Six disks were measured at depth 64, nine below.
    place = table.columns.index("IOPS 85 to 90 %")
    assert any(row[place] for row in table.texts)
    assert not any(row[place] for row in table.texts[MODEL_ERROR_ROWS_MAX:])


def test_a_page_leaves_out_lines_that_are_too_many_and_refuses_what_is_no_figure(tmp_path: Path) -> None:
    steps = {"depth": "1,2,3,4,5,6", "spindle.speed": "5400rpm..15000rpm:6", "seek.read_average": "3.5ms..5ms:5"}
    found = swept(tmp_path, steps)
    report = report_of(found, "iops", True)
    assert [one.name for one in report.sections[0].figures] == ["configurations"]
    assert report.remarks == "Not drawn: 30 lines are too many, 24 at most."
    with pytest.raises(hs.InputError, match="bottleneck is not numeric"):
        report_of(found, "bottleneck", True)
