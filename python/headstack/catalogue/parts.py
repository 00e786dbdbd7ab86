"""Parts of drives, arrays and stacks, as in ``NAME@0%..50%``."""

from __future__ import annotations

from headstack import _native
from headstack._native import InputError


def span_of_part(name: str, span: tuple[int, int] | None, size: _native.SystemSize, text: str) -> tuple[int, int]:
    """Returns the first byte and the length of the part ``text`` of a system.

    Raises ``InputError`` if the system is a part already (``span``), or the text is not a range within it.
    """
    if span is not None:
        raise InputError(f"{name}: a range of a range ({text}); give only one range")
    return _native.parse_range(text, size.capacity_bytes, size.sector_bytes)
