"""Counts in sentences, with nouns and verbs in the singular or plural."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Formats a count with its noun, which takes an ``s`` in the plural.

    >>> counted(1, "run"), counted(2_000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{count:,} {agreed(count, noun, noun + 's')}"


def agreed(count: int, singular: str, plural: str) -> str:
    """Returns the singular or the plural form for a count.

    >>> agreed(1, "is", "are"), agreed(0, "is", "are")
    ('is', 'are')
    """
    return singular if count == 1 else plural
