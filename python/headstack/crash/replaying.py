"""Repeats a finding from its reproducer."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path

from headstack import _native
from headstack._native import InputError
from headstack.crash.checks import Function, check_of
from headstack.crash.recording import Recording
from headstack.crash.showing import present_states
from headstack.io.atomic_files import write_all

PART_BYTES = 1 << 20


def replay_finding(recording: Recording, check: str | Function | None = None, output: str | None = None) -> str | None:
    """Returns the result of a check on the state of a reproducer, by default of its own check; writes the image after
    the crash to ``output``. Raises ``InputError`` if the recording is not a reproducer."""
    reproduced = recording.reproduced
    if reproduced is None:
        raise InputError(f"{recording.path}: not a reproducer of crash explore")
    parsed = check_of(reproduced["check"] if check is None else check)
    # Another check than the original one may require a file.
    over = reproduced["over"] if parsed.takes_address or reproduced["over"] != "nbd" else "file"
    state, rules = reproduced["state"], reproduced["rules"]
    folder = _native.crash_folder(recording.native, recording.base, 1)
    with tempfile.TemporaryDirectory(prefix="headstack-crash-", dir=folder) as name:
        parts = [Path(name, part) for part in ("output", "device", "check")]
        for part in parts:
            part.mkdir()
        if output is not None:
            image = _native.CrashImage(str(parts[0]), recording.native, recording.base, rules)
            image.take(state)
            write_all([(output, partial(copy, image.path))])
        with present_states(recording, rules, over, parts[1]) as (device, address):
            device.take(state)
            return parsed.find_fault(address, recording.native.marks_before(reproduced["state"]["events"]), parts[2])


def copy(image: Path, to: Path) -> None:
    """Copies an image with its holes."""
    with image.open("rb") as source, to.open("wb") as target:
        size = os.fstat(source.fileno()).st_size
        target.truncate(size)
        at = 0
        while at < size:
            try:
                at = os.lseek(source.fileno(), at, os.SEEK_DATA)
            except OSError:
                # The rest of the file is a hole.
                return
            end = os.lseek(source.fileno(), at, os.SEEK_HOLE)
            while at < end:
                part = os.pread(source.fileno(), min(PART_BYTES, end - at), at)
                os.pwrite(target.fileno(), part, at)
                at += len(part)
