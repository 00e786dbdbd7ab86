"""Linux io.cost: the coefficients of the linear model, and the latency targets."""

from __future__ import annotations

from collections.abc import Sequence

from headstack.measurement.tests.settings.products.setting import Confidence, Context, Product, Setting
from headstack.measurement.tests.settings.properties import Estimate, Property, derive

TOOL = "Linux, tools/cgroup/iocost_coef_gen.py"
MANUAL = "Linux, Documentation/admin-guide/cgroup-v2.rst"
SOLO = (
    "The six rates are measured one at a time, which the tool itself calls too optimistic for mixed loads: watch "
    "cost.vrate in io.stat."
)
ROOT = "/sys/fs/cgroup"
MODEL = {
    "rbps": (Property.READ_SEQUENTIAL, "sequential reads, bytes/s"),
    "rseqiops": (Property.READ_SEQUENTIAL_4K, "sequential reads of 4 KiB"),
    "rrandiops": (Property.READ_4K_MAX, "random reads of 4 KiB, maximum"),
    "wbps": (Property.WRITE_SEQUENTIAL, "sustained sequential writes, bytes/s"),
    "wseqiops": (Property.WRITE_SEQUENTIAL_4K, "sequential writes of 4 KiB"),
    "wrandiops": (Property.WRITE_4K, "steady random writes of 4 KiB"),
}


def settings(context: Context) -> list[Setting]:
    """Returns the six rates, and the latency targets in us."""

    def setting(
        name: str,
        figure: Estimate,
        formula: str,
        props: tuple[Property, ...],
        source: str,
        confidence: Confidence,
        trap: str,
    ) -> Setting:
        return Setting(name, figure, f"{name}={{}}", formula, props, "none", source, confidence, trap)

    listed = [
        setting(name, context.properties[prop], formula, (prop,), TOOL, "high", SOLO if name == "rbps" else "")
        for name, (prop, formula) in MODEL.items()
    ]
    for name, prop, kind in (
        ("rlat", Property.MIXED_READ_P95_50, "reads"),
        ("wlat", Property.MIXED_WRITE_P95_50, "writes"),
    ):
        latency = derive(lambda ms: max(1.0, 1000 * ms), context.properties[prop])
        formula = f"p95 of {kind} at 50 % of the write rate, us"
        trap = "If cost.vrate stays at min, the target is too tight for this device." if name == "rlat" else ""
        listed.append(setting(name, latency, formula, (prop,), MANUAL, "medium", trap))
    return listed


def block(settings: Sequence[Setting], context: Context) -> list[str]:
    """Returns a command for each of the two files; a comment if a value in it is not known."""
    device = context.place.device or "MAJ:MIN"
    by_name = {each.name: each for each in settings}
    model = [by_name[name] for name in MODEL]
    latencies = [by_name["rlat"], by_name["wlat"]]
    rates = " ".join(each.text for each in model)
    targets = f"rpct=95.00 {latencies[0].text} wpct=95.00 {latencies[1].text} min=50.00 max=150.00"
    lines = []
    for file, parts, text in (
        ("io.cost.model", model, f"{device} ctrl=user model=linear {rates}"),
        ("io.cost.qos", latencies, f"{device} enable=1 ctrl=user {targets}"),
    ):
        missing = [each.text for each in parts if each.value is None]
        lines += missing or [f"echo '{text}' > {ROOT}/{file}"]
    return lines


IO_COST = Product(
    "Linux io.cost",
    "shell, as root",
    (*(prop for prop, _ in MODEL.values()), Property.MIXED_READ_P95_50, Property.MIXED_WRITE_P95_50),
    settings,
    block,
)
