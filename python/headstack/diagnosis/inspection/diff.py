"""``Difference``: compares devices by features, and finds features that separate good from bad devices, with the
limits of such evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headstack.diagnosis.inspection.hdparm import KEYS
from headstack.diagnosis.inspection.model import Capability, Inspection

NOT_KNOWN = "not known"

MEANINGS = {
    "tcq": "tagged queueing of parallel ATA; hdparm lists it as READ/WRITE_DMA_QUEUED; passes PATA-SATA bridges",
    "ncq": "native queueing of Serial ATA; a PATA-SATA bridge cannot pass it",
    "dipm": "the drive may put the link to sleep; effective only if both host and drive have it enabled",
    "hipm": "the host may put the link to sleep",
    "sct_erc": "bounds the time of retries on a bad sector",
    "write_cache": "writes complete before they are on the medium",
    "write_read_verify": "each write is read back, which costs a revolution",
}
"""Relation of each feature to performance."""


@dataclass(frozen=True, slots=True)
class Row:
    """A feature, with its state in every device."""

    key: str
    name: str
    states: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the devices that report the feature differ."""
        return len({state for state in self.states if state != NOT_KNOWN}) > 1


@dataclass(frozen=True, slots=True)
class Divider:
    """A feature that separates good from bad devices, or nearly."""

    key: str
    name: str
    how: str
    exceptions: tuple[str, ...] = ()
    """Devices that do not fit, or whose state is unknown."""

    @property
    def meaning(self) -> str:
        """The relation of the feature to performance, if known."""
        return MEANINGS.get(self.key, "")


@dataclass(frozen=True, slots=True)
class OneSided:
    """Conclusions if only good or only bad devices are listed."""

    side: str
    """The side that is listed: ``good`` or ``bad``."""
    ruled_out: tuple[str, ...]
    """Features in which devices of this side differ, so that none is the only cause."""
    if_missing_elsewhere: tuple[str, ...]
    """Features that all devices of this side have; such a feature separates the sides if no device of the other side
    has it."""
    off: tuple[str, ...]
    """Features in ``if_missing_elsewhere`` that were off in all devices when they were listed."""
    if_present_elsewhere: tuple[str, ...]
    """Features that no device of this side has, although the source lists such features; such a feature separates the
    sides if all devices of the other side have it. """


@dataclass(frozen=True)
class Difference:
    """A comparison of devices."""

    good: list[Inspection] = field(default_factory=list)
    bad: list[Inspection] = field(default_factory=list)
    others: list[Inspection] = field(default_factory=list)
    """Devices on neither side."""

    @property
    def devices(self) -> list[Inspection]:
        """All devices: first the good ones, then the bad ones, then the others."""
        return [*self.good, *self.bad, *self.others]

    def rows(self) -> list[Row]:
        """All features that any device reports, identity first."""
        identity = [self._identity_row(key) for key in ("model", "firmware", *IDENTITY)]
        return identity + [
            Row(key, name, tuple(self.state(device, key) for device in self.devices))
            for key, name in self._names().items()
        ]

    def _identity_row(self, key: str) -> Row:
        values = (getattr(device.identity, key) for device in self.devices)
        return Row(key, key.replace("_", " "), tuple(NOT_KNOWN if v is None else str(v) for v in values))

    def _names(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for device in self.devices:
            for key, capability in device.capabilities.items():
                names.setdefault(key, capability.name)
        return names

    def state(self, device: Inspection, key: str) -> str:
        """Returns the state of a feature of a device, in a word."""
        capability = device.capabilities.get(key)
        if capability is not None:
            return capability.state
        return "absent" if self.has(device, key) is False else NOT_KNOWN

    def has(self, device: Inspection, key: str) -> bool | None:
        """Returns whether a device has a feature; ``None`` if unknown or not applicable."""
        capability = device.capabilities.get(key)
        if capability is not None:
            return capability.supported
        listed_by = {c.source for d in self.devices if (c := d.capabilities.get(key)) is not None and c.listed}
        if key in LISTED_BY_HDPARM:
            listed_by.add("hdparm")
        return False if listed_by & set(device.listings) else None

    def _is_on(self, device: Inspection, key: str) -> bool | None:
        """Returns whether a device has a feature and the feature is enabled."""
        capability = device.capabilities.get(key)
        if self.has(device, key) is False:
            return False
        return None if capability is None else capability.enabled

    def dividers(self) -> tuple[list[Divider], list[Divider]]:
        """Returns the features that separate the good from the bad devices, and the features that do so except for one
        device."""
        exact: list[Divider] = []
        nearly: list[Divider] = []
        if not (self.good and self.bad):
            return exact, nearly
        for key, name in self._names().items():
            by_presence = self._divides(key, name, self.has, "have it")
            divider = by_presence or self._divides(key, name, self._is_on, "have it enabled")
            if divider is not None:
                (nearly if divider.exceptions else exact).append(divider)
            elif (by_value := self._divides_by_value(key, name)) is not None:
                exact.append(by_value)
        return exact, nearly

    def _divides(
        self, key: str, name: str, answer: Callable[[Inspection, str], bool | None], predicate: str
    ) -> Divider | None:
        """Returns a divider if the answers separate the sides with at most one exception. Without the exception, each
        side must still have a device."""
        for wanted, side in ((True, "good"), (False, "bad")):
            odd_good = [device.label for device in self.good if answer(device, key) is not wanted]
            odd_bad = [
                device.label for device in self.bad if answer(device, key) is wanted or answer(device, key) is None
            ]
            exceptions = (*odd_good, *odd_bad)
            has_fitting = len(odd_good) < len(self.good) and len(odd_bad) < len(self.bad)
            if len(exceptions) <= 1 and has_fitting:
                return Divider(key, name, f"only the {side} devices {predicate}", exceptions)
        return None

    def _divides_by_value(self, key: str, name: str) -> Divider | None:
        """Returns a divider for a setting with one value in all good devices and another in all bad ones."""
        good = {_value(device.capabilities.get(key)) for device in self.good}
        bad = {_value(device.capabilities.get(key)) for device in self.bad}
        if len(good) == len(bad) == 1 and good != bad and None not in good | bad:
            return Divider(key, name, f"{good.pop()} in the good devices, {bad.pop()} in the bad ones")
        return None

    def one_sided(self) -> OneSided | None:
        """Returns the conclusions if exactly one side has devices; otherwise ``None``."""
        if bool(self.good) == bool(self.bad):
            return None
        listed = self.good or self.bad
        keys = dict.fromkeys([*self._names(), *LISTED_BY_HDPARM])
        answers = {key: {self.has(device, key) for device in listed} for key in keys}
        return OneSided(
            "good" if self.good else "bad",
            tuple(key for key, states in answers.items() if states == {True, False}),
            tuple(key for key, states in answers.items() if states == {True}),
            tuple(
                key
                for key, states in answers.items()
                if states == {True}
                and not any(self._is_on(d, key) for d in listed)
                and any(self._is_on(d, key) is False for d in listed)
            ),
            tuple(key for key, states in answers.items() if states == {False}),
        )

    def caveats(self) -> list[str]:
        """Returns the limits of the conclusions, one line each."""
        caveats: list[str] = []
        for side, devices in (("good", self.good), ("bad", self.bad)):
            if len(devices) == 1 and (self.good and self.bad):
                caveats.append(
                    f"one {side} device: every property unique to {devices[0].label} also separates the sides"
                )
            elif len(devices) > 1 and len({device.identity.model for device in devices}) == 1:
                caveats.append(
                    f"all {side} devices are the same model: they count as one observation, not {len(devices)}"
                )
        for device in self.devices:
            if not device.listings and device.identity.protocol in (None, "ATA"):
                caveats.append(
                    f"{device.label}: no complete listing of features (hdparm -I): missing features are unknown"
                )
            unnamed = [c.name for key, c in device.capabilities.items() if key.startswith("unknown_")]
            if unnamed:
                caveats.append(f"{device.label}: its hdparm version has no name for {', '.join(unnamed)} (word[bit])")
        if self.good and self.bad:
            caveats.append(
                "a separating feature correlates with the difference; only a test can show that it is the cause"
            )
        return caveats

    def to_dict(self) -> dict[str, object]:
        """Returns the comparison in JSON's form."""
        exact, nearly = self.dividers()
        one_sided = self.one_sided()
        shown = {"good": self.good, "bad": self.bad, "others": self.others}
        return {
            "headstack_difference": 1,
            **{side: [device.label for device in devices] for side, devices in shown.items()},
            "rows": [
                {"key": row.key, "name": row.name, "states": list(row.states), "differs": row.differs}
                for row in self.rows()
            ],
            "divides": [_divider(divider) for divider in exact],
            "nearly_divides": [_divider(divider) for divider in nearly],
            "one_sided": None
            if one_sided is None
            else {name: getattr(one_sided, name) for name in OneSided.__dataclass_fields__},
            "caveats": self.caveats(),
        }


IDENTITY = ("capacity_bytes", "rpm", "form_factor", "interface_max_gbps", "interface_now_gbps", "physical_block_bytes")

LISTED_BY_HDPARM = tuple(dict.fromkeys(KEYS.values()))
"""Features that hdparm lists; if a complete listing lacks such a feature, the device lacks it."""


def _value(capability: Capability | None) -> int | float | str | None:
    return None if capability is None else capability.value


def _divider(divider: Divider) -> dict[str, object]:
    return {
        "key": divider.key,
        "name": divider.name,
        "how": divider.how,
        "exceptions": list(divider.exceptions),
        "meaning": divider.meaning,
    }
