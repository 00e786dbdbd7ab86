"""Analyses in parts: the bytes of one pass, kept when finished, here and on a cluster."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack.simulation.chunks import parts, work
from headstack.traces import analyzing

FILES, REQUESTS = 5, 2_000


@pytest.fixture
def days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stored traces that follow each other, with requests in flight from each to the next; a part is a file."""
    monkeypatch.setattr(analyzing, "PART_REQUESTS", REQUESTS)
    draw = random.Random(5)
    at_us, paths = 1_600_000_000_000_000, []
    columns = "time=at:us,offset=offset,length=bytes,op=op,device=device,response=took:us,base=unix"
    for day in range(FILES):
        lines = ["at,offset,bytes,op,device,took"]
        for row in range(REQUESTS):
            at_us += draw.choice((0, 3, 500, 40_000))
            block = draw.randrange(3000) if row % 3 else row
            device, op = f"d{draw.randrange(3)}", draw.choice("RW")
            took_us = 10_000_000 if row % 900 == 899 else draw.randrange(90_000)
            lines.append(f"{at_us},{4096 * block},{4096 * draw.choice((1, 2, 8))},{op},{device},{took_us}")
        (tmp_path / "day.csv").write_text("\n".join(lines) + "\n")
        paths.append(str(tmp_path / f"{day}.parquet"))
        hs.Trace(tmp_path / "day.csv", columns=columns).to_parquet(paths[-1])
    return paths


def test_parts_are_the_bytes_of_one_pass_and_done_once(
    days: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = hs.Trace(*days, steps=["kind=read,write", "fold=36GB"])
    whole = trace.analyze()
    assert whole.report["depth"] is not None
    assert whole.report["depth"]["max"] > 10
    assert whole.report["requests"] == FILES * REQUESTS
    heard: list[int] = []
    parted = trace.analyze(store=tmp_path / "store", progress=heard.append)
    assert parted.to_json() == whole.to_json()
    assert heard[-1] <= FILES * REQUESTS
    kept = {path.name for path in (tmp_path / "store").rglob("*-*") if path.is_file()}
    assert len(kept) == FILES

    def never(*_: object) -> bytes:
        raise AssertionError("a finished part is done again")

    monkeypatch.setattr(work, "answer_of", never)
    assert trace.analyze(store=tmp_path / "store").to_json() == whole.to_json()
    with pytest.raises(AssertionError, match="done again"):
        trace.analyze("8KiB", store=tmp_path / "store")


def test_what_is_not_read_in_parts_is_refused(days: list[str], headstack: Headstack, tmp_path: Path) -> None:
    for files, step, said in (
        (["day.csv"], [], "import it first"),
        ([days[0]], ["-s", "first=10"], "the step first=10 depends on earlier requests"),
        ([days[0]], ["--executor", "cloud"], "executor: 'cloud' is unknown"),
    ):
        done = headstack("trace", "analyze", *files, "-q", *step, "--store", str(tmp_path / "store"))
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_worker_with_other_files_says_so(days: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = hs.Trace(days[0])
    there = parts.identity([days[0]])
    hs.Trace(days[1]).to_parquet(days[0])
    monkeypatch.setattr(analyzing, "identity", lambda paths: there)
    with pytest.raises(hs.RunError, match=r"0\.parquet: the files .* have changed"):
        trace.analyze(store=tmp_path / "store")
