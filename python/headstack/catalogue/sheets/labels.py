"""Rules that map labels of data sheets to keys of a drive file.

Each rule has a pattern of labels and a function of (label, value) that returns keys and their values. The first rule
that matches and returns something is used. Keys that begin with ``?`` are not part of the file: they serve to check the
sheet, or appear in its notes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from headstack.catalogue.sheets import figures, mechanics, performance
from headstack.catalogue.sheets.lines import Line
from headstack.catalogue.sheets.links import interface, link
from headstack.catalogue.sheets.performance import KeyValues, rate_to
from headstack.catalogue.sheets.text import label_without_marks, without_marks

SECTORS = {"512e": (512, 4096), "4kn": (4096, 4096), "512n": (512, 512)}


def keys_of(line: Line) -> KeyValues | None:
    """Returns the values of a line, or ``None`` if a drive file has no key for it.

    >>> keys_of(Line(1, "Average seek, read (ms)", "8.5"))
    {'seek.read_average': '8.5ms'}
    """
    # Capital letters distinguish bytes from bits.
    kept = re.sub(
        r"[KMGT]i?B(?=/s|ps)|.",
        lambda part: part[0] if part[0][1:] else part[0].lower(),
        label_without_marks(line.label),
    )
    label = re.sub(r"[\s_]+", " ", kept).strip()
    if re.fullmatch(r"[a-z]\w*(\.[a-z]\w*)+", label := label.replace(" ", "_") if "." in label else label):
        return {label: _plain(re.sub(r"\s+", " ", line.value).strip())}
    label = re.sub(r"[\s_]+", " ", kept).strip()
    value = re.sub(r"\s+", " ", without_marks(line.value)).strip()
    for pattern, read in RULES:
        if pattern.search(label) and (
            values := {key: stated for key, stated in read(label, value).items() if stated is not None}
        ):
            return values
    # `Use case: mixed use (3 drive writes per day)`
    endured = {key: stated for key, stated in _endurance(label, value, named=True).items() if stated is not None}
    return endured or None


def _plain(value: str) -> Any:
    """Converts a value for a drive file: to a number, a Boolean, or else text."""
    text = value.strip("\"'")
    if text in ("true", "false"):
        return text == "true"
    digits = text.replace("_", "")
    return int(digits) if digits.isdecimal() else float(digits) if re.fullmatch(r"\d+\.\d+", digits) else text


def _text(key: str) -> Callable[[str, str], KeyValues]:
    return lambda label, value: {key: value}


def _count(key: str) -> Callable[[str, str], KeyValues]:
    def read(label: str, value: str) -> KeyValues:
        number = figures.first(value)
        return {key: None if number is None else int(number)}

    return read


def _watts(key: str) -> Callable[[str, str], KeyValues]:
    def read(label: str, value: str) -> KeyValues:
        idle = re.search(rf"({figures.NUMBER})\s*(m?)w\s*\(?idle", value.lower())
        if idle and "idle" not in label:
            # `<8 W idle, 25 W limit`
            rest = [float(watts) for watts in re.findall(r"(\d+(?:\.\d+)?)\s*w\b(?!\s*\(?idle)", value.lower())]
            idle_w = float(idle[1]) / (1000 if idle[2] else 1)
            return {"power.idle_w": idle_w, "power.active_w": max(rest) if rest else None}
        watts = figures.first(value)
        return {key: watts / 1000 if watts is not None and re.search(r"\d\s*mw\b", value.lower()) else watts}

    return read


def _active_and_idle(label: str, value: str) -> KeyValues:
    """Reads a line such as `Active/idle: 5.0 W / 1.0 W`."""
    first, second = figures.pair(value)
    if second is None:
        return {}
    idle, active = (second, first) if label.find("active") < label.find("idle") else (first, second)
    return {"power.active_w": active, "power.idle_w": idle}


def _year(label: str, value: str) -> KeyValues:
    match = re.search(r"(?<!\d)(19[89]\d|20\d\d)(?!\d)", value)
    return {"year": int(match[1]) if match else None}


def _capacity(label: str, value: str) -> KeyValues:
    size_bytes = figures.bytes_of(label, value)
    return {"capacity.size": None if size_bytes is None else _size(size_bytes)}


def _size(size_bytes: float) -> str:
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:.12g}{unit}"
    return f"{size_bytes:.0f}B"


def _buffer(label: str, value: str) -> KeyValues:
    text = value.lower()
    if re.search(r"\bhmb\b|host memory", label):
        return {"controller.map_cache": "64MiB" if re.search(r"\byes\b|support", text) else None}
    if re.search(r"\bhmb\b|host memory|dram-?less|none", text):
        return {"controller.map_cache": "64MiB"}
    kib = figures.memory_kib(label, value)
    size = None if not kib else f"{kib / 1024:.0f}MiB" if kib % 1024 == 0 or kib > 65536 else f"{kib:.0f}KiB"
    return {"buffer.size": size, "?dram": size}


def _sector(label: str, value: str) -> KeyValues:
    text = value.lower().replace(" ", "")
    named = next((sizes for name, sizes in SECTORS.items() if name in text), None)
    if named is None:
        sizes = [int(size) for size in re.findall(r"(?<!\d)(512|4096)(?!\d)", text)]
        if not sizes:
            return {}
        named = (sizes[0], sizes[-1])
    return {"capacity.logical_block": f"{named[0]}B", "capacity.physical_sector": f"{named[1]}B"}


def _flash(label: str, value: str) -> KeyValues:
    text = value.lower()
    kinds = (
        ("xpoint", r"x-?point|optane"),
        ("qlc", r"qlc|4[- ]?bit|quad"),
        # Samsung's "3-bit MLC" is called TLC by others.
        ("tlc", r"tlc|3[- ]?bit|triple"),
        ("slc", r"\bslc\b|1[- ]?bit"),
        ("mlc", r"mlc|2[- ]?bit"),
    )
    cells = next((cells for cells, pattern in kinds if re.search(pattern, text)), None)
    layers = re.search(r"(\d{2,3})\s*-?\s*l(?:ayers?)?\b|(\d{2,3})-layer", text)
    return {
        "flash.cells": cells,
        "?layers": int(next(part for part in layers.groups() if part)) if layers else None,
    }


def _slc_cache(label: str, value: str) -> KeyValues:
    size_bytes = figures.bytes_of(label, value)
    return {"stated.slc_cache": None if size_bytes is None else _size(size_bytes)}


def _hours(label: str, value: str) -> KeyValues:
    hours = figures.numbers(value)
    if not hours:
        return {}
    millions = hours[0] < 1000
    return {"reliability.mtbf_h": round(hours[0] * 1e6) if millions else round(hours[0])}


ERRORS = re.compile(
    r"(?:(?P<count>\d+)\s*(?:sectors?|lbas?|errors?|bits?)?\s*(?:in|per)\s*)?"
    r"(?:(?P<mantissa>\d+(?:\.\d+)?)\s*[x×·]\s*)?"
    r"(?:10\s*(?:\^|e|\*\*)\s*[+-]?\s*(?P<power>\d{2})|1(?:\.0)?\s*e\s*[+-]?\s*(?P<e>\d{2})|10 ?(?P<flat>1[2-8]))(?!\d)"
)
"""An error rate: `1 in 10^16`, `10 in 1x10^17`, `1 sector per 10E15`, `1.0×10^-17`, and `1016` of a sheet that lost its
superscripts."""


def _errors(label: str, value: str) -> KeyValues:
    """Reads the bits per unrecoverable error; errors of seeks, of the interface and corrected ones are not used."""
    if re.search(r"seek|interface|miscorrect|position|soft|(?<!un)(?<!non)(?<!non-)(?<!non )recover", label):
        return {}
    match = ERRORS.search(value.lower())
    if not match:
        return {}
    power = int(match["power"] or match["e"] or match["flat"])
    bits = 10.0**power * (float(match["mantissa"] or 1) if match["mantissa"] not in (None, "1.0") else 1.0)
    return {"reliability.bits_per_error": float(f"{bits / float(match['count'] or 1):.6g}")}


def _share(label: str, value: str) -> KeyValues:
    return {"reliability.afr_percent": figures.first(value)}


def _protected(label: str, value: str) -> KeyValues:
    return {"buffer.power_loss_protected": not re.match(r"(?i)no(ne)?\b|n/?a\b|-", value)}


def _price(label: str, value: str) -> KeyValues:
    match = re.search(r"(?:usd|us\$|\$)\s*([\d,]+(?:\.\d+)?)|([\d,]+(?:\.\d+)?)\s*(?:usd|us\$|\$)", value.lower())
    day = re.search(r"(20\d\d(?:-\d\d){0,2})(?!\d)", value) or re.search(r"(20\d\d(?:-\d\d){0,2})(?!\d)", label)
    if not match or not day:
        return {}
    return {"price.usd": float((match[1] or match[2]).replace(",", "")), "price.date": day[1]}


def _unit(label: str, value: str) -> KeyValues:
    kib = figures.memory_kib(label, value)
    return {"capacity.mapping_unit": None if kib is None else f"{kib:.0f}KiB"}


def _blocks(label: str, value: str) -> KeyValues:
    blocks = figures.first(value)
    return {"capacity.logical_blocks": int(blocks) if blocks is not None and blocks > 1e5 else None}


def _raw(label: str, value: str) -> KeyValues:
    return {"flash.raw": _capacity(label, value).get("capacity.size")}


def _endurance(label: str, value: str, named: bool = False) -> KeyValues:
    """Reads rated writes; a rating for sequential writes is not used. With ``named``, the value names the rating."""
    if re.search(r"\bseq", label):
        return {}
    lower = value.lower()
    number = figures.NUMBER
    per_day = r"(?:r?dwpd\b|(?:full )?(?:disk|drive) writes? (?:per|/|a) ?day)"
    daily = re.search(rf"({number})\s*{per_day}", lower) or re.search(rf"{per_day}\s*[:=]\s*({number})", lower)
    total = re.search(rf"({number})\s*(t|p)(?:bw?\b|era|eta)", lower)
    ratings: KeyValues = {
        "endurance.dwpd": figures.first(daily[1]) if daily else None,
        "endurance.tbw": _terabytes(total[1], total[2]) if total and not re.search(r"\bper day|/day", lower) else None,
    }
    if named or any(figure is not None for figure in ratings.values()):
        return ratings if not named or daily else {}
    if "dwpd" in label or "drive writes" in label:
        return {"endurance.dwpd": figures.first(value)}
    return {"endurance.tbw": _terabytes(value, "p" if re.search(r"\bp(eta)?b", label) else "t")}


def _terabytes(text: str, prefix: str) -> float | None:
    written = figures.first(text)
    return written if written is None or prefix == "t" else round(1000 * written, 6)


def _warranty(label: str, value: str) -> KeyValues:
    years = figures.first(value)
    return {"endurance.warranty_years": years if years is not None and years <= 20 else None}


def _form(label: str, value: str) -> KeyValues:
    return {"geometry.media_diameter_mm": 65.0 if re.search(r"\b2[.,]5", value) else None}


INSIDE = r"((media|internal).*(rate|speed|transfer)|dis[ck].?buffer|buffer.{0,4}dis[ck])"
"""Labels of rates between media and buffer, before any overhead."""

RULES: tuple[tuple[re.Pattern[str], Callable[[str, str], KeyValues]], ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (r"^(vendor|manufacturer|maker|brand)\b(?! id)", _text("vendor")),
        (r"^(name|product name|product|drive|(drive )?series|(product )?family)$", _text("name")),
        (r"^(standard |drive )?(model|part|article)( ?(number|no\.?|name|s))?\b|^(sku|mpn)$", _text("model")),
        (r"^year|introduc|launch|release|announce", _year),
        (r"price|msrp", _price),
        (r"power.?loss|\bplp\b|capacitor", _protected),
        (r"warranty", _warranty),
        (r"error|uber|\bure\b|(un|non).?recover", _errors),
        (r"active.*\bidle\b|\bidle\b.*active", _active_and_idle),
        (r"\bidle\b", _watts("power.idle_w")),
        (r"\(m?w\)|watt|\bpower\b(?!-| on| cycle)", _watts("power.active_w")),
        (r"sectors? (per|a) drive|guaranteed sectors|addressable|logical blocks|total.*sectors|\blbas?\b", _blocks),
        (r"bytes per sector|sector (size|format)|^format\b|block (size|length)|user bytes", _sector),
        (r"indirection unit|mapping unit", _unit),
        (r"heads.*(dis[ck]|platter)|(dis[ck]|platter).*heads", mechanics.disks_and_heads),
        (r"\bheads\b", _count("geometry.heads")),
        (r"^(number of )?(dis[ck]s|platters)\b", _count("geometry.platters")),
        (r"cylinders", _count("geometry.cylinders")),
        (r"spindle|rotation(al)? (speed|rate)|\brpm\b|dis[ck] (rotation )?speed|^speed\b", mechanics.speed),
        (r"^(?!.*(not incl|excl|without)).*(controller|command).*overhead", mechanics.overhead),
        (r"track.to.track|single.?track|adjacent", mechanics.seek("track_to_track")),
        (r"full.?stroke|^(?!.*average).*((maximum|max\.?) seek|seek.*\bmax(imum)?\b)", mechanics.seek("full_stroke")),
        (r"^(?=.*access time)(?=.*(not including|excluding|without)).*overhead", mechanics.seek("average")),
        (r"\bseek(?!.*(\(w\)|acoustic|noise|bel))", mechanics.seek("average")),
        (r"latency", mechanics.turn),
        (r"after (the )?(slc|turbo)|(slc|turbowrite).*(exhaust|after)|native write", rate_to("stated.after_slc")),
        (r"\brand(om|\.)?\b|iops|\b4\s*ki?b?\b", performance.random),
        (r"latency|response time", performance.latency),
        (r"\bp?slc\b.*(cache|buffer|size)|turbo ?write", _slc_cache),
        (r"raw (capacity|flash|nand)", _raw),
        (r"dwpd|drive writes|\b[tp]bw\b|(tera|peta|total )bytes written|endurance", _endurance),
        (r"\bseq(uential|\.)?(?![a-z])", performance.sequential),
        (r"(read|write).*(speed|rate|throughput|bandwidth|performance|transfer)|^speed$", performance.speeds),
        (rf"^(?!.*sustain).*{INSIDE}", mechanics.raw_rate),
        (r"^(?!.*sustain).*(interface|host|external|\bext\b|i/o|bus|burst).*(rate|speed|transfer|bandwidth)", link),
        (r"^(?!.*sustain).*(rate|speed|transfer|buffer).*(\bhost\b|\bext\b)", link),
        (r"(rate|speed|transfer|throughput).*\b(id|inner|inside)\b", rate_to("media.sustained_inner_rate")),
        (r"^(?=.*sustain).*\bzone [1-9]", rate_to("media.sustained_inner_rate")),
        (r"sustain.*(rate|speed|transfer|throughput)", mechanics.transfer),
        (r"(rate|speed|transfer).*sustain", mechanics.transfer),
        (rf"^(?!.*{INSIDE})(?=.*(data|dis[ck]|buffer|^max)).*(rate|speed|transfer|throughput)", mechanics.transfer),
        (r"^transfer (rate|speed)|\bod\b", mechanics.transfer),
        (r"interface|host bus|^bus\b|connectivity|\bpcie link\b|^link$", interface),
        (r"nand|flash|cell type|media type|storage memory|lithography|^(media|memory)$|components", _flash),
        (r"channels", _count("flash.channels")),
        (r"dies per channel", _count("flash.dies_per_channel")),
        (r"cache|buffer|\bdram\b|memory|\bhmb\b", _buffer),
        (r"capacity|^size\b|formatted", _capacity),
        (r"mtbf|mttf|mean time", _hours),
        (r"\bafr\b|annuali[sz]ed", _share),
        (r"guaranteed (writes|recording)|bytes written", _endurance),
        (r"form factor|width", _form),
    )
)
"""Patterns of labels in lower case, the most specific first."""
