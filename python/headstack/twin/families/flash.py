"""Calibrated models of SSDs.

Reads show dies, channels and each step of a read; if the drive may be written, it is emptied, filled, and randomly
overwritten until it is in steady state, which shows the rest.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Final, Literal

import numpy as np

from headstack.twin.device import Requests, SimulatedDevice
from headstack.twin.families import flash_reads, flash_writes
from headstack.twin.families.flash_draw import draw
from headstack.twin.families.flash_marks import marks
from headstack.twin.families.flash_reads import Map
from headstack.twin.families.flash_writes import ssd
from headstack.twin.hidden import HeldOut
from headstack.twin.learnt import Learnt, Residual, System, Value
from headstack.twin.probes import (
    command_interval,
    depth_curve,
    dies,
    interference,
    latency_floor,
    slc_cache,
    steady_state,
    write_buffer,
)
from headstack.twin.session import OutOfTimeError, Session
from headstack.twin.ssd_types import Ssd

__all__ = ["HELD_OUT", "draw", "learn", "marks", "probes"]

HELD_OUT: Final = (
    HeldOut("reads alone", "read", 1, 8192, 4000),
    HeldOut("reads", "read", 4, 8192, 8000),
    HeldOut("reads", "read", 16, 16384, 8000),
    HeldOut("reads", "read", 64, 8192, 12000),
    HeldOut("long reads", "read", 8, 65536, 4000),
    HeldOut("mix", "mix", 16, 8192, 60000, reads=0.7, settled=True),
    HeldOut("mix", "mix", 2, 4096, 30000, reads=0.8, settled=True),
    HeldOut("mix", "mix", 48, 8192, 60000, reads=0.6, settled=True),
    HeldOut("writes", "write", 1, 8192, 8000, reads=0.0, settled=True),
    HeldOut("writes", "write", 64, 8192, 40000, reads=0.0, settled=True),
    HeldOut("writes", "write", 16, 4096, 40000, reads=0.0, settled=True),
    HeldOut("writes", "write", 4, 16384, 20000, reads=0.0, settled=True),
)
"""Workloads that no probe runs. Mixes are long enough that intervals of one drive agree: at 33 % of the length they
differ by half.
"""

NOT_WRITTEN: Final = "not identifiable: nothing was written"
ROW_USUAL: Final = 16384
BLOCKS: Final = 240
"""Blocks per die in a description: the real number is invisible, and this many resolve the spare capacity to 0.5 %."""
ERASE_OF_ROW_NS: Final = 12_000
"""Erase time per row of the block: 4.5 ms over 384 rows, between those of MLC and of TLC."""
ERASE_USUAL_NS: Final = 4_500_000
"""Usual erase time; data sheets of flash since 2008 say 2 to 8 ms."""
ERASE_SEEN_NS: Final = 2_000
"""Increase per row in a second fill that is not due to chance."""
BLOCKS_LEAST: Final = 200
BLOCKS_MOST: Final = 1000
"""Range of blocks per die: fewer leave no choice of spare capacity, more take long to simulate."""
PROGRAM_USUAL_NS: Final = 600_000
"""Between the generations of TLC since 2016."""
SENSE_USUAL_NS: Final = 60_000
"""Usual sense time, likewise."""
SUSPEND_USUAL_NS: Final = 20_000
MISFIT: Final = 0.10
"""Mean logarithmic error of rates over depth at which a description is rejected."""
INTERVAL_LEAST_NS: Final = 50.0
"""Twenty million commands per second, above any interface."""
SPREAD_MOST: Final = 0.8
"""The sense times of pages in one block differ by up to a factor of two."""
ONE_BIT: Final = 0.8
"""Share of the time to sense all bits: cells with one bit take half of it or less."""
LARGE_UNITS: Final = (8192, 16384, 32768, 65536)
WARM_SHARE: Final = 0.12
WARM_MOST: Final = 600_000
PAGES_MAX: Final = 65_532
"""Maximum number of pages of a block: a multiple of 12, as for smaller blocks, that the model allows."""
SLC_STEP: Final = 0.015
"""Error of the model's cache size from whole blocks, as a share of the cache."""
BITS: Final = 3
"""Bits of a cell that holds one bit while it is a cache. Four would be visible only in the flash that the cache
uses."""
FILLS: Final = 4
LONG_AFTER: Final = 2.0
"""Overwrites by probes after the drive is full, in capacities."""
LONG_PIECE: Final = 1 << 16
SPARE_TRIES: Final = 5
LAST_OF_READS: Final = "depth curve, large, 64, found"
SAMPLES: Final = 20
SURE_TIMES: Final[tuple[tuple[Literal["read_ns", "program_ns"], float], ...]] = (
    ("read_ns", 0.005),
    ("program_ns", 0.02),
)
SURE_COMMANDS: Final[tuple[tuple[Literal["command_ns", "command_interval_ns", "write_interval_ns"], float], ...]] = (
    ("command_ns", 0.01),
    ("command_interval_ns", 0.004),
    ("write_interval_ns", 0.005),
)
"""Standard deviations of the logarithms of values over drives drawn from the priors."""


def _written(session: Session) -> bool:
    return bool(session.runs_of("fill"))


def _reads(session: Session, state: str) -> Map | None:
    latency_floor.probe(session, state)
    if _spread(session) > 2 * SPREAD_MOST:
        return None
    dies.probe(session, state)
    return flash_reads.mapping(session, state)


def probes(session: Session) -> None:
    """Runs the probes of an SSD, with writes if permitted, which destroy the contents."""
    try:
        initial = _reads(session, "found")
        if initial is None:
            return
        if initial.dies:
            command_interval.probe(session, "found", initial.row_bytes or ROW_USUAL, initial.dies)
        depth_curve.probe(session, "found")
        # Do not destroy data only to find out that this is another kind of device.
        if session.device.may_write and learn(session).fits:
            _probe_writes(session, initial)
    except OutOfTimeError:
        # The results of all reads suffice for a model; fewer do not.
        if not session.runs_of(LAST_OF_READS):
            raise


def _probe_writes(session: Session, initial: Map) -> None:
    latency_floor.probe_both(session)
    slc_cache.probe(session, initial.row_bytes or ROW_USUAL)
    filled = _reads(session, "filled") or initial
    visible = filled if filled.dies else initial
    if filled.dies and not initial.dies:
        command_interval.probe(session, "filled", filled.row_bytes or ROW_USUAL, filled.dies)
    depth_curve.probe(session, "filled")
    slc_cache.probe_again(session)
    session.rest(1.0)
    if visible.dies and visible.row_bytes:
        interference.probe_program(session, visible.row_bytes, visible.dies, max(500.0, 1.2 * visible.interval_ns))
    write_buffer.probe(session)
    latency_floor.probe_writes(session)
    steady_state.probe(session)
    write_buffer.probe_knee(session)
    interference.probe_mix(session)


def learn(session: Session) -> Learnt:
    """Returns the description that explains the answers, with the confidence of its values."""
    if not session.runs_of(LAST_OF_READS):
        if session.runs_of("latency, random, found") and _spread(session) > SPREAD_MOST:
            return Learnt({}, {}, [], fits=False, why=_too_wide(_spread(session)))
        why = "the time ended before reads at every queue depth had run; use a longer --time"
        return Learnt({}, {}, [], fits=False, why=why)
    initial = flash_reads.mapping(session, "found")
    values: dict[str, Value] = {}
    state, visible = "found", initial
    if _written(session) and session.runs_of("dies, pairs, filled"):
        filled = flash_reads.mapping(session, "filled")
        if not initial.dies and (filled.dies or not initial.reads_conflict):
            state, visible = "filled", filled
    system = _from_reads(session, initial, visible, state, values)
    if session.runs_of("steady writes"):
        _from_writes(session, system, values)
    else:
        for key in (
            "buffer.size",
            "flash.program",
            "flash.over_provisioning",
            "slc_cache.static",
            "controller.write_command",
        ):
            values[key] = Value(None, None, NOT_WRITTEN)
    residuals, off = _residuals(session, system)
    fits, why = _verdict(session, initial, residuals, off)
    return Learnt(system, values, _sample(session, system, values), residuals, fits, why)


def _ns(value: float) -> str:
    return f"{value / 1000:.6g}us"


def _near(values: dict[str, Value], key: str, value: float, share: float, how: str) -> None:
    values[key] = Value(_ns(value * (1 - share)), _ns(value * (1 + share)), how)


def _from_reads(session: Session, initial: Map, visible: Map, state: str, values: dict[str, Value]) -> System:
    """Returns the parts of a read, with usual values for everything that only writes show."""
    device = session.device
    initial_path = flash_reads.path(session, "found", initial)
    path = flash_reads.path(session, state, visible)
    block = device.block_bytes
    row = visible.row_bytes or ROW_USUAL
    number, channels = _dies(session, visible, values)
    interval = visible.interval_ns
    sense = max(1000.0, visible.small_ns - block * path.channel_ns)
    command = max(
        0.0,
        (visible.lone_ns if visible.reads_conflict else path.lone_ns)
        - sense
        - block * (path.channel_ns + path.link_ns),
    )
    if initial.reads_conflict and state == "filled":
        # Unwritten places are sensed with all bits of a cell; places written first may have one.
        sense = max(1000.0, initial.small_ns - block * path.channel_ns)
    if not visible.reads_conflict:
        # Nothing is sensed except the map, or commands are too slow for the flash to be visible.
        sense, command = initial_path.miss_ns or SENSE_USUAL_NS, max(0.0, path.lone_ns - block * path.link_ns)
    at_once = flash_reads.commands_at_once(session, visible)
    _near(values, "controller.command_interval", interval, 0.005, "second of two concurrent reads without a conflict")
    _near(values, "flash.read", sense, 0.01, "second of two concurrent reads of one die")
    _near(values, "controller.command", command, 0.02, "latency of a single read, minus sensing and transfers")
    unit = 4096
    while device.capacity_bytes / unit > 1 << 30:
        unit *= 2
    page = min(row, 16384) if row % min(row, 16384) == 0 else row
    memory = None
    if initial_path.miss_ns and initial_path.miss_share < 0.98:
        memory = max(4096, round((1 - initial_path.miss_share) * device.capacity_bytes / 1024 / 4096) * 4096)
        values["controller.map_cache"] = Value(
            f"{memory * 0.9:.0f}B", f"{memory * 1.1:.0f}B", "share of random reads that read the map first"
        )
    # fmt: off
    drive: Ssd = {
        "name": device.name,
        "capacity": {"logical_bytes": device.capacity_bytes // unit * unit, "logical_block_bytes": block,
                     "mapping_unit_bytes": min(unit, page)},
        "flash": {"channels": channels, "dies_per_channel": number // channels, "planes_per_die": row // page,
                  "blocks_per_plane": 0, "pages_per_block": 0, "page_bytes": page},
        "timing": {"read_ns": round(sense), "program_ns": PROGRAM_USUAL_NS, "erase_ns": 0,
                   "channel_ns_per_byte": path.channel_ns, "suspend_ns": SUSPEND_USUAL_NS,
                   "suspend_spread_ns": 0, "resume_ns": 0,
                   "suspensions_max": 4294967295,
                   "reads_ahead_max": 32},
        "buffer": {"bytes": 4 * number * row, "power_loss_protected": False},
        "collection": {"free_blocks_min": 3},
        "controller": {"command_ns": round(command), "command_interval_ns": round(interval),
                       "write_command_ns": round(command), "write_interval_ns": round(interval),
                       "read_ns_per_byte": path.link_ns, "write_ns_per_byte": path.link_ns},
        "interface": {"read_ns_per_byte": path.link_ns, "write_ns_per_byte": path.link_ns,
                      "full_duplex": path.link_ns < 1.4, "queue_depth": at_once or 1024},
        "state": "fresh" if not initial.reads_conflict else "steady" if initial.dies is None else "filled",
    }
    # fmt: on
    if memory is not None:
        drive["controller"]["map_cache_bytes"] = memory
        map_read_ns = initial_path.miss_ns - 4096 * path.channel_ns
        if map_read_ns < ONE_BIT * sense:
            # The map is in cells with one bit; the size of a cache for writes is another matter.
            drive["slc_cache"] = {
                "static_bytes": 0,
                "dynamic_bytes": 0,
                "bits_per_cell": BITS,
                "idle_ns": None,
                "read_ns": max(5_000, round(map_read_ns)),
                "program_ns": PROGRAM_USUAL_NS // 3,
            }
    if drive["state"] == "steady" and initial.row_bytes in LARGE_UNITS:
        # If no other period is visible, contiguous data form a mapping unit.
        drive["capacity"]["mapping_unit_bytes"] = initial.row_bytes
        drive["capacity"]["logical_bytes"] = device.capacity_bytes // initial.row_bytes * initial.row_bytes
    system: System = {"drive": {"ssd": drive}}
    _give_blocks(drive, 1.12 * device.capacity_bytes)
    return system


def _dies(session: Session, visible: Map, values: dict[str, Value]) -> tuple[int, int]:
    if visible.dies:
        values["flash.dies"] = Value(str(visible.dies), str(visible.dies), "distance of two reads that conflict")
        channels = visible.channels or min(visible.dies, 8)
        while visible.dies % channels:
            channels -= 1
        return visible.dies, channels
    if visible.reads_conflict and visible.share > 0:
        spread = np.sqrt((1 - visible.share) / (visible.share * dies.PAIRS))
        number = 1 / visible.share
        values["flash.dies"] = Value(
            str(int(number * (1 - 1.7 * spread))),
            str(int(number * (1 + 1.7 * spread)) + 1),
            "share of random pairs that conflict",
        )
        number = max(1, round(number / 8) * 8)
        return number, min(number, 8)
    most = max((run.answers.per_s for run in session.runs if run.test.startswith("depth curve, 256")), default=1e5)
    least = int(np.ceil(most * 60e-6))
    values["flash.dies"] = Value(str(least), None, "lower bound: the bus or the controller limits the rate")
    number = 8 * max(1, int(np.ceil(least / 4)))
    return number, 8


def _give_blocks(drive: Ssd, raw_bytes: float) -> None:
    """Sets the flash to this many bytes, in blocks that are small enough, with sufficient spare for the model."""
    flash = drive["flash"]
    line = flash["channels"] * flash["dies_per_channel"] * flash["planes_per_die"] * flash["page_bytes"]
    old = flash["pages_per_block"]
    bits = drive["slc_cache"]["bits_per_cell"] if "slc_cache" in drive else 1
    if not old:
        pages = round(drive["capacity"]["logical_bytes"] / line / BLOCKS / 12) * 12
        flash["pages_per_block"] = old = min(max(12, pages), PAGES_MAX)
        drive["timing"]["erase_ns"] = ERASE_OF_ROW_NS * old
    aside = sum(drive["slc_cache"][part] for part in ("static_bytes",)) * bits if "slc_cache" in drive else 0
    least = (drive["capacity"]["logical_bytes"] + drive["buffer"]["bytes"] + aside) / (line * old) + 9
    flash["blocks_per_plane"] = max(int(np.ceil(least)), round(raw_bytes / (line * old)))


def _from_writes(session: Session, system: System, values: dict[str, Value]) -> None:
    """Fits link, programs, buffer, single-bit cache and spare capacity."""
    drive = ssd(system)
    flash, timing, controller, interface = drive["flash"], drive["timing"], drive["controller"], drive["interface"]
    number = flash["channels"] * flash["dies_per_channel"]
    row = flash["planes_per_die"] * flash["page_bytes"]
    capacity = session.device.capacity_bytes
    lone = (
        controller["command_ns"]
        + timing["read_ns"]
        + 4096 * (timing["channel_ns_per_byte"] + controller["read_ns_per_byte"])
    )
    way = flash_writes.way_in(session, lone, controller["read_ns_per_byte"])
    controller["write_command_ns"] = round(way.command_ns)
    controller["write_interval_ns"] = round(
        way.interval_ns if way.interval_seen else min(way.interval_ns, controller["command_interval_ns"])
    )
    controller["write_ns_per_byte"] = interface["write_ns_per_byte"] = way.byte_ns
    interface["full_duplex"] = way.full_duplex
    if not way.full_duplex:
        interface["read_ns_per_byte"] = interface["write_ns_per_byte"] = way.shared_ns
    _near(values, "controller.write_command", way.command_ns, 0.02, "latency of a single write, minus its transfer")
    drive["capacity"]["mapping_unit_bytes"] = unit = _unit(session, way.interval_ns, row)
    drive["capacity"]["logical_bytes"] = capacity // unit * unit
    if "map_cache_bytes" in controller:
        # The same share of a map with larger units.
        controller["map_cache_bytes"] = max(4096, controller["map_cache_bytes"] * 4096 // unit // 4096 * 4096)

    load = row * timing["channel_ns_per_byte"]
    full, empty = (flash_writes.flush_times(session, name) for name in ("full", "empty"))
    drive["buffer"]["power_loss_protected"] = full is None and empty is None
    if flushes := full or empty:
        drive["buffer"]["map_update_ns"] = round(flushes.map_update_ns)
        drive["buffer"]["flushes_per_map_update"] = flushes.flushes_per_map_update
    met = flash_writes.reads_in_programs(session)
    timing["suspend_ns"] = round(met.waits_ns) if met.suspends else None
    timing["suspend_spread_ns"] = round(met.spread_ns)
    if met.suspends:
        values["flash.suspend"] = Value(
            _ns(max(0.0, met.waits_ns * 0.97 - 0.1 * met.spread_ns)),
            _ns(met.waits_ns * 1.03 + 0.1 * met.spread_ns),
            "reads that wait for programs",
        )
        if met.spread_ns:
            values["flash.suspend_spread"] = Value(
                _ns(met.spread_ns * 0.7), _ns(met.spread_ns * 1.5), "scatter of these waits"
            )
    else:
        how = "reads wait for programs to end" if met.waits_ns else "not identifiable: no read met a program"
        values["flash.suspend"] = Value(None, None, how)
    (fill,) = session.runs_of("fill")
    first = flash_writes.stream(fill, capacity)
    (second,) = session.runs_of("second fill")
    again = flash_writes.stream(second, capacity)

    def program(rate: float) -> float:
        return max(20_000.0, float(number * row / rate - load))

    bound = first.last > 0.9 / max(controller["write_ns_per_byte"], 1e-9)
    usual, how = program(first.behind), "rate of a stream"
    if bound:
        usual, how = PROGRAM_USUAL_NS, "not identifiable: the host link is slower"
    if met.program_ns:
        usual, how = met.program_ns - load, "reads that wait for programs"
    if full:
        usual, how = full.program_ns - load, "flushes of single rows"
    timing["program_ns"] = round(max(20_000.0, usual))
    _near(values, "flash.program", timing["program_ns"], 0.04, how)
    if how.startswith("not"):
        values["flash.program"] = Value(None, None, how)
    (burst,) = session.runs_of("write burst")
    held = write_buffer.knee(burst.answers.completed_ns - burst.answers.issued_ns[0], unit)[0]
    if first.buffer_bytes > row and first.first < 0.9 / max(controller["write_ns_per_byte"], 1e-9):
        # An empty drive has collected nothing ahead, which would also absorb a burst.
        held = max(2 * row + 1, first.buffer_bytes)
    if held > 2 * row:
        drive["buffer"]["bytes"] = max(2 * row, round(held / row) * row)
        values["buffer.size"] = Value(
            f"{held * 0.93:.0f}B", f"{held * 1.07:.0f}B", "bytes of a burst accepted before they were programmed"
        )
    else:
        values["buffer.size"] = Value(None, None, "not identifiable: the flash is as fast as the host link")
    if first.cache_bytes:
        slow = [run.answers.response_ns for run in session.runs_of("latency, random, filled")]
        sense = float(np.quantile(slow[0], 0.02)) if slow else 0.0
        quick = max(5_000.0, timing["read_ns"] - max(0.0, lone - sense))
        # If the second fill after a rest is as fast, space was made for it; if slower, it marks the end of the free
        # blocks.
        miss = flash_reads.path(session, "found", flash_reads.mapping(session, "found")).miss_ns
        if miss:
            # The map is in cells with one bit.
            quick = max(5_000.0, miss - 4096 * timing["channel_ns_per_byte"])
        fixed = min(again.cache_bytes, first.cache_bytes) if again.first > 0.85 * first.first else 0.0
        drive["slc_cache"] = {
            "static_bytes": round(fixed), "dynamic_bytes": round(first.cache_bytes - fixed), "bits_per_cell": BITS,
            "read_ns": round(quick), "program_ns": round(empty.program_ns - load if empty else program(first.first)),
            "idle_ns": 5_000_000_000 if fixed else None,
        }  # fmt: skip
    # The first fill found all blocks erased; the second erases them as it goes.
    erased = number * row / again.last - number * row / first.behind
    per_row = erased if erased > ERASE_SEEN_NS and not bound else None
    flash["pages_per_block"] = rows = _rows_of_block(
        capacity / (number * row), per_row, first.cache_bytes / (number * row)
    )
    timing["erase_ns"] = round(rows * (per_row or ERASE_OF_ROW_NS))
    if per_row:
        values["flash.erase"] = Value(
            f"{rows * per_row * 0.8 / 1e6:.3g}ms",
            f"{rows * per_row * 1.2 / 1e6:.3g}ms",
            "extra time per row in a second fill, for blocks with the usual erase time",
        )
    onset = flash_writes.onset_bytes(session)
    aside: float = drive["slc_cache"]["static_bytes"] * BITS if "slc_cache" in drive else 0
    _give_blocks(drive, capacity * 1.02 + max(aside, onset or 0.1 * capacity))
    _fit_streams(session, system, first, full is None and not met.program_ns and not bound)
    rounds = [run for run in session.runs if run.test.startswith("overwrites, ") and run.test != "overwrites, small"]
    moving = steady_state.phases(rounds)
    if moving is not None:
        # The steady rate is that of neither phase, so it shows no spare capacity.
        how = f"not identifiable: the drive's state changed between writes: {moving.describe()}"
        values["flash.over_provisioning"] = Value(None, None, how)
        return
    _fit_spare(session, system, values)
    if first.cache_bytes:
        _, now = flash_writes.like(session, system, "fill")
        if abs(now.cache_bytes / first.cache_bytes - 1) > SLC_STEP:
            _fit_streams(session, system, first, False)
            _fit_spare(session, system, values)
            _, now = flash_writes.like(session, system, "fill")
        if now.cache_bytes < (1 - 2 * SLC_STEP) * first.cache_bytes:
            # The spare capacity has no room for it, so it is set aside.
            drive["slc_cache"]["static_bytes"] = round(first.cache_bytes)
            drive["slc_cache"]["dynamic_bytes"] = 0
            _give_blocks(drive, capacity * 1.02 + aside + (onset or 0.1 * capacity))
            _fit_streams(session, system, first, False)
            _fit_spare(session, system, values)
            _fit_streams(session, system, first, False)
        cache = first.cache_bytes
        values["slc_cache.dynamic"] = Value(
            f"{cache * 0.97:.0f}B",
            f"{cache * 1.03:.0f}B",
            "bytes after which a fill slowed down, with the static part",
        )


def _rows_of_block(rows: float, erase_of_row_ns: float | None, cached: float) -> int:
    """Returns the rows of a block, for a die with ``rows`` rows, of which ``cached`` hold one bit per cell while they
    are a cache.
    """
    usual = rows / BLOCKS
    if erase_of_row_ns:
        # Erasing takes milliseconds in flash of all generations, regardless of the block length.
        usual = float(np.clip(ERASE_USUAL_NS / erase_of_row_ns, rows / BLOCKS_MOST, rows / BLOCKS_LEAST))
    if not cached:
        return max(12, round(usual / 12) * 12)
    # A cache consists of whole blocks: choose the length near the usual one that fits it best.
    lengths = np.arange(max(1, int(usual / BITS / 1.5)), max(2, int(usual / BITS * 1.5) + 1))
    left = np.abs(np.maximum(1, np.round(cached / lengths)) * lengths / cached - 1)
    fit = lengths[left <= left.min() + SLC_STEP / 3]
    return int(fit[np.argmin(np.abs(np.log(fit * BITS / usual)))]) * BITS


def _unit(session: Session, interval_ns: float, row: int) -> int:
    """Returns the bytes of a mapping unit, from the relative cost of a small write."""
    rounds = [run for run in session.runs if run.test.startswith("overwrites, ") and run.test != "overwrites, small"]
    (steady,) = session.runs_of("steady writes")
    if steady.answers.per_s > 0.9e9 / interval_ns:
        return 4096
    share = steady.answers.per_s * 4096 / (rounds[-1].answers.per_s * float(rounds[-1].requests.lengths[0]))
    power = int(np.clip(round(-np.log2(share)), 0, 2))
    return int(min(4096 << power, row))


def _fit_streams(session: Session, system: System, first: flash_writes.Stream, programs: bool) -> None:
    """Adjusts buffer, cache and programs until the simulated drive fills like the device."""
    drive = ssd(system)
    flash = drive["flash"]
    row = flash["planes_per_die"] * flash["page_bytes"]
    blocks = flash["channels"] * flash["dies_per_channel"] * flash["pages_per_block"]
    for _ in range(FILLS):
        _, now = flash_writes.like(session, system, "fill")
        slower = now.behind / first.behind
        if programs:
            drive["timing"]["program_ns"] = round(drive["timing"]["program_ns"] * slower)
        short = 0
        if "slc_cache" in drive:
            slc = drive["slc_cache"]
            grows: Literal["dynamic_bytes", "static_bytes"]
            grows = "dynamic_bytes" if slc["dynamic_bytes"] else "static_bytes"
            of_each = blocks // BITS * row
            short = round((first.cache_bytes - now.cache_bytes) / of_each)
            slc[grows] = max(1, round(slc[grows] / of_each) + short) * of_each
        if not short and (not programs or abs(slower - 1) < 0.01):
            break
        _give_blocks(drive, flash["blocks_per_plane"] * blocks * row)


def _fit_spare(session: Session, system: System, values: dict[str, Value]) -> None:
    """Chooses the flash above the capacity so that steady overwrites have the measured rate."""
    drive = ssd(system)
    flash = drive["flash"]
    (measured,) = session.runs_of("steady writes")
    warm = min(WARM_MOST, int(WARM_SHARE * session.device.capacity_bytes) // 4096)

    def rate(blocks: float, long_after: bool = False) -> float:
        trial = copy.deepcopy(system)
        ssd(trial)["flash"]["blocks_per_plane"] = round(blocks)
        ssd(trial)["state"] = "steady"
        device, random = SimulatedDevice(trial), np.random.default_rng(session.seed)
        if long_after:
            count = int(LONG_AFTER * device.capacity_bytes) // LONG_PIECE
            places = random.integers(0, device.capacity_bytes // LONG_PIECE, count) * LONG_PIECE
            device.ask(Requests.writes(places, LONG_PIECE, depth=32))
        # Blocks collected ahead are used up first.
        places = random.integers(0, device.capacity_bytes // 4096, warm) * 4096
        device.ask(Requests.writes(places, depth=32))
        return device.ask(measured.requests).per_s

    least, wanted = float(_least_blocks(drive)), measured.answers.per_s
    blocks, tried = _where_zero(lambda x: float(np.log(rate(x) / wanted)), float(flash["blocks_per_plane"]), least, [])
    if "slc_cache" in drive:
        # Blocks with one bit per cell fill with stale data, which takes long to reproduce each time.
        slower = float(np.log(rate(blocks, long_after=True) / wanted)) - dict(tried)[blocks]
        wanted /= float(np.exp(slower))
        tried = [(x, y + slower) for x, y in tried]
        blocks, _ = _where_zero(lambda x: float(np.log(rate(x) / wanted)), blocks, least, tried)
    flash["blocks_per_plane"] = round(blocks)
    share = _spare(drive)
    values["flash.over_provisioning"] = Value(
        f"{share * 0.93:.4f}", f"{share * 1.07:.4f}", "rate of steady-state overwrites, given the other values"
    )


def _where_zero(
    off: Callable[[float], float], blocks: float, least: float, tried: list[tuple[float, float]]
) -> tuple[float, list[tuple[float, float]]]:
    """Returns the number of blocks at which an increasing function is nearest to zero, and all values tried, continuing
    from ``tried``.
    """
    tried = list(tried)
    for _ in range(SPARE_TRIES):
        if round(blocks) not in [round(x) for x, _ in tried]:
            tried.append((blocks, off(blocks)))
        tried.sort()
        nearest = min(tried, key=lambda trial: abs(trial[1]))
        if abs(nearest[1]) < 0.01:
            break
        below = [trial for trial in tried if trial[1] <= 0]
        above = [trial for trial in tried if trial[1] > 0]
        if below and above:
            (x0, y0), (x1, y1) = below[-1], above[0]
            blocks = x0 + (x1 - x0) * min(0.9, max(0.1, -y0 / (y1 - y0)))
        else:
            # Extrapolate: the rate is nearly proportional to the spare.
            x, y = tried[-1] if below else tried[0]
            blocks = max(least, x + (x - 0.97 * least) * (float(np.exp(-1.2 * y)) - 1))
        if round(blocks) in [round(x) for x, _ in tried]:
            break
    return min(tried, key=lambda trial: abs(trial[1]))[0], tried


def _least_blocks(drive: Ssd) -> int:
    trial = copy.deepcopy(drive)
    _give_blocks(trial, 0.0)
    return int(trial["flash"]["blocks_per_plane"])


def _spare(drive: Ssd) -> float:
    flash = drive["flash"]
    row = flash["planes_per_die"] * flash["page_bytes"]
    raw = flash["channels"] * flash["dies_per_channel"] * row * flash["pages_per_block"] * flash["blocks_per_plane"]
    return float(raw / drive["capacity"]["logical_bytes"] - 1)


def _residuals(session: Session, system: System) -> tuple[dict[str, Residual], list[float]]:
    """Returns the residuals of reads in the device's initial state, and the errors of rates."""
    device, residuals, off = SimulatedDevice(system), {}, []
    for run in session.runs:
        if not run.test.endswith(", found") or run.test.startswith("dies"):
            continue
        answers = device.ask(run.requests)
        residuals[run.test] = Residual.of(run.answers.response_ns, answers.response_ns)
        off.append(float(np.log(run.answers.per_s / answers.per_s)))
    return residuals, off


def _spread(session: Session) -> float:
    """Returns the logarithm of the ratio of long to short reads at queue depth 1."""
    took = session.runs_of("latency, random, found")[0].answers.response_ns
    return float(np.log(np.quantile(took, 0.95) / np.quantile(took, 0.05)))


def _too_wide(spread: float) -> str:
    return f"latencies of single reads differ by a factor of {np.exp(spread):.1f}, more than those of flash pages"


def _verdict(session: Session, initial: Map, residuals: Mapping[str, Residual], off: list[float]) -> tuple[bool, str]:
    """Returns whether an SSD explains the answers, and the reason if not."""
    meets = initial.reads_conflict or (_written(session) and flash_reads.mapping(session, "filled").reads_conflict)
    if not meets and initial.interval_ns < INTERVAL_LEAST_NS:
        return False, "concurrent requests never wait for each other, which no SSD achieves"
    rates = float(np.mean(np.abs(off))) if off else 0.0
    if rates > MISFIT:
        return False, f"read IOPS differ from the best SSD model by {rates:.0%} on average"
    medians = float(np.mean([abs(residual.p50) for residual in residuals.values()])) if residuals else 0.0
    if medians > MISFIT:
        return (
            False,
            f"median read latencies differ from the best SSD model by {medians:.0%} on average",
        )
    spread, explained = _spread(session), abs(residuals["latency, random, found"].p99)
    if spread > SPREAD_MOST and explained > SPREAD_MOST / 2:
        return False, _too_wide(spread)
    return True, ""


def _sample(session: Session, system: System, values: dict[str, Value]) -> list[System]:
    """Returns descriptions with values drawn within their confidence."""
    random = np.random.default_rng(session.seed)
    sample = []
    for _ in range(SAMPLES):
        other = copy.deepcopy(system)
        drive = ssd(other)
        timing, controller = drive["timing"], drive["controller"]
        for time, sure in SURE_TIMES:
            timing[time] = max(0, round(timing[time] * float(np.exp(random.normal(0, sure)))))
        for command, sure in SURE_COMMANDS:
            controller[command] = max(0, round(controller[command] * float(np.exp(random.normal(0, sure)))))
        if session.runs_of("steady writes"):
            flash = drive["flash"]
            spare = _spare(drive) * float(np.exp(random.normal(0, 0.03)))
            flash["blocks_per_plane"] = max(
                _least_blocks(drive), round(flash["blocks_per_plane"] * (1 + spare) / (1 + _spare(drive)))
            )
        sample.append(other)
    return sample
