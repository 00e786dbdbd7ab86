"""The products by name."""

from __future__ import annotations

from headstack.measurement.tests.settings.products.bcache import BCACHE
from headstack.measurement.tests.settings.products.ceph import CEPH
from headstack.measurement.tests.settings.products.io_cost import IO_COST
from headstack.measurement.tests.settings.products.kafka import KAFKA
from headstack.measurement.tests.settings.products.mysql import MYSQL
from headstack.measurement.tests.settings.products.postgresql import POSTGRESQL
from headstack.measurement.tests.settings.products.rocksdb import ROCKSDB
from headstack.measurement.tests.settings.products.scylla import SCYLLA
from headstack.measurement.tests.settings.products.setting import Product
from headstack.measurement.tests.settings.products.zfs import ZFS

PRODUCTS: dict[str, Product] = {
    "ceph": CEPH,
    "scylla": SCYLLA,
    "io.cost": IO_COST,
    "postgresql": POSTGRESQL,
    "zfs": ZFS,
    "rocksdb": ROCKSDB,
    "kafka": KAFKA,
    "mysql": MYSQL,
    "bcache": BCACHE,
}
"""Every product that settings are known for, by the name on the command line."""
