"""``Analysed``, the data of a trace's analysis; see docs/design/traces.md."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from headstack._native import InputError, version
from headstack.io.atomic_files import write_text
from headstack.io.json_text import read_json
from headstack.io.stored import Fields, Stored
from headstack.traces.report_types import CurvePoint, TraceReport
from headstack.traces.trace_types import Meta


def _add_time_axis(fields: Fields) -> Fields:
    """Format of stored analyses; version 1 had no timeline and no latencies by device and process."""
    timeline: Fields = {"bin_ns": 1, "block_bytes": None, "sampled_rate": None, "not_followed": 0, "bins": []}
    return fields | {"report": fields["report"] | {"timeline": timeline, "latency": None, "phases": None}}


def cache_size(point: CurvePoint) -> int:
    """Returns the size of a cache in bytes, or in requests if requests are counted."""
    return point["cache"] if point["cache_bytes"] is None else point["cache_bytes"]


STORED = Stored("analysis", steps=(_add_time_axis,))


@dataclass(frozen=True)
class Analysed:
    """The result of one pass over a trace. ``Analysis`` adds pictures and reports."""

    name: str
    """The trace's name."""
    meta: Meta
    """Metadata of the trace, as in ``Trace.info``."""
    report: TraceReport
    """All figures: times in ns, addresses and lengths in bytes, shares from 0 to 1."""

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns all data as JSON text, and writes the text if ``path`` is given."""
        fields = STORED.head | {"trace": self.name, "version": version(), "meta": self.meta, "report": self.report}
        # Written on one line, because the address map can have up to 131,072 figures.
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n"
        if path is not None:
            write_text(path, text)
        return text

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Loads the output of ``to_json``."""
        try:
            fields = read_json(Path(path))
            fields = STORED.upgraded(os.fspath(path), dict(fields))
            return cls(fields["trace"], fields["meta"], fields["report"])
        except InputError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{os.fspath(path)}: not an analysis of a trace: {error!r}") from None

    @property
    def workload_toml(self) -> str:
        """A workload with the same mix as a TOML file of the catalogue.

        Raises ``InputError`` if the trace lacks the required data.
        """
        text: str | None = self.report["environment"]["workload_toml"]
        if text is None:
            reason = next((n for n in self.report["notes"] if n.startswith("no workload")), "no workload")
            raise InputError(f"{self.name}: {reason}")
        return text

    def to_workload(self, path: str | os.PathLike[str]) -> None:
        """Writes ``workload_toml``."""
        write_text(path, self.workload_toml)

    def miss_ratio(self, cache: int) -> float:
        """Returns the miss ratio of an LRU cache of this size, in bytes, or in requests if requests were counted.

        Between the points of the curve, eight per octave, the next smaller point is used. Raises ``InputError`` if
        re-use was not counted.
        """
        reuse = self.report["reuse"]
        if reuse is None:
            raise InputError(f"{self.name}: re-use was not counted")
        within = [point for point in reuse["lru_curve"] if cache_size(point) <= cache]
        return float(within[-1]["miss_ratio"]) if within else 1.0
