"""Simulated systems as block devices of the kernel's own, by ublk, which not every kernel has: ``make vm-tests``."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import random
import shutil
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import Headstack, is_privileged, lacks

CONTROL = Path("/dev/ublk-control")
DISK = "cheetah-x15-36lp@0..64MiB"
"""A drive with a volatile write cache."""
BLOCK = 4096
BLOCKS = 64 * 256
BLKDISCARD, BLKZEROOUT = 0x1277, 0x127F
DISCARD = 4
"""A flag of dm-log-writes."""


def test_without_ublk_it_is_refused(headstack: Headstack) -> None:
    if CONTROL.exists():
        pytest.skip("this machine has ublk")
    refused = headstack("serve", DISK, "--ublk", "--floor", "0us")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "/dev/ublk-control not found; load the module (`modprobe ublk_drv`, Linux 6.5 or newer)" in refused.stderr


@pytest.fixture
def ublk() -> None:
    if not is_privileged():
        lacks("root", "ublk devices require root")
    if not CONTROL.exists() and shutil.which("modprobe") is not None:
        subprocess.run(["modprobe", "ublk_drv"], capture_output=True, check=False)
    if not CONTROL.exists():
        lacks("kernel", f"no {CONTROL}")


class Drive:
    """A block device that is read and written past the page cache, and books of what must be there."""

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_DIRECT)
        self.memory = mmap.mmap(-1, 1 << 20)
        self.books: dict[int, bytes] = {}

    def write(self, block: int, data: bytes) -> None:
        self.memory[: len(data)] = data
        assert os.pwritev(self.file, [memoryview(self.memory)[: len(data)]], block * BLOCK) == len(data)
        for number in range(len(data) // BLOCK):
            self.books[block + number] = data[number * BLOCK :][:BLOCK]

    def read(self, block: int, blocks: int = 1) -> bytes:
        view = memoryview(self.memory)[: blocks * BLOCK]
        assert os.preadv(self.file, [view], block * BLOCK) == blocks * BLOCK
        return bytes(view)

    def clear(self, order: int, block: int, blocks: int) -> None:
        fcntl.ioctl(self.file, order, struct.pack("QQ", block * BLOCK, blocks * BLOCK))
        self.books |= dict.fromkeys(range(block, block + blocks), bytes(BLOCK))

    def flush(self) -> None:
        os.fsync(self.file)

    def holds_its_books(self) -> None:
        for start in range(0, BLOCKS, 256):
            found = self.read(start, 256)
            wanted = b"".join(self.books.get(number, bytes(BLOCK)) for number in range(start, start + 256))
            assert found == wanted, f"blocks {start} to {start + 255}"


@contextmanager
def drive_of(live: hs.Live) -> Iterator[Drive]:
    drive = Drive(live.devices[0])
    try:
        yield drive
    finally:
        os.close(drive.file)


def queue(device: str, name: str) -> str:
    return Path("/sys/block", Path(device).name, "queue", name).read_text(encoding="ascii").strip()


def errno_of(attempt: Callable[[], object]) -> int | None:
    try:
        attempt()
    except OSError as error:
        return error.errno
    return None


def inject(live: hs.Live, what: str, **fault: Any) -> Any:
    return live.order({"do": "inject", "fault": {"what": what, **fault}})


@pytest.mark.usefixtures("ublk")
def test_what_is_written_trimmed_and_zeroed_is_read() -> None:
    choose = random.Random(5)
    with hs.serve(DISK, ublk=True, speed=100, floor="0us") as live, drive_of(live) as drive:
        device = live.devices[0]
        assert device.startswith("/dev/ublkb")
        assert os.lseek(drive.file, 0, os.SEEK_END) == BLOCKS * BLOCK
        names = ("logical_block_size", "rotational", "write_cache", "fua", "max_hw_sectors_kb")
        assert [queue(device, name) for name in names] == ["512", "1", "write back", "1", "1024"]
        for _ in range(100):
            length = choose.choice([1, 1, 2, 16, 256])
            block = choose.randrange(BLOCKS - length)
            match choose.randrange(5):
                case 0:
                    drive.clear(BLKDISCARD, block, length)
                case 1:
                    drive.clear(BLKZEROOUT, block, length)
                case 2:
                    drive.flush()
                case _:
                    drive.write(block, choose.randbytes(length * BLOCK))
        drive.holds_its_books()
    assert live.fidelity is not None
    assert live.fidelity["requests"] >= 100
    assert not Path(device).exists()


@pytest.mark.usefixtures("ublk")
def test_requests_take_the_time_of_the_model_at_any_depth() -> None:
    with hs.serve("constant:200ms", size="64MiB", ublk=True, floor="0us") as live:
        command = [
            "fio",
            "--name=j",
            f"--filename={live.devices[0]}",
            "--rw=randread",
            "--direct=1",
            "--output-format=json",
        ]
        asked = ["--ioengine=libaio", "--iodepth=64", "--number_ios=320", "--bs=4k"]
        begun = time.monotonic()
        subprocess.run([*command, *asked], check=True, capture_output=True, timeout=90)
        took = time.monotonic() - begun
        peak = live.order({"do": "status"})["fidelity"]["deepest_queue"]
    # One by one they would take 64 s.
    assert 1 <= took < 40
    assert peak >= 32


def replayed(log: Path) -> bytes:
    """What the writes of a log of dm-log-writes leave on a device of zeros."""
    device, bytes_, at = bytearray(BLOCKS * BLOCK), log.read_bytes(), 512
    _, _, entries = struct.unpack_from("<QQQ", bytes_)
    for _ in range(entries):
        sector, sectors, flags, _ = struct.unpack_from("<QQQQ", bytes_, at)
        at += 512
        if flags & DISCARD:
            device[sector * 512 : (sector + sectors) * 512] = bytes(sectors * 512)
        else:
            device[sector * 512 : (sector + sectors) * 512] = bytes_[at : at + sectors * 512]
        at += 0 if flags & DISCARD else sectors * 512
    return bytes(device)


@pytest.mark.usefixtures("ublk")
def test_a_power_cut_takes_what_was_not_flushed_and_the_journal_tells(tmp_path: Path) -> None:
    journal, scattered = tmp_path / "journal", random.Random(7).sample(range(100, BLOCKS), BLOCKS - 100)
    # So slow that the cache has no time to be written; after the cut the drive has to spin up, which is as slow.
    with hs.serve(DISK, ublk=True, speed=0.3, floor="0us", journal=str(journal)) as live, drive_of(live) as drive:
        for number in range(20):
            drive.write(number, bytes([1 + number]) * BLOCK)
        drive.flush()
        promised = dict(drive.books)
        written: list[int] = []

        def write_until_there_is_no_power() -> None:
            with suppress(OSError):
                for number in scattered:
                    drive.write(number, os.urandom(BLOCK))
                    written.append(number)

        writer = threading.Thread(target=write_until_there_is_no_power)
        writer.start()
        # In the midst of it: a cache that nothing comes to any more would soon be empty.
        while len(written) < 200:
            time.sleep(0.01)
        loss = inject(live, "power-cut", tear="sector")["loss"]
        writer.join()
        assert errno_of(lambda: drive.read(0)) == errno_of(lambda: drive.write(0, bytes(BLOCK))) == errno.EIO
        inject(live, "power-on")
        assert all(drive.read(number) == data for number, data in promised.items())
        lost = [number for number in written if drive.read(number) != drive.books[number]]
        assert lost, "a volatile cache loses something"
        assert loss["lost_writes"] >= 1
        held = b"".join(drive.read(start, 256) for start in range(0, BLOCKS, 256))
    hs.crash.open(journal).convert(tmp_path / "log", to="dm-log-writes")
    assert replayed(tmp_path / "log") == held


@pytest.mark.usefixtures("ublk")
def test_errors_come_out_as_the_kernel_has_them() -> None:
    with hs.serve("constant:1ms", size="64MiB", ublk=True, floor="0us") as live, drive_of(live) as drive:
        # The block layer has no word for what can only be read.
        words = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "ETIMEDOUT": errno.ETIMEDOUT, "EROFS": errno.EIO}
        for name, expected in words.items():
            inject(live, "errno", errno=name)
            assert errno_of(lambda: drive.write(3, b"x" * BLOCK)) == expected, name
            live.order({"do": "clear"})
        assert drive.read(3) == bytes(BLOCK)
        drive.write(3, b"y" * BLOCK)
        assert drive.read(3) == b"y" * BLOCK


@pytest.mark.usefixtures("ublk")
def test_a_file_system_lives_on_it_and_is_told_of_at_the_end(tmp_path: Path) -> None:
    def run(*command: str | Path) -> None:
        subprocess.run(command, check=True, capture_output=True, timeout=90)

    live = hs.serve(DISK, ublk=True, speed=100, floor="0us")
    device = live.devices[0]
    run("mkfs.ext4", "-q", device)
    run("mount", device, tmp_path)
    (tmp_path / "file").write_bytes(b"kept" * 4096)
    run("umount", tmp_path)
    run("fsck.ext4", "-fn", device)
    run("mount", device, tmp_path)
    assert (tmp_path / "file").read_bytes() == b"kept" * 4096
    try:
        with pytest.raises(hs.InputError, match=f"{device}: still in use at the end"):
            live.stop()
        assert not Path(device).exists()
    finally:
        run("umount", tmp_path)
