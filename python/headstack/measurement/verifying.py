"""Whether what was written to real targets is what is read, under load and afterwards."""

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
    """What a measurement does to find out whether what is read is what was written."""

    kind: str = "no"
    """``stamp``: writes carry stamps and reads are checked as they come back; ``stamp_and_read``: and at the end
    everything written is read; ``check``: reads are held against what an earlier run has left."""
    ledger: str | None = None
    """The file that knows what was written: a new one, or with ``resume`` and ``check`` that of an earlier run. In
    memory where absent; a check then goes by the stamps alone."""
    resume: bool = False
    """Go on with the ledger of an earlier run, whose data are still there."""

    def checked(self, writes: bool) -> Verifying:
        """The same, if it makes sense for a load that ``writes`` or does not.

        Raises ``InputError`` where it does not, or where a ledger is there that should not be, or the reverse.
        """
        choice("verify", self.kind, KINDS)
        if self.kind == "no":
            if self.ledger is not None or self.resume:
                raise InputError("nothing is verified; --verify, --verify-after or --check is needed", key="ledger")
            return self
        if self.resume and self.ledger is None:
            raise InputError("a ledger to go on with is needed; name it with --ledger", key="resume")
        if self.kind == "check":
            return Verifying(self.kind, self.ledger, resume=self.ledger is not None)
        if not writes and not self.resume:
            raise InputError("the workload writes nothing; --check holds reads against what is there", key="verify")
        if self.ledger is not None and not self.resume and os.path.lexists(self.ledger):
            raise InputError(
                f"{self.ledger}: an earlier run has left this ledger; --resume goes on with it if its data are still "
                "there, else remove it or name another with --ledger"
            )
        return self


def ledger_of(path: str) -> Path:
    """Where the ledger of a target is kept unless somebody says otherwise: in the current folder, by its name; an
    address is one, with what is no letter left out."""
    name = re.sub(r"[^\w.]+", "-", path) if "://" in path else Path(path).name
    return Path(f"{name}.ledger")
