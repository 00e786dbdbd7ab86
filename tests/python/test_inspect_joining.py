"""Which captures are of one device: heaps of them hide no failing drive."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import Headstack
from headstack.diagnosis.inspection.inspect import judge
from headstack.diagnosis.inspection.joining import by_device, names_a_device
from headstack.diagnosis.inspection.model import Identity, Inspection, joined

SAMPLES = Path(__file__).parent / "samples" / "inspect"


def capture(folder: Path, name: str, **changed: Any) -> dict[str, Any]:
    """A smartctl capture of a good disk with some fields changed."""
    data: dict[str, Any] = json.loads((SAMPLES / "disk.smartctl.json").read_text()) | changed
    (folder / name).write_text(json.dumps(data))
    return data


@pytest.mark.parametrize(
    "serial",
    [
        "REDACTED", "[redacted]", "", "   ", "00000000", "FFFFFFFF", "XXXXXXXXXXXX", "0123456789ABCDEF", "1234567890",
        "DD564198838B5", "DD5641988439F", "DB9876543214E", "152D00539000", "000000000033",
        "To be filled by O.E.M.", "n/a",
    ],
)  # fmt: skip
def test_what_names_no_device(serial: str) -> None:
    assert not names_a_device(serial)


@pytest.mark.parametrize(
    "serial", ["WD-WX00SAMPLE01", "S250SAMPLE01", "9WM0SAMPLE3", "BTLJ000SAMPLE8P0", "50014ee2abcdef01"]
)
def test_what_names_a_device(serial: str) -> None:
    assert names_a_device(serial)


def test_a_heap_of_redacted_captures_keeps_its_failing_drives(tmp_path: Path, headstack: Headstack) -> None:
    for number in range(20):
        capture(tmp_path, f"{number}.json", serial_number="REDACTED", smart_status={"passed": number not in (3, 11)})
    found = hs.inspect(tmp_path)
    assert len(found) == len(by_device(found)) == 20
    assert sum(judge(one).verdict == "replace" for one in found) == 2
    assert "serial number 'REDACTED' does not identify a device, so its outputs are not joined" in found[0].notes
    said = headstack("inspect", str(tmp_path), "--check")
    assert said.returncode == 1
    assert said.stdout.count("\nverdict: replace\n") == 2
    assert said.stdout.count("\nverdict: pass\n") == 18


def test_redacted_captures_in_one_text_stay_apart(tmp_path: Path) -> None:
    text = (SAMPLES / "disk.smartctl.txt").read_text().replace("WD-WX00SAMPLE01", "[REDACTED]")
    (tmp_path / "all.txt").write_text("\n# smartctl --xall /dev/sdg\n".join([text] * 3))
    assert len(by_device(hs.inspect(tmp_path / "all.txt"))) == 3


@pytest.mark.parametrize(
    "changed",
    [{"model_name": "ST8000NM0055"}, {"wwn": {"naa": 5, "oui": 5358, "id": 1}}, {"device": {"protocol": "SCSI"}}],
    ids=["model", "wwn", "protocol"],
)
def test_two_devices_with_one_serial_number_are_noted(changed: dict[str, Any], tmp_path: Path) -> None:
    capture(tmp_path, "a.json")
    capture(tmp_path, "b.json", smart_status={"passed": False}, **changed)
    one, other = by_device(hs.inspect(tmp_path))
    for [device] in (one, other):
        assert any("also has serial number" in note and note.endswith("they are not joined") for note in device.notes)
    assert {judge(device).verdict for [device] in (one, other)} == {"pass", "replace"}


def test_what_one_device_states_in_two_ways_is_said() -> None:
    smartctl = Inspection(
        "a", Identity("M", serial="S1X", firmware="1.0", rpm=7200), passed=True, read_from=("smartctl: a",)
    )
    hdparm = Inspection("b", Identity("M", serial="S1X", firmware="2.0", rpm=0), passed=False, read_from=("hdparm: b",))
    both = joined([smartctl, hdparm])
    assert "firmware: reported as 1.0 and as 2.0 (smartctl, hdparm)" in both.notes
    assert "rpm: reported as 7200 and as 0 (smartctl, hdparm)" in both.notes
    assert both.passed is False
    assert judge(both).verdict == "replace"
    sysfs = replace(smartctl, identity=Identity("M", firmware="1."), read_from=("sysfs: c",))
    assert joined([smartctl, sysfs]).notes == (), "the kernel cuts what it says"


def test_the_same_program_twice_with_another_verdict_is_two_snapshots(tmp_path: Path) -> None:
    capture(tmp_path, "a.json")
    capture(tmp_path, "b.json", smart_status={"passed": False})
    [device] = by_device(hs.inspect(tmp_path))
    assert [one.passed for one in device] == [True, False]


def test_files_of_one_name_in_two_folders_are_not_of_one_device(tmp_path: Path) -> None:
    for host, serial in (("one", "S4EWNSAMPLE7"), ("two", "S4EWNSAMPLE8")):
        shutil.copytree(SAMPLES / "nvme", tmp_path / host)
        control = next((tmp_path / host).glob("*id-ctrl.json"))
        control.write_text(control.read_text().replace("S4EWNSAMPLE7", serial))
    devices = by_device(hs.inspect(tmp_path / "one", tmp_path / "two"))
    assert len(devices) == 2
    assert all(one.nvme is not None and len(one.read_from) == 3 for [one] in devices)


def test_the_history_keeps_nothing_under_a_name_that_is_none(tmp_path: Path, headstack: Headstack) -> None:
    capture(tmp_path, "a.json", serial_number="REDACTED")
    said = headstack("inspect", str(tmp_path / "a.json"), "--record", str(tmp_path / "db.sqlite"))
    assert said.returncode == 2
    assert "'REDACTED' does not identify a device, which snapshots require; nothing is recorded" in said.stderr
    capture(tmp_path, "a.json")
    assert headstack("inspect", str(tmp_path / "a.json"), "--record", str(tmp_path / "db.sqlite")).returncode == 0
    capture(tmp_path, "b.json", model_name="ST8000NM0055")
    said = headstack("inspect", str(tmp_path / "b.json"), "--record", str(tmp_path / "db.sqlite"))
    assert said.returncode == 2
    assert "has another device under the serial number WD-WX00SAMPLE01: WDC WD40EFRX-68N32N0" in said.stderr
