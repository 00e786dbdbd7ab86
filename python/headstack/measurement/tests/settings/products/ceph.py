"""Ceph: the capacity that mClock divides among clients, recovery and scrubs."""

from __future__ import annotations

from headstack.measurement.tests.settings.products.setting import Context, Product, Setting
from headstack.measurement.tests.settings.properties import Property, derive

OSD_SHARE = 0.8
"""Share of the device's rate that an OSD reaches: 0.8 to 1.0 of the rate measured through BlueStore; the device alone
is an upper bound."""
MCLOCK = "Ceph, mclock-config-ref.rst"


def settings(context: Context) -> list[Setting]:
    """Returns the settings of an OSD on this device."""
    kind = "hdd" if context.is_disk else "ssd"
    iops, bandwidth = (context.properties[p] for p in (Property.WRITE_4K, Property.WRITE_SEQUENTIAL))
    listed = [
        Setting(
            f"osd_mclock_max_capacity_iops_{kind}",
            derive(lambda rate: OSD_SHARE * rate, iops),
            f"ceph config set osd.N osd_mclock_max_capacity_iops_{kind} {{}}",
            "0.8 x steady random writes of 4 KiB",
            (Property.WRITE_4K,),
            "315" if context.is_disk else "21500",
            MCLOCK,
            "medium",
            "Ceph's own test at the first start makes 3,000 writes, which fit any cache: consumer SSDs look 10 to 30 "
            "times too fast, and HDDs exceed the threshold of 500 because small writes are deferred.",
        ),
        Setting(
            f"osd_mclock_max_sequential_bandwidth_{kind}",
            bandwidth,
            f"ceph config set osd.N osd_mclock_max_sequential_bandwidth_{kind} {{}}",
            "sustained sequential writes, bytes/s",
            (Property.WRITE_SEQUENTIAL,),
            "150 MiB/s" if context.is_disk else "1200 MiB/s",
            MCLOCK,
            "high",
            "Ceph never measures it. An operation costs max(bytes, bandwidth / IOPS), so raise both together.",
        ),
    ]
    if context.is_disk:
        listed.append(
            Setting(
                "bluestore_throttle_cost_per_io_hdd",
                derive(
                    lambda rate, alone: rate / alone,
                    bandwidth,
                    context.properties[Property.READ_4K_ALONE],
                ),
                "ceph config set osd.N bluestore_throttle_cost_per_io_hdd {}",
                "sequential bytes/s x time of a random request",
                (Property.WRITE_SEQUENTIAL, Property.READ_4K_ALONE),
                "670000",
                "Ceph, BlueStore configuration reference; the formula is ours",
                "medium",
            )
        )
    return listed


CEPH = Product(
    "Ceph OSD",
    "shell, once for each OSD",
    (Property.WRITE_4K, Property.WRITE_SEQUENTIAL, Property.READ_4K_ALONE),
    settings,
)
