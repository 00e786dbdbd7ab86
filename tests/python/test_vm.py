"""The virtual machine of ``make vm-tests``: the drives and modules that its tests are promised are there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from conftest import lacks, nvme


@pytest.fixture(autouse=True)
def inside() -> None:
    if "HEADSTACK_VM" not in os.environ:
        lacks("kernel", "this is not the virtual machine of tests/vm/run.sh")


def attribute(device: str, name: str) -> str:
    return Path("/sys/block", device, name).read_text(encoding="ascii").strip()


def test_a_plain_and_a_zoned_nvme_drive_are_there() -> None:
    assert [attribute(f"{nvme('headstack-plain')}n1", name) for name in ("size", "queue/logical_block_size")] == [
        str(1 << 19),
        "512",
    ]
    zoned = ("size", "queue/zoned", "queue/nr_zones", "queue/max_open_zones", "queue/max_active_zones")
    assert [attribute(f"{nvme('headstack-zns')}n1", name) for name in zoned] == [
        str(1 << 20),
        "host-managed",
        "32",
        "8",
        "12",
    ]


@pytest.mark.parametrize("module", ["ublk_drv", "null_blk", "dm-log-writes", "scsi_debug", "ext4", "xfs", "btrfs"])
def test_a_module_is_there(module: str) -> None:
    subprocess.run(["modprobe", module], check=True, timeout=60)
    assert Path("/sys/module", module.replace("-", "_")).is_dir()
