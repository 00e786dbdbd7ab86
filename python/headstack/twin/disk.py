"""The twin of a disk: probes, then the description under which a simulated disk answers as this one did."""

from __future__ import annotations

import numpy as np

from headstack.twin.disk_draws import draw
from headstack.twin.disk_fit import PATTERNS, Fit
from headstack.twin.fitting import answered
from headstack.twin.hidden import HeldOut
from headstack.twin.learnt import Learnt, Residual, Value
from headstack.twin.probes import queue, read_buffer, rotation, seeks, write_cache, zones
from headstack.twin.session import Session

HELD_OUT = (
    HeldOut("reads of 8 KiB, alone", "read", 1, 8192, 4000),
    HeldOut("reads of 4 KiB, 2 at a time", "read", 2, 4096, 5000),
    HeldOut("reads of 16 KiB, 12 at a time", "read", 12, 16384, 5000),
    HeldOut("reads of 8 KiB, 32 at a time", "read", 32, 8192, 5000),
    HeldOut("reads of 64 KiB, 64 at a time", "read", 64, 65536, 5000),
    HeldOut("reads and writes of 8 KiB, 16 at a time", "mix", 16, 8192, 5000, reads=0.7),
    HeldOut("reads and writes of 4 KiB, 2 at a time", "mix", 2, 4096, 5000, reads=0.8),
    HeldOut("reads and writes of 16 KiB, 48 at a time", "mix", 48, 16384, 5000, reads=0.6),
    HeldOut("writes of 4 KiB, 4 at a time", "write", 4, 4096, 4000, reads=0.0),
    HeldOut("writes of 16 KiB, 24 at a time", "write", 24, 16384, 4000, reads=0.0),
)
"""What hidden disks are held against: no probe asks any of it."""

USUAL_ALONE_S = 0.0125
"""A read of a disk that takes longer alone is asked for as much less often."""
LARGEST_MISS = 0.1
"""A disk whose random reads the best description misses by more than this share is none that the model knows: hidden
disks
of all eras stay within a third of it."""


__all__ = ["HELD_OUT", "draw", "learn", "probes"]


def probes(session: Session) -> None:
    """Asks what tells one disk from another; writes only where the device may be written."""
    rotation.ask(session)
    if rotation.learn(session) is None:
        # No disk: nobody waits for the rest.
        return
    alone_s = float(session.of(rotation.TEST)[0].answers.response_ns.mean()) / 1e9
    session.slowness = max(1.0, alone_s / USUAL_ALONE_S)
    zones.ask(session)
    seeks.ask(session, zones.learn(session))
    queue.ask(session, alone_s)
    read_buffer.ask(session)
    if session.device.may_write:
        write_cache.ask(session, alone_s)


def learn(session: Session) -> Learnt:
    """What the answers teach of a disk."""
    random = np.random.default_rng(session.seed)
    turn = rotation.learn(session)
    if turn is None:
        return Learnt(
            {}, {}, [], fits=False, why="no rotation: reads of the same place do not come back at one phase of a turn"
        )
    fit = Fit(session, random, turn)
    fit.find()
    sample = list(fit.sample())
    residuals = _residuals(fit, random)
    named = [rotation.TEST, *(queue.name(depth) for depth in queue.DEPTHS)]
    worst = max(named, key=lambda name: abs(residuals[name].mean))
    miss = abs(residuals[worst].mean)
    why = f"{worst}: off by {100 * miss:.0f} % under the best description" if miss > LARGEST_MISS else ""
    return Learnt(fit.disk.system, _values(fit), [one.system for one in sample], residuals, fits=not why, why=why)


def _residuals(fit: Fit, random: np.random.Generator) -> dict[str, Residual]:
    """What the description leaves unexplained, test by test."""
    found = {}
    for asked in fit.session.asked:
        if asked.test == zones.TEST:
            continue
        (lists,) = answered(fit.disk.system, [asked], random, draws=2)
        described = np.concatenate([answers.response_ns for _, answers in lists])
        found[asked.test] = Residual.of(asked.answers.response_ns, described)
    return found


def _milliseconds(values: np.ndarray) -> tuple[str, str]:
    low, high = np.quantile(values, [0.05, 0.95])
    return f"{low / 1e6:.3f}ms", f"{high / 1e6:.3f}ms"


def _values(fit: Fit) -> dict[str, Value]:
    """Of each value of the description where it lies, and how it was found."""
    turn, disk = fit.turn, fit.disk
    spread = 1.645 * 60e9 / turn.period_ns * turn.sd_ns / turn.period_ns
    sums = disk.seek_ns + disk.command_ns
    sd = fit.seek_sd_ns
    found = {
        "spindle.speed": Value(
            f"{turn.rpm - spread:.5f}rpm", f"{turn.rpm + spread:.5f}rpm", "phase of places that were read twice"
        ),
        "geometry.zones": Value(None, None, f"rates of reads in order at {zones.PLACES} places; heads cannot be seen"),
        "seek.points": Value(
            f"{(sums[0] - 1.645 * sd) / 1e6:.3f}ms",
            f"{(sums[-1] + 1.645 * sd) / 1e6:.3f}ms",
            f"shortest and longest responses at {len(seeks.DISTANCES)} distances, ±{1.645 * sd / 1e6:.3f} ms each, the "
            "command's overhead included: only their sum can be seen",
        ),
        "overheads.command": Value(None, None, "not identifiable alone: its sum with the seek is"),
        "overheads.read_hit": Value(
            f"{0.997 * disk.read_hit_ns / 1e6:.4f}ms", f"{1.003 * disk.read_hit_ns / 1e6:.4f}ms", "the same read again"
        ),
        "buffer.read_ahead": Value(None, None, f"searched for: {len(PATTERNS)} patterns of reads"),
        "queue.policy": Value(
            None,
            None,
            "searched for: distributions of random reads at "
            + ", ".join(str(depth) for depth in queue.DEPTHS)
            + " outstanding",
        ),
    }
    if fit.firmware:
        points = np.array(fit.firmware)
        for key, column in (("queue.committed", 1), ("queue.age_weight", 3), ("queue.reordering_strength", 4)):
            low, high = np.quantile(points[:, column], [0.05, 0.95])
            found[key] = Value(f"{low:.2f}", f"{high:.2f}", "searched for with queue.policy")
        found["queue.rotation_margin"] = Value(*_milliseconds(points[:, 2]), "searched for with queue.policy")
    written = "bursts, steady writes and flushes"
    if fit.settles_ns:
        found["seek.write_settle"] = Value(*_milliseconds(np.array(fit.settles_ns)), f"searched for: {written}")
        found["buffer.write_cache"] = Value(None, None, f"the first write after a rest, then searched for: {written}")
    else:
        found["buffer.write_cache"] = Value(None, None, "not identifiable: nothing was written; as usual in its years")
    if fit.extents:
        found["buffer.dirty_extents_max"] = Value(
            str(min(fit.extents)), str(max(fit.extents)), f"searched for: {written}"
        )
    return found
