"""The types that are stated for what the compiled module returns of traces, compared with real values."""

from __future__ import annotations

from pathlib import Path

import pytest

import headstack as hs
from conftest import REPOSITORY
from headstack import _native
from headstack.traces.cache_types import Behind, CacheRow, LabOptions, LabReport, Responses
from headstack.traces.replay_types import VolumeResult, VolumeRow
from headstack.traces.replays import NOTHING_SET, replay_simulated, replays_of, specify, volumes_of
from headstack.traces.synthesis_types import Made, Scorecard, SynthesisOptions
from headstack.traces.trace_types import Analyzed, Exported, Source, TraceInfo, Volume, Written
from shapes import differences

SAMPLES = REPOSITORY / "crates" / "trace" / "samples"
# Formats of which each has facts that others lack: objects, names of processes, phases, capacities, counts, a header.
NAMES = ("alibaba.csv", "keys.txt", "ftrace.txt", "srt.bin", "hfplayer.csv", "msr.csv", "disksim.txt", "etw.csv")
CHEETAH = "cheetah-x15-36lp"


@pytest.fixture
def recorded(tmp_path: Path) -> hs.Trace:
    """A trace with response times, that uses blocks again."""
    path = tmp_path / "t.parquet"
    hs.run(CHEETAH, "file-server", depth=4, requests=2_000, warm_up=0, record=path)
    return hs.Trace(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_has_the_stated_types(name: str, tmp_path: Path) -> None:
    trace = hs.Trace(SAMPLES / name)
    options = {"block_bytes": 4096, "reuse": "block", "sample": None}
    found = _native.trace_analyze(trace.source, options)
    assert list(differences(trace.source, Source)) == []
    assert list(differences(trace.info(), TraceInfo)) == []
    assert list(differences(found, Analyzed)) == []
    assert list(differences(trace.volumes(), list[Volume])) == []
    assert list(differences(trace.to_parquet(tmp_path / "t.parquet"), Written)) == []


def test_an_analysis_has_the_stated_types_with_and_without_reuse(recorded: hs.Trace) -> None:
    for reuse, sample in (("block", 0.5), ("request", None), (None, None)):
        options = {"block_bytes": 4096, "reuse": reuse, "sample": sample}
        assert list(differences(_native.trace_analyze(recorded.source, options), Analyzed)) == []
    assert list(differences(recorded.export(recorded.paths[0] + ".txt", "disksim"), Exported)) == []


def test_caches_have_the_stated_types(recorded: hs.Trace) -> None:
    for lab in (
        hs.caches(recorded, "lru,belady", "1MiB,4MiB", behind=CHEETAH),
        hs.caches(recorded, "lru", "100", holds="objects", sample=0.5, samples=2, admit="64KiB"),
        hs.caches(recorded, "lru", "1MiB", holds="bytes", writes="back", admit="50%"),
    ):
        assert list(differences(lab.options, LabOptions)) == []
        assert list(differences(lab.report, LabReport)) == []
        assert list(differences(lab.behind, Behind | None)) == []
        assert list(differences(lab.times, list[Responses] | None)) == []
        assert list(differences(lab.rows, list[CacheRow])) == []


def test_synthetic_traces_have_the_stated_types(recorded: hs.Trace, tmp_path: Path) -> None:
    twin = hs.synthesize(recorded, tmp_path / "twin.parquet", length="1000")
    endless = hs.synthesize_scenario(recorded, tmp_path / "twin.toml")
    assert list(differences(twin.options, SynthesisOptions)) == []
    for found in (twin, endless):
        assert list(differences(found.made, Made)) == []
        assert list(differences(found.scorecard, Scorecard)) == []


def test_volumes_of_replays_have_the_stated_types(recorded: hs.Trace) -> None:
    replays = replays_of(recorded, ["timed", "asap", "closed", "dependent"], NOTHING_SET)
    results, volumes = replay_simulated(specify(recorded, [CHEETAH], replays, {}, "stacked"), {})
    assert list(differences(volumes, list[list[VolumeResult]])) == []
    assert list(differences(volumes_of(results, volumes), list[VolumeRow])) == []
