"""Plain forms of the characters, footnote marks and decimal commas of data sheets."""

from __future__ import annotations

import re

_PLAIN: dict[str, str | int | None] = {
    **dict.fromkeys("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000", " "),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    **dict.fromkeys("®™©†‡*\u200b\u2060\ufeff", ""),
    "μ": "µ",
    "’": "'",
    "″": '"',
    "”": '"',
    "：": ": ",
}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_POWER = re.compile(r"(?<![\d.])10([⁻-]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_RAISED = re.compile(r"[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_MARK = r"\d{1,2}(?:,\s?\d{1,2})*"
_FOOTNOTES = (
    # `[1]`
    re.compile(r"\s*\[\d{1,2}(?:,\s?\d{1,2})*\]"),
    # `4KB3 reads`, `500 MB/s4`, `10.84 PBW5`, `72,000 IOPS1,2`
    re.compile(rf"(?<=\d)(\s?(?:[kKMGT]i?B(?:/s)?|[kKM]?IOPS|[TP]BW|DWPD)){_MARK}(?![\w.])"),
    # `(Typ.)7,10`
    re.compile(rf"(\)){_MARK}(?=\s|$)"),
)
_LABEL_FOOTNOTE = re.compile(rf"(?<=[a-z]{{4}}){_MARK}(?=\s|$|[):])|\s*\(\d\)$")
_UNIT = r"\s*(?:[kMGTP]i?(?:B|bit|b)|[kMGTP]Byte|MB/s|W\b|m?s\b|µs|us\b|DWPD|mil|Mio|k\b|M\b|%|Zoll|h\b)"
_DECIMAL_COMMA = re.compile(rf"(?<![\d.,])(?:0,\d+|\d{{1,3}},\d{{1,2}})(?![\d,]){_UNIT}", re.IGNORECASE)
_GROUPS = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+(?![\d.])")
_COMMA = re.compile(r"(?<=\d),(?=\d)")


def plain(raw: str) -> str:
    """Returns a line with plain spaces, minus signs and powers of ten, and without raised footnote marks.

    >>> plain("Endurance²: <1 in 10¹⁷ bits\u00a0read")
    'Endurance: <1 in 10^17 bits read'
    """
    text = _POWER.sub(lambda match: f"10^{match[1].translate(_SUPERSCRIPTS)}", raw)
    return _RAISED.sub("", text).translate(str.maketrans(_PLAIN))


def without_marks(text: str) -> str:
    """Returns a text without footnote numbers that directly follow a unit or a bracket.

    >>> without_marks("Up to 10.84 PBW5 (JESD219 workload)"), without_marks("5.0 W/1.0 W (Typ.)7,10")
    ('Up to 10.84 PBW (JESD219 workload)', '5.0 W/1.0 W (Typ.)')
    """
    brackets, units, closing = _FOOTNOTES
    return closing.sub(r"\1", units.sub(r"\1", brackets.sub("", text)))


def label_without_marks(label: str) -> str:
    """Returns a label without footnote numbers, which also follow words there.

    >>> label_without_marks("Capacity1 (GB)"), label_without_marks("Random 4KB3 Reads"), label_without_marks("PCIe4")
    ('Capacity (GB)', 'Random 4KB Reads', 'PCIe4')
    """
    without = re.sub(r"(?<=\d)([kK]i?B)\d(?=\s|$)", r"\1", without_marks(label))
    return _LABEL_FOOTNOTE.sub("", without).strip()


def has_decimal_commas(text: str) -> bool:
    """Whether a sheet writes its decimals with a comma, as in `7,68 TB`."""
    return _DECIMAL_COMMA.search(text) is not None


def with_points(label: str, value: str, decimal_commas: bool) -> str:
    """Returns a value with decimal points, and with commas between thousands.

    Points between thousands are recognized where the sheet has decimal commas, where several groups follow each
    other, and where a decimal is implausible: IOPS, and sequential rates of a few MB/s.

    >>> with_points("Sequential read", "6,5 GB/s", True), with_points("Random read", "900.000 IOPS", False)
    ('6.5 GB/s', '900,000 IOPS')
    >>> with_points("Capacity", "1.024 TB", False)
    '1.024 TB'
    """
    if decimal_commas:
        marked = _GROUPS.sub(lambda match: match[0].replace(".", "\0"), value)
        return _COMMA.sub(".", marked).replace("\0", ",")
    text = f"{label} {value}".lower()
    rate = re.search(r"seq|read|write|transfer", label.lower()) and re.search(r"\bmb/s|\bmbps", text)
    whole = ("iops" in text and not re.search(r"\d\s*[km]\b|[km]\s?iops", text)) or rate

    def grouped(match: re.Match[str]) -> str:
        several = match[0].count(".") > 1
        return match[0].replace(".", ",") if whole or several else match[0]

    return _GROUPS.sub(grouped, value)
