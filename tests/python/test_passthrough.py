"""NVMe namespaces by their character devices, which not every machine has: ``make vm-tests``."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Headstack, lacks, nvme

DISK = f"{nvme('headstack-plain')}n1"
GENERIC = DISK.replace("nvme", "ng")
NAMESPACE, BLOCK_DEVICE = f"/dev/{GENERIC}", f"/dev/{DISK}"
BLOCK = 512
CAPACITY = 256 << 20
BLKDISCARD = 0x1277
IO_CMD = 0xC0484E43
"""``NVME_IOCTL_IO_CMD``."""


@pytest.fixture(autouse=True)
def namespace() -> None:
    if "HEADSTACK_VM" not in os.environ:
        lacks("kernel", "this is not the virtual machine of tests/vm/run.sh, whose NVMe drive may be written")
    assert Path(NAMESPACE).is_char_device()


Measure = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def measure(tmp_path: Path, headstack: Headstack) -> Measure:
    def measured(*arguments: str, code: int = 0) -> list[dict[str, Any]]:
        out = tmp_path / "out.json"
        done = headstack("measure", *arguments, "--json", str(out))
        assert done.returncode == code, done.stderr
        results: list[dict[str, Any]] = json.loads(out.read_text())
        return results

    return measured


def content(offset: int, length: int) -> bytes:
    """As the block device shows it, past the page cache."""
    memory = mmap.mmap(-1, length)
    file = os.open(BLOCK_DEVICE, os.O_RDONLY | os.O_DIRECT)
    try:
        assert os.preadv(file, [memory], offset) == length
        return bytes(memory)
    finally:
        os.close(file)


def put(data: bytes, offset: int = 0) -> None:
    file = os.open(BLOCK_DEVICE, os.O_WRONLY)
    try:
        os.pwrite(file, data, offset)
        os.fsync(file)
    finally:
        os.close(file)


def test_reads_are_nvme_commands_to_all_of_the_namespace(measure: Measure) -> None:
    [one, deep] = measure(NAMESPACE, "--size", "4KiB", "--depth", "1,16", "--time", "500ms")
    for result in (one, deep):
        assert "requests were submitted as NVMe commands by io_uring" in result["method_notes"]
        assert result["system"]["kind"] == "NVMe namespace"
        described = result["system"]["description"]
        assert (described["capacity_bytes"], described["block_bytes"]) == (CAPACITY, BLOCK)
        assert described["device"]["name"] == DISK
        assert result["kinds"]["read"]["count"] > 20
        assert result["kinds"]["read"]["errors"] == 0


def test_without_its_name_nothing_is_written(measure: Measure, headstack: Headstack) -> None:
    before = content(0, 1 << 20)
    for destroy in ([], ["--destroy", "ng7n1"], ["--destroy", "nvme7n1"]):
        refused = headstack("measure", NAMESPACE, "--size", "4KiB", "--read", "0", "--time", "200ms", *destroy)
        assert refused.returncode == 2
        assert f"writing destroys the data on this block device; to allow it, add --destroy {DISK}" in refused.stderr
    assert content(0, 1 << 20) == before
    for name in (GENERIC, NAMESPACE, DISK, BLOCK_DEVICE, "headstack-plain"):
        measure(NAMESPACE, "--size", "4KiB", "--read", "0", "--time", "100ms", "--destroy", name)


def test_what_is_mounted_or_carries_a_file_system_is_not_written(tmp_path: Path, headstack: Headstack) -> None:
    subprocess.run(["mkfs.ext4", "-q", "-F", BLOCK_DEVICE, "64M"], check=True)
    write = ("measure", NAMESPACE, "--size", "4KiB", "--read", "0", "--time", "100ms", "--destroy", GENERIC)
    try:
        refused = headstack(*write)
        assert refused.returncode == 2
        assert "--signature ext4" in refused.stderr
        subprocess.run(["mount", "-t", "ext4", BLOCK_DEVICE, tmp_path], check=True)
        try:
            refused = headstack(*write, "--signature", "ext4")
            assert refused.returncode == 2
            assert "is in use" in refused.stderr
        finally:
            subprocess.run(["umount", tmp_path], check=True)
    finally:
        put(bytes(64 << 20))


def test_who_holds_the_character_device_uses_the_block_device(headstack: Headstack) -> None:
    holder = subprocess.Popen(["bash", "-c", f"exec 3<>{NAMESPACE}; echo open; exec sleep 600"], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"open\n"
        for name in (BLOCK_DEVICE, NAMESPACE):
            refused = headstack("measure", name, "--size", "4KiB", "--read", "0", "--time", "100ms", "--destroy", DISK)
            assert refused.returncode == 2
            assert "has it open for writing" in refused.stderr, refused.stderr
    finally:
        holder.kill()
        holder.wait()


def test_stamps_are_found_again_by_both_ways(tmp_path: Path, measure: Measure, headstack: Headstack) -> None:
    part = ("--size", "4KiB", "--destroy", GENERIC, "--range", "0..16MiB")
    [result] = measure(NAMESPACE, *part, "--read", "50", "--depth", "8", "--time", "1s", "--verify")
    integrity = result["integrity"]
    assert integrity["damaged"] == integrity["lost"] == 0, integrity
    # Read by calls and by commands of their own; what is longer than a command takes several.
    for name in (NAMESPACE, BLOCK_DEVICE):
        again = headstack("measure", "verify", name)
        assert again.returncode == 0, again.stderr
        assert "no block is at fault" in again.stdout, again.stdout
    # What was cached of the block device before is not what is read of it now.
    with Path(BLOCK_DEVICE).open("rb") as cached:
        stale = cached.read(1 << 20)
        measure(NAMESPACE, *part, "--read", "0", "--random", "0", "--requests", "256")
        cached.seek(0)
        assert cached.read(1 << 20) == content(0, 1 << 20) != stale


def test_trims_flushes_and_forced_writes_are_commands_too(tmp_path: Path, measure: Measure) -> None:
    put(b"\xff" * (1 << 20))
    job = tmp_path / "job.fio"
    job.write_text(
        f"[global]\nioengine=io_uring_cmd\ncmd_type=nvme\nfilename={NAMESPACE}\nsize=1m\nbs=64k\nwritefua=1\n"
        "[trims]\nrw=trim\n[flushed]\nstonewall\nrw=write\nbs=4k\nfsync=4\nnumber_ios=64\n"
    )
    results = measure("--fio", str(job), "--destroy", GENERIC)
    kinds = [result["kinds"] for result in results]
    assert kinds[0]["trim"]["count"] == 16
    assert kinds[1]["write"]["count"] == 64
    # The run ends with its last write, and not with the flush behind it.
    assert kinds[1]["flush"]["count"] == 15
    assert all(kind["errors"] == 0 for one in kinds for kind in one.values())
    assert content(512 << 10, 64 << 10) == bytes(64 << 10), "trimmed, and not written since"


def test_what_is_too_long_for_the_drive_is_said_before(headstack: Headstack) -> None:
    refused = headstack("measure", NAMESPACE, "--size", "64MiB", "--time", "100ms")
    assert refused.returncode == 2
    assert "of up to" in refused.stderr


def test_a_psync_engine_makes_the_same_commands(measure: Measure) -> None:
    put(os.urandom(1 << 20))
    for engine in ("psync", "ring"):
        [result] = measure(NAMESPACE, "--size", "4KiB", "--depth", "4", "--requests", "500", "--engine", engine)
        assert (result["kinds"]["read"]["count"], result["kinds"]["read"]["errors"]) == (500, 0)


def test_commands_write_what_an_ioctl_reads(measure: Measure) -> None:
    """Held against the kernel's own call, with a command made here by the specification."""
    measure(NAMESPACE, "--size", "8KiB", "--read", "0", "--random", "0", "--requests", "4", "--destroy", GENERIC)
    memory = mmap.mmap(-1, 8192)
    address = _address(memory)
    command = struct.pack("<BBHIIIQQIIIIIIIIII", 2, 0, 0, 1, 0, 0, 0, address, 0, 8192, 16, 0, 15, 0, 0, 0, 0, 0)
    file = os.open(NAMESPACE, os.O_RDWR)
    try:
        assert fcntl.ioctl(file, IO_CMD, bytearray(command)) == 0
    finally:
        os.close(file)
    assert bytes(memory) == content(8192, 8192) != bytes(8192)


def _address(memory: mmap.mmap) -> int:
    import ctypes

    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
