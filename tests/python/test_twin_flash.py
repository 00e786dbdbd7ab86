"""Twins of solid-state drives: hidden ones are known again from their answers."""

import copy
from typing import Any

import numpy as np
import pytest

from headstack.catalogue.system import load_system
from headstack.results.intervals import calibration
from headstack.twin.device import Answers, Requests, SimulatedDevice
from headstack.twin.families import flash, flash_reads, flash_writes
from headstack.twin.families.flash_draw import loaded
from headstack.twin.learnt import Learnt
from headstack.twin.probes import dies, slc_cache, steady_state
from headstack.twin.session import ProbeRun, Session

SMALL = """
name = "small"
[capacity]
size = "1GB"
[flash]
generation = "tlc-64"
channels = 4
dies_per_channel = 4
pages_per_block = 24
over_provisioning = 0.2
[interface]
kind = "nvme"
generation = 3
"""


class ReadOnly(SimulatedDevice):
    """A device that must not be written."""

    may_write = False


def learnt(device: Any, **limits: Any) -> tuple[Learnt, Session]:
    session = Session(device, **limits)
    flash.probes(session)
    return flash.learn(session), session


def rate(system: Any, size: int, depth: int, state: str | None = None, write: bool = False) -> float:
    system = copy.deepcopy(system)
    system["drive"]["ssd"]["state"] = state or system["drive"]["ssd"]["state"]
    device = SimulatedDevice(system)
    places = np.random.default_rng(depth).integers(0, device.capacity_bytes // size, 30_000) * size
    asked = Requests.writes(places, size, depth=depth) if write else Requests.reads(places, size, depth=depth)
    device.ask(asked)
    return device.ask(asked).per_s


@pytest.fixture(scope="module")
def small() -> Any:
    system = loaded(SMALL)
    found, session = learnt(SimulatedDevice(system))
    return system["drive"]["ssd"], found, session


def test_a_drive_filled_in_order_tells_its_dies_channels_and_times(small: Any) -> None:
    hidden, found, _ = small
    twin = found.best["drive"]["ssd"]
    assert found.fits, found.why
    for key in ("channels", "dies_per_channel"):
        assert twin["flash"][key] == hidden["flash"][key]
    assert found.values["flash.dies"].low == found.values["flash.dies"].high == "16"
    for part, key in (("timing", "read_ns"), ("controller", "command_interval_ns"), ("controller", "command_ns")):
        assert twin[part][key] == pytest.approx(hidden[part][key], rel=0.01), key
    assert twin["timing"]["channel_ns_per_byte"] == pytest.approx(hidden["timing"]["channel_ns_per_byte"], rel=0.01)
    # The waits are random: their mean is that of some dozens, and their least is above the fixed part by some percent.
    mean = [one["timing"]["suspend_ns"] + one["timing"]["suspend_spread_ns"] for one in (twin, hidden)]
    assert mean[0] == pytest.approx(mean[1], rel=0.2)
    assert twin["timing"]["suspend_ns"] == pytest.approx(hidden["timing"]["suspend_ns"], rel=0.3)
    assert twin["timing"]["program_ns"] == pytest.approx(hidden["timing"]["program_ns"], rel=0.05)
    assert twin["interface"]["queue_depth"] == hidden["interface"]["queue_depth"]


def test_what_was_not_asked_for_comes_out_too(small: Any) -> None:
    hidden, found, _ = small
    system = {"drive": {"ssd": hidden}}
    for size, depth in ((8192, 3), (16384, 24), (65536, 200)):
        assert rate(found.best, size, depth) == pytest.approx(rate(system, size, depth), rel=0.03)
    writes = [rate(one, 4096, 32, state="steady", write=True) for one in (found.best, system)]
    # The same units are written again, so that the rate depends on the size of blocks, which is not identifiable.
    assert writes[0] == pytest.approx(writes[1], rel=0.1)


def test_the_sample_lies_round_the_best(small: Any) -> None:
    _, found, _ = small
    assert len(found.sample) == 20
    senses = np.array([one["drive"]["ssd"]["timing"]["read_ns"] for one in found.sample])
    assert 0.001 < senses.std() / senses.mean() < 0.02


def test_a_cache_of_one_bit_a_cell_ends_where_it_did() -> None:
    system = loaded(
        SMALL.replace("over_provisioning = 0.2", "over_provisioning = 0.4") + '[slc_cache]\nstatic = "100MB"\n'
    )
    found, session = learnt(SimulatedDevice(system))
    capacity = session.device.capacity_bytes
    measured, described = flash_writes.like(session, found.best, "fill")
    assert 0.05 * capacity < measured.cache_bytes < 0.2 * capacity
    assert described.cache_bytes == pytest.approx(measured.cache_bytes, rel=0.05)


def test_overwrites_in_two_states_show_both_levels() -> None:
    # 4 rounds of 200 MB: 30 MB at 1.5 GB/s, then 20 MB at 60 MB/s.
    piece, per_phase = 20_000, (1500, 1000)
    gaps_ns = np.tile(np.repeat([piece / 1.5, piece / 0.06], per_phase), 4)
    done = np.cumsum(gaps_ns).astype(np.int64)
    requests = Requests.writes(np.zeros(len(done)), piece, depth=32)
    run = ProbeRun("overwrites, 9", requests, Answers(np.zeros(len(done), np.int64), done))
    moving = steady_state.phases([run] * 4)
    assert moving is not None
    assert [moving.fast, moving.slow] == pytest.approx([1.5e9, 60e6], rel=0.05)
    assert [moving.fast_bytes, moving.slow_bytes] == pytest.approx([30e6, 20e6], rel=0.15)


def overwrites(session: Session) -> list[ProbeRun]:
    """The rounds of overwrites."""
    return [run for run in session.runs if run.test.startswith("overwrites, ") and run.test != "overwrites, small"]


def test_overwrites_of_a_drive_in_one_state_have_no_phases(small: Any) -> None:
    _, _, session = small
    assert steady_state.phases(overwrites(session)) is None


def test_nothing_is_written_where_that_is_not_allowed() -> None:
    found, session = learnt(ReadOnly(loaded(SMALL)))
    assert found.fits, found.why
    assert not any(one.requests.change_contents for one in session.runs)
    assert found.values["flash.program"].how == "not identifiable: nothing was written"


def test_the_way_to_the_host_is_told_from_channels_that_are_nearly_as_slow() -> None:
    system = loaded(SMALL)
    drive = system["drive"]["ssd"]
    drive["state"] = "filled"
    drive["timing"]["channel_ns_per_byte"] = 5.2
    for part, key in (("controller", "read_ns_per_byte"), ("interface", "read_ns_per_byte")):
        drive[part][key] = 4.0
    # A row of which the second read waits for the way a little.
    drive["flash"] |= {"planes_per_die": 1, "pages_per_block": 48}
    found, _ = learnt(ReadOnly(system))
    assert found.best["drive"]["ssd"]["interface"]["read_ns_per_byte"] == pytest.approx(4.0, rel=0.01)
    assert found.best["drive"]["ssd"]["timing"]["channel_ns_per_byte"] == pytest.approx(5.2, rel=0.01)


def test_dies_are_counted_by_pairs_where_the_map_repeats_nothing() -> None:
    system = loaded(SMALL)
    system["drive"]["ssd"]["state"] = "steady"
    found, _ = learnt(ReadOnly(system))
    dies = found.values["flash.dies"]
    low, high = int(dies.low or 0), int(dies.high or 0)
    assert low <= 16 <= high
    assert high - low <= 6


def test_a_row_ends_where_two_reads_meet_no_more() -> None:
    distances = np.array([512, 4096, 8192, 12288])
    assert dies.row_from(distances, np.array([50.0, 51.0, 0.2, 0.1])) == 8192
    assert dies.row_from(distances, np.zeros(4)) is None


def test_strides_are_multiples_of_a_period_or_nothing() -> None:
    assert flash_reads._period(np.arange(1, 40) % 8 == 0) == 8
    assert flash_reads._period(np.arange(1, 40) % 8 == 3) is None


def test_a_knee_lies_where_its_neighbours_leave_it() -> None:
    # 1 GB at 2 bytes a nanosecond, 5 GB at a third of it, and 1 GB slower still, as a drive that folds.
    rates = np.repeat([2.0, 0.6, 0.3], [1000, 5000, 1000])
    knees = slc_cache.knees(np.cumsum(1e6 / rates), 10**6)
    assert [knee.bytes for knee in knees] == pytest.approx([1e9, 6e9], rel=0.005)
    assert knees[0].before == pytest.approx(2.0, rel=0.01)
    assert knees[0].after == pytest.approx(0.6, rel=0.01)
    assert slc_cache.knees(np.cumsum(np.full(7000, 1e6)), 10**6) == []


def test_a_row_of_a_second_fill_tells_what_erasing_costs(small: Any) -> None:
    hidden, found, _ = small
    of_row = [
        drive["timing"]["erase_ns"] / drive["flash"]["pages_per_block"]
        for drive in (hidden, found.best["drive"]["ssd"])
    ]
    assert of_row[1] == pytest.approx(of_row[0], rel=0.05)


def test_a_hidden_drive_is_held_against_its_dies_and_its_cliff(small: Any) -> None:
    hidden, found, _ = small
    marks = flash.marks({"drive": {"ssd": hidden}}, found)
    assert marks["dies"] == (16.0, 16.0)
    assert marks["cliff"] == (None, None)


class Constant:
    """Answers everything after the same time, whatever else it has to do."""

    name, may_write, block_bytes, capacity_bytes = "constant", True, 512, 8 << 30

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def ask(self, requests: Any, progress: Any = None) -> Any:
        number = np.arange(len(requests))
        alone = requests.depth == 0
        issued = requests.times_ns.astype(np.int64) if alone else number // requests.depth * self.ns
        return Answers(issued, issued + self.ns)

    def rest(self, seconds: Any) -> None:
        """Nothing to do."""


class Mixed:
    """Two drives, each for every other mebibyte."""

    name, may_write, block_bytes = "mixed", True, 512

    def __init__(self, systems: Any) -> None:
        self.devices = [SimulatedDevice(system) for system in systems]
        self.capacity_bytes = min(device.capacity_bytes for device in self.devices)

    def ask(self, requests: Any, progress: Any = None) -> Any:
        one, other = (device.ask(requests) for device in self.devices)
        first = requests.offsets // np.uint64(1 << 20) % np.uint64(2) == 0
        late = one.issued_ns[0] - other.issued_ns[0]
        return Answers(
            np.where(first, one.issued_ns, other.issued_ns + late),
            np.where(first, one.completed_ns, other.completed_ns + late),
        )

    def rest(self, seconds: Any) -> None:
        for device in self.devices:
            device.rest(seconds)


@pytest.mark.parametrize(
    "device",
    [
        lambda: Constant(80_000),
        lambda: SimulatedDevice(load_system("aws-gp3-500").system),
        lambda: SimulatedDevice(load_system("cheetah-9lp").system),
        lambda: Mixed([loaded(SMALL), loaded(SMALL.replace("tlc-64", "mlc").replace("24", "12"))]),
    ],
    ids=["constant", "volume", "disk", "mixed"],
)
def test_what_is_no_drive_does_not_fit(device: Any) -> None:
    found, session = learnt(device())
    assert not found.fits
    assert found.why
    assert not any(one.requests.change_contents for one in session.runs), "found out by reads alone"


def test_where_twins_of_flash_lie_is_known() -> None:
    known = calibration.twin_scores()["flash"]
    for kind in ("read", "write"):
        learnt = known.learnt(calibration.Load(kind, 16, 8192), "rate")
        assert isinstance(learnt, calibration.Learnt)
        assert learnt.devices >= 30
        # Twins of which the sample differs by as much as chance.
        assert learnt.half_width(0.0) < 0.15
