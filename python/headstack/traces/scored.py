"""``Scored``, the data of a synthetic trace: its scores compared with the original trace."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Never

from headstack import _native
from headstack._native import version
from headstack.io.atomic_files import write_text
from headstack.io.stored import Stored
from headstack.io.tables import finite
from headstack.traces.synthesis_types import Made, Scorecard, SynthesisOptions

STORED = Stored("synthesis")

MISSES_NEAR, DISPERSION_NEAR, MEAN_NEAR, P99_NEAR = 0.02, 0.2, 0.1, 0.2
"""Relative errors above which a property is listed as lost."""


@dataclass(frozen=True)
class Scored:
    """The scores of a synthetic trace compared with its original. ``Synthesis`` adds pictures and reports."""

    name: str
    """The trace's name."""
    made: Made
    """The model and the size of the synthetic trace: ``requests``, ``duration_ns``, ``clients`` of a closed loop,
    ``meta``.
    """
    options: SynthesisOptions | Mapping[str, Never]
    """``length``, ``rate``, ``footprint``, ``clients`` and ``seed``; empty for a scenario, whose runs set them."""
    scorecard: Scorecard | None
    """Each figure of the original and the synthetic trace; ``None`` if not requested."""
    cannot: tuple[str, ...]
    """Properties that the method cannot reproduce, in words."""

    @property
    def lost(self) -> list[str]:
        """Differences of the synthetic trace from its original, in words."""
        words = list(self.cannot)
        card = self.scorecard
        if card is None:
            return words
        if card["misses"] is not None and MISSES_NEAR < card["misses"]["max_error"] < math.inf:
            words.append(f"miss ratios of caches: {card['misses']['max_error']:.3f} off at the worst size")
        far = [row for row in card["dispersion"] if abs(_off(row["twin"], row["trace"]) or 0.0) > DISPERSION_NEAR]
        if far:
            sizes = ", ".join(_native.format_duration_ns(row["bin_ns"]) for row in far)
            words.append(f"dispersion of counts: over {DISPERSION_NEAR:.0%} off in bins of {sizes}")
        for row in card["replays"]:
            for figure, trace, twin, near in (
                ("mean", row["trace_mean_ms"], row["twin_mean_ms"], MEAN_NEAR),
                ("p99", row["trace_p99_ms"], row["twin_p99_ms"], P99_NEAR),
            ):
                error = _off(twin, trace)
                if error is None:
                    words.append(f"replayed on {row['system']}: {figure} is unknown for one trace")
                elif abs(error) > near:
                    words.append(f"replayed on {row['system']}: {figure} is {error:+.0%} off")
        return words

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns all data as JSON text, and writes the text if ``path`` is given.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> twin = hs.synthesize("t.parquet", "twin.parquet", scorecard=False)
        >>> _ = twin.to_json("twin.json")
        """
        fields = STORED.head | {
            "trace": self.name,
            "version": version(),
            "asked": self.options,
            "made": self.made,
            "scorecard": self.scorecard,
            "lost": self.lost,
        }
        text = json.dumps(finite(fields), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        if path is not None:
            write_text(path, text)
        return text


def _off(twin: float | None, trace: float | None) -> float | None:
    """Returns the relative error of a figure of the synthetic trace; ``None`` if a figure is unknown, or if the
    original is 0."""
    share = twin / trace - 1 if twin is not None and trace else math.nan
    return share if math.isfinite(share) else None
