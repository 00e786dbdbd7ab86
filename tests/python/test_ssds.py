"""Solid-state drives: shown, run, preconditioned, refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack

NVME = "dc-p4500-1tb"
SMALL = """name = "Small"
[capacity]
size = "2GB"
[flash]
cells = "mlc"
channels = 2
dies_per_channel = 2
over_provisioning = 0.15
[interface]
kind = "sata"
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return str(path)


def test_they_are_listed_and_shown(headstack: Headstack) -> None:
    drives = {drive["id"]: drive for drive in json.loads(headstack("drives", "list", "--json").stdout)}
    assert (drives[NVME]["kind"], drives[NVME]["dies"], drives[NVME]["interface"]) == ("ssd", 24, "nvme")
    assert drives["cheetah-x15-36lp"]["kind"] == "disk"
    row = next(line for line in headstack("drives", "list").stdout.splitlines() if line.startswith(NVME))
    assert "NVME" in row
    shown = headstack("drives", "show", NVME).stdout
    assert "derived: C usual of TLC" in shown
    assert "Lenovo Press" in shown


def test_a_drive_describes_itself(small: str, tmp_path: Path) -> None:
    drive = hs.Drive.load(NVME)
    assert list(drive.system["drive"]) == ["ssd"]
    assert drive.capacity_bytes == drive.description["capacity"]["logical_bytes"]
    assert drive.part("50%").system == drive.system
    (tmp_path / "own.toml").write_text(drive.to_toml())
    assert hs.Drive.load(tmp_path / "own.toml").description == drive.description
    assert "2GB" in hs.Drive.load(small)._repr_html_()


def test_they_run_and_are_preconditioned(small: str, headstack: Headstack) -> None:
    fresh, steady = hs.run(
        small, size="4KiB", read=0, random=100, depth=32, requests=50_000, preconditioned=["no", "yes"]
    )
    assert steady["iops"] < 0.8 * fresh["iops"]
    reads = hs.run([f"{NVME}@10GB", NVME], size="4KiB", read=100, random=100, depth=1, requests=2000)
    assert all(80 < 1000 * row["mean_ms"] < 100 for row in reads)
    refused = headstack("run", "cheetah-x15-36lp", "--preconditioned", "yes")
    assert (refused.returncode, "no solid-state drive" in refused.stderr) == (2, True)
    refused = headstack("run", NVME, "--policy", "look")
    assert (refused.returncode, "no disk drive" in refused.stderr) == (2, True)
