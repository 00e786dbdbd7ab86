"""A simulated stack as a live device: its latency, and its power loss."""

from __future__ import annotations

import json
import random
import shlex
import shutil
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from nbd_client import Client

POOL = """
name = "ZFS on mirrors of NVMe drives with a log device that loses its cache"

[stack]
layers = ["zfs"]
over   = "md-raid10-8-nvme"

[zfs]
memory = "8GiB"
log    = "980-1tb"
"""
"""Disks would take ten seconds to start after each power cut."""
BLOCK = 4096
CUTS = 100
BLOCKS = 64
"""Blocks that are written again and again."""


def contents(block: int, version: int) -> bytes:
    """Returns the contents of a block, which name it and its version in each sector."""
    return (block.to_bytes(8, "big") + version.to_bytes(8, "big")).ljust(512, b"\0") * (BLOCK // 512)


class Writer(threading.Thread):
    """Writes blocks, some of them without a sync, until the power fails."""

    def __init__(self, socket: Path, seed: int, version: int) -> None:
        super().__init__()
        self.socket, self.draw, self.version = socket, random.Random(seed), version
        self.written: dict[int, list[int]] = {}
        """Versions of each block that were sent since its last acknowledged sync, and that of the sync before them."""
        self.synced: dict[int, int] = {}
        """Version of each block that an acknowledged sync covers."""

    def run(self) -> None:
        with suppress(EOFError, ConnectionError, OSError):
            client = Client(self.socket)
            while True:
                self.write(client)

    def write(self, client: Client) -> None:
        """Writes up to three blocks, and syncs them, or the last one only, or none."""
        acknowledged = {}
        for _ in range(self.draw.randint(1, 3)):
            block = self.draw.randrange(BLOCKS)
            self.version += 1
            self.written.setdefault(block, []).append(self.version)
            client.write(block * BLOCK, contents(block, self.version))
            acknowledged[block] = self.version
        if self.draw.random() < 0.8:
            client.flush()
            self.synced.update(acknowledged)


def test_a_synced_write_survives_a_hundred_power_cuts(tmp_path: Path) -> None:
    draw = random.Random(11)
    synced: dict[int, int] = {}
    sent: dict[int, set[int]] = {}
    version = lost = 0
    (tmp_path / "pool.toml").write_text(POOL)
    with hs.serve(tmp_path / "pool.toml", unix=(str(tmp_path / "s"),)) as live:
        for cut in range(CUTS):
            writer = Writer(tmp_path / "s", cut, version)
            writer.start()
            time.sleep(draw.uniform(0.005, 0.04))
            live.order({"do": "inject", "fault": {"what": "power-cut", "tear": "sector"}})
            writer.join(90)
            assert not writer.is_alive()
            live.order({"do": "inject", "fault": {"what": "power-on"}})
            version = writer.version
            synced.update(writer.synced)
            for block, versions in writer.written.items():
                sent.setdefault(block, set()).update(versions)
            lost += check(tmp_path / "s", synced, sent)
    assert len(synced) == BLOCKS
    assert lost > 0, "some writes without a sync are lost, or the power never failed"


def check(socket: Path, synced: dict[int, int], sent: dict[int, set[int]]) -> int:
    """Reads every block: it holds what was synced last, or something newer. Returns the number of lost writes."""
    lost = 0
    with closing(Client(socket)) as client:
        for block, versions in sent.items():
            data = client.read(block * BLOCK, BLOCK)
            version = int.from_bytes(data[8:16], "big")
            least = synced.get(block, 0)
            assert version >= least, f"block {block} has version {version}; version {least} was synced"
            if version:
                assert data == contents(block, version)
                assert version in versions
            lost += sum(other > version for other in versions)
            # From now on this version is on stable storage.
            sent[block] = {version} if version else set()
            synced[block] = version
    return lost


def test_data_of_a_device_below_zfs_cannot_be_damaged(tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text(POOL)
    with hs.serve(tmp_path / "pool.toml", unix=(str(tmp_path / "s"),)) as live:
        member = live.order({"do": "status"})["gauges"]["devices"][0]["name"]
        fault = {"what": "corrupt", "on": "rest", "how": "bit-flip", "member": member}
        with pytest.raises(hs.InputError, match="contents of devices below a layer that moves data are not modelled"):
            live.order({"do": "inject", "fault": fault})


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_measures_the_latency_of_the_simulated_stack(tmp_path: Path, headstack: Headstack) -> None:
    job = ["--name=log", "--ioengine=nbd", "--rw=write", "--bs=4k", "--fsync=1", "--size=64m"]
    command = f"fio {shlex.join(job)} --uri=$uri --time_based --runtime=6 --output=fio.json --output-format=json"
    (tmp_path / "pool.toml").write_text(POOL)
    done = headstack("serve", "pool.toml", "--speed", "0.01", "--run", command, "--json", "session.json")
    assert done.returncode == 0, done.stdout + done.stderr
    job_result = json.loads((tmp_path / "fio.json").read_text())["jobs"][0]
    measured_ms = (job_result["write"]["clat_ns"]["mean"] + job_result["sync"]["lat_ns"]["mean"]) / 1e6
    session = json.loads((tmp_path / "session.json").read_text())
    results = hs.run(str(tmp_path / "pool.toml"), size="4KiB", read=0, random=0, fsync=1, requests=2_000)
    # A write and its sync: twice the mean, a hundred times slower.
    model_ms = 2 * results[0]["mean_ms"] / 0.01
    # Three standard errors of about 70 syncs that scatter by a quarter, and the error that the session states.
    scatter_ms = 3 * 0.25 / 70**0.5 * model_ms
    assert model_ms - scatter_ms <= measured_ms <= model_ms + scatter_ms + 2 * session["error_ns"] / 1e6, session
