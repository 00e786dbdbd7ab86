"""Types of the lines in the log of a conditioning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from headstack.measurement.specs import PassEnd, Stretch


class LoggedTarget(TypedDict):
    """A device or a file of the module."""

    path: str
    identity: dict[str, str | int]
    """Properties that stay the same when the device is attached elsewhere, such as its serial number."""
    description: Mapping[str, Any]
    """All known properties; see ``TargetDescription``."""
    notes: list[str]


class ModuleRecord(TypedDict):
    """The first line: the targets and the settings."""

    record: Literal["module"]
    schema: int
    headstack: str
    """Version of headstack that wrote the log."""
    began: str
    targets: list[LoggedTarget]
    module_bytes: int
    block_bytes: int
    ahead: int
    interval_ns: int
    passes: list[str]
    device_bytes: int | None
    class_limits_ns: list[int]
    """Upper bounds of the classes of block times; the last class has no bound."""


_InPass = TypedDict("_InPass", {"pass": int})
"""Number of a pass; the key is a keyword and therefore needs this form of ``TypedDict``."""


class StretchRecord(_InPass, Stretch):
    """An interval of a pass."""

    record: Literal["stretch"]


class PassRecord(_InPass, PassEnd):
    """The end of a pass, or of a session within it."""

    record: Literal["pass"]


class ResumedRecord(TypedDict):
    """The beginning of another session."""

    record: Literal["resumed"]
    at: str


Line = StretchRecord | PassRecord | ResumedRecord
"""Any line except the first."""
Record = ModuleRecord | Line
