"""Faults in simulated runs, curves, sweeps, replays and studies: ``--faults FILE``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import CHEETAH, Headstack
from headstack import _native
from headstack.live.control import order_of
from headstack.simulation.runs import specify
from headstack.simulation.swept import Plan

SPIKES = '[[fault]]\nat = "0s"\nwhat = "latency-spike"\ntime = "40ms"\nkinds = ["read"]\n'
CUT = '[[fault]]\nat = "2s"\nfor = "3s"\nwhat = "power-cut"\n'


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with two schedules."""
    (tmp_path / "spikes.toml").write_text(SPIKES)
    (tmp_path / "cut.toml").write_text(CUT)
    return tmp_path


def test_a_run_tells_what_struck_it(files: Path) -> None:
    faults = [str(files / "spikes.toml"), str(files / "cut.toml")]
    asked: dict[str, Any] = {"warm_up": 0, "depth": 4, "read": 50, "requests": 3000, "write_cache": "on"}
    plain = hs.run(CHEETAH, **asked)
    results = hs.run(CHEETAH, **asked, faults=["none", *faults])
    assert len(results) == 3
    results_json = json.loads(results.to_json())
    none, spikes, cut = results_json
    (expected,) = json.loads(plain.to_json())
    assert none == expected
    assert "faults" not in none
    (spiked,) = spikes["faults"]
    assert spiked["fault"]["what"] == "latency-spike"
    assert spiked["met"] >= spikes["kinds"]["read"]["count"]
    (struck,) = cut["faults"]
    assert (struck["at_ns"], struck["until_ns"]) == (2_000_000_000, 5_000_000_000)
    assert struck["loss"]["lost_writes"] > 0
    assert sum(kind["errors"] for kind in cut["kinds"].values()) == 4
    assert results[1]["mean_ms"] > plain[0]["mean_ms"] + 5


def test_a_fault_that_cannot_strike_is_named_with_its_line(files: Path, headstack: Headstack) -> None:
    (files / "member.toml").write_text('[[fault]]\nat = "1s"\nwhat = "member-fails"\nmember = "d1"\n')
    for command in (("run", CHEETAH), ("curve", CHEETAH)):
        refused = headstack(*command, "--faults", "member.toml")
        assert refused.returncode == 2
        assert "member.toml:4: fault[0].member:" in refused.stderr


def test_curves_and_sweeps_take_schedules(files: Path, headstack: Headstack) -> None:
    curve = headstack("curve", CHEETAH, "--depth", "1,2", "--requests", "500", "--faults", "spikes.toml", "--csv", "-")
    assert curve.returncode == 0, curve.stderr
    vary = ("--vary", "faults=none,spikes.toml", "--vary", "depth=1,4", "--vary", "requests=500")
    sweep = headstack("sweep", CHEETAH, *vary, "--quiet")
    assert sweep.returncode == 0, sweep.stderr
    assert "spikes.toml" in sweep.stdout


def test_chunks_of_a_sweep_carry_their_schedules(files: Path) -> None:
    def content(text: str) -> bytes:
        (files / "spikes.toml").write_text(text)
        (chunk,) = Plan(CHEETAH, None, {"faults": str(files / "spikes.toml"), "requests": "100"}).chunks()
        return chunk.content

    first, second = content(SPIKES), content(SPIKES.replace("40ms", "50ms"))
    assert first != second, "another file of the same name is another question"
    (files / "spikes.toml").unlink()
    (spec,) = _native.specifications(json.loads(first))
    assert spec["faults"]["fault"][0]["what"] == "latency-spike"


def test_a_schedule_in_a_study_is_a_setting(files: Path) -> None:
    (spec,) = specify(CHEETAH, None, {"faults": str(files / "cut.toml")})
    assert spec["faults"]["fault"][0]["what"] == "power-cut"


def test_requests_make_faults_strike_in_runs(tmp_path: Path) -> None:
    schedule = tmp_path / "moments.toml"
    schedule.write_text(
        '[[fault]]\nwhat = "errno"\nevery = 10\n\n'
        '[[fault]]\nwhat = "lose-write"\nat = { write = 5 }\nonce = true\n\n'
        '[[fault]]\nwhat = "latency-spike"\ntime = "10ms"\nafter = { requests = 900 }\n'
    )
    asked: dict[str, Any] = {"warm_up": 0, "depth": 4, "read": 50, "requests": 1000, "faults": str(schedule)}
    first, again = (json.loads(hs.run(CHEETAH, **asked).to_json())[0] for _ in range(2))
    assert first == again
    refused, lost, late = first["faults"]
    assert refused["met"] == refused["failed"] == sum(kind["errors"] for kind in first["kinds"].values())
    assert refused["met"] == pytest.approx(100, abs=2)
    assert lost["met"] == 1
    assert late["met"] == pytest.approx(100, abs=8)


def test_what_needs_contents_is_refused_where_there_are_none(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "pattern.toml").write_text('[[fault]]\nwhat = "lose-write"\ncontaining = "COMMIT"\n')
    refused = headstack("run", CHEETAH, "--faults", str(tmp_path / "pattern.toml"))
    assert refused.returncode == 2
    assert "pattern.toml:3: fault[0].containing: a simulation stores no data" in refused.stderr


def test_blkdebugs_files_are_schedules(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "blkdebug.conf").write_text('[inject-error]\nevent = "read_aio"\niotype = "read"\nonce = "on"\n')
    run = headstack(
        "run", CHEETAH, "--requests", "50", "--faults", str(tmp_path / "blkdebug.conf"), "--warm-up", "0", "--json", "-"
    )
    assert run.returncode in (0, 1), run.stderr
    (fault,) = json.loads(run.stdout)[0]["faults"]
    assert (fault["met"], fault["failed"]) == (1, 1)


def test_orders_in_words_say_which_requests() -> None:
    assert order_of(("inject", "power-cut", "after=writes:1000", "tear=track", "for=1s")) == {
        "do": "inject",
        "fault": {"what": "power-cut", "tear": "track"},
        "for": "1s",
        "when": {"after": {"writes": 1000}},
    }
    assert order_of(("inject", "errno", "at=flush:7", "once", "every=3", "touching=0..1MiB")) == {
        "do": "inject",
        "fault": {"what": "errno"},
        "when": {"at": {"flush": 7}, "once": True, "every": 3, "touching": "0..1MiB"},
    }
    resets = order_of(("inject", "link-resets", "time=1ms", "every=2s"))
    assert resets == {"do": "inject", "fault": {"what": "link-resets", "time": "1ms", "every": "2s"}}
    assert order_of(("mark", "transaction", "17")) == {"do": "mark", "text": "transaction 17"}
