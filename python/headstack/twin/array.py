"""The twin of an array: stripe unit, members and level, from how fast reads at multiples of every distance are.

Its members are the drive of the catalogue, of a few of every kind, under which the array's rates come out most nearly:
a member is not seen by itself.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from headstack.twin.device import Floats, Requests, SimulatedDevice
from headstack.twin.flash_draw import loaded
from headstack.twin.hidden import HeldOut
from headstack.twin.learnt import Learnt, Residual, System, Value
from headstack.twin.probes import stripes
from headstack.twin.session import OutOfTimeError, Session

__all__ = ["HELD_OUT", "draw", "learn", "probes"]

HELD_OUT: Final = (
    HeldOut("reads alone", "read", 1, 8192, 400),
    HeldOut("reads", "read", 4, 8192, 800),
    HeldOut("reads", "read", 16, 8192, 1200),
    HeldOut("reads", "read", 64, 16384, 2000),
    HeldOut("long reads", "read", 8, 1 << 17, 800),
    HeldOut("long reads", "read", 2, 1 << 20, 300),
    HeldOut("mix", "mix", 16, 8192, 1500, reads=0.7),
    HeldOut("mix", "mix", 2, 4096, 800, reads=0.8),
    HeldOut("writes", "write", 16, 8192, 1500, reads=0.0),
)
"""What no probe asks for."""

DISKS: Final = (
    "cheetah-9lp",
    "atlas-10k-iii-73",
    "cheetah-15k7-600",
    "exos-7e8-8tb",
    "barracuda-xt-2tb",
    "deskstar-7k3000-3tb",
)
FLASH: Final = ("dc-s3700-400gb", "870-evo-1tb", "dc-p4510-4tb", "7450-pro-7680gb")
LEVELS: Final = ("raid0", "raid10", "raid5", "raid6")
SPREAD_LEAST: Final = 0.1
"""Standard deviation of the logarithm of the rates at all distances: chance alone moves them by 0.04."""
EXPLAINED: Final = 0.7
"""Of it, what a layout may leave: half of the variance is then explained."""
NOISE: Final = 0.15
"""Twice what chance and the queues of members leave of disks; flash has dies of its own that distances meet."""
MISFIT: Final = 0.5
SAMPLES: Final = 20


def draw(random: np.random.Generator) -> System:
    """An array: of disks or flash, of every level."""
    level = ("raid0", "raid10", "raid5", "raid6")[random.integers(4)]
    count = {
        "raid0": int(random.integers(2, 17)),
        "raid10": 2 * int(random.integers(2, 9)),
        "raid5": int(random.integers(3, 17)),
        "raid6": int(random.integers(4, 17)),
    }[level]
    kinds = DISKS if random.random() < 0.6 else FLASH
    drive = kinds[random.integers(len(kinds))]
    unit = stripes.UNITS[random.integers(len(stripes.UNITS))]
    return _array(level, count, unit, drive)


def _array(level: str, count: int, unit: int, drive: str) -> System:
    text = f'name = "array"\n[[drives]]\ndrive = "{drive}"\ncount = {count}\n[[groups]]\nlevel = "{level}"\n'
    return loaded(text + f'stripe_unit = "{unit // 1024}KiB"\n')


def probes(session: Session) -> None:
    """Asks what tells an array."""
    try:
        stripes.probe(session)
    except OutOfTimeError:
        if not session.of("anywhere, reads"):
            raise


@dataclass(frozen=True)
class Layout:
    """Where data lie."""

    level: str
    members: int
    unit_bytes: int

    def member_of(self, offsets: np.ndarray) -> np.ndarray:
        """The member, or the pair of them, that answers a read."""
        number = offsets // self.unit_bytes
        if self.level == "raid10":
            return np.asarray(number % (self.members // 2))
        if self.level == "raid6":
            # Left-symmetric: parity goes back by one member from stripe to stripe, and data begin behind it.
            stripe, within = np.divmod(number, self.members - 2)
            return np.asarray((self.members - 1 - stripe % self.members + 2 + within) % self.members)
        return np.asarray(number % self.members)

    def spread(self, distance: int, step: int = 0) -> float:
        """Members, or pairs, that reads at multiples of a distance keep busy: one over the share of the busiest, for
        which all others wait."""
        offsets = np.arange(PLACES, dtype=np.int64) * distance
        if step:
            offsets = np.concatenate([offsets, offsets + step])
        shares = np.bincount(self.member_of(offsets)) / len(offsets)
        return float(1 / shares.max())


PLACES: Final = 5040
"""Multiples looked at: whole rounds of every number of members."""


def layouts() -> list[Layout]:
    """Every level, number of members and stripe unit whose reads lie differently."""
    counts = {"raid0": range(2, 17), "raid6": range(4, 17)}
    return [Layout(level, count, unit) for level in counts for count in counts[level] for unit in stripes.UNITS]


def explain(tests: Sequence[tuple[int, int]], rates: Floats) -> tuple[Layout, float]:
    """The layout that explains the rates of all distances and steps best, and the standard deviation of what it
    leaves."""
    y = np.log(rates)
    best: tuple[float, Layout] | None = None
    for layout in layouts():
        x = np.log([layout.spread(*test) for test in tests])
        if x.std() == 0:
            continue
        slope = float(np.clip(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum(), 0.0, 1.2))
        left = float((y - y.mean() - slope * (x - x.mean())).std())
        if best is None or left < best[0]:
            best = left, layout
    if best is None:
        raise ValueError("no distance was asked for")
    return best[1], best[0]


def learn(session: Session) -> Learnt:
    """The description that explains the answers, and how sure each of its values is."""
    asked = [one for one in session.asked if one.test.startswith("distance")]
    if len(asked) < 8 or not session.of("anywhere, reads"):
        return Learnt({}, {}, [], fits=False, why="the probes ended before enough distances were asked for")
    named = [[int(part) for part in one.test.split(", ")[1:]] for one in asked]
    tests = [(distance, step[0] if step else 0) for distance, *step in named]
    rates = np.array([one.answers.per_s for one in asked])
    spread = float(np.log(rates).std())
    layout, left = explain(tests, rates)
    why = ""
    if spread < SPREAD_LEAST:
        why = "reads are as fast at every distance: nothing is striped over several members"
    elif left > min(NOISE, EXPLAINED * spread):
        why = f"no layout explains the rates at multiples of {len(tests)} distances"
    if why:
        return Learnt({}, {}, [], fits=False, why=why)
    layout, best, others, off = _members(session, layout)
    level = layout.level
    how = "how data lie beside two parities" if level == "raid6" else "what writes cost beside reads"
    if not session.of("anywhere, writes") and level != "raid6":
        how = "not identifiable: nothing was written"
    unit, count = f"{layout.unit_bytes // 1024}KiB", str(layout.members)
    values = {
        "groups[0].stripe_unit": Value(unit, unit, "rates of reads at multiples of every distance"),
        "drives[0].count": Value(count, count, f"rates of reads at multiples of every distance; {how}"),
        "groups[0].level": Value(level, level, how),
        "drives[0].drive": Value(None, None, "not identifiable: the nearest drive of the catalogue"),
    }
    if off > MISFIT:
        why = f"no member of the catalogue explains the rates: the nearest is off by {off:.0%}"
    return Learnt(best, values, others, _residuals(session, best), not why, why)


def _alike(layout: Layout, writes: bool) -> list[Layout]:
    """Layouts whose reads lie alike: writes tell mirrors and one parity."""
    count = layout.members
    if layout.level == "raid6" or not writes:
        return [layout]
    found = [layout, Layout("raid10", 2 * count, layout.unit_bytes)]
    return found + ([Layout("raid5", count, layout.unit_bytes)] if count >= 3 else [])


def _members(session: Session, layout: Layout) -> tuple[Layout, System, list[System], float]:
    """Level and drive under which the array's rates over depth are nearest, others nearly so, and how far it is."""
    wanted = [one for one in session.asked if one.test.startswith(("array, ", "anywhere"))]
    (alone,) = session.of("array, alone")
    kinds = DISKS if float(np.median(alone.answers.response_ns)) > stripes.SLOW_NS else FLASH
    found: list[tuple[float, Layout, System]] = []
    for other in _alike(layout, bool(session.of("anywhere, writes"))):
        for name in kinds:
            system = _fitted(other, name, session.device.capacity_bytes)
            device = SimulatedDevice(system)
            rates = [device.ask(_within(one.requests, device.capacity_bytes)).per_s for one in wanted]
            logs = np.log([one.answers.per_s for one in wanted]) - np.log(rates)
            found.append((float(np.mean(np.abs(logs))), other, system))
    found.sort(key=lambda one: one[0])
    off, chosen, best = found[0]
    near = [system for how_far, other, system in found if other == chosen and how_far < 2 * off + 0.05]
    return chosen, best, [copy.deepcopy(near[number % len(near)]) for number in range(SAMPLES)], off


def _within(requests: Requests, capacity: int) -> Requests:
    """The same requests in a smaller device."""
    if int(requests.offsets.max()) + int(requests.lengths.max()) <= capacity:
        return requests
    room = np.uint64(capacity - int(requests.lengths.max()))
    return Requests(
        requests.kinds,
        requests.offsets % room // np.uint64(4096) * np.uint64(4096),
        requests.lengths,
        requests.depth,
        requests.times_ns,
    )


def _fitted(layout: Layout, drive: str, capacity: int) -> System:
    """The array of a drive, cut to a capacity where its drives hold more."""
    system = json.loads(json.dumps(_array(layout.level, layout.members, layout.unit_bytes, drive)))
    lun: dict[str, Any] = system["array"]["luns"][0]
    lun["length_bytes"] = min(lun["length_bytes"], capacity)
    return dict(system)


def _residuals(session: Session, system: System) -> dict[str, Residual]:
    device, residuals = SimulatedDevice(system), {}
    for one in session.asked:
        if not one.requests.change_contents:
            answers = device.ask(_within(one.requests, device.capacity_bytes))
            residuals[one.test] = Residual.of(one.answers.response_ns, answers.response_ns)
    return residuals
