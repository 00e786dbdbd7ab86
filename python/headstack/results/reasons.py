"""Codes of the reasons why a run has no confidence interval."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast, get_args

TooShort: TypeAlias = Literal[
    "few_requests",
    "write_cache_moves",
    "read_cache_moves",
    "media_cache_moves",
    "pool_moves",
    "free_flash_falls",
    "drifts",
    "correlated",
    "few_beyond",
    "few_events",
    "saturated",
    "several_threads",
    "file_operations",
    "not_kept",
]
"""The codes in results and in the column ``sampling_code``, as in docs/results.schema.json."""

NOT_STEADY: TooShort = "free_flash_falls"
"""Code of a run that used up erased flash, so that it is not steady."""


def too_short(code: str | None) -> TooShort | None:
    """Returns the code of a column ``sampling_code``. Raises ``ValueError`` for an unknown one.

    >>> too_short("drifts")
    'drifts'
    """
    if code is None:
        return None
    if code not in get_args(TooShort):
        raise ValueError(f"{code!r} is not a code of a reason")
    return cast("TooShort", code)
