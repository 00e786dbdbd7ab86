"""What clouds sell that holds a capacity: volumes by size and what is provisioned, with the items that are billed.

Limits are those of ``crates/catalogue/src/volume/types.rs``, where their sources are; tests describe offers by it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headstack._native import InputError

GIB = 1 << 30

IOPS_STEPS = (
    *(100, 250, 500, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000, 6_000, 8_000, 10_000, 12_000, 16_000, 20_000, 25_000),
    *(32_000, 40_000, 50_000, 64_000, 80_000, 100_000, 120_000, 160_000, 200_000, 256_000, 350_000, 400_000),
)
"""Requests a second that a buyer would provision: what is least and most of each type, and between steps of a quarter
to a third, wider below 3,000."""
THROUGHPUT_STEPS = (10, 25, 50, 100, 125, 140, 200, 250, 375, 500, 750, 1_000, 1_500, 2_000, 2_400, 4_000, 10_000)
"""Of throughput, in the unit of the provider: MiB of Amazon and Google, MB of Azure."""
SIZE_STEP = 1.5
"""From a size to the next, where a larger one buys performance and nothing else does."""


@dataclass(frozen=True)
class Offer:
    """A volume as it can be ordered."""

    type: str
    """As ``volume.type`` has it."""
    provider: str
    """``Amazon``, ``Google`` or ``Microsoft``."""
    base: str
    """A volume of the catalogue of this type, which ``values`` make this offer."""
    values: Mapping[str, str]
    """Fields of the volume's file: ``volume.type``, ``capacity.size``, ``volume.iops``, ``volume.throughput``."""
    items: tuple[tuple[str, float], ...]
    """What is billed each month: items of files of prices, and how many."""


@dataclass(frozen=True)
class _Type:
    """How a type is sold."""

    provider: str
    base: str
    gib: tuple[int, int]
    """Least and most."""
    grows_to_gib: tuple[int, ...] = ()
    """Sizes at which a limit jumps or grows no more; up to the last of them a larger size buys performance."""
    sizes: tuple[tuple[int, str, bool], ...] = ()
    """Where only these are sold: GiB, what each is called, and whether it does more than the one before."""
    iops: tuple[int, int] = (0, 0)
    """That can be provisioned."""
    iops_a_gib: int = 0
    free_iops: int = 0
    """In the price of the size."""
    throughput: tuple[int, int] = (0, 0)
    """That can be provisioned, at most a quarter of the requests."""
    free_throughput: int = 0
    unit: str = "MiB/s"
    tiers: tuple[int, ...] = ()
    """From so many requests on the next are billed as another item."""


_AZURE = {4: 1, 8: 2, 16: 3, 32: 4, 64: 6, 128: 10, 256: 15, 512: 20, 1_024: 30, 2_048: 40, 4_096: 50}
_AZURE |= {8_192: 60, 16_384: 70, 32_767: 80}
"""What the sizes are called: P30 has 1,024 GiB."""


def _azure(letter: str, least_gib: int, no_faster: tuple[int, ...]) -> tuple[tuple[int, str, bool], ...]:
    return tuple((gib, f"{letter}{number}", gib not in no_faster) for gib, number in _AZURE.items() if gib >= least_gib)


TYPES: Mapping[str, _Type] = {
    # From 34 GiB more than 100 requests, from 171 250 MiB/s; 1,000: the base is the burst; 5,334: 16,000 requests.
    "gp2": _Type("Amazon", "aws-gp2-100", (1, 16_384), grows_to_gib=(34, 171, 1_000, 5_334)),
    "gp3": _Type(
        "Amazon",
        "aws-gp3-500",
        (1, 65_536),
        iops=(3_000, 80_000),
        iops_a_gib=500,
        free_iops=3_000,
        throughput=(125, 2_000),
        free_throughput=125,
    ),
    "io1": _Type("Amazon", "aws-io1-500-20k", (4, 16_384), iops=(100, 64_000), iops_a_gib=50),
    "io2": _Type(
        "Amazon", "aws-io2-500-32k", (4, 65_536), iops=(100, 256_000), iops_a_gib=1_000, tiers=(32_000, 64_000)
    ),
    # The burst grows to 2 and 3.1 TiB, the base to 12.5 and 16.
    "st1": _Type("Amazon", "aws-st1-2tib", (125, 16_384), grows_to_gib=(2_048, 12_800)),
    "sc1": _Type("Amazon", "aws-sc1-2tib", (125, 16_384), grows_to_gib=(3_200, 16_384)),
    # To these bytes and requests grow: of pd-standard writes, reads.
    "pd-standard": _Type("Google", "gcp-pd-standard-1000", (10, 65_536), grows_to_gib=(3_334, 10_000)),
    "pd-balanced": _Type("Google", "gcp-pd-balanced-500", (10, 65_536), grows_to_gib=(3_786, 12_834)),
    "pd-ssd": _Type("Google", "gcp-pd-ssd-500", (10, 65_536), grows_to_gib=(2_000, 3_134)),
    "pd-extreme": _Type("Google", "gcp-pd-extreme-1000-40k", (500, 65_536), iops=(1, 120_000)),
    "hyperdisk-balanced": _Type(
        "Google",
        "gcp-hyperdisk-balanced-500",
        (4, 65_536),
        iops=(3_000, 160_000),
        iops_a_gib=500,
        free_iops=3_000,
        throughput=(140, 2_400),
        free_throughput=140,
    ),
    "hyperdisk-extreme": _Type("Google", "gcp-hyperdisk-extreme-1000-100k", (64, 65_536), iops=(1, 350_000)),
    "premium-ssd": _Type("Microsoft", "azure-p30", (1, 32_767), sizes=_azure("p", 4, (8, 16, 32, 4_096))),
    "premium-ssd-v2": _Type(
        "Microsoft",
        "azure-premium-v2-500",
        (1, 65_536),
        iops=(3_000, 80_000),
        iops_a_gib=500,
        free_iops=3_000,
        throughput=(125, 2_000),
        free_throughput=125,
        unit="MB/s",
    ),
    "ultra-disk": _Type(
        "Microsoft",
        "azure-ultra-512-50k",
        (4, 65_536),
        iops=(100, 400_000),
        iops_a_gib=1_000,
        throughput=(1, 10_000),
        unit="MB/s",
    ),
    "standard-ssd": _Type(
        "Microsoft",
        "azure-e30",
        (1, 32_767),
        sizes=_azure("e", 4, (8, 16, 32, 256, 512, 1_024, 2_048, 4_096)),
    ),
    "standard-hdd": _Type(
        "Microsoft",
        "azure-s30",
        (1, 32_767),
        sizes=_azure("s", 32, (64, 128, 256, 512, 1_024, 2_048, 4_096, 32_767)),
    ),
}
"""Of the catalogue, whose limits they repeat."""

PROVIDERS = {"aws": "Amazon", "gcp": "Google", "azure": "Microsoft"}
"""Names that stand for all types of a provider."""


def offers(
    capacity_bytes: int,
    types: Iterable[str] = tuple(TYPES),
    iops: Sequence[int] = IOPS_STEPS,
    throughput: Sequence[int] = THROUGHPUT_STEPS,
) -> list[Offer]:
    """Single volumes that hold so much, of these types (or all of ``aws``, ``gcp``, ``azure``), the smallest first.

    What can be provisioned is so in these steps, and a volume is as large as its requests need. Where performance comes
    with size alone, larger sizes follow, as long as they buy any. A type whose largest volume is too small has none.
    Raises ``InputError`` for a type that is not known.

    >>> offer = offers(10**12, ["gp3"], iops=[4000])[0]
    >>> dict(offer.values)
    {'volume.type': 'gp3', 'capacity.size': '932GiB', 'volume.iops': '4000', 'volume.throughput': '125MiB/s'}
    >>> offer.items
    (('gp3:GiB-month', 932), ('gp3:IOPS-month', 1000))
    """
    if capacity_bytes < 1:
        raise InputError(f"capacity: {capacity_bytes} bytes; 1 or more")
    asked_gib = -(-capacity_bytes // GIB)
    found = []
    for name in _named(types):
        sold = TYPES[name]
        if sold.sizes:
            found += list(_of_sizes(name, sold, asked_gib))
        elif sold.iops[1]:
            found += list(_provisioned(name, sold, asked_gib, iops, throughput))
        else:
            found += list(_growing(name, sold, asked_gib))
    return found


def _named(types: Iterable[str]) -> list[str]:
    named: dict[str, None] = {}
    for asked in types:
        if asked in PROVIDERS:
            named |= dict.fromkeys(name for name, sold in TYPES.items() if sold.provider == PROVIDERS[asked])
        elif asked in TYPES:
            named[asked] = None
        else:
            raise InputError(f"volumes: {asked!r} is unknown; allowed: {', '.join((*PROVIDERS, *TYPES))}")
    return list(named)


def _of_sizes(name: str, sold: _Type, asked_gib: int) -> Iterator[Offer]:
    """Sizes that have a name and a price."""
    fitting = [size for size in sold.sizes if size[0] >= asked_gib]
    for number, (gib, called, is_faster) in enumerate(fitting):
        if is_faster or not number:
            yield _offer(name, sold, gib, {}, ((f"{name}-{called}:month", 1),))


def _growing(name: str, sold: _Type, asked_gib: int) -> Iterator[Offer]:
    """The size that was asked for, and larger ones as long as a limit grows with them."""
    least, most = sold.gib
    first = max(least, asked_gib)
    if first > most:
        return
    last = min(most, sold.grows_to_gib[-1])
    sizes = {first, *(gib for gib in sold.grows_to_gib if first < gib <= last)}
    step = float(first)
    while (step := step * SIZE_STEP) < last:
        sizes.add(math.ceil(step))
    for gib in sorted(sizes):
        yield _offer(name, sold, gib, {}, ((f"{name}:GiB-month", gib),))


def _provisioned(
    name: str, sold: _Type, asked_gib: int, steps: Sequence[int], throughput: Sequence[int]
) -> Iterator[Offer]:
    """Requests, and where it can be had apart, throughput."""
    least, most = sold.gib
    lowest, highest = sold.iops
    wanted = {step for step in steps if lowest <= step <= highest} | ({lowest} if steps[0] < lowest else set())
    for iops in sorted(wanted):
        needed = -(-iops // sold.iops_a_gib) if sold.iops_a_gib else 0
        # What is free comes with any size.
        gib = max(least, asked_gib, 0 if iops == sold.free_iops else needed)
        billed = _billed_gib(gib) if name == "ultra-disk" else gib
        if billed > most:
            continue
        items = [(f"{name}:GiB-month", billed), *_requests_billed(name, sold, iops)]
        values = {"volume.iops": str(iops)}
        if not sold.throughput[1]:
            yield _offer(name, sold, billed, values, tuple(items))
            continue
        for rate in _rates(throughput, sold.throughput[0], min(sold.throughput[1], iops // 4)):
            above = rate - sold.free_throughput
            part = [(f"{name}:{sold.unit}-month", above)] if above else []
            told = values | {"volume.throughput": f"{rate}{sold.unit}"}
            yield _offer(name, sold, billed, told, (*items, *part))


def _rates(steps: Sequence[int], least: int, most: int) -> list[int]:
    """The steps that are sold with so many requests, what is least, and what is most."""
    return sorted(
        {max(least, min(steps[0], most)), *(step for step in steps if least <= step <= most), max(least, most)}
    )


def _requests_billed(name: str, sold: _Type, iops: int) -> Iterator[tuple[str, float]]:
    bounds = [sold.free_iops, *sold.tiers, math.inf]
    for number, (above, up_to) in enumerate(itertools.pairwise(bounds)):
        if iops > above:
            item = f"{name}:IOPS-month" + (f"-over-{above:.0f}" if number else "")
            yield item, min(iops, up_to) - above


def _billed_gib(gib: int) -> int:
    """Ultra disks are billed as the next power of two, from a TiB on as whole TiB; whoever pays takes the room."""
    return -(-gib // 1024) * 1024 if gib > 1024 else 1 << (gib - 1).bit_length()


def _offer(name: str, sold: _Type, gib: int, more: Mapping[str, str], items: Sequence[tuple[str, float]]) -> Offer:
    values = {"volume.type": name, "capacity.size": f"{gib}GiB", **more}
    return Offer(name, sold.provider, sold.base, values, tuple(items))
