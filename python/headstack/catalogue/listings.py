"""Tables of the catalogue, for the command line and as the ``repr`` of its lists of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from headstack import _native
from headstack.catalogue.array import Array
from headstack.catalogue.drive import Drive
from headstack.catalogue.stack import Stack
from headstack.catalogue.workload import Workload
from headstack.io.columns import Column, Figures, Names, Prose, Words, format_repr

if TYPE_CHECKING:
    from headstack.catalogue.price_list import Price

Table: TypeAlias = tuple[list[Column], list[list[str]]]


class Listing(tuple[str, ...]):
    """Names of catalogue entries that display as a table."""

    _table: Callable[[Iterable[str]], Table]

    @classmethod
    def of(cls, names: Iterable[str], table: Callable[[Iterable[str]], Table]) -> Listing:
        """Creates a listing of these names with a function that builds their table."""
        listing = cls(names)
        listing._table = table
        return listing

    def __repr__(self) -> str:
        if not self:
            return "()"
        return format_repr(*self._table(self), f"names: {len(self)}", "a wider terminal shows them")


def instances(names: Iterable[str]) -> Table:
    """Returns a row for each cloud instance, with the limits of all its local disks together."""
    columns = [
        Names("name"),
        Figures("disks", 2),
        Figures("capacity", 1),
        Figures("read IOPS", 0),
        Figures("write IOPS", 0),
        Figures("read MB/s", 0),
        Figures("write MB/s", 0),
        Words("rates", 3),
    ]
    rows = [
        [
            entry["id"],
            str(entry["disks"]),
            _native.format_bytes(entry["capacity_bytes"]),
            *_rates(entry),
            entry["rates"],
        ]
        for entry in (Drive.load(name).summary for name in names)
    ]
    return columns, rows


def instance_families(names: Iterable[str]) -> Table:
    """Returns a row for each family of cloud instances, with its smallest and largest instance."""
    columns = [
        Names("family"),
        Words("vendor", 1),
        Figures("types", 0),
        Words("smallest", 2),
        Figures("read IOPS", 0),
        Figures("write IOPS", 0),
        Words("largest", 2),
        Figures("read IOPS", 0),
        Figures("write IOPS", 0),
        Words("rates", 3),
    ]
    members: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        summary = Drive.load(name).summary
        members.setdefault(summary["family"], []).append(summary)
    rows = []
    for family, entries in members.items():
        ends = [extreme(entries, key=lambda entry: entry["random_read_iops"]) for extreme in (min, max)]
        figures = [text for end in ends for text in (end["id"], *_rates(end)[:2])]
        origins = ", ".join(sorted({entry["rates"] for entry in entries}))
        rows.append([family, entries[0]["vendor"], str(len(entries)), *figures, origins])
    return columns, rows


def _rates(entry: dict[str, Any]) -> list[str]:
    """Returns the limits of an instance's local disks: read and write IOPS, read and write MB/s."""
    iops = [entry["random_read_iops"], entry["random_write_iops"]]
    megabytes = [entry[f"sequential_{way}_bytes_per_s"] / 1e6 for way in ("read", "write")]
    return [f"{rate:,.0f}" for rate in (*iops, *megabytes)]


def drives(names: Iterable[str], prices: Sequence[Price] = ()) -> Table:
    """Returns a row for each drive with its price, for which ``prices`` take precedence."""
    columns = [
        Names("name"),
        Words("drive", 2),
        Figures("year"),
        Figures("capacity", 0),
        Figures("rpm", 0),
        Figures("heads", 4),
        Figures("dies", 5),
        Words("interface"),
        Figures("queue", 3),
        Figures("MB/s", 6),
        Figures("$", 6),
        Figures("$/GB", 6),
    ]
    rows = [
        [
            entry["id"],
            entry["name"],
            "" if entry["year"] is None else str(entry["year"]),
            _native.format_bytes(entry["capacity_bytes"]),
            f"{entry['rpm']:,.0f}" if entry["kind"] == "disk" else "",
            str(entry.get("heads", "")),
            str(entry.get("dies", "")),
            entry["interface"].upper(),
            str(entry["queue_depth"]),
            f"{rate / 1e6:,.0f}" if (rate := entry["sequential_read_bytes_per_s"]) else "",
            f"{price:,.0f}" if (price := entry["price_usd"]) else "",
            f"{per_gb:.3g}" if (per_gb := entry["usd_per_gb"]) else "",
        ]
        for entry in (Drive.load(name).summary_with(prices) for name in names)
    ]
    return columns, rows


def arrays(names: Iterable[str]) -> Table:
    """Returns a row for each array."""
    columns = [Names("name"), Words("array", 3), Words("levels"), Figures("drives", 0), Words("drive", 2)]
    rows = [
        [
            entry["id"],
            entry["name"],
            ", ".join(entry["levels"]),
            str(entry["drives"]),
            ", ".join(entry["devices"]),
            _native.format_bytes(entry["capacity_bytes"]),
        ]
        for entry in (Array.load(name).summary for name in names)
    ]
    return [*columns, Figures("capacity", 0)], rows


def stacks(names: Iterable[str]) -> Table:
    """Returns a row for each stack."""
    columns = [Names("name"), Words("stack", 3), Words("layers"), Words("over", 2), Figures("capacity", 0)]
    rows = [
        [
            entry["id"],
            entry["name"],
            ", ".join(entry["layers"]),
            entry["over"],
            _native.format_bytes(entry["capacity_bytes"]),
        ]
        for entry in (Stack.load(name).summary for name in names)
    ]
    return columns, rows


def workloads(names: Iterable[str]) -> Table:
    """Returns a row for each workload."""
    columns = [Names("name"), Words("sizes", 0), Figures("read %", 0), Figures("random %", 0), Prose("source")]
    entries = [Workload.load(name).description for name in names]
    return columns, [[entry["name"], *_sizes_and_shares(entry["lines"]), entry["source"]] for entry in entries]


def _sizes_and_shares(lines: Sequence[dict[str, Any]]) -> list[str]:
    """Returns the request sizes, and the percentages of reads and of random requests over all lines."""
    sizes = list(dict.fromkeys(line["size"] for line in lines))

    def share(key: str) -> str:
        percent = sum(line["share_percent"] * line[key] / 100 for line in lines)
        return f"{percent:.3g}"

    span = sizes[0] if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return [span, share("read_percent"), share("random_percent")]


def scenarios(names: Iterable[str]) -> Table:
    """Returns a row for each scenario."""
    from headstack.catalogue.scenario import Scenario, kind_of, plain  # start-up time

    columns = [Names("name"), Figures("streams", 2), Words("kind"), Words("length", 3), Prose("source", 4)]
    rows = [
        [
            entry["name"],
            str(len(entry["streams"])),
            ", ".join(dict.fromkeys(map(kind_of, entry["streams"]))),
            plain(entry["run_length"]),
            entry["source"],
        ]
        for entry in (Scenario.load(name).description for name in names)
    ]
    return columns, rows
