"""The simulator in a page (crates/web), asked in Node: it gives what the program gives."""

from __future__ import annotations

import json
import lzma
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import REPOSITORY, needs_program, slow
from headstack import _native
from headstack.results.explorer import ENGINE
from headstack.simulation.chunks.work import database

pytestmark = [
    pytest.mark.skipif(not ENGINE.is_file(), reason="not built: make web"),
    pytest.mark.usefixtures("node"),
]


@pytest.fixture(scope="module")
def node() -> None:
    needs_program("node")


WORKLOADS = ("file-server", "random-write-4k", "sequential-read-64k")
ALL = slow("every system; every eighth represents them")
SYSTEMS = [*_native.drive_ids(), *_native.array_ids(), *_native.volume_ids()]


@cache
def _unpacked() -> tempfile.TemporaryDirectory[str]:
    """A folder with the engine as Node takes it, which is gone when the tests are."""
    folder = tempfile.TemporaryDirectory()
    Path(folder.name, "engine.wasm").write_bytes(lzma.decompress(ENGINE.read_bytes()))
    return folder


def asked(questions: Iterable[dict[str, Any]]) -> list[Any]:
    """What the engine answers."""
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    script = REPOSITORY / "web" / "test" / "engine.mjs"
    done = subprocess.run(
        ["node", script, Path(_unpacked().name, "engine.wasm")], input=lines, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def points(system: str, workload: str, values: dict[str, str]) -> dict[str, Any]:
    """A run as a sweep asks for it, but for the build that is to answer."""
    return {
        "system": {"name": system, "part": None, "blueprint": _native.system_blueprint(system, [])},
        "demand": {"blueprint": _native.demand_blueprint(workload)},
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
    "systems",
    [SYSTEMS[::8], *(pytest.param(SYSTEMS[at : at + 40], marks=ALL) for at in range(0, len(SYSTEMS), 40))],
    ids=lambda some: f"{len(some)} from {some[0]}",
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
        ("nearline-24-raid6", {"groups[0].chunk_size": "64KiB", "fail": "d0@0s", "depth": "16", "requests": "500"}),
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
    blueprint = _native.system_blueprint("cheetah-x15-36lp", [])
    (answer,) = asked([{"ask": "toml", "blueprint": blueprint, "values": values}])
    assert answer["answer"] == _native.drafted_toml(blueprint, [(key, text) for key, text in values])


SCHEDULES = {
    "rebuilt": (
        "nearline-24-raid6",
        '[[fault]]\nat = "0s"\nwhat = "member-fails"\nmember = "d0"\n'
        '[[fault]]\nat = "1ms"\nwhat = "member-returns"\nmember = "d0"\n',
    ),
    "latent": (
        "cheetah-x15-36lp",
        '[[fault]]\nat = "0s"\nwhat = "media-error"\nranges = [{ offset = "0B", length = "4GiB" }]\n',
    ),
    "slow": ("970-evo-plus-1tb", '[[fault]]\nat = "0s"\nwhat = "fail-slow"\ntime = "2ms"\npercent = 5.0\n'),
    "battery": ("va-7100", '[[fault]]\nat = "0s"\nwhat = "battery-fails"\n'),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_what_goes_wrong_does_so_alike(name: str, tmp_path: Path) -> None:
    system, text = SCHEDULES[name]
    file = tmp_path / f"{name}.toml"
    file.write_text(text)
    (read,) = asked([{"ask": "faults", "file": file.name, "text": text}])
    assert read["answer"] == _native.load_faults(str(file))
    chunk = points(system, "file-server", {"depth": "16", "requests": "400", "faults": file.name})
    chunk["faults"] = {file.name: read["answer"]}
    (answer,) = asked([{"ask": "run", "points": chunk}])
    (expected,) = rows([chunk])
    row = answer["answer"][0]["done"]["row"]
    assert row == {column: expected[column] for column in row}
    healthy = points(system, "file-server", {"depth": "16", "requests": "400"})
    assert row["mean_ms"] != rows([healthy])[0]["mean_ms"]


TRACES = {
    "msr.csv": "".join(
        f"{128166372003146519 + 60_000 * n},web,{n % 2},{'Read' if n % 3 else 'Write'},{8192 * (7919 * n % 999_983)},"
        f"{512 * (1 + n % 40)},{10_000 + 7 * n}\n"
        for n in range(500)
    ),
    "disksim.txt": "".join(
        f"{n * 3.75:.6f} 0 {16 * (104_729 * n % 999_983)} {8 * (1 + n % 9)} {n % 2}\n" for n in range(400)
    ),
}


@pytest.mark.parametrize("file", TRACES)
def test_a_recording_is_replayed_alike(file: str, tmp_path: Path) -> None:
    text = TRACES[file]
    (tmp_path / file).write_text(text)
    device = "web.1" if file == "msr.csv" else None
    trace = hs.Trace(tmp_path / file, steps=[f"device={device}"] if device else [])
    told = {"file": file, "text": text, "device": device}
    question = {
        "ask": "replay",
        "trace": told,
        "values": [],
        "options": [["policy", "sstf"]],
        "modes": [{"timed": {"time_scale": 1}}, {"asap": {"depth": 4}}, {"asap": {"depth": 64}}],
        "outside": "fold",
        "requests": 150,
    }
    for system in ("cheetah-x15-36lp", "nearline-24-raid6"):
        blueprint = _native.system_blueprint(system, [])
        summary, answer = asked([{"ask": "trace", **told}, question | {"name": system, "blueprint": blueprint}])
        assert summary["answer"]["requests"] == (250 if device else 400)
        given: dict[str, Any] = {"outside": "fold", "requests": 150, "policy": "sstf"}
        expected = [
            *hs.replay(trace, system, "timed", **given),
            *hs.replay(trace, system, "asap", depth=[4, 64], **given),
        ]
        for one, row in zip(answer["answer"], expected, strict=True):
            told_row = one["done"]["row"]
            # How far the model may be off is learnt by the program alone.
            same = [name for name in told_row if "model" not in name and name in row]
            assert len(same) > 60
            assert {name: told_row[name] for name in same} == {name: row[name] for name in same}


def test_a_recording_that_is_none_is_refused() -> None:
    (answer,) = asked([{"ask": "trace", "file": "a.txt", "text": "nothing\n", "device": None}])
    assert answer["refused"].startswith("a.txt: is in no known format")


def test_the_load_of_a_scenario_is_to_be_chosen_or_said_to_be_its_own() -> None:
    names = ("serverbench", "neds-play", "file-server")
    blueprints = [_native.demand_blueprint(name) for name in names]
    answers = asked({"ask": "describe", "blueprint": blueprint, "values": []} for blueprint in blueprints)
    fixed = [answer["answer"]["fixed"] for answer in answers]
    assert fixed == [None, "no stream of neds-play has a number of clients to set", None]
