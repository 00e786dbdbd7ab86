"""``Logs``: the logs that fio jobs request, with latency, bandwidth and IOPS over time, as fio 3.33 writes them
(``iolog.c``).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from headstack.io.atomic_files import write_all

if TYPE_CHECKING:
    from headstack.measurement.jobfiles.job_file import JobFile
    from headstack.measurement.jobfiles.phases import JobPhase, PhaseJob

Row = tuple[int, str, int, int, int, int, bool, int]
"""A request: job, kind, offset, length, due time, response time, whether it failed, and its submission time."""

DIRECTIONS = {"read": 0, "write": 1, "trim": 2}
"""Codes of directions in logs, which do not contain flushes."""

MEASURES = {"write_lat_log": ("lat", "slat", "clat"), "write_bw_log": ("bw",), "write_iops_log": ("iops",)}
"""Logs that each fio option writes."""


def options_of(file: JobFile, job: PhaseJob) -> dict[str, str]:
    """Returns the options of a job as written, including those of all jobs of the file."""
    return {**file.options, **dict(job["as_written"])}


@dataclass
class Thread:
    """One copy of a job, which has its own logs."""

    number: int
    """Number of the copy among all copies of all jobs of the file, from 1."""
    name: str
    options: dict[str, str]
    window_ms: int
    is_async: bool
    file_bytes: int | None
    began_ns: int | None = None
    windows: dict[tuple[int, int], list[tuple[int, int, int, int]]] = field(default_factory=dict)
    """Lengths, latencies, submission and completion times, by window and direction."""
    last_ns: int = 0

    def path(self, option: str, measure: str) -> str:
        """Returns the path of a log, with fio's naming."""
        stem = os.path.expandvars(self.options[option]) or self.name
        alone = self.options.get("per_job_logs", "1") == "1"
        return f"{stem}_{measure}.{self.number}.log" if alone else f"{stem}_{measure}.log"


class Logs:
    """Logs of all jobs. During the run they are unnamed files, which are moved to their paths at the end."""

    def __init__(self, file: JobFile, phases: Sequence[JobPhase]) -> None:
        self._threads: list[list[Thread]] = []
        self._written: dict[str, IO[str]] = {}
        number = 0
        for phase in phases:
            threads = []
            for job in phase["jobs"]:
                options = options_of(file, job)
                for _ in range(max(1, job["copies"])):
                    number += 1
                    window_ms = int(options.get("log_avg_msec", "0") or 0)
                    size = job["file_bytes"] if len(job["targets"]) > 1 else None
                    threads.append(Thread(number, job["name"], options, window_ms, job["engine"] == "ring", size))
            self._threads.append(threads)
        for thread in (thread for threads in self._threads for thread in threads):
            for option, measures in MEASURES.items():
                if option in thread.options:
                    for measure in measures:
                        self._open(thread.path(option, measure))

    def _open(self, path: str) -> None:
        if path not in self._written:
            # Closed, and thereby deleted, after the logs have been moved.
            self._written[path] = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115

    @property
    def are_wanted(self) -> bool:
        """Whether any job requests a log."""
        return bool(self._written)

    def take(self, phase: int, rows: Iterable[Row]) -> None:
        """Adds completed requests of a phase."""
        threads = self._threads[phase]
        rows = list(rows)
        for thread_index, thread in enumerate(threads):
            if thread.began_ns is None:
                own = [row[4] for row in rows if row[0] == thread_index]
                thread.began_ns = min(own) if own else None
        for row in rows:
            index, kind, offset, length, due_ns, response_ns, failed, handing_ns = row
            direction = DIRECTIONS.get(kind)
            if direction is None or failed:
                continue
            thread = threads[index]
            at_ns = max(0, due_ns + response_ns - (thread.began_ns or 0))
            thread.last_ns = max(thread.last_ns, at_ns)
            if thread.window_ms:
                window = at_ns // (thread.window_ms * 1_000_000)
                entry = (length, response_ns, handing_ns, response_ns - handing_ns)
                thread.windows.setdefault((window, direction), []).append(entry)
                continue
            place = offset if thread.file_bytes is None else offset % thread.file_bytes
            completion_ns = response_ns - handing_ns
            values = {
                "lat": response_ns,
                "slat": handing_ns if thread.is_async else None,
                "clat": completion_ns,
                "bw": length * 1_000_000 // max(completion_ns, 1),
                "iops": 1,
            }
            for option, measures in MEASURES.items():
                if option in thread.options:
                    for measure in measures:
                        self._line(
                            thread, option, measure, at_ns // 1_000_000, values[measure], direction, length, place
                        )

    def _line(
        self,
        thread: Thread,
        option: str,
        measure: str,
        at_ms: int,
        value: int | None,
        direction: int,
        length: int,
        offset: int,
    ) -> None:
        if value is None:
            return
        places = f", {offset}" if thread.options.get("log_offset") == "1" else ""
        # The last column is the priority, which no request has.
        self._written[thread.path(option, measure)].write(f"{at_ms}, {value}, {direction}, {length}{places}, 0\n")

    def end(self, phase: int) -> None:
        """Ends a phase, and averages the windows of its threads; the last window has its actual length."""
        for thread in self._threads[phase]:
            for (window, direction), entries in sorted(thread.windows.items()):
                end_ms = min((window + 1) * thread.window_ms, max(1, thread.last_ns // 1_000_000))
                length_s = max(end_ms - window * thread.window_ms, 1) / 1000
                count = len(entries)

                def mean(column: int, entries: list[tuple[int, int, int, int]] = entries) -> int:
                    return sum(entry[column] for entry in entries) // len(entries)

                values = {
                    "lat": mean(1),
                    "slat": mean(2) if thread.is_async else None,
                    "clat": mean(3),
                    "bw": int(sum(entry[0] for entry in entries) / 1024 / length_s),
                    "iops": int(count / length_s),
                }
                for option, measures in MEASURES.items():
                    if option in thread.options:
                        for measure in measures:
                            self._line(thread, option, measure, end_ms, values[measure], direction, 0, 0)
            thread.windows.clear()

    def write(self) -> None:
        """Moves all logs to their paths, or none."""

        def copy(text: IO[str], path: Path) -> None:
            text.seek(0)
            with open(path, "w", encoding="ascii") as out:
                out.writelines(text)

        try:
            write_all([(path, lambda to, text=text: copy(text, to)) for path, text in self._written.items()])  # type: ignore[misc]
        finally:
            for text in self._written.values():
                text.close()
            self._written.clear()
