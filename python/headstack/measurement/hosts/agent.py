"""The agent of ``headstack measure --hosts``, which measures on its host when the controller requests it.

It exchanges lines of JSON on stdin and stdout, and listens on no port. When stdin ends, or the controller has been
silent for a while, it ends its measurement and exits.
"""

from __future__ import annotations

import json
import os
import queue
import select
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from headstack import _native
from headstack._native import InputError, RunError
from headstack.catalogue.scenario import Scenario
from headstack.catalogue.workload import Workload
from headstack.io.json_text import line_of
from headstack.measurement.access import Access
from headstack.measurement.jobfiles.job_file import JobFile
from headstack.measurement.jobfiles.jobs import measure_file
from headstack.measurement.measurement import prepared, scenario_measured
from headstack.results.results import Results

if TYPE_CHECKING:
    from headstack.measurement.hosts.messages import Clocks, FromAgent, Hello, HostRequest, Over, ToAgent
    from headstack.measurement.specs import ProgressReport

PROTOCOL = 2
"""Version of the messages, which must be equal on both sides."""
PROGRESS_EVERY_S = 0.2
"""Minimum interval between reports of progress."""
SILENCE_S = 30.0
"""Maximum silence of the controller in seconds, after which the session ends; it sends a message every few seconds."""
LEAVE_S = 5.0
"""Time in seconds for requests in progress to end after the controller is gone."""
EXIT_GONE = 3
"""Exit code if requests in progress did not end; the code of a failed run (docs/results.md)."""


def hello() -> Hello:
    """Returns the build of this process."""
    return {"protocol": PROTOCOL, "schema": _native.RESULT_SCHEMA, "version": _native.version()}


class Agent:
    """One session on two file descriptors."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self._one_line = threading.Lock()
        self._requests: queue.SimpleQueue[HostRequest | None] = queue.SimpleQueue()
        self._starts: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._is_ending = False
        self._is_alone = False
        self._began: deque[int] = deque()
        self._reported_s = 0.0

    def serve(self) -> None:
        """Runs one measurement, and returns when the controller has said goodbye."""
        _native.begin_together(self._ready, self._began.append)
        threading.Thread(target=self._listen, daemon=True).start()
        self._send({"hello": hello()})
        request = self._requests.get()
        if request is None:
            return
        try:
            self._send({"over": self._measure(request)})
        except KeyboardInterrupt:
            self._send({"failed": {"kind": "run", "message": "stopped by hand"}})
        except InputError as error:
            self._send({"failed": {"kind": "input", "message": str(error)}})
        except (RunError, OSError) as error:
            self._send({"failed": {"kind": "run", "message": str(error)}})
        # A further reading of the clock.
        self._requests.get()

    def _send(self, message: FromAgent) -> None:
        line = line_of(message)
        with self._one_line:
            try:
                while line:
                    line = line[os.write(self._sink, line) :]
            except OSError:
                # The controller is gone, so stdin is about to end.
                self._is_alone = True

    # Messages from the controller.

    def _listen(self) -> None:
        rest = b""
        while True:
            if not select.select([self._source], [], [], SILENCE_S)[0]:
                break
            try:
                received = os.read(self._source, 1 << 16)
            except OSError:
                break
            read_at = (_native.clock_ns(), time.time_ns(), _native.clock_ns())
            if not received:
                break
            *lines, rest = (rest + received).split(b"\n")
            for line in lines:
                self._receive(json.loads(line), read_at)
        self._leave()

    def _receive(self, message: ToAgent, read_at: Clocks) -> None:
        if "clock" in message:
            self._send({"clock": (message["clock"], read_at, _native.clock_ns())})
        elif "measure" in message:
            self._requests.put(message["measure"])
        elif "start" in message:
            self._starts.put(message["start"])
        elif "end" in message:
            self._end()
        elif "alive" in message:
            self._send({"alive": True})

    def _end(self) -> None:
        self._is_ending = True
        _native.ask_to_end()
        self._starts.put(None)

    def _leave(self) -> None:
        """Ends the measurement after the controller is gone."""
        self._is_alone = True
        self._end()
        self._requests.put(None)
        self._requests.put(None)
        time.sleep(LEAVE_S / 2)
        # Requests that do not complete are abandoned.
        _native.ask_to_end()
        time.sleep(LEAVE_S / 2)
        os._exit(EXIT_GONE)

    # The measurement.

    def _ready(self) -> int | None:
        if self._is_ending:
            return None
        self._send({"ready": True})
        return self._starts.get()

    def _progress(self, now: ProgressReport) -> None:
        at_s = time.monotonic()
        if at_s - self._reported_s >= PROGRESS_EVERY_S or now["ending"]:
            self._reported_s = at_s
            self._send({"progress": now})

    def _keep(self, results: Results) -> None:
        """Sends each result as soon as its measurement ends."""
        columns = _columns()
        for index in range(len(results)):
            row = results[index]
            labels = {name: text for name, text in row.items() if name not in columns}
            whole = results._native.to_json(index)
            self._send({"result": {"began_ns": self._began.popleft(), "labels": labels, "whole": whole}})

    def _measure(self, request: HostRequest) -> Over:
        fields = request["access"]
        access = Access(**{**fields, "destroy": tuple(fields["destroy"]), "over": tuple(fields["over"])})
        options, places = request["options"], request["targets"]
        if request["file"] is not None:
            parsed = request["file"]
            file = JobFile(**{**parsed, "phases": tuple(parsed["phases"]), "remarks": tuple(parsed["remarks"])})
            chosen = {name: value for name, [value] in options.items()}
            done = measure_file(file, places, access, chosen, self._progress, keep=self._keep)
            return {"remarks": done.remarks[len(file.remarks) :], "stopped": done.stopped, "disks": done.disks}
        [path] = places
        if request["scenario"] is not None:
            scenario = Scenario(dict(request["scenario"]))
            self._keep(scenario_measured(path, scenario, request["luns"], access, options, self._progress))
            return {"remarks": [], "stopped": None, "disks": []}
        demands = (
            None
            if request["workloads"] is None
            else [Workload(dict(description)) for description in request["workloads"]]
        )
        opened, steps = prepared(path, demands, access, options)
        for results in opened.each(steps, self._progress):
            self._keep(results)
        return {"remarks": [], "stopped": None, "disks": []}


def _columns() -> set[str]:
    """Returns the columns that every result has; further columns are labels of a sweep."""
    return {field.name for table, fields in _native.result_fields() if table == "results" for field in fields}


def serve() -> None:
    """Serves on stdin and stdout, and redirects other output of the process to stderr."""
    sink = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    Agent(0, sink).serve()
