"""``Drive``, a drive, cloud volume or set of local disks from the catalogue, a TOML file or DiskSim's parameters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from headstack import _native
from headstack.catalogue.parts import span_of_part
from headstack.catalogue.price_list import Price, newest, price_class, shipped_prices


def _rate(text: str | None) -> float | None:
    """Returns a rate in bytes per second, or ``None`` if none is stated."""
    return None if text is None else _native.parse_rate(text)


@dataclass(frozen=True)
class Drive:
    """A drive with all defaults filled in, or a part of one (short-stroked)."""

    name: str
    """The name in results: the catalogue's id or the file's name, with the range if there is one."""
    description: dict[str, Any]
    """Every parameter of the model; times are in nanoseconds, the units of lengths are in their names."""
    derived: list[dict[str, Any]] = field(default_factory=list)
    """Derived values, stated by no source: ``key``, ``value`` and the ``rule`` that computes them."""
    stated: list[dict[str, Any]] = field(default_factory=list)
    """Values stated in the file: ``key``, ``value`` (as text) and ``source`` (confidence and origin)."""
    span: tuple[int, int] | None = None
    """First byte and length in bytes of the used part; ``None`` for the whole drive."""
    kind: str = "disk"
    """``disk``, ``ssd`` for a solid-state drive, or ``volume`` for a cloud volume or the local disks of an instance."""
    path: str = ""
    """Source of the description: a file, or an id in the catalogue."""

    @classmethod
    def load(cls, system: str | os.PathLike[str]) -> Drive:
        """Loads the drive ``ID`` or ``FILE.toml``, or the part ``ID@RANGE``.

        Raises ``InputError`` if there is no such name, or it is not a drive.

        >>> hs.Drive.load("cheetah-x15-36lp").kind
        'disk'
        """
        name, separator, part = os.fspath(system).partition("@")
        resolved = _native.load_drive(name)
        drive = cls(os.path.basename(name).removesuffix(".toml"), path=name, **resolved)
        return drive.part(part) if separator else drive

    @property
    def system(self) -> dict[str, Any]:
        """The system description for a run."""
        return {"drive": {self.kind: self.description}}

    @cached_property
    def size(self) -> _native.SystemSize:
        """The sizes of the drive."""
        return _native.system_size(self.system)

    @property
    def capacity_bytes(self) -> int:
        """Bytes exported by the whole drive."""
        return self.size.capacity_bytes

    def price(self, prices: Sequence[Price] = (), on: str | None = None) -> Price | None:
        """Returns the drive's price: from ``prices``, else from ``[price]`` of its file, else from headstack's price
        list.

        Within each source the newest price is used, or the newest as of the day ``on``.

        >>> hs.Drive.load("exos-x16-16tb").price().usd
        417.0
        """
        name = os.path.basename(self.path).removesuffix(".toml")
        stated = {value["key"]: value for value in self.stated if value["key"].startswith("price.")}
        own: tuple[Price, ...] = ()
        if "price.usd" in stated:
            confidence, _, source = (stated["price.usd"]["source"] or "I its own file").partition(" ")
            usd, date = (stated[f"price.{key}"]["value"] for key in ("usd", "date"))
            own = (Price(name, float(usd), date, confidence, source),)
        # A file with the name of a catalogue entry is another drive.
        shipped = () if self.path.endswith(".toml") else shipped_prices()
        for source_prices in (prices, own, shipped):
            if (price := newest(name, source_prices, on)) is not None:
                return price
        return None

    @property
    def summary(self) -> dict[str, Any]:
        """The main properties, which distinguish drives in a list."""
        return self.summary_with()

    def summary_with(self, prices: Sequence[Price] = ()) -> dict[str, Any]:
        """Returns the main properties with the price, for which ``prices`` take precedence.

        >>> hs.Drive.load("re4-2tb").summary_with()["price_usd"]
        246.0
        """
        stated = {value["key"]: value["value"] for value in self.stated}
        price = self.price(prices)
        common = {
            "id": self.name,
            "kind": self.kind,
            "name": self.description["name"],
            "vendor": stated.get("vendor"),
            "year": int(stated["year"]) if "year" in stated else None,
            "capacity_bytes": self.capacity_bytes,
            "price_usd": None if price is None else price.usd,
            "price_date": None if price is None else price.date,
            "price_class": None if price is None else price_class(price.usd),
            "usd_per_gb": None if price is None else round(price.usd_per_gb(self.capacity_bytes), 4),
            "random_read_iops": float(iops) if (iops := stated.get("stated.random_read.iops")) else None,
        }
        if self.kind == "ssd":
            flash = self.description["flash"]
            return {
                **common,
                "channels": flash["channels"],
                "dies": flash["channels"] * flash["dies_per_channel"],
                "interface": stated["interface.kind"],
                "queue_depth": self.description["interface"]["queue_depth"],
                "sequential_read_bytes_per_s": _rate(stated.get("stated.sequential_read")),
                "power_loss_protected": self.description["buffer"]["power_loss_protected"],
                "tbw": float(tbw) if (tbw := stated.get("endurance.tbw")) else None,
                "dwpd": float(dwpd) if (dwpd := stated.get("endurance.dwpd")) else None,
            }
        if "instance.family" in stated:
            return {
                **common,
                "kind": "instance",
                "interface": "nvme",
                "queue_depth": self.description["queue_depth"],
                "family": stated["instance.family"],
                "disks": int(stated["instance.disks"]),
                "rates": stated["instance.rates"],
                "random_read_iops": float(stated["volume.read_iops"]),
                "random_write_iops": float(stated["volume.write_iops"]),
                "sequential_read_bytes_per_s": _rate(stated["volume.read_throughput"]),
                "sequential_write_bytes_per_s": _rate(stated["volume.write_throughput"]),
            }
        if self.kind == "volume":
            # The rates before burst credits are used up.
            rates = [limit for limit in self.description["limits"] if limit["counts"] == "bytes"]
            highest = [(limit["burst"] or limit)["per_s"] for limit in rates if limit["of"] != "writes"]
            return {
                **common,
                "interface": "network",
                "queue_depth": self.description["queue_depth"],
                "sequential_read_bytes_per_s": min(highest, default=None),
            }
        return {
            **common,
            "rpm": self.description["mechanics"]["rpm"],
            "heads": self.description["geometry"]["heads"],
            "interface": self.description["interface"]["kind"],
            "queue_depth": self.description["queue"]["depth"],
            "sequential_read_bytes_per_s": _rate(stated.get("media.sustained_outer_rate")),
        }

    def part(self, text: str) -> Drive:
        """Returns the part ``text`` of the drive: ``36.7GB`` (the first), ``10GB..20GB`` or ``0%..50%``.

        >>> hs.Drive.load("cheetah-x15-36lp").part("10GB..20GB").span[1]
        10000000000
        """
        span = span_of_part(self.name, self.span, self.size, text)
        return replace(self, name=f"{self.name}@{text}", span=span)

    def to_toml(self) -> str:
        """Returns the description as TOML in the catalogue's format.

        >>> hs.Drive.load("cheetah-x15-36lp").to_toml().splitlines()[0].startswith("name")
        True
        """
        sources = {value["key"]: value["source"] for value in self.stated if value["source"]}
        return _native.drive_to_toml(self.system["drive"], sources)

    def _repr_html_(self) -> str:
        import html  # start-up time

        name = html.escape(str(self.description["name"]))
        return f"<b>{name}</b> ({_native.format_bytes(self.capacity_bytes)})"


@dataclass(frozen=True)
class Imported:
    """The drives read from DiskSim's parameter files."""

    drives: list[Drive]
    unmapped: dict[str, list[str]]
    """For each drive, the parameters without a counterpart in the model."""
    refused: dict[str, str]
    """Drives of the file that cannot be imported, each with the reason."""
    warnings: list[str]
    """Differences between a drive's simulated behaviour and its file."""


def import_disksim(path: str | os.PathLike[str]) -> Imported:
    """Imports the drives of a ``.parv`` or ``.diskspecs`` file of DiskSim.

    Raises ``InputError`` with file and line if it cannot be read.

    >>> hs.import_disksim("missing.parv")
    Traceback (most recent call last):
    headstack.InputError: missing.parv: cannot be read: No such file or directory (os error 2)
    """
    imported = _native.import_disksim(os.fspath(path))
    drives = [
        Drive(
            drive["name"],
            drive["description"],
            stated=[{"key": key, "source": source} for key, source in drive["sources"].items()],
        )
        for drive in imported["drives"]
    ]
    unmapped = {drive["name"]: drive["unmapped"] for drive in imported["drives"]}
    refused = {drive["name"]: drive["error"] for drive in imported["refused"]}
    return Imported(drives, unmapped, refused, imported["warnings"])
