"""Twins of arrays: how data are spread, and a member, are known again from the times of reads."""

import copy
from typing import Any

import numpy as np
import pytest

from headstack.catalogue.system import load_system
from headstack.twin.device import Requests, SimulatedDevice
from headstack.twin.families import array, disk
from headstack.twin.families.array import assembled
from headstack.twin.layout import Layout
from headstack.twin.learnt import Learnt
from headstack.twin.member import Member
from headstack.twin.probes import rotation, stripes
from headstack.twin.session import Session, places

DISK = load_system("cheetah-15k7-600").system["drive"]
FLASH = load_system("870-evo-1tb").system["drive"]


def made(level: Any, members: Any, unit_kib: Any, device: Any) -> Any:
    layout = Layout(level, members, unit_kib << 10)
    return layout, SimulatedDevice(assembled(layout, device, (64 << 30) // layout.unit_bytes))


@pytest.mark.parametrize(
    ("level", "members", "unit", "device"),
    [
        ("raid0", 7, 16, DISK),
        ("raid10", 6, 256, DISK),
        ("raid5", 5, 64, DISK),
        ("raid5", 4, 1024, DISK),
        ("raid6", 6, 4, DISK),
        ("raid0", 8, 128, FLASH),
        ("raid10", 4, 32, FLASH),
        ("raid5", 6, 64, FLASH),
        ("raid6", 5, 512, FLASH),
    ],
)
def test_chunk_size_members_and_level_are_exact(level: Any, members: Any, unit: Any, device: Any) -> None:
    layout, array_of = made(level, members, unit, device)
    assert stripes.probe(Session(array_of)) == layout


def test_two_parities_go_round_as_the_simulator_has_them() -> None:
    # As crates/sim/src/array/levels/rows.rs names data of RAID 6 on four members: 1 2, 0 1, 3 0, 2 3.
    members = Layout("raid6", 4, 4096).member_of(np.arange(8) * 4096)
    assert members.tolist() == [1, 2, 0, 1, 3, 0, 2, 3]


@pytest.mark.parametrize(("level", "members"), [("raid0", 5), ("raid10", 6), ("raid5", 5), ("raid6", 7)])
def test_what_is_asked_of_a_member_falls_on_it(level: Any, members: Any) -> None:
    layout = Layout(level, members, 65536)
    asked: Any = None
    member = Member(layout, layout.data_units * 65536 * 100, 512, asked, asked, False)
    assert member.capacity_bytes == 100 * 65536
    offsets, lengths = member._placed(Requests.reads(np.arange(0, member.capacity_bytes, 4096)))
    assert set(layout.member_of(offsets)) == {0}
    assert offsets.max() + lengths.max() <= layout.data_units * 65536 * 100
    begin, whole = member._placed(Requests.reads([3 * 65536], 131072))
    assert (int(begin[0]), int(whole[0])) == (3 * 65536 * layout.data_units, 2 * 65536 * layout.data_units)


def test_an_array_of_disks_is_known_by_a_member(monkeypatch: Any) -> None:
    _, device = made("raid6", 4, 64, DISK)
    device.may_write = False
    session = Session(device)
    array.probes(session)
    assert session.member is not None
    turn = rotation.learn(session.member)
    assert turn is not None
    assert turn.rpm == pytest.approx(15_000, rel=1e-3)
    monkeypatch.setattr(disk, "learn", lambda member: Learnt({"drive": DISK}, {}, [{"drive": DISK}]))
    found = array.learn(session)
    assert found.fits, found.why
    assert found.best["array"]["groups"][0]["level"] == "raid6"
    assert abs(found.residuals["array, alone"].mean) < 0.05
    assert abs(found.residuals["whole, reads, 32"].mean) < 0.1


def test_what_writes_do_to_a_member_is_found_by_those_of_the_whole() -> None:
    uncached = copy.deepcopy(DISK)
    uncached["disk"]["buffer"]["write_cache"] = "off"
    layout, device = made("raid10", 4, 64, uncached)
    session = Session(device)
    session.ask("array, alone", Requests.reads(places(session.random, 200, device.capacity_bytes)))
    array._whole(session)
    change = array._written(session, layout, layout.rows(device.capacity_bytes), DISK)
    assert change["buffer.write_cache"] == "off"
    assert change["mechanics.write_settle_ns"] == 1.0


def test_a_drive_alone_does_not_fit() -> None:
    session = Session(SimulatedDevice(load_system("cheetah-15k7-600").system))
    array.probes(session)
    found = array.learn(session)
    assert not found.fits
    assert "not striped" in found.why
