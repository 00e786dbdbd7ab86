"""``headstack characterize`` and ``headstack predict``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import reduce
from typing import TYPE_CHECKING, Any, NoReturn

import click

import headstack as hs
from headstack._native import InputError
from headstack.catalogue.options import CHANGEABLE
from headstack.cli.command import Brief
from headstack.cli.completing import DEMAND, SYSTEM, systems_argument
from headstack.cli.files import OUTPUT, check_outputs
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, print_table, progress, say, wide_option
from headstack.cli.simulate.runs import Command
from headstack.cli.simulate.varying import option_of
from headstack.cli.targets import access_of, code_of, permission_options
from headstack.io import signals
from headstack.io.atomic_files import write_all
from headstack.io.columns import Figures, Names
from headstack.io.tables import Tabular
from headstack.io.values import number
from headstack.measurement.access import Access
from headstack.measurement.measurement import is_target

if TYPE_CHECKING:
    from headstack.prediction.predictor import Characterization, Prediction, Predictions


SIMULATED = "a full simulation (its own error compared with a real device is not included)"


def changes(command: Command) -> Command:
    """What can be changed in the system."""
    return reduce(
        lambda wrapped, option: option_of(option)(wrapped),
        reversed(CHANGEABLE),
        command,
    )


@click.command(cls=Brief)
@click.argument("system", type=SYSTEM, metavar="SYSTEM", help="Drive, array, file or block device.")
@click.option(
    "-o", "--output", type=OUTPUT, metavar="FILE.json", help="Write the tests to this file.  [default: SYSTEM.json]"
)
@click.option(
    "--direct", is_flag=True, help="Run all tests on an array itself: takes minutes, and gives narrower intervals."
)
@click.option("--time", metavar="T", help="Total test time on a real target, for example 10min.  [default: 5min]")
@permission_options
@changes
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def characterize(system: str, output: str | None, direct: bool, time: str | None, quiet: bool, **options: Any) -> int:
    """Run the low-level tests of a system, for lab predict.

    \b
    headstack lab characterize exos-x24-24tb -o exos.json
    headstack lab characterize md-raid6-12x16tb --direct
    headstack lab characterize /dev/sdb --time 10min

    SYSTEM is a drive or an array of the catalogue, a TOML file (also a calibrated model), or a part of one
    (NAME@RANGE), as in "headstack run". The tests are random and sequential reads, writes and mixes, and interleaved
    streams, with several sizes, queue depths and ranges. Test predictions for random environments show their error,
    which is stored with the tests.

    An array with drives of one kind is composed from the tests of its member drive, which are stored for the next
    array, and an eighth of its own tests; its intervals include the error of composing.

    A file or a block device is measured, with fewer tests, within --time. Tests only read unless you allow writing with
    --destroy and the device's name or serial number, or for a file with --create or --overwrite; writing destroys the
    data.

    Finished tests are kept: after an interruption, repeat the command to resume. Once the tests are complete, Ctrl-C
    skips the remaining environments and writes the result.
    """
    from headstack.prediction.grid import StoppedError  # start-up time

    path = output or f"{system.replace('/', '_').removesuffix('.toml').lstrip('_')}.json"
    if output is None:
        check_outputs(path)
    access = access_of(options)
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if access != Access():
        given["access"] = access
    with progress(f"tests of {system}", quiet) as show, signals.held() if is_target(system) else nullcontext():
        try:
            found = hs.characterize(system, direct=direct, time=time, progress=show, **given)
        except StoppedError as stopped:
            print(f"headstack: {system}: {stopped}", file=sys.stderr)
            return code_of(stopped.why)
        except KeyboardInterrupt:
            leave()
    write_all([(path, found.to_json)])
    print_tests(found)
    say(f"\nwrote {path}")
    return 0


def leave() -> NoReturn:
    """Ends a command whose tests somebody has ended."""
    print("headstack: interrupted; finished tests are kept: repeat the command to resume", file=sys.stderr)
    raise click.exceptions.Exit(signals.exit_code()) from None


def print_tests(found: Characterization) -> None:
    """What was tested, and how far off predictions are."""
    from headstack.prediction.calibration import MEAN  # start-up time

    rows = []
    for kind, errors in found.residuals[MEAN].items():
        table = found.tables.get(kind)
        tests = ["", ""] if table is None else [f"{len(table.time_ns):,}", f"{100 * max(table.half_width):.1f}"]
        rows.append([kind, *tests, f"{len(errors)}"])
        error = found.errors[MEAN].get(kind)
        rows[-1].append("too few" if error is None else f"{100 * error:.1f}")
    columns = [
        Names(""),
        Figures("tests"),
        Figures("widest ±\n%"),
        Figures("random\nenvironments", 2),
        Figures("90 % are within\n±%", 0),
    ]
    print_table(columns, rows)
    if found.how == "measured":
        writes = 0.0 in found.tables["random"].knots("read")
        say("\nmeasured: reads and writes" if writes else "\nmeasured: only reads; writes cannot be predicted")
    if found.how == "composed":
        say("\ncomposed from the tests of its member drive and an eighth of its own; add --direct to run all")


@click.command()
@click.argument("environment", type=DEMAND, metavar="ENVIRONMENT", help="Workload, scenario, environment or trace.")
@systems_argument("Files of headstack lab characterize, or systems.")
@click.option(
    "--depth", metavar="N", help="Queue depth (closed loop), or number of clients of a scenario, for example 1,8,32."
)
@click.option("--rate", metavar="N", help="Arrival rate per second (open loop), for example 200,400.")
@output_options(Tabular, json="Write the predictions as JSON (- for stdout).")
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def predict(
    environment: str, systems: tuple[str, ...], depth: str | None, rate: str | None, quiet: bool, **given: Any
) -> None:
    """Predict IOPS and latency from low-level tests.

    \b
    headstack lab predict oltp-8k exos-x24-24tb 7450-pro-7680gb --depth 1,8,32
    headstack lab predict trace.parquet exos.json mine.json

    ENVIRONMENT is a workload or scenario (catalogue name or TOML file), an environment (TOML with a table
    [environment]), or a trace, which is analysed first. SYSTEM is a file of "headstack lab characterize", or a system,
    which is characterized unless that was done before.

    The table shows IOPS, mean, median and 99th percentile. The intervals contain the result of a full simulation of the
    same system in 90 % of such predictions; a second table shows 90 % prediction intervals for real devices, where they
    are available. Speedups compare with the first system. Environments outside the range of the tests are refused. A
    trace keeps its own arrival times unless you set --depth or --rate.
    """
    # Loading the predictor takes as long as all the rest of the command line.
    from headstack.prediction.devices import with_devices  # start-up time
    from headstack.prediction.predictions import predict_all  # start-up time
    from headstack.prediction.predictor import (  # start-up time
        Predictions,
        at_loads,
        characterization_of,
        load_environment,
    )

    outputs = Outputs(given, Predictions)
    found = load_environment(environment)
    tested = []
    for system in systems:
        with progress(f"tests of {system}", quiet) as show:
            try:
                tested.append(characterization_of(system, show))
            except KeyboardInterrupt:
                leave()
    environments = at_loads([found], numbers("--depth", depth), numbers("--rate", rate))
    measured = all(one.how == "measured" for one in tested)
    predictions = predict_all(environments, tested)
    if not measured:
        predictions = with_devices(environments, systems, predictions)

    def tell() -> None:
        print_predictions(predictions, "measurements of the same device" if measured else SIMULATED)
        if not measured:
            print_devices(predictions)

    outputs.write(predictions, tell)


def print_devices(found: Sequence[Prediction]) -> None:
    """Where devices lie, by the error of the model as well, and which systems that leaves no telling."""
    known = [one for one in found if one.iops_model_low is not None]
    if known:
        rows = [
            [
                one.system,
                one.load,
                f"{one.iops_model_low:,.4g} to {one.iops_model_high:,.4g}",
                *(
                    "" if low is None else f"{low:,.4g} to {high:,.4g}"
                    for low, high in (
                        (one.mean_model_low_ms, one.mean_model_high_ms),
                        (one.p50_model_low_ms, one.p50_model_high_ms),
                        (one.p99_model_low_ms, one.p99_model_high_ms),
                    )
                ),
            ]
            for one in known
        ]
        say("\n90 % prediction intervals for real devices, from the errors of prediction and model:")
        times = [Figures(f"{name} ms\n90 %", number) for number, name in enumerate(("mean", "p50", "p99"))]
        print_table([Names("system"), Names("load"), Figures("IOPS\n90 %", 0), *times], rows)
    for words in dict.fromkeys(one.model_error for one in found):
        of = ", ".join(dict.fromkeys(one.system for one in found if one.model_error == words))
        say(f"\nmodel error of {of}: {words}")
    alike = [
        f"{one.system} and {first.system} at {one.load}"
        for one in known
        for first in [next(other for other in known if other.load == one.load)]
        if one.system != first.system and one.overlaps(first)
    ]
    if alike:
        say(f"\nindistinguishable: {'; '.join(alike)}")


def numbers(name: str, text: str | None) -> list[float] | None:
    """A list of numbers above 0."""
    if text is None:
        return None
    values = [number(name, part) for part in text.split(",")]
    if min(values) <= 0:
        raise InputError(f"{min(values):g} is out of range; above 0 is allowed", key=name)
    return values


def print_predictions(predictions: Predictions, against: str = SIMULATED) -> None:
    """The table, and what has to be said about it."""
    print_table(*predictions.shown())
    say(f"\n90 %: compared with {against}")
    saturated = sum(one.saturated for one in predictions)
    if saturated:
        say(f"\nsaturated: {saturated} of {len(predictions)} cannot keep up with this rate; IOPS is their maximum")
    at_risk = sum(one.mean_ms_high is None and not one.saturated for one in predictions)
    if at_risk:
        say(f"\nnear saturation: {at_risk} of {len(predictions)} may not keep up with this rate")
