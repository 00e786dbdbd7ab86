"""What storage devices say of themselves: read from the device or from saved outputs, compared, judged, kept."""

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
    """What devices say of themselves, one ``Inspection`` a device and point in time, oldest first.

    A target is a block device (``/dev/sda``, a link to it, a partition), saved outputs of ``smartctl``, ``hdparm -I``
    or ``nvme`` (a file, or a folder of them), or any large file, which stands for the device that it lies on. Saved
    outputs of one device are joined by its serial number, where model, WWN and protocol agree; serial numbers that name
    no device (``REDACTED``, those of USB bridges) join nothing.

    ``save`` is a folder that keeps the raw outputs of devices; ``device_type`` is passed to ``smartctl -d``. Nothing is
    written to a device. What could not be read is in ``Inspection.notes``, one line each.

    Raises ``InputError`` naming file, line or field when a target cannot be read.

    >>> said = '{"smartctl": {"version": [7, 4]}, "model_name": "A disk", "serial_number": "S1"}'
    >>> _ = Path("disk.json").write_text(said)
    >>> hs.inspect("disk.json")[0].identity.serial
    'S1'
    """
    from headstack.diagnosis.inspection.collect import collect  # start-up time

    return collect([os.fspath(t) for t in targets], None if save is None else os.fspath(save), device_type)


def compare(good: Sequence[Inspection], bad: Sequence[Inspection], others: Sequence[Inspection] = ()) -> Difference:
    """Capabilities side by side, and which of them divide the good devices from the bad ones."""
    from headstack.diagnosis.inspection.diff import Difference  # start-up time

    return Difference(good=list(good), bad=list(bad), others=list(others))


def judge(inspection: Inspection) -> Judgement:
    """The verdict on a device (``pass``, ``watch``, ``replace``; ``unknown`` without health data), with its reasons."""
    from headstack.diagnosis.inspection.verdict import judge as judged  # start-up time

    return judged(inspection)
