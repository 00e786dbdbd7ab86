"""MySQL (InnoDB): the rate of background flushing."""

from __future__ import annotations

from headstack.measurement.tests.settings.products.setting import Context, Product, Setting
from headstack.measurement.tests.settings.properties import Estimate, Property, derive

SHARE = 0.6
"""Share of the steady writes for background flushing: 0.5 to 0.7 leave room for reads and logs."""
LEAST = 100.0
"""Minimum of innodb_io_capacity."""
MANUAL = "MySQL reference manual, 8.4 to 9.5"


def settings(context: Context) -> list[Setting]:
    """Returns the capacities, and whether neighbours are flushed."""
    writes = context.properties[Property.WRITE_16K]
    of = (Property.WRITE_16K,)
    flag = float(context.is_disk)
    neighbors = Estimate(flag, flag, flag, origin=writes.origin)
    return [
        Setting(
            "innodb_io_capacity",
            derive(lambda rate: max(LEAST, SHARE * rate), writes),
            "innodb_io_capacity = {}",
            "0.6 x steady random writes of 16 KiB",
            of,
            "10000 (200 before 8.4)",
            f"{MANUAL}; the share is ours",
            "medium",
            "The default of 8.4 exceeds what a SATA consumer SSD or a gp3 volume sustains.",
        ),
        Setting(
            "innodb_io_capacity_max",
            derive(lambda rate: max(LEAST, rate), writes),
            "innodb_io_capacity_max = {}",
            "steady random writes of 16 KiB",
            of,
            "2 x innodb_io_capacity",
            f"{MANUAL}; the formula is ours",
            "medium",
            "innodb_flush_sync (on) ignores both at checkpoints.",
        ),
        Setting(
            "innodb_flush_neighbors",
            neighbors,
            "innodb_flush_neighbors = {}",
            "1 for HDDs, otherwise 0",
            (Property.READ_4K_ALONE,),
            "0",
            MANUAL,
            "high",
        ),
    ]


MYSQL = Product("MySQL (InnoDB)", "my.cnf, [mysqld]", (Property.WRITE_16K, Property.READ_4K_ALONE), settings)
