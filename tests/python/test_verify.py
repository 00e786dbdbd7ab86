"""Verified measurements from the command line: under load, after a crash, and with faults planted."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import headstack as hs
from conftest import Attach, Headstack, lacks, needs_program

BLOCK, BLOCKS = 4096, 256
SIZE = BLOCK * BLOCKS

MIXED = """
name = "mixed"
warm_up = { requests = 0 }
flush_every = 100
lines = [{ size = "4KiB", align = "4KiB", read_percent = 30, random_percent = 100, trim_percent = 5 }]
"""

ONCE = """
name = "once"
warm_up = { requests = 0 }
addresses = "once"
lines = [{ size = "4KiB", align = "4KiB", read_percent = 0, random_percent = 100 }]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of each test, with workloads in it."""
    monkeypatch.chdir(tmp_path)
    Path("mixed.toml").write_text(MIXED)
    Path("once.toml").write_text(ONCE)
    return tmp_path


def verified(headstack: Headstack, target: str = "data", *options: str) -> tuple[int, dict[str, int], list[str], str]:
    """Exit code, blocks by class, findings and stderr of a pass."""
    code, out, err = headstack("measure", "verify", target, "-q", "--json", "-", *options)
    integrity = json.loads(out)[0]["integrity"] if out else {}
    findings = [text for text in integrity.pop("findings", []) if not text.startswith("torn request")]
    cannot_tell = integrity.pop("cannot_tell", [])
    assert all(isinstance(text, str) for text in cannot_tell)
    return code, integrity, findings, err


def write_once(headstack: Headstack, *options: str) -> bytes:
    """Writes every block once, and returns what is there then."""
    words = ("measure", "data", "-w", "once.toml", "--requests", str(BLOCKS), "-q", *options)
    code, out, err = headstack(*words)
    assert code == 0, err
    assert f"ledger: {'data.ledger'}" in out
    return Path("data").read_bytes()


def put(offset: int, data: bytes) -> None:
    with open("data", "r+b") as file:
        file.seek(offset)
        file.write(data)


def test_a_run_checks_what_it_reads_and_leaves_a_ledger_for_later(headstack: Headstack) -> None:
    words = ("measure", "data", "--create", str(SIZE), "-w", "mixed.toml", "--requests", "3000", "--depth", "8", "-q")
    code, out, _ = headstack(*words, "--verify", "--threads", "2")
    assert code == 0
    assert "no block is at fault" in out
    assert "ledger: data.ledger" in out
    code, out, _ = headstack("measure", "verify", "data", "-q")
    assert code == 0
    assert "by the ledger data.ledger" in out
    assert "no block is at fault" in out
    code, out, _ = headstack("measure", "verify", "data", "-q", "--stamps")
    assert code == 0
    assert "by the stamps only" in out
    assert "undecided: without a ledger" in out


def test_what_was_written_is_read_again_at_the_end(headstack: Headstack) -> None:
    out = headstack("measure", "data", "--create", str(SIZE), "-w", "once.toml", "--requests", str(BLOCKS),
                    "-q", "--verify-after")[1]  # fmt: skip
    assert f"verified: {BLOCKS} blocks read: {BLOCKS} intact" in out
    assert "of written data in" in out
    results = hs.measure("data", "mixed.toml", overwrite=True, verify="stamp_and_read", requests=500, depth=4)
    integrity = results.integrity(0)
    assert integrity is not None
    assert integrity["intact"] > 0
    assert hs.measure("data", requests=10).integrity(0) is None


def test_killed_at_any_moment_it_raises_no_false_alarm(headstack: Headstack) -> None:
    words = [
        sys.executable,
        "-c",
        "from headstack.cli.main import main; main()",
        "measure",
        "data",
        "-q",
        "-w",
        "mixed.toml",
    ]
    words += ["--time", "60s", "--depth", "16", "--threads", "2", "--verify"]
    Path("data").write_bytes(bytes(SIZE))
    under_way = 0
    for again in range(4):
        options = ["--overwrite", *(["--resume"] if again else []), *(["--buffered"] if again % 2 else [])]
        before = Path("data").read_bytes()
        process = subprocess.Popen([*words, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 60
            while Path("data").read_bytes() == before:
                assert process.poll() is None, process.stderr.read().decode() if process.stderr else ""
                assert time.monotonic() < deadline, "it writes nothing"
                time.sleep(0.01)
            time.sleep(0.05 + 0.07 * again)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert process.stderr is not None
            process.stderr.close()
        code, integrity, findings, err = verified(headstack)
        assert (code, integrity["damaged"], integrity["lost"], integrity["unflushed"]) == (0, 0, 0, 0), (findings, err)
        assert integrity["intact"] > 0
        under_way += integrity["checked"]
    assert under_way > BLOCKS


@pytest.mark.parametrize("name", ["corrupt", "stale", "torn", "misplaced", "zeros", "foreign"])
def test_planted_faults_are_told_apart(headstack: Headstack, name: str) -> None:
    older = write_once(headstack, "--create", str(SIZE), "--verify")
    newer = write_once(headstack, "--overwrite", "--verify", "--resume", "--seed", "2")
    assert verified(headstack)[:3] == (0, {**verified(headstack)[1], "intact": BLOCKS, "checked": BLOCKS}, [])
    at = 77 * BLOCK
    block, old = newer[at : at + BLOCK], older[at : at + BLOCK]
    assert block != old
    planted = {
        "corrupt": block[:1000] + bytes([block[1000] ^ 16]) + block[1001:],
        "stale": old,
        "torn": old[:1024] + block[1024:],
        "misplaced": newer[at + BLOCK : at + 2 * BLOCK],
        "zeros": bytes(BLOCK),
        "foreign": b"\x55" * BLOCK,
    }
    put(at, planted[name])
    code, integrity, findings, err = verified(headstack)
    assert (code, integrity[name], integrity["intact"]) == (1, 1, BLOCKS - 1)
    assert len(findings) == 1, findings
    assert findings[0].startswith(f"{name} at byte {at}, {BLOCK} bytes")
    assert "1 block is damaged or lost" in err
    code, out, _ = headstack("measure", "verify", "data", "-q")
    assert code == 1
    assert f"  {name} at byte {at}" in out
    # What no flush had covered, a power cut may take; what is damaged, nothing excuses.
    expected = 1 if name in ("corrupt", "misplaced") else 0
    assert verified(headstack, "data", "--power-loss")[0] == expected
    # A run that checks finds it too.
    words = ("--size", "4KiB", "--random", "0", "--requests", str(BLOCKS), "--depth", "4")
    code, out, _ = headstack("measure", "data", *words, "--check", "-q")
    assert code == 1
    assert f"{name} at byte {at}" in out


def test_a_flushed_write_that_is_lost_is_told_from_one_that_was_not(headstack: Headstack) -> None:
    Path("flushed.toml").write_text(ONCE.replace('addresses = "once"', 'addresses = "once"\nflush_every = 1'))
    words = ("measure", "data", "-w", "flushed.toml", "--requests", str(3 * BLOCKS), "-q", "--verify")
    code, _, err = headstack(*words, "--create", str(SIZE))
    assert code == 0, err
    written = Path("data").read_bytes()
    at = next(at for at in range(0, SIZE, BLOCK) if written[at : at + 8] == b"hsstamp1")
    put(at, bytes(BLOCK))
    code, integrity, _, _ = verified(headstack, "data", "--power-loss")
    assert (code, integrity["zeros"], integrity["lost"], integrity["unflushed"]) == (1, 1, 1, 0)


def test_what_makes_no_sense_is_refused_in_one_line(headstack: Headstack) -> None:
    def refused(*words: str) -> str:
        code, out, err = headstack("measure", *words, "-q")
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err

    Path("data").write_bytes(bytes(SIZE))
    assert "has no stamps" in refused("verify", "data")
    assert "writes nothing" in refused("data", "--requests", "10", "--verify")
    assert "nothing is verified" in refused("data", "--requests", "10", "--ledger", "x")
    assert "stores no data to verify" in refused("null", "--read", "0", "--requests", "10", "--verify")
    assert not Path("null.ledger").exists()
    write_once(headstack, "--overwrite", "--verify")
    before = Path("data").read_bytes()
    again = ("data", "-w", "once.toml", "--requests", "10", "--overwrite", "--verify")
    assert "an earlier run left this ledger; use --resume to continue it" in refused(*again)
    assert "in units of 4096 bytes" in refused("data", "--read", "0", "--size", "512", "--requests", "10",
                                               "--overwrite", "--verify", "--resume")  # fmt: skip
    Path("other").write_bytes(bytes(2 * SIZE))
    assert "is for a target of" in refused("verify", "other", "--ledger", "data.ledger")
    assert "is not a ledger" in refused("verify", "data", "--ledger", "mixed.toml")
    assert "give only one of them" in refused("verify", "data", "--ledger", "data.ledger", "--stamps")
    assert Path("data").read_bytes() == before


def as_root(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode:
        lacks("kernel", f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


@pytest.fixture
def loop(attach: Attach, folder: Path) -> str:
    """A loop device of this test's own."""
    backing = folder / "backing"
    backing.write_bytes(bytes(SIZE))
    return attach(backing)


def test_a_block_device_is_verified(headstack: Headstack, loop: str) -> None:
    name = Path(loop).name
    words = ("measure", loop, "-w", "mixed.toml", "--requests", "2000", "--depth", "8", "-q", "--verify")
    code, out, err = headstack(*words, "--destroy", name)
    assert code == 0, err
    assert f"ledger: {name}.ledger" in out
    code, integrity, findings, _ = verified(headstack, loop)
    assert (code, findings) == (0, [])
    assert integrity["intact"] > 0


def test_what_a_device_cannot_read_is_counted_and_named(headstack: Headstack, loop: str) -> None:
    words = ("measure", loop, "-w", "once.toml", "--requests", str(BLOCKS), "-q", "--verify", "--destroy")
    code, _, err = headstack(*words, Path(loop).name)
    assert code == 0, err
    # Behind the end of its file, a loop device has I/O errors.
    os.truncate("backing", SIZE - 3 * BLOCK)
    code, integrity, findings, _ = verified(headstack, loop)
    assert (code, integrity["unreadable"], integrity["intact"]) == (1, 3, BLOCKS - 3)
    assert findings[0].startswith(f"unreadable at byte {SIZE - 3 * BLOCK}, {BLOCK} bytes")


@pytest.fixture
def mapped(loop: str) -> Iterator[str]:
    """A device mapper device over all of the loop device."""
    needs_program("dmsetup")
    name = f"headstack-verify-{os.getpid()}"
    as_root("dmsetup", "create", name, "--table", f"0 {SIZE // 512} linear {loop} 0")
    yield name
    subprocess.run(["dmsetup", "remove", "--retry", name], timeout=30, check=True)


def load_table(name: str, table: str) -> None:
    as_root("dmsetup", "suspend", name)
    try:
        as_root("dmsetup", "load", name, "--table", table)
    finally:
        subprocess.run(["dmsetup", "resume", name], timeout=30, check=True)


def test_unreadable_sectors_are_counted_and_named(headstack: Headstack, mapped: str, loop: str) -> None:
    device, block = f"/dev/mapper/{mapped}", Path(f"/dev/mapper/{mapped}").resolve().name
    words = ("measure", device, "-w", "once.toml", "--requests", str(BLOCKS), "-q", "--verify", "--destroy", block)
    code, _, err = headstack(*words)
    assert code == 0, err
    bad, sectors = 100, SIZE // 512
    rest = f"{8 * (bad + 1)} {sectors - 8 * (bad + 1)} linear {loop} {8 * (bad + 1)}"
    load_table(mapped, f"0 {8 * bad} linear {loop} 0\n{8 * bad} 8 error\n{rest}")
    code, integrity, findings, _ = verified(headstack, device)
    assert (code, integrity["unreadable"], integrity["intact"]) == (1, 1, BLOCKS - 1)
    assert findings[0].startswith(f"unreadable at byte {bad * BLOCK}, {BLOCK} bytes")


def test_writes_that_a_device_drops_are_found(headstack: Headstack, mapped: str, loop: str) -> None:
    device, block = f"/dev/mapper/{mapped}", Path(f"/dev/mapper/{mapped}").resolve().name
    load_table(mapped, f"0 {SIZE // 512} flakey {loop} 0 0 60 1 drop_writes")
    words = ("measure", device, "-w", "once.toml", "--requests", str(BLOCKS), "-q", "--verify-after")
    code, out, _ = headstack(*words, "--destroy", block)
    assert code == 1
    assert f"{BLOCKS:,} zeros" in out
