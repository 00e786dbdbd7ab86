"""`described`: the properties of a system on which its prediction intervals depend, namely its class, the share of
stated values and a twin's sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from headstack._native import InputError
from headstack.catalogue.array import Array
from headstack.catalogue.drive import Drive
from headstack.catalogue.stack import Stack
from headstack.io.json_text import read_json
from headstack.results.intervals.calibration import (
    SSD_CLASSES,
    ClassScores,
    catalogue_scores,
    pooled_scores,
    twin_scores,
)
from headstack.results.intervals.workloads import MOSTLY, NEARLY_ALL

SILENT = ("name", "vendor", "model", "year", "notes", "price", "endurance", "reliability", "power", "twin", "instance")
"""Keys, or tables of keys, that affect no simulated time."""

NOT_KNOWN = "D not known"
"""Start of the source of an assumed value, which was not measured on the device."""

MEMBERS = 8
"""The number of descriptions of a twin's sample that are run in addition to the best one. The scores of twins use the
same number, which determines the standard deviation to 25 %."""

System: TypeAlias = Mapping[str, object]
"""A system as a specification contains it, passed on unchanged from a sample."""


class Described(NamedTuple):
    """The properties of a system's description on which prediction intervals depend."""

    of_class: str
    """One of ``calibration.CLASSES``."""
    stated_share: float
    """Share of the values that determine times and are stated, not derived."""
    is_twin: bool = False
    """Whether the description was fitted to measurements of a device."""
    sample: tuple[System, ...] = ()
    """Other descriptions that fit the measurements of a twin equally well."""
    assumed: tuple[str, ...] = ()
    """Requests whose latency is not known for the device, so that the description assumes it: ``reads``, ``writes``."""

    @property
    def mostly(self) -> float:
        """Minimum percentage at which a workload counts as all reads or all writes; the scores of models use the same
        value."""
        return NEARLY_ALL if self.is_twin else MOSTLY

    @property
    def scores(self) -> ClassScores:
        """The measured devices for learning the errors of such descriptions."""
        calibration = twin_scores() if self.is_twin else catalogue_scores()
        return calibration.get(self.of_class, ClassScores(self.of_class))

    @property
    def wider_scores(self) -> ClassScores | None:
        """The measured devices of all classes, if those of the own class are too few; ``None`` for other classes than
        SSDs."""
        return pooled_scores() if self.of_class in SSD_CLASSES and not self.is_twin else None


def described(system: Drive | Array | Stack, changed: Callable[[Any], System] = lambda system: system) -> Described:
    """Returns the properties of a system's description. ``changed`` applies the options of the system to the members of
    its sample. Raises ``InputError`` if a twin's sample cannot be read.

    >>> from headstack.results.intervals.described import described
    >>> described(hs.Drive.load("cheetah-x15-36lp")).of_class
    'disk'
    """
    stated = {value["key"]: value.get("value") for value in system.stated}
    is_twin = "twin.of" in stated
    own_class = class_of(system) if isinstance(system, Drive) else "stack" if isinstance(system, Stack) else "array"
    of_class = str(stated["twin.class"]) if is_twin else own_class
    if isinstance(system, Array) and any("ssd" in device for device in system.system["array"]["devices"]):
        # Errors measured on arrays of disks do not apply to arrays of flash.
        of_class = "array of flash"
    sample = stated.get("twin.sample") if is_twin else None
    members = () if sample is None else tuple(map(changed, _sample(Path(system.path).parent / str(sample))))
    assumed = tuple(
        requests
        for requests, key in (("reads", "volume.read.median"), ("writes", "volume.write.median"))
        if any(value["key"] == key and (value["source"] or "").startswith(NOT_KNOWN) for value in system.stated)
    )
    return Described(of_class, stated_share(system), is_twin, members, assumed)


def class_of(drive: Drive) -> str:
    """Returns the class of a drive, one of ``calibration.CLASSES``. Power-loss protection distinguishes SSDs for data
    centers from consumer SSDs, because it determines when writes are acknowledged. Drives of 3D XPoint are a class of
    their own: errors of models of flash do not apply to them.

    >>> from headstack.results.intervals.described import class_of
    >>> [class_of(hs.Drive.load(drive)) for drive in ("pm9a3-1920gb", "990-pro-2tb", "pm883-480gb", "870-evo-1tb")]
    ['data-center-nvme', 'consumer-nvme', 'data-center-sata', 'consumer-sata']
    """
    if drive.kind != "ssd":
        return drive.kind
    if drive.description.get("medium") == "xpoint":
        return "xpoint"
    interface = next(value["value"] for value in (*drive.stated, *drive.derived) if value["key"] == "interface.kind")
    if interface == "sas":
        return "sas-ssd"
    is_protected = drive.description["buffer"]["power_loss_protected"]
    return f"{'data-center' if is_protected else 'consumer'}-{interface}"


def stated_share(system: Drive | Array | Stack) -> float:
    """Returns the share of the time-determining values that the description states; the other values are derived.

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
    """Returns the systems of a sample to run."""
    try:
        contents = read_json(path)
        systems = contents["systems"]
        version = contents["version"]
    except OSError as error:
        raise InputError(f"{path}: cannot read the sample of the calibrated model: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a sample of a calibrated model: {error!r}") from None
    if version != 1:
        raise InputError(
            f"{path}: unknown version {version} of a calibrated model's sample; this build reads version 1"
        )
    return tuple(systems[:MEMBERS])
