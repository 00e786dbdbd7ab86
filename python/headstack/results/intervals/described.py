"""What intervals need to know of a system: its class, how much of its description is stated, a twin's sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from headstack._native import InputError
from headstack.catalogue.array import Array
from headstack.catalogue.drive import Drive
from headstack.io.json_text import read_json
from headstack.results.intervals.calibration import ClassScores, of_catalogue, of_twins
from headstack.results.intervals.workloads import MOSTLY, NEARLY_ALL

SILENT = ("name", "vendor", "model", "year", "notes", "price", "reliability", "power", "twin")
"""Keys, or tables of them, that no time follows from."""

MEMBERS = 8
"""Descriptions of a twin's sample that are run beside the best, as many as when twins were scored: their deviation is
known to a quarter then."""

System: TypeAlias = Mapping[str, object]
"""A system as a run is pointed at it; it is passed on as a sample has it."""

CLASS_OF = {"disk": "disk", "ssd": "flash", "volume": "volume"}


class Described(NamedTuple):
    """How a system is described."""

    of_class: str
    """One of ``calibration.CLASSES``."""
    stated_share: float
    """Share of the values that times follow from that is stated and not derived."""
    is_twin: bool = False
    """Whether the description was learnt from the answers of a device."""
    sample: tuple[System, ...] = ()
    """Other descriptions that explain the answers of a twin as well."""

    @property
    def mostly(self) -> float:
        """From which percent on reads, or writes, are taken for all: such were those that models were scored under."""
        return NEARLY_ALL if self.is_twin else MOSTLY

    @property
    def scores(self) -> ClassScores:
        """The devices that teach how far off such descriptions are."""
        known = of_twins() if self.is_twin else of_catalogue()
        return known.get(self.of_class, ClassScores(self.of_class))


def described(system: Drive | Array, changed: Callable[[Any], System] = lambda system: system) -> Described:
    """How a system is described; its sample is ``changed`` as options change the system itself. Raises ``InputError``
    where a twin's sample cannot be read.

    >>> from headstack.results.intervals.described import described
    >>> described(hs.Drive.load("cheetah-x15-36lp")).of_class
    'disk'
    """
    stated = {value["key"]: value.get("value") for value in system.stated}
    is_twin = "twin.of" in stated
    drive_class = CLASS_OF[system.kind] if isinstance(system, Drive) else "array"
    of_class = str(stated.get("twin.class", drive_class)) if is_twin else drive_class
    if isinstance(system, Array) and any("ssd" in device for device in system.system["array"]["devices"]):
        # What arrays of disks are off by says nothing of these.
        of_class = "array of flash"
    sample = stated.get("twin.sample") if is_twin else None
    members = () if sample is None else tuple(map(changed, _sample(Path(system.path).parent / str(sample))))
    return Described(of_class, stated_share(system), is_twin, members)


def stated_share(system: Drive | Array) -> float:
    """Share of the values that times follow from that the description states; the rest is derived.

    >>> from headstack.results.intervals.described import stated_share
    >>> 0.2 < stated_share(hs.Drive.load("cheetah-x15-36lp")) < 0.6
    True
    """
    stated, derived = (
        sum(value["key"].split(".")[0] not in SILENT for value in values) for values in (system.stated, system.derived)
    )
    return round(stated / max(1, stated + derived), 3)


@cache
def _sample(path: Path) -> tuple[System, ...]:
    """The systems of a sample that are run."""
    try:
        told = read_json(path)
        systems = told["systems"]
        version = told["version"]
    except OSError as error:
        raise InputError(f"{path}: cannot read the sample of the calibrated model: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a sample of a calibrated model: {error!r}") from None
    if version != 1:
        raise InputError(
            f"{path}: unknown version {version} of a calibrated model's sample; this build reads version 1"
        )
    return tuple(systems[:MEMBERS])
