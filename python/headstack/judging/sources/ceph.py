"""``ceph osd perf -f json``, asked for again and again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headstack._native import InputError
from headstack.judging.sources.files import Clock, How, Row, blocks, stem

CAVEATS = (
    "ceph smooths latencies: slowness that lasts for seconds is spread over time",
    "ceph counts no requests, so that load is not known, nor whether a latency is of many or of one",
)


def rows(paths: list[Path], how: How) -> Iterator[Row]:
    """What OSDs took to commit, from document to document."""
    clock = Clock(paths[0], how)
    host = how.host or stem(paths[0] if len(paths) == 1 else paths[0].parent)
    for block in blocks(paths, how):
        for document in _documents("".join(block.lines), paths[0], how):
            interval = clock.interval(block.time_s)
            if interval is None:
                continue
            for osd in _infos(document, paths[0]):
                stats = osd.get("perf_stats", {})
                yield {
                    "host": host,
                    "disk": f"osd.{osd['id']}",
                    "start_s": interval[0],
                    "length_s": interval[1],
                    "latency_s": _latency_s(stats),
                }


def _documents(text: str, path: Path, how: How) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        try:
            document, end = decoder.raw_decode(text)
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) - 1:
                how.remarks["the file ends in the middle of a block, which is dropped"] += 1
                return
            raise InputError(f"{path}: is not JSON: {error}") from None
        text = text[end:]
        yield document


def _infos(document: Any, path: Path) -> list[dict[str, Any]]:
    """The OSDs, which older releases have at the top."""
    stats = document.get("osdstats", document) if isinstance(document, dict) else {}
    found = stats.get("osd_perf_infos")
    if not isinstance(found, list):
        raise InputError(f"{path}: osd_perf_infos is missing; ceph osd perf -f json writes it")
    return found


def _latency_s(stats: dict[str, Any]) -> float | None:
    """Nanoseconds where there are any: milliseconds are whole."""
    if "commit_latency_ns" in stats:
        return float(stats["commit_latency_ns"]) * 1e-9
    return float(stats["commit_latency_ms"]) * 1e-3 if "commit_latency_ms" in stats else None
