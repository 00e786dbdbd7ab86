"""Figures as SVG without scripts: a page shows them until its script draws the interactive figures, or permanently.

Their colours are classes of the page's style (web/src/page.css), so that they follow its theme."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from headstack.report.figures import Bars, Heat, Lines, Series
from headstack.report.labels import Rectangle, place_label

WIDTH, HEIGHT = 600, 360
TOP, RIGHT, BOTTOM = 26, 14, 42
CHARACTER = 6.6
"""Width of a character of an axis, in pixels."""
DASHES = ("", "7 3", "2 3", "9 3 2 3")
POINT_DISTANCE_MIN = 0.7
"""Minimum distance of a point from the previous one, in pixels; nearer points are left out."""
NINES = (0, 50, 90, 99, 99.9, 99.99, 99.999, 100)
SHADES = ((207, 213, 239), (83, 100, 189), (12, 31, 51))
LOG_MAP_RATIO = 30
"""A map is logarithmic if its largest value is this many times its smallest."""
LEAST, MOST = 1e-307, 1e307
"""Limits of axes: there is no space around larger or smaller numbers."""
NAME = 34
"""Maximum number of characters of a group's name."""

Kind = Literal["linear", "log", "nines"]
Point = tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """An axis: maps values to shares of its length, and has round tick values."""

    kind: Kind
    low: float
    high: float
    end: float = 2.0
    """For axes of nines, the position of 100."""

    def at(self, value: float) -> float | None:
        """Returns the position on the axis from 0 to 1, or ``None`` if it cannot show the value."""
        if self.kind == "log" and value <= 0:
            return None
        low, high = self._forth(self.low), self._forth(self.high)
        return (self._forth(value) - low) / ((high - low) or 1.0)

    def _forth(self, value: float) -> float:
        if self.kind == "log":
            return math.log10(value)
        if self.kind == "nines":
            return self.end if value >= 100 else min(self.end, -math.log10(1 - value / 100))
        return value

    def ticks(self, ticks_max: int) -> list[float]:
        if self.kind == "nines":
            within = [tick for tick in NINES if self.low <= tick <= self.high]
            return [tick for tick in within if tick == 100 or self._forth(tick) < self.end - 0.5]
        if self.kind == "log":
            for factors in ((1, 2, 5), (1, 3), (1,)):
                ticks = _powers(self.low, self.high, factors)
                if 2 <= len(ticks) <= ticks_max:
                    return ticks
            ticks = _powers(self.low, self.high, (1,))
            if len(ticks) > ticks_max:
                return ticks[:: -(-len(ticks) // ticks_max)]
        step = _step((self.high - self.low) / ticks_max)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [float(f"{n * step:.12g}") for n in range(first, last + 1)]


def _powers(low: float, high: float, factors: Sequence[int]) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [float(f"{factor}e{power}") for power in powers for factor in factors]
    return [step for step in steps if low <= step <= high]


def _step(least: float) -> float:
    if not least > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= least), 10 * power)


def _scale_of(kind: Kind, values: Sequence[float], end: float = 2.0) -> Scale:
    """Adds a margin around values; a linear axis begins at 0 if that is near enough."""
    drawable = [value for value in values if kind != "log" or value > 0] or [1.0]
    low, high = min(drawable), max(drawable)
    if kind == "nines":
        return Scale(kind, low, high if high > low else 100.0, end)
    if kind == "log":
        # In decades: the quotient of the ends may overflow.
        margin = 10.0 ** max(0.06 * (math.log10(high) - math.log10(low)), math.log10(1.08))
        return Scale(kind, max(low / margin, LEAST), min(high * margin, MOST))
    if low == high:
        low, high = (0.0, 1.0) if low == 0 else (min(0.0, 2 * low), max(0.0, 2 * high))
    margin = 0.06 * (high - low)
    return Scale(kind, 0.0 if 0 <= low < 0.4 * high else low - margin, min(high + margin, MOST))


@dataclass(frozen=True)
class Frame:
    """The area within the axes, in pixels."""

    left: float
    x: Scale
    y: Scale
    height: float = HEIGHT
    bottom: float = HEIGHT - BOTTOM
    top: float = TOP
    right: float = WIDTH - RIGHT

    def put(self, x: float | None, y: float | None) -> Point | None:
        across = None if x is None else self.x.at(x)
        height = None if y is None else self.y.at(y)
        if across is None or height is None:
            return None
        return self.left + across * (self.right - self.left), self.bottom - height * (self.bottom - self.top)


def still(figure: Lines | Bars | Heat) -> str:
    """Returns the picture of a figure whose axes and looks are decided."""
    match figure:
        case Lines():
            parts, height = _lines(figure)
        case Bars():
            parts, height = _bars(figure)
        case Heat():
            parts, height = _heat(figure)
    title = escape(figure.title)
    head = f'<svg class="chart still" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}">'
    return f"{head}<title>{title}</title>{''.join(parts)}</svg>"


# Lines.


def _lines(figure: Lines) -> tuple[list[str], int]:
    percents = [x for line in figure.series for x in line.x if x is not None]
    end = 1.0 + math.ceil(max((-math.log10(1 - p / 100) for p in percents if p < 100), default=1.0) - 1e-9)
    kind: Kind = "nines" if figure.x_is_percentile else "log" if figure.x.log else "linear"
    x = _scale_of(kind, _known_values(figure.series, ("x", "low_x", "high_x")), end)
    ups = [*_known_values(figure.series, ("y", "low", "high", "p99")), *(limit.value for limit in figure.limits)]
    y = _scale_of("log" if figure.y.log else "linear", ups)
    frame = _frame_of(x, y)
    parts = [*_axis_y(frame, figure.y.label), *_axis_x(frame, figure.x.label)]
    for line in figure.series:
        parts += _series(line, frame)
    for limit in figure.limits:
        _, height = frame.put(x.high, limit.value) or (0, 0)
        text = f'<text x="{frame.right - 2}" y="{_px(height - 4)}" text-anchor="end">{escape(limit.label)}</text>'
        parts.append(f'<path class="limit" d="M{_px(frame.left)} {_px(height)}H{frame.right}"/>{text}')
    return [*parts, *_labels(figure.series, frame)], HEIGHT


def _known_values(series: Iterable[Series], names: Sequence[str]) -> list[float]:
    return [value for each in series for name in names for value in getattr(each, name) if value is not None]


def _series(series: Series, frame: Frame) -> Iterable[str]:
    points = [frame.put(x, y) for x, y in zip(series.x, series.y, strict=True)]
    colour, dash = series.colour or "", DASHES[series.dash or 0]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    yield from _intervals(series, frame)
    if series.p99:
        tail = [frame.put(x, y) for x, y in zip(series.x, series.p99, strict=True)]
        yield f'<path class="{colour} line thin"{dashed} d="{_path(tail)}"/>'
    yield from _rules(series, frame)
    if not series.published and not series.marks:
        yield f'<path class="{colour} line"{dashed} d="{_path(points)}"/>'
    marks = series.marks or ["open" if series.published else "full"] * len(points)
    for kind in ("cross", "open", "full"):
        placed = [point for point, mark in zip(points, marks, strict=True) if point is not None and mark == kind]
        if placed and kind == "cross":
            crosses = "".join(f"{_at(point, -3, -3)}l6 6{_at(point, 3, -3)}l-6 6" for point in placed)
            yield f'<path class="{colour} mark star" d="{crosses}"/>'
        elif placed:
            dots = "".join(f"{_at(point)}h0" for point in _thin_out(placed))
            yield f'<path class="{colour} dots" d="{dots}"/>'
            if kind == "open":
                yield f'<path class="dots inner" d="{dots}"/>'
    knee = frame.put(*series.mark) if series.mark else None
    if knee:
        yield f'<circle class="{colour} knee" cx="{_px(knee[0])}" cy="{_px(knee[1])}" r="9"/>'


def _intervals(series: Series, frame: Frame) -> Iterable[str]:
    """Draws bands around lines, and strokes at isolated points."""
    lows = [frame.put(x, y) for x, y in zip(series.low_x or series.x, series.low, strict=False)]
    highs = [frame.put(x, y) for x, y in zip(series.high_x or series.x, series.high, strict=False)]
    pairs = [(low, high) for low, high in zip(lows, highs, strict=True) if low is not None and high is not None]
    if series.published or series.marks or len(pairs) == 1:
        d = "".join(f"{_at(high)}L{_px(low[0])} {_px(low[1])}" for low, high in pairs)
        yield f'<path class="{series.colour} line" d="{d}"/>' if d else ""
    elif pairs:
        edge: list[Point | None] = [*(high for _, high in pairs), *(low for low, _ in reversed(pairs))]
        yield f'<path class="{series.colour} band" d="{_path(edge)}z"/>'


def _rules(series: Series, frame: Frame) -> Iterable[str]:
    """Draws published values with only one coordinate as lines across."""
    for x, y in zip(series.x, series.y, strict=True):
        point = frame.put(frame.x.low if x is None else x, frame.y.low if y is None else y)
        if series.published and (x is None) != (y is None) and point is not None:
            d = (
                f"M{_px(frame.left)} {_px(point[1])}H{frame.right}"
                if x is None
                else f"M{_px(point[0])} {TOP}V{frame.bottom}"
            )
            yield f'<path class="{series.colour} rule-across" d="{d}"/>'


def _labels(series: Sequence[Series], frame: Frame) -> Iterable[str]:
    """Draws labels next to points without overlaps."""
    taken: list[Rectangle] = []
    room = (frame.left, -frame.bottom, frame.right + RIGHT, -frame.top + 12)
    for line in series:
        for x, y, label in zip(line.x, line.y, line.labels, strict=False):
            point = frame.put(x, y)
            placed = place_label(label, (point[0], -point[1]), [], taken, room) if label and point else None
            if placed is None or point is None:
                continue
            (right, up, side), rectangle = placed
            taken.append(rectangle)
            anchor = "start" if side == "left" else "end"
            position = f'x="{_px(point[0] + right)}" y="{_px(point[1] - up)}" text-anchor="{anchor}"'
            yield f'<text class="{line.colour} beside" {position}>{escape(label)}</text>'


# Bars and maps.


def _bars(figure: Bars) -> tuple[list[str], int]:
    names = [name if len(name) <= NAME else f"{name[: NAME - 1]}…" for name in figure.groups]
    longest = CHARACTER * max(map(len, names), default=1)
    is_aslant = longest > 0.96 * (WIDTH - 60) / max(1, len(names))
    height = HEIGHT + (round(0.55 * longest) if is_aslant else 0)
    sums = [sum(bars.y[n] or 0.0 for bars in figure.series) for n in range(len(names))] if figure.stacked else []
    values = [*sums, *_known_values(figure.series, ("y", "low", "high"))]
    positive = [value for value in values if value > 0] or [1.0]
    if figure.y.log:
        low, high = math.floor(math.log10(0.93 * min(positive))), 1.2 * max(positive)
        y = Scale("log", max(10.0**low, LEAST), min(high, MOST))
    else:
        y = Scale("linear", 1.06 * min([0.0, *values]), 1.06 * max([0.0, *values]) or 1.0)
    frame = _frame_of(Scale("linear", 0, len(names) or 1), y, 60 if is_aslant else 0)
    parts = _axis_y(frame, figure.y.label)
    count = 1 if figure.stacked or is_alone(figure) else max(1, len(figure.series))
    tops = [0.0] * len(names)
    for number, bars in enumerate(figure.series):
        for group, value in enumerate(bars.y):
            offset = 0.0 if count == 1 else (number + 0.5 - count / 2) * 0.82 / count
            below = tops[group] if figure.stacked else y.low if figure.y.log else 0.0
            parts += _bar(frame, bars, group, group + 0.5 + offset, (0.6 if count == 1 else 0.78 / count), below)
            tops[group] += value or 0.0
    return [*parts, *_group_names(names, frame, is_aslant)], height


def is_alone(figure: Bars) -> bool:
    """Whether each group has at most one bar, so that the group's name also names its series."""
    return all(sum(bars.y[n] is not None for bars in figure.series) <= 1 for n in range(len(figure.groups)))


def _bar(frame: Frame, bars: Series, group: int, middle: float, width: float, below: float) -> Iterable[str]:
    value = bars.y[group]
    if value is None:
        return
    # On a logarithmic axis a bar starts at the axis's lower end.
    foot = frame.put(middle - width / 2, below)
    top = frame.put(middle + width / 2, value if frame.y.kind == "log" else below + value)
    if foot is None or top is None:
        return
    hatched = " hatched" if bars.published else ""
    yield f'<path class="{bars.colour} bar{hatched}" d="{_at(foot)}V{_px(top[1])}H{_px(top[0])}V{_px(foot[1])}z"/>'
    ends = [frame.put(middle, values[group]) for values in (bars.low, bars.high) if len(values) > group]
    if len(ends) == 2 and ends[0] is not None and ends[1] is not None:
        yield f'<path class="whisker" d="{_at(ends[0])}V{_px(ends[1][1])}"/>'


def _group_names(names: Sequence[str], frame: Frame, is_aslant: bool) -> Iterable[str]:
    for n, name in enumerate(names):
        x, y = _px(frame.left + (n + 0.5) / len(names) * (frame.right - frame.left)), _px(frame.bottom + 15)
        turned = f' transform="rotate(-35 {x} {y})" text-anchor="end"' if is_aslant else ' text-anchor="middle"'
        yield f'<text class="group" x="{x}" y="{y}"{turned}>{escape(name)}</text>'


def _heat(figure: Heat) -> tuple[list[str], int]:
    frame = _frame_of(
        Scale("log" if figure.x.log else "linear", *figure.x_range),
        Scale("log" if figure.y.log else "linear", *figure.y_range),
    )
    box = f'x="{_px(frame.left)}" y="{TOP}" width="{_px(frame.right - frame.left)}" height="{_px(frame.bottom - TOP)}"'
    image = f'<image {box} preserveAspectRatio="none" href="data:image/png;base64,{_png(figure.values)}"/>'
    return [*_axis_y(frame, figure.y.label), *_axis_x(frame, figure.x.label), image], HEIGHT


def _png(values: Sequence[Sequence[float]]) -> str:
    """Returns an image with one pixel per cell; cells of 0 are transparent."""
    present = [value for row in values for value in row if value] or [1.0]
    low, high = min(present), max(present)
    scaled: Callable[[float], float] = math.log if low > 0 and high > LOG_MAP_RATIO * low else float
    floor = scaled(low) if scaled is math.log else min(0.0, low)
    span = (scaled(high) - floor) or 1.0
    cells = {value: _shade((scaled(value) - floor) / span) for value in set(present)} | {0: b"\0\0\0\0"}
    rows = b"".join(b"\0" + b"".join(cells[value] for value in row) for row in reversed(values))
    header = struct.pack(">IIBBBBB", len(values[0]) if values else 1, len(values) or 1, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    packed = [
        struct.pack(">I", len(scaled)) + name + scaled + struct.pack(">I", zlib.crc32(name + scaled))
        for name, scaled in chunks
    ]
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(packed)).decode()


def _shade(share: float) -> bytes:
    place = min(1.0, max(0.0, share)) * (len(SHADES) - 1)
    below = min(int(place), len(SHADES) - 2)
    ends = zip(SHADES[below], SHADES[below + 1], strict=True)
    return bytes([*(round(start + (place - below) * (end - start)) for start, end in ends), 255])


# Axes and paths.


def _frame_of(x: Scale, y: Scale, least: float = 0) -> Frame:
    widest = max(2, *(len(_text(tick)) for tick in y.ticks(8)))
    return Frame(max(least, CHARACTER * widest + 14), x, y)


def _axis_y(frame: Frame, label: str) -> list[str]:
    parts = []
    for tick in frame.y.ticks(8):
        _, height = frame.put(frame.x.high, tick) or (0, 0)
        parts.append(
            f'<path class="rule" d="M{_px(frame.left)} {_px(height)}H{frame.right}"/>'
            f'<text x="{_px(frame.left - 7)}" y="{_px(height + 4)}" text-anchor="end">{_text(tick)}</text>'
        )
    return ['<g class="axis">', *parts, f'<text class="label" x="2" y="12">{escape(label)}</text></g>']


def _axis_x(frame: Frame, label: str) -> list[str]:
    parts = ['<g class="axis">']
    end = -math.inf
    for tick in frame.x.ticks(7):
        across, _ = frame.put(tick, frame.y.high) or (0, 0)
        half = CHARACTER * len(_text(tick)) / 2
        parts.append(f'<path class="rule" d="M{_px(across)} {TOP}V{_px(frame.bottom)}"/>')
        if across - half > end + 6:
            end = across + half
            # At the right edge it is moved to stay within the picture.
            position = f'x="{_px(min(across, frame.right + RIGHT - half))}" y="{_px(frame.bottom + 16)}"'
            parts.append(f'<text {position} text-anchor="middle">{_text(tick)}</text>')
    position = f'x="{frame.right}" y="{_px(frame.bottom + 34)}" text-anchor="end"'
    return [*parts, f'<text class="label" {position}>{escape(label)}</text></g>']


def _text(tick: float) -> str:
    return f"{tick:,.10g}".replace("-", "\u2212")


def _px(pixels: float) -> str:
    return f"{pixels:.1f}".removesuffix(".0")


def _at(point: Point, right: float = 0, down: float = 0) -> str:
    return f"M{_px(point[0] + right)} {_px(point[1] + down)}"


def _thin_out(points: Iterable[Point]) -> Iterable[Point]:
    last = (-math.inf, -math.inf)
    for point in points:
        if math.dist(last, point) >= POINT_DISTANCE_MIN:
            last = point
            yield point


def _path(points: Iterable[Point | None]) -> str:
    """Draws a line through points in order, with a gap at each missing one."""
    drawn, last = "", None
    for point in points:
        if point is None or last is None or math.dist(last, point) >= POINT_DISTANCE_MIN:
            drawn += "" if point is None else f"{'M' if last is None else 'L'}{_px(point[0])} {_px(point[1])}"
            last = point
    return drawn
