"""Crash tests of real stores: their checkers, and the quickest cases. `make crash-stores` runs all of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

import headstack as hs
from conftest import lacks
from headstack.live.filesystems import PATH
from stores import study
from stores.apart import apart
from stores.cases import Case, cases, named
from stores.exploring import lacks_of, tried
from stores.files import packed
from stores.model import COUNT, contents, written
from stores.programs import STORES
from stores.recording import work
from stores.verdicts import BrokenError, Kind, judge

SYNCED = ["G1", "G2", "G5", "G6", "G7", "G8", "S20", "S23", "G11", "S19", "S31"]
"""A case of each store but PostgreSQL, which takes its time."""


@pytest.fixture(scope="module", params=SYNCED)
def prefixes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Case, Path]]:
    """A case, and copies of what a store keeps after each transaction."""
    case = named(request.param)
    folder = tmp_path_factory.mktemp(case.name)
    there = folder / "store"
    there.mkdir()
    try:
        work(case, there, lambda number: copied(there, folder / number))
    except hs.RunError as error:
        lacks("stores", str(error))
    yield case, folder
    shutil.rmtree(folder)


def copied(there: Path, here: Path) -> None:
    """A copy of a folder from which a store removes files meanwhile."""
    while True:
        try:
            shutil.copytree(there, here)
            return
        except shutil.Error:
            shutil.rmtree(here)


def judged(case: Case, folder: Path, acknowledged: int) -> None:
    judge(apart(lambda: case.program.read(folder, case.settings)), acknowledged, case.program.transactions)


def test_checkers_accept_what_each_transaction_leaves(prefixes: tuple[Case, Path]) -> None:
    case, folder = prefixes
    (folder / "nothing").mkdir()
    judged(case, folder / "nothing", 0)
    for number in range(1, case.program.transactions + 1, 3):
        judged(case, folder / str(number), number)
    judged(case, folder / "store", case.program.transactions)


def test_checkers_miss_what_was_acknowledged(prefixes: tuple[Case, Path]) -> None:
    case, folder = prefixes
    shutil.copytree(folder / "7", folder / "7-of-8")
    with pytest.raises(BrokenError, match="lost: 8 transactions were acknowledged, 7 are there"):
        judged(case, folder / "7-of-8", 8)


def test_checkers_notice_damage(prefixes: tuple[Case, Path]) -> None:
    """Of the largest file, an eighth is made zeros at a time: somewhere in it is what was acknowledged."""
    case, folder = prefixes
    noticed = 0
    for part in range(8):
        damaged = folder / f"damaged-{part}"
        shutil.copytree(folder / "20", damaged)
        largest = max((path for path in damaged.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
        # A file that was made large before it was needed is empty at its end.
        size = len(largest.read_bytes().rstrip(b"\0"))
        with largest.open("r+b") as file:
            file.seek(size * part // 8)
            file.write(bytes(size // 8))
        try:
            judged(case, damaged, 20)
        except BrokenError:
            noticed += 1
    assert noticed >= 2


def test_what_is_there_is_held_against_what_was_acknowledged() -> None:
    after = list(contents(5))
    judge(after[3], 3, 5)
    judge(after[4], 3, 5)
    with pytest.raises(BrokenError, match="lost: 3 transactions were acknowledged, 2 are there"):
        judge(after[2], 3, 5)
    with pytest.raises(BrokenError, match="ahead"):
        judge(after[5], 3, 5)
    with pytest.raises(BrokenError, match="not atomic"):
        judge(after[3] | {COUNT: b"4"}, 3, 5)


def test_a_checker_that_dies_is_told_from_one_that_is_wrong(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BrokenError, match="checker died: SIGABRT"):
        apart(os.abort)
    with pytest.raises(RuntimeError, match="the checker itself is broken"):
        apart(lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_files_without_their_contents_are_told(tmp_path: Path) -> None:
    rename, log = STORES["rename"], STORES["log"]
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(BrokenError, match="empty file"):
        rename.read(tmp_path, {})
    (tmp_path / "file").write_bytes(bytes(9000))
    with pytest.raises(BrokenError, match="zeros"):
        rename.read(tmp_path, {})
    record = packed(written(1))
    (tmp_path / "log").write_bytes(len(record).to_bytes(8, "little") + record[:4000] + bytes(len(record) - 4000))
    with pytest.raises(BrokenError, match="zeros: a hole in the record at byte 0"):
        log.read(tmp_path, {"checksum": False})
    assert log.read(tmp_path, {"checksum": True}) == {}


def test_a_file_of_which_nothing_was_acknowledged_is_told_from_one_that_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each transaction has a file of its own; that of the last is as long as it should be, and zeros."""
    case = named("S25")
    (tmp_path / "store").mkdir()
    try:
        work(case, tmp_path / "store", lambda number: None)
    except hs.RunError as error:
        lacks("stores", str(error))
    monkeypatch.setattr("stores.cases.left", lambda image, kind: nullcontext(image))
    case.check(tmp_path, ["24"])
    (tmp_path / "store" / "base-24.bolt").write_bytes(bytes(16 << 10))
    with pytest.raises(BrokenError, match="unopened: transaction 24: invalid database"):
        case.check(tmp_path, ["23"])
    with pytest.raises(BrokenError, match="corrupt: transaction 24: invalid database"):
        case.check(tmp_path, ["24"])


def test_an_image_is_read_without_a_mount(tmp_path: Path) -> None:
    case = named("G2")
    for program in ("mkfs.ext4", "e2fsck", "debugfs"):
        if shutil.which(program, path=PATH) is None:
            lacks("programs", f"{program} is not installed")
    (tmp_path / "root" / "store").mkdir(parents=True)
    work(case, tmp_path / "root" / "store", lambda number: None)
    image = tmp_path / "image"

    def make() -> None:
        command = ["mkfs.ext4", "-q", "-F", "-d", str(tmp_path / "root"), str(image), "16M"]
        subprocess.run(command, env=os.environ | {"PATH": PATH}, check=True)

    make()
    case.check(image, ["begin", *map(str, range(1, 25))])
    with pytest.raises(BrokenError, match="lost: 25 transactions were acknowledged, 24 are there"):
        case.check(image, ["25"])
    (tmp_path / "root" / "store" / "base.db").write_bytes(b"no data base at all" * 100)
    make()
    with pytest.raises(BrokenError, match="unopened: file is not a database"):
        case.check(image, ["begin"])
    with pytest.raises(BrokenError, match="corrupt: file is not a database"):
        case.check(image, ["1"])
    image.write_bytes(bytes(16 << 20))
    with pytest.raises(BrokenError, match="no file system: e2fsck: exit code 8"):
        case.check(image, ["1"])


@pytest.mark.parametrize("name", ["G2", "S1", "S17"])
def test_the_quickest_cases(name: str) -> None:
    """A store that keeps its promise, one that is asked for none, and a program that forgets a sync.

    A recording holds one schedule of the kernel's writeback, which need not show every fault: up to three are made.
    """
    case = named(name)
    if (lack := lacks_of(case)) is not None:
        lacks("kernel", lack)
    outcomes = []
    for seed in (1, 2, 3):
        outcomes.append(tried(case, "120", seed=seed))
        if outcomes[-1].is_as_expected:
            break
    assert outcomes[-1].is_as_expected, [f"{one.verdict}: {one.kinds} in {one.states} states" for one in outcomes]
    assert all(outcome.states >= 50 for outcome in outcomes)


def test_the_page_of_the_study_shows_its_data() -> None:
    page = (study.DATA.parent / "crash-study.md").read_text(encoding="utf-8")
    data = json.loads(study.DATA.read_text(encoding="utf-8"))
    for block in study.tables(data).strip().split("\n\n"):
        assert block in page, f"docs/crash-study.md lacks:\n{block}"
    assert f"Linux {data['kernel']}" in page
    assert {named(name).name for name in study.STORES.values()} == set(study.STORES.values())


def test_what_only_one_recording_shows_is_in_brackets() -> None:
    both = [{"kinds": {"lost": 3, "corrupt": 1}}, {"kinds": {"lost": 1}}]
    assert study.shown(both) == "lost, (corrupt)"
    assert study.shown([{"kinds": {}}, {"kinds": {}}]) == "—"


def test_every_row_says_what_is_expected() -> None:
    rows = cases()
    assert len({case.name for case in rows}) == len(rows)
    numbers = {case.name.split("-")[0] for case in rows}
    assert numbers == {f"S{n}" for n in range(1, 35)} | {f"G{n}" for n in range(1, 21)}
    assert [case.name for case in rows if bool(case.must) is not case.name.startswith("S")] == []
    assert named("S7").verdict({Kind.LOST}) == "found"
    assert named("S7").verdict({Kind.LOST, Kind.CORRUPT}) == "wrong: corrupt"
    assert named("S7").verdict(set()) == "missed: lost"
    assert named("S4").verdict({Kind.LOST}) == "not seen: corrupt"
    assert named("G2").verdict(set()) == "none"
    assert named("G2").verdict({Kind.LOST}) == "wrong: lost"
