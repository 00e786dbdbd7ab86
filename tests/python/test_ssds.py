"""Solid-state drives: shown, run, overwritten, refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
    drives = {drive["id"]: drive for drive in json.loads(headstack("catalog", "drives", "list", "--json").stdout)}
    assert (drives[NVME]["kind"], drives[NVME]["dies"], drives[NVME]["interface"]) == ("ssd", 24, "nvme")
    assert drives["cheetah-x15-36lp"]["kind"] == "disk"
    row = next(line for line in headstack("catalog", "drives", "list").stdout.splitlines() if line.startswith(NVME))
    assert "NVME" in row
    shown = headstack("catalog", "drives", "show", NVME).stdout
    assert "derived: C usual for TLC" in shown
    assert "Lenovo Press" in shown


def test_a_drive_describes_itself(small: str, tmp_path: Path) -> None:
    drive = hs.Drive.load(NVME)
    assert list(drive.system["drive"]) == ["ssd"]
    assert drive.capacity_bytes == drive.description["capacity"]["logical_bytes"]
    assert drive.part("50%").system == drive.system
    (tmp_path / "own.toml").write_text(drive.to_toml())
    assert hs.Drive.load(tmp_path / "own.toml").description == drive.description
    assert "2GB" in hs.Drive.load(small)._repr_html_()


def test_they_run_filled_and_in_the_steady_state(small: str, headstack: Headstack) -> None:
    fresh, steady = hs.run(
        small, size="4KiB", read=0, random=100, depth=32, requests=50_000, state=["filled", "steady"]
    )
    assert steady["iops"] < 0.8 * fresh["iops"]
    reads = hs.run([f"{NVME}@10GB", NVME], size="4KiB", read=100, random=100, depth=1, requests=2000)
    assert all(80 < 1000 * row["mean_ms"] < 100 for row in reads)
    refused = headstack("run", "cheetah-x15-36lp", "--state", "steady")
    assert (refused.returncode, "no solid-state drive" in refused.stderr) == (2, True)
    refused = headstack("run", NVME, "--policy", "look")
    assert (refused.returncode, "no disk drive" in refused.stderr) == (2, True)


def test_a_run_that_uses_up_erased_flash_is_not_steady(small: str, headstack: Headstack) -> None:
    writes: dict[str, Any] = {"size": "4KiB", "read": 0, "random": 100, "depth": 32, "requests": 50_000}
    new, used = (hs.run(small, **writes, state=state) for state in ("filled", "steady"))
    assert new[0]["sampling"].startswith("not steady: writes used up erased flash")
    assert (new[0]["half_width_ms"], new[0]["p99_low_ms"]) == (None, None)
    assert any(note.startswith("1 of 1 run is not steady: ") for note in new.notes), new.notes
    assert not (used[0]["sampling"] or "").startswith("not steady")
    assert new.flash_states[0].startswith("small: filled once, in order: ")
    assert used.flash_states[0].startswith("small: steady: ")
    assert hs.run("cheetah-x15-36lp", requests=300).flash_states == []
    reads = hs.run(small, size="4KiB", read=100, random=100, depth=4, requests=20_000)
    assert not (reads[0]["sampling"] or "").startswith("not steady")
    shown = headstack("run", small, "--size", "4KiB", "--read", "0", "--random", "100", "--depth", "32").stdout
    assert "note: small: filled once, in order" in shown
    assert "not steady" in shown


@pytest.mark.parametrize(
    ("system", "words"),
    [
        ("980-1tb", "90 % of SSDs without capacitors do 150 to 3,000 synchronous writes/s"),
        ("pm883-480gb", "the SSD has capacitors"),
        ("exos-x16-16tb", "the write cache is described as protected"),
    ],
)
def test_an_assumed_flush_cost_is_named(system: str, words: str, tmp_path: Path) -> None:
    def notes_of(results: hs.Results) -> list[str]:
        return [note for note in results.notes if note.startswith("this drive has no measured flush cost")]

    job = tmp_path / "sync.fio"
    job.write_text("[log]\nrw=write\nbs=4k\nsize=1m\nfsync=1\ndirect=1\n")
    (note,) = notes_of(hs.run_jobs(job, system))
    assert words in note
    assert notes_of(hs.run(system, "random-write-4k", requests=300, warm_up=0)) == []


def test_openzfs_says_what_is_not_modelled() -> None:
    def notes_on(system: str) -> list[str]:
        return [note for note in hs.run(system, requests=300, warm_up=0).notes if "only the layout of RAIDZ" in note]

    assert len(notes_on("zfs-raidz2-8-nas")) == 1
    assert notes_on("md-raid5-8x2tb") == []


def test_a_skewed_steady_state_is_stated_first(small: str, tmp_path: Path, headstack: Headstack) -> None:
    workload = tmp_path / "hot.toml"
    workload.write_text(
        'name = "hot"\naddresses.zipf.theta = 0.9\n'
        'lines = [{ size = "4KiB", read_percent = 0, random_percent = 100 }]\n'
    )
    for state, stated in [
        ("steady:zipf", "steady:zipf:0.9"),
        ("steady:zipf:1.2", "steady:zipf:1.2"),
        ("steady:zoned:80/20:20/80", "steady:zoned:80/20:20/80"),
    ]:
        run = hs.run(small, str(workload), state=state, requests=20_000)
        assert run.flash_states[0].startswith(f"small: {stated}: overwritten with this skew"), run.flash_states
        assert not (run[0]["sampling"] or "").startswith("not steady")
    refused = headstack("run", small, "-w", str(workload), "--state", "steady:normal")
    assert (refused.returncode, "steady:normal is unknown" in " ".join(refused.stderr.split())) == (2, True)
