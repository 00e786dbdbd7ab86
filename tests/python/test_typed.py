"""Input as people write it: sizes, rates and percentages, and errors that name what was typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headstack as hs
from conftest import ATLAS, CHEETAH, SHORT, Headstack

SHORTEST = ("--requests", "50", "--warm-up", "0")


def said(headstack: Headstack, *arguments: str) -> str:
    """The one line of a refusal."""
    refused = headstack(*arguments)
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert refused.stderr.count("\n") == 1
    return refused.stderr.removeprefix("headstack: ").rstrip()


def test_sizes_of_requests_are_written_as_fios() -> None:
    short, long = (hs.run(CHEETAH, size=size, requests=200, warm_up=0) for size in ("4k", "4KiB"))
    assert [row["mean_ms"] for row in short] == [row["mean_ms"] for row in long]


def test_a_rate_in_bytes_or_bits_is_as_many_requests_as_carry_it() -> None:
    for rate, per_s in (("8MB/s", 8e6 / 65536), ("2Mb/s", 0.25e6 / 65536), ("100", 100.0)):
        (row,) = hs.run(CHEETAH, size="64KiB", rate=rate, requests=50, warm_up=0)
        assert row["rate_per_s"] == pytest.approx(per_s)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--depth", "0"), "--depth: 0 is out of range; must be 1 to 65536"),
        (("--rate", "0"), "--rate: 0 is out of range; must be above 0 and at most 1e9"),
        (("--rate", "9", "--arrivals", "bursty:0s/1s"), "--arrivals: 0ns is out of range; must be above 0"),
        (("--requests", "0"), "--requests: 0 is out of range; must be 1 or more"),
        (("--read", "101"), "--read: 101 is not a percentage; must be 0 to 100"),
        (("--random=101",), "--random: 101 is not a percentage; must be 0 to 100"),
        (("--size", "5B"), "--size: 5 bytes is not a multiple of the sector size (512 bytes)"),
        (("--confidence", "0"), "--confidence: 0 is out of range; must be above 0 and at most 100"),
        (("--read", "0.7"), "--read: does 0.7 mean 70 % or 0.7 %? write 70 or 0.7%"),
        (("--random", "0.25"), "--random: does 0.25 mean 25 % or 0.25 %? write 25 or 0.25%"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("what", [("run", CHEETAH), ("measure", "null")], ids=lambda what: what[0])
def test_keys_are_named_as_they_were_typed(
    what: tuple[str, ...], options: tuple[str, ...], line: str, headstack: Headstack
) -> None:
    assert said(headstack, *what, *options) == line


@pytest.mark.parametrize(
    ("options", "beginning"),
    [
        (("--queue-depth", "0"), "--queue-depth: 0; must be 1 (no queueing)"),
        (("--reordering", "2"), "--reordering: 2; must be 0 (FCFS)"),
        (("--host-tags", "0"), "--host-tags: 0; must be 1 or more"),
    ],
)
def test_keys_of_drives_are_named_as_they_were_typed(
    options: tuple[str, ...], beginning: str, headstack: Headstack
) -> None:
    assert said(headstack, "run", CHEETAH, *options).startswith(beginning)


def test_the_key_of_a_file_keeps_its_name(headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_text('name = "w"\narrivals = {closed = {queue_depth = 0}}\n[[lines]]\nsize = "4k"\n')
    line = said(headstack, "run", CHEETAH, "-w", "w.toml")
    assert line == "w.toml:3: lines[0].read_percent: this key is missing, and so are lines[0].random_percent"


def test_a_percentage_with_its_sign_is_taken_at_its_word() -> None:
    (row,) = hs.run(CHEETAH, read="0.7%", requests=20, warm_up=0)
    assert "0.7 % read" in row["workload"]


def test_each_command_points_to_the_other(headstack: Headstack, tmp_path: Path) -> None:
    assert said(headstack, "run", "/dev/sda") == (
        "/dev/sda: this is a real file or device; use headstack measure /dev/sda"
    )
    (tmp_path / "file.img").write_bytes(bytes(8192))
    assert said(headstack, "run", "file.img").endswith("use headstack measure file.img")
    assert said(headstack, "measure", CHEETAH) == (
        f"{CHEETAH}: no such file or device; to simulate the system of this name: headstack run {CHEETAH}"
    )
    assert "not found; to create it, add --create" in said(headstack, "measure", "nosuch")


DRIVE = 'name = "Mine"\n[capacity]\nsize = "36.7GB"\n[interface]\nkind = "sata"\nrate = "6Gb/s"\n'


def test_all_missing_keys_of_a_drive_are_told_at_once(headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(DRIVE)
    line = said(headstack, "run", "mine.toml")
    assert "missing" in line
    for key in ("geometry.heads", "spindle.speed", "seek.read_average", "buffer.size"):
        assert key in line, line
    assert "interface" not in line
    assert "capacity" not in line


def test_the_rate_of_a_line_is_as_the_sheet_says_it(headstack: Headstack, tmp_path: Path) -> None:
    text = headstack("catalog", "drives", "show", "constellation2-1tb", "--toml").stdout
    kept = [line for line in text.splitlines() if not line.startswith(("read_ns_per_byte", "write_ns_per_byte"))]
    at = kept.index("[interface]") + 1
    kept = [line for n, line in enumerate(kept) if not (n > at and line.startswith("rate = "))]
    described = []
    for number, rate in enumerate(("6Gb/s", "600MB/s")):
        (tmp_path / f"{number}.toml").write_text("\n".join([*kept[:at], f'rate = "{rate}"', *kept[at:]]))
        result = headstack("run", f"{number}.toml", *SHORTEST, "--json", "-")
        assert result.returncode == 0, result.stderr
        described.append(json.loads(result.stdout)[0]["system"]["description"])
    assert described[0] == described[1]


def test_requests_that_miss_the_sectors_of_the_medium_are_told(headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_text('name = "w"\n[[lines]]\nsize = "4KiB"\nread_percent = 50\nrandom_percent = 100\n')
    told = "requests of 4KiB start at multiples of 512B, but physical sectors are 4KiB"
    drive = "mg10-20tb"
    assert told in headstack("run", drive, "-w", "w.toml", *SHORTEST).stdout
    assert told not in headstack("run", ATLAS, "-w", "w.toml", *SHORTEST).stdout
    assert told not in headstack("run", drive, "--size", "4k", *SHORT).stdout
