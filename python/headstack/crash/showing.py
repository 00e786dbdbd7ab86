"""Presents a state to a check: as a file of its own, through an NBD server, or as a file of a FUSE mount."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from headstack import _native

if TYPE_CHECKING:
    from headstack.crash.recorded import Recorded
    from headstack.crash.states import Rules

WAYS = ("file", "nbd", "fuse")

StateDevice = _native.CrashImage | _native.CrashedDevice


@contextmanager
def present_states(recording: Recorded, rules: Rules, over: str, folder: Path) -> Iterator[tuple[StateDevice, str]]:
    """Yields a device that switches between states, with its path or address, in a folder of its own."""
    arguments = (str(folder), recording.native, recording.base, rules)
    if over == "file":
        image = _native.CrashImage(*arguments)
        yield image, str(image.path)
        return
    device = _native.CrashedDevice(*arguments, over)
    try:
        yield device, f"nbd+unix:///?socket={quote(str(device.place))}" if over == "nbd" else str(device.place)
    finally:
        device.close()
