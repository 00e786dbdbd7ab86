"""Faults in simulated runs, curves, sweeps, replays and studies: ``--faults FILE``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import CHEETAH, Headstack
from headstack import _native
from headstack.runs import specify
from headstack.sweeps import Plan

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
    (spec,) = _native.specifications(first.decode())
    assert json.loads(spec)["faults"]["fault"][0]["what"] == "latency-spike"


def test_a_schedule_in_a_study_is_a_setting(files: Path) -> None:
    (spec,) = specify(CHEETAH, None, {"faults": str(files / "cut.toml")})
    assert spec["faults"]["fault"][0]["what"] == "power-cut"
