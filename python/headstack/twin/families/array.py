"""Calibrated models of arrays: chunk size, members and level from many concurrent reads, and a member as a model of its
family.

A member is probed like a disk or an SSD, through the part of the array that is on it; the effect of writes on it is
visible only without redundancy, and is otherwise fitted to writes on the whole array.
"""

from __future__ import annotations

import copy
import functools
from typing import Any, Final

import numpy as np

from headstack._native import InputError
from headstack.twin.device import READ, WRITE, Requests, SimulatedDevice
from headstack.twin.families import disk, disk_draws, flash, flash_draw
from headstack.twin.families.flash_draw import loaded
from headstack.twin.hidden import HeldOut
from headstack.twin.layout import UNITS, Layout
from headstack.twin.learnt import Learnt, Residual, System, Value
from headstack.twin.member import Member
from headstack.twin.probes import stripes
from headstack.twin.session import OutOfTimeError, Session, places

__all__ = ["HELD_OUT", "draw", "learn", "marks", "probes"]

HELD_OUT: Final = (
    HeldOut("reads alone", "read", 1, 8192, 800),
    HeldOut("reads", "read", 4, 8192, 1500),
    HeldOut("reads", "read", 24, 8192, 3000),
    HeldOut("reads", "read", 64, 16384, 4000),
    HeldOut("long reads", "read", 8, 1 << 17, 1500),
    HeldOut("long reads", "read", 2, 1 << 20, 600),
    HeldOut("mix", "mix", 16, 8192, 4000, reads=0.7),
    HeldOut("mix", "mix", 2, 4096, 1500, reads=0.8),
    HeldOut("writes", "write", 4, 4096, 3000, reads=0.0),
    HeldOut("writes", "write", 24, 16384, 4000, reads=0.0),
)
"""Workloads that no probe runs."""

LEVELS: Final = ("raid0", "raid10", "raid5", "raid6")
FLASH_MOST: Final = 4 << 30
"""Maximum bytes of a hidden member of flash: sixteen of them fill in seconds of real time."""
MISFIT: Final = 0.15
"""Maximum mean logarithmic error of the whole array's rates: hidden arrays stay within half of it."""
WHOLE: Final = {True: 300, False: 6_000}
"""Number of requests on the whole array at each depth, for slow members and for fast ones."""
DEPTHS: Final = (2, 8, 32)
SAMPLES: Final = 20


def draw(random: np.random.Generator) -> System:
    """Draws an array of any level with hidden disks or SSDs as members."""
    level = LEVELS[random.integers(4)]
    least, most, step = {"raid0": (2, 17, 1), "raid10": (2, 9, 2), "raid5": (3, 17, 1), "raid6": (4, 17, 1)}[level]
    count = step * int(random.integers(least, most))
    unit = UNITS[random.integers(len(UNITS))]
    if random.random() < 0.6:
        device = disk_draws.draw(random)["drive"]
    else:
        device = flash_draw.draw(random)["drive"]
        while device["ssd"]["capacity"]["logical_bytes"] > FLASH_MOST:
            device = flash_draw.draw(random)["drive"]
        # Hidden arrays of flash are filled in order, as the probes of members assume.
        device["ssd"]["state"] = "filled"
    layout = Layout(level, count, unit)
    return assembled(layout, device, SimulatedDevice({"drive": device}).capacity_bytes // unit)


@functools.cache
def _described(level: str, count: int, unit: int) -> System:
    """Returns an array with the catalogue's plainest controller and a placeholder as its member."""
    text = f'name = "array"\n[[drives]]\ndrive = "cheetah-9lp"\ncount = {count}\n[[groups]]\nlevel = "{level}"\n'
    return loaded(text + f'chunk_size = "{unit // 1024}KiB"\n')


def assembled(layout: Layout, device: dict[str, Any], rows: int) -> System:
    """Returns the array of such members with this number of stripes in use."""
    system = copy.deepcopy(_described(layout.level, layout.members, layout.unit_bytes))
    array = system["array"]
    array["devices"] = [device]
    (group,), (lun,) = array["groups"], array["luns"]
    group["member_bytes"] = rows * layout.unit_bytes
    lun["length_bytes"] = rows * layout.data_units * layout.unit_bytes
    return system


def marks(hidden: System, learnt: Learnt) -> dict[str, tuple[float | None, float | None]]:
    """Returns chunk size, members and data chunks per stripe, which determine the level."""

    def layout_figures(system: System) -> tuple[float, ...]:
        (group,) = system["array"]["groups"]
        layout = Layout(group["level"], len(group["members"]), group["chunk_bytes"])
        return layout.unit_bytes, layout.members, layout.data_units

    both = zip(layout_figures(hidden), layout_figures(learnt.best), strict=True)
    return dict(zip(("chunk size", "members", "data in a row"), both, strict=True))


def probes(session: Session) -> None:
    """Probes the layout, then a member for its family, then the whole array again."""
    try:
        layout = stripes.probe(session)
        if layout is None:
            return
        member = Member(
            layout,
            session.device.capacity_bytes,
            session.device.block_bytes,
            lambda requests: session.ask("a member", requests),
            session.rest,
            session.device.may_write and layout.level == "raid0",
        )
        session.member = Session(member, session.seed, session.left_s, session.progress)
        _family(session).probes(session.member)
        _whole(session)
    except OutOfTimeError:
        # A member with sufficient data is accepted; its own family decides whether it fits.
        if not _wholes(session):
            session.member = None


def _family(session: Session) -> Any:
    return disk if stripes.is_slow(session) else flash


def _whole(session: Session) -> None:
    """Measures random reads, writes and both on the array."""
    capacity, block = session.device.capacity_bytes, max(4096, session.device.block_bytes)
    count = WHOLE[stripes.is_slow(session)]
    for name, share in (("reads", 1.0), ("writes", 0.0), ("both", 0.5)):
        for depth in DEPTHS if share == 1.0 or session.device.may_write else ():
            kinds = np.where(session.random.random(2 * count) < share, READ, WRITE)
            where = places(session.random, 2 * count, capacity, block)
            session.ask(f"whole, {name}, {depth}", Requests.of(kinds, where, block, depth=depth))


def learn(session: Session) -> Learnt:
    """Returns the description that explains the answers, with the confidence of its values."""
    if session.member is None or not isinstance(session.member.device, Member):
        why = "the time ended before the members were identified; use a longer --time"
        if session.runs_of("crowd") and not session.runs_of("two at once"):
            why = "read latency does not depend on other outstanding reads: not striped over several members"
        return Learnt({}, {}, [], fits=False, why=why)
    layout = session.member.device.layout
    rows, values = layout.rows(session.device.capacity_bytes), _values(session, layout)
    member = _family(session).learn(session.member)
    if not member.fits:
        return Learnt({}, values, [], fits=False, why=f"members: {member.why}")
    drives = [member.best["drive"], *(system["drive"] for system in member.sample[:SAMPLES])]
    written = _written(session, layout, rows, drives[0])
    systems = [assembled(layout, _changed(drive, written), rows) for drive in drives]
    values |= {f"member.{key}": value for key, value in member.values.items()}
    off = _off(systems[0], _wholes(session))
    why = f"IOPS differ from the best model by {off:.0%} on average" if off > MISFIT else ""
    return Learnt(systems[0], values, systems[1:], _residuals(session, systems[0]), not why, why)


def _values(session: Session, layout: Layout) -> dict[str, Value]:
    unit, count = f"{layout.unit_bytes // 1024}KiB", str(layout.members)
    crowd = "latencies of concurrent reads follow the queue depth of a member"
    level = {
        "raid10": "two concurrent reads of one member do not wait for each other",
        "raid6": crowd,
        "raid5": "reads wait for writes on other members",
        "raid0": "reads do not wait for writes on other members",
    }[layout.level]
    if layout.level == "raid0" and not session.runs_of("without writes") and layout.members >= 3:
        level = "not distinguishable from raid5: nothing was written"
    return {
        "groups[0].chunk_size": Value(unit, unit, crowd),
        "drives[0].count": Value(count, count, crowd),
        "groups[0].level": Value(layout.level, layout.level, level),
    }


def _wholes(session: Session, share: tuple[str, ...] = ("reads", "writes", "both")) -> list[Any]:
    return [run for run in session.runs if run.test.startswith(tuple(f"whole, {name}" for name in share))]


Change = dict[str, str | float]
"""Changed values of a member by path; numbers are factors."""
KNOBS: Final[dict[str, dict[str, tuple[str | float, ...]]]] = {
    "disk": {
        "buffer.write_cache": ("on", "off", "appending", "protected"),
        "buffer.dirty_extents_max": (0.25, 0.5, 1.0, 2.0, 4.0),
        "mechanics.write_settle_ns": (0.3, 0.6, 1.0, 1.6),
    },
    "ssd": {
        "timing.program_ns": (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8),
        "controller.write_command_ns": (0.1, 0.25, 0.5, 1.0, 2.0),
        "controller.write_interval_ns": (0.5, 1.0, 2.0, 4.0),
        "buffer.bytes": (0.25, 0.5, 1.0, 2.0, 4.0),
    },
}
"""Values of a member that only its writes show, with their candidates."""


def _changed(drive: dict[str, Any], change: Change) -> dict[str, Any]:
    """Returns the drive with changed values."""
    other = copy.deepcopy(drive)
    ((_, described),) = other.items()
    for path, value in change.items():
        *tables, key = path.split(".")
        table = functools.reduce(lambda inner, name: inner[name], tables, described)
        table[key] = type(table[key])(table[key] * value) if isinstance(value, float) else value
    return other


def _written(session: Session, layout: Layout, rows: int, drive: dict[str, Any]) -> Change:
    """Returns the change of a member with which the array writes as measured, found by two rounds over single values;
    empty if the member itself was written."""
    whole_runs = _wholes(session, ("writes", "both"))
    if not whole_runs or (session.member is not None and session.member.device.may_write):
        return {}

    @functools.cache
    def off(items: tuple[tuple[str, str | float], ...]) -> float:
        try:
            return _off(assembled(layout, _changed(drive, dict(items)), rows), whole_runs)
        except InputError:
            # The values of this drive are contradictory.
            return float("inf")

    best: Change = {}
    (kind,) = drive
    knobs = KNOBS[kind]
    for _ in range(min(2, len(knobs))):
        for path, values in knobs.items():
            best = min(
                ({**best, path: value} for value in values), key=lambda change: off(tuple(sorted(change.items())))
            )
    return best


def _off(system: System, runs: list[Any]) -> float:
    """Returns the mean logarithmic error of rates."""
    device = SimulatedDevice(system)
    rates = [device.ask(run.requests).per_s for run in runs]
    return float(np.mean(np.abs(np.log([run.answers.per_s for run in runs]) - np.log(rates))))


def _residuals(session: Session, system: System) -> dict[str, Residual]:
    """Returns the residuals of the whole array's measurements."""
    device, residuals = SimulatedDevice(system), {}
    for run in [*session.runs_of("array, alone"), *session.runs_of("crowd"), *_wholes(session)]:
        answers = device.ask(run.requests)
        residuals[run.test] = Residual.of(run.answers.response_ns, answers.response_ns)
    return residuals
