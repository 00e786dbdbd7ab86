"""Answers of a running export have the types that the package states for them."""

from __future__ import annotations

from pathlib import Path

import headstack as hs
from headstack.live.status import Fidelity, Injected, Status
from nbd_client import Client
from shapes import differences


def test_orders_are_answered_as_stated(tmp_path: Path) -> None:
    with hs.serve("demartek-512n-raid5-24", unix=(str(tmp_path / "s"),), data="discard") as live:
        client = Client(tmp_path / "s")
        client.write(0, b"m" * 4096)
        client.read(0, 4096)
        live.order({"do": "scrub"})
        name = live.order({"do": "status"})["gauges"]["devices"][0]["name"]
        injected = live.order({"do": "inject", "fault": {"what": "member-fails", "member": name}})
        status = live.order({"do": "status"})
        # Clients of NBD are hung up on by a power loss.
        client.close()
        cut = live.order({"do": "inject", "fault": {"what": "power-cut"}})
    assert status["faults"]
    assert status["fidelity"]["clients"]
    assert list(differences(status, Status)) == []
    assert list(differences(injected, Injected)) == []
    assert "loss" in cut
    assert list(differences(cut, Injected)) == []
    assert list(differences(live.fidelity, Fidelity)) == []


def test_a_device_of_constant_latency_has_no_gauges(tmp_path: Path) -> None:
    with hs.serve("constant:1ms", unix=(str(tmp_path / "s"),)) as live:
        status = live.order({"do": "status"})
    assert status["gauges"] is None
    assert list(differences(status, Status)) == []
