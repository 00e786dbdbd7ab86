"""Extracts JSON objects from fio's output, which may contain notes, and numbers that JSON lacks."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headstack._native import InputError

Fields = dict[str, Any]

NO_NUMBER = re.compile(r"(:\s*)-?(?:nan|inf)\b", re.IGNORECASE)
"""Output of C's printf for 0/0 and 1/0, which means that a figure is unknown."""
OPENING = re.compile(r"^[ \t]*(\{)", re.MULTILINE)
CLIENT = ("hostname", "port")
"""Fields that distinguish clients."""
HOW = "create it with fio --output-format=json"
STEP_S = 1.5
"""Tolerance in seconds, because fio reports run times in whole seconds."""


def read(path: str | os.PathLike[str]) -> list[Fields]:
    """Returns one document for each run in a file. With ``--status-interval``, this is the last document of the run.

    Raises ``InputError`` if the file has no document, or a truncated one.
    """
    name = os.fspath(path)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return documents(file.read())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=name) from None
    except InputError as error:
        raise InputError(f"{error}", file=name) from None


def documents(text: str) -> list[Fields]:
    """Returns the documents of a text.

    >>> [document["jobs"] for document in documents('fio: a note\\n{"jobs": []}\\nmore {text}\\n')]
    [[]]
    """
    runs: list[Fields] = []
    for document in _objects(NO_NUMBER.sub(r"\1null", text)):
        if jobs_of(document) is None:
            continue
        if runs and _is_later(document, runs[-1]):
            runs.pop()
        runs.append(document)
    if not runs:
        raise InputError(f"contains no fio JSON; {HOW}")
    return runs


def jobs_of(document: Mapping[str, Any]) -> list[Fields] | None:
    """Returns the jobs of a document. Jobs of a server's clients have a different key; the last of them is the sum."""
    jobs = document.get("jobs")
    if jobs is None and isinstance(document.get("client_stats"), list):
        jobs = [job for job in document["client_stats"] if job.get("jobname") != "All clients"]
    return jobs if isinstance(jobs, list) else None


def shared_of(document: Mapping[str, Any], job: Mapping[str, Any]) -> Fields:
    """Returns the options common to all jobs. For several clients, later versions of fio have a list of options by
    client.
    """
    shared = document.get("global options") or {}
    if isinstance(shared, list):
        own = [options for options in shared if all(options.get(name) == job.get(name) for name in CLIENT)]
        shared = own[0] if own else {}
    return {name: value for name, value in shared.items() if name not in CLIENT}


def _objects(text: str) -> Iterator[Fields]:
    # File names may contain any characters.
    decoder = json.JSONDecoder(strict=False)
    at = 0
    while opening := OPENING.search(text, at):
        start = opening.start(1)
        try:
            document, at = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            if not re.match(r"\{\s*(\"|\})", text[start:]):
                # The brace is part of a note.
                at = start + 1
                continue
            raise InputError(f"line {error.lineno}: the JSON is cut off or damaged: {error.msg}") from None
        if isinstance(document, dict):
            yield document


def _is_later(document: Fields, before: Fields) -> bool:
    """Whether a document is a later status of the run in the previous document.

    Another run starts after the time of the earlier document; within one run, the time between documents equals the
    difference of their run times.
    """
    jobs, jobs_before = jobs_of(document) or [], jobs_of(before) or []
    if [_identity(job) for job in jobs] != [_identity(job) for job in jobs_before]:
        return False
    end_s, end_before_s = ended_s(document), ended_s(before)
    if end_s is None or end_before_s is None:
        return False
    grown_s = _elapsed_s(jobs) - _elapsed_s(jobs_before)
    runtimes = [float(_results_of(job, kind).get("runtime") or 0) for job in jobs for kind in ("read", "write")]
    # A time without milliseconds, such as that of a client, may be a second early.
    coarse_s = 1e-3 if "timestamp_ms" in document else 1.0
    has_begun_before = end_s - max(runtimes, default=0.0) / 1e3 < end_before_s - coarse_s
    return has_begun_before or (grown_s >= 1 and abs(end_s - end_before_s - grown_s) <= STEP_S)


def _identity(job: Fields) -> tuple[Any, ...]:
    """Returns the job's name and client, which repeat in each status of a run."""
    return (job.get("jobname"), *(job.get(name) for name in CLIENT))


def ended_s(document: Mapping[str, Any]) -> float | None:
    """Returns the time at which a document was printed, in seconds since the epoch."""
    if isinstance(document.get("timestamp_ms"), int | float):
        return float(document["timestamp_ms"]) / 1e3
    return float(document["timestamp"]) if isinstance(document.get("timestamp"), int | float) else None


def _elapsed_s(jobs: Sequence[Fields]) -> float:
    return max((float(job.get("elapsed") or 0) for job in jobs), default=0.0)


def _results_of(job: Mapping[str, Any], kind: str) -> Fields:
    results = job.get(kind)
    return results if isinstance(results, dict) else {}
