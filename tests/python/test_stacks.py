"""Stacks: the catalogue's, runs on them, and files of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack.results.intervals.described import described


def test_every_stack_is_listed_and_shown(headstack: Headstack) -> None:
    listed = headstack("catalog", "stacks", "list").stdout
    for name in hs.stacks.list():
        assert name in listed
        stack = hs.stacks.show(name)
        assert stack.summary["layers"]
        assert stack.capacity_bytes > 0
        assert all(value["rule"] for value in stack.derived)
    shown = headstack("catalog", "stacks", "show", "postgresql-ext4-gp3").stdout
    first, *rest = shown.splitlines()
    assert first.endswith("page_cache, ext4, instance over aws-gp3-500")
    assert any(row.startswith("ext4.size") and "derived: default of mkfs.ext4" in row for row in rest)
    assert headstack("catalog", "stacks", "show", "ext4-nvme", "--toml").stdout.startswith("name")


def test_a_run_on_a_stack_says_what_is_not_modelled(headstack: Headstack) -> None:
    done = headstack("run", "ext4-nvme", "--size", "4KiB", "--read", "0", "--fsync", "1", "--requests", "2000")
    assert done.returncode == 0
    assert "not modelled: fragmentation" in done.stdout + done.stderr


def test_an_append_costs_more_than_an_overwrite(tmp_path: Path) -> None:
    """Over two rounds more on the device: the journal and the forced commit block."""
    text = 'name = "x"\n[stack]\nlayers = ["ext4"]\nover = "990-pro-2tb"\n'
    (tmp_path / "old.toml").write_text(text)
    (tmp_path / "new.toml").write_text(f'{text}[ext4]\nwritten = "0B"\n')
    files = [str(tmp_path / "old.toml"), str(tmp_path / "new.toml")]
    overwrites, appends = hs.run(files, size="4KiB", read=0, random=0, fsync=1, requests=2000)
    assert appends["iops"] < overwrites["iops"] / 1.5


def test_the_smaller_limit_decides(headstack: Headstack) -> None:
    """gp3 has 3,000 IOPS and m5.large 3,600 without credits."""
    (limited,) = hs.run("aws-m5-large", size="4KiB", read=100, random=100, depth=64, time="20s")
    assert limited["iops"] == pytest.approx(3000, rel=0.02)


@pytest.mark.parametrize("option", [("--fail", "d1@1s"), ("--lun", "a"), ("--level", "raid5")])
def test_options_of_arrays_are_refused_in_one_line(headstack: Headstack, option: tuple[str, str]) -> None:
    done = headstack("run", "ext4-nvme", "--size", "4KiB", *option)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "only arrays have this option" in done.stderr


def test_a_cluster_runs_and_sums_its_osds(headstack: Headstack) -> None:
    shown = headstack("catalog", "stacks", "show", "rbd-3-copies-nvme").stdout
    assert "ceph over pm983-3840gb" in shown.splitlines()[0]
    assert "ceph.write_cpu" in shown
    runs = hs.run("rbd-3-copies-nvme", size="4KiB", read=0, random=100, requests=3000)
    assert next(iter(runs))["mean_ms"] == pytest.approx(0.417, rel=0.05)
    parts = [component["name"] for component in runs.whole(0)["components"]]
    assert parts.count("osd interface") == 1
    assert "osd CPU" in parts


@pytest.mark.parametrize(("depth", "is_busy"), [("1", False), ("256", True)])
def test_busy_processors_of_osds_are_noted(headstack: Headstack, depth: str, is_busy: bool) -> None:
    common = ("--size", "4KiB", "--read", "0", "--random", "100", "--requests", "10000", "--verbose")
    done = headstack("run", "rbd-ec-4-2-nvme", "--depth", depth, *common)
    assert ("not modelled: CPU contention" in done.stdout + done.stderr) == is_busy


def test_erasure_coding_and_copies_can_be_swept(tmp_path: Path) -> None:
    """Whole stripes read and write more than changed shards, and copies write without a read."""
    stack = 'name = "x"\n[stack]\nlayers = ["ceph"]\nover = "pm9a3-1920gb"\n'
    text = f'{stack}[ceph]\nosds = 6\nhosts = 6\nspeed = "100Gb/s"\n'
    kinds = {"copies": "copies = 3", "reef": 'erasure = "4+2"', "tentacle": 'erasure = "4+2"\nversion = "tentacle"'}
    for name, kind in kinds.items():
        (tmp_path / f"{name}.toml").write_text(f"{text}{kind}\n")
    runs = hs.run([str(tmp_path / f"{name}.toml") for name in kinds], size="4KiB", read=0, random=100, requests=1000)
    latency = {name: run["mean_ms"] for name, run in zip(kinds, runs, strict=True)}
    assert latency["copies"] < latency["tentacle"] < latency["reef"]


def test_a_stack_has_its_own_class_of_errors() -> None:
    one, four = hs.run("ext4-nvme", size="4KiB", read=0, depth=[1, 4], requests=500)
    assert four["iops"] > one["iops"]
    assert described(hs.stacks.show("ext4-nvme")).of_class == "stack"


def test_a_write_back_cache_hides_the_disk_until_it_is_full() -> None:
    """Synchronous writes end on NVMe; write-through waits for the disks of RAID 6."""
    stacks = ["bcache-nearline-nvme", "dm-writecache-md-raid6-12", "lvmcache-md-raid6-12"]
    back, buffered, through = hs.run(stacks, size="4KiB", read=0, random=100, requests=3000)
    assert min(back["iops"], buffered["iops"]) > 20 * through["iops"]


def test_block_caches_are_named_like_their_layers(headstack: Headstack) -> None:
    assert hs.stacks.show("lvmcache-md-raid6-12").summary["layers"] == ["dm_cache"]
    shown = headstack("catalog", "stacks", "show", "bcache-nearline-nvme").stdout
    assert any(row.startswith("bcache.sequential_cutoff") and "default of bcache" in row for row in shown.splitlines())
    done = headstack("run", "bcache-nearline-nvme", "--size", "4KiB", "--read", "50", "--requests", "2000")
    assert "not modelled: locks and garbage collection of the block cache" in done.stdout + done.stderr


def test_impossible_block_caches_are_refused_in_one_line(headstack: Headstack, tmp_path: Path) -> None:
    text = 'name = "x"\n[stack]\nlayers = ["dm_writecache"]\nover = "990-pro-2tb"\n[dm_writecache]\n'
    for rest, expected in [
        ("", "dm_writecache.device: this key is missing"),
        ('device = "990-pro-2tb"\nlow_watermark = 60\n', "60 and 50 % are not allowed"),
        ('device = "990-pro-2tb"\nwhen_full = "stop"\n', "unknown value `stop`; allowed: wait, origin"),
    ]:
        (tmp_path / "x.toml").write_text(text + rest)
        done = headstack("run", str(tmp_path / "x.toml"), "--size", "4KiB")
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert expected in done.stderr
