"""Sweeps: systems under one workload, with any values of their files and any options of runs varied."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from headstack._native import Field
from headstack.simulation.chunks.chunked import finish
from headstack.simulation.runs import Progress, texts
from headstack.simulation.shards import Shard

if TYPE_CHECKING:
    from matplotlib.figure import Figure

from headstack.simulation.swept import Named, Plan, SweptRuns

FIELDS = (
    Field("drives", "count", "drives", "drives of the array, if its usable capacity was requested"),
    Field("impossible", "text", "", "why the configuration is impossible"),
    Field("failed", "text", "", "why its run failed, or failed its own check"),
)
"""Table columns between the varied parameters and the results."""


class Sweep(SweptRuns):
    """The result of a sweep: a row for each configuration, in files that are read as needed."""

    def plot(
        self, path: str | os.PathLike[str] | None = None, column: str = "iops", where: str | None = None
    ) -> Figure:
        """Plots a column over the varied parameters, for the configurations that fulfil ``where``, and writes it if
        ``path`` is given. Needs the extra ``headstack[plot]``.

        >>> swept = hs.sweep("cheetah-x15-36lp", vary={"depth": [1, 4], "requests": [100], "warm_up": [0]})
        >>> _ = swept.plot("sweep.png", column="mean_ms")
        """
        from headstack.report.draw import draw  # start-up time
        from headstack.simulation.report import figure  # start-up time

        return draw(figure(self, column, where), path)

    def to_html(
        self,
        path: str | os.PathLike[str],
        column: str = "iops",
        descending: bool = True,
        where: str | None = None,
        with_simulator: bool = False,
    ) -> None:
        """Writes the figure of ``plot`` and the table, sorted by the column, as one HTML file.

        >>> swept = hs.sweep("cheetah-x15-36lp", vary={"depth": [1, 4], "requests": [100], "warm_up": [0]})
        >>> swept.to_html("sweep.html")
        """
        from headstack.report.html import write_html  # start-up time
        from headstack.results.explorer import simulator  # start-up time
        from headstack.simulation.report import report_of  # start-up time

        write_html(report_of(self, column, descending, where), path, simulator if with_simulator else None)

    def __repr__(self) -> str:
        return f"<headstack.Sweep: {self.configurations} configurations, {self.impossible} impossible>"


def run_plan(
    plan: Plan,
    store: str | os.PathLike[str] | None = None,
    executor: str = "local",
    progress: Progress | None = None,
) -> Sweep:
    """Runs the points of a plan that are not stored yet."""
    return Sweep(plan, finish(plan.chunks(), len(plan), store=store, executor=executor, progress=progress))


def sweep(
    system: Named | Iterable[Named],
    workload: Named | None = None,
    *,
    vary: Mapping[str, str | int | float | bool | Iterable[str | int | float | bool]],
    sample: str = "grid",
    points: int | None = None,
    shard: str | None = None,
    store: str | os.PathLike[str] | None = None,
    executor: str = "local",
    progress: Progress | None = None,
) -> Sweep:
    """Runs one or more systems under a workload at many points of a parameter space.

    ``vary`` names fields of the system's file or the workload's by their paths (``seek.read_average``,
    ``lines[0].size``), or options of ``run`` by their names. Values are a list, or text as on the command line:
    ``"fcfs,sptf"``, ``"3ms..12ms"``, with steps ``"3ms..12ms:4"``, by ratios ``"1..256:9:log"``. A ``grid`` takes all
    combinations; ``random`` and ``sobol`` take ``points`` of them. All runs have the seed 1 unless ``seed`` is varied.

    ``shard``, such as ``"2/8"``, runs only that part, for ``Sweep.to_shard``. An impossible configuration is a row with
    the reason. Finished runs are kept in ``store`` and not repeated. Raises ``InputError`` for unknown fields and if no
    configuration is possible.

    >>> swept = hs.sweep("cheetah-x15-36lp", vary={"depth": [1, 4], "requests": [100], "warm_up": [0]})
    >>> swept
    <headstack.Sweep: 2 configurations, 0 impossible>
    """
    texts_by_field = {name: text if isinstance(text, str) else ",".join(texts(text)) for name, text in vary.items()}
    plan = Plan(system, workload, texts_by_field, sample, points, None if shard is None else Shard.parse(shard))
    return run_plan(plan, store, executor, progress)
