"""Sweeps in parts: shards carried out apart, and put together again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import Headstack
from headstack.simulation.chunks import chunk as chunk_module
from headstack.simulation.chunks import executors
from headstack.simulation.chunks.work import answer
from headstack.simulation.shards import Shard, merge
from headstack.simulation.swept import Plan

SYSTEMS = ["cheetah-x15-36lp", "atlas-10k-iii-73"]
VARY: dict[str, str | int] = {
    "requests": 300,
    "depth": "1..8:4:log",
    "queue.policy": "fcfs,sptf",
    "buffer.segments": "4,16",
}


def part(folder: Path, shard: str, **more: Any) -> Path:
    """A shard of the sweep that all tests are about, written."""
    path = folder / f"{shard.replace('/', '-of-')}.parquet"
    how: dict[str, Any] = {"vary": VARY, "store": folder / f"store-{shard.partition('/')[0]}"} | more
    hs.sweep(SYSTEMS, "file-server", shard=shard, **how).to_shard(path)
    return path


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three of three, each with a store of its own, as on machines of their own."""
    folder = tmp_path_factory.mktemp("shards")
    return [part(folder, f"{number}/3") for number in (1, 2, 3)]


def test_merged_shards_are_the_whole_byte_for_byte(shards: list[Path], tmp_path: Path) -> None:
    whole = hs.sweep(SYSTEMS, "file-server", vary=VARY, store=tmp_path / "store")
    assert [len(Shard(number, 3).part(len(whole))) for number in (1, 2, 3)] == [10, 11, 11]
    for name, write in (("whole.parquet", whole.to_parquet), ("whole.csv", whole.to_csv)):
        write(tmp_path / name)
        merged = tmp_path / f"merged-{name}"
        assert merge([shards[2], shards[0], shards[1]], merged) == len(whole) == 32
        assert merged.read_bytes() == (tmp_path / name).read_bytes(), name


def test_a_killed_shard_goes_on_where_it_was(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A chunk a configuration, one at a time.
    monkeypatch.setattr(chunk_module, "CHUNK_S", 0.0)
    monkeypatch.setattr(executors, "TASK_S", 0.0)
    carried: list[bytes] = []
    killed_at = 6

    def killed(contents: list[bytes], tell: Any) -> tuple[list[bytes], float]:
        if len(carried) >= killed_at:
            raise hs.RunError("killed")
        carried.extend(contents)
        return answer(contents, tell)

    monkeypatch.setattr(executors, "answer", killed)
    with pytest.raises(hs.RunError, match="killed"):
        part(tmp_path, "2/3")
    kept = list((tmp_path / "store-2").rglob("*.parquet"))
    assert len(kept) > 0
    done, killed_at = len(carried), 1000
    resumed = part(tmp_path, "2/3")
    assert len(carried) == len(set(carried)) + (done - len(kept)), "finished chunks are not done again"
    assert len(carried) - done == 11 - len(kept)
    assert resumed.read_bytes() == shards[1].read_bytes(), "wherever its chunks end"


def test_shards_that_do_not_fit_together_are_named(shards: list[Path], tmp_path: Path) -> None:
    output = tmp_path / "whole.parquet"

    def refused(*paths: Path) -> str:
        with pytest.raises(hs.InputError) as told:
            merge(paths, output)
        assert not output.exists()
        return str(told.value)

    first, second, third = shards
    assert refused(second) == "shards are missing: 1/3, 3/3"
    again = tmp_path / "again.parquet"
    again.write_bytes(first.read_bytes())
    assert refused(first, second, third, again) == f"{again}: shard 1/3 is duplicate; it is also in {first}"
    halves = part(tmp_path, "2/2", store=tmp_path / "store")
    assert refused(first, halves) == f"{halves}: shard 2/2 overlaps {first}, which is shard 1/3"
    other = part(tmp_path, "3/3", vary=VARY | {"requests": 301})
    assert (
        refused(first, second, other)
        == f"{other}: belongs to another sweep than {first}, or to another build of headstack"
    )
    plain = tmp_path / "plain.parquet"
    hs.sweep(SYSTEMS[0], "file-server", vary={"requests": 300}, store=tmp_path / "store").to_parquet(plain)
    assert refused(plain).startswith(f"{plain}: not a shard of a sweep; headstack sweep --shard")
    text = tmp_path / "text.parquet"
    text.write_text("nothing of the kind")
    assert refused(text).startswith(f"{text}: not a shard of a sweep")
    assert refused(tmp_path / "none.parquet") == f"{tmp_path / 'none.parquet'}: No such file or directory"
    assert refused() == "no shard: name the files of all shards"


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "-1/3", "1/0"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(hs.InputError, match="write NUMBER/COUNT, from 1/8 to 8/8"):
        Shard.parse(text)


def test_more_shards_than_configurations() -> None:
    with pytest.raises(hs.InputError, match="shard: 1/9: the sweep has 8 configurations; at most as many shards"):
        Shard(1, 9).part(8)
    assert [len(Shard(number, 8).part(8)) for number in range(1, 9)] == [1] * 8


def test_a_shard_of_what_is_impossible_alone_is_no_mistake(tmp_path: Path) -> None:
    impossible = {"queue.depth": "4,0", "requests": 300}
    paths = [part(tmp_path, shard, vary=impossible) for shard in ("1/4", "2/4", "3/4", "4/4")]
    assert merge(paths, tmp_path / "whole.csv") == 4
    plan = Plan(SYSTEMS, "file-server", {"queue.depth": "4,0", "requests": "300"}, shard=Shard(2, 4))
    assert [chunk.runs for chunk in plan.chunks()] == [1]


def test_shards_on_the_command_line(headstack: Headstack, tmp_path: Path) -> None:
    sweep = ("sweep", SYSTEMS[0], "-w", "file-server", "--requests", "300", "--depth", "1,2,4,8", "-q")
    kept = ("--store", str(tmp_path / "store"))
    paths = [str(tmp_path / f"{number}.parquet") for number in (1, 2)]
    for number, path in enumerate(paths, 1):
        headstack(*sweep, *kept, "--shard", f"{number}/2", "-o", path).check_returncode()
    headstack(*sweep, *kept, "-o", str(tmp_path / "whole.csv")).check_returncode()
    told = headstack("sweep", "merge", *paths, "-o", str(tmp_path / "merged.csv"))
    assert told.stdout == "4 configurations from 2 shards\n"
    assert (tmp_path / "merged.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    refused = headstack(*sweep, *kept, "--shard", "1/2")
    assert (refused.returncode, refused.stderr) == (
        2,
        "headstack: --shard: needs -o FILE.parquet for its part of the table\n",
    )
    refused = headstack("sweep", "merge", paths[0], "-o", str(tmp_path / "half.csv"))
    assert (refused.returncode, refused.stderr) == (2, "headstack: shards are missing: 2/2\n")
