"""Reader of periodic ``ceph osd perf``, as JSON or as a table."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any

from headstack._native import InputError
from headstack.diagnosis.judging.latencies import time_text
from headstack.diagnosis.judging.sources.files import How, Row, blocks, stem
from headstack.diagnosis.judging.sources.series import Sample, intervals
from headstack.diagnosis.judging.suspects.statements import Statement
from headstack.diagnosis.judging.verdict import Suspect

CAVEATS = (
    "ceph smooths latencies: slowness of some seconds is spread over time",
    "ceph does not count requests: the load is unknown, and so is the number of requests behind a latency",
)

TABLE = re.compile(r"^\s*osd\s+(fs_)?commit_latency\(ms\)", re.MULTILINE)
WHOLE_MS = "ceph's table has whole milliseconds: latencies below 1 ms are not resolved"


def rows(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields commit latencies of OSDs, from document to document."""
    host = how.host or stem(paths[0] if len(paths) == 1 else paths[0].parent)
    samples = _samples(paths, how)
    latencies: dict[str, list[float]] = defaultdict(list)
    for start_s, length_s, answer in intervals(samples, how, "ceph", "", drops_unsure=True):
        for osd, latency_s in answer.items():
            latencies[osd].append(latency_s or 0.0)
        for osd, latency_s in answer.items():
            yield Row(host, f"osd.{osd}", start_s, length_s, {"latency_s": latency_s})
    how.statements += _outliers({osd: fmean(of) for osd, of in latencies.items()})


OUTLIER, LEAST_S = 3.0, 0.02
"""Ratio to the median of the other OSDs, and latency, from which an OSD is unlike them."""


def _outliers(means_s: Mapping[str, float]) -> list[Statement]:
    """Returns the OSDs that are slower than the others, and a statement on each of the others."""
    if len(means_s) < 3:
        return []
    stated = []
    for osd, mean_s in means_s.items():
        others_s = median(of for other, of in means_s.items() if other != osd)
        evidence = f"commits take {time_text(mean_s)}, those of the other OSDs {time_text(others_s)} (median)"
        is_outlier = mean_s >= max(LEAST_S, OUTLIER * others_s)
        weights: dict[Suspect, float] = {"device": 1.5, "none": -1.0} if is_outlier else {"device": -2.0}
        stated.append(Statement(f"osd.{osd}", evidence, weights, False, "ceph osd perf", NEEDED))
    return stated


NEEDED = "ceph osd perf -f json every 10 s for an hour, and iostat -x 5 of the host of the OSD"


def _samples(paths: list[Path], how: How) -> Iterator[Sample[dict[str, float | None]]]:
    is_first = True
    for block in blocks(paths, how):
        for answer in _answers("".join(block.lines), paths[0], how):
            yield Sample(block.time_s, answer, is_first=is_first)
            is_first = False


def _answers(text: str, path: Path, how: How) -> Iterator[dict[str, float | None]]:
    """Yields the latencies of OSDs, from answer to answer."""
    if TABLE.search(text):
        how.remarks[WHOLE_MS] = 1
        begins = [match.start() for match in TABLE.finditer(text)]
        for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
            lines = [line.split() for line in text[begin:end].splitlines()[1:]]
            yield {
                words[0]: float(words[1]) * 1e-3
                for words in lines
                if len(words) >= 3 and words[0].isdigit() and words[1].isdigit()
            }
        return
    for document in _documents(text, path, how):
        # jq -s makes one list of answers.
        for answer in document if isinstance(document, list) else [document]:
            yield _latencies(answer, path)


def _documents(text: str, path: Path, how: How) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        try:
            document, end = decoder.raw_decode(text)
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) - 1:
                how.remarks["the file ends in the middle of a block, which is dropped"] += 1
                return
            raise InputError(f"{path}: not valid JSON: {error}") from None
        text = text[end:]
        yield document


def _latencies(document: Any, path: Path) -> dict[str, float | None]:
    """Returns the latencies of OSDs in seconds, by their numbers; older releases have the OSDs at the top level."""
    stats = document.get("osdstats", document) if isinstance(document, dict) else {}
    osds = stats.get("osd_perf_infos")
    if not isinstance(osds, list):
        raise InputError(f"{path}: osd_perf_infos is missing; write the file with ceph osd perf -f json")
    return {str(osd["id"]): _latency_s(osd.get("perf_stats", {})) for osd in osds}


def _latency_s(stats: Mapping[str, float]) -> float | None:
    """Returns the latency from nanoseconds if present, since milliseconds are whole numbers."""
    if "commit_latency_ns" in stats:
        return float(stats["commit_latency_ns"]) * 1e-9
    return float(stats["commit_latency_ms"]) * 1e-3 if "commit_latency_ms" in stats else None
