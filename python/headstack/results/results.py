"""Results of runs: a table that prints, plots and exports itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headstack.io import tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headstack.report.figures import Report
    from headstack.results.intervals.model_errors import Runs
from headstack.results.table import ResultTable, Row


class Results(ResultTable):
    """Results in the order of the runs. Each is a dict: see ``column_names``.

    duckdb, polars, pyarrow and pandas read the object itself as a table, without a copy.
    """

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Plots the saturation curves, latency over throughput, and writes the figure if ``path`` is given.

        Needs the extra ``headstack[plot]``.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> _ = results.plot("curve.png")
        """
        from headstack.report.draw import draw  # start-up time
        from headstack.results.report import saturation  # start-up time

        return draw(saturation(self), path)

    def report(self) -> Report:
        """Returns all results as a report, which notebooks show; ``headstack.report.html`` writes it as one HTML file.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> len(results.report().runs)
        2
        """
        from headstack.results.report import report_of  # start-up time

        return report_of(self)

    def to_html(self, path: str | os.PathLike[str], with_simulator: bool = False) -> None:
        """Writes ``report`` as one HTML file. With ``with_simulator``, readers can vary its curves. Needs the page,
        which every built package contains.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.to_html("results.html")
        """
        from headstack.report.html import write_html  # start-up time
        from headstack.results.explorer import simulator  # start-up time

        write_html(self.report(), path, simulator if with_simulator else None)

    def and_others(self, others: Results) -> Results:
        """Returns these results followed by ``others``.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> len(results.and_others(results))
        4
        """
        swept = [*self._swept, *(name for name in others._swept if name not in self._swept)]
        return Results(self._native.and_(others._native), swept)

    def chosen(self, indices: Sequence[int]) -> Results:
        """Returns the results at ``indices``, in that order.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> [row["depth"] for row in results.chosen([1])]
        [4]
        """
        return Results(self._native.chosen(list(indices)), self._swept)

    def with_model_errors(self, specs: Sequence[Row], run: Runs) -> Results:
        """Returns the results with the prediction intervals of their models, for runs whose specifications describe the
        system; ``run`` simulates members of a calibrated model's sample.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0)
        >>> results.with_model_errors([{}], hs.run) is results
        True
        """
        from headstack.results.intervals.model_errors import with_model_errors  # start-up time

        native = with_model_errors(self._native, specs, run)
        return self if native is self._native else Results(native, self._swept)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns the whole results as a JSON list with one run per line, and writes the list if ``path`` is given.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> results.to_json().startswith("[")
        True
        """
        runs = (self._native.to_json(index) for index in range(len(self)))
        return tables.written("[\n" + ",\n".join(runs) + "\n]\n", path)
