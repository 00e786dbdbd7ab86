"""``Link``: the connection to an agent through a program's stdin and stdout, usually ssh."""

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
"""Maximum length of the path of a Unix socket (`sun_path`) in bytes, without the terminating zero."""
AGENT = "measure-agent"
"""The hidden command that starts the agent."""
SSH_OPTIONS = (
    "-T",
    "-oBatchMode=yes",
    "-oConnectTimeout=15",
    # A lost network is detected within 15 s.
    "-oServerAliveInterval=5",
    "-oServerAliveCountMax=3",
)
PERSIST_S = 60
"""Seconds for which ssh keeps a connection for the next measurement."""
GOODBYE_S = 5.0


@dataclass(frozen=True)
class ReceivedMessage:
    """A message from a host."""

    host: str
    at_ns: int
    """Time of arrival, by our monotonic clock."""
    message: FromAgent | None
    """The message; ``None`` at the end of the connection."""


class Link(Protocol):
    """A connection to an agent."""

    def send(self, message: ToAgent) -> None:
        """Sends a line. A failure is received as the end of the connection."""

    def end_reason(self) -> str:
        """Returns the reason why the connection ended, in one line."""

    def hang_up(self) -> None:
        """Closes the agent's stdin, so that it ends."""

    def close(self) -> None:
        """Waits until the connection is closed, and kills the program if this takes too long."""


class ProgramLink:
    """A program that connects to an agent. If this process ends in any way, the program's stdin closes, and so does the
    agent's.
    """

    def __init__(self, host: str, command: Sequence[str], received: queue.SimpleQueue[ReceivedMessage]) -> None:
        self._host, self._received = host, received
        self._program = command[0]
        # An ssh master that stays in the background for the next measurement keeps its stderr open; a pipe would never
        # end.
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        # Only this process handles Ctrl-C on the terminal, because it still has to receive results.
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
                message = json.loads(line)
            except ValueError:
                # Output of a login shell.
                continue
            self._received.put(ReceivedMessage(self._host, at_ns, message))
        self._received.put(ReceivedMessage(self._host, time.monotonic_ns(), None))

    def send(self, message: ToAgent) -> None:
        """Sends a line."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line_of(message))
            self._process.stdin.flush()
        except (OSError, ValueError):
            # The reader detects the end of the connection.
            pass

    def end_reason(self) -> str:
        """Returns the program's exit code or signal, and the last line that it wrote to stderr."""
        try:
            code = self._process.wait(GOODBYE_S)
        except subprocess.TimeoutExpired:
            return f"{self._program} stopped responding"
        self._stderr.seek(0)
        words = self._stderr.read().decode(errors="replace").strip().splitlines()
        last = f": {words[-1].strip()}" if words else ""
        ending = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
        return f"{os.path.basename(self._program)} {ending}{last}"

    def hang_up(self) -> None:
        """Closes the agent's stdin."""
        assert self._process.stdin is not None
        # The receiver of the buffered data may be gone.
        with suppress(OSError):
            self._process.stdin.close()

    def close(self) -> None:
        """Waits for the program, and kills it with all its children if it does not end."""
        try:
            self._process.wait(GOODBYE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._stderr.close()


def ssh_link(host: Host, ssh: str, remote: str, heard: queue.SimpleQueue[ReceivedMessage]) -> ProgramLink:
    """Connects to a host by ssh. Raises ``InputError`` if the ssh program does not exist."""
    command = ssh_command(host, ssh, remote)
    try:
        return ProgramLink(host.name, command, heard)
    except OSError as error:
        raise InputError(f"--ssh-command: {command[0]}: {error.strerror}") from None


def ssh_command(host: Host, ssh: str, remote: str) -> list[str]:
    """Returns the command that starts the agent of a host. Options in ``ssh`` come before headstack's options.

    >>> ssh_command(Host("a", "root@a", 2222), "ssh -4", "headstack")[-5:]
    ['-p', '2222', '--', 'root@a', 'headstack measure-agent']
    """
    command = [*shlex.split(ssh), *SSH_OPTIONS, *_kept_connection()]
    if host.port is not None:
        command += ["-p", str(host.port)]
    return [*command, "--", host.address, f"{remote} {AGENT}"]


def _kept_connection() -> list[str]:
    """Returns options that keep ssh's connection to a host for the next measurement, if there is a private folder for
    its socket.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) if runtime else Path.home() / ".ssh"
    if not folder.is_dir():
        return []
    path = f"{folder}/headstack-%C"
    # For %C, ssh inserts 40 digits, and 17 more characters while it begins to listen; the path of a socket has at most
    # 107.
    if len(os.fsencode(path)) + 38 + 17 > SOCKET_PATH_MAX:
        return []
    return ["-oControlMaster=auto", f"-oControlPath={path}", f"-oControlPersist={PERSIST_S}"]
