"""Rules that map labels of data sheets to keys of a drive file.

Each rule has a pattern of labels and a function of (label, value) that returns keys and their values. The first rule
that matches and returns something is used. Keys that begin with ``?`` are not part of the file: they serve to check the
sheet, or appear in its notes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from headstack.catalogue.sheets import figures
from headstack.catalogue.sheets.lines import Line

KeyValues: TypeAlias = dict[str, Any]

OUTER = "media.sustained_outer_rate"
SECTORS = {"512e": (512, 4096), "4kn": (4096, 4096), "512n": (512, 512)}


def keys_of(line: Line) -> KeyValues | None:
    """Returns the values of a line, or ``None`` if a drive file has no key for it.

    >>> keys_of(Line(1, "Average seek, read (ms)", "8.5"))
    {'seek.read_average': '8.5ms'}
    """
    # Capital letters distinguish bytes from bits.
    lower = re.sub(r"[KMGT]i?B(?=/s|ps)|.", lambda part: part[0] if part[0][1:] else part[0].lower(), line.label)
    label = re.sub(r"[\s_]+", " ", lower).strip()
    value = re.sub(r"\s+", " ", line.value).strip()
    if re.fullmatch(r"[a-z]\w*(\.[a-z]\w*)+", label):
        return {label: _plain(value)}
    for pattern, read in RULES:
        if pattern.search(label) and (
            values := {key: stated for key, stated in read(label, value).items() if stated is not None}
        ):
            return values
    return None


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
        watts = figures.first(value)
        return {key: watts / 1000 if watts is not None and re.search(r"\d\s*mw\b", value.lower()) else watts}

    return read


def _directions(label: str, value: str) -> tuple[bool, bool]:
    """Whether a line is about reads, and about writes; both if it names neither."""
    reads, writes = "read" in label, "write" in label
    if not reads and not writes:
        reads, writes = "read" in value.lower(), "write" in value.lower()
    return (reads, writes) if reads or writes else (True, True)


def _directed(label: str, value: str, values: list[float]) -> tuple[float | None, float | None]:
    """Returns the figure for reads and the one for writes."""
    reads, writes = _directions(label, value)
    if not values:
        return None, None
    if reads and writes:
        return (values[0], values[1]) if len(values) > 1 else (values[0], None)
    return (values[0], None) if reads else (None, values[0])


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


def _memory(label: str, value: str) -> str | None:
    """Returns a memory size, which is a power of two in either unit."""
    size_bytes = figures.bytes_of(label, re.sub(r"(?<=[kKmMgG])i(?=[bB])", "", value))
    return None if size_bytes is None else f"{size_bytes / 1e6 * (1.024 if size_bytes >= 1e9 else 1):.0f}MiB"


def _buffer(label: str, value: str) -> KeyValues:
    if re.search(r"\bhmb\b|host memory|dram-?less|none", value.lower()):
        return {"controller.map_cache": "64MiB"}
    size = _memory(label, value)
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


def _disks_and_heads(label: str, value: str) -> KeyValues:
    first, second = figures.pair(value)
    heads_first = label.find("head") < min(at for at in (label.find("dis"), label.find("platter")) if at >= 0)
    heads, disks = (first, second) if heads_first else (second, first)
    return {
        "geometry.heads": None if heads is None else int(heads),
        "geometry.platters": None if disks is None else int(disks),
    }


def _seek(which: str) -> Callable[[str, str], KeyValues]:
    def read(label: str, value: str) -> KeyValues:
        first, second = figures.times_ms(label, value)
        values = [time for time in (first, second) if time is not None]
        reads, writes = _directed(label, value, values)
        return {
            f"seek.{direction}_{which}": None if time is None else f"{time:g}ms"
            for direction, time in (("read", reads), ("write", writes))
        }

    return read


def _rate(key: str) -> Callable[[str, str], KeyValues]:
    def read(label: str, value: str) -> KeyValues:
        rates = figures.rates(label, value)
        return {key: _per_second(rates[0]) if rates else None}

    return read


def _per_second(rate: float) -> str:
    return f"{rate / 1e9:.6g}GB/s" if rate >= 1e9 else f"{rate / 1e6:.6g}MB/s"


def _sequential(label: str, value: str) -> KeyValues:
    reads, writes = _directed(label, value, figures.rates(label, value))
    return {
        "stated.sequential_read": None if reads is None else _per_second(reads),
        "stated.sequential_write": None if writes is None else _per_second(writes),
    }


def _depth(text: str) -> int | None:
    match = re.search(r"qd\s*=?\s*(\d+)|queue depth\s*(?:of\s*)?=?\s*(\d+)|(\d+)\s*q\b", text)
    return int(next(part for part in match.groups() if part)) if match else None


def _request(text: str) -> int | None:
    match = re.search(
        r"(\d+)\s*k(?:i?b)?\b", re.sub(r"[\d,.]+\s*k(?=\s*iops)|[\d,.]+k\b(?!\s*(?:i?b|q|,|\)))", "", text)
    )
    return int(match[1]) * 1024 if match else None


def _random(label: str, value: str) -> KeyValues:
    """Returns the rates of random requests; rates at queue depth 1 are converted to latencies."""
    text = f"{label} {value.lower()}"
    if re.search(r"\d0\s*/\s*\d0|mix|r/w|\bseq", label):
        return {}
    size, depth = _request(label) or _request(value.lower()) or 4096, _depth(text)
    plain = re.sub(r"\([^)]*\)", " ", value)
    reads, writes = _directed(label, value, figures.numbers(plain))
    if re.search(r"kiops|\(k\b", text):
        reads, writes = (rate * 1e3 if rate is not None and rate < 1e5 else rate for rate in (reads, writes))
    if (size != 4096 and reads is not None) or (reads is None and writes is None):
        return {}
    if depth == 1:
        return {
            "?read_alone": None if reads is None else f"{1e6 / reads:.4g}us",
            "?write_alone": None if writes is None else f"{1e6 / writes:.4g}us",
        }
    common: KeyValues = (
        {"size": f"{size // 1024}KiB"} if depth is None else {"depth": depth, "size": f"{size // 1024}KiB"}
    )
    state = {"state": "steady"} if re.search(r"steady|sustained", text) else {}
    if re.search(r"\bwc[de]\b|write cache", text):
        state["cache"] = "off" if re.search(r"\bwcd\b|disabled|\boff\b", text) else "on"
    return {
        "stated.random_read": None if reads is None else {"iops": round(reads), **common},
        "stated.random_write": None if writes is None else {"iops": round(writes), **common, **state},
    }


def _latency(label: str, value: str) -> KeyValues:
    if "seq" in label or "99" in label or "qos" in label:
        return {}
    first, second = figures.times_us(label, value)
    reads, writes = _directed(label, value, [time for time in (first, second) if time is not None])
    return {
        "stated.read_latency": None if reads is None else f"{reads:g}us",
        "stated.write_latency": None if writes is None else f"{writes:g}us",
    }


def _turn(label: str, value: str) -> KeyValues:
    """Parses half a revolution, which a disk's data sheet calls its latency."""
    if not re.search(r"\bms(ec)?\b", f"{label} {value.lower()}"):
        return {}
    return {"?half_turn_ms": figures.times_ms(label, value)[0]}


LINES = {"1.5": 150, "3": 300, "6": 600, "12": 1200, "22.5": 2400, "24": 2400}
"""Payload in MB/s of a serial link by its rate in Gbit/s."""


def _interface(label: str, value: str) -> KeyValues:
    text = value.lower()
    lanes = re.search(r"[x×]\s*(\d+)|(\d+)\s*lanes?", text)
    express = re.search(r"(?:pci\s*-?\s*e(?:xpress)?|gen(?:eration)?)\D{0,12}?(\d)(?:\.\d)?", text.replace("®", ""))
    if "nvme" in text or "pcie" in text or "pci express" in text or "u.2" in text or "u.3" in text:
        return {
            "interface.kind": "nvme",
            "interface.generation": int(express[1]) if express else None,
            "interface.lanes": int(next(part for part in lanes.groups() if part)) if lanes else None,
        }
    for kind, pattern in (("sata", r"sata|serial ata"), ("sas", r"\bsas\b|serial attached")):
        if re.search(pattern, text):
            return {"interface.kind": kind, "interface.rate": _line(text)}
    return {}


def _line(text: str) -> str | None:
    """Returns the payload of a serial link, without the overhead of its line code."""
    rate = re.search(r"(\d+(?:\.\d+)?)\s*g(?:b|bits?)(?:/s|ps)?\b", text)
    megabytes = LINES.get(f"{float(rate[1]):g}") if rate else None
    return f"{megabytes}MB/s" if megabytes else None


def _link(label: str, value: str) -> KeyValues:
    return {"interface.rate": _line(value.lower())} if _line(value.lower()) else _rate("interface.rate")(label, value)


def _flash(label: str, value: str) -> KeyValues:
    text = value.lower()
    kinds = (
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
    return {"reliability.mtbf_h": int(hours[0] * 1e6) if millions else int(hours[0])}


def _errors(label: str, value: str) -> KeyValues:
    match = re.search(r"10\s*(?:\^|e|\*\*)?\s*-?(\d{2})\b|1e-?(\d{2})|10(1[3-8])\b", value.lower().replace(" ", ""))
    return {
        "reliability.bits_per_error": float(f"1e{next(part for part in match.groups() if part)}") if match else None
    }


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
    size_bytes = figures.bytes_of(label, value.replace("KB", "KiB").replace("kB", "KiB"))
    return {"capacity.mapping_unit": None if size_bytes is None else f"{size_bytes / 1024:.0f}KiB"}


def _blocks(label: str, value: str) -> KeyValues:
    blocks = figures.first(value)
    return {"capacity.logical_blocks": int(blocks) if blocks is not None and blocks > 1e5 else None}


def _raw(label: str, value: str) -> KeyValues:
    return {"flash.raw": _capacity(label, value).get("capacity.size")}


def _speed(label: str, value: str) -> KeyValues:
    rpm = figures.first(value)
    # "5400 RPM class" is a product class, not a speed.
    return {"spindle.speed": f"{rpm:g}rpm" if rpm is not None and 1000 <= rpm <= 30000 else None}


def _endurance(label: str, value: str) -> KeyValues:
    if "dwpd" in f"{label} {value.lower()}" or "drive writes" in label:
        return {"endurance.dwpd": figures.first(value)}
    written = figures.first(value)
    petabytes = re.search(r"\bp(eta)?b", f"{label} {value.lower()}")
    return {"endurance.tbw": written if written is None or not petabytes else 1000 * written}


def _form(label: str, value: str) -> KeyValues:
    return {"geometry.media_diameter_mm": 65.0 if re.search(r"\b2[.,]5", value) else None}


RULES: tuple[tuple[re.Pattern[str], Callable[[str, str], KeyValues]], ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (r"^(vendor|manufacturer|maker|brand)\b", _text("vendor")),
        (r"^(name|product name|product|drive|series|(product )?family)$", _text("name")),
        (r"^(standard )?(model|part)( ?(number|no\.?|name|s))?\b|^(sku|mpn)$", _text("model")),
        (r"^year|introduc|launch|release|announce", _year),
        (r"price|msrp", _price),
        (r"power.?loss|\bplp\b|capacitor", _protected),
        (r"idle", _watts("power.idle_w")),
        (r"\(m?w\)|watt|\bpower\b(?!-| on| cycle)", _watts("power.active_w")),
        (r"sectors? (per|a) drive|guaranteed sectors|addressable|logical blocks|total.*sectors|\blbas?\b", _blocks),
        (r"bytes per sector|sector (size|format)|^format\b|block (size|length)|user bytes", _sector),
        (r"indirection unit|mapping unit", _unit),
        (r"heads.*(dis[ck]|platter)|(dis[ck]|platter).*heads", _disks_and_heads),
        (r"\bheads\b", _count("geometry.heads")),
        (r"^(number of )?(dis[ck]s|platters)\b", _count("geometry.platters")),
        (r"cylinders", _count("geometry.cylinders")),
        (r"spindle|rotation(al)? (speed|rate)|\brpm\b|dis[ck] speed|^speed\b", _speed),
        (r"track.to.track|single.?track|adjacent", _seek("track_to_track")),
        (r"full.?stroke|(maximum|max\.?) seek|seek.*\bmax(imum)?\b", _seek("full_stroke")),
        (r"\bseek", _seek("average")),
        (r"latency", _turn),
        (r"after (the )?(slc|turbo)|(slc|turbowrite).*(exhaust|after)|native write", _rate("stated.after_slc")),
        (r"random|\biops\b|^4\s*k", _random),
        (r"latency|response time", _latency),
        (r"\bp?slc\b.*(cache|buffer|size)|turbo ?write", _slc_cache),
        (r"raw (capacity|flash|nand)", _raw),
        (r"seq(uential)?\b", _sequential),
        (r"(interface|host|external|i/o|bus|burst).*(rate|speed|transfer|bandwidth)", _link),
        (r"(rate|speed|transfer|throughput).*\b(id|inner|inside)\b", _rate("media.sustained_inner_rate")),
        (r"(sustain|internal|media|buffer|data|dis[ck]|^max).*(rate|speed|transfer|throughput)", _rate(OUTER)),
        (r"^transfer (rate|speed)|\bod\b", _rate(OUTER)),
        (r"interface|host bus|^bus\b|connectivity", _interface),
        (r"nand|flash|cell type|media type|storage memory|lithography|^media$|components", _flash),
        (r"channels", _count("flash.channels")),
        (r"dies per channel", _count("flash.dies_per_channel")),
        (r"cache|buffer|\bdram\b|memory", _buffer),
        (r"capacity|^size\b|formatted", _capacity),
        (r"mtbf|mttf|mean time", _hours),
        (r"\bafr\b|annuali[sz]ed", _share),
        (r"error|uber|\bure\b", _errors),
        (r"dwpd|drive writes|\b[tp]bw\b|(tera|peta)bytes written|endurance", _endurance),
        (r"form factor|width", _form),
    )
)
"""Patterns of labels in lower case, the most specific first."""
