"""Chunks: what is computed is kept, and nothing depends on where or in what portions it is computed."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from headstack.simulation.chunks import chunk as chunk_module
from headstack.simulation.chunks import executors
from headstack.simulation.chunks.chunk import chunks_of_runs
from headstack.simulation.chunks.chunked import run_chunks
from headstack.simulation.chunks.work import answer, database
from headstack.simulation.runs import run_specs, specify, swept

OPTIONS: dict[str, Any] = {"depth": [1, 4, 16], "policy": ["fcfs", "sptf"], "requests": 2000, "interval": "1s"}


def specs(**changed: Any) -> list[dict[str, Any]]:
    return specify(["cheetah-x15-36lp", "compaq-raid5-7"], "file-server", OPTIONS | changed)


def files(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.rglob("[!.]*.parquet")}


def test_results_come_back_exactly(tmp_path: Path) -> None:
    direct = run_specs(specs(), OPTIONS, None)
    for _ in ("computed", "stored"):
        results = run_chunks(specs(), swept=swept(OPTIONS), store=tmp_path)
        assert results.to_json() == direct.to_json()
        assert results.to_csv() == direct.to_csv()
        assert results.curves() == direct.curves()
        assert results.knees() == direct.knees()
    assert "policy" in results.column_names


def test_clients_and_streams_of_scenarios_come_back(tmp_path: Path) -> None:
    options: dict[str, Any] = {"depth": [2, 3], "time": "10s"}
    asked = specify("compaq-raid5-7", "serverbench", options)
    direct = run_specs(asked, options, None)
    results = run_chunks(asked, store=tmp_path)
    assert [row["depth"] for row in results] == [2, 3]
    assert results.to_csv() == direct.to_csv()
    assert [results.streams_of(run) for run in range(2)] == [direct.streams_of(run) for run in range(2)]


def test_where_chunks_end_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_chunks(specs(), store=tmp_path / "a")
    monkeypatch.setattr(chunk_module, "CHUNK_S", 0.005)
    small = run_chunks(specs(), store=tmp_path / "b")
    assert len(files(tmp_path / "b")) > len(files(tmp_path / "a"))
    assert small.to_json() == whole.to_json()


def test_the_same_chunk_is_the_same_bytes(tmp_path: Path) -> None:
    run_chunks(specs(), store=tmp_path / "a")
    run_chunks(specs(), store=tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    run_chunks(specs(seed=2), store=tmp_path / "b")
    assert len(files(tmp_path / "b")) == 2 * len(files(tmp_path / "a"))


def test_a_finished_chunk_is_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_module, "CHUNK_S", 0.005)
    asked: list[int] = []

    def counted(contents: list[bytes], progress: Any = None) -> Any:
        asked.append(len(contents))
        return answer(contents, progress)

    monkeypatch.setattr(executors, "answer", counted)
    first = run_chunks(specs(), store=tmp_path)
    number = sum(asked)
    assert number == len(list(chunks_of_runs(specs())))
    asked.clear()
    # More runs at the end: those before them are in the same chunks, but for the last.
    again = run_chunks([*specs(), *specs(seed=2)], store=tmp_path)
    assert number <= sum(asked) <= number + 2
    assert again.chosen(range(len(first))).to_json() == first.to_json()


def test_what_is_damaged_is_computed_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = run_chunks(specs(), store=tmp_path)
    kept = files(tmp_path)
    victim = next(tmp_path.rglob("*.parquet"))
    for damage in (kept[victim.name][:-9], b"", kept[victim.name].replace(b"PAR1", b"PAR2", 1)):
        victim.write_bytes(damage)
        caplog.clear()
        assert run_chunks(specs(), store=tmp_path).to_json() == before.to_json()
        assert f"{victim} is damaged" in caplog.text
        assert files(tmp_path) == kept


def test_another_build_reads_nothing_of_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [chunk.id for chunk in chunks_of_runs(specs())]
    monkeypatch.setattr(chunk_module, "engine", lambda: "0.0.0-other")
    assert not set(ids) & {chunk.id for chunk in chunks_of_runs(specs())}


def imports_of(package: Path, name: str) -> set[str]:
    """A file of the package and all that it imports from there, by paths within it."""
    found: set[str] = set()
    pending = [name]
    while pending:
        found.add(name := pending.pop())
        for node in ast.walk(ast.parse((package / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("headstack."):
                path = node.module.removeprefix("headstack.").replace(".", "/") + ".py"
                if (package / path).is_file() and path not in found:
                    pending.append(path)
    return found


def test_a_change_of_any_file_that_specifies_runs_is_another_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "headstack"
    shutil.copytree(Path(hs.__file__).parent, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    monkeypatch.setattr(chunk_module, "_PACKAGE", package)
    engine = chunk_module.engine.__wrapped__
    # How runs are cut into chunks changes no answer.
    specifying = imports_of(package, "simulation/chunks/work.py") - {"simulation/chunks/chunk.py"}
    assert {"simulation/chunks/work.py", "catalogue/options.py"} <= specifying
    unchanged = engine()
    for name in specifying:
        content = (package / name).read_bytes()
        (package / name).write_bytes(content + b"# changed\n")
        assert engine() != unchanged, name
        (package / name).write_bytes(content)
    (package / "report/plots.py").write_bytes(b"")
    assert engine() == unchanged


def test_an_impossible_run_is_named(tmp_path: Path) -> None:
    bad = specs()
    bad[3]["system"]["drive"]["disk"]["geometry"]["heads"] = 0
    with pytest.raises(hs.InputError, match=r"^run 4 \(cheetah-x15-36lp, policy sptf.*heads"):
        run_chunks(bad, store=tmp_path)


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(hs.InputError, match=r"^store: .*file"):
        run_chunks(specs(), store=tmp_path / "file" / "store")
    with pytest.raises(hs.InputError, match="executor: 'cloud' is unknown; allowed: local, dask://HOST:PORT"):
        run_chunks(specs(), store=tmp_path, executor="cloud")


def test_the_default_store_is_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run_chunks(specs(depth=1, policy="fcfs"))
    assert len(files(tmp_path / "headstack" / "chunks")) == 1


INTERRUPTED = """
import json, sys
from headstack.simulation.chunks.chunked import run_chunks; from headstack.simulation.chunks import chunk
chunk.CHUNK_S = 0.02
run_chunks(json.load(open(sys.argv[1])), store=sys.argv[2])
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_what_was_finished_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: signal.Signals) -> None:
    monkeypatch.setattr(chunk_module, "CHUNK_S", 0.02)
    many = specs(requests=8_000, seed=list(range(1, 9)))
    (tmp_path / "specs.json").write_text(json.dumps(many))
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, tmp_path / "specs.json", tmp_path / "store"],
        stderr=subprocess.DEVNULL,
        env=os.environ | {"RAYON_NUM_THREADS": "1"},
    )
    while len(files(tmp_path / "store")) < 3:
        assert process.poll() is None, "it ended by itself"
        time.sleep(0.02)
    process.send_signal(ending)
    process.wait()
    kept = files(tmp_path / "store")
    assert 3 <= len(kept) < len(list(chunks_of_runs(many)))
    if ending == signal.SIGINT:
        assert not list((tmp_path / "store").rglob(".*.parquet")), "who is asked to end leaves nothing half-written"
    results = run_chunks(many, store=tmp_path / "store")
    assert kept.items() <= files(tmp_path / "store").items()
    assert results.to_json() == run_chunks(many, store=tmp_path / "other").to_json()


def test_a_signal_that_meets_a_query_interrupts() -> None:
    """DuckDB tells of it as an error of its own, by which no command knows that it was interrupted."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    def query() -> None:
        with database() as connection:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            connection.execute("select sum(a.range * b.range) from range(1000000) a, range(100000) b").fetchall()

    before = signal.signal(signal.SIGALRM, interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            query()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(RuntimeError, match="another"), database():
        raise RuntimeError("another")
