"""The way to an agent: a program whose stdin and stdout are the agent's, mostly ssh."""

from __future__ import annotations

import json
import os
import queue
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from headstack._native import InputError
from headstack.io.json_text import line_of
from headstack.measurement.hosts.host import Host

if TYPE_CHECKING:
    from headstack.measurement.hosts.messages import FromAgent, ToAgent

SOCKET_PATH_MAX = 107
"""Bytes of the path of a Unix socket (`sun_path`), without the zero at its end."""
AGENT = "measure-agent"
"""The hidden command of the far side."""
SSH_OPTIONS = (
    "-T",
    "-oBatchMode=yes",
    "-oConnectTimeout=15",
    # A network that is gone is noticed within 15 s.
    "-oServerAliveInterval=5",
    "-oServerAliveCountMax=3",
)
KEPT_S = 60
"""So long ssh keeps a connection for the next measurement."""
GOODBYE_S = 5.0


@dataclass(frozen=True)
class Heard:
    """A message from a host."""

    host: str
    at_ns: int
    """By our clock of measurements."""
    said: FromAgent | None
    """``None`` where nothing will come any more."""


class Link(Protocol):
    """A way to an agent."""

    def say(self, said: ToAgent) -> None:
        """Sends a line; one that cannot be sent is followed by an end of what comes."""

    def why(self) -> str:
        """Why nothing comes any more, in a line."""

    def hang_up(self) -> None:
        """Says goodbye: the agent is to end."""

    def close(self) -> None:
        """Waits until the way is gone, and ends it where that takes long."""


class ProgramLink:
    """A program that leads to an agent. Whatever ends this process closes the program's stdin, and the agent's too."""

    def __init__(self, host: str, command: Sequence[str], heard: queue.SimpleQueue[Heard]) -> None:
        self._host, self._heard = host, heard
        self._program = command[0]
        # ssh that goes on in the background for the next measurement keeps its stderr; a pipe would never end.
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        # Ctrl-C on the terminal is for us alone: what was measured is still to come.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            at_ns = time.monotonic_ns()
            try:
                said = json.loads(line)
            except ValueError:
                # A shell that greets.
                continue
            self._heard.put(Heard(self._host, at_ns, said))
        self._heard.put(Heard(self._host, time.monotonic_ns(), None))

    def say(self, said: ToAgent) -> None:
        """Sends a line."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line_of(said))
            self._process.stdin.flush()
        except (OSError, ValueError):
            # The reader will hear of the end.
            pass

    def why(self) -> str:
        """How the program ended, and its last word."""
        try:
            code = self._process.wait(GOODBYE_S)
        except subprocess.TimeoutExpired:
            return f"{self._program} said nothing any more"
        self._stderr.seek(0)
        words = self._stderr.read().decode(errors="replace").strip().splitlines()
        last = f": {words[-1].strip()}" if words else ""
        how = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
        return f"{os.path.basename(self._program)} {how}{last}"

    def hang_up(self) -> None:
        """Closes the agent's stdin."""
        assert self._process.stdin is not None
        # What was to be sent still may have nobody to go to.
        with suppress(OSError):
            self._process.stdin.close()

    def close(self) -> None:
        """Waits for the program, and ends it and all that it began where it does not end by itself."""
        try:
            self._process.wait(GOODBYE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._stderr.close()


def ssh_link(host: Host, ssh: str, remote: str, heard: queue.SimpleQueue[Heard]) -> ProgramLink:
    """The way to a host by ssh. Raises ``InputError`` where there is no such program."""
    command = ssh_command(host, ssh, remote)
    try:
        return ProgramLink(host.name, command, heard)
    except OSError as error:
        raise InputError(f"--ssh-command: {command[0]}: {error.strerror}") from None


def ssh_command(host: Host, ssh: str, remote: str) -> list[str]:
    """What leads to the agent of a host; options of ``ssh`` itself go before ours.

    >>> ssh_command(Host("a", "root@a", 2222), "ssh -4", "headstack")[-5:]
    ['-p', '2222', '--', 'root@a', 'headstack measure-agent']
    """
    command = [*shlex.split(ssh), *SSH_OPTIONS, *_kept_connection()]
    if host.port is not None:
        command += ["-p", str(host.port)]
    return [*command, "--", host.address, f"{remote} {AGENT}"]


def _kept_connection() -> list[str]:
    """Where ssh keeps the connection to a host for the next time, if there is a folder of nobody else's."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) if runtime else Path.home() / ".ssh"
    if not folder.is_dir():
        return []
    path = f"{folder}/headstack-%C"
    # ssh has 40 digits for %C, and while it begins to listen 17 characters more; a socket's path is of at most 107.
    if len(os.fsencode(path)) + 38 + 17 > SOCKET_PATH_MAX:
        return []
    return ["-oControlMaster=auto", f"-oControlPath={path}", f"-oControlPersist={KEPT_S}"]
