"""Texts of other programs, decoded from UTF-8 (with or without a byte order mark) or UTF-16."""

from __future__ import annotations

MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""Byte order marks of UTF-16, which PowerShell writes when it redirects output."""


def encoding_of(begin: bytes) -> str:
    """Returns the encoding of a text, detected from its first bytes.

    >>> from headstack.io.encodings import encoding_of
    >>> encoding_of("{}".encode("utf-16")), encoding_of(b"{}")
    ('utf-16', 'utf-8-sig')
    """
    return MARKS.get(begin[:2], "utf-8-sig")


def decoded(data: bytes) -> str:
    """Decodes a text; invalid bytes become replacement characters.

    >>> from headstack.io.encodings import decoded
    >>> decoded("{}".encode("utf-8-sig")), decoded("{}".encode("utf-16"))
    ('{}', '{}')
    """
    return data.decode(encoding_of(data), errors="replace")
