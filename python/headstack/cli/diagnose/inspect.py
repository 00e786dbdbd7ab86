"""``headstack inspect``: identity and health of storage devices, as they report them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headstack._native import InputError
from headstack.cli.files import KEPT, OUTPUT_FOLDER, SOURCE, check_folder, read_from
from headstack.cli.formats import output_options
from headstack.cli.loading import Implied
from headstack.cli.output import Outputs, verbose_option, wide_option
from headstack.diagnosis.inspection.inspect import compare, judge
from headstack.diagnosis.inspection.inspect import inspect as inspect_targets
from headstack.io.tables import written

if TYPE_CHECKING:
    from headstack.diagnosis.inspection.model import Inspection

EXIT_REPLACE = 1


def output_form_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that select the output: tables or JSON."""
    json_option = output_options(json=None)
    return json_option(wide_option(verbose_option(command)))


DATABASE_OPTION = click.option(
    "--db", "database", type=SOURCE, metavar="DB", help="Database of snapshots.  [default: that of --record]"
)


class Inspect(Implied):
    """A group whose default command is ``device``; write ``./diff`` for a file with the name of a command."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the three usage lines of the command."""
        formatter.write_usage(ctx.command_path, "[OPTIONS] TARGET...")
        formatter.write_usage(ctx.command_path, "diff [OPTIONS] TARGET...", "       ")
        formatter.write_usage(ctx.command_path, "history [OPTIONS] [SERIAL]", "       ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options of ``device``, then the other commands."""
        self.commands["device"].format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


@click.group(cls=Inspect, implied="device")
def inspect() -> None:
    """Show identity, SMART data and failure signs of storage devices.

    \b
    headstack inspect /dev/sda --save outputs --record
    headstack inspect outputs/ --check
    headstack inspect diff --good wd.txt --bad hitachi.txt --bad seagate.txt
    headstack inspect history

    TARGET is a block device, a partition or a link to one; saved outputs of smartctl -a or -x (text or JSON), hdparm -I
    or nvme id-ctrl, id-ns and smart-log (files or folders; outputs of one device are joined by its identity); or a data
    file of more than 4 MiB, which selects the device that it is on. Devices are never written to. Missing programs
    and permissions are reported.
    """


@inspect.command("device", hidden=True)
@click.argument(
    "targets", nargs=-1, required=True, type=SOURCE, metavar="TARGET...", help="Block devices, or saved outputs."
)
@click.option("-a", "--all", "everything", is_flag=True, help="Also print the kernel's queue settings.")
@click.option("--check", is_flag=True, help='Exit with code 1 if a verdict is "replace".')
@output_form_options
@click.option(
    "--save", metavar="FOLDER", type=OUTPUT_FOLDER, help="Save the raw outputs to this folder, which is a valid TARGET."
)
@click.option(
    "--record",
    type=KEPT,
    metavar="[DB]",
    is_flag=False,
    flag_value="",
    help="Append a snapshot to a database; write it after TARGET.  [default: inspections.sqlite in "
    "$XDG_DATA_HOME/headstack]",
)
@click.option(
    "--smartctl-type", "device_type", metavar="TYPE", help="Device type for smartctl -d, for example sat or megaraid,0."
)
def device(
    targets: tuple[str, ...],
    everything: bool,
    check: bool,
    json_path: str | None,
    save: str | None,
    record: str | None,
    device_type: str | None,
) -> int:
    """Show identity, capabilities and SMART data of storage devices."""
    from headstack.cli.diagnose.inspect_tables import print_all  # start-up time
    from headstack.diagnosis.inspection import stored  # start-up time
    from headstack.diagnosis.inspection.joining import by_device  # start-up time
    from headstack.diagnosis.inspection.verdict import REPLACE  # start-up time

    outputs = outputs_of(json_path)
    if save is not None:
        check_folder(save)
    inspections = inspect_targets(*map(read_from, targets), save=save, device_type=device_type)
    if record is not None:
        from headstack.diagnosis.inspection import history  # start-up time

        path = Path(record) if record else history.default_path()
        added = history.record(path, inspections)

    def show() -> None:
        print_all(by_device(inspections), everything)
        if record is not None:
            print(f"\n{path}: {added} of {len(inspections)} snapshots are new")

    outputs.write(stored.document(inspections), show)
    failing = [inspection for inspection in inspections if judge(inspection).verdict == REPLACE]
    return EXIT_REPLACE if check and failing else 0


@inspect.command("diff")
@click.argument("targets", nargs=-1, type=SOURCE, metavar="TARGET...", help="Block devices, or saved outputs.")
@click.option(
    "--good",
    multiple=True,
    type=SOURCE,
    metavar="TARGET",
    help="Good device: a target, model or serial number; may be repeated.",
)
@click.option(
    "--bad",
    multiple=True,
    type=SOURCE,
    metavar="TARGET",
    help="Bad device: a target, model or serial number; may be repeated.",
)
@click.option("-a", "--all", "everything", is_flag=True, help="Also print rows in which the devices agree.")
@output_form_options
def diff(
    targets: tuple[str, ...], good: tuple[str, ...], bad: tuple[str, ...], everything: bool, json_path: str | None
) -> None:
    """Find capabilities that separate good from bad devices.

    \b
    headstack inspect diff --good wd.txt --bad hitachi.txt --bad seagate.txt
    headstack inspect diff /dev/sda /dev/sdb

    A feature separates the groups if all good devices have it (or have it enabled) and no bad one does, or vice versa;
    single values likewise. One text may hold several listings; --good and --bad then name models or serial numbers.
    With devices of only one group, headstack prints the features that are ruled out and those still possible.
    """
    from headstack.cli.diagnose.inspect_tables import print_difference  # start-up time

    outputs = outputs_of(json_path)
    devices = latest_snapshots(targets)
    sides: dict[str, list[Inspection]] = {"good": [], "bad": []}
    for side, names in (("good", good), ("bad", bad)):
        for name in names:
            sides[side].extend(devices_of_side(name, devices, f"--{side}"))
    sided = [id(inspection) for side in sides.values() for inspection in side]
    if len(sided) != len(set(sided)):
        raise InputError("--good, --bad: a device is named twice; name each device once")
    others = [inspection for inspection in devices if id(inspection) not in sided]
    difference = compare(sides["good"], sides["bad"], others)
    if len(difference.devices) < 2:
        raise InputError(f"{len(difference.devices)} device; name two or more, as TARGET, --good or --bad", key="diff")
    outputs.write(difference.to_dict(), lambda: print_difference(difference, everything))


def latest_snapshots(targets: tuple[str, ...]) -> list[Inspection]:
    """Returns the latest snapshot of each device of the targets, in order."""
    from headstack.diagnosis.inspection.joining import by_device  # start-up time

    return [snapshots[-1] for target in targets for snapshots in by_device(inspect_targets(target))]


def devices_of_side(name: str, devices: list[Inspection], option: str) -> list[Inspection]:
    """Returns the devices of a side: loaded devices with this model or serial number, otherwise the devices of another
    target."""
    named = [
        device for device in devices if name in (device.identity.model, device.label) or name in device.label.split()
    ]
    if named:
        return named
    if not os.path.exists(name):
        labels = ", ".join(device.label for device in devices) or "none"
        raise InputError(f"{name!r} is not a file, device, model or serial number; devices: {labels}", key=option)
    further = latest_snapshots((name,))
    # A target may also be named without a side; it is then the same device.
    loaded = [device for device in devices for other in further if device.content() == other.content()]
    return loaded or further


@inspect.command("history")
@click.argument("serial", required=False, metavar="[SERIAL]", help="Serial number of a recorded device.")
@DATABASE_OPTION
@output_form_options
def history_(serial: str | None, database: str | None, json_path: str | None) -> None:
    """Show changes and forecasts from recorded snapshots.

    \b
    headstack inspect history
    headstack inspect history S4EVNX0R500000

    Without SERIAL, headstack lists the recorded devices. Forecasts are straight lines over power-on hours from three or
    more snapshots, with 95 % confidence intervals.
    """
    from headstack.cli.diagnose.inspect_tables import print_devices, print_history  # start-up time
    from headstack.diagnosis.inspection import history  # start-up time
    from headstack.diagnosis.inspection.trends import trends  # start-up time

    outputs = outputs_of(json_path)
    path = Path(database) if database else history.default_path()
    recorded = history.devices(path) if serial is None else [history.snapshots(path, serial)]
    document = {"headstack_history": history.VERSION, "devices": [history_of(snapshots) for snapshots in recorded]}

    def show() -> None:
        if serial is None:
            print_devices(recorded)
        else:
            print_history(recorded[0], history.changes(recorded[0]), trends(recorded[0]))

    outputs.write(document, show)


def history_of(snapshots: list[Inspection]) -> dict[str, object]:
    """Returns the history of a device for JSON."""
    from headstack.diagnosis.inspection.history import changes  # start-up time
    from headstack.diagnosis.inspection.trends import trends  # start-up time

    last = snapshots[-1]
    return {
        "serial": last.identity.serial,
        "model": last.identity.model,
        "taken_unix_s": [snapshot.taken_unix_s for snapshot in snapshots],
        "changes": [change.to_dict() for change in changes(snapshots)],
        "trends": [trend.to_dict() for trend in trends(snapshots)],
        "verdict": judge(last).verdict,
    }


def outputs_of(json_path: str | None) -> Outputs:
    """Returns the output files of the command."""
    return Outputs({"json_path": json_path}, {"json": write_json})


def write_json(document: Mapping[str, object], path: Path | None = None) -> str:
    """Writes a document as JSON."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    # Some drives report text that is not UTF-8.
    return written(text.encode(errors="backslashreplace").decode(), path)
