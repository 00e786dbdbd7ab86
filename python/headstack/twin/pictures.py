"""Pictures of a calibration: rotational phases, the seek curve with its points, distributions, and residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from headstack.report.plots import COLOURS, FAINT, STYLE
from headstack.twin.device import Floats, SimulatedDevice
from headstack.twin.learning import Calibration
from headstack.twin.probes import queue, rotation, seeks, tracks, zones

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headstack.twin.probes.rotation import Rotation

LEAST = 100
"""Minimum number of requests of a test: fewer do not determine a 99th percentile."""
LARGEST = 20.0
"""Residuals above this logarithm of ratios are not drawn: no axis could show them with others."""


def of_disk(calibration: Calibration) -> Figure:
    """Draws six pictures of a disk's calibration, from the first probe to the residuals."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(14, 7.6), layout="constrained")
        axes = figure.subplots(2, 3)
        turn = rotation.learn(calibration.session) if calibration.session.runs_of(rotation.TEST) else None
        _phases(axes[0, 0], calibration, turn)
        _seeks(axes[0, 1], calibration, turn)
        _distributions(axes[0, 2], calibration)
        _firmware(axes[1, 0], calibration)
        _draw_agreement(axes[1, 1], calibration)
        _residuals(axes[1, 2], calibration)
        return figure


def _draw_message(axes: Axes, words: str) -> None:
    """Draws a message in place of a picture without data."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=FAINT)


def _phases(axes: Axes, calibration: Calibration, turn: Rotation | None) -> None:
    """Draws the rotational phase of each place in the second pass over that in the first: one line if the period is
    right.
    """
    if turn is None:
        return _draw_message(axes, "no rotation was measured")
    (run,) = calibration.session.runs_of(rotation.TEST)
    phase = run.answers.completed_ns / turn.period_ns % 1
    order = np.argsort(run.requests.offsets, kind="stable")
    first, second = phase[order][::2], phase[order][1::2]
    axes.plot(first, second, ".", color=COLOURS[0], markersize=3)
    axes.set_xlabel("rotational phase, first read (turns)")
    axes.set_ylabel("second read (turns)")
    axes.set_title(f"{turn.rpm:,.2f} rpm, ±{1e6 * turn.sd_ns / turn.period_ns:.2f} ppm", loc="left")


def _seeks(axes: Axes, calibration: Calibration, turn: Rotation | None) -> None:
    """Draws responses over distance, and the description's curve with the band of the sample."""
    tests = calibration.session.runs_of(seeks.TEST)
    if turn is None or not tests or not calibration.session.runs_of(zones.TEST):
        return _draw_message(axes, "no seeks were measured")
    (run,) = tests
    rates = zones.learn(calibration.session)
    capacity = calibration.session.device.capacity_bytes
    distances_of_disk = seeks.Distances(tracks.learn(calibration.session, rates, turn).count(capacity))
    indexes = seeks.distances_of(run.requests, distances_of_disk, rates, capacity)
    distances = distances_of_disk.shares
    axes.plot(
        distances[indexes[indexes >= 0]], run.answers.response_ns[indexes >= 0] / 1e6, ".", color=FAINT, markersize=2.5
    )
    curves = []
    for system in [calibration.learnt.best, *calibration.learnt.sample]:
        disk = system["drive"]["disk"]
        points = np.array(disk["mechanics"]["seek"]["points"], float)
        sums = np.interp(distances * points[-1, 0], points[:, 0], points[:, 1])
        curves.append((sums + disk["overheads"]["read_miss_ns"]["after_read"]) / 1e6)
    if len(curves) > 1:
        low, high = np.quantile(curves[1:], [0.05, 0.95], axis=0)
        axes.fill_between(distances, low, high, color=COLOURS[1], alpha=0.3, linewidth=0)
    axes.plot(distances, curves[0], color=COLOURS[1])
    axes.plot(distances, curves[0] + turn.period_ns / 1e6, color=COLOURS[1], linestyle=":")
    axes.set_xscale("log")
    axes.set_xlabel("seek distance (share of the full stroke)")
    axes.set_ylabel("latency (ms)")
    axes.set_title("Seek curve, and one revolution more (dotted)", loc="left")


def _distributions(axes: Axes, calibration: Calibration) -> None:
    """Draws for each depth the measured distribution, and that of the description."""
    random = np.random.default_rng(calibration.session.seed)
    tests = {depth: calibration.session.runs_of(queue.name(depth)) for depth in queue.DEPTHS}
    if not all(tests.values()):
        return _draw_message(axes, "no queue was measured")
    for colour, (depth, (run,)) in zip(COLOURS, tests.items(), strict=False):
        measured = np.sort(run.answers.response_ns) / 1e6
        axes.plot(measured, np.linspace(0, 1, len(measured)), color=colour, label=f"depth {depth}")
        device = SimulatedDevice(calibration.learnt.best, 3)
        drawn = queue.reads(device.capacity_bytes, 4096, depth, 4000)(random)
        described = np.sort(device.ask(drawn).response_ns) / 1e6
        axes.plot(described, np.linspace(0, 1, len(described)), color="#222222", linestyle=":", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("latency (ms)")
    axes.set_ylabel("share of random reads")
    axes.legend(frameon=False)
    axes.set_title("Queued random reads; the model is dotted", loc="left")


def _firmware(axes: Axes, calibration: Calibration) -> None:
    """Draws committed commands and margin of the queue's firmware: the best description, and equally likely others."""
    queues = [system["drive"]["disk"]["queue"] for system in (calibration.learnt.best, *calibration.learnt.sample)]
    plan = np.array([queue["committed"] for queue in queues])
    margin = np.array([queue["rotation_margin_ns"] for queue in queues]) / 1e6
    axes.plot(plan[1:], margin[1:], "o", color=COLOURS[1], alpha=0.5, markersize=5, label="equally likely")
    axes.plot(plan[:1], margin[:1], "x", color="#222222", markersize=9, markeredgewidth=2, label="best")
    # Differences of 0.1 commands do not matter.
    for limits, values, least in ((axes.set_xlim, plan, 0.5), (axes.set_ylim, margin, 0.2)):
        middle, half = (values.max() + values.min()) / 2, max(least, 0.7 * (values.max() - values.min()))
        limits(middle - half, middle + half)
    axes.set_xlabel("committed commands")
    axes.set_ylabel("rotation margin (ms)")
    axes.legend(frameon=False)
    axes.set_title("Firmware queue and its uncertainty", loc="left")


def _draw_agreement(axes: Axes, calibration: Calibration) -> None:
    """Draws mean and p99 of every test, described over measured: on the diagonal if they agree."""
    tests = [name for name, residual in calibration.learnt.residuals.items() if residual.requests >= LEAST]
    ends: list[float] = []
    for figure, statistic, colour in (("mean", np.mean, COLOURS[0]), ("p99", _p99, COLOURS[1])):
        measured = [
            float(statistic(np.concatenate([run.answers.response_ns for run in calibration.session.runs_of(test)])))
            / 1e6
            for test in tests
            if calibration.session.runs_of(test)
        ]
        left = [
            getattr(calibration.learnt.residuals[test], figure) for test in tests if calibration.session.runs_of(test)
        ]
        described = np.array(measured) / np.exp(left)
        axes.plot(measured, described, "o", color=colour, markersize=5, alpha=0.8, label=figure)
        ends += [end for end in (*measured, *described.tolist()) if 0 < end < np.inf]
    if not ends:
        return _draw_message(axes, f"no test of {LEAST} requests or more was measured")
    line = [0.7 * min(ends), 1.4 * max(ends)]
    axes.plot(line, line, color=FAINT, linewidth=0.8, zorder=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("measured (ms)")
    axes.set_ylabel("model (ms)")
    axes.legend(frameon=False)
    axes.set_title("Model and measurement of every test", loc="left")


def _p99(times: Floats) -> float:
    return float(np.quantile(times, 0.99))


def _residuals(axes: Axes, calibration: Calibration) -> None:
    """Draws the residuals, test by test."""
    residuals = {
        name: residual for name, residual in calibration.learnt.residuals.items() if residual.requests >= LEAST
    }
    names = list(residuals)
    if not names:
        return _draw_message(axes, f"no test of {LEAST} requests or more was measured")
    at = np.arange(len(names))
    for offset, figure, colour in ((-0.2, "mean", COLOURS[0]), (0.2, "p99", COLOURS[1])):
        values = [_percent(getattr(residuals[name], figure)) for name in names]
        axes.barh(at + offset, values, 0.36, color=colour, label=figure)
    axes.set_yticks(at, names, fontsize=7)
    axes.invert_yaxis()
    axes.axvline(0, color=FAINT, linewidth=0.8)
    axes.set_xlabel("measured / model - 1 (%)")
    axes.legend(frameon=False)
    axes.set_title("Residuals", loc="left")


def _percent(log_ratio: float) -> float:
    """Returns a residual in percent; NaN, which is not drawn, if a test has none."""
    return 100 * float(np.expm1(log_ratio)) if abs(log_ratio) <= LARGEST else float("nan")
