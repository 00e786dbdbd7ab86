"""``ConditioningData``, the data of a conditioning from its log: passes, figures of devices and verdicts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from headstack._native import Field
from headstack.io import tables
from headstack.io.stored import Stored
from headstack.io.tables import Tabular
from headstack.measurement.tests.conditioning.log import read_log
from headstack.measurement.tests.conditioning.records import Line, ModuleRecord
from headstack.measurement.tests.conditioning.report import Pass, judgement, passes_of, verdict

STORED = Stored("conditioning")

FIELDS = (
    Field("pass", "text", "", "kind of the pass: write or read"),
    Field("position_bytes", "count", "bytes", "start of the interval on the module"),
    Field("bytes", "count", "bytes", "bytes streamed over the module in the interval"),
    Field("elapsed_s", "figure", "s", "end of the interval, after the start of the pass, without interruptions"),
    Field("duration_s", "figure", "s", "duration of the interval"),
    Field("mbit_per_s", "figure", "10^6 bit/s", "rate of the module"),
    Field("device", "text", "", "path of the device"),
    Field("blocks", "count", "blocks", "blocks that the device received"),
    Field("errors", "count", "blocks", "blocks that failed"),
    Field("mean_ms", "figure", "ms", "mean block time, without failed blocks"),
    Field("max_ms", "figure", "ms", "maximum block time"),
    Field("utilization", "figure", "", "share of the interval in which the device had a block, 0 to 1"),
    Field("held_share", "figure", "", "share of the interval in which this device delayed the others, 0 to 1"),
)
"""Columns of the rows, before the columns that count the blocks in each class of block times."""

FIGURES = (0.5, 0.99, 0.999)
"""Reported quantiles."""


@dataclass
class ConditioningData(Tabular):
    """The passes in the log of a conditioning, with figures and verdicts. ``Conditioning`` draws and writes them."""

    module: ModuleRecord
    """The first line of the log: the targets and the settings."""
    lines: list[Line]
    """All further lines of the log."""
    require_mbit_per_s: float | None = None
    """Required minimum rate in every interval, in 10^6 bits per second."""

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """Returns a row for each interval and device."""
        return self.rows()

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a log. Raises ``InputError`` if the file is not a conditioning log."""
        module, lines, _ = read_log(os.fspath(path))
        return cls(module, lines)

    @cached_property
    def passes(self) -> list[Pass]:
        """Each pass with its intervals and devices."""
        return passes_of(self.module, self.lines)

    @property
    def is_whole(self) -> bool:
        """Whether all passes reached the end of the module."""
        return [pass_.kind for pass_ in self.passes if pass_.is_whole] == list(self.module["passes"])

    @property
    def ended_early(self) -> str | None:
        """Reason why the conditioning ended early; ``None`` if it did not, or if it was killed."""
        last = self.lines[-1] if self.lines else None
        return last["ended_early"] if last is not None and last["record"] == "pass" else None

    @property
    def sessions(self) -> int:
        """Number of sessions, which is the number of times the conditioning was started or resumed."""
        return 1 + [line["record"] for line in self.lines].count("resumed")

    @property
    def failures(self) -> list[str]:
        """Descriptions of the first failures of each session."""
        return [words for line in self.lines if line["record"] == "pass" for words in line["failures"]]

    @property
    def is_kept(self) -> bool:
        """Whether all intervals of all passes have the required rate and no block failed."""
        limit = self.require_mbit_per_s
        slow = limit is not None and any(pass_.below(limit) for pass_ in self.passes)
        return not slow and not any(device.errors for pass_ in self.passes for device in pass_.devices)

    def judgements(self) -> list[str]:
        """Returns each pass in one line."""
        return [judgement(pass_, self.require_mbit_per_s) for pass_ in self.passes]

    def verdict(self, lane: int) -> str:
        """Returns the faults of the device with this number; ``ok`` without faults."""
        return verdict(lane, self.passes, self.module["block_bytes"], self.require_mbit_per_s)

    @property
    def fields(self) -> list[Field]:
        """The columns of the rows."""
        counts = [
            Field(f"blocks {name}", "count", "blocks", "blocks whose time is in this class")
            for name in class_names(self.module)
        ]
        return [*FIELDS, *counts]

    def rows(self) -> list[dict[str, object]]:
        """Returns a row for each interval and device."""
        rows: list[dict[str, object]] = []
        columns = self.column_names
        for pass_ in self.passes:
            for interval in pass_.intervals:
                for device, share in zip(pass_.devices, interval.devices, strict=True):
                    good = share["blocks"] - share["errors"]
                    cells = (
                        pass_.kind,
                        interval.position_bytes,
                        interval.bytes,
                        round(interval.elapsed_s, 6),
                        round(interval.duration_s, 6),
                        round(interval.mbit_per_s, 3),
                        device.path,
                        share["blocks"],
                        share["errors"],
                        round(share["sum_ns"] / good / 1e6, 6) if good else None,
                        share["max_ns"] / 1e6,
                        round(share["busy_ns"] / 1e9 / interval.duration_s, 6),
                        round(interval.held_share(device.number), 6),
                        *share["classes"],
                    )
                    rows.append(dict(zip(columns, cells, strict=True)))
        return rows

    def figures(self) -> Mapping[str, object]:
        """All computed values as JSON."""
        return {
            **STORED.head,
            "module": self.module,
            "sessions": self.sessions,
            "is_whole": self.is_whole,
            "ended_early": self.ended_early,
            "require_mbit_per_s": self.require_mbit_per_s,
            "is_kept": self.is_kept,
            "failures": self.failures,
            "verdicts": {target["path"]: self.verdict(number) for number, target in enumerate(self.module["targets"])},
            "passes": [self._figures_of(pass_) for pass_ in self.passes],
        }

    def _figures_of(self, pass_: Pass) -> Mapping[str, object]:
        lowest, holder = pass_.lowest, pass_.devices[pass_.lowest.holder]
        devices = [
            {
                "path": device.path,
                "blocks": device.blocks,
                "errors": device.errors,
                "mean_ms": device.mean_ms,
                "max_ms": device.max_ms,
                **{f"p{100 * q:g}_ms": device.quantile_ms(q) for q in FIGURES},
                "own_mb_per_s": device.own_mb_per_s(self.module["block_bytes"]),
                "held_share": device.held_share,
                "classes": device.classes,
            }
            for device in pass_.devices
        ]
        return {
            "kind": pass_.kind,
            "bytes": pass_.bytes,
            "duration_s": pass_.duration_s,
            "flush_s": pass_.flush_s,
            "mean_mbit_per_s": pass_.mean_mbit_per_s,
            "lowest_mbit_per_s": lowest.mbit_per_s,
            "lowest_at_bytes": lowest.position_bytes,
            "lowest_held_up_by": holder.path,
            "judgement": judgement(pass_, self.require_mbit_per_s),
            "devices": devices,
            "intervals": [
                {"position_bytes": i.position_bytes, "elapsed_s": i.elapsed_s, "mbit_per_s": i.mbit_per_s}
                for i in pass_.intervals
            ],
        }

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns all computed values as JSON text, and writes the text if ``path`` is given."""
        return tables.to_json(self.figures(), path)


def class_names(module: ModuleRecord) -> list[str]:
    """Returns the classes of block times: ``<1.125ms`` and so on."""
    limits = [limit / 1e6 for limit in module["class_limits_ns"]]
    return [f"<{limit:g}ms" for limit in limits] + [f">={limits[-1]:g}ms"]
