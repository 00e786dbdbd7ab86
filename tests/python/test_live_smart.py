"""What live exports say of their devices, read by the inspection; crates/live/tests/smart.rs writes the samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack.diagnosis.inspection.inspect import judge
from headstack.diagnosis.inspection.model import Inspection
from headstack.live.control import Control, order_of
from nbd_client import EIO, Client
from test_live import served

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
    assert any("reallocated" in reason.finding.lower() for reason in judge(drive).reasons)


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


@pytest.mark.parametrize(
    ("system", "said"),
    [("wd1200bb", "attribute 1 Raw_Read_Error_Rate"), ("compaq-10k-ii-4", "health self-assessment: FAILED")],
)
def test_a_drive_announces_its_failure_before_data_are_lost(system: str, said: str, tmp_path: Path) -> None:
    """It begins to fail, says so while every byte can be copied, and then loses some."""
    offset, block = 1 << 30, 64 << 10
    written = [bytes([number]) * block for number in range(110)]
    ranges = [{"offset": "1GiB", "length": "64MiB"}]

    def judged() -> tuple[str, str]:
        """The verdict on what the drive says now, and its reasons."""
        (tmp_path / "smart.json").write_text(json.dumps(control.order({"do": "smart"})))
        (found,) = hs.inspect(tmp_path / "smart.json")
        judgement = judge(found)
        return judgement.verdict, "; ".join(reason.finding for reason in judgement.reasons)

    with served(tmp_path, system, "--control", "c", "--write-cache", "off"):
        client, control = Client(tmp_path / "s"), Control(tmp_path / "c")
        for number, data in enumerate(written):
            client.write(offset + number * block, data)
        client.flush()
        assert judged() == ("pass", "")
        control.order({"do": "inject", "fault": {"what": "weak-sectors", "turns": 1, "ranges": ranges}})
        # Read backwards, so that nothing is read ahead; a few are still in the buffer.
        copied = [client.read(offset + number * block, block) for number in reversed(range(110))]
        verdict, reasons = judged()
        assert verdict == "replace"
        assert said in reasons
        assert "ncorrect" not in reasons
        assert copied[::-1] == written, "nothing is lost when it is announced"
        control.order({"do": "inject", "fault": {"what": "media-error", "time": "1ms", "ranges": ranges}})
        with pytest.raises(OSError, match="read") as lost:
            client.read(offset + 50 * block, block)
        assert lost.value.errno == EIO
        assert "ncorrect" in judged()[1]
        client.close()
        control.close()


def test_a_drive_that_fails_at_once_announces_nothing(tmp_path: Path) -> None:
    with served(tmp_path, "wd1200bb", "--control", "c"):
        client, control = Client(tmp_path / "s"), Control(tmp_path / "c")
        ranges = [{"offset": "1GiB", "length": "64KiB"}]
        control.order({"do": "inject", "fault": {"what": "media-error", "time": "1ms", "ranges": ranges}})
        with pytest.raises(OSError, match="read"):
            client.read(1 << 30, 4096)
        report = control.order({"do": "smart"})["devices"][0]
        assert report["smart_status"]["passed"] is True
        client.close()
        control.close()


def test_how_long_a_fault_lasts_is_part_of_the_order() -> None:
    expected = {"do": "inject", "fault": {"what": "hang", "kinds": ["read"]}, "for": "5s"}
    assert order_of(("inject", "hang", 'kinds=["read"]', "for=5s")) == expected
    assert order_of(("inject", "drop-out")) == {"do": "inject", "fault": {"what": "drop-out"}}
