"""Types of the parts of an access specification, as the compiled module completes them and as tests state them."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict, final


class Line(TypedDict):
    """A line of an access specification. Percentages apply to the line's own requests."""

    size: str
    """Length of the requests: ``8KiB``."""
    share_percent: NotRequired[float]
    """Share of all requests; 100 where it is left out."""
    read_percent: float
    random_percent: float
    trim_percent: NotRequired[float]
    """Trims among the requests that are not reads."""
    delay: NotRequired[str]
    """Pause before each burst in a closed loop."""
    burst: NotRequired[int]
    """Consecutive requests in a burst."""
    align: NotRequired[str]
    """Offsets are multiples of this; of the sector where it is left out."""


class Band(TypedDict):
    """A band of the span, with its share of the random accesses."""

    from_percent: float
    to_percent: float
    share_percent: float


@final
class HotBands(TypedDict):
    """Addresses in bands, uniform within each."""

    hot_bands: list[Band]


class Theta(TypedDict):
    """The exponent of a Zipf distribution."""

    theta: float


@final
class Zipf(TypedDict):
    """The block of rank k has a probability in proportion to k^-theta."""

    zipf: Theta


class Skew(TypedDict):
    """The parameter of a self-similar distribution: 0.2 is the 80/20 rule."""

    h: float


@final
class Pareto(TypedDict):
    """Self-similar addresses (Gray et al., SIGMOD 1994)."""

    pareto: Skew


class Bell(TypedDict):
    """Mean and standard deviation, in percent of the span."""

    mean_percent: float
    deviation_percent: float


@final
class Normal(TypedDict):
    """Normally distributed addresses, cut off at the ends of the span."""

    normal: Bell


class Zones(TypedDict):
    """Zones that follow each other at equal steps."""

    zone: str
    """Length of a zone."""
    step: str
    """From the start of a zone to that of the next."""
    backwards: bool


@final
class Strided(TypedDict):
    """Addresses in the order of places, in zones."""

    strided: Zones


class Hotband(TypedDict):
    """A band of the span."""

    from_percent: float
    to_percent: float


@final
class VdbenchHotband(TypedDict):
    """The hot band of vdbench."""

    vdbench_hotband: Hotband


Addresses = Literal["uniform", "once", "random_map"] | HotBands | Zipf | Pareto | Normal | Strided | VdbenchHotband
"""The distribution of random addresses."""


class ClosedLoop(TypedDict):
    """Parameters of a closed loop."""

    queue_depth: int
    """The queue depth."""
    think: str | dict[str, str]
    """``none``, or the time from a completion to the next issue by its distribution."""


@final
class ClosedArrivals(TypedDict):
    """Each completion is followed, after the think time, by the next request."""

    closed: ClosedLoop


class OpenLoop(TypedDict):
    """Parameters of an open loop."""

    rate_per_s: float
    process: str | dict[str, dict[str, str]]
    """``fixed``, ``poisson``, or bursts."""


@final
class OpenArrivals(TypedDict):
    """Requests arrive at their times whether or not earlier ones are done."""

    open: OpenLoop


Arrivals = ClosedArrivals | OpenArrivals


class Video(TypedDict):
    """A client that copies tracks of video frame by frame."""

    reads: int
    """Tracks that are read."""
    writes: int
    """Tracks that are written."""
    cpu: str
    """Time on a processor for each frame."""
    frame: str
    """Length of a frame: ``1MiB``."""
    frames_per_s: NotRequired[float]
    """The rate to hold; left out where frames follow as fast as they can."""
    buffer_frames: int
    """Frames in the buffer."""
    request: str
    """Length of a request."""
    queue_depth: int
    """The queue depth within a frame."""
    frames: NotRequired[int]
    """Frames after which the stream ends."""
