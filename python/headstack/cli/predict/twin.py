"""``headstack twin``: a device measured as a black box, and the description that simulates it."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.system import load_system
from headstack.cli.completing import SYSTEM, Among
from headstack.cli.files import KEPT, OUTPUT, SOURCE, TARGET
from headstack.cli.formats import output_options, report_writers
from headstack.cli.loading import Implied
from headstack.cli.output import Outputs, print_table, say, wide_option
from headstack.cli.targets import access_of, one_thread_options
from headstack.io import signals
from headstack.io.atomic_files import write_all, write_text
from headstack.io.columns import Figures, Names
from headstack.io.tables import written
from headstack.io.values import whole
from headstack.measurement.access import is_null
from headstack.measurement.measurement import is_export
from headstack.results.intervals.conformal import coverage_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headstack.twin.fio_results import Point
    from headstack.twin.learning import Calibration
    from headstack.twin.proof import Proof
    from headstack.twin.published import Published
    from headstack.twin.session import Session
    from headstack.twin.strangers import Stranger

LEAST_SHOWN = 100
"""Of fewer requests, what is left unexplained is chance."""
FAMILIES = ("disk", "flash", "array", "volume")
STRANGERS = "strangers"
MARK_NEAR = 0.05


@click.group(cls=Implied, implied="learn")
def twin() -> None:
    """Measure a device, and write a calibrated model (twin) of it.

    \b
    headstack measure twin /dev/sdb -o sdb.toml
    headstack measure twin /dev/nvme0n1 -o nvme.toml --time 5min
    headstack measure twin /dev/sdb -o sdb.toml --write --destroy sdb
    headstack run sdb.toml -w oltp-8k

    DEVICE is a file, a block device, a live export or a simulated system. headstack reads from it (and writes, if you
    allow it), and fits the description to the measured latencies. Use the description as a SYSTEM in any command.
    """


@twin.command(hidden=True)
@click.argument("device", type=TARGET, metavar="DEVICE", help="File, block device, live export or simulated system.")
@click.option(
    "-o", "--output", type=OUTPUT, metavar="FILE.toml", required=True, help="Write the description to this file."
)
@click.option("--family", metavar="|".join(FAMILIES), type=Among(FAMILIES), help="Kind of device.  [default: detected]")
@click.option(
    "--time", "budget", metavar="TIME", help="Time limit of the measurement, for example 2min; probes get shorter."
)
@click.option("--seed", metavar="N", default="1", show_default=True, help="Random seed of the probes.")
@click.option(
    "--answers",
    type=KEPT,
    metavar="FILE.npz",
    help="File for the measured latencies.  [default: next to the description]",
)
@output_options(plot="Draw the calibration (disks only).")
@click.option("--resume", is_flag=True, help="Resume with the stored measurements of an interrupted run.")
@click.option("--write", is_flag=True, help="Also measure writes; needs --destroy, --overwrite or --create.")
@one_thread_options
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def learn(
    device: str,
    output: str,
    family: str | None,
    budget: str | None,
    seed: str,
    answers: str | None,
    plot_path: str | None,
    resume: bool,
    write: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Measure a device, and write the description that simulates it.

    \b
    headstack measure twin /dev/sdb -o sdb.toml
    headstack measure twin /dev/nvme0n1 -o nvme.toml --time 5min
    headstack measure twin /dev/sdb -o sdb.toml --write --destroy sdb
    """
    needs_numpy()
    from headstack.twin.learning import learn as learn_device  # start-up time
    from headstack.twin.learning import load_answers, save_answers  # start-up time
    from headstack.twin.model_files import render_files  # start-up time

    if not output.endswith(".toml"):
        raise InputError(f"{output}: not a .toml file; choose a name that ends with .toml")
    if family is not None and family not in FAMILIES:
        raise InputError(f"--family: {family!r} is unknown; allowed: {', '.join(FAMILIES)}")
    stem = output.removesuffix(".toml")
    kept = answers or f"{stem}.answers.npz"
    sessions: list[Session] = []
    # A file of another kind is refused, whether it would be read or replaced.
    before = load_answers(kept) if resume or os.path.exists(kept) else []
    recorded = before if resume else []
    try:
        calibration = learn_device(
            opened(device, access_of(given), write),
            [family] if family else [],
            seed=whole("seed", seed),
            budget_s=float("inf") if budget is None else _native.parse_duration_ns(budget) / 1e9,
            recorded=recorded,
            progress=None if quiet else shown(),
            keep=sessions.append,
        )
    except KeyboardInterrupt:
        asked = [one for session in sessions for one in session.runs]
        if asked:
            with signals.held():
                write_all([(kept, partial(save_answers, asked))])
            print(f"headstack: interrupted; measurements are kept in {kept}: add --resume to resume", file=sys.stderr)
        return signals.exit_code()
    folder, name = os.path.split(stem)
    texts = render_files(calibration, name, _native.version())
    files = [(os.path.join(folder, one), partial(Path.write_text, data=text)) for one, text in texts.items()]
    asked = [one for session in sessions for one in session.runs]
    write_all([(kept, partial(save_answers, asked)), *files])
    if plot_path is not None:
        draw(calibration, plot_path)
    print_calibration(calibration)
    say(f"\nwrote {', '.join([*(os.path.join(folder, one) for one in texts), kept])}")
    return 0


def draw(calibration: Calibration, path: str) -> None:
    """Draws a calibration."""
    if calibration.family != "disk":
        raise InputError(f"--plot: draws only disks; this is {calibration.family}")
    from headstack.report import plots  # start-up time
    from headstack.twin import pictures  # start-up time

    plots.save(pictures.of_disk(calibration), path)


def needs_numpy() -> None:
    """Says what is missing, where it is."""
    try:
        import numpy  # noqa: F401  # start-up time
    except ImportError:
        raise InputError("measure twin needs numpy: pip install 'headstack[twin]'") from None


def opened(name: str, access: Any, write: bool) -> Any:
    """The device: real where there is a file or device of the name, else a simulated one in virtual time."""
    from headstack.twin.device import RealDevice, SimulatedDevice  # start-up time

    if is_null(name) and name != "null":
        raise InputError("a null target has no service time; use null:TIME", file=name)
    if is_null(name) or is_export(name) or (os.path.lexists(name) and not name.endswith(".toml")):
        targets = _native.Targets([replace(access, write=write).target_spec(name)])
        return RealDevice(targets, may_write=write)
    if os.path.dirname(name) and not name.endswith(".toml"):
        raise InputError("no such file or device", file=name)
    found = load_system(name)
    return SimulatedDevice(found.system, name=name)


def shown() -> Any:
    """Shows on stderr what is asked, and how long it takes."""
    began, last = time.monotonic(), [""]

    def show(test: str, left_s: float) -> None:
        # Parts of a test have numbers behind its name.
        what = test.partition(",")[0]
        if what != last[0]:
            last[0] = what
            left = f", about {left_s:,.0f} s left on the device" if left_s > 0 else ""
            print(f"headstack: {time.monotonic() - began:5.1f} s  {what}{left}", file=sys.stderr, flush=True)

    return show


def print_calibration(calibration: Calibration) -> None:
    """What was found, and what the description leaves unexplained."""
    learnt, session = calibration.learnt, calibration.session
    rows = [[key, value.low or "", value.high or "", value.how] for key, value in learnt.values.items()]
    print_table([Names("value"), Figures("low"), Figures("high"), Names("found by")], rows)
    print()
    rows = [
        [
            test,
            *(f"{100 * math.expm1(figure):+.1f}" for figure in (one.mean, one.p50, one.p99)),
            f"{one.requests:,}",
        ]
        for test, one in learnt.residuals.items()
        if one.requests >= LEAST_SHOWN
    ]
    figures = [Figures(name) for name in ("mean", "p50", "p99", "requests")]
    print_table([Names("measured vs. model, %"), *figures], rows)
    say(f"\n{calibration.family}: {session.requests:,} requests, {session.device_s:.1f} s on the device")


@twin.command()
@click.option(
    "--family",
    metavar="NAME,...",
    help=f"Kinds of device: {', '.join(FAMILIES)}, or {STRANGERS} (none of these).  [default: disk]",
)
@click.option(
    "--devices",
    metavar="N",
    default="12",
    show_default=True,
    help="Number of hidden devices of each kind; at most 20 for strangers.",
)
@click.option("--seed", metavar="N", default="1", show_default=True, help="Random seed of the hidden devices.")
@click.option(
    "--device",
    type=SOURCE,
    metavar="DEVICE",
    help="Calibrate this device instead, and measure twelve workloads that are not probes, in three rounds.",
)
@click.option("--time", "budget", metavar="TIME", help="With --device: time limit of the calibration.")
@click.option("--write", is_flag=True, help="With --device: also measure writes, if you allow it.")
@one_thread_options
@output_options(json="Write all results as JSON (- for stdout).")
@click.option(
    "--calibration",
    "calibration_path",
    type=OUTPUT,
    metavar="FILE.json",
    help="Write the scores from which prediction intervals of calibrated models are learned.",
)
@output_options(html=None, markdown=None)
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def validate(
    family: str | None,
    devices: str,
    seed: str,
    device: str | None,
    budget: str | None,
    write: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Calibrate models of hidden devices, and print their error.

    \b
    headstack measure twin validate
    headstack measure twin validate --family disk,flash --devices 12 --html twins.html
    headstack measure twin validate --device /dev/sdb --time 5min

    The workloads compared are not among the probes of the calibration.
    """
    needs_numpy()
    access, counted = access_of(given), whole("devices", devices)
    if counted == 0:
        raise InputError("--devices: 0 devices prove nothing; write 1 or more")
    if family == STRANGERS and device is None:
        return validate_strangers(counted, whole("seed", seed), quiet, given)
    from headstack.twin import proof  # start-up time
    from headstack.twin.report import report_of  # start-up time

    if device is not None:
        if any(given.values()):
            raise InputError("--device: prints only a table; remove the options of output files")
        families = [] if family is None else family.split(",")
        budget_s = float("inf") if budget is None else _native.parse_duration_ns(budget) / 1e9
        return validate_device(opened(device, access, write), families, whole("seed", seed), budget_s, quiet)
    family = family or "disk"

    def text(found: Mapping[str, Sequence[Proof]], path: str | None = None) -> str:
        return written(proof.whole_text([one for some in found.values() for one in some]), path)

    def scores(found: Mapping[str, Sequence[Proof]], path: str) -> None:
        written(proof.calibration_text(found), path)

    outputs = Outputs(given, {"json": text, "calibration": scores, **report_writers(report_of)})
    found: dict[str, list[proof.Proof]] = {}
    for name in family.split(","):
        if name not in FAMILIES:
            raise InputError(f"--family: {name!r} is unknown; allowed: {', '.join(FAMILIES)}, or only {STRANGERS}")
        found[name] = []
        for one in proof.proofs(name, counted, whole("seed", seed)):
            found[name].append(one)
            if not quiet:
                miss = "does not fit" if not one.fits else f"IOPS within {100 * max(proof.errors([one], 'rate')):.1f} %"
                print(f"headstack: {one.device}: {miss}", file=sys.stderr, flush=True)
    outputs.write(found, lambda: print_proofs(found))
    return 0


def validate_device(device: Any, families: Sequence[str], seed: int, budget_s: float, quiet: bool) -> int:
    """A real device beside its twin, or what speaks against every family; and how far the device repeats itself."""
    from headstack.twin import rounds  # start-up time
    from headstack.twin.learning import DoesNotFitError  # start-up time
    from headstack.twin.learning import learn as learn_device  # start-up time

    progress = None if quiet else shown()
    calibration, why = None, ""
    try:
        calibration = learn_device(device, families, seed=seed, budget_s=budget_s, progress=progress)
    except DoesNotFitError as error:
        why = str(error)
    workloads = rounds.held_out(device.may_write)
    found = rounds.measure_rounds(device, workloads, seed=seed, progress=progress)
    cells = [] if calibration is None else rounds.compare_rounds(calibration, workloads, found, seed)
    apart = {figure: rounds.repeats(found, figure) for figure in ("mean", "p99")}
    rows = []
    for number, one in enumerate(workloads):
        row = [f"{one.name}, {_native.format_bytes(one.size_bytes)}, depth {one.depth}"]
        for figure in apart:
            middle = sorted(each[number][figure] for each in found)[len(found) // 2]
            own = [cell for cell in cells if cell.workload is one and cell.figure == figure]
            row += [f"{middle / 1e6:.3g}", f"{100 * apart[figure][number]:.1f}"]
            row.append(f"{100 * own[0].error:+.1f}" if own else "")
        rows.append(row)
    of = [Figures("ms"), Figures("between\nrounds %"), Figures("twin\n%")]
    print_table([Names("workload"), Figures("mean\nms"), *of[1:], Figures("p99\nms"), *of[1:]], rows)
    said = ", ".join(f"{figure} {100 * sum(each) / len(each):.1f} %" for figure, each in apart.items())
    say(f"\nmean difference between two rounds of a workload: {said}; load {os.getloadavg()[0]:.1f}")
    if calibration is None:
        say(why)
        return 0
    for figure in apart:
        own = [cell for cell in cells if cell.figure == figure]
        off = [abs(cell.error) for cell in own]
        held = [cell.is_within_interval for cell in own if cell.is_within_interval is not None]
        covered = f"{sum(held)} of {len(held)} within their intervals" if held else f"no interval: {own[0].why}"
        say(f"{calibration.family}, {figure}: mean error {100 * sum(off) / len(off):.1f} %; {covered}")
    return 0


def print_proofs(found: Mapping[str, Sequence[Proof]]) -> None:
    """How far twins were off, and how often their intervals held."""
    from headstack.twin import proof  # start-up time

    rows = []
    for family, some in found.items():
        for figure in ("rate", "mean", "p50", "p99"):
            errors = proof.errors(some, figure)
            if not errors:
                continue
            held = proof.coverage(family, some, figure)
            rows.append(
                [
                    family,
                    figure,
                    f"{100 * sum(errors) / len(errors):.1f}",
                    f"{100 * max(errors):.1f}",
                    "" if held is None else f"{100 * held.share:.0f}",
                    "" if held is None else f"{200 * median(held.half_widths):.1f}",
                ]
            )
    columns = [Names("family"), Names("figure"), Figures("mean\nerror %"), Figures("worst\n%")]
    print_table([*columns, Figures("90 % interval\nholds %"), Figures("interval\nwidth %")], rows)
    for family, some in found.items():
        fits = [one for one in some if one.fits]
        low, high = coverage_bounds(max(1, len(fits)))
        device_s, processor_s = (sum(getattr(one, name) for one in some) for name in ("device_s", "processor_s"))
        requests = sum(one.requests for one in some)
        say(
            f"\n{family}: {len(some)} hidden devices, {len(fits)} of which fit; each took "
            f"{device_s / len(some):.0f} s of device time, {requests / len(some):,.0f} requests and "
            f"{processor_s / len(some):.0f} s of processor time. "
            "Coverage is the mean over devices, each left out of the calibration of its own interval; "
            f"with this many devices, {100 * low:.0f} to {100 * high:.0f} % is consistent with 90 %."
        )
        for mark in dict.fromkeys(mark for one in fits for mark in one.marks):
            say(f"{mark}: {of_marks([one.marks[mark] for one in fits if mark in one.marks])}")
        for one in some:
            if not one.fits:
                say(f"{one.device}: does not fit: {one.why}")


def of_marks(marks: Sequence[tuple[float | None, float | None]]) -> str:
    """How near twins come to what hidden devices have."""
    off = [abs(twin / hidden - 1) for hidden, twin in marks if hidden is not None and twin is not None]
    missed = sum(hidden is not None and twin is None for hidden, twin in marks)
    wrong = sum(hidden is None and twin is not None for hidden, twin in marks)
    return (
        f"{sum(one == 0 for one in off)} of {len(off)} exact, {sum(one <= MARK_NEAR for one in off)} within 5 %, worst "
        f"{100 * max(off, default=0.0):.1f} %; {missed} missed, {wrong} false positives"
    )


def stranger_row(stranger: Stranger) -> dict[str, object]:
    """Returns the JSON row of a stranger."""
    row = asdict(stranger)
    return {"device": row.pop("device"), "what": row.pop("description"), **row}


def validate_strangers(count: int, seed: int, quiet: bool, given: Mapping[str, object]) -> int:
    """Draws devices of no family, and says which were taken for one."""
    from headstack.twin.strangers import strangers  # start-up time

    def text(unknown: Sequence[Stranger], path: str | None = None) -> str:
        return written(json.dumps([stranger_row(stranger) for stranger in unknown]), path)

    for name in ("calibration", "html", "markdown"):
        if given[f"{name}_path"] is not None:
            raise InputError(f"--{name}: not available for {STRANGERS}, which calibrate no interval")
    outputs = Outputs(given, {"json": text})
    found = []
    for one in strangers(count, seed):
        found.append(one)
        if not quiet:
            taken = [f"fits {family}, IOPS within {100 * off:.1f} %" for family, off in one.off.items()]
            verdicts = ", ".join([*taken, *(f"does not fit {family}" for family in one.refused)])
            print(f"headstack: {one.device}: {one.description}: {verdicts}", file=sys.stderr, flush=True)
    outputs.write(found, lambda: print_strangers(found))
    return 0


def print_strangers(found: Sequence[Stranger]) -> None:
    """Which devices were taken for what they are not."""
    rows = [
        [
            stranger.description,
            ", ".join(stranger.refused),
            ", ".join(f"{family}, {100 * off:.1f} %" for family, off in stranger.off.items()),
        ]
        for stranger in found
    ]
    print_table([Names("device"), Names("does not fit"), Names("fits, IOPS within")], rows)
    refused = sum(not one.off for one in found)
    right = sum(bool(one.off) and one.is_predicted_well for one in found)
    say(
        f"\n{len(found)} devices: {refused} fit no wrong kind; {right} fit, held-out IOPS within 3 %; "
        f"{len(found) - refused - right} are mistaken"
    )


@twin.command()
@click.argument("trace", type=SOURCE, metavar="TRACE", help="Trace in the form of DiskSim's validation.")
@click.option(
    "--sheet", type=SYSTEM, metavar="DRIVE", required=True, help="Disk as its data sheet describes it: a system."
)
@click.option(
    "-o", "--output", type=OUTPUT, metavar="FILE.toml", required=True, help="Write the description to this file."
)
@click.option("--seed", metavar="N", default="1", show_default=True, help="Random seed of the search.")
def recording(trace: str, sheet: str, output: str, seed: str) -> int:
    """Calibrate a model of a disk from a trace of single requests.

    \b
    headstack measure twin recording probe.trace --sheet exos-x24-24tb -o mine.toml

    A line of the trace has R or W, a class, the block address, the length in blocks of 512 bytes, and the service and
    think times in microseconds. The model is fitted to the first half; the second half shows its error.
    """
    needs_numpy()
    from headstack.twin import trace_fit  # start-up time
    from headstack.twin.device import SimulatedDevice  # start-up time

    drive = load_system(sheet).system.get("drive", {}).get("disk")
    if drive is None or "points" not in drive["mechanics"]["seek"]:
        raise InputError(f"{sheet}: not a disk with a seek curve of points")
    whole_recording = trace_fit.load_validate(trace)
    first, second = (trace_fit.half(*whole_recording, second=late) for late in (False, True))
    found = trace_fit.learn({"drive": {"disk": drive}}, *first, seed=whole("seed", seed))
    ((kind, description),) = found["drive"].items()
    named = {kind: {**description, "name": f"Twin of {os.path.basename(trace)}"}}
    sources = {"default": f"A calibrated: the first half of {os.path.basename(trace)}, and {sheet}"}
    write_text(output, _native.drive_to_toml(named, sources))
    for name, (requests, answers) in (("learnt from", first), ("held out", second)):
        times = SimulatedDevice(found).ask(requests).response_ns
        off = trace_fit.demerit(answers.response_ns, times)
        say(f"{name}: {len(requests):,} requests, demerit {100 * off:.2f} % of the mean")
    say(f"wrote {output}")
    return 0


@twin.command()
@click.argument(
    "results",
    nargs=-1,
    required=True,
    type=SOURCE,
    metavar="RESULTS...",
    help="fio JSON files, or a table (.csv).",
)
@click.option(
    "--sheet", type=SYSTEM, metavar="DRIVE", required=True, help="Drive as its data sheet describes it: a system."
)
@click.option(
    "-o", "--output", type=OUTPUT, metavar="FILE.toml", required=True, help="Write the description to this file."
)
@click.option("--system", metavar="NAME", help="Drive to read from a table with several drives.")
@click.option(
    "--depths",
    metavar="N,...",
    help="Queue depths to fit, for example 1,32; the others are for validation.  [default: the smallest "
    "and the largest]",
)
@click.option(
    "--host", metavar="HOST", help="Host adapter (HBA) of the drive.  [default: the simplest that explains the results]"
)
@click.option("--seed", metavar="N", default="1", show_default=True, help="Random seed of the search.")
@wide_option
def results(
    results: tuple[str, ...],
    sheet: str,
    output: str,
    system: str | None,
    depths: str | None,
    host: str | None,
    seed: str,
) -> int:
    """Calibrate a model of a drive from published fio results.

    \b
    headstack measure twin results fio.json --sheet 7450-pro-7680gb -o mine.toml
    headstack measure twin results results.csv --system exos --sheet exos-x24-24tb -o mine.toml

    RESULTS are fio JSON files (--output-format=json) or a table of results (.csv): random reads and writes of one job
    at several queue depths. The model is fitted to two depths; the others show its error.
    """
    needs_numpy()
    from headstack.twin import fio_results, published  # start-up time

    drive = load_system(sheet).system.get("drive", {})
    disk = drive.get("disk")
    if not ("ssd" in drive or (disk is not None and "points" in disk["mechanics"]["seek"])):
        raise InputError(f"{sheet}: neither an SSD nor a disk with a seek curve of points")
    if host is not None and host not in _native.HOSTS:
        raise InputError(f"--host: {host!r} is unknown; allowed: {', '.join(_native.HOSTS)}")
    points = fio_results.load(results, system)
    known = [point for point in points if point.depth in learnt_depths(points, depths)]
    # An adapter that saves interrupts is the one that leaves its mark on results at few depths.
    hosts = (host,) if host else ("direct", "p420i-hba") if "ssd" in drive else ("direct",)
    found = published.learn(
        {one: published.on_host({"drive": drive}, one) for one in hosts}, known, whole("seed", seed)
    )
    ((kind, description),) = found.system["drive"].items()
    whose = system or os.path.basename(results[0])
    named = {kind: {**description, "name": f"Twin of {whose}"}}
    learnt_at = ", ".join(str(depth) for depth in sorted({point.depth for point in known}))
    sources = {"default": f"A calibrated: fio's results of {whose} at depths {learnt_at}, and {sheet}"}
    write_text(output, _native.drive_to_toml(named, sources))
    print_results(found, points, known)
    say(f"\nwrote {output}")
    return 0


def learnt_depths(points: Sequence[Point], stated: str | None) -> set[int]:
    """The depths that are learnt from; those at which both reads and writes were measured, if writes were."""
    if stated is not None:
        wanted = {whole("depths", one) for one in stated.split(",")}
        missing = sorted(wanted - {point.depth for point in points})
        if missing:
            raise InputError(f"--depths: no results at {', '.join(map(str, missing))}")
        return wanted
    # 32 commands are what a SATA drive takes; deeper queues wait in the host.
    of_drive = [point.depth for point in points if point.depth <= 32] or [point.depth for point in points]
    return {min(of_drive), max(of_drive)}


def print_results(found: Published, points: Sequence[Point], known: Sequence[Point]) -> None:
    """Measured beside described, with what was held out, and how far off that is."""
    from headstack.twin import published  # start-up time

    rows: list[list[str]] = []
    off: list[list[float]] = []
    for point in points:
        model = published.simulated(found.system, point.kind, point.depth, point.size_bytes, 2)
        rate, p99 = (math.expm1(float(one)) for one in (model.logarithms - point.logarithms)[[0, 3]])
        between = found.between(point.kind, point.depth)
        foretold = math.expm1(math.log1p(p99) + between.p99) if between is not None else None
        rows.append(
            [
                point.name,
                f"{point.rate:,.0f}" if point.rate >= 1000 else f"{point.rate:.1f}",
                f"{100 * rate:+.1f}",
                f"{1e3 * point.p99_s:,.3g}",
                f"{100 * p99:+.1f}",
                "" if foretold is None or point in known else f"{100 * foretold:+.1f}",
                "learnt from" if point in known else "held out",
            ]
        )
        if point not in known and foretold is not None:
            off.append([abs(rate), abs(p99), abs(foretold)])
    columns = [Names("random"), Figures("IOPS"), Figures("model\n%"), Figures("p99\nms"), Figures("model\n%")]
    print_table([*columns, Figures("after\nresidual %"), Names("")], rows)
    stalls = [point.name for point in points if point.stalls]
    if stalls:
        say(f"\nthe device stalled for ten seconds or more (not counted in IOPS): {', '.join(stalls)}")
    say(f"\nhost: {found.host}")
    if off:
        rate, p99, foretold = (100 * sum(each) / len(off) for each in zip(*off, strict=True))
        said = f"IOPS {rate:.1f} %, p99 {p99:.1f} %, {foretold:.1f} % with the residuals of the neighbouring depths"
        say(f"mean error of the {len(off)} held-out depths: {said}")
