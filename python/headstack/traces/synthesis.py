"""Synthetic traces: different requests that have the effect of an original trace on a system. The result is a trace or
an endless scenario, with a scorecard of the similarity. See docs/design/synthesis.md."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from headstack import _native
from headstack._native import InputError
from headstack.io.atomic_files import opened_pipe, write_text
from headstack.io.values import duration_ns, number, whole
from headstack.simulation.runs import run
from headstack.traces.analysed import cache_size
from headstack.traces.analysis import Analysis
from headstack.traces.replays import NOTHING_SET, replay_simulated, specify
from headstack.traces.replays import replays_of as replays_on
from headstack.traces.trace_scenario import clients_of, scenario_of, span_bytes_of
from headstack.traces.traces import Progress, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headstack.report.figures import Report
from headstack.traces.scored import Scored
from headstack.traces.synthesis_types import (
    Dispersion,
    Length,
    Made,
    Misses,
    Pair,
    Replayed,
    Scorecard,
    SynthesisOptions,
)

SYSTEMS = ("exos-7e8-8tb", "pm9a3-7680gb", "nearline-12-raid6")
"""Systems on which both traces are replayed: an HDD, an SSD and an array."""

PLAYED_ON = ((7_680_000_000_000, "pm9a3-7680gb"), (80_000_000_000_000, "nearline-12-raid6"))
"""Systems for the scorecard of a scenario, by the maximum number of bytes that it addresses. Open arrivals do not
depend on the system."""

CLIENTS: tuple[Literal["learnt_clients", "clients"], ...] = ("learnt_clients", "clients")
"""Keys for the clients of the original and the synthetic trace."""

REPLAYED_MAX = 200_000
"""Maximum number of requests replayed from each trace."""

SHORTEST_NS, LONGEST_NS = 10_000_000, 100_000_000_000
"""Range of bin lengths in which dispersion is compared."""


class Synthesis(Scored):
    """The model of a synthetic trace, and its scorecard."""

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draws miss ratios and dispersion of both traces, and writes them if a path is given. Needs the extra
        ``headstack[plot]``.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> twin = hs.synthesize("t.parquet", "twin.parquet")
        >>> _ = twin.plot("twin.png")
        """
        from headstack.report.plots import save  # start-up time
        from headstack.traces.synthesis_picture import overview  # start-up time

        figure = overview(self)
        if path is not None:
            save(figure, path)
        return figure

    def to_report(self) -> Report:
        """Returns the scorecard as a report, which notebooks show.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> twin = hs.synthesize("t.parquet", "twin.parquet")
        >>> type(twin.to_report()).__name__
        'Report'
        """
        from headstack.traces.synthesis_report import report_of  # start-up time

        return report_of(self)


def synthesize(
    trace: Trace | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    length: str = "1x",
    rate: str | float = "1x",
    footprint: str | float = "1x",
    clients: int | None = None,
    seed: int = 1,
    scorecard: bool = True,
    progress: Progress | None = None,
) -> Synthesis:
    """Writes a synthetic trace of ``trace`` to ``path`` in the stored form, and compares both traces.

    ``length`` is a multiple of the trace's requests (``"10x"``), a time (``"10min"``) or a number of requests. ``rate``
    and ``footprint`` multiply the values of the trace; ``footprint`` is at least 1. ``clients`` makes the synthetic
    trace a closed loop with this number of clients; a closed loop stays a closed loop. Equal arguments give equal
    files. Without ``scorecard`` no trace is analysed or replayed. ``progress`` is called with the number of requests
    read and written.

    >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
    >>> twin = hs.synthesize("t.parquet", "twin.parquet", length="2x", scorecard=False)
    >>> twin.made["requests"]
    600
    """
    traced = trace if isinstance(trace, Trace) else Trace(trace)
    options: SynthesisOptions = {
        "length": length_of(length),
        "rate": times_of("rate", str(rate)),
        "footprint": times_of("footprint", str(footprint)),
        "clients": clients,
        "seed": seed,
    }
    with opened_pipe(path) as place:
        made = cast(Made, _native.trace_synthesize(traced.source, place, options, progress))
    card = compare_traces(traced, Trace(path), made, options["footprint"], progress) if scorecard else None
    return Synthesis(traced.name, made, options, card, cannot_keep(options, made))


def cannot_keep(options: SynthesisOptions, made: Made) -> tuple[str, ...]:
    """Returns the properties that the method cannot reproduce, in words."""
    words = [
        "order: bursts, and requests within the gaps of a burst, are reordered; a read that followed its write by more "
        "than a few requests may precede it"
    ]
    if options["rate"] != 1 and made["clients"] is not None:
        words.append("rate: a closed loop has no rate, so its clients and its device were made faster")
    if options["clients"] not in (None, made["learnt_clients"]):
        words.append("latency: it was recorded with the trace's own number of clients")
    if options["footprint"] > 1:
        words.append(
            "locality: a larger footprint consists of interleaved copies; a burst has its original length but accesses "
            "several copies, and trends of more than 16,384 requests, such as a day's, take longer by that factor"
        )
    return tuple(words)


def synthesize_scenario(
    trace: Trace | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    scorecard: bool = True,
    progress: Progress | None = None,
) -> Synthesis:
    """Writes an endless scenario that has the effect of ``trace`` on a system to ``path``, runs it, and compares both.

    >>> _ = hs.run("cheetah-x15-36lp", "file-server", rate="60/s", requests=300, warm_up=0, record="t.parquet")
    >>> twin = hs.synthesize_scenario("t.parquet", "t.toml", scorecard=False)
    >>> twin.made["learnt_requests"]
    300
    """
    traced = trace if isinstance(trace, Trace) else Trace(trace)
    analysis = traced.analyze(progress=progress)
    text, clients = scenario_of(analysis), clients_of(analysis.report)
    made: Made = {
        "learnt_requests": analysis.report["requests"],
        "learnt_clients": clients,
        "clients": clients,
        "requests": None,
        "duration_ns": None,
    }
    card = None
    if scorecard:
        with tempfile.TemporaryDirectory() as room:
            card = score_scenario(traced, analysis, text, Path(room), made)
    write_text(path, text)
    words = [
        "kinds of bursts: each burst has the sizes, reads and positions of the whole trace",
        "short-term re-use and sequential runs: each request is drawn independently",
    ]
    if len(analysis.report["devices"]) > 1:
        words.append("devices: they are concatenated and busy at the same time, so replays are not compared")
    if clients is not None:
        words.append("rate, bursts and queue depth: a closed loop is as fast as the system it runs on")
    return Synthesis(traced.name, made, {}, card, tuple(words))


def score_scenario(trace: Trace, analysis: Analysis, text: str, room: Path, made: Made) -> Scorecard:
    """Returns the scorecard of a scenario, which is run for as many requests as the trace has."""
    scenario, recording = room / "scenario.toml", room / "played.parquet"
    write_text(scenario, text)
    span_bytes = span_bytes_of(analysis.report)
    system = next((name for most, name in PLAYED_ON if span_bytes <= most), None)
    if system is None:
        raise InputError(
            f"{trace.name}: its address range of {span_bytes} bytes is larger than every system of the scorecard"
        )
    run(system, str(scenario), record=recording)
    twin = Trace(recording)
    like = twin.analyze()
    made["requests"], made["duration_ns"] = like.report["requests"], like.report["duration_ns"]
    is_open, is_one = made["clients"] is None, len(analysis.report["devices"]) == 1
    return {
        "requests_per_s": {"trace": analysis.report["requests_per_s"], "twin": like.report["requests_per_s"]},
        "in_flight": None,
        "misses": misses_of(analysis, like, 1.0),
        "dispersion": dispersion_of(analysis, like) if is_open else [],
        "replays": replays_of(trace, twin, analysis, made) if is_one else [],
    }


def length_of(text: str) -> Length:
    """Parses a length (``10x``, ``10min`` or ``1000000``) into the form of the compiled module."""
    if text.endswith("x"):
        return {"times": times_of("length", text)}
    if text.replace("_", "").isdigit():
        return {"requests": whole("length", text)}
    return {"ns": duration_ns("length", text)}


def times_of(name: str, text: str) -> float:
    """Parses a multiple, with or without its ``x``."""
    return number(name, text.removesuffix("x"))


def compare_traces(
    trace: Trace, twin: Trace, made: Made, footprint: float, progress: Progress | None = None
) -> Scorecard:
    """Compares cache misses, dispersion of counts, queue depth and replayed latency of both traces. Caches of the
    synthetic trace are ``footprint`` times as large."""
    original, synthetic = trace.analyze(progress=progress), twin.analyze(progress=progress)
    depth, depth_of_twin = original.report["depth"], synthetic.report["depth"]
    in_flight: Pair | None = None
    if depth is not None and depth_of_twin is not None:
        in_flight = {"trace": depth["mean"], "twin": depth_of_twin["mean"]}
    return {
        "requests_per_s": {"trace": original.report["requests_per_s"], "twin": synthetic.report["requests_per_s"]},
        "in_flight": in_flight,
        "misses": misses_of(original, synthetic, footprint),
        "dispersion": dispersion_of(original, synthetic),
        "replays": replays_of(trace, twin, original, made),
    }


def misses_of(original: Analysis, synthetic: Analysis, footprint: float) -> Misses | None:
    """Compares miss ratios of LRU caches of every size below the trace's working set. Caches of the synthetic trace are
    ``footprint`` times as large. A longer synthetic trace re-uses blocks that the original touches once, so caches that
    hold everything are not compared."""
    reuse = original.report["reuse"]
    if reuse is None or not reuse["references"]:
        return None
    sizes = [cache_size(point) for point in reuse["lru_curve"] if point["cache"] < reuse["distinct"]]
    trace = [original.miss_ratio(size) for size in sizes]
    twin = [synthetic.miss_ratio(round(size * footprint)) for size in sizes]
    errors = [abs(ratio - twin_ratio) for ratio, twin_ratio in zip(trace, twin, strict=True)] or [0.0]
    return {
        "cache_bytes": sizes,
        "trace": trace,
        "twin": twin,
        "max_error": max(errors),
        "mean_error": sum(errors) / len(errors),
    }


def dispersion_of(original: Analysis, synthetic: Analysis) -> list[Dispersion]:
    """Compares the dispersion (variance over mean) of counts in bins of each length that both traces have."""
    twin = {scale["bin_ns"]: scale["index_of_dispersion"] for scale in synthetic.report["arrivals"]["scales"]}
    return [
        {"bin_ns": scale["bin_ns"], "trace": scale["index_of_dispersion"], "twin": twin[scale["bin_ns"]]}
        for scale in original.report["arrivals"]["scales"]
        if SHORTEST_NS <= scale["bin_ns"] <= LONGEST_NS and scale["bin_ns"] in twin and scale["index_of_dispersion"] > 0
    ]


def replays_of(trace: Trace, twin: Trace, original: Analysis, made: Made) -> list[Replayed]:
    """Replays both traces on each system. Of several devices, only the busiest is replayed; closed loops keep their
    clients."""
    requests = {
        device["name"]: sum(amount["requests"] for amount in device["operations"].values())
        for device in original.report["devices"]
    }
    busiest = max(requests, key=lambda name: requests[name])
    if "," in busiest and len(requests) > 1:
        raise InputError(f"{original.name}: the device `{busiest}` has a comma in its name, which steps do not support")
    steps = ["unknown=read", "kind=read,write,trim,flush"]
    # Devices of a synthetic trace have numbers as names, in the order of the devices of the original.
    number = [device["name"] for device in original.meta["devices"]].index(busiest)
    of_twin = [f"device=device {number}", *steps] if len(requests) > 1 else steps
    steps = [f"device={busiest}", *steps] if len(requests) > 1 else steps
    both = (trace.with_steps(*steps), twin.with_steps(*of_twin))
    return [replayed_on(system, busiest, *both, made) for system in SYSTEMS]


def replayed_on(system: str, device: str, trace: Trace, twin: Trace, made: Made) -> Replayed:
    """Compares latencies of both traces on one system."""
    mode, mode_of_twin = ("timed" if made[key] is None else "closed" for key in CLIENTS)
    (mean_ms, p99_ms), (mean_ms_of_twin, p99_ms_of_twin) = (
        response_times(system, trace, mode),
        response_times(system, twin, mode_of_twin),
    )
    return {
        "system": system,
        "device": device,
        "trace_mode": mode,
        "trace_mean_ms": mean_ms,
        "trace_p99_ms": p99_ms,
        "twin_mode": mode_of_twin,
        "twin_mean_ms": mean_ms_of_twin,
        "twin_p99_ms": p99_ms_of_twin,
    }


def response_times(system: str, trace: Trace, mode: str) -> tuple[float | None, float | None]:
    """Returns mean and 99th percentile of the response times of a replay, in ms."""
    replays = replays_on(trace, [mode], {**NOTHING_SET, "outside": "fold", "requests": REPLAYED_MAX})
    row = replay_simulated(specify(trace, [system], replays, {}), {})[0][0]
    return row["mean_ms"], row["p99_ms"]
