"""`judge` names what makes requests wait: the device, a limit, the queue, the host, or other work."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import headstack as hs
from conftest import REPOSITORY, Headstack
from headstack._native import InputError
from headstack.diagnosis.judging.exporter import exposition
from headstack.diagnosis.judging.live import HostTimes, observe
from headstack.diagnosis.judging.observations import observed
from headstack.diagnosis.judging.sources.files import How
from headstack.diagnosis.judging.suspects.limits import limits_of
from headstack.diagnosis.judging.suspects.phases import phases_of
from headstack.diagnosis.judging.suspects.record import COLUMNS, Record, intervals_of
from headstack.diagnosis.judging.verdict import KINDS

INTERVAL_S, HALF = 15.0, 60
Load = Mapping[str, float]


def log(before: Load, after: Load, seed: int = 1, half: int = HALF) -> pl.DataFrame:
    """Returns a log whose second half differs: `rate`, `spread` of the rate, `ms`, `kib` and `reads` (share), and
    columns of the host."""
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(2 * half):
        load = {"spread": 0.03, "kib": 8.0, "reads": 0.7, **(before if number < half else after)}
        requests = load["rate"] * INTERVAL_S * (1 + load["spread"] * draw.normal())
        latency_s = load["ms"] / 1e3 * draw.lognormal(0.0, 0.03)
        reads = requests * load["reads"]
        context = {name: value for name, value in load.items() if name in ("cpu_idle", "io_pressure", "discards")}
        rows.append(
            {
                "host": "h",
                "disk": "sda",
                "start_s": number * INTERVAL_S,
                "length_s": INTERVAL_S,
                "reads": reads,
                "writes": requests - reads,
                "read_bytes": reads * load.get("read_kib", load["kib"]) * 1024,
                "write_bytes": (requests - reads) * load["kib"] * 1024,
                "read_latency_s": latency_s,
                "write_latency_s": latency_s,
                **context,
            }
        )
    return observed(rows, "test").frame


QUIET = {"rate": 500.0, "ms": 0.8}
CASES: dict[str, tuple[Load, Load]] = {
    "slow": (QUIET, {"rate": 490.0, "ms": 2.4}),
    "limit": ({"rate": 1800.0, "ms": 0.8}, {"rate": 3000.0, "ms": 10.0, "spread": 0.001}),
    "queue": (QUIET, {"rate": 9300.0, "ms": 3.3}),
    "host": (QUIET | {"cpu_idle": 0.7}, {"rate": 150.0, "ms": 0.78, "cpu_idle": 0.02}),
    "neighbour": (QUIET, {"rate": 700.0, "ms": 1.6, "read_kib": 256.0}),
}


@pytest.mark.parametrize("kind", CASES)
def test_each_suspect_is_named(kind: str) -> None:
    (verdict,) = hs.judge(log(*CASES[kind])).verdicts
    assert verdict.kind == kind, verdict
    assert verdict.suspects[0].likelihood >= 0.8
    assert sum(weighed.likelihood for weighed in verdict.suspects) == pytest.approx(1.0, abs=1e-3)
    assert verdict.rests_on == "60 intervals in 15 min, compared with 60 intervals in 15 min before"
    assert verdict.since_s == HALF * INTERVAL_S


def test_a_volume_at_its_limit_is_no_slow_device() -> None:
    (verdict,) = hs.judge(log(*CASES["limit"])).verdicts
    assert "2,999 IOPS within 0.1%, a round number" in verdict.why
    assert "Below it the device answers in 799 us" in verdict.why


def test_a_stated_limit_decides() -> None:
    before, after = {"rate": 1800.0, "ms": 0.8}, {"rate": 2741.0, "ms": 10.0, "spread": 0.03}
    (unknown,) = hs.judge(log(before, after)).verdicts
    (stated,) = hs.judge(log(before, after), limits=["gp3:2750/s"]).verdicts
    (other,) = hs.judge(log(before, after), limits=["sda=9000/s"]).verdicts
    assert unknown.kind != "limit"
    assert stated.kind == "limit"
    assert "99% of the limit of gp3 (2,750 IOPS)" in stated.why
    assert other.kind != "limit"


def test_the_same_load_all_the_time_accuses_nobody() -> None:
    (verdict,) = hs.judge(log(QUIET, QUIET)).verdicts
    assert verdict.kind == "undecided"
    assert verdict.suspects[0].likelihood < 0.8


def test_a_short_log_accuses_no_device() -> None:
    (verdict,) = hs.judge(log(*CASES["slow"], half=10)).verdicts
    assert verdict.kind == "undecided"
    assert "Likeliest: a slow device" in verdict.why


def test_an_episode_that_ended_is_other_work() -> None:
    halves = [log(QUIET, {"rate": 500.0, "ms": 4.0}, seed=seed) for seed in (1, 2, 3)]
    moved = [
        part.with_columns(start_s=pl.col("start_s") + at * 2 * HALF * INTERVAL_S) for at, part in enumerate(halves)
    ]
    calm = log(QUIET, QUIET).with_columns(start_s=pl.col("start_s") + 6 * HALF * INTERVAL_S)
    (verdict,) = hs.judge(pl.concat([*moved, calm])).verdicts
    assert verdict.suspects[0].suspect == "neighbour"
    assert "3 episodes with better times between" in verdict.suspects[0].evidence


def test_the_record_is_the_same_in_parts_and_bounded() -> None:
    rows = intervals_of(log(*CASES["slow"], half=2000))["h", "sda"]
    whole, parts = Record(), Record()
    whole.add(rows)
    at = 0
    for length in (1, 2, 5, 700, 1, 23, 3268):
        parts.add(rows[at : at + length])
        at += length
    assert at == len(rows)
    assert np.array_equal(whole.rows(), parts.rows(), equal_nan=True)
    assert len(whole.rows()) < 200
    again = Record.of(json.loads(json.dumps(whole.plain())))
    assert np.array_equal(again.rows(), whole.rows(), equal_nan=True)
    assert whole.rows()[:, COLUMNS.index("intervals")].sum() == len(rows)


def test_phases_are_found_where_they_begin() -> None:
    record = Record()
    record.add(intervals_of(log(*CASES["slow"]))["h", "sda"])
    assert [phase.start_s for phase in phases_of(record.rows())] == [0.0, HALF * INTERVAL_S]


@pytest.mark.parametrize("text", ["gp3:", "3000", "sda=fast/s", ":3000/s", "sda=0/s", "sda=5/s,6/s"])
def test_a_wrong_limit_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--limits"):
        limits_of([text])


def test_the_exit_code_says_what_it_is(headstack: Headstack, tmp_path: Path) -> None:
    codes = {}
    for kind, halves in CASES.items():
        log(*halves).write_parquet(tmp_path / f"{kind}.parquet")
        done = headstack("judge", f"{kind}.parquet", "--json", "v.json")
        codes[kind] = done.returncode
        (disk,) = json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))["disks"]
        assert disk["kind"] == kind
        assert disk["suspects"][0]["suspect"] == {"slow": "device"}.get(kind, kind)
    assert codes == {"slow": 1, "limit": 5, "queue": 8, "host": 6, "neighbour": 7}


def test_a_limit_has_the_price_of_a_higher_one() -> None:
    (verdict,) = hs.judge(log(*CASES["limit"]), limits=["gp3:3000/s"]).verdicts
    assert "30 requests in flight need up to 37,5" in verdict.why
    assert "1,000 IOPS of gp3 cost $5.00 a month (2024-07, infracost" in verdict.next_step


def test_live_observations_have_the_times_of_the_host() -> None:
    part = next(observe((), 1.0, How()))
    (idle,), (steal,) = part.frame.select("cpu_idle").unique().rows(), part.frame.select("cpu_steal").unique().rows()
    assert 0.0 <= idle[0] <= 1.0
    assert 0.0 <= steal[0] <= 1.0


def test_the_times_of_the_host_become_shares() -> None:
    before = HostTimes(100.0, 1000.0, 700.0, 10.0, 5.0)
    after = HostTimes(110.0, 3000.0, 1200.0, 210.0, 9.0)
    assert after.shares_since(before) == {"cpu_idle": 0.25, "cpu_steal": 0.1, "io_pressure": 0.4}


def test_a_busy_host_with_an_idle_disk_is_no_trouble() -> None:
    busy = {"rate": 2.0, "ms": 0.5, "cpu_idle": 0.0}
    (verdict,) = hs.judge(log(busy, busy)).verdicts
    assert verdict.kind == "undecided"


def test_a_declared_table_has_the_columns_of_the_host() -> None:
    frame = log(*CASES["host"]).select(
        ts=pl.col("start_s"),
        dev=pl.col("disk"),
        r=pl.col("reads"),
        w=pl.col("writes"),
        rl=pl.col("read_latency_s"),
        wl=pl.col("write_latency_s"),
        idle=100 * pl.col("cpu_idle"),
    )
    declared = "disk=dev,time=ts:s,every=15s,reads=r,writes=w,read_latency=rl:s,write_latency=wl:s,cpu_idle=idle:%"
    (verdict,) = hs.judge(frame, columns=declared).verdicts
    assert verdict.kind == "host"
    assert "processors 2% idle" in verdict.why


def test_the_documented_alerts_name_what_is_exported() -> None:
    page = (REPOSITORY / "docs/judge.md").read_text(encoding="utf-8")
    (rules,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (verdict,) = hs.judge(log(*CASES["limit"])).verdicts
    exported = exposition((verdict,), 0.0)
    metrics = set(re.findall(r"headstack_\w+", rules))
    assert metrics == {"headstack_disk_verdict", "headstack_judge_last_interval_timestamp_seconds"}
    assert all(f"\n{metric}" in exported for metric in metrics)
    named = set("|".join(re.findall(r'verdict=~?"([^"]+)"', rules)).split("|"))
    assert named == set(KINDS) - {"undecided", "fine"}
    assert 'verdict="limit"} 1' in exported
