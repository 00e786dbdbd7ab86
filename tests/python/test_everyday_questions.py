"""Everyday questions: the first line has the answer, and names of things that are not modelled get one, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack import _native
from headstack._native import InputError
from headstack.catalogue.unmodelled import unmodelled
from headstack.comparison.differences.student import t_of
from headstack.traces.endurance import BLOCKS, T_95, endurance_of

SHORT = ("--requests", "2000", "--warm-up", "200", "-q")


def first_line(headstack: Headstack, *words: str) -> str:
    done = headstack(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[0]


def refused(headstack: Headstack, *words: str) -> str:
    done = headstack(*words)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    return done.stderr


LAYERS = ["nfs", "NFS", "server:/export", "nfs:/export", "iscsi", "zfs", "xfs", "rbd", "lvmcache"]


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_names_a_stack(name: str) -> None:
    answer = unmodelled(name)
    assert answer is not None
    (stack,) = re.findall(r"for example (\S+) \(headstack catalog stacks list\)", answer)
    assert stack in _native.stack_ids()


def test_names_of_the_catalogue_are_modelled() -> None:
    assert [
        name for name in (*_native.drive_ids(), *_native.array_ids(), *_native.workload_ids()) if unmodelled(name)
    ] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nfs", "headstack catalog stacks list"),
        ("smb", "headstack measure FILE"),
        ("ceph", "rbd-3-copies-nvme"),
        ("glusterfs", "distributed storage other than Ceph RBD is not modelled"),
        ("bcache", "bcache-nearline-nvme"),
        ("zfs", "zfs-raidz2-12-slog"),
        ("btrfs", "this file system is not modelled"),
        ("raid6", "--level raid6"),
        ("gp3", "headstack catalog drives list"),
    ],
)
def test_a_run_states_what_is_not_modelled(headstack: Headstack, name: str, words: str) -> None:
    assert words in refused(headstack, "run", name, "--size", "4KiB")


def test_other_commands_state_what_is_not_modelled(headstack: Headstack) -> None:
    job = ("-w", "oltp-8k", "--rate", "10", "--limit", "p99=1s", "--capacity", "1TB")
    assert "distributed storage other than Ceph RBD" in refused(headstack, "choose", *job, "--among", "lustre")
    assert "applications are not modelled" in refused(headstack, "run", "990-pro-2tb", "-w", "mysql")
    assert "/mnt/nfs/test --create" in refused(headstack, "measure", "nfs", "--size", "4KiB")
    assert "lsblk" in refused(headstack, "measure", "/dev/no-such-device", "--size", "4KiB")


def test_an_everyday_word_names_the_command(headstack: Headstack) -> None:
    assert "headstack run ARRAY --while rebuilding" in refused(headstack, "rebuild")
    assert "--endurance" in refused(headstack, "wear")


def test_the_cost_of_synchronous_writes_is_the_first_line(headstack: Headstack, tmp_path: Path) -> None:
    line = first_line(
        headstack, "run", "990-pro-2tb", "--size", "4KiB", "--read", "0", "--fsync", "1", *SHORT, "--json", "r.json"
    )
    result = hs.Results.read(tmp_path / "r.json").whole(0)
    kinds = result["kinds"]
    assert kinds["write"]["count"] == pytest.approx(kinds["flush"]["count"], abs=1)
    per_s = kinds["flush"]["count"] / result["duration_ns"] * 1e9
    assert f"completes {per_s:,.0f}" in line
    match = re.search(r"write ([\d.]+) µs, flush ([\d.]+) µs .*; 90 % of such SSDs do 150 to 3,000/s", line)
    assert match
    for kind, text in zip(("write", "flush"), match.groups(), strict=True):
        mean_us = kinds[kind]["latency"]["sum_ns"] / kinds[kind]["latency"]["count"] / 1000
        assert float(text) == pytest.approx(mean_us, rel=0.01)


def test_a_drive_with_capacitors_is_faster_at_synchronous_writes(headstack: Headstack) -> None:
    line = first_line(headstack, "run", "990-pro-2tb", "pm9a3-7680gb", "--read", "0", "--fsync", "1", *SHORT)
    assert line.startswith("pm9a3-7680gb is fastest: ")
    assert "990-pro-2tb: " in line
    assert line.count("synchronous writes/s") == 2


def test_flushes_follow_the_given_number_of_writes() -> None:
    for writes in (1, 4):
        kinds = hs.run("990-pro-2tb", read=0, fsync=writes, requests=2000, warm_up=0).whole(0)["kinds"]
        assert kinds["write"]["count"] / kinds["flush"]["count"] == pytest.approx(writes, rel=0.01)


def test_fsync_is_checked(headstack: Headstack) -> None:
    assert "use 1 or more" in refused(headstack, "run", "990-pro-2tb", "--fsync", "0")
    with pytest.raises(InputError, match="has its own"):
        hs.run("990-pro-2tb", "demartek-oltp", fsync=1)
    assert "not available in sweeps" in refused(headstack, "sweep", "990-pro-2tb", "--vary", "fsync=1,2")


def test_a_rebuild_prints_its_time_and_both_latencies(headstack: Headstack) -> None:
    words = ("run", "md-raid5-8x2tb", "--size", "8KiB", "--rate", "50", "--time", "20s", "--while", "rebuilding", "-q")
    line = first_line(headstack, *words)
    match = re.search(
        r"in ([\d.]+) h \(([\d.]+) h to ([\d.]+) h\) under this load, ([\d.]+) h idle; meanwhile mean latency "
        r"([\d.]+)[^;]*? ms instead of ([\d.]+)",
        line,
    )
    assert match, line
    mean, low, high, idle, rebuilding, healthy = map(float, match.groups())
    assert low <= mean <= high
    assert idle < mean
    assert rebuilding > healthy


def test_a_resilver_prints_its_time_and_both_latencies(headstack: Headstack) -> None:
    words = ("--size", "8KiB", "--rate", "30", "--time", "10s", "--while", "rebuilding", "-q")
    line = first_line(headstack, "run", "zfs-raidz2-12-no-slog", *words)
    match = re.search(
        r"resilvers a drive in ([\d.]+) h .*, ([\d.]+) h idle; meanwhile mean latency ([\d.]+)[^;]*? ms instead of "
        r"([\d.]+)",
        line,
    )
    assert match, line
    hours, idle, resilvering, healthy = map(float, match.groups())
    assert idle <= hours
    assert resilvering > healthy


@pytest.mark.parametrize("name", ["md-raid5-8x2tb", "xfs-md-raid6-12x16tb", "zfs-raidz2-12-no-slog"])
def test_a_scrub_prints_its_time_and_both_latencies(headstack: Headstack, name: str) -> None:
    words = ("run", name, "--size", "8KiB", "--rate", "30", "--time", "10s", "--while", "scrubbing", "-q")
    done = headstack(*words)
    match = re.search(
        r"is scrubbed in ([\d.]+) h \(([\d.]+) h to ([\d.]+) h\) under this load, ([\d.]+) h idle; meanwhile mean "
        r"latency ([\d.]+)[^;]*? ms instead of ([\d.]+)",
        done.stdout,
    )
    assert match, done.stdout
    mean, low, high, idle, scrubbing, alone = map(float, match.groups())
    assert low <= mean <= high
    assert idle <= mean
    assert scrubbing > alone
    assert re.search(r"\bscrubbing\b", done.stdout.split("\n", 1)[1]), "the table has both states"


def test_a_resilver_onto_shingled_drives_gets_no_time(headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text(
        'name = "pool"\nyear = 2020\n[[drives]]\ndrive = "wd-red-4tb-smr"\ncount = 4\n[[groups]]\nlevel = "raidz1"\n'
        'chunk_size = "4KiB"\nrecord = "128KiB"\n[sources]\ndefault = "C test"\n'
    )
    (tmp_path / "stack.toml").write_text(
        'name = "stack"\n[stack]\nlayers = ["zfs"]\nover = "pool.toml"\n[zfs]\nversion = "2.3"\nmemory = "16GiB"\n'
        '[sources]\ndefault = "C test"\n'
    )
    words = ("--size", "8KiB", "--rate", "5", "--time", "10s", "--while", "rebuilding", "-q")
    line = first_line(headstack, "run", str(tmp_path / "stack.toml"), *words)
    assert "onto a shingled (SMR) drive, whose time is undecided" in line


@pytest.mark.parametrize("name", ["md-raid5-8x2tb", "xfs-md-raid6-12x16tb", "zfs-raidz2-12-no-slog"])
def test_a_run_with_a_failed_drive_is_called_degraded(headstack: Headstack, name: str) -> None:
    words = ("run", name, "--size", "8KiB", "--depth", "2", "--time", "3s", "-q")
    assert f"{name} serves" in first_line(headstack, *words)
    assert f"{name} (degraded) serves" in first_line(headstack, *words, "--fail", "d1@0s")


@pytest.mark.parametrize(
    "words",
    [
        ("explore",),
        ("choose", "-w", "oltp-8k", "--rate", "1000", "--limit", "p99=20ms", "--capacity", "1TB", "--hosts"),
        ("sweep", "--vary", "depth=1,2"),
    ],
)
def test_every_command_states_what_is_not_modelled(headstack: Headstack, words: tuple[str, ...]) -> None:
    assert f"nfs: {unmodelled('nfs')}" in refused(headstack, *words, "nfs")
    assert f"ceph: {unmodelled('ceph')}" in refused(headstack, *words, "ceph")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("990-pro-2tb",), "single drive"),
        (("md-raid5-8x2tb", "--depth", "1,2"), "one value of --depth"),
        (("md-raid5-8x2tb", "--fail", "d0@1s"), "give only one of them"),
        (("md-raid5-8x2tb", "--curve"), "remove --curve"),
    ],
)
def test_a_rebuild_needs_one_array_and_one_load(headstack: Headstack, words: tuple[str, ...], error: str) -> None:
    assert error in refused(headstack, "run", *words, "--while", "rebuilding")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("990-pro-2tb", "--while scrubbing: 990-pro-2tb is a single drive, which cannot be scrubbed"),
        ("zfs-raidz2-8-nas", "ZFS scrubs its pools; name a stack with the layer zfs over it"),
        ("compaq-raid0-7", "none of its RAID groups survives a failure, so there is no scrub"),
    ],
)
def test_a_scrub_needs_redundancy(headstack: Headstack, name: str, error: str) -> None:
    assert error in refused(headstack, "run", name, "--while", "scrubbing")


def test_reads_at_depth_1_have_parts_that_add_up(headstack: Headstack) -> None:
    line = first_line(headstack, "run", "exos-x24-24tb", "--size", "4KiB", "--depth", "1", *SHORT)
    match = re.search(r"mean latency ([\d.]+) ms.* seek ([\d.]+) ms \+ rotation ([\d.]+) ms \+ other (\d+) µs", line)
    assert match, line
    mean, seek, rotation, other_us = map(float, match.groups())
    assert seek + rotation + other_us / 1000 == pytest.approx(mean, rel=0.02)
    assert "127 of 128 dies are idle" in first_line(headstack, "run", "990-pro-2tb", "--depth", "1", *SHORT)
    assert "do not overlap" not in first_line(headstack, "run", "990-pro-2tb", "--depth", "8", *SHORT)
    assert "do not overlap" not in first_line(headstack, "run", "990-pro-2tb", "--read", "50", *SHORT)


def trace_of(path: Path, written: list[int]) -> hs.Trace:
    """Writes a trace with a write of these bytes in each second."""
    lines = [
        f"{128166372000000000 + 10_000_000 * n},host,0,Write,{4096 * n},{size},1000" for n, size in enumerate(written)
    ]
    path.write_text("\n".join(lines) + "\n")
    return hs.Trace(path)


def test_endurance_is_rated_bytes_by_the_rate_of_writes(tmp_path: Path) -> None:
    report = trace_of(tmp_path / "t.csv", [4096, 8192] * 200).analyze("4KiB", None, None, None).report
    endurance = endurance_of(report, 10**12)
    rate = 400 * 6144 / 399
    assert endurance.written_a_day == pytest.approx(rate * 86_400)
    assert endurance.years == pytest.approx(10**12 / (rate * 86_400 * 365.25))
    assert endurance.half_width_a_day is not None
    assert endurance.half_width_a_day < 0.2 * endurance.written_a_day
    assert pytest.approx(t_of(0.975, BLOCKS - 1), abs=0.001) == T_95


def test_endurance_is_the_first_line(headstack: Headstack, tmp_path: Path) -> None:
    trace_of(tmp_path / "t.csv", [4096] * 400)
    line = first_line(headstack, "trace", "analyze", "t.csv", "--endurance", "1TB")
    assert re.match(r"1TB of endurance last [\d.,]+ years \(.*\) under this trace, which writes .* a day\.", line)
    assert "is not a size" in refused(headstack, "trace", "analyze", "t.csv", "--endurance", "5years")


def test_a_capacity_alone_is_enough_to_choose(headstack: Headstack) -> None:
    done = headstack("choose", "--capacity", "100TB", "--survive", "2", "--on", "2026-01", "-q")
    assert done.returncode == 0
    assert re.match(r"Take \d+ x .*: \$[\d,]+", done.stdout)
    assert "chosen for capacity alone" in done.stdout
    assert "may lose data" not in done.stdout
    assert "add --capacity" in refused(
        headstack, "choose", "-w", "oltp-8k", "--rate", "1", "--limit", "p99=1s", "--volumes", "gp3", "--years", "1"
    )


@pytest.mark.parametrize(
    ("name", "recording"),
    [
        ("wd-red-4tb-smr", ", shingled (SMR)"),
        ("exos-x24-24tb", ", not described as shingled (SMR)"),
        ("990-pro-2tb", "(2TB)"),
    ],
)
def test_a_drive_of_the_catalogue_states_its_recording(headstack: Headstack, name: str, recording: str) -> None:
    assert first_line(headstack, "catalog", "drives", "show", name).endswith(recording)


def test_commits_of_postgresql_are_answered_by_a_stack(headstack: Headstack) -> None:
    """The log of a drive with capacitors is fast, and that of gp3 takes 3,000 IOPS for a write each."""
    assert "-w postgresql" in refused(headstack, "run", "990-pro-2tb", "-w", "postgres")
    stacks = ["postgresql-ext4-nvme", "postgresql-ext4-gp3"]
    results = hs.run(stacks, "postgresql", depth=1, time="5s", warm_up="1s")
    nvme, gp3 = (results.streams_of(index)[0]["facts"] for index in range(2))
    assert nvme["transactions_per_s"] > 3 * gp3["transactions_per_s"]
    assert 0.5 < gp3["p50_commit_ms"] < 5
    line = first_line(headstack, "run", *stacks, "-w", "postgresql", "--depth", "16", "--time", "1s", "--warm-up", "0s")
    rates = re.findall(r"([\d,]+) transactions/s with 16 clients, p99 of a commit [\d.]+ (?:µs|ms)", line)
    assert line.startswith("postgresql-ext4-nvme is fastest: ")
    assert len(rates) == 2
