"""``inspect``: reads health data of storage devices, or saved outputs, and compares and judges them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headstack.diagnosis.inspection.diff import Difference
    from headstack.diagnosis.inspection.model import Inspection
    from headstack.diagnosis.inspection.verdict import Judgement

Target = str | os.PathLike[str]


def inspect(*targets: Target, save: Target | None = None, device_type: str | None = None) -> list[Inspection]:
    """Reads the health data of devices: one ``Inspection`` per device and point in time, oldest first.

    A target is a block device (``/dev/sda``, a link to it, a partition), saved outputs of ``smartctl``, ``hdparm -I``
    or ``nvme`` (a file, or a folder of them), or any large file, which selects the device that it is on. Saved outputs
    of one device are joined by its serial number, if model, WWN and protocol agree; serial numbers that do not identify
    a device (such as ``REDACTED``, or those of USB bridges) are ignored.

    ``save`` is a folder for the raw outputs of devices; ``device_type`` is passed to ``smartctl -d``. Nothing is
    written to a device. Unreadable data are described in ``Inspection.notes``, one line each.

    Raises ``InputError`` with file, line or field if a target cannot be read.

    >>> said = '{"smartctl": {"version": [7, 4]}, "model_name": "A disk", "serial_number": "S1"}'
    >>> _ = Path("disk.json").write_text(said)
    >>> hs.inspect("disk.json")[0].identity.serial
    'S1'
    """
    from headstack.diagnosis.inspection.collect import collect  # start-up time

    return collect([os.fspath(t) for t in targets], None if save is None else os.fspath(save), device_type)


def compare(good: Sequence[Inspection], bad: Sequence[Inspection], others: Sequence[Inspection] = ()) -> Difference:
    """Compares capabilities, and finds the capabilities that separate the good from the bad devices."""
    from headstack.diagnosis.inspection.diff import Difference  # start-up time

    return Difference(good=list(good), bad=list(bad), others=list(others))


def judge(inspection: Inspection) -> Judgement:
    """Returns the verdict on a device (``pass``, ``watch``, ``replace``; ``unknown`` without health data), with its
    reasons.
    """
    from headstack.diagnosis.inspection.verdict import judge as judged  # start-up time

    return judged(inspection)
