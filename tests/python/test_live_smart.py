"""What live exports say of their devices, read by the inspection; crates/live/tests/smart.rs writes the samples."""

from __future__ import annotations

from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack.inspection import judge
from headstack.inspection.model import Inspection
from headstack.live.control import order_of

SAMPLES = Path(__file__).parent / "samples" / "inspect"


def report(kind: str) -> Inspection:
    """The only device of a sample."""
    (found,) = hs.inspect(SAMPLES / f"live-{kind}.smartctl.json")
    return found


def test_a_sata_drive_tells_of_its_media_and_its_link() -> None:
    drive = report("sata")
    raw = {attribute.id: attribute.raw for attribute in drive.attributes}
    assert (raw[5], raw[187], raw[197], raw[199]) == (8, 1, 0, 6)
    assert (drive.power_on_hours, drive.power_cycles, drive.passed) == (5, 1, True)
    assert drive.written_bytes == 4096
    assert any("reallocated" in reason.what.lower() for reason in judge(drive).reasons)


def test_a_scsi_drive_tells_of_its_defects() -> None:
    drive = report("scsi")
    assert drive.sas is not None
    assert drive.sas.read is not None
    assert (drive.sas.grown_defects, drive.sas.read.uncorrected, drive.sas.read.corrected) == (8, 1, 4)
    assert (drive.identity.protocol, drive.identity.interface) == ("SCSI", "Parallel SCSI (SPI-4)")


def test_an_nvme_drive_tells_of_its_errors() -> None:
    drive = report("nvme")
    assert drive.nvme is not None
    assert (drive.nvme.media_errors, drive.nvme.unsafe_shutdowns, drive.power_on_hours) == (1, 0, 2)
    assert drive.identity.rpm == 0


@pytest.mark.parametrize("kind", ["sata", "scsi", "nvme"])
def test_the_command_reads_them(kind: str, headstack: Headstack) -> None:
    done = headstack("inspect", str(SAMPLES / f"live-{kind}.smartctl.json"))
    assert done.returncode == 0, done.stderr


def test_how_long_a_fault_lasts_is_part_of_the_order() -> None:
    expected = {"do": "inject", "fault": {"what": "hang", "kinds": ["read"]}, "for": "5s"}
    assert order_of(("inject", "hang", 'kinds=["read"]', "for=5s")) == expected
    assert order_of(("inject", "drop-out")) == {"do": "inject", "fault": {"what": "drop-out"}}
