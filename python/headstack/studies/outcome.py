"""``Outcome`` of a study: claims with verdicts, figures, tables, and the provenance of each run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from headstack import _native
from headstack.io.stored import Stored
from headstack.report.figures import Claim, Figure, Provenance, Report, RunInputs, Section, Table
from headstack.report.looks import with_looks
from headstack.results.words import words_of
from headstack.studies.claims import Judged, Verdict

if TYPE_CHECKING:
    from headstack.studies.study import Study
    from headstack.studies.tables import QueryResult


STORED = Stored("study outcome")
STORED_NAMES = {"open_choice": "what"}
"""Names of fields in JSON that differ from those here."""


@dataclass(frozen=True)
class Outcome:
    """A completed study. Equal inputs and versions give identical outcomes."""

    study: str
    title: str
    question: str
    summary: str
    sources: tuple[str, ...]
    claims: tuple[Judged, ...]
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    runs: tuple[Provenance, ...]
    data: Mapping[str, QueryResult]
    """The tables of the grids and the derived ones, by name."""
    version: str
    inputs: Callable[[], Sequence[RunInputs]] = field(default=tuple, compare=False, repr=False)
    """Returns the inputs of the runs, for a report whose curves can be varied."""

    @classmethod
    def of(
        cls,
        study: Study,
        judged: list[Judged],
        figures: list[Figure],
        tables: list[Table],
        runs: list[Provenance],
        data: Mapping[str, QueryResult],
        inputs: Callable[[], Sequence[RunInputs]] = tuple,
    ) -> Outcome:
        """Creates the outcome of a study."""
        return cls(
            study=study.name,
            title=study.title,
            question=study.question,
            summary=study.summary,
            sources=tuple(study.sources),
            claims=tuple(judged),
            figures=tuple(with_looks(figures)),
            tables=tuple(tables),
            runs=tuple(runs),
            data=data,
            version=_native.version(),
            inputs=inputs,
        )

    def verdicts(self) -> dict[str, int]:
        """Returns the number of claims by verdict."""
        counted = Counter(claim.verdict for claim in self.claims)
        return {str(verdict): counted[verdict] for verdict in Verdict}

    def rows(self) -> tuple[int, int]:
        """Returns the number of evidence rows of all claims, and how many of them agree."""
        return sum(len(claim.within) for claim in self.claims), sum(sum(claim.within) for claim in self.claims)

    def unexplained(self) -> list[Judged]:
        """Returns missed claims without a reason in the study."""
        return [claim for claim in self.claims if not claim.is_explained]

    def report(self) -> Report:
        """Returns the study as a report."""
        sections = [Section("Figures", figures=[_headed(figure) for figure in self.figures])] if self.figures else []
        sections += [Section("Tables", figures=[_headed(figure) for figure in self.tables])] if self.tables else []
        return Report(
            title=self.title,
            question=self.question,
            summary=self.summary,
            sections=sections,
            claims=[_report_claim(claim) for claim in self.claims],
            runs=self.runs,
            version=self.version,
            sources=self.sources,
            inputs=self.inputs,
        )

    def to_json(self) -> str:
        """Returns everything except the tables and the runs' descriptions, which are identified by hashes."""
        values = {
            attribute.name: getattr(self, attribute.name)
            for attribute in fields(self)
            if attribute.name not in ("data", "runs", "inputs")
        }
        runs = [{key: value for key, value in vars(run).items() if key != "description"} for run in self.runs]
        return json.dumps(STORED.head | values | {"runs": runs}, indent=1, default=_stored_dict) + "\n"

    def _repr_html_(self) -> str:
        counted = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts().items() if count)
        return f"<b>{self.title}</b>: {counted or 'no claims'}"


def _stored_dict(value: Any) -> dict[str, Any]:
    """Converts a part of an outcome for JSON, with the stored names of its fields."""
    return asdict(value, dict_factory=lambda pairs: {STORED_NAMES.get(name, name): part for name, part in pairs})


def _headed(figure: Figure) -> Figure:
    """Replaces the column names of a table by words; files keep the names."""
    return replace(figure, columns=_heads(figure.columns)) if isinstance(figure, Table) else figure


def _heads(columns: Sequence[str]) -> list[str]:
    return [" ".join(words_of(name)).rstrip() for name in columns]


def _report_claim(claim: Judged) -> Claim:
    rows = Table(f"claim-{claim.id}", claim.says, _heads(claim.columns), claim.rows) if claim.rows else None
    return Claim(claim.id, claim.says, str(claim.verdict), claim.evidence, rows, claim.backing)
