"""``fit``: runs an inverse study from its file to the result. See docs/design/inverse-studies.md."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headstack._native import InputError, RunError
from headstack.catalogue.options import Spec
from headstack.io.json_text import key_of
from headstack.results.table import Row
from headstack.simulation.chunks.chunked import run_chunks
from headstack.simulation.runs import Progress, swept
from headstack.studies.execution import GridResult, Work, run_grid, tables_of
from headstack.studies.fits.files import Fit, acceptable, load
from headstack.studies.fits.fit_data import Tried, figures_of
from headstack.studies.fits.fit_result import Fitted
from headstack.studies.fits.search import Search
from headstack.studies.grids import specified
from headstack.studies.study import Study, query_of

SETTINGS = 1000

TOGETHER = 32
"""Number of settings whose runs are computed together, which determines the memory."""

Filled = tuple[Study, list[list[Spec]]]


def fit(
    study: Fit | str | os.PathLike[str],
    *,
    settings: int = SETTINGS,
    seed: int = 1,
    store: str | os.PathLike[str] | None = None,
    executor: str = "local",
    progress: Progress | None = None,
) -> Fitted:
    """Searches for settings of an inverse study, given by name or folder, that reproduce all fitted figures.

    At most ``settings`` are tried; fewer if there are no more, or if enough reproduce the figures. ``executor``,
    ``store`` and ``progress`` are as for ``run``; equal seeds give equal results, on any number of cores. Raises
    ``InputError`` with file, line and key, and ``RunError`` if a run fails.
    """
    if settings < 1:
        raise InputError(f"{settings} is too few; must be 1 or more", key="settings")
    inverse_study = study if isinstance(study, Fit) else load(study)
    work = _Work(inverse_study, store, executor)
    search = Search([unknown.axis for unknown in inverse_study.unknowns], settings, seed)
    tried: list[Tried] = []
    for points in search.rounds():
        begun = len(tried)
        for first in range(0, len(points), TOGETHER):
            batch = points[first : first + TOGETHER]
            settings_to_run = [
                {u.name: u.axis.at(share) for u, share in zip(inverse_study.unknowns, point, strict=True)}
                for point in batch
            ]
            tried += [
                Tried(*point, inverse_study.tolerance)
                for point in zip(batch, settings_to_run, work.figures(settings_to_run), strict=True)
            ]
            if progress is not None:
                progress(min(1.0, len(tried) / settings))
            figures = figures_of(inverse_study, tried[0].rows)
        search.add_results(points, [point.distance(figures) for point in tried[begun:]])
    if progress is not None:
        progress(1.0)
    return Fitted.of(inverse_study, tried, search.weights(), settings, seed, search.is_whole)


@dataclass
class _Work:
    """The settings that were run, each once."""

    fit: Fit
    store: str | os.PathLike[str] | None
    executor: str

    def __post_init__(self) -> None:
        self._rows_by_setting: dict[tuple[str, ...], tuple[Row, ...]] = {}

    def figures(self, settings: Sequence[dict[str, str]]) -> list[tuple[Row, ...]]:
        """Returns the rows of each setting's figures. The runs of all settings are computed together."""
        new = {
            tuple(setting_run.values()): setting_run
            for setting_run in settings
            if tuple(setting_run.values()) not in self._rows_by_setting
        }
        with tempfile.TemporaryDirectory(prefix="headstack-fit-") as folder:
            places = [self._place(folder, number) for number in range(len(new))]
            filled: list[Filled] = []
            for setting, place in zip(new.values(), places, strict=True):
                with self._naming(setting, place):
                    study = acceptable(self.fit.filled(setting, place))
                    filled.append((study, [specified(study, grid) for grid in range(len(study.grids))]))
            try:
                grids = [self._run_grid(grid, filled) for grid in range(len(self.fit.grids))] if new else []
            except (InputError, RunError):
                # One by one, so that errors name their setting.
                for setting, place, setting_run in zip(new.values(), places, filled, strict=True):
                    with self._naming(setting, place):
                        for grid in range(len(self.fit.grids)):
                            self._run_grid(grid, [setting_run])
                raise
            for number, (key, setting) in enumerate(new.items()):
                with self._naming(setting, places[number]):
                    tables = tables_of(filled[number][0], [grid[number] for grid in grids])
                    self._rows_by_setting[key] = tuple(
                        tables.query("sql", query_of(filled[number][0].claims[0])).dicts()
                    )
        return [self._rows_by_setting[tuple(setting_run.values())] for setting_run in settings]

    def _place(self, folder: str, number: int) -> Path:
        """Returns the folder of a setting's files. Runs are specified before those of the next setting replace them."""
        place = Path(folder, "0" if all(grid["kind"] == "run" for grid in self.fit.grids) else str(number))
        place.mkdir(exist_ok=True)
        return place

    def _run_grid(self, number: int, filled: Sequence[Filled]) -> list[GridResult]:
        """Runs a grid for each setting. Runs shared by several settings are computed once."""
        grid = self.fit.grids[number]
        if grid["kind"] != "run":
            work = Work(self.store, self.executor, None)
            return [run_grid(study, number, specs[number], work) for study, specs in filled]
        runs: dict[str, Spec] = {}
        keys_by_study: list[list[str]] = []
        for _, specs in filled:
            texts = [key_of(spec) for spec in specs[number]]
            runs |= zip(texts, specs[number], strict=True)
            keys_by_study.append(texts)
        places = {text: place for place, text in enumerate(runs)}
        results = run_chunks(
            list(runs.values()), swept=swept(grid["settings"]), store=self.store, executor=self.executor
        )
        return [
            GridResult(study.grids[number], results.chosen([places[text] for text in texts]))
            for (study, _), texts in zip(filled, keys_by_study, strict=True)
        ]

    @contextmanager
    def _naming(self, setting: dict[str, str], folder: Path) -> Iterator[None]:
        """Makes errors name the setting, and the filled file."""
        with_setting = f" (with {', '.join(f'{name} {value}' for name, value in setting.items())})"
        try:
            yield
        except InputError as error:
            raise InputError(_own(str(error), folder, self.fit.folder) + with_setting) from None
        except RunError as error:
            raise RunError(_own(str(error), folder, self.fit.folder) + with_setting) from None


def _own(message: str, filled: Path, folder: Path) -> str:
    return message.replace(str(filled), str(folder))
