"""Volumes of a trace: listed, chosen by what they are, and mapped to LUNs when they are replayed."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack.traces.volume_maps import Lun, extents
from headstack.traces.volumes import condition

JBOD = "lun-test.toml"
CHEETAH = "cheetah-x15-36lp"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Four volumes of 1, 2, 3 and 4 requests a turn, of which every v-th reads; the last has a comma in its name."""
    lines = []
    for turn in range(50):
        for volume, name in enumerate(("a", "b", "c", '"7,0"')):
            for row in range(volume + 1):
                op = "R" if (turn + row) % (volume + 1) == 0 else "W"
                lines.append(f"{(turn * 40 + volume * 10 + row) / 1000:.3f},{name},{op},{(turn * 7 + row) * 4096},4096")
    (tmp_path / "v.csv").write_text("at,vol,op,offset,bytes\n" + "\n".join(lines) + "\n")
    columns = "time=at:s,device=vol,op=op,offset=offset,length=bytes"
    hs.Trace(tmp_path / "v.csv", columns=columns).to_parquet(tmp_path / "v.parquet")
    return tmp_path / "v.parquet"


@pytest.fixture
def jbod(tmp_path: Path) -> str:
    """Two drives in phase, each a LUN."""
    (tmp_path / JBOD).write_text(
        f'name = "Two"\n[spindles]\nsynchronized = true\n[[drives]]\ndrive = "{CHEETAH}"\ncount = 2\n'
        '[[groups]]\nlevel = "jbod"\n'
    )
    return str(tmp_path / JBOD)


def test_volumes_are_listed_with_what_they_are_chosen_by(headstack: Headstack, trace: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(headstack("trace", "volumes", str(trace), "--csv", "-").stdout)))
    # Most requests first.
    assert [(row["volume"], row["requests"]) for row in rows] == [
        ("7,0", "200"),
        ("c", "150"),
        ("b", "100"),
        ("a", "50"),
    ]
    assert float(rows[-1]["read_share"]) == 1
    assert float(rows[2]["read_share"]) == 0.5
    assert float(rows[-1]["footprint_bytes"]) == 50 * 4096
    told = headstack("trace", "volumes", str(trace))
    assert told.returncode == 0, told.stderr
    assert "footprint" in told.stdout


def test_every_command_takes_a_choice(headstack: Headstack, trace: Path, tmp_path: Path) -> None:
    def requests(*options: str) -> dict[str, int]:
        done = headstack("trace", "volumes", str(trace), "--json", "-", *options)
        assert done.returncode == 0, done.stderr
        return {volume["volume"]: volume["requests"] for volume in json.loads(done.stdout)}

    assert requests("--select", "requests>=100 and read_share<0.5") == {"7,0": 200, "c": 150}
    assert requests("--select", "not (requests>50 or volume=='b')") == {"a": 50}
    assert requests("--select", "90 < requests <= 150", "--top", "1") == {"c": 150}
    assert requests("--top", "2", "--by", "written_bytes") == {"7,0": 200, "c": 150}
    # A name that no step can say, since it has a comma.
    analyzed = headstack("trace", "analyze", str(trace), "--top", "1", "--json", "-")
    assert json.loads(analyzed.stdout)["report"]["requests"] == 200
    split = headstack("trace", "split", str(trace), "-q", "--select", "volume != 'c'", "-o", str(tmp_path / "parts"))
    assert {path.name for path in (tmp_path / "parts").iterdir()} == {"7_0.parquet", "a.parquet", "b.parquet"}, (
        split.stderr
    )
    assert hs.Trace(trace).select("requests>100").info()["meta"]["steps"] == ["device=c,7,0"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--select", "size>1"), "select: 'size' is unknown; allowed: volume, requests, "),
        (("--select", "requests"), "select: must be comparisons of fields"),
        (("--select", "__import__('os')"), "select: must be comparisons of fields"),
        (("--select", "requests>'many'"), "select: names are compared with texts in quotes"),
        (("--select", "requests>1e9"), "v.parquet: no device matches requests>1e9"),
        (("--top", "0"), "top"),
        (("--top", "1", "--by", "volume"), "by: 'volume' is unknown"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(
    headstack: Headstack, trace: Path, options: tuple[str, ...], said: str
) -> None:
    done = headstack("trace", "info", str(trace), *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_is_not_known_fulfils_nothing() -> None:
    unknown = {"mean_latency_ns": None}
    assert not condition("mean_latency_ns>0")(unknown)
    assert condition("mean_response_ns>0")({"mean_latency_ns": 1.0}), "the earlier name of the column"
    assert not condition("mean_latency_ns<=0")(unknown)


def test_maps_put_volumes_where_they_say() -> None:
    mib = 1 << 20
    luns = [Lun("d0", 0, 100 * mib), Lun("d1", 100 * mib, 50 * mib)]
    ends = {"a": 10 * mib + 1, "b": 20 * mib, "c": 0}

    def places(text: str, fold: bool = False) -> list[tuple[str, int, int]]:
        return [
            (one["volume"], one["start_bytes"] // mib, one["length_bytes"] // mib)
            for one in extents(text, ends, luns, fold)
        ]

    assert places("stacked") == [("a", 0, 11), ("b", 11, 20), ("c", 31, 1)]
    assert places("round-robin") == [("a", 0, 11), ("c", 11, 1), ("b", 100, 20)]
    # Where a volume goes by its name does not depend on which others there are.
    hashed = {name: at // 100 for name, at, _ in places("hashed")}
    for name in ends:
        (alone,) = extents("hashed", {name: mib}, luns, False)
        assert alone["start_bytes"] // mib // 100 == hashed[name]
    assert places("a=d0,b=d1@10MiB,c=d0@40MiB") == [("a", 0, 40), ("b", 110, 40), ("c", 40, 60)]
    ends["b"] = 200 * mib
    with pytest.raises(hs.InputError, match=r"LUN 'd1' has 50MiB, and 1 volumes need"):
        places("round-robin")
    assert places("round-robin", fold=True)[-1] == ("b", 100, 50)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a=d0,b=d1", "no LUN for c"),
        ("a=d0,b=d1,c=d2", "c: LUN 'd2' is unknown; the system has d0, d1"),
        ("a=d0,b=d1,c=d0,x=d0", "the trace has no volume 'x'"),
        ("a=d0,b=d1,c=d0", "begin at the same position"),
        ("a=d0,b=d1,c=d1@1GB", "d1 ends at 50MiB"),
        ("a=d0,a=d1", "'a' is assigned twice"),
        ("somehow", "allowed: stacked, round-robin, hashed, VOLUME=LUN@SIZE"),
    ],
)
def test_maps_that_cannot_be_are_refused(text: str, said: str) -> None:
    mib = 1 << 20
    luns = [Lun("d0", 0, 100 * mib), Lun("d1", 100 * mib, 50 * mib)]
    with pytest.raises(hs.InputError, match=said):
        extents(text, {"a": mib, "b": mib, "c": mib}, luns, False)


def test_a_replay_tells_what_became_of_each_volume(
    headstack: Headstack, trace: Path, jbod: str, tmp_path: Path
) -> None:
    results = hs.replay(trace, jbod, ["timed", "asap"], depth=4, map="round-robin")
    luns = [lun["name"] for lun in json.loads(json.dumps(hs.Array.load(jbod).system))["array"]["luns"]]
    for number, whole in enumerate(results):
        own = [row for row in results.volumes if row["run"] == number]
        assert {row["volume"]: row["requests"] for row in own} == {"a": 50, "b": 100, "c": 150, "7,0": 200}
        # Each volume's mean, weighed, is that of the whole.
        mean = sum(row["mean_ms"] * row["requests"] for row in own) / 500
        assert mean == pytest.approx(whole["mean_ms"], rel=1e-9)
        assert sum(row["iops"] for row in own) == pytest.approx(whole["iops"], rel=1e-6)
    # A volume by itself, on its own drive, answers as it does beside one on the other drive.
    (tmp_path / "map").write_text(f"# each a drive\na={luns[0]}\n7,0={luns[1]}\n")
    pair = hs.replay(hs.Trace(trace, devices=["a", "7,0"]), jbod, map=tmp_path / "map")
    alone = hs.replay(hs.Trace(trace, devices=["a"]), CHEETAH)
    (of_a,) = (row for row in pair.volumes if row["volume"] == "a")
    assert of_a["mean_ms"] == pytest.approx(alone[0]["mean_ms"], rel=0.02)
    done = headstack("trace", "replay", str(trace), jbod, "--map", "stacked", "--volumes", "-", "-q")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["volume"] for row in rows] == ["a", "b", "c", "7,0"], done.stderr
    told = headstack("trace", "replay", str(trace), jbod, "--map", "stacked", "-q")
    assert "\nvolumes\n" in told.stdout
    refused = headstack("trace", "replay", str(trace), jbod, "-q")
    assert refused.returncode == 2
    assert "place each with map" in refused.stderr
