"""Intervals in maintenance windows count neither for verdicts nor for what is learned."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest

import headstack as hs
from conftest import Headstack
from headstack._native import InputError
from headstack.diagnosis.judging.exporter import exposition
from headstack.diagnosis.judging.maintenance import Maintenance
from test_suspects import QUIET, log

BERLIN = ZoneInfo("Europe/Berlin")
INTERVAL_S = 15.0


def at(text: str, zone: ZoneInfo | None = None) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone or UTC).timestamp()


def inside(windows: list[str], starts: list[float], zone: ZoneInfo | None = None, length_s: float = 60.0) -> list[bool]:
    """Returns which intervals a window leaves out."""
    lengths = pl.Series([length_s] * len(starts), dtype=pl.Float64)
    return Maintenance.of(windows, zone).is_inside(pl.Series(starts, dtype=pl.Float64), lengths).to_list()


def nightly() -> pl.DataFrame:
    """Returns a day of a quiet disk that is slow from 02:00 to 04:00, when a backup runs."""
    begin_s = at("2026-11-29T00:00")
    day = log(QUIET, QUIET, half=2880).with_columns(start_s=pl.col("start_s") + begin_s)
    is_slow = pl.col("start_s").is_between(at("2026-11-29T02:00"), at("2026-11-29T04:00"), closed="left")
    slower = [pl.when(is_slow).then(8.0 * pl.col(name)).otherwise(pl.col(name)).alias(name) for name in LATENCIES]
    return day.with_columns(slower)


LATENCIES = ("read_latency_s", "write_latency_s", "latency_s", "in_flight")


@pytest.mark.parametrize(
    ("window", "begin", "end"),
    [
        ("2026-11-29T02:00/04:00", "2026-11-29T02:00", "2026-11-29T04:00"),
        ("2026-11-29T22:00/2026-11-30T04:00", "2026-11-29T22:00", "2026-11-30T04:00"),
        ("2026-11-29T02:00+02:00/04:00", "2026-11-29T00:00", "2026-11-29T02:00"),
        ("daily 02:00-04:00", "2026-11-29T02:00", "2026-11-29T04:00"),
        ("02:00-04:00", "2026-11-29T02:00", "2026-11-29T04:00"),
        ("sun 22:00-24:00", "2026-11-29T22:00", "2026-11-30T00:00"),
        ("Sunday 22:00-05:00", "2026-11-29T22:00", "2026-11-30T05:00"),
        ("sat-mon 22:00-05:00", "2026-11-29T22:00", "2026-11-30T05:00"),
        ("wed,sun 01:00-05:00", "2026-11-29T01:00", "2026-11-29T05:00"),
    ],
)
def test_windows_as_people_write_them(window: str, begin: str, end: str) -> None:
    first, last = at(begin), at(end)
    # An interval that touches the window is left out, one that only borders on it is not.
    starts = [first - 60, first - 30, first, last - 30, last - 1, last]
    assert inside([window], starts) == [False, True, True, True, True, False]


def test_days_of_the_week_are_those_of_the_beginning() -> None:
    saturday, sunday = at("2026-11-28T03:00"), at("2026-11-29T03:00")
    assert inside(["sun 02:00-04:00"], [saturday, sunday]) == [False, True]
    # From Saturday evening to Sunday morning.
    assert inside(["sat 22:00-04:00"], [saturday, sunday]) == [False, True]
    assert inside(["fri-sat 22:00-04:00", "sun 03:00-04:00"], [saturday, sunday]) == [True, True]


def test_windows_follow_the_clock_of_their_zone() -> None:
    # Two in the morning in Berlin is 00:00 UTC in summer and 01:00 in winter.
    summer, winter = at("2026-07-01T00:30"), at("2026-12-01T01:30")
    assert inside(["daily 02:00-03:00"], [summer, winter], BERLIN) == [True, True]
    assert inside(["daily 02:00-03:00"], [summer, winter]) == [False, False]
    assert inside(["2026-07-01T02:00/03:00"], [summer, winter], BERLIN) == [True, False]
    # On 2026-10-25, the hour from 02:00 to 03:00 occurs twice: both are maintenance.
    first, second = at("2026-10-25T00:30"), at("2026-10-25T01:30")
    assert inside(["daily 02:00-03:00"], [first, second, second + 3600], BERLIN) == [True, True, False]


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("tomorrow", "tomorrow: not a window; allowed: 2026-11-29T02:00/04:00, daily 02:00-04:00"),
        ("2026-11-29T02:00", "not a window"),
        ("2026-11-29T02:00/half past four", "not a window"),
        ("2026-11-29T04:00/02:00", "the window ends before it begins"),
        ("daily 02:00-02:00", "the window is empty"),
        ("daily 02:00-25:00", "25:00 is no time of day"),
        ("someday 02:00-04:00", "someday is no day; allowed: daily, mon, tue"),
        ("mon-someday 02:00-04:00", "mon-someday is no day"),
    ],
)
def test_a_wrong_window_is_refused(window: str, message: str) -> None:
    with pytest.raises(InputError, match=f"--maintenance: .*{message}"):
        Maintenance.of([window], None)


def test_data_without_times_have_no_windows() -> None:
    with pytest.raises(InputError, match="--maintenance: the input has no times"):
        hs.judge(log(QUIET, QUIET), maintenance=["daily 02:00-04:00"])


def test_a_backup_at_night_changes_no_verdict() -> None:
    night = nightly().filter(pl.col("start_s") < at("2026-11-29T04:00"))
    (with_backup,) = hs.judge(night).verdicts
    judged = hs.judge(night, maintenance=["daily 02:00-04:00"])
    (verdict,) = judged.verdicts
    (without,) = hs.judge(night.filter(pl.col("start_s") < at("2026-11-29T02:00"))).verdicts
    assert with_backup.why.startswith("Likeliest: a slow device")
    assert (verdict.kind, verdict.suspects) == ("undecided", without.suspects)
    assert "480 intervals are left out as maintenance: daily 02:00-04:00 (UTC)" in judged.caveats
    assert judged.document["maintenance_intervals"] == 480
    assert judged.document["intervals"] == 480
    none = hs.judge(night, maintenance=["2026-12-24T00:00/12:00"])
    assert "no interval is left out as maintenance: 2026-12-24T00:00/12:00 (UTC)" in none.caveats
    assert none.verdicts == (with_backup,)


def test_what_is_left_out_stays_so_in_the_next_run() -> None:
    frame = nightly()
    windows = ["daily 02:00-04:00"]
    whole = hs.judge(frame, maintenance=windows)
    cut_s = at("2026-11-29T03:00")
    first = hs.judge(frame.filter(pl.col("start_s") < cut_s), maintenance=windows)
    kept = json.loads(json.dumps(first.state, allow_nan=False))
    second = hs.judge(frame, maintenance=windows, state=kept)
    assert second.verdicts == whole.verdicts
    assert second.document["maintenance_intervals"] == 480
    # Intervals of the first run do not return without its windows.
    third = hs.judge(frame, state=json.loads(json.dumps(whole.state)))
    assert third.verdicts == whole.verdicts
    assert third.document["maintenance_intervals"] == 480
    # States of earlier builds have no number.
    old = {key: value for key, value in kept.items() if key != "maintenance_intervals"}
    assert hs.judge(frame, maintenance=windows, state=old).document["maintenance_intervals"] == 240


def test_a_log_within_a_window_has_no_verdict() -> None:
    frame = nightly()
    judged = hs.judge(frame, maintenance=["2026-11-29T00:00/2026-11-30T00:00"])
    assert judged.verdicts == ()
    assert judged.document["maintenance_intervals"] == 5760


def test_the_command_states_how_many_intervals_are_left_out(headstack: Headstack, tmp_path: Path) -> None:
    nightly().write_parquet(tmp_path / "log.parquet")
    window = ("--maintenance", "sun 03:00-05:00", "--timezone", "Europe/Berlin")
    done = headstack("judge", "log.parquet", *window, "--state", "s.json")
    assert done.returncode == 4, done.stderr
    assert "480 intervals are left out as maintenance: sun 03:00-05:00 (Europe/Berlin)" in done.stdout
    assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))["maintenance_intervals"] == 480
    wrong = headstack("judge", "log.parquet", "--maintenance", "whenever")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "--maintenance: whenever: not a window" in wrong.stderr


def test_prometheus_gets_the_number_of_intervals() -> None:
    assert "\nheadstack_judge_maintenance_intervals_total 480\n" in exposition((), 0.0, 480)
