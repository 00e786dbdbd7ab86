"""``RequestClass``: requests of one size and kind in an environment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RequestClass:
    """Similar requests."""

    share: float
    """Share of all requests, from 0 to 1."""
    size_bytes: int
    is_read: bool
    is_random: bool
    """Whether they are random; otherwise they continue a stream."""
