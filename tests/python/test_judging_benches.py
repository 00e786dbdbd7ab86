"""The measurements of judging run to their ends on a small made-up log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from conftest import REPOSITORY

DAYS, A_DAY, DISKS = 11, 12, 5


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A host in the form of the Perseus data set, with twelve quarters of an hour a day."""
    draw = np.random.default_rng(1)
    steps = np.array([96 * day + at for day in range(DAYS) for at in range(A_DAY)])
    load = draw.uniform(0.5, 1.0, len(steps))
    tables = [
        pl.DataFrame(
            {
                "ts_s": 900 * (steps + 96),
                "throughput": 1e7 * load,
                "latency": 500 * (1 + load) * draw.lognormal(0.0, 0.04, len(steps)),
            }
        ).with_columns(host=pl.lit("h"), disk=pl.lit(disk))
        for disk in range(DISKS)
    ]
    path = tmp_path_factory.mktemp("benches") / "log.parquet"
    pl.concat(tables).sort("ts_s", "disk").write_parquet(path)
    return path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("judging_feedback.py", "{log}", "--alike"),
            ("real, alike, peers: 0 false alarms", "real, alike, alone", "100 "),
        ),
        (
            ("judging_fleet.py", "--failslow", "{log}", "--years", "20", "--runs", "12/12"),
            ("real, against peers", "by test"),
        ),
    ],
)
def test_a_bench_runs(log: Path, arguments: tuple[str, ...], says: tuple[str, ...]) -> None:
    name, *more = (argument.format(log=log) for argument in arguments)
    done = subprocess.run(
        [sys.executable, f"benches/{name}", *more], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    for text in says:
        assert text in done.stdout
