"""RocksDB: the rate limiter of flushes and compactions."""

from __future__ import annotations

from headstack.measurement.tests.settings.plan import BESIDE_STREAM
from headstack.measurement.tests.settings.products.setting import Context, Product, Setting
from headstack.measurement.tests.settings.properties import Estimate, Property, derive

SHARE = 0.5
"""Share of the sustained writes for compactions without a limit on reads: 0.3 to 0.5 keep reads acceptable."""
LINE = (
    "options.rate_limiter.reset(rocksdb::NewGenericRateLimiter({}, 100 * 1000, 10, "
    "rocksdb::RateLimiter::Mode::kWritesOnly, true));"
)


def share_of(context: Context) -> Estimate:
    """Returns the largest measured share of the write rate at which reads meet their limit."""
    limit = context.read_p99_ms
    if limit is None:
        return Estimate(SHARE, SHARE, SHARE)
    within = [
        share
        for share, prop in BESIDE_STREAM.items()
        if (p99 := context.properties[prop].value) is not None and p99 <= limit
    ]
    if not within:
        return Estimate(None, note=f"reads exceed p99 {limit:g} ms even at 25 % of the write rate")
    largest = max(within) / 100
    return Estimate(largest, largest, largest)


def settings(context: Context) -> list[Setting]:
    """Returns the rate of the limiter."""
    share = share_of(context)
    used = SHARE if share.value is None else share.value
    percent = round(100 * used)
    p99 = context.properties[BESIDE_STREAM[percent]].value
    reads = "" if p99 is None else f" (read p99 there: {p99:.3g} ms)"
    return [
        Setting(
            "rate_bytes_per_sec",
            derive(lambda per_s, of: per_s * of, context.properties[Property.WRITE_SEQUENTIAL], share),
            LINE,
            f"{used:g} x sustained sequential writes{reads}",
            (Property.WRITE_SEQUENTIAL, BESIDE_STREAM[percent]),
            "none",
            "RocksDB wiki, Rate Limiter, and include/rocksdb/rate_limiter.h",
            "medium",
            "It must allow user writes times the write amplification of levels (10 to 30), or memtables stall.",
        )
    ]


ROCKSDB = Product(
    "RocksDB", "C++, options of the database", (Property.WRITE_SEQUENTIAL, *BESIDE_STREAM.values()), settings
)
