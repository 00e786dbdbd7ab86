"""Probe of an array's layout: among many concurrent random reads, those that share a member with others take longer.

One set of random reads tests all layouts at once: with the right one, the number of requests outstanding on a read's
member at its arrival explains most of its response time. Based on Denehy et al., "Deconstructing storage arrays", 2004,
who search distance by distance for reads that all go to one member.

Mirrors are detected by two reads of one place that do not wait for each other, parity by a write that delays reads on
other members.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from headstack.twin.device import READ, WRITE, Answers, Floats, Integers, Requests
from headstack.twin.layout import Layout, layouts
from headstack.twin.session import Session, places

SLOW_NS: Final = 1_000_000.0
"""Response time above which members are disks, which need fewer requests to be distinguished."""
CROWD: Final = {True: (6_000, 64), False: (40_000, 1024)}
"""Number of reads and queue depth, for slow members and for fast ones: several for each drive of a shelf."""
LONG: Final = 10_000
LONG_DEPTH: Final = 256
LONG_MOST: Final = 1 << 17
SIGNIFICANT_SIGMAS: Final = 8.0
"""Minimum significance of a correlation in standard deviations: over 396 layouts, the maximum by chance is 3."""
LOOKED_AT: Final = 6_000
"""Number of answers with which the most likely layouts are selected."""
LIKELIEST: Final = 40
SHARED: Final = 0.3
"""Correlation with the requests outstanding at other places: at least 0.76 if a link is shared, at most 0.06 if not, in
21 arrays of flash."""
PAIRS: Final = 100
READS_BETWEEN: Final = 5
"""Number of single reads that fit between two test requests."""
SETTLED_NS: Final = 30_000_000
"""Time in ns after which flash has programmed one write."""
RECONSTRUCTED: Final = 4
"""Up to this number of members, recomputing parity takes no more reads than updating it."""
WRITES: Final = {True: 100, False: 300}
READS_PER_WRITE: Final = {True: 1, False: 8}
"""Reads of each member during a write: of flash more, since few conflict on a die."""
MIRRORED: Final = {True: 1.55, False: 1.2}
"""Response time ratio that detects mirrors: the later of two simultaneous reads over a single one, for flash over the
earlier. Two disks: at most 1.33, the longer of two rotations and seeks; one disk: at least 1.8, since it serves one
after the other. A page of flash: 1.0 for two drives, at least 1.45 for one."""


def is_slow(session: Session) -> bool:
    """Whether members are disks."""
    (alone,) = session.runs_of("array, alone")
    return float(np.median(alone.answers.response_ns)) > SLOW_NS


def probe(session: Session) -> Layout | None:
    """Probes the layout; returns ``None`` if the device is not striped."""
    block, capacity = max(4096, session.device.block_bytes), session.device.capacity_bytes
    session.ask("array, alone", Requests.reads(places(session.random, 200, capacity, block), block))
    slow = is_slow(session)
    count, depth = CROWD[slow]
    session.ask("crowd", Requests.reads(places(session.random, count, capacity, block), block, depth=depth))
    layout = _striped(session)
    if layout is None:
        return None
    if not slow:
        # A single page shows little of a link.
        size = min(layout.unit_bytes, LONG_MOST)
        where = places(session.random, LONG, capacity, size)
        session.ask("crowd, long", Requests.reads(where, size, depth=LONG_DEPTH))
        layout = _gathered(session, layout)
    apart = int(max(READS_BETWEEN * session.runs_of("array, alone")[0].answers.response_ns.max(), SETTLED_NS))
    _ask_mirrors(session, layout, block, apart)
    if layout.level == "raid0" and session.device.may_write and layout.members >= 3:
        _ask_parity(session, Layout("raid5", layout.members, layout.unit_bytes), block, apart)
    return _with_level(session, layout)


def _ask_mirrors(session: Session, layout: Layout, block: int, apart_ns: int) -> None:
    """Runs two simultaneous reads of one member: for disks anywhere on it, for flash of one page, which is on one
    die."""
    rows, size = layout.rows(session.device.capacity_bytes), block
    chosen = session.random.integers(0, rows, 2 * PAIRS)
    if not is_slow(session):
        chosen, size = np.repeat(chosen[:PAIRS], 2), min(layout.unit_bytes, LONG_MOST)
    offsets = layout.of_member(chosen, 0, rows - 1)
    if not is_slow(session) and session.device.may_write:
        # Unwritten data are on no die.
        session.ask("before two at once", Requests.writes(offsets[::2], size))
        session.rest(SETTLED_NS / 1e9)
    at = np.repeat(np.arange(PAIRS, dtype=np.uint64) * np.uint64(apart_ns), 2)
    session.ask("two at once", Requests.reads(offsets, size, at_ns=at))


def _ask_parity(session: Session, layout: Layout, block: int, apart_ns: int) -> None:
    """Runs reads of every member at once, with and without a preceding write."""
    slow, rows = is_slow(session), layout.rows(session.device.capacity_bytes)
    count, reads_per_member = WRITES[slow], READS_PER_WRITE[slow]
    written = session.random.integers(0, rows, count) * layout.data_units * layout.unit_bytes
    chosen = session.random.integers(0, rows, (layout.members, reads_per_member, count))
    columns = [layout.of_member(chosen[member, each], member, rows - 1)
               for member in range(layout.members) for each in range(reads_per_member)]  # fmt: skip
    reads = np.stack(columns, axis=1)
    both = np.concatenate([written[:, None], reads], axis=1)
    kinds = np.full(both.shape, READ)
    kinds[:, 0] = WRITE
    moments = np.arange(count, dtype=np.uint64) * np.uint64(apart_ns)
    session.ask("beside writes", Requests.of(kinds.ravel(), both.ravel(), block,
                                             at_ns=np.repeat(moments, both.shape[1])))  # fmt: skip
    session.ask("without writes", Requests.reads(reads.ravel(), block, at_ns=np.repeat(moments, reads.shape[1])))


def _with_level(session: Session, layout: Layout) -> Layout:
    """Returns the layout with the level that mirrors and writes show."""
    if layout.level == "raid6":
        return layout
    (pairs,) = session.runs_of("two at once")
    took = pairs.answers.response_ns.reshape(-1, 2)
    lone_ns = _lone_ns(session) if is_slow(session) else float(took.min(axis=1).mean())
    if took.max(axis=1).mean() < MIRRORED[is_slow(session)] * lone_ns:
        return Layout("raid10", 2 * layout.members, layout.unit_bytes)
    with_parity = Layout("raid5", layout.members, layout.unit_bytes)
    return with_parity if session.runs_of("without writes") and _has_parity(session, with_parity) else layout


def _lone_ns(session: Session) -> float:
    return float(session.runs_of("array, alone")[0].answers.response_ns.mean())


def _has_parity(session: Session, layout: Layout) -> bool:
    """Whether a write delays reads at the parity's member more than elsewhere; with few members, anywhere else."""
    (both,), (without,) = session.runs_of("beside writes"), session.runs_of("without writes")
    members = layout.members
    with_writes = both.answers.response_ns.reshape(-1, len(both.requests) // (count := _moments(both.requests)))
    later = with_writes[:, 1:] - without.answers.response_ns.reshape(count, -1)
    later = later.reshape(count, members, -1).sum(axis=2) / _lone_ns(session)
    written = both.requests.offsets.reshape(count, -1)[:, 0]
    each = np.arange(count)
    parity = layout.parity_of(written)
    others = later.copy()
    others[each, layout.member_of(written)] = np.nan
    if members > RECONSTRUCTED:
        others[each, parity] = np.nan
        return _is_above(later[each, parity] - np.nanmean(others, axis=1))
    return _is_above(np.nanmean(others, axis=1))


def _moments(requests: Requests) -> int:
    return len(np.unique(requests.times_ns))


def _is_above(later: Floats) -> bool:
    """Whether a mean is positive by more than chance and by 1 % of a single read."""
    sure = 5 * float(later.std()) / np.sqrt(len(later))
    return bool(later.mean() > max(sure, 0.01))


def outstanding(places_of: Integers, answers: Answers) -> Floats:
    """Returns the number of other requests outstanding at its place when each request arrived."""
    issued, done = answers.issued_ns, answers.completed_ns
    counts = np.empty(len(places_of))
    for place in np.unique(places_of):
        at = np.flatnonzero(places_of == place)
        came = np.searchsorted(np.sort(issued[at]), issued[at], side="left")
        counts[at] = came - np.searchsorted(np.sort(done[at]), issued[at], side="right")
    return counts


def _ranks(values: Floats) -> Floats:
    return np.argsort(np.argsort(values, kind="stable")).astype(np.float64)


def _striped(session: Session) -> Layout | None:
    """Returns the layout for which the queue of a read's member best explains its response time."""
    (crowd,) = session.runs_of("crowd")
    # Until each has completed about twice, all arrived at once.
    first = 2 * crowd.requests.depth

    def scored(some: list[Layout], until: int) -> list[tuple[float, Layout]]:
        offsets, answers = crowd.requests.offsets[:until], _first(crowd.answers, until)
        took = _ranks(answers.response_ns)[first:]
        scores = []
        for layout in some:
            counts = outstanding(layout.member_of(offsets), answers)[first:]
            score = float(np.corrcoef(counts, took)[0, 1]) if counts.std() > 0 else 0.0
            scores.append((score * float(np.sqrt(len(took))), layout))
        return sorted(scores, key=lambda scored_layout: -scored_layout[0])

    likeliest = [layout for _, layout in scored(layouts(), LOOKED_AT)[:LIKELIEST]]
    sure, best = scored(likeliest, len(crowd.requests))[0]
    return best if sure > SIGNIFICANT_SIGMAS else None


def _first(answers: Answers, count: int) -> Answers:
    return Answers(answers.issued_ns[:count], answers.completed_ns[:count])


def _gathered(session: Session, layout: Layout) -> Layout:
    """Merges dies that look like members in a drive filled in order: if long reads wait for others outside of their own
    "member", these share the link of the real member."""
    (crowd,) = session.runs_of("crowd, long")
    settled = slice(2 * crowd.requests.depth, None)
    took = _ranks(crowd.answers.response_ns)[settled]
    own = outstanding(layout.member_of(crowd.requests.offsets), crowd.answers)[settled]

    alike = np.unique(own, return_inverse=True)[1]

    def apart(values: Floats) -> Floats:
        """Returns deviations from the mean of requests with the same queue at their own place."""
        return values - (np.bincount(alike, values) / np.bincount(alike))[alike]

    left = apart(took)

    def shared(group: Layout) -> float:
        """Returns the correlation with the queue of the group, among requests with the same queue at their own
        place."""
        counts = apart(outstanding(group.member_of(crowd.requests.offsets), crowd.answers)[settled])
        return float((counts * left).sum() / np.sqrt((counts**2).sum() * (left**2).sum())) if counts.any() else 0.0

    # Rows of a die are not longer than chunks.
    groups = [group for group in layouts() if group != layout and group.unit_bytes >= layout.unit_bytes]
    best = max(groups, key=shared)
    return best if shared(best) > SHARED else layout
