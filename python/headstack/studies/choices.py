"""``Question``: choices of a study, where a purchase decision is repeated as by ``headstack choose``."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headstack._native import InputError
from headstack.catalogue.prices import ESTIMATED
from headstack.choice.answer import Answer, Choice
from headstack.choice.choose import Chooser
from headstack.choice.question_parser import parse_question
from headstack.results.table import Row
from headstack.simulation.runs import Progress

if TYPE_CHECKING:
    from headstack.studies.study import Study
    from headstack.studies.tables import Tables
from headstack.studies.choice_tables import KEY, TABLES

OWN = ("name", "workloads", "each", "price_factors")
"""Keys of a choice in addition to those of ``parse_question``."""

NOT_OURS = ("names", "store", "executor")

TEXTS = frozenset(("name", "capacity", "on", "objective"))

FLAGS = frozenset(("rebuilding", "shipped_prices", "estimate_prices", "spread"))

LISTS = frozenset(
    ("workloads", "limits", "prices", "among", "without", "hosts", "levels", "chunk_sizes", "caches", "volumes")
)

FIGURES = frozenset(("rates", "drives"))

BY_NAME = frozenset(("afr", "price_factors"))

WHOLE = frozenset(("depth", "survive", "spares", "bays", "requests"))

FILES = ("workloads", "prices", "among", "hosts")
"""Keys whose files are in the study's folder."""


@dataclass(frozen=True)
class Question:
    """One question of a choice."""

    path: str
    choice: str
    labels: Row
    """Values, by key, that distinguish it from the choice's others."""
    options: Mapping[str, Any]

    def parse(self, study: Study, store: str | os.PathLike[str] | None, executor: str) -> Chooser:
        """Returns the question, ready to be answered. Raises ``InputError`` with file, line and key."""
        options = dict(self.options)
        for key in FILES:
            if key in options:
                options[key] = [_study_path(study, name) for name in options[key]]
        if "drives" in options:
            options["drives"] = tuple(options["drives"])
        factors = options.pop("price_factors", {})
        try:
            choosing = parse_question(options.pop("workloads"), **options, store=store, executor=executor)
            for item, factor in factors.items():
                choosing.book = choosing.book.changed(item, factor)
        except InputError as error:
            named = next((name for name in self.options if name in (error.key, f"{error.key}s")), "")
            raise study.error(f"{self.path}.{named}" if named else self.path, str(error)) from None
        return choosing


def _study_path(study: Study, name: str) -> str:
    return str(study.folder / name) if name.endswith((".toml", ".csv", ".parquet")) else name


def check_choices(study: Study) -> None:
    """Rejects choices with unknown keys or wrong types of values."""
    allowed = {*OWN, *inspect.signature(parse_question).parameters} - {*NOT_OURS}
    for table, path_of in study.table_names().items():
        if study.choices and table in TABLES:
            raise study.error(f"{KEY}[0]", f"{path_of.name} would be a table with the name of the table of answers")
    seen: set[str] = set()
    for number, choice in enumerate(study.choices):
        path = f"{KEY}[{number}]"
        for key, value in choice.items():
            _check_key(study, f"{path}.{key}", key, allowed)
            if key != "each":
                _check_kind(study, f"{path}.{key}", key, value)
        for key in ("name", "workloads"):
            if key not in choice:
                raise study.error(f"{path}.{key}", "this key is missing")
        if choice["name"] in seen:
            raise study.error(f"{path}.name", f"{choice['name']!r} is used twice; names must be unique")
        seen.add(choice["name"])
        each = choice.get("each", {})
        if not isinstance(each, dict):
            raise study.error(f"{path}.each", "must be a table of lists, one for each key")
        for key, values in each.items():
            _check_key(study, f"{path}.each.{key}", key, allowed - {"name", "each"})
            if key in choice:
                raise study.error(f"{path}.each.{key}", "this key already has one value for all choices")
            if not isinstance(values, list) or not values:
                raise study.error(f"{path}.each.{key}", "must be a list of values, each of which is a question")
            for value in values:
                _check_kind(study, f"{path}.each.{key}", key, _listed(key, value))


def _check_key(study: Study, path: str, key: str, allowed: set[str]) -> None:
    if key not in allowed:
        raise study.error(path, f"no choice has this key; allowed: {', '.join(sorted(allowed))}")


def _check_kind(study: Study, path: str, key: str, value: Any) -> None:
    def is_number(item: Any) -> bool:
        return isinstance(item, int | float) and not isinstance(item, bool)

    if key in LISTS:
        fits, needed = isinstance(value, list) and all(isinstance(item, str) for item in value), "a list of texts"
    elif key in FIGURES:
        fits, needed = isinstance(value, list) and all(map(is_number, value)), "a list of numbers"
        if key == "drives" and fits and (len(value) != 2 or not all(isinstance(item, int) for item in value)):
            fits, needed = False, "two whole numbers, the smallest first"
    elif key in BY_NAME:
        fits, needed = isinstance(value, dict) and all(map(is_number, value.values())), "a table of numbers by name"
    elif key in TEXTS:
        fits, needed = isinstance(value, str), "a text"
    elif key in FLAGS:
        fits, needed = isinstance(value, bool), "true or false"
    elif key in WHOLE:
        fits, needed = isinstance(value, int) and not isinstance(value, bool), "a whole number"
    else:
        fits, needed = is_number(value), "a number"
    if not fits:
        raise study.error(path, f"{value!r}: must be {needed}")


def _listed(key: str, value: Any) -> Any:
    """Returns a value of ``each`` as the key takes it: wrapped in a list if necessary."""
    return [value] if key in LISTS | FIGURES and not isinstance(value, list) else value


def questions_of(study: Study) -> list[Question]:
    """Returns the questions of a study, in order. Raises ``InputError`` for invalid ones."""
    questions = []
    for number, choice in enumerate(study.choices):
        each = choice.get("each", {})
        common = {key: value for key, value in choice.items() if key not in ("name", "each")}
        for values in itertools.product(*each.values()):
            labels = {key: _label(value) for key, value in zip(each, values, strict=True)}
            own = {key: _listed(key, value) for key, value in zip(each, values, strict=True)}
            questions.append(Question(f"{KEY}[{number}]", choice["name"], labels, common | own))
    for question in questions:
        question.parse(study, None, "local")
    return questions


def _label(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {factor:g}" for key, factor in value.items())
    return value


@dataclass(frozen=True)
class Answers:
    """The answers to the choices of a study."""

    labels: frozenset[str]
    """Columns that identify the question."""
    chosen: Sequence[Row]
    looked: Sequence[Row]

    def add_to(self, tables: Tables) -> None:
        """Adds their tables."""
        for name, rows in zip(TABLES, (self.chosen, self.looked), strict=True):
            if rows:
                tables.add_rows(name, rows, self.labels)


def answer_questions(
    study: Study,
    questions: Sequence[Question],
    store: str | os.PathLike[str] | None,
    executor: str,
    progress: Progress | None,
) -> Answers:
    """Answers the questions of a study; finished runs are kept in ``store``."""
    keys = list(dict.fromkeys(key for question in questions for key in question.labels))
    chosen: list[Row] = []
    looked: list[Row] = []
    for place, question in enumerate(questions):
        choosing = question.parse(study, store, executor)
        try:
            answer = choosing.answer()
        except InputError as error:
            raise study.error(question.path, str(error)) from None
        first = _question_row(question, keys, choosing)
        chosen.append(first | _answer_row(answer))
        looked += [first | _system_row(choice) for choice in answer.looked_at]
        if progress is not None:
            progress((place + 1) / len(questions))
    labels = frozenset(chosen[0]) - frozenset(_answer_row(None)) if chosen else frozenset()
    return Answers(labels, chosen, looked)


def _question_row(question: Question, keys: Sequence[str], choosing: Chooser) -> Row:
    """Returns the row of a question."""
    job = choosing.job
    shown = {key: question.labels.get(key) for key in keys if key not in ("capacity", "depth", "workloads")}
    return {
        "choice": question.choice,
        "workload": job.demand.name,
        "offered_per_s": job.demand.rate_per_s,
        "outstanding": job.demand.depth,
        "asked_gb": job.capacity_bytes / 1e9,
        "asked": ", ".join(limit.text for limit in job.limits),
        "asked_value": job.limits[0].value,
        **shown,
    }


def _answer_row(answer: Answer | None) -> Row:
    """Returns the row of an answer; without one, with empty columns."""
    best = None if answer is None else answer.best
    nearest = None if answer is None else answer.nearest
    runners = () if answer is None else answer.runners_up
    upgrade = None if answer is None else answer.upgrade
    binding = [] if answer is None else [choice for choice in answer.relaxed if choice.is_binding]
    changes = [] if answer is None else [choice.change for choice in answer.sensitivity if choice.is_changed]
    shown = best.verdicts[0] if best is not None else None
    bought = [] if best is None else [part for part in best.parts if part.item == best.drive]
    dates = [] if best is None else sorted(part.date for part in best.parts if part.date)
    sources = [] if best is None else [part.source for part in best.parts]
    return {
        "best": best and best.name,
        "host": best and best.host,
        "drive": best and best.drive,
        "drives": best and best.drives,
        "level": best and best.level,
        "cost": best and best.cost,
        "usd": best and best.usd,
        "drives_usd": sum(part.quantity * part.usd for part in bought) if best is not None else None,
        "price_date": dates[0] if dates else None,
        "price_source": bought[0].source if bought else None,
        "is_estimated": any(source.startswith(ESTIMATED) for source in sources) if best is not None else None,
        "usable_gb": best and best.usable_bytes / 1e9,
        "watts": best and best.watts,
        "value": shown and shown.value,
        "low": shown and shown.low,
        "high": shown and shown.high,
        "rate_at_limit": best and best.rate_at_limit,
        "bottleneck": best and best.bottleneck,
        "breaks_first": best and best.breaks_first,
        "runner_up": runners[0].name if runners else None,
        "runner_up_usd": runners[0].usd if runners else None,
        "runners_up": "; ".join(choice.name for choice in runners),
        "undecided": "" if answer is None else "; ".join(choice.name for choice in answer.undecided),
        "binding": "; ".join(choice.constraint for choice in binding),
        "saves_usd": max((choice.saves for choice in binding), default=0.0),
        "changed_by": "; ".join(changes),
        "upgrade": upgrade and upgrade.name,
        "upgrade_usd": upgrade and upgrade.usd,
        "upgrade_per_s": upgrade and upgrade.rate_per_s,
        "nearest": nearest and nearest.name,
        "candidates": answer and answer.candidates,
        "simulated": answer and answer.simulated,
        "warnings": "" if answer is None else "; ".join(answer.warnings),
    }


def _system_row(choice: Choice) -> Row:
    """Returns the row of a simulated system."""
    shown = choice.verdicts[0]
    return {
        "name": choice.name,
        "host": choice.host,
        "drive": choice.drive,
        "drives": choice.drives,
        "level": choice.level,
        "usd": choice.usd,
        "says": choice.says,
        "value": shown.value,
        "low": shown.low,
        "high": shown.high,
    }
