"""The explorer of crash states: what it finds in small stores on a raw device, and in SQLite on ext4."""

from __future__ import annotations

import doctest
import json
import os
import random
import shlex
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import headstack as hs
from conftest import Attach, Headstack, lacks, needs_program
from headstack import _native
from headstack.cli import output
from headstack.crash import checks, ext4
from headstack.crash.minimizing import ddmin, minimize
from headstack.crash.states import (
    CoverageCounts,
    CrashState,
    KeptExploration,
    Moment,
    RecordingSummary,
    Reproduced,
    SentChange,
    TornWrite,
)
from shapes import differences

SECTOR = 512
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8


@dataclass
class Log:
    """A log of dm-log-writes, as the kernel writes it."""

    entries: list[bytes] = field(default_factory=list)

    def write(self, sector: int, data: bytes, flags: int = 0) -> None:
        self.entries.append(struct.pack("<QQQQ", sector, len(data) // SECTOR, flags, 0).ljust(SECTOR, b"\0") + data)

    def flush(self) -> None:
        self.write(0, b"", FLUSH)

    def mark(self, text: str) -> None:
        head = struct.pack("<QQQQ", 0, 0, MARK, len(text)) + text.encode()
        self.entries.append(head.ljust(SECTOR, b"\0"))

    def to(self, path: Path) -> Path:
        head = struct.pack("<QQQI", 0x6A736677736872, 1, len(self.entries), SECTOR).ljust(SECTOR, b"\0")
        path.write_bytes(head + b"".join(self.entries))
        return path


def block(text: str) -> bytes:
    return text.encode().ljust(SECTOR, b"\0")


def store(transactions: int, orders: bool, syncs: bool) -> Log:
    """A store whose sector 0 says how many records there are, each of two sectors behind it. One that ``orders``
    flushes between records and their count, one that ``syncs`` before it acknowledges."""
    log = Log()
    log.write(0, block("0"))
    log.flush()
    log.mark("begin")
    for number in range(1, transactions + 1):
        log.write(2 * number, block(f"record {number}"))
        log.write(2 * number + 1, block(f"more {number}"))
        if orders:
            log.flush()
        log.write(0, block(str(number)))
        if syncs:
            log.flush()
        log.mark(f"commit {number}")
    return log


def sectors(path: str) -> list[str]:
    data = Path(path).read_bytes()
    return [data[at : at + SECTOR].rstrip(b"\0").decode() for at in range(0, len(data), SECTOR)]


def check(path: str, marks: list[str]) -> str | None:
    """Its records are there, and those that were acknowledged are counted."""
    held = sectors(path)
    count = int(held[0])
    for number in range(1, count + 1):
        if held[2 * number : 2 * number + 2] != [f"record {number}", f"more {number}"]:
            return f"record {number} is damaged"
    hs.crash.acknowledged(marks, range(1, count + 1), "commit ")
    return None


@pytest.mark.parametrize("documented", [hs.crash.acknowledged, hs.crash.Recording])
def test_the_examples_run(documented: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [example] = doctest.DocTestFinder(recurse=False).find(documented, "example", globs={"hs": hs})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def test_what_is_correct_is_not_found_and_all_of_it_is_tried(tmp_path: Path) -> None:
    found = hs.crash.open(store(5, True, True).to(tmp_path / "log")).explore(check, budget=None, jobs=2)
    assert not found, str(found)
    assert found.findings == []
    assert found.ended_by == "complete"
    # Two open records, or an open count, before and after each mark.
    assert found.coverage.whole_windows == found.coverage.windows
    assert found.coverage.subsets == found.coverage.possible
    assert "nothing found" in str(found)


def test_a_missing_flush_is_found_and_the_write_that_it_takes_is_named(tmp_path: Path) -> None:
    recording = hs.crash.open(store(3, False, True).to(tmp_path / "log"))
    found = recording.explore(check, budget=None, jobs=2)
    assert found
    damaged = [finding for finding in found.findings if "damaged" in finding.message]
    assert len(damaged) == 6, "two records for each commit"
    for finding in damaged:
        [missing] = finding.missing
        [count] = finding.needed or []
        assert (missing.length_bytes, count.offset_bytes) == (SECTOR, 0)
        assert missing.offset_bytes // SECTOR // 2 == int(finding.message.split()[1])
        # As early as it fails: the count was just sent.
        assert finding.marks == missing.offset_bytes // SECTOR // 2
        assert f"missing: write {missing.number} of 512B at byte {missing.offset_bytes:,}" in str(found)


def test_values_of_the_compiled_part_have_their_types(tmp_path: Path) -> None:
    recording = hs.crash.open(store(3, False, True).to(tmp_path / "log"))
    assert list(differences(recording.described, RecordingSummary)) == []
    moments = recording.moments(tear="any")
    assert moments
    assert list(differences(moments, list[Moment])) == []
    request = recording.search_request("any", None, "begin", (), 1)
    search = _native.CrashSearch(recording.native, None, request)
    found = [state for state in (search.next_state() for _ in range(40)) if state is not None]
    assert found
    assert list(differences(found, list[CrashState])) == []
    assert list(differences(search.coverage(), CoverageCounts)) == []
    assert list(differences(recording.native.changes([0, 1]), list[SentChange])) == []
    # The file from which an exploration continues, and its reproducer.
    kept, reproducers = tmp_path / "state.json", tmp_path / "found"
    assert recording.explore(check, budget=None, jobs=2, state=kept, reproducers=reproducers)
    assert list(differences(json.loads(kept.read_text()), KeptExploration)) == []
    reproduced = hs.crash.open(next(reproducers.iterdir())).reproduced
    assert reproduced is not None
    assert list(differences(reproduced, Reproduced)) == []


def test_what_was_acknowledged_and_is_lost_is_found(tmp_path: Path) -> None:
    found = hs.crash.open(store(3, True, False).to(tmp_path / "log")).explore(check, budget=None, jobs=2)
    assert {finding.message for finding in found.findings} == {
        f"acknowledged but missing: {number}" for number in (1, 2, 3)
    }
    for finding in found.findings:
        assert finding.last_mark == f"commit {finding.message[-1]}"
        assert [missing.offset_bytes for missing in finding.missing] == [0]


def large(tmp_path: Path) -> Path:
    """One window of 40 writes."""
    log = Log()
    log.write(0, block("0"))
    log.flush()
    log.mark("begin")
    for number in range(1, 41):
        log.write(number, block(f"{number}"))
    return log.to(tmp_path / "large")


def needs_three(path: str, marks: list[str]) -> str | None:
    held = sectors(path) + [""] * 41
    return "9 without 3 and 5" if held[9] and not held[3] and not held[5] else None


def test_the_same_seed_finds_the_same_whatever_the_number_of_jobs(tmp_path: Path) -> None:
    recording = hs.crash.open(large(tmp_path))
    first, second = (recording.explore(needs_three, budget=600, jobs=jobs, seed=7) for jobs in (1, 3))
    assert first.coverage == second.coverage
    assert first.coverage.states + first.reduction_states == 600
    assert (first.violations, first.findings) == (second.violations, second.findings)
    [finding] = first.findings
    assert [missing.offset_bytes // SECTOR for missing in finding.missing] == [3, 5]
    assert [there.offset_bytes // SECTOR for there in finding.needed or []] == [9]
    assert finding.count == first.violations
    others = {recording.explore(needs_three, budget=600, jobs=2, seed=seed).violations for seed in (8, 9)}
    assert others != {first.violations}, "another seed draws others"


def test_an_exploration_goes_on_where_it_was_ended(tmp_path: Path) -> None:
    recording, state = hs.crash.open(large(tmp_path)), tmp_path / "state.json"
    whole = recording.explore(needs_three, budget=400, jobs=2)
    for budget in (100, 250, 400):
        part = recording.explore(needs_three, budget=budget, jobs=2, state=state)
        assert part.coverage.states + part.reduction_states == budget
    assert (part.violations, part.findings, part.coverage) == (whole.violations, whole.findings, whole.coverage)
    with pytest.raises(hs.InputError, match="belongs to another recording, check, seed or device"):
        recording.explore(needs_three, budget=400, seed=1, state=state)


def torn(path: str, marks: list[str]) -> str | None:
    data = Path(path).read_bytes()[SECTOR : 9 * SECTOR]
    halves = {data[: 4 * SECTOR].count(b"n"), data[4 * SECTOR :].count(b"n")}
    return None if len(halves) == 1 else "one half is new"


def test_writes_are_torn_where_the_device_may_tear_them(tmp_path: Path) -> None:
    log = Log()
    log.write(0, block("0"))
    log.write(1, b"o" * 8 * SECTOR)
    log.flush()
    log.mark("begin")
    log.write(1, b"n" * 8 * SECTOR)
    recording = hs.crash.open(log.to(tmp_path / "log"))
    assert not recording.explore(torn, budget=None)
    assert not recording.explore(torn, budget=None, tear="any", atom="8KiB")
    for tear, states in (("prefix", 9), ("any", 256)):
        found = recording.explore(torn, budget=None, tear=tear, jobs=2)
        assert found.coverage.states == states
        [finding, *_] = found.findings
        assert finding.missing == []
        assert finding.torn[0].kept is not None
        assert "atoms" in str(found)
    with pytest.raises(hs.InputError, match="an atom of 700 bytes"):
        recording.explore(torn, tear="any", atom="700")


def test_a_check_that_takes_its_process_with_it_has_found_something(tmp_path: Path) -> None:
    def dies(path: str, marks: list[str]) -> None:
        if sectors(path)[2] != "record 1":
            os.kill(os.getpid(), signal.SIGBUS)

    found = hs.crash.open(store(2, False, True).to(tmp_path / "log")).explore(dies, budget=None, jobs=2)
    [finding, *_] = found.findings
    assert finding.message == "the check was ended by SIGBUS"
    assert [missing.offset_bytes for missing in finding.missing] == [2 * SECTOR]


def test_a_check_that_does_not_end_has_found_something(tmp_path: Path) -> None:

    def hangs(path: str, marks: list[str]) -> None:
        if sectors(path)[3] == "" and marks[-1] == "commit 1":
            time.sleep(100)

    recording = hs.crash.open(store(1, False, False).to(tmp_path / "log"))
    found = recording.explore(hangs, budget=None, jobs=2, check_timeout="500ms")
    [finding] = found.findings
    assert finding.message == "the check did not end within 0.5 s"
    with pytest.raises(hs.InputError, match="check-timeout: 0s is out of range"):
        recording.explore(hangs, check_timeout="0s")
    assert [missing.offset_bytes for missing in finding.missing] == [3 * SECTOR]


def test_a_budget_includes_reductions(tmp_path: Path) -> None:
    """A reduction that the budget ends keeps the least state that it has found, and goes on the next time."""
    recording, kept = hs.crash.open(large(tmp_path)), tmp_path / "state.json"
    looks = tmp_path / "looks"

    def fails(path: str, marks: list[str]) -> str | None:
        with looks.open("a") as file:
            file.write("x")
        return needs_three(path, marks)

    found_at: list[int] = []
    whole = recording.explore(
        fails, budget=400, jobs=1, progress=lambda done, _, findings: found_at.append(done) if findings else None
    )
    assert all(one.is_least for one in whole.findings)
    assert whole.coverage.states + whole.reduction_states == 400
    budget = found_at[0] + 1
    looks.write_text("")
    cut = recording.explore(fails, budget=budget, jobs=1, state=kept)
    assert len(looks.read_text()) <= budget + 3, "one of the end of the recording, and two that a process has ahead"
    assert (cut.ended_by, cut.coverage.states + cut.reduction_states) == ("budget", budget)
    [finding] = cut.findings
    assert not finding.is_least
    assert "not fully reduced" in finding.describe()
    again = recording.explore(fails, budget=budget, jobs=3)
    assert again.findings == cut.findings, "whatever the number of jobs"
    after = recording.explore(fails, budget=400, jobs=1, state=kept)
    assert (after.findings, after.coverage) == (whole.findings, whole.coverage)


def test_a_minimal_state_misses_as_little_as_can_be() -> None:
    """Whatever the guilty writes are."""
    for guilty in ([5], [0, 11], [2, 3, 9]):
        tried: list[list[int]] = []

        def fails(missing: list[int], guilty: list[int] = guilty, tried: list[list[int]] = tried) -> bool:
            tried.append(missing)
            return set(guilty) <= set(missing)

        assert ddmin(range(12), fails) == guilty
        assert len(tried) < 12 * 12 + 3 * 12
    torn: TornWrite = {"change": 7, "kept": [[0, 1], [2, 3], [4, 8]]}
    state: CrashState = {"events": 9, "missing": [], "torn": [torn]}

    def tears(state: CrashState) -> bool:
        """It takes that the second atom is not there."""
        return any(all(not begin <= 1 < end for begin, end in one["kept"]) for one in state["torn"])

    least = minimize(state, lambda events: [7], lambda change: 3, tears)
    assert least == {"events": 4, "missing": [], "torn": [{"change": 7, "kept": [[0, 1], [2, 8]]}]}


def test_a_check_may_write_to_its_image(tmp_path: Path) -> None:
    seen = tmp_path / "seen"

    def writes(path: str, marks: list[str]) -> None:
        with seen.open("a") as file:
            file.write(str(hash(tuple(sectors(path)))) + "\n")
        with Path(path).open("r+b") as image:
            image.seek(random.randrange(6) * SECTOR)
            image.write(b"x" * SECTOR)

    def reads(path: str, marks: list[str]) -> None:
        with seen.open("a") as file:
            file.write(str(hash(tuple(sectors(path)))) + "\n")

    recording = hs.crash.open(store(6, False, False).to(tmp_path / "log"))
    recording.explore(reads, budget=80, jobs=1)
    without, _ = seen.read_text(), seen.write_text("")
    recording.explore(writes, budget=80, jobs=1)
    assert seen.read_text() == without, "a state is what it is, whoever wrote to the one before"


def test_a_check_that_cannot_be_carried_out_finds_nothing(tmp_path: Path) -> None:
    recording = hs.crash.open(store(2, True, True).to(tmp_path / "log"))
    with pytest.raises(hs.RunError, match="the check cannot run"):
        recording.explore("./no-such-check {device}")
    with pytest.raises(hs.InputError, match=r"does not contain \{device\}"):
        recording.explore("./check.sh")
    with pytest.raises(hs.InputError, match="fails at the end of the recording, where nothing is missing: always"):
        recording.explore(lambda path, marks: "always")
    with pytest.raises(hs.InputError, match="has no mark"):
        recording.explore(check, start="none such")


CHECK = """#!/usr/bin/env python3
import os, sys
data = open(sys.argv[1], "rb").read()
count = int(data[:512].rstrip(b"\\0"))
marks = open(os.environ["HEADSTACK_MARKS"]).read().split("\\n")
if f"commit {count + 1}" in marks:
    print("lost", count + 1)
    sys.exit(1)
"""


def test_commands_explore_and_replay(headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text(CHECK)
    (tmp_path / "check.py").chmod(0o755)
    store(2, True, False).to(tmp_path / "lost.log")
    store(2, True, True).to(tmp_path / "kept.log")
    words = ("--check", "./check.py {device}", "--budget", "40")
    kept = headstack("crash", "explore", "kept.log", *words)
    assert (kept.returncode, "nothing found" in kept.stdout) == (0, True), kept.stdout + kept.stderr
    assert not (tmp_path / "kept.log.crashes").exists()
    lost = headstack("crash", "explore", "lost.log", *words, "--json", "found.json")
    assert lost.returncode == 1, lost.stderr
    assert "1. lost 1 (exit code 1)" in lost.stdout
    said = json.loads((tmp_path / "found.json").read_text())
    reproducer = said["findings"][0]["reproducer"]
    # It needs nothing else, and works as it is printed, however narrow the terminal.
    (tmp_path / "lost.log").unlink()
    command = next(line.strip() for line in lost.stdout.splitlines() if "headstack crash replay" in line)
    assert shlex.split(command) == ["headstack", "crash", "replay", reproducer]
    printed = headstack(*shlex.split(command)[1:])
    assert (printed.returncode, printed.stdout) == (1, "lost 1 (exit code 1)\n")
    again = headstack("crash", "replay", reproducer, "-o", "broken.img")
    assert (again.returncode, again.stdout) == (1, "lost 1 (exit code 1)\n")
    assert sectors(str(tmp_path / "broken.img"))[:1] == ["0"]
    assert headstack("crash", "replay", reproducer, "--check", "true {device}").returncode == 0
    unable = headstack("crash", "explore", "kept.log", "--check", "./none {device}")
    assert (unable.returncode, "cannot run" in unable.stderr) == (2, True)
    assert headstack("crash", "replay", "kept.log").returncode == 2


def test_a_printed_command_is_not_folded(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(output, "width_of", lambda stream: 40)
    command = f"  headstack crash replay /{'long/' * 20}crash-1a2b3c4d.journal"
    output.say(f"a sentence that is longer than forty characters\n{command}")
    said = capsys.readouterr().out.splitlines()
    assert command in said
    assert max(len(line) for line in said if line != command) <= 40


def test_ctrl_c_keeps_what_was_done_and_leaves_nothing_behind(tmp_path: Path) -> None:
    large(tmp_path)
    words = [
        "crash",
        "explore",
        "large",
        "--check",
        "sleep 0.05; echo {device} >> seen",
        "--state",
        "kept",
        "--budget",
        "all",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", "from headstack.cli.main import main; main()", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Its processes look at states.
    while not Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, "interrupted" in said) == (130, True), said
    done = json.loads((tmp_path / "kept").read_text())["done"]
    assert done > 0
    images = {Path(line) for line in (tmp_path / "seen").read_text().splitlines()}
    assert images
    assert not any(image.parents[1].exists() for image in images)


def test_commands_show_and_convert(headstack: Headstack, tmp_path: Path) -> None:
    log = store(3, True, True).to(tmp_path / "a.log")
    shown = headstack("crash", "show", "a.log")
    assert "10 changes (0 trims, 0 forced)" in shown.stdout
    assert "7 flushes, 4 marks" in shown.stdout
    assert headstack("crash", "convert", "a.log", "-o", "a.journal").returncode == 0
    assert headstack("crash", "convert", "a.journal", "-o", "b.log").returncode == 0
    # The kernel's own mark ends a log.
    body, end = (tmp_path / "b.log").read_bytes()[SECTOR:], Log()
    end.mark("dm-log-writes-end")
    assert body == log.read_bytes()[SECTOR:] + end.entries[0]
    cut = (tmp_path / "a.journal").read_bytes()[:-100]
    (tmp_path / "cut.journal").write_bytes(cut)
    assert "ends within a record" in headstack("crash", "show", "cut.journal").stdout
    states = json.loads(headstack("crash", "show", "a.log", "--json", "-").stdout)
    assert sum(window["possible"] for window in states["windows"]) == pytest.approx(
        json.loads(headstack("crash", "show", "a.journal", "--json", "-").stdout)["windows"][0]["possible"]
        + sum(window["possible"] for window in states["windows"][1:])
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ext4 image with a database in WAL mode, whose log has room for what comes; and the log as it becomes."""
    for program in ("mkfs.ext4", "debugfs", "e2fsck"):
        os.environ["PATH"] += ":/usr/sbin:/sbin"
        needs_program(program)
    folder = tmp_path_factory.mktemp("database")
    (folder / "files").mkdir()
    path = folder / "files" / "app.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA page_size = 1024")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("CREATE TABLE t (id, text)")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    grown = []
    wal = path.with_name("app.db-wal")
    for number in range(1, 5):
        connection.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 1500))
        grown.append(wal.read_bytes())
    (folder / "files" / "app.db").write_bytes(path.read_bytes())
    lengths = [len(data) for data in grown]
    (folder / "wal").write_bytes(grown[-1])
    (folder / "lengths").write_text(json.dumps(lengths))
    # What is there has no valid head, and no holes.
    wal.write_bytes(b"x" * lengths[-1])
    path.with_name("app.db-shm").unlink()
    subprocess.run(
        ["mkfs.ext4", "-q", "-d", folder / "files", folder / "image", "32M"], check=True, capture_output=True
    )
    connection.close()
    return folder


def blocks_of(image: Path, name: str) -> list[int]:
    said = subprocess.run(["debugfs", "-R", f"blocks {name}", image], capture_output=True, text=True, check=True).stdout
    return [int(number) for number in said.split()]


def sqlite_log(folder: Path, flushes: Iterable[bool]) -> Log:
    """Transactions of the database as they come to the device; whether each is flushed before it is acknowledged."""
    image, data = folder / "image", (folder / "wal").read_bytes()
    size = 1024 << int.from_bytes(image.read_bytes()[1024 + 24 : 1024 + 28], "little")
    places = blocks_of(image, "/app.db-wal")
    log, start = Log(), 0
    log.mark("begin")
    for number, (end, is_flushed) in enumerate(
        zip(json.loads((folder / "lengths").read_text()), flushes, strict=True), 1
    ):
        for block_of_file in range(start // size, -(-end // size)):
            page = data[block_of_file * size : min((block_of_file + 1) * size, end)].ljust(size, b"\0")
            log.write(places[block_of_file] * size // SECTOR, page)
        start = end
        if is_flushed:
            log.flush()
        log.mark(str(number))
    return log


QUERY = "sqlite:/app.db?SELECT id FROM t UNION SELECT 'begin'"


def test_sqlite_in_ext4_loses_what_was_not_flushed(database: Path, tmp_path: Path) -> None:
    kept = hs.crash.open(sqlite_log(database, [True] * 4).to(tmp_path / "kept"))
    found = kept.explore(QUERY, base=database / "image", budget=None, jobs=2, tear="any")
    assert not found, str(found)
    assert found.coverage.states > 20
    lost = hs.crash.open(sqlite_log(database, [True, True, False, True]).to(tmp_path / "lost"))
    found = lost.explore(QUERY, base=database / "image", budget=200, jobs=2)
    assert "acknowledged but missing: 3" in {finding.message for finding in found.findings}, str(found)
    assert all("/app.db-wal" in missing.files for finding in found.findings for missing in finding.missing)
    assert not lost.explore("sqlite:/app.db", base=database / "image", budget=200, jobs=2), "it is whole all the same"


def test_files_are_read_with_what_only_the_journal_of_ext4_holds(tmp_path: Path, attach: Attach) -> None:
    """A file system of the kernel, as it is while it is mounted."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    needs_program("mkfs.ext4")
    image, crashed, mounted = tmp_path / "image", tmp_path / "crashed", tmp_path / "mounted"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True, capture_output=True)
    mounted.mkdir()
    if subprocess.run(["mount", attach(image), mounted], capture_output=True, check=False).returncode:
        lacks("kernel", "ext4 cannot be mounted")
    try:
        for number in range(5):
            with (mounted / "new").open("w") as new:
                new.write(f"version {number}\n" * 500)
                new.flush()
                os.fsync(new.fileno())
            (mounted / "new").rename(mounted / "file")
            folder = os.open(mounted, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        crashed.write_bytes(image.read_bytes())
    finally:
        subprocess.run(["umount", mounted], check=True)
    features = subprocess.run(["dumpe2fs", "-h", crashed], capture_output=True, text=True, check=True).stdout
    assert "needs_recovery" in features
    assert _native.ext4_files(str(crashed), ["/file", "/new"]) == [b"version 4\n" * 500, None]
    assert checks.ext4(str(crashed), [], tmp_path) is None, "and e2fsck replays it"


def test_e2fsck_looks_at_ext4(database: Path, tmp_path: Path) -> None:
    image = (database / "image").read_bytes()
    log = Log()
    log.mark("begin")
    # The superblock, torn by a device with sectors of 512 bytes, has another checksum.
    superblock = bytearray(image[1024:2048])
    superblock[120:136] = b"a new label".ljust(16, b"\0")
    (tmp_path / "labelled").write_bytes(image)
    subprocess.run(["tune2fs", "-L", "a new label", tmp_path / "labelled"], check=True, capture_output=True)
    log.write(2, (tmp_path / "labelled").read_bytes()[1024:2048])
    recording = hs.crash.open(log.to(tmp_path / "log"))
    assert not recording.explore("ext4", base=database / "image", budget=None)
    found = recording.explore("ext4", base=database / "image", budget=None, tear="any")
    assert found, str(found)
    assert found.findings[0].torn[0].files == ("the superblock",)


def test_btrfs_check_looks_at_btrfs(tmp_path: Path) -> None:
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    needs_program("mkfs.btrfs")
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(128 << 20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True, capture_output=True)
    superblock, log = 128, Log()
    log.mark("begin")
    with image.open("rb") as file:
        file.seek(superblock * SECTOR)
        held = file.read(4096)
    # What is written is what was there: torn or missing, it is no damage.
    log.write(superblock, held)
    recording = hs.crash.open(log.to(tmp_path / "same"))
    assert not recording.explore("btrfs", base=image, budget=None, tear="prefix", jobs=1)
    log.write(superblock, b"\0" * 4096)
    log.write(superblock, held)
    found = hs.crash.open(log.to(tmp_path / "log")).explore("btrfs", base=image, budget=None, jobs=1)
    assert [finding.missing[0].number for finding in found.findings] == [2], str(found)
    assert "No valid Btrfs" in found.findings[0].message


def test_what_was_given_room_and_never_written_reads_as_zeros(tmp_path: Path, attach: Attach) -> None:
    needs_program("mkfs.ext4")
    needs_program("debugfs")
    image, mounted = tmp_path / "fs.img", tmp_path / "mounted"
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    subprocess.run(["mount", attach(image), mounted], check=True)
    try:
        old = mounted / "old"
        with suppress(OSError), old.open("wb", buffering=0) as file:
            while True:
                file.write(b"stale!!!" * 8192)
        os.sync()
        old.unlink()
        os.sync()
        room = os.open(mounted / "new", os.O_CREAT | os.O_RDWR)
        os.posix_fallocate(room, 0, 65536)
        os.fsync(room)
        os.close(room)
    finally:
        subprocess.run(["umount", mounted], check=True)
    assert b"stale!!!" in image.read_bytes()
    copy = tmp_path / "copy"
    assert ext4.fetch(str(image), ("/new",), [copy]) is None
    assert copy.read_bytes() == bytes(65536)
