"""Reader of periodic ``ceph osd perf``, as JSON or as a table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headstack._native import InputError
from headstack.diagnosis.judging.sources.files import Clock, How, Row, blocks, stem

CAVEATS = (
    "ceph smooths latencies: slowness of some seconds is spread over time",
    "ceph does not count requests: the load is unknown, and so is the number of requests behind a latency",
)

TABLE = re.compile(r"^\s*osd\s+(fs_)?commit_latency\(ms\)", re.MULTILINE)
WHOLE_MS = "ceph's table has whole milliseconds: latencies below 1 ms are not resolved"


def rows(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields commit latencies of OSDs, from document to document."""
    clock = Clock(paths[0], how)
    host = how.host or stem(paths[0] if len(paths) == 1 else paths[0].parent)
    for block in blocks(paths, how):
        for answer in _answers("".join(block.lines), paths[0], how):
            interval = clock.interval(block.time_s)
            if interval is None:
                continue
            for osd, latency_s in answer.items():
                yield Row(host, f"osd.{osd}", *interval, {"latency_s": latency_s})


def _answers(text: str, path: Path, how: How) -> Iterator[dict[str, float | None]]:
    """Yields the latencies of OSDs, from answer to answer."""
    if TABLE.search(text):
        how.remarks[WHOLE_MS] = 1
        begins = [match.start() for match in TABLE.finditer(text)]
        for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
            lines = [line.split() for line in text[begin:end].splitlines()[1:]]
            yield {words[0]: float(words[1]) * 1e-3 for words in lines if len(words) >= 3 and words[0].isdigit()}
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
