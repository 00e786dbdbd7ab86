"""``headstack inspect``: what storage devices say of themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headstack._native import InputError
from headstack.cli.files import KEPT, OUTPUT_FOLDER, SOURCE, check_folder, read_from
from headstack.cli.formats import output_options
from headstack.cli.loading import Implied
from headstack.cli.output import Outputs, wide_option
from headstack.diagnosis.inspection.inspect import compare, judge
from headstack.diagnosis.inspection.inspect import inspect as asked
from headstack.io.tables import written

if TYPE_CHECKING:
    from headstack.diagnosis.inspection.model import Inspection

EXIT_REPLACE = 1


def shown(command: Callable[..., Any]) -> Callable[..., Any]:
    """How devices are shown: as tables, or as JSON."""
    json_option = output_options(json=None)
    return json_option(wide_option(command))


DATABASE_OPTION = click.option(
    "--db", "database", type=SOURCE, metavar="DB", help="The database; else the one of --record."
)


class Inspect(Implied):
    """Targets by themselves mean the command ``device``; ``./diff`` is a file of the name of a command."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The three ways to call it."""
        formatter.write_usage(ctx.command_path, "[OPTIONS] TARGET...")
        formatter.write_usage(ctx.command_path, "diff [OPTIONS] TARGET...", "       ")
        formatter.write_usage(ctx.command_path, "history [OPTIONS] [SERIAL]", "       ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of ``device``, then the other commands."""
        self.commands["device"].format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


@click.group(cls=Inspect, implied="device")
def inspect() -> None:
    """What a storage device says of itself: identity, capabilities, SMART, and whether it is about to fail.

    A TARGET is a block device (/dev/sda, a link to it, a partition), saved outputs of smartctl -a or -x (text or JSON),
    hdparm -I or nvme id-ctrl, id-ns and smart-log (a file, or a folder of them; those of one device are joined by its
    serial number, model, WWN and protocol), or a data file of more than 4 MiB, which stands for the device that it lies
    on. Devices are only asked, never written to; what a missing program or permission leaves out is said.

    \b
    headstack inspect /dev/sda --save outputs --record
    headstack inspect outputs/ --check
    headstack inspect diff --good wd.txt --bad hitachi.txt --bad seagate.txt
    headstack inspect history
    """


@inspect.command("device", hidden=True)
@click.argument(
    "targets", nargs=-1, required=True, type=SOURCE, metavar="TARGET...", help="Block devices, or saved outputs."
)
@click.option("-a", "--all", "everything", is_flag=True, help="Also the kernel's settings of the queue.")
@click.option("--check", is_flag=True, help="Exit code 1 where the verdict is replace.")
@shown
@click.option(
    "--save", metavar="FOLDER", type=OUTPUT_FOLDER, help="Keep the raw outputs; the folder is a TARGET like any other."
)
@click.option(
    "--record",
    type=KEPT,
    metavar="[DB]",
    is_flag=False,
    flag_value="",
    help="After TARGET: append a snapshot (default: inspections.sqlite in $XDG_DATA_HOME/headstack).",
)
@click.option("--smartctl-type", "device_type", metavar="TYPE", help="For smartctl -d: sat, megaraid,N, ...")
def device(
    targets: tuple[str, ...],
    everything: bool,
    check: bool,
    json_path: str | None,
    save: str | None,
    record: str | None,
    device_type: str | None,
) -> int:
    """What devices say of themselves."""
    from headstack.cli.diagnose.inspect_tables import print_all  # start-up time
    from headstack.diagnosis.inspection import stored  # start-up time
    from headstack.diagnosis.inspection.joining import by_device  # start-up time
    from headstack.diagnosis.inspection.verdict import REPLACE  # start-up time

    outputs = outputs_of(json_path)
    if save is not None:
        check_folder(save)
    found = asked(*map(read_from, targets), save=save, device_type=device_type)
    if record is not None:
        from headstack.diagnosis.inspection import history  # start-up time

        path = Path(record) if record else history.default_path()
        added = history.record(path, found)

    def show() -> None:
        print_all(by_device(found), everything)
        if record is not None:
            print(f"\n{path}: {added} of {len(found)} snapshots are new")

    outputs.write(stored.document(found), show)
    failing = [one for one in found if judge(one).verdict == REPLACE]
    return EXIT_REPLACE if check and failing else 0


@inspect.command("diff")
@click.argument("targets", nargs=-1, type=SOURCE, metavar="TARGET...", help="Block devices, or saved outputs.")
@click.option(
    "--good",
    multiple=True,
    type=SOURCE,
    metavar="TARGET",
    help="A device that does well: a target, model or serial number.",
)
@click.option("--bad", multiple=True, type=SOURCE, metavar="TARGET", help="A device that does badly, likewise.")
@click.option("-a", "--all", "everything", is_flag=True, help="Also rows in which the devices agree.")
@shown
def diff(
    targets: tuple[str, ...], good: tuple[str, ...], bad: tuple[str, ...], everything: bool, json_path: str | None
) -> None:
    """Hold devices' capabilities side by side, and find those that divide the good from the bad.

    A feature divides when all good devices have it and no bad one has, or the other way round; likewise where it is
    enabled, and single values. A text may hold several listings; --good and --bad can name them by model or serial
    number. With devices of one side only, it says what is ruled out and what is still possible.
    """
    from headstack.cli.diagnose.inspect_tables import print_difference  # start-up time

    outputs = outputs_of(json_path)
    devices = latest(targets)
    sides: dict[str, list[Inspection]] = {"good": [], "bad": []}
    for side, names in (("good", good), ("bad", bad)):
        for name in names:
            sides[side].extend(chosen(name, devices, f"--{side}"))
    sided = [id(one) for side in sides.values() for one in side]
    if len(sided) != len(set(sided)):
        raise InputError("--good, --bad: a device is named twice; each stands on one side, once")
    others = [one for one in devices if id(one) not in sided]
    difference = compare(sides["good"], sides["bad"], others)
    if len(difference.devices) < 2:
        raise InputError(
            f"{len(difference.devices)} device; allowed: two or more, as TARGET, --good or --bad", key="diff"
        )
    outputs.write(difference.to_dict(), lambda: print_difference(difference, everything))


def latest(targets: tuple[str, ...]) -> list[Inspection]:
    """The devices of the targets in their order; of several snapshots in one target the latest."""
    from headstack.diagnosis.inspection.joining import by_device  # start-up time

    return [snapshots[-1] for target in targets for snapshots in by_device(asked(target))]


def chosen(name: str, devices: list[Inspection], option: str) -> list[Inspection]:
    """What a side names: loaded devices by model or serial number, else a target of its own."""
    named = [one for one in devices if name in (one.identity.model, one.label) or name in one.label.split()]
    if named:
        return named
    if not os.path.exists(name):
        known = ", ".join(one.label for one in devices) or "none"
        raise InputError(f"{name!r} is not a file, device, model or serial number; devices: {known}", key=option)
    found = latest((name,))
    # A target that was given without a side as well is the same device.
    same = [one for one in devices for other in found if one.content() == other.content()]
    return same or found


@inspect.command("history")
@click.argument("serial", required=False, metavar="[SERIAL]", help="A recorded device's serial number.")
@DATABASE_OPTION
@shown
def history_(serial: str | None, database: str | None, json_path: str | None) -> None:
    """What changed between the recorded snapshots of a device, how fast, and when a threshold is reached.

    Without SERIAL: the devices that are recorded. Forecasts are straight lines over power-on hours, from three
    snapshots on, with their 95 % interval.
    """
    from headstack.cli.diagnose.inspect_tables import print_devices, print_history  # start-up time
    from headstack.diagnosis.inspection import history  # start-up time
    from headstack.diagnosis.inspection.trends import trends  # start-up time

    outputs = outputs_of(json_path)
    path = Path(database) if database else history.default_path()
    kept = history.devices(path) if serial is None else [history.snapshots(path, serial)]
    document = {"headstack_history": history.VERSION, "devices": [history_of(snapshots) for snapshots in kept]}

    def show() -> None:
        if serial is None:
            print_devices(kept)
        else:
            print_history(kept[0], history.changes(kept[0]), trends(kept[0]))

    outputs.write(document, show)


def history_of(snapshots: list[Inspection]) -> dict[str, object]:
    """A device's history as JSON holds it."""
    from headstack.diagnosis.inspection.history import changes  # start-up time
    from headstack.diagnosis.inspection.trends import trends  # start-up time

    last = snapshots[-1]
    return {
        "serial": last.identity.serial,
        "model": last.identity.model,
        "taken_unix_s": [snapshot.taken_unix_s for snapshot in snapshots],
        "changes": [asdict(change) for change in changes(snapshots)],
        "trends": [trend.to_dict() for trend in trends(snapshots)],
        "verdict": judge(last).verdict,
    }


def outputs_of(json_path: str | None) -> Outputs:
    """Where the JSON goes."""
    return Outputs({"json_path": json_path}, {"json": document_as_json})


def document_as_json(document: Mapping[str, object], path: Path | None = None) -> str:
    """A document as JSON."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    # Drives say of themselves what is no UTF-8.
    return written(text.encode(errors="backslashreplace").decode(), path)
