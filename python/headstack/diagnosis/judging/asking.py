"""``judge``: the API of judging, for files or a table of monitoring data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from headstack._native import InputError
from headstack.diagnosis.judging.sources.times import zone_of
from headstack.diagnosis.judging.verdict import SLOW, Verdict
from headstack.io.values import duration_ns

if TYPE_CHECKING:
    import polars as pl

    from headstack.diagnosis.judging.judge import PeersMode
    from headstack.diagnosis.judging.observations import Observations
    from headstack.diagnosis.judging.session import Document, StoredSession
    from headstack.diagnosis.judging.sources.files import How

Inputs: TypeAlias = "str | Path | Sequence[str | Path] | pl.DataFrame | pl.LazyFrame"


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdicts on disks, and the state for the next judgement."""

    verdicts: tuple[Verdict, ...]
    """The slow disks first, starting with the slowest; then the undecided ones."""
    caveats: tuple[str, ...]
    """Limits of the input data."""
    state: StoredSession
    """Plain data, as in JSON and ``--state``."""
    document: Document
    """All verdicts, as ``--json`` writes them."""

    @property
    def slow(self) -> tuple[Verdict, ...]:
        """Verdicts on the slow disks."""
        return tuple(verdict for verdict in self.verdicts if verdict.kind == SLOW)


def judge(
    inputs: Inputs,
    *,
    columns: str | Mapping[str, str] | None = None,
    peers: PeersMode = "auto",
    twins: Sequence[str] = (),
    false_alarms: float = 0.001,
    state: Mapping[str, Any] | None = None,
    every: str | None = None,
    timezone: str | None = None,
    host: str | None = None,
    limits: Sequence[str] = (),
    maintenance: Sequence[str] = (),
) -> Judged:
    """Judges whether disks are silently slow, like ``headstack judge``: since when, by how much, and why.

    ``inputs`` are files and folders of monitoring data, or a table of polars whose columns ``columns`` declares, as in
    the command's ``--columns`` or as a mapping of its keys; a table with the columns ``host``, ``disk``, ``start_s``
    and ``length_s`` (seconds) and names such as ``reads``, ``read_bytes`` and ``read_latency_s`` needs no declaration.
    ``peers``, ``twins`` (texts ``DISK=SYSTEM`` or ``MODEL=SYSTEM``), ``every``, ``timezone``, ``host``, ``limits``
    (texts such as ``sdb=3000/s``) and ``maintenance`` (texts such as ``daily 02:00-04:00``) are as in the command;
    ``false_alarms`` is the permitted number of healthy disks called slow per disk-year. ``state`` is that of an earlier
    judgement: data judged already are skipped, and verdicts cover everything. Raises ``InputError`` for unreadable
    inputs.

    >>> import polars as pl
    >>> import headstack as hs
    >>> quarter_s = pl.Series("at", range(0, 30 * 900, 900))
    >>> disks = [
    ...     pl.DataFrame({"at": quarter_s}).with_columns(disk=pl.lit(name), ios=pl.lit(9000), ms=pl.lit(ms))
    ...     for name, ms in (("sda", 8.0), ("sdb", 8.1), ("sdc", 7.9), ("sdd", 20.0), ("sde", 8.05))
    ... ]
    >>> declared = "disk=disk,time=at:s,every=15min,requests=ios,latency=ms:ms"
    >>> [(verdict.disk, verdict.method) for verdict in hs.judge(pl.concat(disks), columns=declared).slow]
    [('sdd', 'peers')]
    """
    try:
        import numpy  # noqa: F401  # start-up time
        import polars  # noqa: F401  # start-up time
    except ImportError:
        raise InputError("judging needs numpy and polars: pip install 'headstack[judge]'") from None
    from headstack.diagnosis.judging.judge import judge as by_statistics  # start-up time
    from headstack.diagnosis.judging.maintenance import Maintenance  # start-up time
    from headstack.diagnosis.judging.session import Session  # start-up time
    from headstack.diagnosis.judging.sources.files import How  # start-up time
    from headstack.diagnosis.judging.suspects.limits import limits_of  # start-up time
    from headstack.diagnosis.judging.twins import twins_of  # start-up time

    every_s = None if every is None else duration_ns("every", every) / 1e9
    how = How(None if timezone is None else zone_of(timezone), every_s, host)
    settings: dict[str, Any] = {
        "peers": peers,
        "twin": twins_of(twins) or None,
        "false_alarms_per_drive_year": false_alarms,
    }
    settings["limits"] = limits_of(limits)
    session = Session(by_statistics, how, settings, maintenance=Maintenance.of(maintenance, how.zone))
    if state is not None:
        session.resume_from(state, "state")
    for part in _parts(inputs, columns, how):
        session.take(part)
    return Judged(session.verdicts, tuple(session.caveats), session.stored(), session.document())


def _parts(inputs: Inputs, columns: str | Mapping[str, str] | None, how: How) -> Iterator[Observations]:
    import polars as pl  # start-up time

    from headstack.diagnosis.judging.sources.kinds import parts  # start-up time
    from headstack.diagnosis.judging.sources.table import checked, declaration, parts_of  # start-up time

    declared = declaration(columns) if isinstance(columns, str) else columns and checked(columns, "columns")
    if isinstance(inputs, pl.DataFrame | pl.LazyFrame):
        return parts_of(inputs.lazy(), "table", declared, how)
    named = [inputs] if isinstance(inputs, str | Path) else inputs
    for name in named:
        if not Path(name).exists():
            raise InputError("no such file or folder", file=str(name))
    return parts([str(name) for name in named], how, declared)
