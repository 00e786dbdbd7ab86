"""Latencies as text."""

from __future__ import annotations

import math


def time_text(seconds: float) -> str:
    """Formats a latency."""
    if not math.isfinite(seconds):
        return "an unknown time"
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} us"
