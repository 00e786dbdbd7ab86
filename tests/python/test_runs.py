"""Runs, sweeps and their results through the Python API."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import headstack as hs
from conftest import ATLAS, CHEETAH
from headstack import _native
from headstack.catalogue.options import OPTIONS, SYNCS
from headstack.simulation.runs import specify


def test_sweep_order_is_the_documented_one() -> None:
    specs = specify(
        [ATLAS, CHEETAH],
        ["file-server", "database"],
        # Given in another order than that of the options.
        {"seed": [1, 2], "depth": [1, 4], "policy": ["fcfs", "sptf"]},
    )
    found = [
        (
            spec["system_name"],
            spec["workload"]["name"],
            spec["system"]["drive"]["disk"]["queue"]["policy"],
            spec["workload"]["arrivals"]["closed"]["queue_depth"],
            spec["seed"],
        )
        for spec in specs
    ]
    assert found == list(
        itertools.product([ATLAS, CHEETAH], ["file-server", "database"], ["fcfs", "sptf"], [1, 4], [1, 2])
    )


def test_options_of_the_api_are_those_of_the_command_line() -> None:
    assert list(hs.Options.__annotations__) == [option.name for option in OPTIONS]
    # The compiled part does not know SYNCS, which are applied in Python.
    assert [option.name for option in OPTIONS if option.name not in SYNCS] == list(_native.OPTIONS)


def test_a_host_stands_before_a_drive() -> None:
    (plain,), (behind,) = specify(ATLAS, None, {}), specify(ATLAS, None, {"host": "m1015"})
    assert behind["system"]["drive"]["disk"]["interface"]["host"]["tags"] == 32
    assert "host" not in plain["system"]["drive"]["disk"]["interface"]
    with pytest.raises(hs.InputError, match=r"set host\.adapter in its file"):
        specify("md-raid5-8x2tb", None, {"host": "m1015"})


def test_every_option_reaches_the_specification() -> None:
    values = {
        "size": "8KiB",
        "read": 67,
        "random": 50,
        "fsync": 2,
        "dsync": 2,
        "streams": 3,
        "range": "10%..20%",
        "policy": "look",
        "queue_depth": 7,
        "reordering": 0.5,
        "ageing": "2s",
        "host_tags": 5,
        "elevator": "sstf",
        "write_cache": "appending",
        "read_ahead": "track",
        "rate": 99,
        "arrivals": "bursty:10ms/1s",
        "confidence": "2%",
        "warm_up": "3s",
        "interval": "1s",
        "preload": 5,
        "seed": 9,
    }
    (plain,) = specify(ATLAS, None, {})
    for name, value in values.items():
        given = {name: value} | ({"rate": 5} if name == "arrivals" else {})
        (changed,) = specify(ATLAS, None, given)
        del changed["labels"]
        assert changed != {key: plain[key] for key in changed}, name
        for section, parameters in plain["system"]["drive"]["disk"].items():
            if isinstance(parameters, dict):
                # A misspelt parameter would be added, and ignored.
                assert changed["system"]["drive"]["disk"][section].keys() == parameters.keys(), name
    (closed,) = specify(ATLAS, None, {"depth": 4, "think": "exponential:5ms", "time": "10s"})
    assert closed["workload"]["arrivals"] == {"closed": {"queue_depth": 4, "think": {"exponential": "5ms"}}}
    assert closed["workload"]["run_length"] == {"time": "10s"}
    of_arrays = {"drives", "drive", "level", "usable", "lun", "fail"}
    others = {"host", "state", "depth", "think", "time", "requests", "faults"}
    assert {*values, *of_arrays, *others} == {option.name for option in OPTIONS}
    assert len(hs.run(ATLAS, **(values | {"confidence": "20%", "warm_up": 10}))) == 1  # type: ignore[arg-type]


def test_load_changes_what_is_measured() -> None:
    results = hs.run(ATLAS, depth=[1, 16], requests=5000)
    one, sixteen = results
    assert (one["depth"], sixteen["depth"]) == (1, 16)
    assert sixteen["iops"] > 1.3 * one["iops"]
    assert sixteen["mean_ms"] > 5 * one["mean_ms"]
    for row in results:
        # Little's law over the table's own columns.
        assert row["iops"] * row["mean_ms"] / 1000 == pytest.approx(row["depth"], rel=0.01)
        assert row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"] <= row["p999_ms"] <= row["max_ms"]
        assert row["checks_passed"]
        assert row["version"] == hs.__version__


def test_short_stroking_is_faster() -> None:
    whole, part = hs.run([ATLAS, f"{ATLAS}@36.7GB"], requests=5000)
    assert part["system"] == f"{ATLAS}@36.7GB"
    assert part["mean_ms"] < 0.95 * whole["mean_ms"]
    (by_option,) = hs.run(ATLAS, range="36.7GB", requests=5000)
    assert by_option["iops"] == part["iops"]


def test_ranges() -> None:
    drive = hs.Drive.load(ATLAS)
    capacity = drive.capacity_bytes
    assert drive.part("50%").span == (0, capacity // 2 // 512 * 512)
    assert drive.part("10GB..20GB").span == (10 * 10**9 // 512 * 512, 20 * 10**9 // 512 * 512 - 10**10 // 512 * 512)
    assert drive.part("0%..100%").span == (0, capacity)
    assert hs.Drive.load(f"{ATLAS}@1GiB").span == (0, 2**30)
    for wrong in ("", "0B", "101%", "20GB..10GB", "10GB..10GB", "..", "x%", "-5%"):
        with pytest.raises(hs.InputError):
            drive.part(wrong)


def test_open_loop_states_rate_and_saturation() -> None:
    calm, saturated = hs.run(ATLAS, rate=[20, 5000], requests=5000)
    assert calm["depth"] is None
    assert calm["rate_per_s"] == 20
    assert not calm["saturated"]
    assert saturated["saturated"]
    assert saturated["iops"] < 1000


def test_seed_decides_and_nothing_else() -> None:
    first, again, other = (hs.run(ATLAS, requests=2000, seed=seed).to_json() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_threads_change_no_byte(tmp_path: Path) -> None:
    code = (
        "import headstack as hs;"
        f"r = hs.run(['{ATLAS}', '{CHEETAH}'], 'file-server', depth=[1, 8, 64], requests=3000);"
        "print(r.to_json(), r.to_csv()); r.to_parquet('r.parquet')"
    )
    runs = []
    for threads in ("1", "2", "7"):
        environment = os.environ | {"RAYON_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=True
        )
        runs.append((done.stdout, (tmp_path / "r.parquet").read_bytes()))
    assert runs[0] == runs[1] == runs[2]


def test_progress_grows_to_the_end_of_long_runs() -> None:
    shares: list[float] = []
    hs.run(ATLAS, depth=[1, 2, 4, 8], requests=400_000, progress=shares.append)
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1


def test_an_exception_in_progress_stops_the_run() -> None:
    def refuse(_share: float) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        hs.run(ATLAS, requests=1_000_000_000, progress=refuse)


def test_errors_are_python_exceptions() -> None:
    assert issubclass(hs.InputError, ValueError)
    assert issubclass(hs.RunError, RuntimeError)
    with pytest.raises(hs.InputError, match="empty list"):
        hs.run(ATLAS, depth=[])
    with pytest.raises(hs.InputError, match="unknown option"):
        hs.run(ATLAS, dept=1)  # type: ignore[call-arg]


def test_a_drive_can_be_changed_in_python() -> None:
    drive = hs.Drive.load(CHEETAH)
    drive.description["mechanics"]["rpm"] = 7200
    fast, slow = hs.run([CHEETAH, drive], requests=3000)
    assert slow["mean_ms"] > fast["mean_ms"]
    assert slow["description_hash"] != fast["description_hash"]


def test_every_drive_of_the_catalogue_runs_every_workload() -> None:
    results = hs.run(hs.drives.list(), hs.workloads.list(), requests=200, warm_up=10)
    assert len(results) == len(hs.drives.list()) * len(hs.workloads.list())
    assert results.failed_checks() == []


def test_public_api_is_documented() -> None:
    for name in hs.__all__:
        assert inspect.getdoc(getattr(hs, name)), name


def test_result_document_is_the_schema_of_the_project() -> None:
    (document,) = json.loads(hs.run(ATLAS, requests=100).to_json())
    assert document["schema"] == 7
    assert document["system"]["description"]["drive"]["disk"]["mechanics"]["rpm"] == 10000
