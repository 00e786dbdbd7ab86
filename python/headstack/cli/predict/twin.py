"""``headstack twin``: measures a device as a black box and fits a description that simulates it."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
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
"""Minimum number of requests of a printed test; residuals from fewer requests are mostly noise."""
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
    **options: Any,
) -> int:
    """Measure a device, and write the description that simulates it.

    \b
    headstack measure twin /dev/sdb -o sdb.toml
    headstack measure twin /dev/nvme0n1 -o nvme.toml --time 5min
    headstack measure twin /dev/sdb -o sdb.toml --write --destroy sdb
    """
    require_numpy()
    from headstack.twin.learning import learn as learn_device  # start-up time
    from headstack.twin.learning import load_answers, save_answers  # start-up time
    from headstack.twin.model_files import render_files  # start-up time

    if not output.endswith(".toml"):
        raise InputError(f"{output}: not a .toml file; choose a name that ends with .toml")
    if family is not None and family not in FAMILIES:
        raise InputError(f"--family: {family!r} is unknown; allowed: {', '.join(FAMILIES)}")
    stem = output.removesuffix(".toml")
    answers_path = answers or f"{stem}.answers.npz"
    sessions: list[Session] = []
    # Refuse a file of another kind before reading or replacing it.
    stored = load_answers(answers_path) if resume or os.path.exists(answers_path) else []
    recorded = stored if resume else []
    try:
        calibration = learn_device(
            open_device(device, access_of(options), write),
            [family] if family else [],
            seed=whole("seed", seed),
            budget_s=float("inf") if budget is None else _native.parse_duration_ns(budget) / 1e9,
            recorded=recorded,
            progress=None if quiet else progress_printer(),
            keep=sessions.append,
        )
    except KeyboardInterrupt:
        answered = [answer for session in sessions for answer in session.runs]
        if answered:
            with signals.held():
                write_all([(answers_path, partial(save_answers, answered))])
            print(
                f"headstack: interrupted; measurements are kept in {answers_path}: add --resume to resume",
                file=sys.stderr,
            )
        return signals.exit_code()
    folder, name = os.path.split(stem)
    texts = render_files(calibration, name, _native.version())
    files = [(os.path.join(folder, file), partial(Path.write_text, data=text)) for file, text in texts.items()]
    answered = [answer for session in sessions for answer in session.runs]
    write_all([(answers_path, partial(save_answers, answered)), *files])
    if plot_path is not None:
        draw_calibration(calibration, plot_path)
    print_calibration(calibration)
    say(f"\nwrote {', '.join([*(os.path.join(folder, file) for file in texts), answers_path])}")
    return 0


def draw_calibration(calibration: Calibration, path: str) -> None:
    """Draws a calibration."""
    if calibration.family != "disk":
        raise InputError(f"--plot: draws only disks; this is {calibration.family}")
    from headstack.report import plots  # start-up time
    from headstack.twin import pictures  # start-up time

    plots.save(pictures.of_disk(calibration), path)


def require_numpy() -> None:
    """Raises ``InputError`` if numpy is not installed."""
    try:
        import numpy  # noqa: F401  # start-up time
    except ImportError:
        raise InputError("measure twin needs numpy: pip install 'headstack[twin]'") from None


def open_device(name: str, access: Any, write: bool) -> Any:
    """Opens a real device if a file or device has this name, otherwise a simulated device in virtual time."""
    from headstack.twin.device import RealDevice, SimulatedDevice  # start-up time

    if is_null(name) and name != "null":
        raise InputError("a null target has no service time; use null:TIME", file=name)
    if is_null(name) or is_export(name) or (os.path.lexists(name) and not name.endswith(".toml")):
        targets = _native.Targets([replace(access, write=write).target_spec(name)])
        return RealDevice(targets, may_write=write)
    if os.path.dirname(name) and not name.endswith(".toml"):
        raise InputError("no such file or device", file=name)
    return SimulatedDevice(load_system(name).system, name=name)


def progress_printer() -> Any:
    """Returns a function that prints each test and the elapsed time on stderr."""
    began, last = time.monotonic(), [""]

    def show(test: str, left_s: float) -> None:
        # Parts of a test have a number after its name.
        probe = test.partition(",")[0]
        if probe != last[0]:
            last[0] = probe
            left = f", about {left_s:,.0f} s left on the device" if left_s > 0 else ""
            print(f"headstack: {time.monotonic() - began:5.1f} s  {probe}{left}", file=sys.stderr, flush=True)

    return show


def print_calibration(calibration: Calibration) -> None:
    """Prints the fitted values and the residuals of the description."""
    learnt, session = calibration.learnt, calibration.session
    rows = [[key, value.low or "", value.high or "", value.how] for key, value in learnt.values.items()]
    print_table([Names("value"), Figures("low"), Figures("high"), Names("found by")], rows)
    print()
    rows = [
        [
            test,
            *(f"{100 * math.expm1(figure):+.1f}" for figure in (residual.mean, residual.p50, residual.p99)),
            f"{residual.requests:,}",
        ]
        for test, residual in learnt.residuals.items()
        if residual.requests >= LEAST_SHOWN
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
    **options: Any,
) -> int:
    """Calibrate models of hidden devices, and print their error.

    \b
    headstack measure twin validate
    headstack measure twin validate --family disk,flash --devices 12 --html twins.html
    headstack measure twin validate --device /dev/sdb --time 5min

    The workloads compared are not among the probes of the calibration.
    """
    require_numpy()
    access, count = access_of(options), whole("devices", devices)
    if count == 0:
        raise InputError("--devices: 0 is out of range; must be 1 or more")
    if family == STRANGERS and device is None:
        return validate_strangers(count, whole("seed", seed), quiet, options)
    from headstack.twin import proof  # start-up time
    from headstack.twin.report import report_of  # start-up time

    if device is not None:
        if any(options.values()):
            raise InputError("--device: prints only a table; remove the options for output files")
        families = [] if family is None else family.split(",")
        budget_s = float("inf") if budget is None else _native.parse_duration_ns(budget) / 1e9
        return validate_device(open_device(device, access, write), families, whole("seed", seed), budget_s, quiet)
    family = family or "disk"

    def write_json(proofs: Mapping[str, Sequence[Proof]], path: str | None = None) -> str:
        return written(proof.whole_text(list(chain.from_iterable(proofs.values()))), path)

    def write_scores(proofs: Mapping[str, Sequence[Proof]], path: str) -> None:
        written(proof.calibration_text(proofs), path)

    outputs = Outputs(options, {"json": write_json, "calibration": write_scores, **report_writers(report_of)})
    proofs: dict[str, list[proof.Proof]] = {}
    for name in family.split(","):
        if name not in FAMILIES:
            raise InputError(f"--family: {name!r} is unknown; allowed: {', '.join(FAMILIES)}, or only {STRANGERS}")
        proofs[name] = []
        for result in proof.proofs(name, count, whole("seed", seed)):
            proofs[name].append(result)
            if not quiet:
                iops_error = max(proof.errors([result], "rate"), default=0.0)
                outcome = f"IOPS within {100 * iops_error:.1f} %" if result.fits else "does not fit"
                print(f"headstack: {result.device}: {outcome}", file=sys.stderr, flush=True)
    outputs.write(proofs, lambda: print_proofs(proofs))
    return 0


def validate_device(device: Any, families: Sequence[str], seed: int, budget_s: float, quiet: bool) -> int:
    """Compares a real device with its calibrated model, and prints its repeatability.

    If no family fits, prints the reasons instead of a comparison.
    """
    from headstack.twin import rounds  # start-up time
    from headstack.twin.learning import DoesNotFitError  # start-up time
    from headstack.twin.learning import learn as learn_device  # start-up time

    progress = None if quiet else progress_printer()
    calibration, rejection = None, ""
    try:
        calibration = learn_device(device, families, seed=seed, budget_s=budget_s, progress=progress)
    except DoesNotFitError as error:
        rejection = str(error)
    workloads = rounds.held_out(device.may_write)
    is_flash = calibration is not None and calibration.family == "flash"
    measured = rounds.measure_rounds(device, workloads, seed=seed, progress=progress, anchored=is_flash)
    latencies_ns = measured.rounds
    cells = [] if calibration is None else rounds.compare_rounds(calibration, workloads, measured, seed)
    repeat_errors = {figure: rounds.repeats(latencies_ns, figure) for figure in ("mean", "p99")}
    rows = []
    for number, workload in enumerate(workloads):
        row = [f"{workload.name}, {_native.format_bytes(workload.size_bytes)}, depth {workload.depth}"]
        for figure in repeat_errors:
            median_ns = sorted(each[number][figure] for each in latencies_ns)[len(latencies_ns) // 2]
            model_cells = [cell for cell in cells if cell.workload is workload and cell.figure == figure]
            row += [f"{median_ns / 1e6:.3g}", f"{100 * repeat_errors[figure][number]:.1f}"]
            row.append(f"{100 * model_cells[0].error:+.1f}" if model_cells else "")
        rows.append(row)
    columns = [Figures("ms"), Figures("between\nrounds %"), Figures("twin\n%")]
    print_table([Names("workload"), Figures("mean\nms"), *columns[1:], Figures("p99\nms"), *columns[1:]], rows)
    repeatability = ", ".join(f"{figure} {100 * sum(each) / len(each):.1f} %" for figure, each in repeat_errors.items())
    say(f"\nmean difference between two rounds of a workload: {repeatability}; load {os.getloadavg()[0]:.1f}")
    if calibration is None:
        say(rejection)
        return 0
    if measured.moved:
        say(f"writes are not compared: {measured.moved}")
    for figure in repeat_errors:
        model_cells = [cell for cell in cells if cell.figure == figure]
        errors = [abs(cell.error) for cell in model_cells if not (measured.moved and cell.workload.kind != "read")]
        within_interval = [cell.is_within_interval for cell in model_cells if cell.is_within_interval is not None]
        covered = (
            f"{sum(within_interval)} of {len(within_interval)} within their intervals"
            if within_interval
            else f"no interval: {model_cells[0].why}"
        )
        say(f"{calibration.family}, {figure}: mean error {100 * sum(errors) / len(errors):.1f} %; {covered}")
    return 0


def print_proofs(proofs: Mapping[str, Sequence[Proof]]) -> None:
    """Prints the error of calibrated models and the coverage of their intervals."""
    from headstack.twin import proof  # start-up time

    rows = []
    for family, family_proofs in proofs.items():
        for figure in ("rate", "mean", "p50", "p99"):
            errors = proof.errors(family_proofs, figure)
            if not errors:
                continue
            coverage = proof.coverage(family, family_proofs, figure)
            rows.append(
                [
                    family,
                    figure,
                    f"{100 * sum(errors) / len(errors):.1f}",
                    f"{100 * max(errors):.1f}",
                    "" if coverage is None else f"{100 * coverage.share:.0f}",
                    "" if coverage is None else f"{200 * median(coverage.half_widths):.1f}",
                ]
            )
    columns = [Names("family"), Names("figure"), Figures("mean\nerror %"), Figures("worst\n%")]
    print_table([*columns, Figures("90 % interval\nholds %"), Figures("interval\nwidth %")], rows)
    for family, family_proofs in proofs.items():
        fitting = [result for result in family_proofs if result.fits]
        low, high = coverage_bounds(max(1, len(fitting)))
        device_s, processor_s = (
            sum(getattr(result, name) for result in family_proofs) for name in ("device_s", "processor_s")
        )
        requests = sum(result.requests for result in family_proofs)
        say(
            f"\n{family}: {len(family_proofs)} hidden devices, {len(fitting)} fit; each took "
            f"{device_s / len(family_proofs):.0f} s of device time, {requests / len(family_proofs):,.0f} requests and "
            f"{processor_s / len(family_proofs):.0f} s of processor time. "
            "Coverage is the mean over devices, each left out of the calibration of its own interval; "
            f"with this many devices, {100 * low:.0f} to {100 * high:.0f} % is consistent with 90 %."
        )
        for mark in dict.fromkeys(mark for result in fitting for mark in result.marks):
            pairs = [result.marks[mark] for result in fitting if mark in result.marks]
            say(f"{mark}: {format_mark_errors(pairs)}")
        for result in family_proofs:
            if not result.fits:
                say(f"{result.device}: does not fit: {result.why}")


def format_mark_errors(marks: Sequence[tuple[float | None, float | None]]) -> str:
    """Formats the error of calibrated values compared with those of hidden devices."""
    errors = [abs(twin / hidden - 1) for hidden, twin in marks if hidden is not None and twin is not None]
    missed = sum(hidden is not None and twin is None for hidden, twin in marks)
    wrong = sum(hidden is None and twin is not None for hidden, twin in marks)
    return (
        f"{sum(error == 0 for error in errors)} of {len(errors)} exact, "
        f"{sum(error <= MARK_NEAR for error in errors)} within 5 %, worst "
        f"{100 * max(errors, default=0.0):.1f} %; {missed} missed, {wrong} false positives"
    )


def stranger_row(stranger: Stranger) -> dict[str, object]:
    """Returns the JSON row of a stranger."""
    row = asdict(stranger)
    return {"device": row.pop("device"), "what": row.pop("description"), **row}


def validate_strangers(count: int, seed: int, quiet: bool, options: Mapping[str, object]) -> int:
    """Measures devices that belong to no family, and reports the devices that a family fits."""
    from headstack.twin.strangers import strangers  # start-up time

    def write_json(devices: Sequence[Stranger], path: str | None = None) -> str:
        return written(json.dumps([stranger_row(device) for device in devices]), path)

    for name in ("calibration", "html", "markdown"):
        if options[f"{name}_path"] is not None:
            raise InputError(f"--{name}: not available for {STRANGERS}, which calibrate no interval")
    outputs = Outputs(options, {"json": write_json})
    strangers_seen = []
    for stranger in strangers(count, seed):
        strangers_seen.append(stranger)
        if not quiet:
            fits = [f"fits {family}, IOPS within {100 * error:.1f} %" for family, error in stranger.off.items()]
            verdicts = ", ".join([*fits, *(f"does not fit {family}" for family in stranger.refused)])
            print(f"headstack: {stranger.device}: {stranger.description}: {verdicts}", file=sys.stderr, flush=True)
    outputs.write(strangers_seen, lambda: print_strangers(strangers_seen))
    return 0


def print_strangers(devices: Sequence[Stranger]) -> None:
    """Prints the families that fit each device, and counts mistaken fits."""
    rows = [
        [
            device.description,
            ", ".join(device.refused),
            ", ".join(f"{family}, {100 * error:.1f} %" for family, error in device.off.items()),
        ]
        for device in devices
    ]
    print_table([Names("device"), Names("does not fit"), Names("fits, IOPS within")], rows)
    refused = sum(not device.off for device in devices)
    right = sum(bool(device.off) and device.is_predicted_well for device in devices)
    say(
        f"\n{len(devices)} devices: {refused} fit no wrong kind; {right} fit, held-out IOPS within 3 %; "
        f"{len(devices) - refused - right} are mistaken"
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
    require_numpy()
    from headstack.twin import trace_fit  # start-up time
    from headstack.twin.device import SimulatedDevice  # start-up time

    drive = load_system(sheet).system.get("drive", {}).get("disk")
    if drive is None or "points" not in drive["mechanics"]["seek"]:
        raise InputError(f"{sheet}: not a disk with a seek curve of points")
    whole_recording = trace_fit.load_validate(trace)
    first, second = (trace_fit.half(*whole_recording, second=is_second) for is_second in (False, True))
    fitted = trace_fit.learn({"drive": {"disk": drive}}, *first, seed=whole("seed", seed))
    ((kind, description),) = fitted["drive"].items()
    renamed = {kind: {**description, "name": f"Twin of {os.path.basename(trace)}"}}
    sources = {"default": f"A calibrated: the first half of {os.path.basename(trace)}, and {sheet}"}
    write_text(output, _native.drive_to_toml(renamed, sources))
    for name, (requests, answers) in (("learnt from", first), ("held out", second)):
        times = SimulatedDevice(fitted).ask(requests).response_ns
        error = trace_fit.demerit(answers.response_ns, times)
        say(f"{name}: {len(requests):,} requests, demerit {100 * error:.2f} % of the mean")
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
    require_numpy()
    from headstack.twin import cell_checks, fio_results, published  # start-up time

    drive = load_system(sheet).system.get("drive", {})
    disk = drive.get("disk")
    if not ("ssd" in drive or (disk is not None and "points" in disk["mechanics"]["seek"])):
        raise InputError(f"{sheet}: neither an SSD nor a disk with a seek curve of points")
    if host is not None and host not in _native.HOSTS:
        raise InputError(f"--host: {host!r} is unknown; allowed: {', '.join(_native.HOSTS)}")
    points = fio_results.load(results, system)
    runs = fio_results.load_all(results, system) if "ssd" in drive else []
    dependent = [cell for cell in cell_checks.dependent_reads(runs) if cell.point in points]
    changes = [change for change in cell_checks.state_changes(runs) if change.point in points]
    instead = {cell.point.depth: cell.instead for cell in dependent}
    points = [instead.get(point.depth, point) if point.kind == "read" else point for point in points]
    changed = [change.point for change in changes]
    fitted_points = points_to_fit(points, changed, depths)
    # With few depths, results can reveal only an adapter that coalesces interrupts.
    hosts = (host,) if host else ("direct", "p420i-hba") if "ssd" in drive else ("direct",)
    fit = published.learn(
        {adapter: published.on_host({"drive": drive}, adapter) for adapter in hosts}, fitted_points, whole("seed", seed)
    )
    ((kind, description),) = fit.system["drive"].items()
    source = system or os.path.basename(results[0])
    renamed = {kind: {**description, "name": f"Twin of {source}"}}
    depths_text = ", ".join(str(depth) for depth in sorted({point.outstanding for point in fitted_points}))
    sources = {"default": f"A calibrated: fio's results of {source} at depths {depths_text}, and {sheet}"}
    write_text(output, _native.drive_to_toml(renamed, sources))
    print_results(fit, points, fitted_points, changed)
    for text in [*(cell.describe() for cell in dependent), *(change.describe() for change in changes)]:
        say(f"not used: {text}")
    if changed and not any(point.kind == "write" for point in fitted_points):
        say(f"writes are not calibrated and have the values of {sheet}: no write at a fitted depth is left")
    say(f"\nwrote {output}")
    return 0


def points_to_fit(points: Sequence[Point], changed: Sequence[Point], stated: str | None) -> list[Point]:
    """Returns the points at the queue depths to fit; for one that was measured in another state of the drive, the next
    smaller depth that was not."""
    depths, chosen = fitted_depths(points, stated), []
    for kind in ("read", "write"):
        usable = [point for point in points if point.kind == kind and point not in changed]
        for depth in sorted(depths):
            if any(point.kind == kind and point.outstanding == depth for point in points):
                below = [point for point in usable if point.outstanding <= depth and point not in chosen]
                chosen += below[-1:] if below else []
    return chosen


def fitted_depths(points: Sequence[Point], stated: str | None) -> set[int]:
    """Returns the queue depths to fit: the given depths, otherwise the smallest and the largest that the drive can
    queue."""
    if stated is not None:
        wanted = {whole("depths", text) for text in stated.split(",")}
        missing = sorted(wanted - {point.outstanding for point in points})
        if missing:
            raise InputError(f"--depths: no results at {', '.join(map(str, missing))}")
        return wanted
    # A SATA drive queues 32 commands; the rest wait in the host.
    queued = [point.outstanding for point in points if point.outstanding <= 32]
    queued = queued or [point.outstanding for point in points]
    return {min(queued), max(queued)}


def print_results(
    fit: Published, points: Sequence[Point], fitted_points: Sequence[Point], changed: Sequence[Point]
) -> None:
    """Prints measured and modelled results of each point, and the mean error of held-out depths, without those that
    were measured in another state of the drive."""
    from headstack.twin import published  # start-up time

    rows: list[list[str]] = []
    errors: list[list[float]] = []
    for point in points:
        model = published.simulated(fit.system, point.kind, point.outstanding, point.size_bytes, 2)
        rate, p99 = (math.expm1(float(difference)) for difference in (model.logarithms - point.logarithms)[[0, 3]])
        residual = fit.between(point.kind, point.outstanding)
        p99_corrected = math.expm1(math.log1p(p99) + residual.p99) if residual is not None else None
        rows.append(
            [
                point.name,
                f"{point.rate:,.0f}" if point.rate >= 1000 else f"{point.rate:.1f}",
                f"{100 * rate:+.1f}",
                f"{1e3 * point.p99_s:,.3g}",
                f"{100 * p99:+.1f}",
                "" if p99_corrected is None or point in fitted_points else f"{100 * p99_corrected:+.1f}",
                "learnt from" if point in fitted_points else "state changed" if point in changed else "held out",
            ]
        )
        if point not in [*fitted_points, *changed] and p99_corrected is not None:
            errors.append([abs(rate), abs(p99), abs(p99_corrected)])
    columns = [Names("random"), Figures("IOPS"), Figures("model\n%"), Figures("p99\nms"), Figures("model\n%")]
    print_table([*columns, Figures("after\nresidual %"), Names("")], rows)
    stalls = [point.name for point in points if point.stalls]
    if stalls:
        say(f"\nthe device stalled for ten seconds or more (not counted in IOPS): {', '.join(stalls)}")
    say(f"\nhost: {fit.host}")
    if errors:
        rate, p99, p99_corrected = (100 * sum(column) / len(errors) for column in zip(*errors, strict=True))
        mean_errors = (
            f"IOPS {rate:.1f} %, p99 {p99:.1f} %, {p99_corrected:.1f} % with the residuals of the neighbouring depths"
        )
        say(f"mean error of the {len(errors)} held-out depths: {mean_errors}")
