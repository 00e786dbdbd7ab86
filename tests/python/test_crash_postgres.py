"""The check of PostgreSQL: a cluster in an ext4 file system, as a server that ran has left it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import headstack as hs
from conftest import is_privileged, lacks, needs_program
from headstack.crash import checks, postgres
from stores import postgres as server

TRANSACTIONS = 3
NUMBERS = "SELECT n::text FROM entries, generate_series(1, value::int) AS n WHERE key = 'count'"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    """The data folder while the server runs, after each transaction: ``0``, ``1`` and so on."""
    for program in ("mkfs.ext4", "debugfs"):
        os.environ["PATH"] += ":/usr/sbin:/sbin"
        needs_program(program)
    if not is_privileged():
        lacks("root", "only root becomes postgres")
    try:
        server.binary("initdb")
    except hs.RunError as error:
        lacks("programs", str(error))
    # Another run of pytest closes its folders to others at any time.
    with tempfile.TemporaryDirectory(prefix="headstack-postgres-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield filled(folder)


def filled(folder: Path) -> Path:
    """Has the server run there."""
    server.prepare(folder)

    def keep(number: int) -> None:
        shutil.copytree(folder / "base", folder / str(number), ignore_dangling_symlinks=True)

    server.run(folder, {}, TRANSACTIONS, keep)
    return folder


def image_of(folder: Path, data: Path) -> Path:
    """An ext4 file system with the cluster at /pg/data."""
    files, image = folder / "files", folder / "image"
    shutil.rmtree(files, ignore_errors=True)
    (files / "pg").mkdir(parents=True)
    shutil.copytree(data, files / "pg" / "data")
    image.unlink(missing_ok=True)
    subprocess.run(["mkfs.ext4", "-q", "-d", files, image, "128M"], check=True, capture_output=True)
    return image


def looked(image: Path, folder: Path, path: str = "/pg/data", query: str = "", marks: tuple[str, ...] = ()) -> object:
    folder.mkdir(exist_ok=True)
    return checks.postgres(str(image), list(marks), folder, path, query)


def index_of(data: Path) -> Path:
    """The file of the primary key."""
    owner = postgres.hand_over(data)
    question = "SELECT '<<' || jsonb_build_array(pg_relation_filepath('entries_pkey'))::text || '>>'"
    problem, [[path]] = postgres.run_queries(server.binary("postgres"), data, "postgres", [question], owner)
    assert problem is None
    return data / path


def test_a_cluster_recovers_and_what_is_wrong_with_it_is_found(cluster: Path, tmp_path: Path) -> None:
    own = Path(tempfile.mkdtemp(dir=cluster))
    image = image_of(tmp_path, cluster / "3")
    assert looked(image, own) is None
    assert looked(image, own, path="/pg/other") == "/pg/other is missing"
    assert looked(image, own, path="/pg") == "no cluster: PG_VERSION is missing"
    assert looked(image, own, query=NUMBERS, marks=("1", "2", "3")) is None
    with pytest.raises(AssertionError, match="acknowledged but missing: 4"):
        looked(image, own, query=NUMBERS, marks=("1", "2", "3", "4"))
    assert 'relation "nonesuch" does not exist' in str(looked(image, own, query="SELECT 1 FROM nonesuch"))
    assert list(own.iterdir()) == [], "copies are gone"
    # An index that nobody reads.
    broken = own.with_name("broken")
    shutil.copytree(cluster / "3", broken)
    index = index_of(broken)
    page = bytearray(index.read_bytes())
    page[8192:] = bytes(len(page) - 8192)
    index.write_bytes(page)
    said = str(looked(image_of(tmp_path, broken), own))
    assert "entries_pkey" in said or "invalid page" in said, said
    # A log that is gone.
    shutil.rmtree(broken)
    shutil.copytree(cluster / "3", broken)
    for segment in (broken / "pg_wal").glob("0000*"):
        segment.write_bytes(bytes(segment.stat().st_size))
    assert "checkpoint record" in str(looked(image_of(tmp_path, broken), own))
