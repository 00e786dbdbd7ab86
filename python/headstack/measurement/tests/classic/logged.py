"""A request that was logged as it was answered."""

from __future__ import annotations

Logged = tuple[int, str, int, int, int, int, bool, int]
"""Of ``RequestLog.take``."""
