"""``headstack lab characterize`` and ``headstack lab predict``."""

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
from headstack.cli.targets import access_of, exit_code_of_reason, permission_options
from headstack.io import signals
from headstack.io.atomic_files import write_all
from headstack.io.columns import Figures, Names
from headstack.io.tables import Tabular
from headstack.io.values import number
from headstack.measurement.access import Access
from headstack.measurement.measurement import is_target
from headstack.results.intervals.conformal import format_levels

if TYPE_CHECKING:
    from headstack.prediction.predictor import Characterization, Prediction, Predictions


SIMULATED = "a full simulation (excludes the simulation's own error compared with a real device)"


def change_options(command: Command) -> Command:
    """Adds the options that change the system."""
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
@change_options
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
    changed: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if access != Access():
        changed["access"] = access
    with progress(f"tests of {system}", quiet) as show, signals.held() if is_target(system) else nullcontext():
        try:
            characterization = hs.characterize(system, direct=direct, time=time, progress=show, **changed)
        except StoppedError as stopped:
            print(f"headstack: {system}: {stopped}", file=sys.stderr)
            return exit_code_of_reason(stopped.why)
        except KeyboardInterrupt:
            exit_interrupted()
    write_all([(path, characterization.to_json)])
    print_tests(characterization)
    say(f"\nwrote {path}")
    return 0


def exit_interrupted() -> NoReturn:
    """Ends a command whose tests were interrupted by the user."""
    print("headstack: interrupted; finished tests are kept: repeat the command to resume", file=sys.stderr)
    raise click.exceptions.Exit(signals.exit_code()) from None


def print_tests(characterization: Characterization) -> None:
    """Prints the tests of a system and the error of predictions from them."""
    from headstack.prediction.calibration import MEAN  # start-up time

    rows = []
    for kind, errors in characterization.residuals[MEAN].items():
        table = characterization.tables.get(kind)
        tests = ["", ""] if table is None else [f"{len(table.time_ns):,}", f"{100 * max(table.half_width):.1f}"]
        rows.append([kind, *tests, f"{len(errors)}"])
        error = characterization.errors[MEAN].get(kind)
        rows[-1].append("too few" if error is None else f"{100 * error:.1f}")
    columns = [
        Names(""),
        Figures("tests"),
        Figures("widest ±\n%"),
        Figures("random\nenvironments", 2),
        Figures("90 % are within\n±%", 0),
    ]
    print_table(columns, rows)
    if characterization.how == "measured":
        writes = 0.0 in characterization.tables["random"].knots("read")
        say("\nmeasured: reads and writes" if writes else "\nmeasured: only reads; writes cannot be predicted")
    if characterization.how == "composed":
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
    environment: str, systems: tuple[str, ...], depth: str | None, rate: str | None, quiet: bool, **options: Any
) -> None:
    """Predict IOPS and latency from low-level tests.

    \b
    headstack lab predict oltp-8k exos-x24-24tb 7450-pro-7680gb --depth 1,8,32
    headstack lab predict trace.parquet exos.json mine.json

    ENVIRONMENT is a workload or scenario (catalogue name or TOML file), an environment (TOML with a table
    [environment]), or a trace, which is analysed first. SYSTEM is a file of "headstack lab characterize", or a system,
    which is characterized unless that was done before.

    The table shows IOPS, mean, median and 99th percentile. The intervals contain the result of a full simulation of the
    same system in 90 % of such predictions; a second table shows prediction intervals for real devices, where they
    are available. Speedups compare with the first system. Environments outside the range of the tests are refused. A
    trace keeps its own arrival times unless you set --depth or --rate.
    """
    # Loading the predictor takes as long as the rest of the command's work.
    from headstack.prediction.devices import with_devices  # start-up time
    from headstack.prediction.predictions import predict_all  # start-up time
    from headstack.prediction.predictor import (  # start-up time
        Predictions,
        at_loads,
        characterization_of,
        load_environment,
    )

    outputs = Outputs(options, Predictions)
    demand = load_environment(environment)
    characterizations = []
    for system in systems:
        with progress(f"tests of {system}", quiet) as show:
            try:
                characterizations.append(characterization_of(system, show))
            except KeyboardInterrupt:
                exit_interrupted()
    environments = at_loads([demand], parse_positive_numbers("--depth", depth), parse_positive_numbers("--rate", rate))
    measured = all(characterization.how == "measured" for characterization in characterizations)
    predictions = predict_all(environments, characterizations)
    if not measured:
        predictions = with_devices(environments, systems, predictions)

    def print_tables() -> None:
        print_predictions(predictions, "measurements of the same device" if measured else SIMULATED)
        if not measured:
            print_devices(predictions)

    outputs.write(predictions, print_tables)


def print_devices(predictions: Sequence[Prediction]) -> None:
    """Prints prediction intervals for real devices, and the systems whose intervals overlap."""
    with_model = [prediction for prediction in predictions if prediction.iops_model_low is not None]
    if with_model:
        rows = [
            [
                prediction.system,
                prediction.load,
                f"{prediction.iops_model_low:,.4g} to {prediction.iops_model_high:,.4g}",
                *(
                    "" if low is None else f"{low:,.4g} to {high:,.4g}"
                    for low, high in (
                        (prediction.mean_model_low_ms, prediction.mean_model_high_ms),
                        (prediction.p50_model_low_ms, prediction.p50_model_high_ms),
                        (prediction.p99_model_low_ms, prediction.p99_model_high_ms),
                    )
                ),
            ]
            for prediction in with_model
        ]
        levels = format_levels(prediction.model_level for prediction in with_model)
        say(f"\n{levels} prediction intervals for real devices, from the errors of prediction and model:")
        times = [Figures(f"{name} ms\n{levels}", rank) for rank, name in enumerate(("mean", "p50", "p99"))]
        print_table([Names("system"), Names("load"), Figures(f"IOPS\n{levels}", 0), *times], rows)
    for model_error in dict.fromkeys(prediction.model_error for prediction in predictions):
        names = ", ".join(dict.fromkeys(each.system for each in predictions if each.model_error == model_error))
        say(f"\nmodel error of {names}: {model_error}")
    overlapping = [
        f"{prediction.system} and {first.system} at {prediction.load}"
        for prediction in with_model
        for first in [next(other for other in with_model if other.load == prediction.load)]
        if prediction.system != first.system and prediction.overlaps(first)
    ]
    if overlapping:
        say(f"\nindistinguishable: {'; '.join(overlapping)}")


def parse_positive_numbers(name: str, text: str | None) -> list[float] | None:
    """Parses a list of numbers above 0."""
    if text is None:
        return None
    values = [number(name, part) for part in text.split(",")]
    if min(values) <= 0:
        raise InputError(f"{min(values):g} is out of range; must be above 0", key=name)
    return values


def print_predictions(predictions: Predictions, reference: str = SIMULATED) -> None:
    """Prints the predictions, the reference of their intervals, and saturated loads."""
    print_table(*predictions.shown())
    say(f"\n90 %: compared with {reference}")
    saturated = sum(prediction.saturated for prediction in predictions)
    if saturated:
        say(f"\nsaturated: {saturated} of {len(predictions)} cannot keep up with this rate; IOPS is their maximum")
    at_risk = sum(prediction.mean_ms_high is None and not prediction.saturated for prediction in predictions)
    if at_risk:
        say(f"\nnear saturation: {at_risk} of {len(predictions)} may not keep up with this rate")
