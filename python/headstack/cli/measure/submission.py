"""``headstack measure TARGET --for scoreboard``: measures a device and writes its two files for the scoreboard."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import click

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.system import load_system
from headstack.cli.completing import SYSTEM, Among
from headstack.cli.files import OUTPUT_FOLDER, check_folder
from headstack.cli.output import say
from headstack.cli.simulate.runs import Command
from headstack.comparison.scoreboard.measured_device import MeasuredDevice, write_device
from headstack.comparison.scoreboard.submission import DEPTHS, MIXES, READS, SIZE, submission
from headstack.diagnosis.inspection.catalogued import entry_of
from headstack.diagnosis.inspection.model import Identity
from headstack.io.values import choice
from headstack.measurement.access import Access, Progress
from headstack.measurement.measurement import prepared
from headstack.results.results import Results
from headstack.simulation.runs import swept

PURPOSE = "scoreboard"


def submission_options(command: Command) -> Command:
    """Adds the options of a measurement for the scoreboard."""
    decorators: list[Callable[[Command], Command]] = [
        click.option(
            "--for",
            "purpose",
            type=Among([PURPOSE]),
            metavar=PURPOSE,
            help="Measure what the scoreboard compares, and write NAME.toml and NAME.csv without serial numbers.",
        ),
        click.option(
            "--system",
            type=SYSTEM,
            metavar="NAME|FILE.toml",
            help="Description of the device for --for scoreboard.  [default: the catalogue's drive of its model]",
        ),
        click.option(
            "--host",
            "adapter",
            type=Among(_native.HOSTS),
            metavar="HOST",
            help="Host adapter (HBA) of the device for --for scoreboard, for example ahci.",
        ),
        click.option(
            "--folder",
            type=OUTPUT_FOLDER,
            metavar="DIR",
            help="Folder for both files of --for scoreboard.  [default: .]",
        ),
    ]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


class Submission:
    """A request to measure a target for the scoreboard."""

    def __init__(self, options: dict[str, Any]) -> None:
        """Removes the options of ``submission_options``. Raises ``InputError`` if they lack ``--for``."""
        self.purpose = options.pop("purpose")
        self.system = options.pop("system")
        self.host = options.pop("adapter")
        folder = options.pop("folder")
        self.folder = Path(folder or ".")
        others = {"system": self.system, "host": self.host, "folder": folder}
        if self.purpose is not None:
            choice("for", self.purpose, (PURPOSE,))
        else:
            for name, value in others.items():
                if value is not None:
                    raise InputError(f"applies only to a measurement for the scoreboard; add --for {PURPOSE}", key=name)

    def plan(self, workload: str | None, options: Mapping[str, Any], access: Access) -> dict[str, list[str]]:
        """Returns the options that the measurement varies. Writes need the permission of any measurement. Raises
        ``InputError`` if other options contradict the plan."""
        others = {"workload": workload, **{name: options[name] for name in ("size", "read", "random", "depth", "rate")}}
        for name, value in others.items():
            if value is not None:
                raise InputError(f"--for {PURPOSE} sets it; remove the option", key=name)
        may_write = bool(access.destroy or access.create or access.overwrite)
        return {"size": [SIZE], "read": list(MIXES if may_write else READS), "depth": list(map(str, DEPTHS))}

    def measure(
        self, target: str, access: Access, options: Mapping[str, list[str]], progress: Progress | None
    ) -> tuple[Results, MeasuredDevice]:
        """Measures the target, whose description is known before the measurement starts."""
        opened, steps = prepared(target, None, access, options)
        model = opened.described[0]["description"].get("device", {}).get("model")
        system = self.system or _catalogued(model)
        load_system(system)
        results = opened.measure(steps, progress, swept(options))
        [range_] = options.get("range", [""])
        return results, submission(results, system, self.folder, self.host or "", range_)

    def write(self, device: MeasuredDevice) -> None:
        """Writes both files, and prints their names and the next command."""
        name = file_name(device)
        self.folder.mkdir(parents=True, exist_ok=True)
        check_folder(self.folder, f"{name}.toml", f"{name}.csv")
        write_device(device, self.folder, name)
        say(f"\nwrote {self.folder / name}.toml and .csv; compare them with the prediction:")
        say(f"headstack lab scoreboard {self.folder}")


def _catalogued(model: str | None) -> str:
    """Returns the drive in the catalogue of the measured device's model."""
    entry = entry_of(Identity(model=model))
    if entry is None:
        problem = f"no drive in the catalogue is a {model}" if model else "the model of the target is not known"
        raise InputError(f"{problem}; name its description with --system")
    return entry.id


def file_name(device: MeasuredDevice) -> str:
    """Returns the name of both files, from the model.

    >>> from headstack.cli.measure.submission import file_name
    >>> file_name(MeasuredDevice("Samsung PM883 480 GB", "pm883-480gb", "sheet", "", "", ()))
    'samsung-pm883-480-gb'
    """
    return re.sub(r"[^a-z0-9]+", "-", device.device.lower()).strip("-")
