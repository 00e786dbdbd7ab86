"""Texts of other programs, in the encodings that they come in: UTF-8 with a mark or without, and UTF-16."""

from __future__ import annotations

MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""How texts in UTF-16 begin: PowerShell redirects in it."""


def encoding_of(begin: bytes) -> str:
    """The encoding of a text by its first bytes.

    >>> from headstack.io.encodings import encoding_of
    >>> encoding_of("{}".encode("utf-16")), encoding_of(b"{}")
    ('utf-16', 'utf-8-sig')
    """
    return MARKS.get(begin[:2], "utf-8-sig")


def decoded(data: bytes) -> str:
    """A text; bytes that are none of it become replacement characters.

    >>> from headstack.io.encodings import decoded
    >>> decoded("{}".encode("utf-8-sig")), decoded("{}".encode("utf-16"))
    ('{}', '{}')
    """
    return data.decode(encoding_of(data), errors="replace")
