"""OpenZFS: queue depths of a leaf, and the throttle of writers, for a pool of one such leaf."""

from __future__ import annotations

from headstack.measurement.tests.settings.products.setting import Context, Product, Setting, whole_up
from headstack.measurement.tests.settings.properties import Property, derive

MANUAL = "OpenZFS, zfs.4, be7657e3"
TXG_S = 5.0
"""Default of zfs_txg_timeout, in s."""
DELAY_SHARE = 0.6
"""Default of zfs_vdev_async_write_active_max_dirty_percent and zfs_delay_min_dirty_percent, as a share."""
POOL = "It is for a pool of one such leaf: multiply by the leaves that hold different data."


def settings(context: Context) -> list[Setting]:
    """Returns the module parameters."""
    properties = context.properties
    depth = properties[Property.READ_4K_DEPTH]
    listed = []
    for kind in ("sync_read", "sync_write"):
        name = f"zfs_vdev_{kind}_max_active"
        listed.append(
            Setting(
                name,
                depth,
                f"options zfs {name}={{}}",
                "queue depth at the knee of 4 KiB reads",
                (Property.READ_4K_DEPTH,),
                "10",
                f"{MANUAL}; the formula is ours",
                "medium",
                "Limits are per leaf, so RAIDZ multiplies them." if kind == "sync_read" else "",
                whole_up,
            )
        )
    dirty = derive(lambda per_s: per_s * TXG_S / DELAY_SHARE, properties[Property.WRITE_SEQUENTIAL])
    delay = derive(lambda per_s: 1e9 / per_s, properties[Property.WRITE_4K])
    listed += [
        Setting(
            "zfs_dirty_data_max",
            dirty,
            "options zfs zfs_dirty_data_max={}",
            "sustained sequential writes x 5 s (zfs_txg_timeout) / 0.6",
            (Property.WRITE_SEQUENTIAL,),
            "10 % of memory",
            MANUAL,
            "high",
            f"zfs_dirty_data_max_max (25 % of memory, at most 4 GiB) caps it. {POOL}",
        ),
        Setting(
            "zfs_delay_scale",
            delay,
            "options zfs zfs_delay_scale={}",
            "10^9 ns / steady random writes of 4 KiB per second",
            (Property.WRITE_4K,),
            "500000",
            MANUAL,
            "high",
            "Above 60 % of dirty data this delay makes the pool look like a slow device, while its leaves are only as "
            "busy as writes allow.",
        ),
    ]
    return listed


ZFS = Product(
    "OpenZFS",
    "/etc/modprobe.d/zfs.conf",
    (Property.READ_4K_DEPTH, Property.WRITE_SEQUENTIAL, Property.WRITE_4K),
    settings,
)
