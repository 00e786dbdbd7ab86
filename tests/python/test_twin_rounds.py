"""A device beside its twin, in rounds of workloads that no probe asks for."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Headstack, slow
from headstack.catalogue.system import load_system
from headstack.twin import rounds
from headstack.twin.device import SimulatedDevice
from headstack.twin.families.flash_draw import loaded
from headstack.twin.hidden import FIGURES
from headstack.twin.learning import Calibration
from headstack.twin.learnt import Learnt
from headstack.twin.session import Session

CHEETAH = Learnt(load_system("cheetah-9lp").system, {}, [])


def test_twelve_workloads_are_held_out() -> None:
    for may_write in (False, True):
        workloads = rounds.held_out(may_write)
        assert len(workloads) == 12
        assert any(one.kind == "write" for one in workloads) == may_write


def test_a_device_is_beside_its_own_description_and_away_from_another() -> None:
    system = load_system("cheetah-9lp").system
    slower = copy.deepcopy(system)
    slower["drive"]["disk"]["mechanics"]["rpm"] *= 0.8
    device = SimulatedDevice(system, 3)
    workloads = rounds.READS[:3]
    found = rounds.measure_rounds(device, workloads, rounds=2)
    assert max(rounds.repeats(found.rounds, "mean")) < 0.05
    assert (found.anchors, found.moved) == ([], "")
    off = {}
    for name, best in (("own", system), ("slower", slower)):
        calibration = Calibration("disk", Session(device), Learnt(best, {}, [best] * 3))
        cells = rounds.compare_rounds(calibration, workloads, found)
        off[name] = [abs(cell.error) for cell in cells if cell.figure == "mean"]
        assert [cell.is_within_interval for cell in cells if cell.figure == "mean"] == [name == "own"] * len(workloads)
    assert np.mean(off["own"]) < 0.03
    assert np.mean(off["slower"]) > 0.1


def test_repeats_are_as_far_apart_as_rounds() -> None:
    found = [[{"mean": 1.0}], [{"mean": 2.0}]]
    assert rounds.repeats(found, "mean") == [pytest.approx(1.0)]
    assert rounds.chance(found, "mean") == pytest.approx(np.log(2) / np.sqrt(2))


def test_what_is_measured_for_a_short_while_is_told_less_surely() -> None:
    calibration = Calibration("disk", Session(SimulatedDevice(load_system("cheetah-9lp").system, 3)), CHEETAH)

    def width(apart: float) -> float:
        found = [[dict.fromkeys(FIGURES, 100.0 * (1 + apart * number))] for number in range(3)]
        (first, *_) = rounds.compare_rounds(calibration, rounds.READS[:1], rounds.Rounds(found, []))
        assert first.half_width is not None
        return first.half_width

    assert width(0.0) < width(0.01) < width(0.1)


CACHED = """
name = "cached"
[capacity]
size = "1GB"
[flash]
generation = "tlc-64"
channels = 4
dies_per_channel = 4
pages_per_block = 24
over_provisioning = 0.5
[interface]
kind = "nvme"
generation = 3
"""
CACHE = """
[slc_cache]
dynamic = "96MB"
folds_when_idle = false
"""


def test_writes_of_a_drive_whose_state_moves_are_refused_and_its_reads_are_not() -> None:
    workloads = rounds.held_out(True)
    system = loaded(CACHED + CACHE)
    device = SimulatedDevice(system, 3)
    found = rounds.measure_rounds(device, workloads, anchored=True)
    # Every fifth of twelve writes and mixes, and the last.
    assert len(found.anchors) == 4
    assert "between writes: write, depth 16, 16 KiB ran at " in found.moved
    calibration = Calibration("flash", Session(device), Learnt(system, {}, [system] * 3))
    cells = rounds.compare_rounds(calibration, workloads, found)
    assert {cell.workload.kind for cell in cells if "state" in cell.why} == {"write", "mix"}
    constant = rounds.Rounds(found.rounds, [100.0, 105.0, 103.0])
    assert constant.moved == ""
    assert not any("state" in cell.why for cell in rounds.compare_rounds(calibration, workloads, constant))


def test_reads_come_before_writes_and_writes_in_random_order() -> None:
    class Recorder(SimulatedDevice):
        def ask(self, requests: Any, progress: Any = None) -> Any:
            asked.append((bool(requests.change_contents), requests.depth, int(requests.lengths[0])))
            return super().ask(requests)

    orders = []
    for seed in (1, 1, 2):
        asked: list[tuple[bool, int, int]] = []
        device = Recorder(loaded(CACHED), 3)
        rounds.measure_rounds(device, rounds.held_out(True), seed=seed, anchored=True)
        changes = [one[0] for one in asked]
        assert changes == sorted(changes)
        orders.append(asked)
    assert orders[0] == orders[1] != orders[2]


def test_a_device_that_does_not_fit_is_measured_and_said_so(headstack: Headstack) -> None:
    out = headstack("measure", "twin", "validate", "--device", "pm883-480gb", "--family", "volume", "-q").stdout
    assert "pm883-480gb: does not fit: volume: " in out
    assert "mean difference between two rounds of a workload" in out


@slow("28 s of processor time; `test_the_picture_of_a_calibration_is_drawn` draws another calibration")
def test_a_calibration_is_drawn_from_its_first_probe_to_what_is_left(headstack: Headstack, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    done = headstack("measure", "twin", "cheetah-9lp", "--time", "40s", "-o", "own.toml", "--plot", "own.png", "-q")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "own.png").read_bytes().startswith(b"\x89PNG")
