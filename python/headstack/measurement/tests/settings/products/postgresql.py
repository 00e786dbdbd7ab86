"""PostgreSQL 18: planner costs, prefetching and group commit."""

from __future__ import annotations

import math

from headstack.measurement.tests.settings.products.setting import Context, Product, Setting, significant, whole_up
from headstack.measurement.tests.settings.properties import Property, derive

MANUAL = "PostgreSQL 18 documentation"
PAGE = 8192
"""Size of a page, in bytes."""
CACHED = 0.9
"""Share of random page reads that the documentation assumes to be cached."""
COMBINE_KB = (128, 1024)
"""Default and maximum of io_combine_limit, in kB."""
WORKERS = (3, 32)
"""Default and maximum of io_workers."""


def settings(context: Context) -> list[Setting]:
    """Returns the settings of a server whose data are on this device."""
    properties = context.properties
    alone, depth = properties[Property.READ_8K_ALONE], properties[Property.READ_8K_DEPTH]
    knee, sequential = properties[Property.READ_8K_KNEE], properties[Property.READ_SEQUENTIAL]
    prefetch = derive(lambda requests: min(1000.0, requests), depth)
    listed = [
        Setting(
            "random_page_cost",
            derive(lambda rate, per_s: max(1.0, (1 - CACHED) * (per_s / PAGE) / rate), alone, sequential),
            "random_page_cost = {}",
            "0.1 x time of a random page / time of a sequential page",
            (Property.READ_8K_ALONE, Property.READ_SEQUENTIAL),
            "4",
            f"{MANUAL}, Query Planning (90 % of pages cached)",
            "medium",
            "The ratio of the device is far higher (27 on NVMe, 300 on HDDs): caching and concurrency lower it, so "
            "check the plans of your own queries.",
            lambda value: f"{value:.1f}",
        ),
    ]
    for name in ("effective_io_concurrency", "maintenance_io_concurrency"):
        listed.append(
            Setting(
                name,
                prefetch,
                f"{name} = {{}}",
                "queue depth at the knee of 8 KiB reads",
                (Property.READ_8K_DEPTH,),
                "16",
                f"{MANUAL}, Resource Consumption",
                "medium",
                "It applies to each session: divide by the sessions that scan at the same time."
                if name.startswith("effective")
                else "",
                whole_up,
            )
        )
    least, most = COMBINE_KB
    combine = derive(lambda per_s, rate: min(float(most), max(float(least), per_s / rate / 1024)), sequential, knee)
    listed.append(
        Setting(
            "io_combine_limit",
            combine,
            "io_combine_limit = {}kB",
            "sequential bytes/s / random reads of 8 KiB, up to a power of 2",
            (Property.READ_SEQUENTIAL, Property.READ_8K_KNEE),
            "128kB",
            f"{MANUAL}, Resource Consumption; the formula is ours",
            "medium",
            "io_max_combine_limit caps it, and can only be set at the start of the server.",
            lambda value: str(2 ** math.ceil(math.log2(value) - 1e-9)),
        )
    )
    workers = derive(lambda requests: min(WORKERS[1], max(WORKERS[0], requests * PAGE / (least * 1024))), depth)
    listed += [
        Setting(
            "io_workers",
            workers,
            "io_workers = {}",
            "queue depth at the knee / pages of a combined read (16)",
            (Property.READ_8K_DEPTH,),
            "3",
            f"{MANUAL}, Resource Consumption; the formula is ours",
            "medium",
            form=whole_up,
        ),
        Setting(
            "commit_delay",
            derive(lambda rate: 0.5e6 / rate, properties[Property.SYNC_8K]),
            "commit_delay = {}",
            "half of the time of a write of 8 KiB and fdatasync, us",
            (Property.SYNC_8K,),
            "0",
            f"{MANUAL}, WAL Configuration (pg_test_fsync)",
            "high",
            "It helps only with more than commit_siblings (5) open transactions, and other sync methods than fdatasync "
            "can be faster: run pg_test_fsync for wal_sync_method.",
            lambda value: str(max(1, significant(value))),
        ),
    ]
    return listed


POSTGRESQL = Product(
    "PostgreSQL",
    "postgresql.conf",
    (
        Property.READ_8K_ALONE,
        Property.READ_8K_KNEE,
        Property.READ_8K_DEPTH,
        Property.READ_SEQUENTIAL,
        Property.SYNC_8K,
    ),
    settings,
)
