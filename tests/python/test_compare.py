"""Measurements held against predictions."""

from __future__ import annotations

import csv
import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

import headstack as hs
from conftest import ATLAS, CHEETAH, Headstack

DEPTHS = [1, 4, 16]


@pytest.fixture(scope="module")
def curve() -> hs.Results:
    return hs.run(CHEETAH, "file-server", depth=DEPTHS, requests=3000, interval="1s")


@pytest.fixture(scope="module")
def stored(curve: hs.Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    curve.to_json(folder / "curve.json")
    curve.to_csv(folder / "curve.csv")
    curve.to_parquet(folder / "curve.parquet")
    return folder


def test_a_drive_against_itself_has_no_error(curve: hs.Results, stored: Path) -> None:
    for predicted in (curve, stored / "curve.json", CHEETAH):
        comparison = hs.compare(curve, predicted)
        assert [point.name for point in comparison] == ["depth 1", "depth 4", "depth 16"]
        assert set(comparison.mean_absolute_errors().values()) == {0}
        assert (comparison.shortfalls(), comparison.alone_measured, comparison.alone_predicted) == ([], (), ())
        assert all(point.share == 1 and point.demerit_ms == 0 for point in comparison)


def test_tables_are_compared_without_their_distributions(stored: Path) -> None:
    for predicted in ("curve.csv", "curve.parquet", "curve.json"):
        comparison = hs.compare(stored / "curve.csv", stored / predicted)
        errors = comparison.mean_absolute_errors()
        assert len(comparison) == 3
        assert max(errors[name] or 0 for name in ("iops", "mean_ms", "p50_ms", "p99_ms")) < 1e-12
        assert errors["demerit"] is None


def test_a_known_factor_is_the_error(stored: Path, tmp_path: Path) -> None:
    with open(stored / "curve.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row |= {name: str(1.25 * float(row[name])) for name in ("mean_ms", "p50_ms", "p99_ms")}
        row |= {name: str(float(row[name]) / 1.25) for name in ("iops", "mb_per_s")}
    slower = tmp_path / "slower.csv"
    with open(slower, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    comparison = hs.compare(slower, stored / "curve.json")
    for point in comparison:
        assert point.error("iops") == pytest.approx(0.25)
        assert [point.error("mean_ms"), point.error("p99_ms")] == pytest.approx([-0.2, -0.2])
        assert point.share == pytest.approx(0.8)
        assert point.falls_short == ["iops", "mean_ms"]
    said = comparison.shortfalls()
    assert len(said) == 3
    assert said[0].startswith("depth 1: 20.0% less throughput than predicted, ")
    assert "mean latency 25.0% longer than predicted" in said[0]
    # The other way round the device is better than its model, and that is no shortfall.
    reverse = hs.compare(stored / "curve.json", slower)
    assert reverse.shortfalls() == []
    assert all(point.is_better for point in reverse)
    # Within a tolerance there is nothing to say.
    assert hs.compare(slower, stored / "curve.json", tolerance="30%").shortfalls() == []


def test_simulated_results_are_not_called_measured(
    curve: hs.Results, stored: Path, tmp_path: Path, headstack: Headstack
) -> None:
    shown = headstack("compare", str(stored / "curve.json"), CHEETAH).stdout
    assert "measured" not in shown
    assert shown.startswith(f"{CHEETAH} and curve.json have the same results at 3 points\n")
    report = str(hs.compare(curve, curve).report())
    assert "as measured" not in report
    told = json.loads(hs.compare(curve, CHEETAH).to_json())
    assert (told["measured_is"], told["predicted_is"]) == ("simulated", "simulated")
    real = hs.measure("null:1ms", size="4KiB", depth=1, requests=20)
    real.to_json(tmp_path / "real.json")
    simulated = hs.run(CHEETAH, size="4KiB", depth=1, requests=20)
    assert hs.compare(real, simulated).sides == ("measured", "predicted")
    assert hs.compare(simulated, real).sides == ("simulated", "measured")
    # Tables do not say: they are what they are taken for.
    assert hs.compare(stored / "curve.csv", stored / "curve.csv").sides == ("measured", "predicted")


def test_another_drive_has_errors_beyond_chance(curve: hs.Results) -> None:
    again = hs.compare(hs.run(CHEETAH, "file-server", depth=DEPTHS, requests=3000, seed=2), curve)
    other = hs.compare(hs.run("barracuda-4lp-2", "file-server", depth=DEPTHS, requests=3000), curve)
    assert again.shortfalls() == []
    assert len(other.shortfalls()) == 3
    assert min(p.demerit_relative or 0 for p in other) > 2 * max(p.demerit_relative or 0 for p in again) > 0


def test_the_range_that_was_measured_is_simulated() -> None:
    part = hs.run(f"{ATLAS}@10GB..20GB", "file-server", depth=2, requests=1000)
    assert hs.compare(part, ATLAS).points[0].error("mean_ms") == 0
    whole = hs.run(ATLAS, "file-server", depth=2, requests=1000)
    assert hs.compare(whole, ATLAS).points[0].error("mean_ms") == 0
    assert hs.compare(part, whole).points[0].error("mean_ms") != 0


def test_a_file_is_simulated_over_its_own_size(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(1 << 22))
    measured = hs.measure(path, "random-read-4k", requests=200, depth=2, buffered=True)
    [point] = hs.compare(measured, CHEETAH)
    same = hs.run(f"{CHEETAH}@4MiB", "random-read-4k", requests=200, depth=2)[0]
    assert point.predicted.figures["mean_ms"] == pytest.approx(same["mean_ms"])
    assert point.predicted.seed == 1


def test_a_constant_service_time_is_what_a_flash_drive_predicts() -> None:
    # Megabyte reads, one after the other: every one takes the same 2.0157 ms.
    predicted = hs.run("dc-s3700-400gb", size="1MiB", depth=1, requests=500, state="filled")
    assert predicted[0]["p50_ms"] == predicted[0]["p99_ms"]
    target = f"null:{predicted[0]['p50_ms']:.6f}ms"
    [point] = hs.compare(hs.measure(target, size="1MiB", depth=1, requests=500), predicted)
    # A timer is never early; how late it is, a busy machine decides.
    assert (point.error("p50_ms") or 0.0) <= 0.001
    slower = hs.measure(f"null:{2 * predicted[0]['p50_ms']:.6f}ms", size="1MiB", depth=1, requests=200)
    [point] = hs.compare(slower, predicted)
    assert point.share < 0.51
    assert point.falls_short


def test_intervals_say_from_when_to_when() -> None:
    options = {"depth": 16, "time": "16s", "warm_up": "0s", "interval": "1s"}
    sound = hs.run("compaq-raid5-7", "file-server", **options)  # type: ignore[arg-type]
    degraded = hs.run("compaq-raid5-7", "file-server", fail="d0@8s", **options)  # type: ignore[arg-type]
    [point] = hs.compare(degraded, sound)
    late = {int(second) for s in point.stretches for second in range(round(s.start_s), round(s.end_s))}
    assert len(late) >= 4
    assert min(late) >= 8
    assert all(one.end_s < next_one.start_s for one, next_one in pairwise(point.stretches)), "neighbours are one"
    assert any("s mean latency " in line for line in hs.compare(degraded, sound).shortfalls())
    assert hs.compare(sound, hs.run("compaq-raid5-7", "file-server", seed=2, **options)).points[0].stretches == ()  # type: ignore[arg-type]


def test_of_results_that_hold_both_each_side_takes_its_own(tmp_path: Path) -> None:
    measured = hs.measure("null:2ms", "random-read-4k", depth=1, requests=100)
    both = measured.and_others(hs.run(CHEETAH, "random-read-4k", depth=1, requests=100))
    both.to_json(tmp_path / "both.json")
    comparison = hs.compare(tmp_path / "both.json", tmp_path / "both.json")
    assert (comparison.measured, comparison.predicted) == ("null:2ms", CHEETAH)


def test_what_was_varied_tells_points_apart(tmp_path: Path) -> None:
    ours = hs.run(CHEETAH, depth=1, requests=300, streams=[1, 2], random=0)
    theirs = hs.run(ATLAS, depth=1, requests=300, streams=[2, 1], random=0)
    ours.to_csv(tmp_path / "ours.csv")
    theirs.to_parquet(tmp_path / "theirs.parquet")
    for measured, predicted in ((ours, theirs), (tmp_path / "ours.csv", tmp_path / "theirs.parquet")):
        comparison = hs.compare(measured, predicted)
        assert [point.name for point in comparison] == ["depth 1, streams 1", "depth 1, streams 2"]
        for point, row in zip(comparison, theirs[::-1], strict=True):
            assert point.predicted.figures["iops"] == pytest.approx(row["iops"])


def test_replays_are_compared_by_mode(tmp_path: Path) -> None:
    hs.run(CHEETAH, "file-server", depth=4, requests=500, warm_up=0, record=tmp_path / "t.parquet")
    ours = hs.replay(tmp_path / "t.parquet", CHEETAH, ["timed", "asap"])
    theirs = hs.replay(tmp_path / "t.parquet", ATLAS, ["asap", "timed"])
    comparison = hs.compare(ours, theirs)
    assert [point.name for point in comparison] == ["timed", "asap, depth 4"]
    # So they are where one of them is measured, and it has less to say of its clock.
    real = hs.replay(tmp_path / "t.parquet", "null:1ms", ["timed", "asap"])
    assert [point.name for point in hs.compare(real, theirs)] == ["timed", "asap, depth 4"]
    with pytest.raises(hs.InputError, match="does not contain the trace"):
        hs.compare(ours, ATLAS)


def test_clients_of_scenarios_are_loads() -> None:
    ours = hs.run(CHEETAH, "demartek-web", depth=[2, 4], time="2s")
    comparison = hs.compare(ours, CHEETAH)
    assert [point.name for point in comparison] == ["2 clients", "4 clients"]
    assert set(comparison.mean_absolute_errors().values()) == {0}


def test_everything_is_written(headstack: Headstack, stored: Path, tmp_path: Path) -> None:
    ours, theirs = str(stored / "curve.json"), ATLAS
    done = headstack("compare", ours, theirs, "--json", "c.json", "--csv", "c.csv", "--plot", "c.png")
    assert done.returncode == 0, done.stderr
    assert "mean absolute error" not in done.stdout, "it is an explanation of --verbose"
    assert "mean absolute error: throughput" in headstack("compare", ours, theirs, "--verbose").stdout
    assert done.stdout.startswith(f"not enough data for a verdict: {ATLAS} has throughput ")
    assert "overlap" in done.stdout.partition("\n")[0]
    whole = json.loads((tmp_path / "c.json").read_text())
    assert [point["load"] for point in whole["points"]] == ["depth 1", "depth 4", "depth 16"]
    assert whole["mean_absolute_errors"]["iops"] > 0
    with open(tmp_path / "c.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, point in zip(rows, whole["points"], strict=True):
        error = float(row["predicted_iops"]) / float(row["measured_iops"]) - 1
        assert float(row["iops_error"]) == pytest.approx(error) == pytest.approx(point["iops_error"])
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    to_stdout = headstack("compare", ours, theirs, "--json", "-")
    assert json.loads(to_stdout.stdout) == whole


def test_a_limit_is_an_exit_code(headstack: Headstack, stored: Path) -> None:
    ours = str(stored / "curve.json")
    assert headstack("compare", ours, ours, "--fail-below", "100%").returncode == 0
    failed = headstack("compare", ours, "all-flash-8-raid10", "--fail-below", "90%")
    assert failed.returncode == 1
    assert "of the prediction, below 90%" in failed.stderr
    assert failed.stdout.startswith("not enough data for a verdict: all-flash-8-raid10 has throughput ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["curve.json", "nosuch"], "no drive"),
        (["nosuch.json", CHEETAH], "nosuch.json"),
        ([CHEETAH, "curve.json"], f"{CHEETAH}: no such file or folder; compare takes results"),
        (["curve.csv", CHEETAH], "a table contains no workload to simulate"),
        (["curve.json", "other.json"], "no point was both measured and predicted"),
        (["two.json", CHEETAH], "only results of one system can be compared; the file has 2"),
        (["broken.json", CHEETAH], "broken.json: "),
        (["broken.csv", CHEETAH], "columns are missing"),
        (["curve.json", CHEETAH, "--tolerance", "-1%"], "tolerance: "),
        (["curve.json", CHEETAH, "--fail-below", "much"], "--fail-below: "),
        (["curve.json", CHEETAH, "--plot", "x.gif"], "unknown picture format"),
    ],
)
def test_bad_input_gets_one_line(headstack: Headstack, stored: Path, arguments: list[str], message: str) -> None:
    hs.run(CHEETAH, "web-server", depth=1, requests=50).to_json(stored / "other.json")
    hs.run([CHEETAH, ATLAS], "web-server", depth=1, requests=50).to_json(stored / "two.json")
    (stored / "broken.json").write_text('[{"schema": 5}]')
    (stored / "broken.csv").write_text("system,workload\na,b\n")
    files = {path.name: str(path) for path in stored.iterdir()}
    done = headstack("compare", *(files.get(text, text) for text in arguments))
    assert done.returncode == 2, done
    assert message in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1


def _fio_disk(name: str, requests: int, util: float, ticks: int) -> dict[str, object]:
    return {"name": name, "read_ios": requests, "write_ios": 0, "read_ticks": ticks, "write_ticks": 0, "util": util}


def test_a_member_that_stands_out_is_named(headstack: Headstack, stored: Path, tmp_path: Path) -> None:
    disks = [_fio_disk(f"sd{letter}", 800, 11.0, 6500) for letter in "abcdefg"]
    late = _fio_disk("sdh", 820, 15.0, 9100)
    stack = _fio_disk("md6", 6420, 0.0, 0)
    told = tmp_path / "fio.json"
    told.write_text("note: a line of fio's own\n" + json.dumps({"disk_util": [stack, *disks, late]}))
    line = "sdh stands out: 37 % more response time per request than the median of the 7 others"
    busy = "sdh stands out: 33 % more busy time per request than the median of the 7 others"
    argv = ["compare", str(stored / "curve.json"), str(stored / "curve.json"), "--members", str(told)]
    output = headstack(*argv).stdout
    assert busy in output
    assert line not in output, "busy time says it already"
    assert "md6" not in output
    told.write_text(json.dumps({"disk_util": disks}))
    assert "no member stands out among 7" in headstack(*argv).stdout
    saturated = [_fio_disk(f"sd{letter}", 800, 100.0, 20000) for letter in "abc"] + [
        _fio_disk("sdd", 800, 100.0, 60000)
    ]
    told.write_text(json.dumps({"disk_util": saturated}))
    assert (
        "sdd stands out: 200 % more response time per request than the median of the 3 others"
        in headstack(*argv).stdout
    )
    told.write_text(json.dumps({"jobs": []}))
    refused = headstack(*argv)
    assert refused.returncode == 2
    assert "disk_util" in refused.stderr
