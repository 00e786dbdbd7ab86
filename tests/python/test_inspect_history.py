"""Snapshots kept, what changed between them, and where they lead."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack.diagnosis.inspection import history
from headstack.diagnosis.inspection.model import Attribute, Identity, Inspection
from headstack.diagnosis.inspection.trends import Trend, trends

SAMPLES = Path(__file__).parent / "samples" / "inspect"
FAILING = SAMPLES / "failing"
SERIAL = "WD-WMAY0SAMPLE9"


def snapshot(hours: int, value: int, raw: int = 0) -> Inspection:
    worn = Attribute(202, "Wear", value, value, 10, raw, str(raw), True)
    identity = Identity(model="M", serial="S1", protocol="ATA")
    return Inspection("x", identity, attributes=(worn,), power_on_hours=hours, taken_unix_s=hours * 3600)


def wear(values: list[tuple[int, int]]) -> Trend:
    (found,) = [trend for trend in trends([snapshot(*point) for point in values]) if trend.key == "202 Wear value"]
    return found


def test_recording_is_idempotent(headstack: Headstack, tmp_path: Path) -> None:
    first = headstack("inspect", str(FAILING), "--record", "db.sqlite")
    assert first.returncode == 0, first.stderr
    assert "db.sqlite: 4 of 4 snapshots are new" in first.stdout
    again = headstack("inspect", str(FAILING), "--record", "db.sqlite")
    assert "db.sqlite: 0 of 4 snapshots are new" in again.stdout
    later = [replace(one, taken_unix_s=(one.taken_unix_s or 0) + 9) for one in hs.inspect(FAILING / "2023-06.json")]
    assert history.record(tmp_path / "db.sqlite", later) == 0, "nothing new was said"
    assert len(history.snapshots(tmp_path / "db.sqlite", SERIAL)) == 4


def test_snapshots_come_back_as_they_were(tmp_path: Path) -> None:
    found = hs.inspect(FAILING, SAMPLES / "sas.smartctl.json", SAMPLES / "nvme-worn.smartctl.json")
    history.record(tmp_path / "new" / "db.sqlite", found[::-1])
    kept = [one for device in history.devices(tmp_path / "new" / "db.sqlite") for one in device]
    assert len(kept) == len(found) == 6
    assert all(one in found for one in kept)


def test_there_and_back_are_two_changes(tmp_path: Path) -> None:
    on, off = snapshot(1, 90), snapshot(2, 80)
    assert history.record(tmp_path / "db", [on, off, replace(on, taken_unix_s=3 * 3600)]) == 3


def test_the_history_says_what_changed_and_how_fast(headstack: Headstack) -> None:
    headstack("inspect", str(FAILING), "--record", "db.sqlite")
    said = headstack("inspect", "history", SERIAL, "--db", "db.sqlite")
    assert said.returncode == 0
    assert "4 snapshots, 2023-01-01 00:00 UTC to 2023-05-31 00:00 UTC" in said.stdout
    assert "own health" in said.stdout
    assert "verdict: replace" in said.stdout
    written = json.loads(headstack("inspect", "history", "--db", "db.sqlite", "--json", "-").stdout)
    (device,) = written["devices"]
    assert device["serial"] == SERIAL
    raw = [c for c in device["changes"] if c["what"] == "5 Reallocated_Sector_Ct raw"]
    assert [(c["before"], c["after"]) for c in raw] == [("4", "96"), ("96", "220"), ("220", "590")]
    slopes = {trend["key"]: trend["per_1000_hours"] for trend in device["trends"]}
    # Least squares through (21000, 0), (22500, 1), (24000, 6), (24600, 31).
    assert slopes["187 Reported_Uncorrect raw"] == pytest.approx(6.936, abs=0.001)
    assert "one line" not in said.stdout


def test_several_snapshots_show_their_trend(headstack: Headstack) -> None:
    said = headstack("inspect", str(FAILING)).stdout
    assert "4 snapshots:" in said
    assert "at its threshold" in said


def test_the_default_database(headstack: Headstack, tmp_path: Path) -> None:
    place = {"XDG_DATA_HOME": str(tmp_path / "data")}
    assert headstack("inspect", str(FAILING), "--record", **place).returncode == 0
    assert (tmp_path / "data" / "headstack" / "inspections.sqlite").is_file()
    assert SERIAL in headstack("inspect", "history", **place).stdout


def test_a_straight_line_is_extrapolated() -> None:
    trend = wear([(0, 100), (10_000, 80), (20_000, 60), (30_000, 40)])
    assert trend.per_1000_hours == pytest.approx(-2)
    assert trend.hours_to_threshold == pytest.approx(15_000)
    assert trend.soonest_hours is not None
    assert trend.latest_hours is not None
    assert 14_000 < trend.soonest_hours < 15_000 < trend.latest_hours < 16_500
    assert "95 %" in trend.says


def test_scatter_widens_the_forecast_until_there_is_none() -> None:
    calm = wear([(0, 100), (1000, 95), (2000, 91), (3000, 85), (4000, 80)])
    wild = wear([(0, 100), (1000, 88), (2000, 99), (3000, 80), (4000, 80)])
    assert calm.plus_minus is not None
    assert wild.plus_minus is not None
    assert wild.plus_minus > 3 * calm.plus_minus
    noise = wear([(0, 100), (1000, 80), (2000, 99), (3000, 85)])
    assert noise.hours_to_threshold is None
    assert "no significant trend" in noise.says


def test_two_points_are_no_forecast() -> None:
    trend = wear([(0, 100), (1000, 90)])
    assert trend.per_1000_hours == pytest.approx(-10)
    assert (trend.hours_to_threshold, trend.plus_minus) == (None, None)
    assert "3 are needed" in trend.says
    same_hour = wear([(5, 100), (5, 90), (5, 80)])
    assert (same_hour.points, same_hour.per_1000_hours) == (1, None)


def test_what_does_not_fall_does_not_end() -> None:
    assert "does not approach" in wear([(0, 90), (1000, 90), (2000, 90)]).says
    assert "does not approach" in wear([(0, 80), (1000, 90), (2000, 95)]).says
    assert wear([(0, 30), (1000, 20), (2000, 10)]).says == "at its threshold"


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE music (song)")


def newer(path: Path) -> None:
    history.record(path, [snapshot(1, 1)])
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 9")


def damaged(path: Path) -> None:
    history.record(path, [snapshot(hour, 1, hour) for hour in range(1, 200)])
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)


def altered(path: Path) -> None:
    history.record(path, [snapshot(1, 1)])
    with sqlite3.connect(path) as database:
        database.execute("UPDATE snapshot SET inspection = '{\"name\": 1}'")


def text(path: Path) -> None:
    path.write_text("not a database, but long enough to have a header of a hundred bytes\n" * 9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (foreign, "an SQLite database of another program"),
        (newer, "version 9 of the database; allowed: 1"),
        (damaged, "not a readable database of inspections"),
        (altered, "snapshot of S1 at 3600: name: 1 is not of type str"),
        (text, "not a readable database of inspections"),
        (lambda path: None, "no such database"),
        (lambda path: path.mkdir(), "db.sqlite: no such database"),
    ],
)
def test_a_database_that_is_not_ours_is_one_line(
    make: object, message: str, headstack: Headstack, tmp_path: Path
) -> None:
    make(tmp_path / "db.sqlite")  # type: ignore[operator]
    refused = headstack("inspect", "history", "S1", "--db", "db.sqlite")
    assert refused.returncode == 2
    assert "db.sqlite" in refused.stderr
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize("make", [foreign, newer, text])
def test_nothing_is_recorded_in_what_is_not_ours(make: object, headstack: Headstack, tmp_path: Path) -> None:
    make(tmp_path / "db.sqlite")  # type: ignore[operator]
    before = (tmp_path / "db.sqlite").read_bytes()
    assert headstack("inspect", str(FAILING), "--record", "db.sqlite").returncode == 2
    assert (tmp_path / "db.sqlite").read_bytes() == before


def test_an_unknown_serial_number_names_the_known(headstack: Headstack) -> None:
    headstack("inspect", str(FAILING), "--record", "db.sqlite")
    refused = headstack("inspect", "history", "NOSUCH", "--db", "db.sqlite")
    assert refused.returncode == 2
    assert f"no snapshot of 'NOSUCH'; recorded: {SERIAL}" in refused.stderr


def test_without_a_serial_number_nothing_is_recorded(headstack: Headstack, tmp_path: Path) -> None:
    samples = [str(SAMPLES / "sas.smartctl.json"), str(SAMPLES / "nvme-smart-log.txt")]
    (tmp_path / "other").mkdir()
    for number, sample in enumerate(samples):
        (tmp_path / "other" / f"{number}.x").write_text(Path(sample).read_text())
    bare = tmp_path / "bare.txt"
    bare.write_text(Path(samples[1]).read_text())
    refused = headstack("inspect", str(bare), "--record", "db.sqlite")
    assert refused.returncode == 2
    assert "no serial number, which snapshots require" in refused.stderr
    assert not (tmp_path / "db.sqlite").exists()
