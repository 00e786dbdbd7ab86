"""``Collected``: fio's results and logs from files and folders, with the files that could not be read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from headstack._native import InputError
from headstack.measurement.fio.loads import Load, folder_of, loads_of
from headstack.measurement.fio.logs import Log, is_log
from headstack.measurement.fio.logs import read as read_log
from headstack.measurement.fio.report import report_of
from headstack.report.figures import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headstack.report.figures import Report
from headstack.measurement.fio.collection import Collection


class Collected(Collection):
    """Results and logs of fio from any files."""

    def report(self) -> Report:
        """Returns all results as a report."""
        return report_of(self)

    def pictures(self, folder: str | os.PathLike[str]) -> list[Figure]:
        """Writes a picture of each figure of the report to a folder. Needs the extra ``headstack[plot]``."""
        from headstack.report.draw import draw  # start-up time

        Path(folder).mkdir(parents=True, exist_ok=True)
        figures = [figure for section in self.report().sections for figure in section.figures]
        drawn = [figure for figure in figures if not isinstance(figure, Table)]
        return [draw(figure, Path(folder) / f"{figure.name}.png") for figure in drawn]


def fio_results(*sources: str | os.PathLike[str]) -> Collected:
    """Reads results and logs of fio 2.0 or later: JSON files, logs, and folders of both.

    A file given by name must be readable; unreadable files in folders are listed and skipped. Raises ``InputError`` if
    nothing can be read.

    >>> _ = open("w_bw.1.log", "w").write("500, 2000, 0, 0, 0\\n1000, 1000, 0, 0, 0\\n")
    >>> [log.unit for log in hs.fio_results("w_bw.1.log").logs]
    ['MB/s']
    """
    loads: list[Load] = []
    logs: list[Log] = []
    bad: list[str] = []
    for source in sources:
        if os.path.isdir(source):
            loads_read, not_read = folder_of(source)
            loads += loads_read
            bad += not_read
            for path in sorted(path for path in Path(source).rglob("*.log") if is_log(path)):
                try:
                    logs.append(read_log(path))
                except InputError as error:
                    bad.append(str(error))
        elif is_log(source):
            logs.append(read_log(source))
        else:
            loads += loads_of(source)
    name = ", ".join(os.fspath(source) for source in sources[:3]) + ("…" if len(sources) > 3 else "")
    if not loads and not logs:
        why = f": {'; '.join(bad[:3])}" if bad else ""
        raise InputError(f"no fio results or logs found{why}", file=name)
    # Synchronous engines leave empty logs of submission latency.
    return Collected(name, tuple(loads), tuple(log for log in logs if log.entries), tuple(bad))
