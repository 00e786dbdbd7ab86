"""Reports of measurements and job files have the types that the package states for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from headstack import _native
from headstack.measurement.access import Access
from headstack.measurement.jobfiles.phases import DiskUse, JobFileRead, JobPhase, PhaseDemand
from headstack.measurement.measurement import Opened
from headstack.measurement.specs import (
    PassEnd,
    PassSpec,
    ProgressReport,
    StoredHistogram,
    StoredKind,
    Stretch,
    TargetDescription,
    TargetSpec,
)
from headstack.measurement.tests.conditioning.log import read_log
from headstack.measurement.tests.conditioning.records import Line, ModuleRecord
from headstack.measurement.tests.conditioning.session import condition
from shapes import differences

MIB = 1 << 20
FIO = """
[global]
filename={file}
size=1M
bs=4k

[reads]
rw=randread
rate_iops=100
max_latency=1s
number_ios=20
percentile_list=50:99

[writes]
stonewall
rw=write
verify=crc32c
zonemode=strided
zonesize=64k
buffer_pattern=0x5a
loops=2
"""
VDBENCH = """
sd=one,lun={file},size=1m
wd=mixed,sd=one,xfersize=4k,rdpct=50,skew=100
rd=curve,wd=mixed,iorate=curve,curve=(50,100),elapsed=2,interval=1
"""
TREES = """
fsd=small,anchor={folder},depth=1,width=2,files=5,size=4k
fwd=look,fsd=small,operation=getattr,fileselect=once
rd=all,fwd=look,fwdrate=max,format=yes,elapsed=5,interval=1
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(bytes(4 * MIB))
    return path


def test_open_targets_are_described_as_stated(data: Path) -> None:
    for path in (str(data), "null:1ms"):
        spec = Access(buffered=True).target_spec(path)
        assert list(differences(spec, TargetSpec)) == []
        assert list(differences(_native.Targets([spec]).described(), list[TargetDescription])) == []


def test_progress_and_results_are_as_stated() -> None:
    heard: list[ProgressReport] = []
    results = hs.measure("null:1ms", depth=2, time="400ms", interval="100ms", progress=heard.append)
    assert heard
    assert list(differences(heard, list[ProgressReport])) == []
    whole = results.whole(0)
    assert list(differences(whole["kinds"], Mapping[str, StoredKind])) == []
    assert list(differences(whole["intervals"][0]["latency"], StoredHistogram)) == []


def test_passes_are_as_stated(data: Path, tmp_path: Path) -> None:
    opened = Opened([str(data)], Access(buffered=True), writing=False)
    kept: list[Stretch] = []
    asked: PassSpec = {
        "write": False,
        "block_bytes": 65536,
        "ahead": 4,
        "device_bytes": None,
        "start_bytes": 0,
        "interval_ns": 1_000_000,
    }
    end = opened.stream(asked, kept.append, lambda position: None)
    assert kept
    assert list(differences(kept, list[Stretch])) == []
    assert list(differences(end, PassEnd)) == []
    log = tmp_path / "log"
    condition([data], access=Access(overwrite=True, buffered=True), log=log)
    module, lines, _ = read_log(str(log))
    assert list(differences(module, ModuleRecord)) == []
    assert {line["record"] for line in lines} == {"stretch", "pass"}
    assert [found for line in lines for found in differences(line, Line)] == []


@pytest.mark.parametrize(("suffix", "text"), [("fio", FIO), ("vdbench", VDBENCH), ("vdbench", TREES)])
def test_job_files_are_read_as_stated(data: Path, tmp_path: Path, suffix: str, text: str) -> None:
    file = tmp_path / f"job.{suffix}"
    file.write_text(text.format(file=data, folder=tmp_path / "tree"))
    read: Any = _native.read_fio(str(file), []) if suffix == "fio" else _native.read_vdbench(str(file), [])
    assert list(differences(read, JobFileRead)) == []
    for phase in read["phases"]:
        known = [100.0] * len(phase["jobs"])
        at_rates = _native.phase_at_observed(phase, known)
        assert list(differences(at_rates, JobPhase)) == []
        assert list(differences(_native.phase_demand(at_rates, 1 << 30), PhaseDemand)) == []


def test_disks_below_targets_are_used_as_stated(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "job.fio"
    file.write_text(f"[reads]\nfilename={data}\nrw=read\nbs=4k\nnumber_ios=10\n")
    assert list(differences(hs.measure_jobs(file).disks, list[DiskUse])) == []
