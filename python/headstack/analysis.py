"""What a trace is like: the report of one pass over its requests, as figures, JSON, picture and workload."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstack._native import InputError, version
from headstack.atomic_files import write_text
from headstack.stored import Stored

if TYPE_CHECKING:
    from headstack.report.figures import Report


def _without_time_axis(told: dict[str, Any]) -> dict[str, Any]:
    """Nothing was said of the course of figures, nor whose requests take how long."""
    timeline: dict[str, Any] = {"bin_ns": 1, "block_bytes": None, "sampled_rate": None, "not_followed": 0, "bins": []}
    return told | {"report": told["report"] | {"timeline": timeline, "latency": None, "phases": None}}


STORED = Stored("analysis", steps=(_without_time_axis,))


@dataclass(frozen=True)
class Analysis:
    """Mix, sizes, rates, sequences, blocks, re-use and times of a trace; ``None`` is what the trace does not say."""

    name: str
    """The trace's."""
    meta: dict[str, Any]
    """What the trace says of itself, as ``Trace.info`` has it."""
    report: dict[str, Any]
    """Every figure: times in ns, places and lengths in bytes, shares from 0 to 1."""

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Everything as JSON text; written to ``path`` if one is given."""
        told = STORED.head | {"trace": self.name, "version": version(), "meta": self.meta, "report": self.report}
        # On one line: the map alone has up to 131,072 figures.
        text = json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n"
        if path is not None:
            write_text(path, text)
        return text

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Analysis:
        """What ``to_json`` wrote."""
        try:
            told = json.loads(Path(path).read_text(encoding="utf-8"))
            told = STORED.upgraded(os.fspath(path), dict(told))
            return cls(told["trace"], told["meta"], told["report"])
        except InputError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{os.fspath(path)}: is not an analysis of a trace: {error!r}") from None

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws addresses, rates, sizes, gaps, re-use and times, and their course; the suffix is png, svg or pdf."""
        from headstack.plots import save
        from headstack.trace_plots import overview

        save(overview(self), path)

    def to_report(self) -> Report:
        """Addresses, rates, sizes, gaps, re-use and times as a report, which notebooks show."""
        from headstack.report.analysis_report import report_of

        return report_of(self)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes ``to_report`` as one HTML file. Needs the page, which a build of the package holds."""
        from headstack.report.html import write_html

        write_html(self.to_report(), path)

    @property
    def workload_toml(self) -> str:
        """A workload with the same mix, as a TOML file of the catalogue.

        Raises ``InputError`` where the trace does not say enough.
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
        """Misses over references in an LRU cache of that size, in bytes, or in requests where these were counted.

        Between the points of the curve, eight an octave, it is that of the next smaller; raises ``InputError`` where
        re-use is not counted.
        """
        reuse = self.report["reuse"]
        if reuse is None:
            raise InputError(f"{self.name}: re-use is not counted")
        within = [
            p for p in reuse["lru_curve"] if (p["cache"] if p["cache_bytes"] is None else p["cache_bytes"]) <= cache
        ]
        return float(within[-1]["miss_ratio"]) if within else 1.0

    def _repr_html_(self) -> str:
        return f"<b>{html.escape(self.name)}</b> ({self.report['requests']:,} requests)"
