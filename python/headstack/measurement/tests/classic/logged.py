"""``LoggedRequest``: a completed request of the request log."""

from __future__ import annotations

LoggedRequest = tuple[int, str, int, int, int, int, bool, int]
"""A row of ``RequestLog.take``."""
