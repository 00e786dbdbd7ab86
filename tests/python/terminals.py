"""Runs the command line on a pseudo-terminal of any width."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(arguments: list[str], columns: int, folder: Path, **environment: str) -> str:
    """Returns a command's output on a terminal of this width; stderr goes elsewhere."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-c", "from headstack.cli.start import main; main()", *arguments],
        cwd=folder,
        env=inherited | {"TERM": "xterm-256color"} | environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    shown = b""
    try:
        while more := _read(ours):
            shown += more
        _, told = process.communicate(timeout=100)
    finally:
        os.close(ours)
        process.kill()
    assert process.returncode == 0, told.decode()
    return shown.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        # The other end is closed.
        return b""
