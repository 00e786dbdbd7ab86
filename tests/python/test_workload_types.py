"""The types that are stated for access specifications, compared with those of the catalogue."""

from __future__ import annotations

import tomllib

import pytest

import headstack as hs
from headstack import _native
from headstack.prediction.workload_types import Addresses, Arrivals, Line, Video
from shapes import differences

FORMS = (
    '"once"',
    "{ zipf = { theta = 1.1 } }",
    "{ pareto = { h = 0.2 } }",
    "{ normal = { mean_percent = 50, deviation_percent = 10 } }",
    '{ strided = { zone = "64KiB", step = "1MiB" } }',
    "{ vdbench_hotband = { from_percent = 10, to_percent = 20 } }",
    "{ hot_bands = [{ from_percent = 0, to_percent = 10, share_percent = 100 }] }",
)


@pytest.mark.parametrize("name", _native.workload_ids())
def test_workloads_have_the_stated_types(name: str) -> None:
    description = hs.Workload.load(name).description
    assert list(differences(description["lines"], list[Line])) == []
    assert list(differences(description["addresses"], Addresses)) == []
    assert list(differences(description["arrivals"], Arrivals)) == []


@pytest.mark.parametrize("addresses", FORMS)
def test_addresses_have_the_stated_types(addresses: str) -> None:
    lines = [{"size": "4KiB", "read_percent": 50, "random_percent": 100, "trim_percent": 50, "align": "4KiB"}]
    arrivals = {"open": {"rate_per_s": 10.0, "process": {"bursty": {"on": "1s", "off": "1s"}}}}
    asked = {"name": "t", "lines": lines, "arrivals": arrivals, **tomllib.loads(f"addresses = {addresses}")}
    description = _native.complete_workload(asked)
    assert list(differences(description["lines"], list[Line])) == []
    assert list(differences(description["addresses"], Addresses)) == []
    assert list(differences(description["arrivals"], Arrivals)) == []


def test_video_has_the_stated_type() -> None:
    streams = [hs.Scenario.load(name).description["streams"] for name in _native.scenario_ids()]
    videos = [stream["video"] for of in streams for stream in of if "video" in stream]
    assert videos
    for video in videos:
        assert list(differences(video, Video)) == []
