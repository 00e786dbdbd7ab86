"""A disk that is slow, and a cut of its power."""

import os
import time

import pytest


@pytest.mark.disk("970-evo-1tb@0..64MiB")
def test_a_slow_disk_is_waited_for(disk):
    file = os.open(disk.path, os.O_RDWR)
    disk.inject("latency-spike", time="200ms", percent=100, lasting="1s")
    started = time.monotonic()
    os.pwrite(file, bytes(4096), 0)
    assert time.monotonic() - started > 0.2
    os.close(file)


@pytest.mark.disk("970-evo-1tb@0..64MiB")
def test_what_was_synced_is_there_after_a_cut(disk):
    file = os.open(disk.path, os.O_RDWR)
    os.pwrite(file, b"kept" * 1024, 0)
    os.fsync(file)
    os.close(file)
    lost = disk.cut_power()
    assert lost["lost_bytes"] == 0
    disk.restore_power()
    with open(disk.path, "rb") as file:
        assert file.read(4096) == b"kept" * 1024
