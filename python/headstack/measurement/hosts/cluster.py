"""Workers of a Dask cluster as hosts: each runs one agent and relays its messages.

Every line passes through the scheduler, which takes milliseconds; the resulting clock error is reported as for any
other link.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from headstack.io.json_text import line_of
from headstack.measurement.hosts.host import Host
from headstack.measurement.hosts.link import AGENT, GOODBYE_S, ReceivedMessage
from headstack.measurement.hosts.session import Open
from headstack.simulation.chunks.cluster import client_of

if TYPE_CHECKING:
    from headstack.measurement.hosts.messages import ToAgent

LOOK_S = 2.0
"""Interval in seconds at which a silent worker is checked."""


def relay(session: str) -> str:
    """Runs an agent on a worker until the session ends, and returns the agent's last line on stderr."""
    distributed: Any = import_module("distributed")
    client = distributed.get_client()
    there, back = (distributed.Queue(f"{session}-{way}", client=client) for way in ("there", "back"))
    agent = subprocess.Popen(
        [sys.executable, "-m", "headstack", AGENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert agent.stdin is not None
    last_lines: list[str] = []

    def forward() -> None:
        for line in agent.stdout or ():
            back.put(line.decode())
        last_lines.extend(line.decode(errors="replace").strip() for line in agent.stderr or ())
        back.put(None)

    forwarding = threading.Thread(target=forward, daemon=True)
    forwarding.start()
    while agent.poll() is None:
        try:
            # An agent that receives no messages for a while ends, and so does this relay.
            line = there.get(timeout=1)
        except TimeoutError:
            continue
        if line is None:
            break
        try:
            agent.stdin.write(line.encode())
            agent.stdin.flush()
        except OSError:
            break
    with suppress(OSError):
        agent.stdin.close()
    code = agent.wait()
    forwarding.join(GOODBYE_S)
    return f"the agent ended with {code}" + (f": {last_lines[-1]}" if last_lines else "")


class WorkerLink:
    """The link to the agent of one worker."""

    def __init__(self, distributed: Any, client: Any, host: Host, received: queue.SimpleQueue[ReceivedMessage]) -> None:
        self._distributed, self._client, self._host, self._received = distributed, client, host, received
        session = uuid.uuid4().hex
        self._there = distributed.Queue(f"{session}-there", client=client)
        self._back = distributed.Queue(f"{session}-back", client=client)
        self._future = client.submit(relay, session, workers=[host.address], allow_other_workers=False, pure=False)
        self._is_closed = False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while not self._is_closed:
            try:
                line = self._back.get(timeout=LOOK_S)
            except TimeoutError:
                if self._is_there():
                    continue
                line = None
            except Exception:
                # The scheduler is gone, or the measurement has ended.
                line = None
            if line is None:
                break
            self._received.put(ReceivedMessage(self._host.name, time.monotonic_ns(), json.loads(line)))
        self._received.put(ReceivedMessage(self._host.name, time.monotonic_ns(), None))

    def _is_there(self) -> bool:
        return (
            self._future.status == "pending"
            and self._host.address in self._client.scheduler_info(n_workers=-1)["workers"]
        )

    def send(self, message: ToAgent) -> None:
        """Sends a line."""
        if not self._is_closed:
            self._there.put(line_of(message).decode())

    def end_reason(self) -> str:
        """Returns the reason why the agent or its worker ended."""
        try:
            return str(self._future.result(timeout=GOODBYE_S))
        except TimeoutError:
            return "the worker is gone"
        except Exception as error:
            return f"the worker failed: {error}"

    def hang_up(self) -> None:
        """Makes the relay close the agent's stdin."""
        if not self._is_closed:
            self._there.put(None)
            self._is_closed = True

    def close(self) -> None:
        """Waits for the relay."""
        try:
            self._future.result(timeout=GOODBYE_S)
        except Exception:
            # The relay is already gone, or will end without further messages.
            self._future.cancel()


@contextmanager
def workers(name: str) -> Iterator[tuple[list[Host], Open]]:
    """Yields the workers of ``dask://HOST:PORT`` as hosts with their addresses, and a function that opens a link to a
    host.

    Raises ``InputError`` if there is no scheduler or no worker, or if a worker runs another build than this process.
    """
    with client_of(name) as (distributed, client):
        addresses = sorted(client.scheduler_info(n_workers=-1)["workers"])
        hosts = [_host_of(address) for address in addresses]
        yield hosts, lambda host, received: WorkerLink(distributed, client, host, received)


def _host_of(address: str) -> Host:
    place = address.partition("://")[2]
    port = place.rpartition(":")[2]
    return Host(place, address, int(port) if port.isdigit() else None)
