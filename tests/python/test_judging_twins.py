"""`judge` compares disks without peers and past with the latency that a simulated drive has at their load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import headstack as hs
from conftest import REPOSITORY, Headstack, load_script
from headstack.diagnosis.judging.predicting import ACCUSED, slow_probability, student_tail
from headstack.diagnosis.judging.verdict import Verdict

DISK, OTHER = "exos-x24-24tb", "exos-x18-18tb"
SATA, NVME = "pm893-960gb", "pm9a3-1920gb"
Run = Mapping[str, Any]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Returns logs of 60 intervals, as in the measurements of judging."""
    load_script(REPOSITORY / "benches" / "judging_runs.py")
    benches = load_script(REPOSITORY / "benches" / "judging_suspects.py")
    folder = tmp_path_factory.mktemp("logs")

    def log(system: str, interval_s: float, slow: str | None = None, seed: int = 1, **load: Any) -> pl.DataFrame:
        run = {"systems": system, "size": "8KiB", "read": "100", **load}
        if slow is not None:
            fault = folder / f"{slow}.toml"
            fault.write_text(benches._fault("fail-slow", time=f'"{slow}"'))
            run["faults"] = str(fault)
        requests = benches.requests_of(run, benches.INTERVALS * interval_s, folder, seed)
        seen: pl.DataFrame = benches.intervals(requests, interval_s)
        return seen.with_columns(host=pl.lit("h"), disk=pl.lit("sda"))

    return log


def judged(log: pl.DataFrame, *twins: str) -> Verdict:
    (verdict,) = hs.judge(log, twins=twins).verdicts
    return verdict


@pytest.mark.parametrize("load", [{"rate": "20/s"}, {"rate": "70/s"}, {"depth": "1"}, {"depth": "4"}, {"depth": "16"}])
def test_a_healthy_disk_is_within_the_interval_at_any_load(logs: Any, load: Run) -> None:
    log = logs(DISK, 15, **load)
    verdict = judged(log, f"sda={DISK}")
    # Sixteen requests wait for each other, at a disk in order.
    assert verdict.kind == ("queue" if load == {"depth": "16"} else "fine")
    assert verdict.method == "twin"
    predicted = verdict.predicted
    assert predicted is not None
    assert predicted.low_s is not None
    assert predicted.high_s is not None
    assert predicted.low_s < predicted.measured_s < predicted.high_s
    assert judged(log).method is None, "without a twin there is no reference"
    # Without utilization, the queue depth while busy is estimated.
    assert judged(log.with_columns(busy=pl.lit(None, pl.Float64)), f"sda={DISK}").kind != "slow"


@pytest.mark.parametrize("load", [{"rate": "20/s"}, {"depth": "1"}, {"depth": "4"}])
def test_a_disk_three_times_above_the_interval_is_slow(logs: Any, load: Run) -> None:
    verdict = judged(logs(DISK, 15, slow="35ms", **load), f"sda={DISK}")
    assert (verdict.kind, verdict.method) == ("slow", "twin")
    assert verdict.slower is not None
    assert verdict.slower.factor > 3.0
    assert verdict.confidence is not None
    assert verdict.confidence >= ACCUSED
    predicted = verdict.predicted
    assert predicted is not None
    assert verdict.why.startswith(f"sda: reads take {1e3 * predicted.measured_s:.3g} ms at ")
    assert f"; {DISK} is predicted at {1e3 * predicted.latency_s:.3g} ms (" in verdict.why
    assert ", 90 %)" in verdict.why


def test_a_little_above_the_interval_is_no_verdict(logs: Any) -> None:
    verdict = judged(logs(DISK, 15, slow="5ms", depth="4"), f"sda={DISK}")
    assert verdict.kind == "undecided"
    assert "above the interval, but not by enough for a verdict" in verdict.why


def test_an_interval_of_80_percent_accuses_no_disk(logs: Any) -> None:
    verdict = judged(logs(SATA, 1, slow="3ms", rate="600/s", size="4KiB"), f"sda={SATA}")
    assert verdict.kind == "undecided"
    assert ", 80 %): above the interval" in verdict.why


@pytest.mark.parametrize(
    ("system", "interval_s", "load", "reason"),
    [
        (NVME, 1, {"rate": "800/s"}, "not known (0 of 9 data-center NVMe SSDs measured with random reads)"),
        (DISK, 15, {"rate": "10/s", "read": "70"}, "not known (0 of 9 disks measured with mixes of random reads"),
    ],
)
def test_a_model_without_a_known_error_accuses_no_disk(
    logs: Any, system: str, interval_s: float, load: Run, reason: str
) -> None:
    # A fault of 40 times a healthy read of an SSD, and of four times that of a disk.
    verdict = judged(logs(system, interval_s, slow="3ms" if interval_s == 1 else "40ms", **load), f"sda={system}")
    assert verdict.kind == "undecided"
    assert f", without an interval: {reason}" in verdict.why
    assert verdict.predicted is not None
    assert verdict.predicted.slow_probability is None


def test_another_drive_than_named_is_not_called_fine_or_slow(logs: Any) -> None:
    ssd = judged(logs(NVME, 1, rate="800/s"), f"sda={DISK}")
    assert ssd.kind == "undecided"
    assert "faster than random reads, or another drive" in ssd.why
    disk = judged(logs(DISK, 15, rate="40/s"), f"sda={NVME}")
    assert disk.kind == "undecided"
    # Another disk of its class at the same speed cannot be distinguished.
    assert judged(logs(DISK, 15, rate="40/s"), f"sda={OTHER}").kind == "fine"


def test_several_disks_above_one_prediction_are_not_accused(logs: Any) -> None:
    log = logs(DISK, 15, slow="40ms", depth="1")
    named = [log.with_columns(disk=pl.lit(disk)) for disk in ("sda", "sdb", "sdc")]
    several = hs.judge(pl.concat(named), twins=[DISK], peers="none").verdicts
    assert [verdict.kind for verdict in several] == ["undecided"] * 3
    assert all("above the interval, as for most disks compared with it" in verdict.why for verdict in several)
    pair = hs.judge(pl.concat(named[:2]), twins=[DISK], peers="none").verdicts
    assert [verdict.kind for verdict in pair] == ["slow"] * 2


def test_a_disk_ten_times_above_may_be_another_drive(logs: Any) -> None:
    verdict = judged(logs(DISK, 30, slow="140ms", depth="1"), f"sda={DISK}")
    assert verdict.kind == "slow"
    assert verdict.next_step.startswith(f"First check that it is a {DISK} (headstack inspect).")


def test_a_few_requests_are_not_compared(logs: Any) -> None:
    verdict = judged(logs(DISK, 15, slow="35ms", depth="1").head(7), f"sda={DISK}")
    assert verdict.predicted is None


def test_the_command_names_the_drive(headstack: Headstack, tmp_path: Path, logs: Any) -> None:
    logs(DISK, 15, slow="35ms", depth="1").write_parquet(tmp_path / "log.parquet")
    done = headstack("judge", "log.parquet", "--twin", f"sda={DISK}", "--state", "s.json")
    assert done.returncode == 1, done.stderr
    # The stored verdict has the prediction.
    again = headstack("judge", "log.parquet", "--twin", f"sda={DISK}", "--state", "s.json")
    assert again.returncode == 1, again.stderr
    wrong = headstack("judge", "log.parquet", "--twin", "sda=exos-x99")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
    assert 'no drive, array or stack "exos-x99" in the catalogue' in wrong.stderr
    other = headstack("judge", "log.parquet", "--twin", f"sdz={DISK}")
    assert "--twin sdz: no disk of this name or model" in other.stdout


def test_the_probability_of_a_slow_disk_by_hand() -> None:
    # Tables of Student's distribution with four degrees of freedom.
    for t, tail in ((0.0, 0.5), (1.533, 0.1), (2.132, 0.05), (4.604, 0.005), (7.173, 0.001), (-2.132, 0.95)):
        assert student_tail(t) == pytest.approx(tail, rel=2e-3)
    assert slow_probability(math.log(1.49), 0.1, 0.9, 0.01) == 0.0
    # 0.25 / 2.132 is the scale; log(3) - log(1.5) is 5.9 of it, which 0.0021 exceed.
    true, false = 0.01 * (math.log(300) - math.log(2)) / math.log(300), 0.99 * 0.00206
    assert slow_probability(math.log(3.0), 0.25, 0.9, 0.0) == pytest.approx(true / (true + false), rel=0.02)
    # A wider interval, a lower level or more noise are less evidence.
    base = slow_probability(math.log(3.0), 0.25, 0.9, 0.0)
    assert base > slow_probability(math.log(3.0), 0.35, 0.9, 0.0)
    assert base > slow_probability(math.log(3.0), 0.25, 0.75, 0.0)
    assert base > slow_probability(math.log(3.0), 0.25, 0.9, 0.2)
