"""ScyllaDB (Seastar): the four rates of ``io_properties.yaml``."""

from __future__ import annotations

from collections.abc import Sequence

from headstack.measurement.tests.settings.products.setting import Context, Product, Setting
from headstack.measurement.tests.settings.properties import Property

SEASTAR = "Seastar, apps/iotune/iotune.cc and doc/io-properties-file.md, 525fcc86e"
CACHE = "iotune writes for 12 s to a fresh file, which measures the SLC cache of a consumer SSD."
SUM = (
    "The scheduler keeps the sum of the four shares below 1, so drives that mix well (up to 1.8 on im4gn) are held to "
    "about half: check one mixed point."
)


def settings(context: Context) -> list[Setting]:
    """Returns the rates of a disk."""

    def rate(name: str, prop: Property, formula: str, trap: str = "") -> Setting:
        line = f"    {name}: {{}}"
        return Setting(name, context.properties[prop], line, formula, (prop,), "none", SEASTAR, "high", trap)

    return [
        rate("read_iops", Property.READ_4K_KNEE, "random reads of 4 KiB at the knee", SUM),
        rate("read_bandwidth", Property.READ_SEQUENTIAL, "sequential reads of 1 MiB, bytes/s"),
        rate("write_iops", Property.WRITE_4K, "steady random writes of 4 KiB", CACHE),
        rate("write_bandwidth", Property.WRITE_SEQUENTIAL, "sustained sequential writes of 1 MiB, bytes/s"),
    ]


def block(settings: Sequence[Setting], context: Context) -> list[str]:
    """Returns the file."""
    place = context.place.mounted_at or "/var/lib/scylla"
    return ["disks:", f"  - mountpoint: {place}", *(each.text for each in settings)]


SCYLLA = Product(
    "ScyllaDB",
    "/etc/scylla.d/io_properties.yaml",
    (Property.READ_4K_KNEE, Property.READ_SEQUENTIAL, Property.WRITE_4K, Property.WRITE_SEQUENTIAL),
    settings,
    block,
)
