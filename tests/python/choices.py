"""Handmade answers of choices, to test their output without a search."""

from __future__ import annotations

from dataclasses import replace

from headstack.choice.answer import Answer, Choice, Decision, Durability, Part, Reason, Relaxed, Sensitivity, Verdict

HOST = "md-raid6-12x16tb"
DURABILITY = Durability(1.4, "Backblaze's fleet, 2024", 29.4, "simulated", 2.1e-5, 0.034)
ERROR = "p99 of arrays of disks: nine of ten devices are within 17 % (measured, 40 devices)"


def p99(value: float | None, low: float | None, high: float | None, says: Decision, why: str = "") -> Verdict:
    ends = (None, None) if value is None else (0.83 * value, 1.17 * value)
    level = None if value is None else 0.9
    return Verdict("p99=20ms", says, "ms", 20.0, value, low, high, ends[0], ends[1], why, 240_000, level)


def system(drives: int, drive: str, level: str, usd: float, verdict: Verdict, **more: object) -> Choice:
    each = {"exos-x18-18tb": 289.0, "exos-x16-16tb": 251.0, "hc320-8tb": 168.0}.get(drive, 745.0)
    chassis = usd - drives * each
    made = Choice(
        name=f"{drives} x {drive} in {level}, {HOST}",
        host=HOST,
        drive=drive,
        drives=drives,
        spares=0,
        level=level,
        settings=(),
        cost=usd,
        usd=usd,
        parts=(
            Part(drive, drives, each, "2026-01-15", "a shop's page, stored copy"),
            Part("chassis of 12 bays, host and controller", 1, chassis, "2025-11", "a quotation"),
        ),
        usable_bytes=int(0.95 * (drives - 2) * 18e12),
        bays=drives,
        watts=9.4 * drives,
        survives=2,
        verdicts=(verdict,),
        says=verdict.says,
        bottleneck="drives",
        utilization_percent=71.4,
        rate_per_s=300.0,
        rate_at_limit=412.3,
        breaks_first="p99=20ms, by the drives",
        durability=DURABILITY,
        model_error=ERROR,
        toml="[array]\n",
    )
    return replace(made, **more)  # type: ignore[arg-type]


BEST = system(8, "exos-x18-18tb", "raid6", 3210, p99(17.23, 16.8, 17.9, "meets"))
RUNNERS_UP = (
    system(9, "exos-x16-16tb", "raid6", 3298, p99(16.91, 16.4, 17.5, "meets"), rate_at_limit=438.0),
    system(8, "exos-x18-18tb", "raid10", 3355, p99(11.04, 10.7, 11.41, "meets"), rate_at_limit=702.0, survives=1),
    system(10, "exos-x18-18tb", "raidz2", 3790, p99(15.2, 14.4, 15.9, "meets"), rate_at_limit=455.1),
    system(12, "hc320-8tb", "raid6", 3918, p99(18.4, 17.7, 19.2, "meets"), rate_at_limit=351.0),
    system(6, "pm1643a-15tb", "raid6", 6470, p99(0.8421, 0.839, 0.8452, "meets"), rate_at_limit=11_874.0, watts=48.0),
)
OPEN = system(
    7,
    "exos-x18-18tb",
    "raid6",
    2921,
    p99(19.97, 18.9, 21.1, "undecided", "the model's error reaches over the limit"),
    rate_at_limit=301.0,
    utilization_percent=81.0,
)
SLOW = system(6, "exos-x18-18tb", "raid6", 2632, p99(27.44, 26.0, 29.2, "does not"), rate_at_limit=262.0)
STUCK = system(5, "hc320-8tb", "raid6", 2140, p99(None, None, None, "does not"), rate_at_limit=None)
OTHERS = tuple(
    system(count, drive, level, cost, p99(ms, 0.96 * ms, 1.05 * ms, "meets" if 1.05 * ms < 20 else "does not"))
    for count, drive, level, cost, ms in (
        (7, "exos-x16-16tb", "raid6", 2796, 22.9),
        (8, "exos-x16-16tb", "raid6", 3047, 19.0 * 1.1),
        (9, "exos-x18-18tb", "raid6", 3499, 15.9),
        (10, "exos-x18-18tb", "raid6", 3788, 15.1),
        (10, "exos-x16-16tb", "raid6", 3549, 16.2),
        (6, "exos-x18-18tb", "raid10", 2777, 25.0),
        (10, "hc320-8tb", "raid6", 3582, 31.0),
        (11, "hc320-8tb", "raid6", 3750, 24.3),
        (8, "pm1643a-15tb", "raid6", 7960, 0.79),
        (5, "exos-x18-18tb", "raid6", 2343, 61.0),
    )
)

PLAIN = Answer(
    question=("oltp.parquet, 300/s", "p99 of 20 ms at most, 40 TB, survives a failure", "all drives with a price"),
    objective="usd",
    unit="$",
    best=BEST,
    runners_up=RUNNERS_UP,
    undecided=(OPEN,),
    upgrade=replace(RUNNERS_UP[1]),
    frontier=(),
    looked_at=tuple(sorted((BEST, *RUNNERS_UP, OPEN, SLOW, STUCK, *OTHERS), key=lambda one: one.cost)),
    nearest=None,
    relaxed=(
        Relaxed("p99=20ms", "22 ms", OPEN.name, 289.0, True),
        Relaxed("capacity=40TB", "36 TB", BEST.name, 0.0, False),
        Relaxed("survive=1", "0", BEST.name, 0.0, False),
    ),
    sensitivity=(
        Sensitivity("exos-x18-18tb 10 % more expensive", RUNNERS_UP[0].name, 3298.0, True),
        Sensitivity("exos-x18-18tb 10 % cheaper", BEST.name, 2979.0, False),
        Sensitivity("flash at half its price", BEST.name, 3210.0, False),
    ),
    alike=(RUNNERS_UP[0].name,),
    tell_apart="a twin of exos-x18-18tb: its p99 at 300/s to 3 % (headstack twin)",
    candidates=12_480,
    left_out=(
        Reason("too small", 5_120, "stated"),
        Reason("survives too few failures", 2_496, "stated", ("4 x exos-x18-18tb in raid5, md-raid6-12x16tb",)),
        Reason("no price", 48, "stated"),
        Reason("cannot carry the rate", 1_874, "bound"),
        Reason("slower at p99=20ms", 310, "monotone"),
        Reason("dearer than the answer", 2_613, "dearer"),
    ),
    simulated=19,
    requests=2_460_000,
    warnings=("the price of hc320-8tb is of 2023-02, 45 months old", "the price of the chassis is a quotation"),
)

NOTHING = replace(
    PLAIN,
    best=None,
    runners_up=(),
    undecided=(),
    upgrade=None,
    nearest=SLOW,
    looked_at=(STUCK, SLOW),
    relaxed=(
        Relaxed("p99=20ms", "22 ms", None, 0.0, False),
        Relaxed("bays=6", "7", OPEN.name, 0.0, True),
    ),
    sensitivity=(),
    alike=(),
    tell_apart="",
)


def _both(one: Choice) -> Choice:
    return replace(one, costs=(one.usd, one.watts))


FRONTIER = replace(
    PLAIN,
    best=_both(BEST),
    runners_up=tuple(map(_both, RUNNERS_UP)),
    undecided=(_both(OPEN),),
    upgrade=_both(RUNNERS_UP[1]),
    frontier=tuple(map(_both, (BEST, RUNNERS_UP[4]))),
    looked_at=tuple(map(_both, PLAIN.looked_at)),
    objectives=(("usd", "$"), ("watts", "W")),
)


def volume(name: str, months_usd: float, value: float, says: Decision) -> Choice:
    verdicts = (
        Verdict("read.mean=2ms", says, "ms", 2.0, value, 0.98 * value, 1.02 * value, requests=90_000),
        Verdict("iops=4000", "meets", "1/s", 4000.0, 4391.2, 4350.0, 4432.0, requests=90_000),
    )
    return system(
        1,
        name.split()[0],
        "volume",
        36 * months_usd,
        verdicts[0],
        name=f"{name}, aws",
        host="aws",
        parts=(
            Part(f"{name}, space", 36, 0.8 * months_usd, "2024-07", "infracost 95ba4f4", "month"),
            Part(f"{name}, provisioned", 36, 0.2 * months_usd, "2024-07", "infracost 95ba4f4", "month"),
        ),
        verdicts=verdicts,
        usable_bytes=2_000 * 1024**3,
        bays=0,
        watts=0.0,
        bottleneck="token bucket of I/Os",
        utilization_percent=None,
        rate_per_s=None,
        rate_at_limit=None,
        breaks_first="iops=4000, by the volume's bound",
        durability=None,
        model_error="",
    )


CLOUD = replace(
    PLAIN,
    question=("file-server, closed loop of depth 16", "read mean of 2 ms at most, 4,000/s", "volumes of aws"),
    best=volume("gp3 2,000 GiB 6,000 IOPS", 175.0, 0.9213, "meets"),
    runners_up=(volume("io1 2,000 GiB 4,500 IOPS", 542.5, 0.8144, "meets"),),
    undecided=(),
    upgrade=None,
    looked_at=(
        volume("gp3 2,000 GiB 4,000 IOPS", 165.0, 2.31, "does not"),
        volume("gp3 2,000 GiB 6,000 IOPS", 175.0, 0.9213, "meets"),
        volume("io1 2,000 GiB 4,500 IOPS", 542.5, 0.8144, "meets"),
    ),
    relaxed=(Relaxed("read.mean=2ms", "2.2 ms", None, 0.0, False),),
    sensitivity=(),
    alike=(),
    tell_apart="",
    left_out=(),
    candidates=3,
    simulated=3,
    requests=270_000,
    warnings=(),
)

WATTS = replace(
    PLAIN,
    objective="watts",
    unit="W",
    best=replace(RUNNERS_UP[4], cost=48.0),
    runners_up=(replace(BEST, cost=75.2),),
    undecided=(),
    upgrade=None,
    relaxed=(Relaxed("p99=20ms", "22 ms", None, 0.0, False),),
)

ALL = {"plain": PLAIN, "nothing": NOTHING, "frontier": FRONTIER, "cloud": CLOUD, "watts": WATTS}
