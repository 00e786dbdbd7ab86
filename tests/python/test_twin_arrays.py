"""Twins of arrays: how data are spread is known again from the rates of reads."""

import numpy as np
import pytest

from headstack.system import load_system
from headstack.twin import array
from headstack.twin.array import Layout
from headstack.twin.device import SimulatedDevice
from headstack.twin.session import Session


def learnt(device):
    session = Session(device)
    array.probes(session)
    return array.learn(session)


@pytest.mark.parametrize(("level", "members", "unit"), [("raid5", 5, 64), ("raid6", 6, 4)])
def test_stripe_unit_and_members_are_exact(level, members, unit):
    found = learnt(SimulatedDevice(array._array(level, members, unit << 10, "cheetah-15k7-600")))
    assert found.values["groups[0].stripe_unit"].low == f"{unit}KiB"
    assert found.values["drives[0].count"].low == str(members)
    group = found.best["array"]["groups"][0]
    assert (group["level"], len(group["members"]), group["stripe_unit_bytes"]) == (level, members, unit << 10)


def test_two_parities_go_round_as_the_simulator_has_them():
    # As crates/sim/src/array/levels/rows.rs names data of RAID 6 on four members: 1 2, 0 1, 3 0, 2 3.
    members = Layout("raid6", 4, 4096).member_of(np.arange(8) * 4096)
    assert members.tolist() == [1, 2, 0, 1, 3, 0, 2, 3]


def test_reads_at_multiples_of_the_pattern_meet_one_member():
    layout = Layout("raid0", 6, 65536)
    assert layout.spread(6 * 65536) == 1
    assert layout.spread(6 * 65536, 65536) == 2
    assert layout.spread(65536) == pytest.approx(6, rel=0.01)


def test_a_drive_alone_does_not_fit():
    found = learnt(SimulatedDevice(load_system("cheetah-15k7-600").system))
    assert not found.fits
    assert "striped" in found.why or "no layout" in found.why
