"""``intervals``: the interval of each sample of rates, and whether the first one holds means since boot.

The first sample of iostat, zpool iostat and vmstat holds means since boot or import, unless they were started with
``-y`` or an excerpt begins later. Requests are whole numbers: a rate times the length of its interval is one, that of a
mean since boot is not. This decides if the rates have decimals; otherwise the banner and the position do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from headstack.diagnosis.judging.sources.files import How

Content = TypeVar("Content")

USUAL_S = (1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 30.0)
"""Intervals that are tried if the samples have no times."""
JIFFIES = tuple(number / 100 for number in (0, 1, -1, 2, -2))
"""Deviations of the true interval from the requested one in seconds: sysstat measures it in hundredths of a second."""
CHANCE_MAX = 1e-3
"""Maximum probability that rates which are no counts look like counts."""
ASSUMED_S = 1.0
NO_TIMES = (
    "no times: intervals of {:g} s are assumed, which does not change rates or latencies; state them with --every"
)
COUNTED = "no times: they are counted from the date in the file, or from 1970"
SINGLE = "the only block of {} is kept, although it may hold means since {}"
UNKNOWN = "the first block of {} is dropped: the start of its interval is unknown"
DROPPED = "the first block of {} is dropped: it may hold means since {}"
NOT_COUNTS = "the first block of {} is dropped: its rates are no whole counts per interval, but means since {}"
COUNTS = "the first block of {} is kept: its rates are whole counts per interval, and not means since {}"
NO_BANNER = "the first block of {} is kept: no banner precedes it; if it holds means since {}, remove it"


@dataclass(frozen=True, slots=True)
class Sample(Generic[Content]):
    """The values printed at one time."""

    time_s: float | None
    """End of the interval in seconds since 1970."""
    content: Content
    counts: Sequence[str] = ()
    """Rates of requests as printed."""
    is_first: bool = False
    """Whether a run of the program begins with it."""
    has_banner: bool = False
    """Whether the banner of the program precedes it."""
    length_s: float | None = None
    """Length of the interval, if it is printed."""
    day_s: float | None = None
    """Day on which its run began, in seconds since 1970, for samples without times."""


def intervals(
    samples: Iterable[Sample[Content]],
    how: How,
    program: str,
    since: str = "boot",
    drops_unsure: bool = False,
) -> Iterator[tuple[float, float, Content]]:
    """Yields start, length and content of each sample; leaves out a first one with means since boot. ``drops_unsure``
    is for programs without a banner, whose first block is dropped if another follows; an empty ``since`` for those
    whose first interval only has no known start."""
    held: Sample[Content] | None = None
    clock = _Clock(how)
    for sample in samples:
        if sample.is_first:
            if held is not None:
                yield from _alone(held, clock, how, program, since)
            held = sample
            clock.restart(sample.day_s)
            continue
        if held is not None:
            length_s = clock.length_s(held, sample)
            if _is_kept(held, sample, length_s, how, (program, since), drops_unsure):
                yield (*clock.interval(held, length_s), held.content)
            else:
                clock.skip(held, length_s)
            held = None
        length_s = clock.length_s(None, sample)
        if length_s > 0:
            yield (*clock.interval(sample, length_s), sample.content)
        else:
            how.remarks["intervals dropped: time did not advance"] += 1
    if held is not None:
        yield from _alone(held, clock, how, program, since)


class _Clock:
    """Ends of intervals, by the times of samples or by the interval that is stated or assumed."""

    def __init__(self, how: How) -> None:
        self.how = how
        self.now_s: float | None = None
        self._begin_s = 0.0

    def restart(self, day_s: float | None) -> None:
        """Begins another run of the program in the same file."""
        self._begin_s = day_s or self.now_s or self._begin_s
        self.now_s = None

    def length_s(self, before: Sample[Content] | None, sample: Sample[Content]) -> float:
        """Returns the length of a sample's interval, which begins at the sample before or at the last end."""
        if sample.length_s is not None:
            return sample.length_s
        if sample.time_s is None:
            return self._without_times()
        begin_s = before.time_s if before is not None else self.now_s
        return self._without_times() if begin_s is None else sample.time_s - begin_s

    def _without_times(self) -> float:
        if self.how.every_s is None:
            self.how.remarks[NO_TIMES.format(ASSUMED_S)] = 1
        else:
            self.how.remarks[COUNTED] = 1
        return self.how.every_s or ASSUMED_S

    def interval(self, sample: Sample[Content], length_s: float) -> tuple[float, float]:
        """Returns start and length, and moves on to the end."""
        if sample.time_s is not None:
            begin_s = sample.time_s - length_s
        else:
            begin_s = self.now_s if self.now_s is not None else self._begin_s
        self.now_s = begin_s + length_s
        return begin_s, length_s

    def skip(self, sample: Sample[Content], length_s: float) -> None:
        """Moves on to the end of a sample that is left out."""
        self.interval(sample, length_s)


def _alone(
    sample: Sample[Content], clock: _Clock, how: How, program: str, since: str
) -> Iterator[tuple[float, float, Content]]:
    """Yields the only sample of a run."""
    if since and not fits(sample.counts, ASSUMED_S):
        how.remarks[SINGLE.format(program, since)] = 1
    length_s = sample.length_s or how.every_s or clock.length_s(None, sample)
    yield (*clock.interval(sample, length_s), sample.content)


def _is_kept(
    first: Sample[Content],
    second: Sample[Content],
    length_s: float,
    how: How,
    names: tuple[str, str],
    drops_unsure: bool,
) -> bool:
    """Whether the first sample of a run is an interval, with a remark on the reason."""
    is_timed = second.time_s is not None or how.every_s is not None or second.length_s is not None
    lengths_s = (length_s,) if is_timed else USUAL_S
    fitting = [length for length in lengths_s if fits(second.counts, length)]
    if any(fits(first.counts, length) for length in fitting):
        remark, is_kept = COUNTS, True
    elif fitting and first.counts and not any(are_counts(first.counts, length) for length in fitting):
        remark, is_kept = NOT_COUNTS, False
    elif first.has_banner or drops_unsure:
        remark, is_kept = DROPPED if names[1] else UNKNOWN, False
    else:
        remark, is_kept = NO_BANNER, True
    how.remarks[remark.format(*names)] = 1
    return is_kept


def fits(counts: Sequence[str], length_s: float) -> bool:
    """Whether rates are whole counts over an interval, and would hardly be by chance.

    >>> from headstack.diagnosis.judging.sources.series import fits
    >>> fits(["1.40", "0.20", "25.60", "3.20"], 5.0), fits(["1.43", "0.20", "25.60", "3.20"], 5.0), fits(["2.00"], 5.0)
    (True, False, False)
    """
    chance = len(JIFFIES) * math.prod(_chance(text, length_s) for text in counts if float(text) > 0)
    return chance <= CHANCE_MAX and are_counts(counts, length_s)


def are_counts(counts: Sequence[str], length_s: float) -> bool:
    """Whether rates can be whole counts over an interval of about this length."""
    return any(all(_is_whole(text, length_s + jiffies) for text in counts) for jiffies in JIFFIES)


def _rounding(text: str, length_s: float) -> float:
    """Returns the error of a count that is due to the decimals of its rate."""
    return 0.5 * length_s * 10.0 ** -len(text.partition(".")[2])


def _chance(text: str, length_s: float) -> float:
    return min(1.0, 2.0 * _rounding(text, length_s))


def _is_whole(text: str, length_s: float) -> bool:
    count = float(text) * length_s
    return abs(count - round(count)) <= 1.001 * _rounding(text, length_s) + 1e-9
