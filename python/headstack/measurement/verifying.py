"""``Verifying``: checks that reads from real targets return what was written, under load and afterwards."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from headstack._native import InputError
from headstack.io.values import choice

KINDS = ("no", "stamp", "stamp_and_read", "check")


@dataclass(frozen=True)
class Verifying:
    """Settings for checking that reads return what was written."""

    kind: str = "no"
    """``stamp``: writes contain stamps, and reads are checked on completion. ``stamp_and_read``: in addition, all
    written data are read at the end. ``check``: reads are compared with the data of an earlier run."""
    ledger: str | None = None
    """The file that records the writes: a new file, or with ``resume`` or ``check`` the file of an earlier run.
    ``None`` keeps the ledger in memory; a check then uses only the stamps."""
    resume: bool = False
    """Whether to continue with the ledger of an earlier run whose data are still on the target."""

    def checked(self, writes: bool) -> Verifying:
        """Returns the settings if they are valid for a load that writes (``writes``) or only reads.

        Raises ``InputError`` if the settings are invalid, if a ledger already exists, or if a required ledger is
        missing.
        """
        choice("verify", self.kind, KINDS)
        if self.kind == "no":
            if self.ledger is not None or self.resume:
                raise InputError("nothing is verified; add --verify, --verify-after or --check", key="ledger")
            return self
        if self.resume and self.ledger is None:
            raise InputError("needs the ledger of an earlier run; name it with --ledger", key="resume")
        if self.kind == "check":
            return Verifying(self.kind, self.ledger, resume=self.ledger is not None)
        if not writes and not self.resume:
            raise InputError(
                "the workload writes nothing; use --check to verify the data of an earlier run",
                key="verify",
            )
        if self.ledger is not None and not self.resume and os.path.lexists(self.ledger):
            raise InputError(
                f"{self.ledger}: an earlier run left this ledger; use --resume to continue it if its data are still "
                "there; otherwise remove it, or name another one with --ledger"
            )
        return self


def ledger_of(path: str) -> Path:
    """Returns the default path of a target's ledger, which is in the current folder and has the name of the target. An
    address is reduced to its letters and digits."""
    name = re.sub(r"[^\w.]+", "-", path) if "://" in path else Path(path).name
    return Path(f"{name}.ledger")
