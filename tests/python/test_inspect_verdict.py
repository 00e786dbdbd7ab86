"""Verdicts and their reasons: packed values alarm nobody, damage does."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack.diagnosis.inspection.inspect import judge
from headstack.diagnosis.inspection.model import (
    Attribute,
    ErrorCounter,
    Identity,
    Inspection,
    NvmeHealth,
    SasHealth,
    SelfTest,
)
from headstack.diagnosis.inspection.raw import decode

SAMPLES = Path(__file__).parent / "samples" / "inspect"
DISK = Identity(model="WDC WD40EFRX", serial="S", rpm=5400, protocol="ATA")
SEAGATE = Identity(model="ST8000NM0055-1RM112", rpm=7200, protocol="ATA")


def attribute(number: int, name: str, raw: int, **changed: object) -> Attribute:
    made = Attribute(number, name, 100, 100, 0, raw, str(raw), False)
    return replace(made, **changed)  # type: ignore[arg-type]


def verdict(**said: object) -> tuple[str, str]:
    """The verdict and the reasons of it."""
    held = {"identity": DISK, **said}
    judgement = judge(Inspection("x", **held))  # type: ignore[arg-type]
    return judgement.verdict, "; ".join(r.finding for r in judgement.reasons if r.verdict == judgement.verdict)


@pytest.mark.parametrize(
    ("number", "name", "raw", "identity", "count", "text"),
    [
        (188, "Command_Timeout", 0x0002_0005_0000, SEAGATE, 0, "0 (5 above 5 s, 2 above 7.5 s)"),
        (188, "Command_Timeout", 0x0001_0001_0003, DISK, 3, "3 (1 above 5 s, 1 above 7.5 s)"),
        (188, "Command_Timeout", 7, DISK, 7, "7"),
        (190, "Airflow_Temperature_Cel", 34 | 25 << 16 | 36 << 24, SEAGATE, None, "34 °C (25 to 36)"),
        (194, "Temperature_Celsius", 33 | 17 << 16 | 49 << 32, DISK, None, "33 °C (17 to 49)"),
        (194, "Temperature_Celsius", 34 | 17 << 32, SEAGATE, None, "34 °C"),
        (1, "Raw_Read_Error_Rate", 197352248, SEAGATE, None, "0 errors in 197,352,248 operations"),
        (7, "Seek_Error_Rate", 3 << 32 | 690123456, SEAGATE, None, "3 errors in 690,123,456 operations"),
        (1, "Raw_Read_Error_Rate", 12, DISK, 12, "12"),
        (9, "Power_On_Hours", 159 << 40 | 20 << 32 | 20416, SEAGATE, 20416, "20,416 h"),
        (9, "Power_On_Hours", 7 << 24 | 20416, DISK, 20416, "20,416 h"),
        (9, "Power_On_Minutes", 120, DISK, 2, "2 h"),
        (5, "Reallocated_Sector_Ct", 3 << 16 | 4, DISK, 4, "4"),
        (197, "Current_Pending_Sector", 1 << 40 | 5, DISK, None, "1099511627781 (packed)"),
        (241, "Total_LBAs_Written", 1 << 40, DISK, 1 << 40, "1,099,511,627,776"),
    ],
)
def test_raw_values(number: int, name: str, raw: int, identity: Identity, count: int | None, text: str) -> None:
    decoded = decode(attribute(number, name, raw), identity)
    assert (decoded.count, decoded.text) == (count, text)


def test_a_seagate_full_of_packed_values_passes() -> None:
    (drive,) = hs.inspect(SAMPLES / "seagate.smartctl.json")
    judgement = judge(drive)
    assert judgement.verdict == "pass"
    assert any("3 of 6 Gb/s" in reason.finding for reason in judgement.reasons)
    assert drive.power_on_hours == 20416
    assert judgement.summary.last_self_test == "Extended offline: Interrupted (host reset)"


@pytest.mark.parametrize(
    ("number", "name", "part"),
    [
        (5, "Reallocated_Sector_Ct", "14 times"),
        (187, "Reported_Uncorrect", "76.7 %"),
        (188, "Command_Timeout", "76.7 %"),
        (197, "Current_Pending_Sector", "16 times"),
        (198, "Offline_Uncorrectable", "39 times"),
        (5, "Unknown_Attribute", "14 times"),
    ],
)
def test_each_sign_with_its_published_odds(number: int, name: str, part: str) -> None:
    assert verdict(attributes=(attribute(number, name, 0),))[0] == "pass"
    found, why = verdict(attributes=(attribute(number, name, 1),))
    assert found == "watch"
    assert part in why


def test_another_vendors_meaning_of_a_number_is_not_judged() -> None:
    assert verdict(attributes=(attribute(198, "Host_Reads_GiB", 900),))[0] == "pass"
    solid = replace(DISK, rpm=0)
    assert verdict(identity=solid, attributes=(attribute(5, "Unknown_SSD_Attribute", 9),))[0] == "pass"


@pytest.mark.parametrize(
    ("number", "name", "expected"),
    [
        (5, "Reallocated_Sector_Ct", "pass"),
        (188, "Command_Timeout", "pass"),
        (197, "Current_Pending_Sector", "pass"),
        (198, "Offline_Uncorrectable", "pass"),
        (187, "Reported_Uncorrect", "watch"),
    ],
)
def test_the_odds_of_disks_are_not_held_against_flash(number: int, name: str, expected: str) -> None:
    counted = (attribute(number, name, 77),)
    for solid in (
        replace(DISK, rpm=0),
        Identity(model="Samsung SSD 850 PRO", serial="S"),
        Identity(family="Intel SSDs"),
    ):
        judgement = judge(Inspection("x", solid, attributes=counted))
        assert judgement.verdict == expected
        assert all(part not in reason.finding for reason in judgement.reasons for part in ("FAST'07", "Backblaze"))
    sas = Inspection("x", replace(DISK, rpm=0, protocol="SCSI"), sas=SasHealth(3, ErrorCounter(9, 0)))
    assert judge(sas).verdict == "pass"


@pytest.mark.parametrize(
    ("value", "expected"), [(100, "pass"), (10, "watch"), (2, "watch"), (1, "replace"), (0, "replace")]
)
@pytest.mark.parametrize("name", ["Media_Wearout_Indicator", "Wear_Leveling_Count", "Percent_Life_Remaining"])
def test_wear_at_its_end_is_held_against_flash(name: str, value: int, expected: str, tmp_path: Path) -> None:
    text = (SAMPLES / "ssd.smartctl.txt").read_text()
    row = f"233 {name} 0x0032 {value:03} {value:03} 000 Old_age Always - 0\n"
    lines = [
        line for line in text.splitlines(keepends=True) if not re.match(r" *177 |.*Percentage Used Endurance", line)
    ]
    at = next(n for n, line in enumerate(lines) if line.startswith("ID#"))
    (tmp_path / "ssd.txt").write_text("".join([*lines[: at + 1], row, *lines[at + 1 :]]))
    (drive,) = hs.inspect(tmp_path / "ssd.txt")
    assert judge(drive).verdict == expected


def test_worn_flash_at_its_own_threshold_is_to_be_replaced() -> None:
    worn = attribute(177, "Wear_Leveling_Count", 0, value=5, threshold=5)
    assert verdict(identity=replace(DISK, rpm=0), attributes=(worn,))[0] == "replace"


def test_two_kinds_of_damage_are_too_much_for_a_disk() -> None:
    reallocated, pending = attribute(5, "Reallocated_Sector_Ct", 1), attribute(197, "Current_Pending_Sector", 1)
    assert verdict(attributes=(reallocated, pending))[0] == "replace"
    assert verdict(attributes=(pending, attribute(198, "Offline_Uncorrectable", 1)))[0] == "watch", "one damage, twice"
    assert verdict(attributes=(reallocated, attribute(188, "Command_Timeout", 1)))[0] == "watch", "may be the cable"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"value": 10, "threshold": 10, "prefailure": True}, "replace"),
        ({"value": 11, "threshold": 10, "prefailure": True}, "pass"),
        ({"value": 10, "threshold": 10, "prefailure": False}, "watch"),
        ({"worst": 9, "threshold": 10, "prefailure": True}, "watch"),
        ({"value": 1, "worst": 1, "threshold": 0, "prefailure": True}, "pass"),
        ({"value": None, "worst": None, "threshold": 10, "prefailure": True}, "pass"),
        ({"value": 0, "worst": 0, "threshold": 10, "prefailure": True}, "pass"),
        ({"when_failed": "now", "prefailure": True}, "replace"),
        ({"when_failed": "past", "prefailure": True}, "watch"),
    ],
)
def test_thresholds(changed: dict[str, object], expected: str) -> None:
    assert verdict(attributes=(attribute(3, "Spin_Up_Time", 0, **changed),))[0] == expected


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ({}, "pass"),
        ({"critical_warning": 1}, "replace"),
        ({"critical_warning": 2}, "watch"),
        ({"critical_warning": 4}, "replace"),
        ({"critical_warning": 8}, "replace"),
        ({"critical_warning": 16}, "replace"),
        ({"critical_warning": 32}, "watch"),
        ({"critical_warning": 64}, "watch"),
        ({"available_spare_percent": 9, "available_spare_threshold_percent": 10}, "replace"),
        ({"available_spare_percent": 10, "available_spare_threshold_percent": 10}, "pass"),
        ({"media_errors": 1}, "watch"),
        ({"critical_temperature_minutes": 1}, "watch"),
        ({"error_log_entries": 4000, "unsafe_shutdowns": 300}, "pass"),
    ],
)
def test_nvme(log: dict[str, int], expected: str) -> None:
    assert verdict(nvme=NvmeHealth(**log))[0] == expected


@pytest.mark.parametrize(
    ("used", "expected"), [(89, "pass"), (90, "watch"), (99, "watch"), (100, "replace"), (255, "replace")]
)
def test_endurance(used: int, expected: str) -> None:
    assert verdict(nvme=NvmeHealth(), endurance_used_percent=used)[0] == expected


def test_sas() -> None:
    assert verdict(sas=SasHealth(0, ErrorCounter(9, 0)))[0] == "pass"
    assert verdict(sas=SasHealth(3, ErrorCounter(9, 0)))[0] == "watch"
    assert verdict(sas=SasHealth(0, ErrorCounter(9, 1)))[0] == "watch"
    assert verdict(sas=SasHealth(3, ErrorCounter(9, 1)))[0] == "replace"
    assert verdict(sas=SasHealth(0, trip_celsius=60), temperature_celsius=60)[0] == "watch"


def test_self_tests() -> None:
    good, failed = SelfTest("Short", "ok", True, 3), SelfTest("Short", "read failure", False, 2)
    aborted, long = SelfTest("Short", "Aborted", None, 4), SelfTest("Extended", "ok", True, 4)
    assert verdict(self_tests=(good,))[0] == "pass"
    assert verdict(self_tests=(aborted, failed))[0] == "replace"
    assert verdict(self_tests=(good, failed))[0] == "watch", "passed since"
    assert verdict(self_tests=(long, failed))[0] == "replace", "another kind of test says nothing of it"
    assert verdict(self_tests=(aborted,))[0] == "pass"


def test_nothing_known_is_not_a_pass() -> None:
    assert verdict()[0] == "unknown"
    assert verdict(passed=True)[0] == "pass"
    assert verdict(passed=False)[0] == "replace"


@pytest.mark.parametrize(
    ("sample", "code", "word"),
    [
        ("disk.smartctl.txt", 0, "pass"),
        ("ssd.smartctl.txt", 0, "pass"),
        ("nvme-worn.smartctl.json", 0, "watch"),
        ("nvme-smart-log.txt", 1, "replace"),
        ("sas.smartctl.txt", 1, "replace"),
        ("failing/2023-06.json", 1, "replace"),
        ("memo/good.hdparm.txt", 0, "unknown"),
    ],
)
def test_check(sample: str, code: int, word: str, headstack: Headstack) -> None:
    said = headstack("inspect", str(SAMPLES / sample), "--check")
    assert said.returncode == code
    assert f"\nverdict: {word}\n" in said.stdout
    assert headstack("inspect", str(SAMPLES / sample)).returncode == 0
    device = json.loads(headstack("inspect", str(SAMPLES / sample), "--json", "-").stdout)["devices"][0]
    assert device["verdict"]["verdict"] == word


def test_the_failing_drive_names_every_reason() -> None:
    (drive,) = hs.inspect(SAMPLES / "failing" / "2023-06.json")
    reasons = "\n".join(reason.finding for reason in judge(drive).reasons if reason.verdict == "replace")
    assert "self-assessment: FAILED" in reasons
    assert "138 is at or below its threshold 140" in reasons
    assert "self-test failed at 24,010 h: Extended offline: Completed: read failure" in reasons


def test_the_warranty_summary() -> None:
    (drive,) = hs.inspect(SAMPLES / "ssd.smartctl.txt")
    summary = judge(drive).summary
    assert summary.power_on_hours == 31234
    assert summary.power_cycles == 412
    assert summary.written_bytes == 128_849_018_880 * 512
    assert summary.written_of_capacity == pytest.approx(128.82, abs=0.01)
    assert summary.endurance_used_percent == 8
    assert summary.last_self_test is None
