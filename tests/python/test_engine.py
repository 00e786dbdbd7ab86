"""The simulator in a page (crates/web), asked in Node: it gives what the program gives."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from typing import Any

import pytest

from conftest import REPOSITORY
from headstack import _native
from headstack.chunks.work import database
from headstack.report.explorer import ENGINE

pytestmark = pytest.mark.skipif(not ENGINE.is_file() or not shutil.which("node"), reason="not built: make web")

WORKLOADS = ("file-server", "random-write-4k", "sequential-read-64k")
SYSTEMS = [*_native.drive_ids(), *_native.array_ids(), *_native.volume_ids()]


def asked(questions: Iterable[dict[str, Any]]) -> list[Any]:
    """What the engine answers."""
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    script = REPOSITORY / "web" / "test" / "engine.mjs"
    done = subprocess.run(["node", script, ENGINE], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def points(system: str, workload: str, values: dict[str, str]) -> dict[str, Any]:
    """A run as a sweep asks for it, but for the build that is to answer."""
    return {
        "system": {"name": system, "part": None, "blueprint": json.loads(_native.system_blueprint(system, []))},
        "demand": {"blueprint": json.loads(_native.demand_blueprint(workload))},
        "fields": list(values),
        "kinds": ["system" if set(field) & set(".[") else "option" for field in values],
        "columns": list(values),
        "units": [None] * len(values),
        "points": [list(values.values())],
    }


def rows(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the program computes of them, a row each."""
    table = _native.run_chunks([json.dumps(chunk) for chunk in chunks]).table(0, len(chunks))
    with database() as connection:
        connection.register("answer", table)
        found = connection.table("answer")
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize(
    "systems", [SYSTEMS[at : at + 40] for at in range(0, len(SYSTEMS), 40)], ids=lambda some: some[0]
)
def test_the_engine_of_pages_gives_what_the_program_gives(systems: list[str]) -> None:
    values = {"depth": "8", "requests": "300"}
    chunks = [points(system, workload, values) for system in systems for workload in WORKLOADS]
    answers = asked({"ask": "run", "points": chunk} for chunk in chunks)
    for chunk, answer, expected in zip(chunks, answers, rows(chunks), strict=True):
        (told,) = answer["answer"]
        if "impossible" in told:
            assert told["impossible"] == expected["impossible"]
            continue
        row = told["done"]["row"]
        assert row == {name: expected[name] for name in row}, chunk["system"]["name"]


def test_what_is_changed_in_a_file_and_by_options_is_changed_alike() -> None:
    changes: list[tuple[str, dict[str, str]]] = [
        ("cheetah-x15-36lp", {"spindle.speed": "7200rpm", "policy": "fcfs", "depth": "16", "requests": "500"}),
        ("nearline-24-raid6", {"groups[0].stripe_unit": "64KiB", "fail": "d0@0s", "depth": "16", "requests": "500"}),
        ("970-evo-plus-1tb", {"range": "0%..10%", "rate": "5000", "requests": "500"}),
    ]
    chunks = [points(system, "file-server", values) for system, values in changes]
    answers = asked({"ask": "run", "points": chunk} for chunk in chunks)
    for answer, expected in zip(answers, rows(chunks), strict=True):
        row = answer["answer"][0]["done"]["row"]
        assert row == {name: expected[name] for name in row}


def test_what_cannot_be_is_told_in_the_same_words() -> None:
    chunk = points("cheetah-x15-36lp", "file-server", {"seek.read_average": "30ms", "requests": "300"})
    (answer,) = asked([{"ask": "run", "points": chunk}])
    (expected,) = rows([chunk])
    assert answer["answer"] == [{"impossible": expected["impossible"]}]


def test_a_file_that_is_no_description_is_refused() -> None:
    texts = [("a.toml", "name = 3"), ("b.toml", "name ="), ("c.toml", '[[lines]]\nsize = "4KiB"\nred = 1')]
    answers = asked({"ask": "text", "file": name, "text": text} for name, text in texts)
    assert all("refused" in answer for answer in answers), answers
    assert asked([{"ask": "nothing"}])[0]["refused"].startswith("unknown variant `nothing`")


def test_a_state_is_reproduced_by_its_file() -> None:
    values = [["spindle.speed", "7200rpm"], ["seek.read_average", "4ms"]]
    blueprint = json.loads(_native.system_blueprint("cheetah-x15-36lp", []))
    (answer,) = asked([{"ask": "toml", "blueprint": blueprint, "values": values}])
    assert answer["answer"] == _native.drafted_toml(json.dumps(blueprint), [(key, text) for key, text in values])
