"""Kafka: kernel writeback and the throttle of moves between log folders."""

from __future__ import annotations

from collections.abc import Sequence

from headstack.measurement.tests.settings.products.setting import Confidence, Context, Product, Setting
from headstack.measurement.tests.settings.properties import Property, derive

BACKGROUND_S, DIRTY_S = 1.0, 2.0
"""Dirty data in seconds of sustained writes: 1 to 2 s keep a flush short; the kernel's defaults have the same ratio."""
MOVES = 0.5
"""Share of the writes for moves of partitions, so that producers keep the other half."""


def settings(context: Context) -> list[Setting]:
    """Returns the sysctl lines and the throttle."""
    streams = context.properties[Property.WRITE_STREAMS]

    def setting(
        name: str, factor: float, line: str, formula: str, default: str, confidence: Confidence, trap: str
    ) -> Setting:
        figure = derive(lambda per_s: factor * per_s, streams)
        source = "Linux, admin-guide/sysctl/vm.rst" if name.startswith("vm.") else "Kafka broker configuration"
        return Setting(
            name,
            figure,
            line,
            formula,
            (Property.WRITE_STREAMS,),
            default,
            f"{source}; the formula is ours",
            confidence,
            trap,
        )

    of = "sustained writes of 8 streams"
    return [
        setting(
            "vm.dirty_background_bytes",
            BACKGROUND_S,
            "vm.dirty_background_bytes = {}",
            f"1 s of {of}",
            "10 % of memory",
            "low",
            "It applies to all devices of the host. Leave log.flush.interval.messages and .ms unset: replicas, not "
            "fsync, protect the data.",
        ),
        setting("vm.dirty_bytes", DIRTY_S, "vm.dirty_bytes = {}", f"2 s of {of}", "20 % of memory", "low", ""),
        setting(
            "replica.alter.log.dirs.io.max.bytes.per.second",
            MOVES,
            "replica.alter.log.dirs.io.max.bytes.per.second={}",
            f"0.5 x {of}",
            "unlimited",
            "low",
            "",
        ),
    ]


def block(settings: Sequence[Setting], context: Context) -> list[str]:
    """Returns the lines of both files."""
    kernel = [each.text for each in settings if each.name.startswith("vm.")]
    broker = [each.text for each in settings if not each.name.startswith("vm.")]
    return ["# /etc/sysctl.d/90-kafka.conf", *kernel, "# server.properties", *broker]


KAFKA = Product("Kafka", "sysctl and server.properties", (Property.WRITE_STREAMS,), settings, block)
