"""Types of the cache lab: options and report in the form of the compiled module."""

from __future__ import annotations

from typing import Literal, TypedDict


class Blocks(TypedDict):
    """The size of a block in bytes, a power of two."""

    bytes: int


class BlockUnit(TypedDict):
    """Caches that hold blocks."""

    blocks: Blocks


Unit = BlockUnit | Literal["objects", "object_bytes"]
"""Contents of caches: blocks, a number of whole requests, or a number of bytes of whole requests."""


class UpTo(TypedDict):
    """Maximum length of a cached request."""

    length_bytes: int


class UpToAdmission(TypedDict):
    """Admission of requests up to a length."""

    up_to: UpTo


class AdmittedShare(TypedDict):
    """Share of the misses that is cached, from 0 to 1."""

    share: float


class ShareAdmission(TypedDict):
    """Admission of a random share."""

    share: AdmittedShare


Admission = UpToAdmission | ShareAdmission | Literal["all", "second"]


class LabOptions(TypedDict):
    """Options of the cache lab."""

    policies: list[str]
    sizes: list[int]
    """Sizes of caches: blocks, objects or bytes of objects."""
    unit: Unit
    writes: str
    """``through``, ``back``, ``around`` or ``read-only``."""
    dirty_share: float
    """Maximum dirty share, from 0 to 1, with ``back``."""
    destage_bytes: int
    """Maximum number of bytes to destage at once."""
    admission: Admission
    rate: float
    """Minimum share of the blocks or objects in a sample, from 0 to 1."""
    samples: int
    """Number of independent samples, if the rate is below 1."""
    seed: int
    """Seed of the choice of blocks in the samples."""
    memory_bytes: int
    """Memory for identifiers, policies and references."""


class Behind(TypedDict):
    """The system behind a cache."""

    system: str
    """Its name."""
    hit_ns: int
    """Latency of a hit."""
    notes: list[str]
    """Notes on the clock and addresses of the trace."""


class Share(TypedDict):
    """A share, with a confidence band if it is estimated."""

    value: float
    """From 0 to 1."""
    low: float | None
    """Lower bound of the 95 % band; ``None`` where the count is exact."""
    high: float | None
    """Upper bound of the 95 % band; ``None`` where the count is exact."""


class CacheReport(TypedDict):
    """One policy at one size."""

    policy: str
    """The policy's name."""
    cache: int
    """The size in blocks, objects or bytes of objects, as requested."""
    cache_bytes: int | None
    """The size in bytes; ``None`` where objects are counted."""
    miss_ratio: Share
    """Misses over all references."""
    read_miss_ratio: Share | None
    """Miss ratio of reads; ``None`` without reads."""
    write_miss_ratio: Share | None
    """Miss ratio of writes; ``None`` without writes."""
    back_reads: int | None
    """Number of reads from the system behind the cache, with adjacent misses merged; ``None`` for samples, which split
    them."""
    back_read_bytes: float
    """Bytes read from the system behind the cache."""
    back_writes: int | None
    """Number of writes to the system behind the cache, passed through or destaged; ``None`` for samples."""
    back_write_bytes: float
    """Bytes written to the system behind the cache."""
    dirty_bytes: float
    """Dirty bytes in the cache at the end, which are not written."""


class LabReport(TypedDict):
    """Misses of all policies at all sizes."""

    unit: str
    """Counted unit: ``blocks``, ``objects`` or ``bytes`` of objects."""
    block_bytes: int | None
    """Bytes of a block; ``None`` where requests are objects."""
    references: list[int]
    """Number of references by reads and by writes."""
    requests: int
    """Number of counted requests, which transfer data."""
    distinct: float
    """Number of distinct blocks or objects; an estimate if ``sampled_rate`` is below 1."""
    sampled_rate: float
    """Share of the blocks or objects in each sample; 1 where the count is exact."""
    samples: int
    """Independent samples; 1 where the count is exact."""
    caches: list[CacheReport]
    """Results by policy and size, in the requested order."""


class Responses(TypedDict):
    """Latencies with one cache; ``None`` without requests of a kind."""

    policy: str
    cache: int
    """The size in blocks, objects or bytes of objects, as requested."""
    responses: int
    """Number of completed requests."""
    mean_ns: float | None
    p99_ns: int | None
    read_mean_ns: float | None
    read_p99_ns: int | None
    write_mean_ns: float | None
    write_p99_ns: int | None


class BehindReport(TypedDict):
    """Results of the replays behind caches."""

    times: list[Responses]
    """Latencies with each cache; caches that know the future have none."""
    notes: list[str]
    """Notes on limits of the trace, which apply to every cache."""


class CacheRow(TypedDict):
    """A row of the table of caches, with the columns of ``cache_runs.FIELDS``."""

    policy: str
    cache: int
    cache_bytes: int | None
    miss_ratio: float
    miss_ratio_low: float | None
    miss_ratio_high: float | None
    read_miss_ratio: float | None
    write_miss_ratio: float | None
    back_reads: int | None
    back_read_bytes: float
    back_writes: int | None
    back_write_bytes: float
    dirty_bytes: float
    mean_ms: float | None
    p99_ms: float | None
    read_mean_ms: float | None
    read_p99_ms: float | None
    write_mean_ms: float | None
    write_p99_ms: float | None
