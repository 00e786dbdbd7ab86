"""Requests of one size and kind, as an environment has them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RequestClass:
    """Requests that are alike."""

    share: float
    """Of all requests, from 0 to 1."""
    size_bytes: int
    is_read: bool
    is_random: bool
    """Goes to a new place; else it continues a stream."""
