"""Modules as one stream: who holds them up, logs that survive interruptions, and the reports made of them."""

import csv
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import headstack as hs
from conftest import Attach, Headstack, is_privileged, lacks
from headstack.measurement.access import Access
from headstack.measurement.tests.conditioning.log import read_log
from headstack.measurement.tests.conditioning.session import Conditioning, Settings, condition

BLOCK = 64 << 10
MB = 10**6


def assert_each_position_once(found: Conditioning) -> None:
    """Every block of the module is in exactly one interval of each pass, on its device."""
    for one in found.passes:
        assert one.is_whole
        position = 0
        for interval in one.intervals:
            assert interval.position_bytes == position
            position += interval.bytes
            assert sum(device["blocks"] for device in interval.devices) * BLOCK == interval.bytes
        assert position == found.module["module_bytes"]
        assert len({device.blocks for device in one.devices}) == 1


# Synthetic logs: exact rates.


def made_log(
    path: Path, rates: list[tuple[float, int]], count: int = 8, passes: tuple[str, ...] = ("write", "read")
) -> Path:
    """A log with an interval of 10 s for each rate in Mb/s, in each pass, held up by the device of that number."""
    steps = [round(rate * 1e6 / 8 * 10 / BLOCK / count) for rate, _ in rates]
    module = {
        "record": "module",
        "schema": 1,
        "headstack": "0.1.0",
        "began": "2012-05-09T00:00:00+00:00",
        "targets": [
            {
                "path": f"/dev/sd{name}",
                "identity": {"kind": "block device", "serial": f"S{name}"},
                "description": {},
                "notes": [],
            }
            for name in "abcdefghijklmnop"[:count]
        ],
        "module_bytes": sum(steps) * count * BLOCK,
        "block_bytes": BLOCK,
        "ahead": 4,
        "interval_ns": 10**10,
        "passes": list(passes),
        "device_bytes": None,
        "class_limits_ns": [1125000 << power for power in range(7)],
    }
    lines: list[dict[str, Any]] = [module]
    for number, kind in enumerate(passes):
        position = 0
        for step, (_, holder) in zip(steps, rates, strict=True):
            devices = []
            for lane in range(count):
                slow = lane == holder
                mean_ns = 2_000_000 if slow else 1_000_000
                classes = [0] * 8
                classes[1 if slow else 0] = step
                devices.append(
                    {
                        "blocks": step,
                        "errors": 0,
                        "busy_ns": 10**10 if slow else 5 * 10**9,
                        "held_ns": 10**10 if slow else 0,
                        "sum_ns": mean_ns * step,
                        "max_ns": mean_ns,
                        "classes": classes,
                        "responses": [[mean_ns, step]],
                    }
                )
            lines.append(
                {
                    "record": "stretch",
                    "pass": number,
                    "position_bytes": position,
                    "bytes": step * count * BLOCK,
                    "duration_ns": 10**10,
                    "devices": devices,
                }
            )
            position += step * count * BLOCK
        lines.append(
            {
                "record": "pass",
                "pass": number,
                "end_bytes": position,
                "is_whole": True,
                "flush_ns": 10**9 if kind == "write" else None,
                "ended_early": None,
                "failures": [],
                "engine": "",
            }
        )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def zones(outer: float, inner: float, count: int = 40) -> list[float]:
    """Rates that fall as those of tracks do: the last is the lowest."""
    return [math.sqrt(outer**2 - (outer**2 - inner**2) * step / (count - 1)) for step in range(count)]


def test_a_module_that_falls_below_at_its_inner_tracks_is_told_where(headstack: Headstack, tmp_path: Path) -> None:
    rates = [(rate, number % 8) for number, rate in enumerate(zones(3000, 1900))]
    log = made_log(tmp_path / "log", rates)
    code, out, _ = headstack("measure", "condition", "--report", str(log), "--require", "2050Mb/s")
    assert code == 1
    # 1900 at the end; sqrt(9e6 - 5.39e6 x) < 2050 from x = 0.8901, which is step 34.7 of 39.
    assert "below the required 2,050 Mb/s in 5 of 40 intervals" in out
    assert "lowest 1,900 Mb/s" in out
    # The devices take turns: the tracks are to blame, and none of them.
    assert out.count("  ok") == 8
    code, out, _ = headstack("measure", "condition", "--report", str(log), "--require", "1.89Gb/s")
    assert (code, out.count("Mb/s throughout")) == (0, 2)
    code, _, _ = headstack("measure", "condition", "--report", str(log), "--require", "250MB/s")
    assert code == 1


def test_one_bad_device_is_named(tmp_path: Path) -> None:
    log = made_log(tmp_path / "log", [(rate, 5) for rate in zones(3000, 1900)])
    found = Conditioning.read(log)
    found.require_mbit_per_s = 2050
    assert [found.verdict(lane) for lane in range(8) if lane != 5] == ["ok"] * 7
    verdict = found.verdict(5)
    assert "limits the module" in verdict
    assert "in 5 of the 5 intervals below 2,050 Mb/s" in verdict
    assert found.passes[0].lowest.holder == 5
    device = found.passes[0].devices[5]
    assert (device.mean_ms, device.quantile_ms(0.5), device.held_share) == (2, 2, 1)
    assert device.classes[1] == device.blocks
    own = device.own_mb_per_s(BLOCK)
    assert own == pytest.approx(found.passes[0].mean_mbit_per_s / 8 / 8, rel=1e-6)


def test_slow_blocks_and_failures_of_one_device_are_told(tmp_path: Path) -> None:
    log = made_log(tmp_path / "log", [(2500, lane % 8) for lane in range(8)])
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    device = lines[3]["devices"][2]
    moved = next(index for index, count in enumerate(device["classes"]) if count)
    device["classes"][moved] -= 20
    device["classes"][6] += 12
    device["classes"][7] += 8
    lines[4]["devices"][6]["errors"] = 3
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = Conditioning.read(log)
    assert found.verdict(2) == "write: 20 blocks of 36 ms or longer, others 0"
    assert found.verdict(6) == "write: 3 blocks failed"
    assert not found.is_kept


def test_a_moment_at_the_end_is_not_judged_by_itself(tmp_path: Path) -> None:
    log = made_log(tmp_path / "log", [(2500, 0)] * 4, passes=("read",))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines[4]["duration_ns"] = 10**9
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    [one] = Conditioning.read(log).passes
    assert len(one.intervals) == 4
    assert [round(interval.duration_s) for interval in one.judged] == [10, 10, 11]
    assert sum(interval.bytes for interval in one.judged) == one.bytes


def test_what_is_no_log_is_one_line(headstack: Headstack, tmp_path: Path) -> None:
    good = made_log(tmp_path / "log", [(2500, 0)] * 3).read_text().splitlines()
    stretch = json.loads(good[1])
    for text, complaint in [
        ("", "empty; not a conditioning log"),
        ("{}\n{}\n", "line 1"),
        ("\n".join([*good[1:], ""]), "line 1"),
        ("\n".join([good[0], good[2], good[1], ""]), "line 2"),
        ("\n".join([good[0], "what?", good[1], ""]), "line 2"),
        ("\n".join([good[0], json.dumps(stretch | {"bytes": 1 << 60}), good[1], ""]), "line 2"),
        ("\n".join([good[0], json.dumps(stretch | {"devices": []}), good[1], ""]), "line 2"),
        ("\n".join([good[0], json.dumps(stretch | {"duration_ns": 0}), good[1], ""]), "line 2"),
    ]:
        path = tmp_path / "bad"
        path.write_text(text)
        code, out, err = headstack("measure", "condition", "--report", str(path))
        assert (code, out) == (2, ""), text[:80]
        assert complaint in err
        assert err.count("\n") == 1


def test_the_picture_shows_a_module(headstack: Headstack, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    log = made_log(
        tmp_path / "log", [(rate, 5 if rate < 2300 else number % 8) for number, rate in enumerate(zones(3000, 1900))]
    )
    picture = tmp_path / "module.png"
    code, _, _ = headstack(
        "measure", "condition", "--report", str(log), "--require", "2050Mb/s", "--plot", str(picture)
    )
    assert code == 1
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert picture.stat().st_size > 20_000


# Targets that store nothing: real streams of known rates.


def test_one_slow_device_holds_the_module_up() -> None:
    settings = Settings(passes=("read",), interval_ns=400_000_000, device_bytes=4 << 20)
    found = condition(["null:1ms", "null:100ms", "null:1ms"], settings)
    assert_each_position_once(found)
    [one] = found.passes
    # Four blocks of each device in 100 ms; a busy machine is late.
    assert 0 < one.mean_mbit_per_s < 1.02 * 3 * 4 * BLOCK * 8 / 0.1 / 1e6
    assert one.devices[1].held_share > 0.5
    assert all(interval.holder == 1 for interval in one.judged)
    assert "limits the module" in found.verdict(1)
    assert (found.verdict(0), found.verdict(2)) == ("ok", "ok")
    assert one.devices[1].classes == [0] * 7 + [(4 << 20) // BLOCK]
    assert sum(one.devices[0].classes) == (4 << 20) // BLOCK


def test_outputs_agree(headstack: Headstack, tmp_path: Path) -> None:
    table, columns = tmp_path / "intervals.csv", tmp_path / "intervals.parquet"
    code, out, _ = headstack(
        "measure", "condition", "null:1ms", "null:1ms", "--size", "16MiB", "--interval", "50ms", "-q",
        "--read-only", "--csv", str(table), "--parquet", str(columns), "--json", "-",
    )  # fmt: skip
    assert code == 0
    figures = json.loads(out)
    rows = list(csv.DictReader(table.open()))
    assert sum(int(row["blocks"]) for row in rows) * BLOCK == figures["module"]["module_bytes"] == 32 << 20
    assert figures["is_whole"]
    assert {row["device"] for row in rows} == {"null:1ms"}
    with duckdb.connect() as connection:
        found = connection.read_parquet(str(columns))
        assert found.columns == list(rows[0])
        assert {str(kind) for name, kind in zip(found.columns, found.types, strict=True) if "blocks" in name} == {
            "UBIGINT"
        }
        [total] = connection.sql(
            f"select sum(blocks)::bigint, sum(\"blocks <1.125ms\")::bigint from '{columns}'"
        ).fetchall()
    assert total == (sum(int(row["blocks"]) for row in rows), sum(int(row["blocks <1.125ms"]) for row in rows))
    assert len(rows) == 2 * len(figures["passes"][0]["intervals"])


# Files: permission, interruption, resuming.


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path in paths:
        path.write_bytes(bytes(4 << 20))
    return [str(path) for path in paths]


def test_files_are_written_only_with_a_word_and_read_without(headstack: Headstack, files: list[str]) -> None:
    code, _, err = headstack("measure", "condition", *files, "--buffered", "-q")
    assert code == 2
    assert "overwrite" in err
    assert all(not any(Path(path).read_bytes()) for path in files)
    code, _, _ = headstack("measure", "condition", *files, "--buffered", "-q", "--read-only")
    assert code == 0
    code, out, _ = headstack("measure", "condition", *files, "--buffered", "-q", "--overwrite")
    assert code == 0
    assert "flushing the caches took" in out
    assert all(is_written(Path(path)) for path in files)


def is_written(path: Path) -> bool:
    """Whether every sector of the first 4 MiB holds something."""
    contents = path.read_bytes()
    return all(contents[at : at + 512].strip(b"\0") for at in range(0, 4 << 20, 512))


def process(*arguments: str) -> subprocess.Popen[str]:
    command = "import sys; from headstack.cli.main import main; main(sys.argv[1:])"
    return subprocess.Popen(
        [sys.executable, "-c", command, "measure", "condition", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_lines(log: Path, count: int) -> None:
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        if log.exists() and log.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.02)
    pytest.fail(f"no {count} lines in {log}")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interruption_loses_nothing_and_is_resumed(
    headstack: Headstack, tmp_path: Path, how: signal.Signals
) -> None:
    log = tmp_path / "module.log"
    targets = ["null:1ms", "null:2ms"]
    begun = process(
        *targets, "--size", "256MiB", "--interval", "100ms", "--log", str(log), "--pass", "read,write", "-q"
    )
    wait_for_lines(log, 5)
    begun.send_signal(how)
    begun.communicate(timeout=30)
    assert begun.returncode == (130 if how == signal.SIGINT else -9)
    before = Conditioning.read(log)
    assert not before.is_whole
    assert before.passes[0].bytes > 0
    assert before.ended_early == ("stopped by hand" if how == signal.SIGINT else None)
    if how == signal.SIGKILL:
        # What a line is torn in the midst of.
        with log.open("a") as file:
            file.write('{"record":"stretch","pass":0,"posi')
    code, out, _ = headstack("measure", "condition", *targets, "--log", str(log), "--resume", "-q")
    assert code == 0
    assert "2 sessions" in out
    found = Conditioning.read(log)
    assert found.is_whole
    assert [one.kind for one in found.passes] == ["read", "write"]
    assert_each_position_once(found)
    length = log.stat().st_size
    code, _, _ = headstack("measure", "condition", *targets, "--log", str(log), "--resume", "-q")
    assert (code, log.stat().st_size) == (0, length)


def test_only_the_same_devices_are_resumed(headstack: Headstack, tmp_path: Path, files: list[str]) -> None:
    log = tmp_path / "module.log"
    condition(files, Settings(passes=("read",)), Access(buffered=True), log=log)
    whole = log.read_text().splitlines(keepends=True)
    log.write_text("".join(whole[:1]))
    common = ("--log", str(log), "--resume", "--buffered", "-q")
    first, second, third = files
    for targets, complaint in [
        ([first, second], "3 targets, but 2"),
        ([second, first, third], "target 1 was"),
        ([first, second, "null"], "kind"),
    ]:
        code, _, err = headstack("measure", "condition", *targets, *common)
        assert code == 2
        assert complaint in err
    os.replace(shutil.copy(third, f"{third}2"), third)
    code, _, err = headstack("measure", "condition", *files, *common)
    assert (code, "inode" in err) == (2, True)
    assert log.read_text() == whole[0]
    code, _, err = headstack("measure", "condition", first, second, f"{third}", *common, "--block", "4KiB")
    assert (code, "--block" in err) == (2, True)


def test_what_cannot_be_conditioned_is_one_line(headstack: Headstack, tmp_path: Path, files: list[str]) -> None:
    log = tmp_path / "there"
    log.write_text("precious")
    for arguments, complaint in [
        ((), "TARGETs"),
        ((files[0], files[0], "--read-only"), "same device as"),
        ((*files, "--read-only", "--pass", "read"), "only one"),
        ((*files, "--pass", "erase"), "allowed: write, read"),
        ((*files, "--read-only", "--block", "1000"), "must be a multiple of 512"),
        ((*files, "--read-only", "--block", "8MiB"), "do not fit on the smallest target"),
        ((*files, "--read-only", "--ahead", "0"), "1 to"),
        ((*files, "null", "--read-only"), "real and null"),
        (("null", "--read-only", "--require", "2050"), "Mb/s"),
        (("null", "--read-only", "--require", "0Mb/s"), "above 0"),
        (("null", "--read-only", "--resume"), "needs a log"),
        (("null", "--read-only", "--log", str(log)), "--resume"),
        (("null", "--report", str(log)), "measures nothing"),
        (("null", "--read-only", "--log", str(log), "--resume"), "empty; not a conditioning log"),
        (("null", "--read-only", "--json", "-", "--csv", "-"), "named twice"),
    ]:
        code, out, err = headstack("measure", "condition", *arguments, "--buffered", "-q")
        assert (code, out) == (2, ""), arguments
        assert complaint in err, arguments
        assert err.count("\n") == 1
    assert log.read_text() == "precious"


def test_a_log_that_cannot_be_written_ends_it_and_loses_nothing(headstack_process: Headstack, tmp_path: Path) -> None:
    log = tmp_path / "log"
    arguments = ("null:1ms", "--read-only", "--interval", "100ms", "--log", str(log), "-q")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        code, out, err = headstack_process("measure", "condition", *arguments, "--json", "-")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert code == 3
    assert f"{log}: File too large" in err
    assert json.loads(out)["passes"][0]["bytes"] > 0
    kept = Conditioning.read(log)
    assert 0 < kept.passes[0].bytes < json.loads(out)["passes"][0]["bytes"]


@pytest.fixture
def small_file_system(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = (
        is_privileged() and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder]).returncode == 0
    )
    if not mounted:
        lacks("root", "a file system of its own needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_failure_that_ends_it_names_the_device_and_is_resumed_where_it_was(
    headstack: Headstack, tmp_path: Path, small_file_system: Path
) -> None:
    good, full, log = tmp_path / "good", small_file_system / "full", tmp_path / "log"
    good.write_bytes(bytes(4 << 20))
    with full.open("wb") as file:
        file.truncate(4 << 20)
    arguments = ("measure", "condition", str(good), str(full), "--overwrite", "--buffered", "-q", "--log", str(log))
    code, out, err = headstack(*arguments)
    assert code == 3
    assert f"{full}: write" in err
    assert "file system is full" in err
    before = Conditioning.read(log)
    assert 1 << 20 < before.passes[0].bytes <= (4 << 20) + BLOCK
    assert "ended at" in out
    # What failed was not passed: with room for it, it is made up for.
    subprocess.run(["mount", "-o", "remount,size=8m", small_file_system], check=True)
    code, _, _ = headstack(*arguments, "--resume")
    assert code == 0
    assert_each_position_once(Conditioning.read(log))
    assert is_written(good)
    assert is_written(full)


# Devices.


@pytest.fixture
def loop_devices(attach: Attach, tmp_path: Path) -> list[str]:
    backings = [tmp_path / f"backing{number}" for number in range(3)]
    for backing in backings:
        backing.write_bytes(bytes(8 << 20))
    return [attach(backing) for backing in backings]


def test_devices_are_conditioned_only_when_all_are_named(
    headstack: Headstack, loop_devices: list[str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    named = [word for device in loop_devices[:2] for word in ("--destroy", device)]
    code, _, err = headstack("measure", "condition", *loop_devices, *named, "-q", "--log", str(log))
    assert (code, loop_devices[2] in err) == (2, True)
    assert not log.exists()
    code, out, _ = headstack(
        "measure", "condition", *loop_devices, *named, "--destroy", loop_devices[2], "-q", "--log", str(log)
    )
    assert code == 0
    assert_each_position_once(Conditioning.read(log))
    # Which of them is slow, a busy machine decides.
    assert all(f"{device} " in out for device in loop_devices)
    module = read_log(str(log)).module
    assert [str(target["identity"]["backing_file"])[-8:] for target in module["targets"]] == [
        "backing0",
        "backing1",
        "backing2",
    ]
    log.write_text(log.read_text().splitlines(keepends=True)[0])
    swapped = [loop_devices[1], loop_devices[0], loop_devices[2]]
    with pytest.raises(hs.InputError, match="backing_file"):
        condition(swapped, None, Access(destroy=tuple(loop_devices)), log=log, resume=True)
