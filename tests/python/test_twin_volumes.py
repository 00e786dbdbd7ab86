"""Twins of cloud volumes: limits, buckets and latencies are known again from answers."""

from typing import Any

import numpy as np
import pytest

from headstack.catalogue.system import load_system
from headstack.twin.device import Answers, SimulatedDevice
from headstack.twin.families import volume
from headstack.twin.learning import DoesNotFitError, learn
from headstack.twin.probes import limits
from headstack.twin.session import Session


def described(*hidden_limits: Any, **accounting: Any) -> Any:
    took = {"floor_ns": 400_000, "median_ns": 700_000, "p99_ns": 2_000_000}
    return {
        "drive": {
            "volume": {
                "name": "hidden",
                "capacity_bytes": 100 << 30,
                "block_bytes": 512,
                "accounting": {"unit_bytes": None, "merges": False, "whole_units": False} | accounting,
                "limits": list(hidden_limits),
                "read": took,
                "write": took,
                "queue_depth": 1024,
            }
        }
    }


def requests(per_s: Any, burst: Any = None, of: Any = "both") -> Any:
    return {"counts": "requests", "of": of, "per_s": per_s, "burst": burst}


def learnt(device: Any) -> Any:
    session = Session(device)
    volume.probes(session)
    return volume.learn(session), session


def test_rate_burst_and_credits_are_right_within_a_per_cent() -> None:
    hidden = described(
        requests(700, {"per_s": 2100, "credits": 150_000}),
        {"counts": "bytes", "of": "both", "per_s": 50_000_000, "burst": None},
    )
    found, _ = learnt(SimulatedDevice(hidden))
    assert found.fits, found.why
    one, other = found.best["drive"]["volume"]["limits"]
    assert one["per_s"] == pytest.approx(700, rel=0.01)
    assert one["burst"]["per_s"] == pytest.approx(2100, rel=0.01)
    assert one["burst"]["credits"] == pytest.approx(150_000, rel=0.01)
    assert other["counts"] == "bytes"
    assert other["per_s"] == pytest.approx(50_000_000, rel=0.01)
    assert other["burst"] is None
    reads = found.best["drive"]["volume"]["read"]
    assert reads["median_ns"] == pytest.approx(700_000, rel=0.03)
    assert reads["p99_ns"] == pytest.approx(2_000_000, rel=0.1)
    low, high = found.values["volume.limits.requests.credits"].low, found.values["volume.limits.requests.credits"].high
    assert float(low) <= 150_000 <= float(high)


def test_long_requests_count_as_several_and_reads_apart_from_writes() -> None:
    hidden = described(requests(300, of="reads"), requests(300, of="writes"), unit_bytes=65536)
    found, _ = learnt(SimulatedDevice(hidden))
    twin = found.best["drive"]["volume"]
    assert twin["accounting"]["unit_bytes"] == 65536
    assert {limit["of"] for limit in twin["limits"] if limit["counts"] == "requests"} == {"reads", "writes"}


def test_a_knee_is_found_where_the_line_bends_and_nowhere_else() -> None:
    times = np.concatenate([np.arange(1, 1001) / 100, 10 + np.arange(1, 501) / 20])
    before, after, at = limits.knee(times, np.arange(1.0, 1501))
    assert (before, after, at) == pytest.approx((100, 20, 10), rel=0.01)
    assert limits.knee(times[:1000], np.arange(1.0, 1001))[2] == 0


def test_floor_median_and_p99_come_back_from_draws() -> None:
    random = np.random.default_rng(3)
    took = 200_000 + 300_000 * np.exp(0.5 * random.standard_normal(6000))
    found = volume.latency(took)
    assert found["median_ns"] == pytest.approx(500_000, rel=0.02)
    assert found["p99_ns"] == pytest.approx(200_000 + 300_000 * np.exp(0.5 * 2.326), rel=0.05)


class Unlimited:
    """Draws a latency for each request, whatever it has to do: nothing bounds it."""

    name, may_write, block_bytes, capacity_bytes = "unlimited", False, 512, 8 << 30

    def __init__(self, spread: float) -> None:
        self.random, self.spread = np.random.default_rng(1), spread

    def ask(self, asked: Any, progress: Any = None) -> Any:
        took = (2e5 + 3e5 * np.exp(self.spread * self.random.standard_normal(len(asked)))).astype(np.int64)
        issued = asked.times_ns.astype(np.int64) if asked.depth == 0 else np.arange(len(asked)) * 500_000 // asked.depth
        return Answers(issued, issued + took)

    def rest(self, seconds: Any) -> None:
        """Nothing to do."""


@pytest.mark.parametrize(
    "device",
    [
        lambda: Unlimited(0.0),
        lambda: Unlimited(0.4),
        lambda: SimulatedDevice(load_system("7400-pro-7680gb").system),
        lambda: SimulatedDevice(load_system("cheetah-9lp").system),
    ],
    ids=["constant", "unlimited", "flash", "disk"],
)
def test_what_is_no_volume_does_not_fit(device: Any, monkeypatch: Any) -> None:
    # Nothing ends before: a tenth of the requests says as much.
    monkeypatch.setattr(limits, "MOST", 700_000)
    found, _ = learnt(device())
    assert not found.fits
    assert found.why


def test_a_bucket_of_bytes_is_known_where_that_of_requests_ends_too() -> None:
    hidden = described(
        requests(2000, {"per_s": 8000, "credits": 60_000}),
        {"counts": "bytes", "of": "both", "per_s": 8_000_000, "burst": {"per_s": 30_000_000, "credits": 500_000_000}},
    )
    found, _ = learnt(SimulatedDevice(hidden))
    assert found.fits, found.why
    _, other = found.best["drive"]["volume"]["limits"]
    assert other["per_s"] == pytest.approx(8_000_000, rel=0.01)
    assert other["burst"]["per_s"] == pytest.approx(30_000_000, rel=0.01)
    assert other["burst"]["credits"] == pytest.approx(500_000_000, rel=0.01)


def test_short_requests_in_order_that_count_as_one_are_seen() -> None:
    found, _ = learnt(SimulatedDevice(described(requests(300), unit_bytes=262_144, merges=True)))
    assert found.fits, found.why
    accounting = found.best["drive"]["volume"]["accounting"]
    assert accounting["merges"]
    assert accounting["unit_bytes"] == 262_144


@pytest.mark.parametrize("budget_s", [10, 400])
def test_a_calibration_that_runs_out_of_time_says_so(budget_s: float) -> None:
    """After the rate of small requests and before that of any larger ones, the limit of bytes is still unknown."""
    device = SimulatedDevice(load_system("aws-gp2-1000").system)
    with pytest.raises(DoesNotFitError, match=f"{budget_s} s of device time are too few"):
        learn(device, ["volume"], budget_s=budget_s)
