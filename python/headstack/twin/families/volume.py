"""Calibrated models of cloud volumes: limits with their token buckets, the accounting of requests, and latencies."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from headstack.twin.device import READ, WRITE, Floats, SimulatedDevice
from headstack.twin.hidden import HeldOut
from headstack.twin.learnt import Learnt, Residual, System, Value
from headstack.twin.probes import limits
from headstack.twin.session import OutOfTimeError, Session
from headstack.twin.volume_types import Accounting, Burst, Counts, Latency, Limit, Of, Volume

__all__ = ["HELD_OUT", "draw", "learn", "marks", "probes"]

NOT_WRITTEN: Final = "not identifiable: nothing was written"
LONE: Final = 3000
UNITS: Final = (None, *(1 << power for power in range(13, 21)))
"""Candidate sizes that count as one request."""
MERGED_USUAL: Final = 1 << 18
"""The size of Amazon's volumes on flash."""
LIMIT_RATIO_MIN: Final = 1.2
"""Minimum ratio between two limits if only one is visible."""
REFILL_S: Final = 3600.0
BOUND: Final = 0.03
"""A rate this close to the bound by depth and latency is not due to a limit."""
KOLMOGOROV: Final = 0.05
"""Distance of two distributions with 3,000 samples each: 0.044 in 1 % of pairs from the same distribution."""
MISFIT: Final = 0.10
SPREAD_LEAST: Final = 0.02
SAMPLES: Final = 20

HELD_OUT: Final = (
    HeldOut("reads alone", "read", 1, 8192, 3000),
    HeldOut("reads", "read", 4, 8192, 6000),
    HeldOut("reads", "read", 16, 4096, 12000),
    HeldOut("reads", "read", 64, 8192, 20000),
    HeldOut("long reads", "read", 16, 65536, 6000),
    HeldOut("long reads", "read", 4, 1 << 19, 3000),
    HeldOut("mix", "mix", 16, 8192, 12000, reads=0.7),
    HeldOut("mix", "mix", 2, 4096, 6000, reads=0.8),
    HeldOut("writes", "write", 16, 16384, 12000, reads=0.0),
    HeldOut("reads without credits", "read", 48, 8192, 12000, settled=True),
    HeldOut("mix without credits", "mix", 24, 16384, 12000, reads=0.5, settled=True),
)
"""Workloads that no probe runs."""


def draw(random: np.random.Generator) -> System:
    """Draws a volume: limits of requests and bytes, with or without bursts, and latencies from those of a local device
    to those of a disk.
    """

    def between(low: float, high: float) -> float:
        return float(np.exp(random.uniform(np.log(low), np.log(high))))

    rate = between(100, 60_000)

    def limit(counts: Counts, per_s: float, of: Of, bursts: float) -> Limit:
        base = round(per_s)
        burst: Burst | None = None
        if random.random() < bursts:
            high, base = (
                (round(per_s * between(1.15, 12)), base)
                if counts == "requests"
                else (base, round(base / between(1.15, 12)))
            )
            lasts = min(between(20, 1500), 4e6 / (rate * high / base))
            burst = {"per_s": high, "credits": max(1, round((high - base) * lasts))}
        return {"counts": counts, "of": of, "per_s": base, "burst": burst}

    floor = between(1e5, 3e6)
    median = floor * random.uniform(1.2, 3.0)
    latency: Latency = {
        "floor_ns": round(floor),
        "median_ns": round(median),
        "p99_ns": round(median * random.uniform(1.5, 6.0)),
    }
    ways: tuple[Of, ...] = ("both",) if random.random() < 0.8 else ("reads", "writes")
    unit = (None, 16384, 262144, 262144)[random.integers(4)]
    # Some request size must reach it, otherwise it has no effect.
    bytes_per_s = rate * between(6 << 10, 0.6 * min(unit or 1 << 18, 1 << 18))
    volume: Volume = {
        "name": "hidden",
        "capacity_bytes": int(between(30, 2000)) << 30,
        "block_bytes": 512,
        "accounting": {
            "unit_bytes": unit,
            "merges": bool(random.random() < 0.5),
            "whole_units": False,
        },
        "limits": [limit("requests", rate, way, 0.5) for way in ways] + [limit("bytes", bytes_per_s, "both", 0.3)],
        "read": latency,
        "write": {
            "floor_ns": round(latency["floor_ns"] * 1.1),
            "median_ns": round(latency["median_ns"] * 1.1),
            "p99_ns": round(latency["p99_ns"] * 1.1),
        },
        "queue_depth": 1024,
    }
    return {"drive": {"volume": volume}}


def marks(hidden: System, learnt: Learnt) -> dict[str, tuple[float | None, float | None]]:
    """Returns rates, bursts and credits of every limit."""

    def limits_by_key(system: System) -> dict[tuple[str, str], Limit]:
        return {(limit["counts"], limit["of"]): limit for limit in system["drive"]["volume"]["limits"]}

    figures: dict[str, tuple[float | None, float | None]] = {}
    twin = limits_by_key(learnt.best)
    for (counts, of), limit in limits_by_key(hidden).items():
        other = twin.get((counts, of))
        burst, others = limit["burst"], None if other is None else other["burst"]
        name = counts if of == "both" else f"{counts} of {of}"
        figures[f"{name} a second"] = (limit["per_s"], None if other is None else other["per_s"])
        figures[f"{name} a second in bursts"] = (
            None if burst is None else burst["per_s"],
            None if others is None else others["per_s"],
        )
        figures[f"{name} of credit"] = (
            None if burst is None else burst["credits"],
            None if others is None else others["credits"],
        )
    return figures


def probes(session: Session) -> None:
    """Runs the probes of a volume, with writes if permitted."""
    try:
        limits.lone(session, READ, LONE)
        if not _plausible(session):
            return
        if session.device.may_write:
            limits.lone(session, WRITE, LONE)
        # One block per request: bytes are the last limit reached.
        limits.saturate(session, "saturated, small", session.device.block_bytes)
        if session.device.may_write:
            limits.probe_both(session)
            if len(_of(session)) > 1:
                limits.saturate(session, "saturated, writes", session.device.block_bytes, WRITE)
        _refill(session)
        limits.probe_sizes(session, _saturated(session, "saturated, small").before)
        # Waits until the bytes' bucket has refilled.
        session.rest(min(REFILL_S, limits.refill_s(session), 0.25 * session.left_s))
        limits.saturate(session, "saturated, large", _large(session))
    except OutOfTimeError:
        # Learning needs the rates of small requests and of at least one larger size.
        if not session.runs_of("saturated, small") or not session.runs_of(f"sizes, {limits.SIZES[0]}"):
            raise


def _large(session: Session) -> int:
    """Returns the request size at which only bytes are a limit, even if the requests' credits are spent."""
    small = _saturated(session, "saturated, small")
    rates = limits.sweep(session)
    unit = _unit(rates, small.before, limits.unlimited_per_s(session))
    top = max(size * rate for size, rate in rates.items())
    room = {size: small.after * size / _counted(size, unit) for size in rates}
    enough = [size for size in rates if room[size] > LIMIT_RATIO_MIN * top]
    return min(enough) if enough else max(room, key=lambda size: (room[size], -size))


def _counted(size: int, unit: int | None) -> int:
    """Returns the number of requests that a request of this size counts as."""
    return -(-size // unit) if unit else 1


def _refill(session: Session) -> None:
    """Leaves a device with an empty bucket idle until it is full again, or for an hour."""
    small = _saturated(session, "saturated, small")
    if small.at_s:
        session.rest(min(REFILL_S, small.credits / small.after, 0.25 * session.left_s))


@dataclass(frozen=True)
class Saturated:
    """The result of a saturation test, in requests."""

    before: float
    """Rate per second until a bucket was empty, including the time between parts."""
    after: float
    at_s: float
    """Time at which the bucket was empty; 0 if none emptied."""
    burst: float
    """Rate per second at full queue depth, before the bucket was empty."""
    credits: float


def _saturated(session: Session, test: str) -> Saturated:
    answers = [run.answers for run in session.runs_of(test)]
    before, after, at_s = limits.knee(*limits.begins(answers))
    burst = limits.burst_per_s(answers, at_s) or before
    return Saturated(before, after, at_s, burst, (before - after) * at_s)


def _alone(session: Session, kind: str) -> Floats:
    return np.concatenate([run.answers.response_ns for run in session.runs_of(f"alone, {kind}")])


def latency(took: Floats) -> Latency:
    """Returns floor, median and 99th percentile of response times that are log-normal above a floor, which is chosen
    for the straightest quantile plot of the logarithm."""
    shares = np.linspace(0.005, 0.995, 199)
    times, normal = np.quantile(took, shares), _normal(shares)
    best = (np.inf, 0.0)
    for part in np.linspace(0.0, 0.998, 250):
        floor = part * float(took.min())
        y = np.log(times - floor)
        slope, base = np.polyfit(normal, y, 1)
        best = min(best, (float(np.mean((y - slope * normal - base) ** 2) / slope**2), floor))
    floor = best[1]
    slope, base = np.polyfit(normal, np.log(times - floor), 1)
    median, p99 = (floor + float(np.exp(base + slope * at)) for at in (0.0, 2.3263))
    whole = round(floor), round(max(median, floor + 1)), round(max(p99, median + 2))
    return {"floor_ns": whole[0], "median_ns": whole[1], "p99_ns": whole[2]}


def _normal(shares: Floats) -> Floats:
    """Returns quantiles of the normal distribution, from a table of its integral."""
    x = np.linspace(-5, 5, 20_001)
    density = np.exp(-x * x / 2)
    integral = np.cumsum(density) / density.sum()
    return np.interp(shares, integral, x)


def _plausible(session: Session) -> bool:
    """Whether response times at queue depth 1 vary, and no more than a log-normal distribution's."""
    return not _unlike(session)


def _unlike(session: Session) -> str:
    took = _alone(session, "reads")
    low, high = np.quantile(took, (0.05, 0.95))
    if np.log(high / low) < SPREAD_LEAST:
        return "single reads all take the same time, unlike reads over a network"
    drawn = latency(took)
    sigma = np.log((drawn["p99_ns"] - drawn["floor_ns"]) / (drawn["median_ns"] - drawn["floor_ns"])) / 2.3263
    z = np.log(np.maximum(took - drawn["floor_ns"], 1) / (drawn["median_ns"] - drawn["floor_ns"])) / max(sigma, 1e-9)
    shares = np.linspace(0.01, 0.99, 99)
    away = float(np.abs(np.searchsorted(np.sort(z), _normal(shares)) / len(z) - shares).max())
    return f"latencies of single reads differ from a log-normal distribution by {away:.0%}" if away > KOLMOGOROV else ""


def learn(session: Session) -> Learnt:
    """Returns the description that explains the answers, with the confidence of its values."""
    if not session.runs_of("saturated, small"):
        is_probed = bool(session.runs_of("alone, reads"))
        why = _unlike(session) if is_probed else ""
        return Learnt(
            {}, {}, [], fits=False, why=why or "the time ended before the limits were measured; use a longer --time"
        )
    values: dict[str, Value] = {}
    reads = latency(_alone(session, "reads"))
    writes = latency(_alone(session, "writes")) if session.runs_of("alone, writes") else reads
    for kind, drawn in (("read", reads), ("write", writes)):
        written = kind == "read" or writes is not reads
        for part, ns, near in (
            ("floor", drawn["floor_ns"], 0.05),
            ("median", drawn["median_ns"], 0.02),
            ("p99", drawn["p99_ns"], 0.06),
        ):
            low, high = (f"{ns * (1 + way) / 1000:.6g}us" for way in (-near, near))
            value = Value(low, high, "requests at long intervals") if written else Value(None, None, NOT_WRITTEN)
            values[f"volume.{kind}.{part}"] = value
    accounting, found_limits = _limits(session, values)
    volume: Volume = {
        "name": session.device.name,
        "capacity_bytes": session.device.capacity_bytes,
        "block_bytes": session.device.block_bytes,
        "accounting": accounting,
        "limits": found_limits,
        "read": reads,
        "write": writes,
        "queue_depth": 1024,
    }
    system: System = {"drive": {"volume": volume}}
    residuals, off = _residuals(session, system)
    why = ""
    if not found_limits:
        why = f"no limit found up to queue depth {limits.DEPTH}"
    elif float(np.mean(np.abs(off))) > MISFIT:
        why = (
            f"rates and medians differ from the best model by {np.mean(np.abs(off)):.0%} on average: no constant limits"
        )
    return Learnt(system, values, _sample(session, system), residuals, not why, why)


def _limits(session: Session, values: dict[str, Value]) -> tuple[Accounting, list[Limit]]:
    """Returns accounting and limits."""
    small = _saturated(session, "saturated, small")
    most = limits.unlimited_per_s(session)
    sizes = limits.sweep(session)
    unit = _unit(sizes, small.before, most)
    (in_order,) = session.runs_of("in order")
    pace = limits.pace(in_order.answers)
    merges = pace > 1.3 * small.before
    if merges:
        unit = unit or _merged(sizes, pace, small.before, most, session.device.block_bytes)
    fitted: list[Limit] = []
    if small.after < (1 - BOUND) * most:
        for way in _of(session):
            written = way == "writes" and bool(session.runs_of("saturated, writes"))
            knee = _saturated(session, "saturated, writes") if written else small
            bound = limits.unlimited_per_s(session, WRITE if written else READ)
            fitted.append(_limit("requests", knee, way, 1.0, bound, values))
    if session.runs_of("saturated, large"):
        size = int(session.runs_of("saturated, large")[0].requests.lengths[0])
        large = _saturated(session, "saturated, large")
        counted = _counted(size, unit)
        if large.at_s and abs(large.after * counted / small.after - 1) < BOUND:
            # The requests' bucket became empty there.
            large = replace(large, after=large.before, at_s=0.0)
        if large.at_s:
            large = replace(large, credits=_begun_with(session, large, size))
        if large.after < (1 - BOUND) * min(most, small.before / counted):
            fitted.append(_limit("bytes", large, "both", float(size), most, values))
    if not fitted:
        values["volume.limits"] = Value(
            None, None, "not identifiable: latency limits the rate at the largest queue depth"
        )
    return {"unit_bytes": unit, "merges": bool(merges), "whole_units": False}, fitted


def _begun_with(session: Session, large: Saturated, size: int) -> float:
    """Returns the credits of the bytes' bucket, in requests of ``size``: those left by earlier tests and those refilled
    lasted until the knee."""
    lasted, base = large.credits * size, large.after * size

    def left(credits: float) -> float:
        level = credits
        for run in session.runs:
            level = min(credits, level + base * run.rested_s)
            if run.test == "saturated, large":
                break
            taken = float(run.requests.lengths.sum())
            level = float(np.clip(level + base * run.answers.seconds - taken, 0, credits))
        return level

    least, most = lasted, lasted + sum(float(run.requests.lengths.sum()) for run in session.runs)
    while most - least > 1e-4 * lasted:
        middle = (least + most) / 2
        least, most = (least, middle) if left(middle) >= lasted else (middle, most)
    return most / size


def _limit(counts: Counts, saturated: Saturated, of: Of, each: float, most: float, values: dict[str, Value]) -> Limit:
    """Returns a limit from a saturation by requests that count as ``each``; ``most`` is the bound by depth and
    latency."""
    key = f"volume.limits.{counts}"
    burst: Burst | None = None

    def within(value: float, near: float) -> tuple[str, str]:
        return f"{value * each * (1 - near):.6g}", f"{value * each * (1 + near):.6g}"

    values[f"{key}.per_s"] = Value(*within(saturated.after, 0.005), "rate at saturation")
    if saturated.at_s > 0:
        burst = {
            "per_s": max(round(saturated.burst * each), round(saturated.after * each)),
            "credits": max(1, round(saturated.credits * each)),
        }
        low, high = within(saturated.burst, 0.005)
        hidden = saturated.before > (1 - BOUND) * most
        values[f"{key}.burst_per_s"] = (
            Value(low, None, "lower bound: queue depth and latency limit the rate")
            if hidden
            else Value(low, high, "rate at saturation after idle time")
        )
        values[f"{key}.credits"] = Value(*within(saturated.credits, 0.01), "time at which the burst ended")
    else:
        values[f"{key}.credits"] = Value(None, None, f"no burst ended within {limits.LONGEST_S:g} s")
    return {"counts": counts, "of": of, "per_s": max(1, round(saturated.after * each)), "burst": burst}


def _unit(sizes: dict[int, float], rate: float, most: float) -> int | None:
    """Returns the size that counts as one request, from the rates of all sizes with a full bucket."""
    top_bytes = max(size * rate_at_size for size, rate_at_size in sizes.items())

    def off(unit: int | None) -> float:
        error = 0.0
        for size, measured in sizes.items():
            counted = _counted(size, unit)
            error += abs(float(np.log(measured / min(rate / counted, top_bytes / size, most))))
        return error

    # If several explain it equally well, no size was counted as several requests.
    return min(UNITS, key=lambda unit: (round(off(unit), 1), unit is not None, -(unit or 0)))


def _merged(sizes: dict[int, float], pace: float, rate: float, most: float, block: int) -> int:
    """Returns the size up to which sequential requests are merged: from their rate, or the usual size if another limit
    bounds it."""
    bound = min(most, max(size * rate_at_size for size, rate_at_size in sizes.items()) / block)

    def off(unit: int) -> tuple[float, float]:
        expected = min(bound, rate * unit / block)
        return round(abs(float(np.log(pace / expected))), 1), abs(float(np.log(unit / MERGED_USUAL)))

    return min((unit for unit in UNITS if unit is not None), key=off)


def _of(session: Session) -> tuple[Of, ...]:
    """Returns whether reads and writes share a limit or have one each."""
    rate = _saturated(session, "saturated, small").after
    if all(run.answers.per_s < 1.4 * rate for run in session.runs_of("half of each")):
        return ("both",)
    return ("reads", "writes")


def _residuals(session: Session, system: System) -> tuple[dict[str, Residual], list[float]]:
    """Returns the residuals of the description, test by test; for repeated tests of the first and the last."""
    device, residuals, off = SimulatedDevice(system), {}, []
    for run in session.runs:
        device.rest(run.rested_s)
        answers = device.ask(run.requests)
        residuals[run.test] = Residual.of(run.answers.response_ns, answers.response_ns)
        off += [float(np.log(run.answers.per_s / answers.per_s)), residuals[run.test].p50]
    return residuals, off


def _sample(session: Session, system: System) -> list[System]:
    """Returns descriptions that differ from the best one by the sampling errors of its values."""
    random, sample = np.random.default_rng(session.seed), []
    for _ in range(SAMPLES):
        other = copy.deepcopy(system)
        volume = other["drive"]["volume"]
        for kind in ("read", "write"):
            took = volume[kind]
            floor = took["floor_ns"]
            above = (took["median_ns"] - floor) * float(np.exp(random.normal(0, 0.012)))
            tail = (took["p99_ns"] - floor) / (took["median_ns"] - floor) * float(np.exp(random.normal(0, 0.03)))
            took["median_ns"] = max(floor + 1, round(floor + above))
            took["p99_ns"] = max(took["median_ns"] + 1, round(floor + above * tail))
        for limit in volume["limits"]:
            factor = float(np.exp(random.normal(0, 0.001)))
            limit["per_s"] = max(1, round(limit["per_s"] * factor))
            if limit["burst"]:
                limit["burst"]["per_s"] = max(limit["per_s"], round(limit["burst"]["per_s"] * factor))
        sample.append(other)
    return sample
