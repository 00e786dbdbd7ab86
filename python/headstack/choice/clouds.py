"""Cloud volumes for a capacity: by size and provisioned performance, with the billed items.

The terms of each type, with their sources, are in ``crates/catalogue/src/volume``; this file generates the offers that
a buyer would try.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headstack import _native
from headstack._native import InputError, VolumeType

GIB = 1 << 30

IOPS_STEPS = (
    *(100, 250, 500, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000, 6_000, 8_000, 10_000, 12_000, 16_000, 20_000, 25_000),
    *(32_000, 40_000, 50_000, 64_000, 80_000, 100_000, 120_000, 160_000, 200_000, 256_000, 350_000, 400_000),
)
"""Provisioned IOPS to try: minimum and maximum of each type, and steps of 25 to 33 % in between, wider below 3,000."""
THROUGHPUT_STEPS = (10, 25, 50, 100, 125, 140, 200, 250, 375, 500, 750, 1_000, 1_500, 2_000, 2_400, 4_000, 10_000)
"""Provisioned throughput to try, in the provider's unit: MiB for Amazon and Google, MB for Azure."""
SIZE_STEP = 1.5
"""Factor between sizes, if performance depends only on the size."""


@dataclass(frozen=True)
class Offer:
    """A volume that can be ordered."""

    type: str
    """The type, as in ``volume.type``."""
    provider: str
    """``Amazon``, ``Google`` or ``Microsoft``."""
    base: str
    """A volume of the catalogue of this type, which ``values`` change into this offer."""
    values: Mapping[str, str]
    """Fields of the volume's file: ``volume.type``, ``capacity.size``, ``volume.iops``, ``volume.throughput``."""
    items: tuple[tuple[str, float], ...]
    """Monthly billed items: names in price files, with amounts."""


TYPES: Mapping[str, VolumeType] = {sold.name: sold for sold in _native.volume_types()}
PROVIDERS: Mapping[str, str] = {sold.cloud: sold.provider for sold in TYPES.values()}
"""Names that stand for all types of a provider."""


def offers(
    capacity_bytes: int,
    types: Iterable[str] = tuple(TYPES),
    iops: Sequence[int] = IOPS_STEPS,
    throughput: Sequence[int] = THROUGHPUT_STEPS,
) -> list[Offer]:
    """Returns single volumes with this capacity of these types (or all of ``aws``, ``gcp``, ``azure``), the smallest
    first.

    Performance is provisioned in these steps, and a volume is as large as its IOPS require. If performance depends only
    on the size, larger sizes follow as long as they increase it. A type whose largest volume is too small has no
    offers. Raises ``InputError`` for an unknown type.

    >>> offer = offers(10**12, ["gp3"], iops=[4000])[0]
    >>> dict(offer.values)
    {'volume.type': 'gp3', 'capacity.size': '932GiB', 'volume.iops': '4000', 'volume.throughput': '125MiB/s'}
    >>> offer.items
    (('gp3:GiB-month', 932), ('gp3:IOPS-month', 1000))
    """
    if capacity_bytes < 1:
        raise InputError(f"{capacity_bytes} bytes; must be 1 or more", key="capacity")
    capacity_gib = -(-capacity_bytes // GIB)
    all_offers: list[Offer] = []
    for sold in _types_named(types):
        if sold.sizes:
            all_offers += _offers_by_size(sold, capacity_gib)
        elif sold.iops:
            all_offers += _offers_provisioned(sold, capacity_gib, sold.iops, iops, throughput)
        else:
            all_offers += _offers_that_grow(sold, capacity_gib)
    return all_offers


def _types_named(types: Iterable[str]) -> list[VolumeType]:
    chosen: dict[str, None] = {}
    for requested in types:
        if requested in PROVIDERS:
            chosen |= dict.fromkeys(name for name, sold in TYPES.items() if sold.provider == PROVIDERS[requested])
        elif requested in TYPES:
            chosen[requested] = None
        else:
            raise InputError(f"{requested!r} is unknown; allowed: {', '.join((*PROVIDERS, *TYPES))}", key="volumes")
    return [TYPES[name] for name in chosen]


def _offers_by_size(sold: VolumeType, capacity_gib: int) -> Iterator[Offer]:
    """Yields named sizes with a price."""
    fitting = [size for size in sold.sizes if size[0] >= capacity_gib]
    for number, (gib, _, is_faster) in enumerate(fitting):
        if is_faster or not number:
            yield _offer(sold, gib)


def _offers_that_grow(sold: VolumeType, capacity_gib: int) -> Iterator[Offer]:
    """Yields the requested size, and larger ones as long as a limit grows with them."""
    least, most = sold.gib
    first = max(least, capacity_gib)
    if first > most:
        return
    growing = sold.grows_to_gib
    last = min(most, growing[-1])
    sizes = {first, *(gib for gib in growing if first < gib <= last)}
    step = float(first)
    while (step := step * SIZE_STEP) < last:
        sizes.add(math.ceil(step))
    for gib in sorted(sizes):
        yield _offer(sold, gib)


def _offers_provisioned(
    sold: VolumeType, capacity_gib: int, sold_iops: tuple[int, int], steps: Sequence[int], throughput: Sequence[int]
) -> Iterator[Offer]:
    """Yields provisioned IOPS and, if sold separately, throughput."""
    least, most = sold.gib
    lowest, highest = sold_iops
    iops_steps = {step for step in steps if lowest <= step <= highest} | ({lowest} if steps[0] < lowest else set())
    for iops in sorted(iops_steps):
        needed = -(-iops // sold.iops_a_gib) if sold.iops_a_gib else 0
        # Free IOPS come with any size. A larger paid size provides its capacity as well.
        gib = sold.billed_gib(max(least, capacity_gib, 0 if iops == sold.free_iops else needed))
        if gib > most:
            continue
        rate_most = sold.throughput_max(iops)
        if sold.throughput is None or rate_most is None:
            yield _offer(sold, gib, iops)
            continue
        for rate in _rates(throughput, sold.throughput[0], rate_most):
            yield _offer(sold, gib, iops, rate)


def _rates(steps: Sequence[int], least: int, most: int) -> list[int]:
    """Returns the available steps, with the minimum and the maximum."""
    return sorted(
        {max(least, min(steps[0], most)), *(step for step in steps if least <= step <= most), max(least, most)}
    )


def _offer(sold: VolumeType, gib: int, iops: int | None = None, rate: int | None = None) -> Offer:
    values = {"volume.type": sold.name, "capacity.size": f"{gib}GiB"}
    if iops is not None:
        values["volume.iops"] = str(iops)
    if rate is not None:
        values["volume.throughput"] = f"{rate}{sold.rate_unit}"
    return Offer(sold.name, sold.provider, sold.base, values, tuple(sold.bill(gib, iops, rate)))
