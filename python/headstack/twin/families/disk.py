"""Calibrated models of disks: probes, then the description under which a simulated disk has the same response times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headstack.twin.families.disk_draws import draw
from headstack.twin.families.disk_fit import PATTERNS, Fit
from headstack.twin.fitting import run_tests
from headstack.twin.hidden import HeldOut
from headstack.twin.learnt import Learnt, Residual, Value
from headstack.twin.probes import queue, read_buffer, rotation, seeks, tracks, write_cache, zones
from headstack.twin.session import Session

SHORTER = 5000
"""Number of requests from which a spread is estimated."""
HELD_OUT = (
    HeldOut("reads of 8 KiB, alone", "read", 1, 8192, 16_000, spread_count=SHORTER),
    HeldOut("reads of 4 KiB, 2 at a time", "read", 2, 4096, 20_000, spread_count=SHORTER),
    HeldOut("reads of 16 KiB, 12 at a time", "read", 12, 16384, 20_000, spread_count=SHORTER),
    HeldOut("reads of 8 KiB, 32 at a time", "read", 32, 8192, 20_000, spread_count=SHORTER),
    HeldOut("reads of 64 KiB, 64 at a time", "read", 64, 65536, 20_000, spread_count=SHORTER),
    HeldOut("reads and writes of 8 KiB, 16 at a time", "mix", 16, 8192, 20_000, reads=0.7, spread_count=SHORTER),
    HeldOut("reads and writes of 4 KiB, 2 at a time", "mix", 2, 4096, 20_000, reads=0.8, spread_count=SHORTER),
    HeldOut("reads and writes of 16 KiB, 48 at a time", "mix", 48, 16384, 20_000, reads=0.6, spread_count=SHORTER),
    HeldOut("writes of 4 KiB, 4 at a time", "write", 4, 4096, 16_000, reads=0.0, spread_count=SHORTER),
    HeldOut("writes of 16 KiB, 24 at a time", "write", 24, 16384, 16_000, reads=0.0, spread_count=SHORTER),
)
"""Workloads on which models of hidden disks are evaluated, and which no probe runs. They are long enough that chance
changes a percentile by 1 or 2 %.
"""

USUAL_S: Mapping[object, float] = {zones.ask: 6, seeks.ask: 9, queue.ask: 36, read_buffer.ask: 10, write_cache.ask: 38}
"""Usual duration of each probe in seconds, by which the time left after the rotation probe is divided: probing tracks
takes one or two.
"""
CHANCE = 1.5
"""Standard errors by which the means of a test and of the description may differ by chance, since each has an error of
its own.
"""
LARGEST_MISS, LARGEST_MISS_OF_WRITES = 0.1, 0.15
"""A disk whose random reads or writes the best description misses by more than these shares does not fit the model:
hidden disks of all eras stay within 33 % of them."""


__all__ = ["HELD_OUT", "draw", "learn", "probes"]


def probes(session: Session) -> None:
    """Runs the probes that distinguish disks, with writes only if the device may be written."""
    rotation.ask(session)
    turn = rotation.learn(session)
    if turn is None:
        # The device is no disk; skip the rest.
        return
    alone_s = float(session.runs_of(rotation.TEST)[0].answers.response_ns.mean()) / 1e9
    to_come_s = sum(USUAL_S.values()) - (0 if session.device.may_write else USUAL_S[write_cache.ask])

    def part_s(probe: object) -> float:
        nonlocal to_come_s
        seconds = session.part_s(USUAL_S[probe], to_come_s)
        to_come_s -= USUAL_S[probe]
        return seconds

    zones.ask(session, part_s(zones.ask))
    rates = zones.learn(session)
    tracks.ask(session, rates, turn)
    disk_tracks = tracks.learn(session, rates, turn)
    tracks.ask_gaps(session, disk_tracks, turn)
    distances = seeks.Distances(disk_tracks.count(session.device.capacity_bytes))
    seeks.ask(session, part_s(seeks.ask), distances, rates, alone_s)
    queue.ask(session, part_s(queue.ask), alone_s)
    read_buffer.ask(session, part_s(read_buffer.ask), disk_tracks.half_bytes, turn)
    if session.device.may_write:
        write_cache.ask(session, part_s(write_cache.ask), alone_s, disk_tracks.half_bytes, turn)


def learn(session: Session) -> Learnt:
    """Learns the model of a disk from the answers."""
    random = np.random.default_rng(session.seed)
    turn = rotation.learn(session)
    if turn is None:
        return Learnt(
            {}, {}, [], fits=False, why="no rotation: repeated reads of a block do not complete at one rotational phase"
        )
    fit = Fit(session, random, turn)
    fit.find()
    residuals = _residuals(fit, random)
    reads, writes = random_reads(), random_writes(session)
    sample = list(fit.sample(_discrepancy(fit, residuals, reads), _discrepancy(fit, residuals, writes)))
    why = unexplained(residuals, reads, writes)
    return Learnt(fit.disk.system, _values(fit), [disk.system for disk in sample], residuals, fits=not why, why=why)


def random_reads() -> list[str]:
    """Returns the tests of random reads."""
    return [rotation.TEST, *(queue.name(depth) for depth in queue.DEPTHS)]


def random_writes(session: Session) -> list[str]:
    """Returns the tests of random writes, if the device was written."""
    names = [*(write_cache.steady(depth) for depth in write_cache.STEADY), write_cache.MIX, write_cache.DEEP_MIX]
    return [name for name in names if session.runs_of(name)]


def unexplained(residuals: Mapping[str, Residual], reads: Sequence[str], writes: Sequence[str]) -> str:
    """Returns the reason why the best description does not fit; empty if it fits."""
    for tests, largest, hint in (
        (reads, LARGEST_MISS, ""),
        (writes, LARGEST_MISS_OF_WRITES, "; a media cache or SMR would explain it, but neither is modelled"),
    ):
        worst = max(tests, key=lambda name: abs(residuals[name].mean), default="")
        if worst and abs(residuals[worst].mean) > largest:
            off = 100 * np.expm1(abs(residuals[worst].mean))
            return f"{worst}: mean latency differs from the best model by {off:.0f} %{hint}"
    return ""


def _discrepancy(fit: Fit, residuals: Mapping[str, Residual], tests: Sequence[str]) -> float:
    """Returns the error of the best description in these tests above chance, per request: the root mean square. No
    parameter explains it, and its value at other depths and sizes is unknown, so it is part of the sample."""
    excess = [0.0]
    for name in tests:
        (run,) = fit.session.runs_of(name)
        took = run.answers.response_ns
        chance = CHANCE * float(took.std() / took.mean()) / np.sqrt(len(took))
        # At a queue depth, this many requests are served in the time of one.
        excess.append(max(0.0, residuals[name].mean ** 2 - chance**2) * (1e9 / run.answers.per_s) ** 2)
    return float(np.sqrt(np.sum(excess) / max(1, len(tests))))


def _residuals(fit: Fit, random: np.random.Generator) -> dict[str, Residual]:
    """Returns the residuals of each test."""
    residuals = {}
    for run in fit.session.runs:
        if run.test == zones.TEST:
            continue
        (lists,) = run_tests(fit.disk.system, [run], random, draws=2)
        described = np.concatenate([answers.response_ns for _, answers in lists])
        residuals[run.test] = Residual.of(run.answers.response_ns, described)
    return residuals


def _command(fit: Fit) -> Value:
    seen = tracks.command_ns(fit.session, fit.turn)
    if seen is None:
        return Value(None, None, "not identifiable separately, only as a sum with the seek time")
    command = fit.disk.command_ns
    step = fit.turn.period_ns * tracks.LARGEST_GAP / 2**tracks.GAP_STEPS
    return Value(
        *bounds_ms(command - step, command + step),
        "smallest rotational gap to a block that is still caught",
    )


def bounds_ms(low_ns: float, high_ns: float) -> tuple[str, str]:
    """Returns bounds of a time in ms, which are not negative however large the uncertainty."""
    return f"{max(0.0, low_ns) / 1e6:.3f}ms", f"{max(0.0, high_ns) / 1e6:.3f}ms"


def _milliseconds(values: np.ndarray) -> tuple[str, str]:
    return bounds_ms(*np.quantile(values, [0.05, 0.95]))


def _values(fit: Fit) -> dict[str, Value]:
    """Returns the bounds of each value in the description, with the method."""
    turn, disk = fit.turn, fit.disk
    spread = 1.645 * 60e9 / turn.period_ns * turn.sd_ns / turn.period_ns
    sums = disk.seek_ns + disk.command_ns
    sd = fit.seek_sd_ns
    values = {
        "spindle.speed": Value(
            f"{turn.rpm - spread:.5f}rpm",
            f"{turn.rpm + spread:.5f}rpm",
            "rotational phase of blocks read twice",
        ),
        "geometry.zones": Value(None, None, f"sequential read rates at {zones.PLACES} positions, for all heads"),
        "seek.points": Value(
            *bounds_ms(sums[0] - 1.645 * sd[0], sums[-1] + 1.645 * sd[-1]),
            f"shortest and longest latencies at {seeks.COUNT} distances, ±{1.645 * np.median(sd) / 1e6:.3f} ms each, "
            "including the command overhead: only the sum is visible",
        ),
        "overheads.command": _command(fit),
        "overheads.read_hit": Value(
            f"{0.997 * disk.read_hit_ns / 1e6:.4f}ms",
            f"{1.003 * disk.read_hit_ns / 1e6:.4f}ms",
            "reads of one block again",
        ),
        "buffer.read_ahead": Value(None, None, f"fitted to {len(PATTERNS)} read patterns"),
        "queue.policy": Value(
            None,
            None,
            "fitted to latency distributions of random reads at queue depths "
            + ", ".join(str(depth) for depth in queue.DEPTHS),
        ),
    }
    others = fit.others or [disk]
    if disk.queue["depth"] > 1:
        for key, sampled in (
            ("queue.committed", [other.committed for other in others]),
            ("queue.age_weight", [other.age_weight for other in others]),
            ("queue.reordering_strength", [other.strength for other in others]),
        ):
            low, high = np.quantile(sampled, [0.05, 0.95])
            values[key] = Value(f"{low:.2f}", f"{high:.2f}", "fitted together with queue.policy")
        margins = np.array([other.rotation_margin_ns for other in others])
        values["queue.rotation_margin"] = Value(*_milliseconds(margins), "fitted together with queue.policy")
    written = "write bursts, steady writes and flushes"
    if not fit.session.runs_of(write_cache.BURST):
        values["buffer.write_cache"] = Value(None, None, "not identifiable: nothing was written; usual value")
        return values
    settles = np.array([other.write_settle_ns for other in others])
    values["seek.write_settle"] = Value(*_milliseconds(settles), f"fitted to {written}")
    values["buffer.write_cache"] = Value(None, None, f"first write after idle time, then fitted to {written}")
    if disk.buffer["write_cache"] != "off":
        extents = [other.buffer["dirty_extents_max"] for other in others]
        values["buffer.dirty_extents_max"] = Value(str(min(extents)), str(max(extents)), f"fitted to {written}")
    return values
