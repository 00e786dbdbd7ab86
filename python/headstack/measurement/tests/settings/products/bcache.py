"""bcache: the latency of the cache device above which reads bypass it."""

from __future__ import annotations

from headstack.measurement.tests.settings.products.setting import Context, Product, Setting
from headstack.measurement.tests.settings.properties import Property, derive

MARGIN = 1.5
"""Factor above the p99 of reads at 75 % of the write rate, so that an ordinary burst does not count as congestion."""
PATH = "/sys/fs/bcache/UUID/congested_read_threshold_us"


def settings(context: Context) -> list[Setting]:
    """Returns the threshold of reads; this device is the cache."""
    p99 = context.properties[Property.MIXED_READ_P99_75]
    return [
        Setting(
            "congested_read_threshold_us",
            derive(lambda ms: MARGIN * 1000 * ms, p99),
            f"echo {{}} > {PATH}",
            "1.5 x read p99 at 75 % of the random write rate, us",
            (Property.MIXED_READ_P99_75,),
            "2000",
            "Linux, Documentation/admin-guide/bcache.rst; the formula is ours",
            "medium",
            "A threshold below the bursts of an SSD (4 to 10 ms on some) sends its reads to the HDDs; 0 turns it off.",
        )
    ]


BCACHE = Product("bcache", "shell, as root, on the cache set", (Property.MIXED_READ_P99_75,), settings)
