"""Crash states as files, over NBD and over FUSE: whichever way a check is shown them, it finds the same."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import headstack as hs
from conftest import REPOSITORY, Headstack, lacks
from headstack.crash.showing import WAYS
from nbd_client import TRIM, Client
from test_crash import SECTOR, block, check, sectors, store

NUMBER = 0


def needs_fuse() -> None:
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError:
        lacks("kernel", "no /dev/fuse")


pytestmark = pytest.mark.together


@pytest.fixture(params=WAYS)
def over(request: pytest.FixtureRequest) -> str:
    if request.param == "fuse":
        needs_fuse()
    return str(request.param)


def client_of(address: str) -> Client:
    url = urlsplit(address)
    assert (url.scheme, url.netloc, url.path) == ("nbd+unix", "", "/")
    return Client(Path(parse_qs(url.query)["socket"][0]))


def fetched(address: str) -> bytes:
    """All that is at an address, or in a file."""
    if not address.startswith("nbd"):
        return Path(address).read_bytes()
    client = client_of(address)
    try:
        return client.read(0, client.capacity)
    finally:
        client.close()


def spoil(address: str) -> None:
    """Writes at random, as recovery does."""
    at = random.randrange(1, 6) * SECTOR
    if address.startswith("nbd"):
        client = client_of(address)
        client.write(at, b"x" * SECTOR)
        client.send(TRIM, 0, SECTOR)
        assert client.reply() == (0, 0)
        # It stays connected.
        globals()["_left"] = client
    else:
        with Path(address).open("r+b") as file:
            file.seek(at + 3)
            file.write(b"x" * 100)
    assert b"x" * 100 in fetched(address), "what is written is there"


def mounts() -> list[str]:
    return [line for line in Path("/proc/mounts").read_text().splitlines() if "headstack-crash-" in line]


def test_the_way_changes_nothing_of_what_is_found(tmp_path: Path, over: str) -> None:
    """Nor does what a check writes."""
    copy = tmp_path / "copy"

    def looks(address: str, marks: list[str]) -> str | None:
        data = fetched(address)
        mine = copy.with_name(f"copy-{os.getpid()}")
        mine.write_bytes(data)
        spoil(address)
        return check(str(mine), marks)

    base = tmp_path / "base"
    # A hole in the middle, and less than the device in the end.
    with base.open("wb") as file:
        file.seek(SECTOR)
        file.write(b"an older one".ljust(SECTOR, b"\0"))
    before = mounts()
    recording = hs.crash.open(store(3, False, True).to(tmp_path / "log"))
    plain = recording.explore(check, base=base, budget=None, jobs=2)
    shown = recording.explore(looks, base=base, budget=None, jobs=2, over=over)
    assert plain.violations > 5
    assert (shown.findings, shown.violations, shown.coverage) == (plain.findings, plain.violations, plain.coverage)
    assert mounts() == before


def test_a_check_that_ends_its_process_leaves_nothing_mounted(tmp_path: Path, over: str) -> None:
    def dies(address: str, marks: list[str]) -> None:
        if fetched(address)[2 * SECTOR : 3 * SECTOR] != block("record 1"):
            os.kill(os.getpid(), signal.SIGKILL)

    before = mounts()
    found = hs.crash.open(store(2, False, True).to(tmp_path / "log")).explore(dies, budget=None, jobs=2, over=over)
    [finding, *_] = found.findings
    assert finding.message == "the check was ended by SIGKILL"
    assert [missing.offset_bytes for missing in finding.missing] == [2 * SECTOR]
    assert mounts() == before


SCRIPT = f"""
import sys
sys.path.insert(0, {str(REPOSITORY / "tests" / "python")!r})
from test_crash_over import fetched
count = int(fetched(sys.argv[1])[:512].rstrip(b"\\0"))
if count < 1:
    print("nothing is there, at " + sys.argv[1].split(":")[0].split("/")[-1])
    sys.exit(1)
"""


def test_a_reproducer_is_shown_as_it_was_found(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "check.py").write_text(SCRIPT)
    log = store(1, True, False)
    log.to(tmp_path / "log")
    words = ("--check", f"{sys.executable} check.py {{device}}", "--budget", "20", "--start", "commit 1")
    assert "at image" in headstack("crash", "explore", "log", *words).stdout
    found = headstack("crash", "explore", "log", *words, "--over", "nbd")
    assert (found.returncode, "nothing is there, at nbd+unix" in found.stdout) == (1, True), found.stdout + found.stderr
    [reproducer] = (tmp_path / "log.crashes").iterdir()
    again = headstack("crash", "replay", str(reproducer), "-o", "image")
    assert again.stdout == "nothing is there, at nbd+unix (exit code 1)\n", again.stderr
    assert sectors(str(tmp_path / "image"))[0] == "0"
    # What wants a file gets one.
    assert headstack("crash", "replay", str(reproducer), "--check", "sqlite:/x").stdout.startswith("ext4: ")
    refused = headstack("crash", "explore", "log", "--check", "sqlite:/x", "--over", "nbd")
    assert (refused.returncode, "sqlite:/x needs a file" in refused.stderr) == (2, True)
    wrong = headstack("crash", "explore", "log", *words, "--over", "air")
    assert "file, nbd, fuse" in wrong.stderr, wrong.stderr


def test_a_file_of_a_mount_is_read_as_any_file(tmp_path: Path) -> None:
    """From any byte on, and by SQLite itself, which locks it."""
    needs_fuse()
    database = tmp_path / "database"
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE t (x)")
    connection.executemany("INSERT INTO t VALUES (?)", ((number,) for number in range(1000)))
    connection.commit()
    connection.close()

    def reads(path: str, marks: list[str]) -> None:
        with Path(path).open("rb", buffering=0) as file:
            file.seek(7)
            assert file.read(5) == database.read_bytes()[7:12]
        assert Path(path).stat().st_size == database.stat().st_size
        base = sqlite3.connect(path)
        assert base.execute("SELECT sum(x) FROM t").fetchone() == (499_500,)
        base.close()

    log = store(1, True, True)
    log.entries = log.entries[1:3]
    found = hs.crash.open(log.to(tmp_path / "log")).explore(reads, base=database, budget=None, over="fuse", jobs=1)
    assert not found, str(found)


def test_the_state_of_a_large_device_is_no_copy(tmp_path: Path) -> None:
    """A device of 4 TiB with 64 MiB of data: over NBD, nothing of it is written anywhere."""
    base = tmp_path / "base"
    with base.open("wb") as file:
        file.truncate(4 << 40)
        file.seek(1 << 40)
        for number in range(64):
            file.write(bytes([number + 1]) * (1 << 20))
    seen = tmp_path / "seen"

    def looks(address: str, marks: list[str]) -> None:
        client = client_of(address)
        assert client.capacity == 4 << 40
        assert client.read((1 << 40) + (5 << 20), SECTOR) == bytes([6]) * SECTOR
        client.close()
        used = subprocess.run(
            ["du", "-s", "-B1", Path(address.split("=")[1]).parents[1]], capture_output=True, text=True
        )
        with seen.open("a") as file:
            file.write(used.stdout.split()[0] + "\n")

    recording = hs.crash.open(store(2, True, True).to(tmp_path / "log"))
    assert not recording.explore(looks, base=base, budget=None, over="nbd", jobs=1)
    sizes = [int(line) for line in seen.read_text().splitlines()]
    assert len(sizes) > 5
    assert max(sizes) < 1 << 20
