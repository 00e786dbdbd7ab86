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


SIMULATED = "a full simulation; how far that is from a real device is not a part of it"


def changes(command: Command) -> Command:
    """What can be changed in the system."""
    return reduce(
        lambda wrapped, option: option_of(option)(wrapped),
        reversed(CHANGEABLE),
        command,
    )


@click.command(cls=Brief)
@click.argument("system", type=SYSTEM, metavar="SYSTEM", help="A drive or an array, or a file or device.")
@click.option(
    "-o", "--output", type=OUTPUT, metavar="FILE.json", help="The file; NAME.json of the system unless stated."
)
@click.option("--direct", is_flag=True, help="Run every test on an array itself: minutes, and narrower intervals.")
@click.option("--time", metavar="T", help="Of a real target: how long its tests take in all; 5min unless stated.")
@permission_options
@changes
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def characterize(system: str, output: str | None, direct: bool, time: str | None, quiet: bool, **options: Any) -> int:
    """Run the low-level tests of a SYSTEM, which predictions are made from.

    SYSTEM is a drive or an array of the catalogue or a TOML file, a twin among them, the whole or a part (NAME@RANGE),
    as in "headstack run". Tests are random and sequential reads and writes, mixes of them, and streams that take turns,
    each of several sizes and depths, random ones over ranges from the whole to some tracks. How far off predictions
    from them are is found on environments drawn at random, and kept with them.

    An array of drives of one kind is composed from the tests of its member drive, which are kept for the next array,
    and an eighth of its own. What that is off by is in the intervals.

    A file or a block device is measured instead, with fewer tests, which take --time in all. Reading asks for nothing,
    and tests reads alone. With --destroy and the device's name or serial number, or for a file with --create or
    --overwrite, tests write too: what is there is lost.

    What ends it, Ctrl-C or a process that is killed, leaves the finished tests: the same command goes on from there.
    Once the tests are whole, and the environments are not, Ctrl-C writes what they say so far.
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
    say(f"\nwritten: {path}")
    return 0


def leave() -> NoReturn:
    """Ends a command whose tests somebody has ended."""
    print("headstack: interrupted; finished tests are kept, the same command goes on from there", file=sys.stderr)
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
        Figures("environments\nat random", 2),
        Figures("90 % are within\n±%", 0),
    ]
    print_table(columns, rows)
    if found.how == "measured":
        writes = 0.0 in found.tables["random"].knots("read")
        say("\nmeasured: reads and writes" if writes else "\nmeasured: reads alone; what writes is not predicted")
    if found.how == "composed":
        say("\ncomposed of its member's tests and an eighth of its own; --direct runs all of them")


@click.command()
@click.argument(
    "environment", type=DEMAND, metavar="ENVIRONMENT", help="A workload, a scenario, an environment or a trace."
)
@systems_argument("Characterizations, or systems.")
@click.option("--depth", metavar="N", help="Closed loop: requests outstanding; of a scenario, clients. May be a list.")
@click.option("--rate", metavar="N", help="Open loop: arrivals a second. May be a list.")
@output_options(Tabular, json="Write the predictions (- for stdout).")
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def predict(
    environment: str, systems: tuple[str, ...], depth: str | None, rate: str | None, quiet: bool, **given: Any
) -> None:
    """Predict what an ENVIRONMENT comes to on SYSTEMs, from their low-level tests.

    ENVIRONMENT is a workload or a scenario of the catalogue, a TOML file of one, an environment written by hand (TOML
    with a table [environment]), or a trace, which is analysed. SYSTEM is a file of "headstack characterize", or a
    system, which is characterized first unless that was done before.

    Throughput, mean, median and 99th percentile are told. Intervals hold what a full simulation of the same system
    comes to in 90 % of such predictions; a second table has where nine of ten devices lie, where that is known. Gains
    are over the first system: of throughput, or where arrivals set that, of the speed of responses. What is outside
    the range of the tests is refused. A recording has its own arrivals, as in a replay that is timed; --depth or --rate
    states another load.
    """
    # Loading the predictor takes as long as all the rest of the command line.
    from headstack.prediction.devices import with_devices  # start-up time
    from headstack.prediction.predictions import predicted  # start-up time
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
    predictions = predicted(environments, tested)
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
        say("\nnine of ten devices lie within, by the errors of prediction and model:")
        times = [Figures(f"{name} ms\n90 %", number) for number, name in enumerate(("mean", "p50", "p99"))]
        print_table([Names("system"), Names("load"), Figures("IO/s\n90 %", 0), *times], rows)
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
    say(f"\n90 %: against {against}")
    saturated = sum(one.saturated for one in predictions)
    if saturated:
        say(f"\nsaturated: {saturated} of {len(predictions)} cannot keep up with these arrivals; IO/s is their most")
    at_risk = sum(one.mean_ms_high is None and not one.saturated for one in predictions)
    if at_risk:
        say(f"\nnear saturation: {at_risk} of {len(predictions)} may not keep up with these arrivals")
