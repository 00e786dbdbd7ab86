"""Checks PostgreSQL after a crash: its data folder is copied from the file system, and recovered.

A separate process (``postgres --single``) replays the log, reads every row of every table and, if the extension amcheck
is installed, compares each B-tree with its table. PostgreSQL refuses to run as root: if we are root, it runs as
``postgres``, or else as the user of ``UNPRIVILEGED``.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path
from typing import TypedDict

from headstack._native import RunError
from headstack.crash.ext4 import fetch_folder

INSTALLED = "/usr/lib/postgresql"
"""Folder in which distributions install the programs of each version."""
SETTINGS = {
    "autovacuum": "off",
    "archive_mode": "off",
    # Written data are discarded.
    "fsync": "off",
    "listen_addresses": "",
    "log_min_messages": "error",
    "logging_collector": "off",
    "shared_buffers": "8MB",
    "shared_preload_libraries": "",
    "ssl": "off",
    # Read the rows themselves, not an index.
    "enable_indexscan": "off",
    "enable_indexonlyscan": "off",
    "enable_bitmapscan": "off",
    "max_parallel_workers_per_gather": "0",
}
DATABASES = """
SELECT '<<' || coalesce(jsonb_agg(datname ORDER BY datname), '[]')::text || '>>' FROM pg_database
WHERE datallowconn AND NOT datistemplate AND datname <> 'postgres'
"""
READ_ALL = """
DO $$ DECLARE one record; BEGIN
  FOR one IN SELECT oid::regclass AS name FROM pg_class WHERE relkind IN ('r', 'm') AND relpersistence <> 't' LOOP
    EXECUTE format('SELECT count(one::text) FROM %s AS one', one.name);
  END LOOP;
  IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'amcheck') THEN
    CREATE EXTENSION IF NOT EXISTS amcheck;
    FOR one IN SELECT i.indexrelid AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
      JOIN pg_am a ON a.oid = c.relam
      WHERE a.amname = 'btree' AND c.relkind = 'i' AND c.relpersistence = 'p' AND i.indisvalid AND i.indisready LOOP
      PERFORM bt_index_check(one.name, true);
    END LOOP;
  END IF;
END $$
"""
UNPRIVILEGED = "nobody"
"""The user that runs PostgreSQL for root if there is no user ``postgres``."""
ERROR = re.compile(r"(?:FATAL|PANIC|ERROR): *(.*)")


class Owner(TypedDict, total=False):
    """The user whose process may open a data folder, as arguments of ``subprocess.run``; empty for the current user."""

    user: int
    group: int
    extra_groups: list[int]


def check_cluster(image: str, folder: Path, path: str, query: str) -> tuple[str | None, list[str]]:
    """Returns the fault of the data folder at ``path``, if any, and the rows of a query in the database
    ``postgres``."""
    data = folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    problem = fetch_folder(image, path.rstrip("/"), data)
    if problem is not None:
        return problem, []
    if not data.exists():
        return f"{path} is missing", []
    try:
        return recover(data, query)
    finally:
        shutil.rmtree(data, ignore_errors=True)


def recover(data: Path, query: str) -> tuple[str | None, list[str]]:
    """Returns the fault and the rows of a copy."""
    version = data / "PG_VERSION"
    if not version.exists():
        return "no cluster: PG_VERSION is missing", []
    program = binary(version.read_text(errors="replace").strip())
    (data / "postmaster.pid").unlink(missing_ok=True)
    # Distributions store it elsewhere.
    (data / "postgresql.conf").touch()
    owner = hand_over(data)
    queries = [DATABASES, READ_ALL]
    if query:
        queries.append(f"SELECT '<<' || coalesce(jsonb_agg(one::text), '[]')::text || '>>' FROM ({query}) AS rows(one)")
    problem, answers = run_queries(program, data, "postgres", queries, owner)
    if problem is not None:
        return problem, []
    for name in answers[0]:
        problem, _ = run_queries(program, data, name, [READ_ALL], owner)
        if problem is not None:
            return f"database {name}: {problem}", []
    return None, answers[1] if query else []


def binary(version: str) -> str:
    """Returns the program of a cluster's version. Raises ``RunError`` if it is not installed."""
    folder = f"{INSTALLED}/{version}/bin"
    program = shutil.which("postgres", path=f"{folder}:{os.environ.get('PATH', '')}")
    if program is None:
        raise RunError(f"postgres: needs PostgreSQL {version}, which is not installed")
    return program


def hand_over(data: Path) -> Owner:
    """Changes the owner of a copy to a user who may run PostgreSQL; returns how to become that user."""
    data.chmod(0o700)
    if os.geteuid() != 0:
        return {}
    try:
        owner = pwd.getpwnam("postgres")
    except KeyError:
        owner = pwd.getpwnam(UNPRIVILEGED)
    for place, folders, names in os.walk(data):
        for name in (".", *folders, *names):
            os.chown(Path(place, name), owner.pw_uid, owner.pw_gid)
    # Our private folders are above it: permit traversal to known paths.
    for above in data.parents:
        state = above.stat()
        if state.st_uid == 0 and state.st_mode & 0o777 == 0o700:
            above.chmod(0o711)
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


def run_queries(
    program: str, data: Path, database: str, queries: list[str], owner: Owner
) -> tuple[str | None, list[list[str]]]:
    """Runs queries in a single-user process; returns its error, if any, and the answers in order."""
    words = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    # A query must be on one line.
    lines = "".join(f"{' '.join(query.split())}\n" for query in queries)
    done = subprocess.run(
        [program, "--single", "-D", str(data), *words, database],
        input=lines.encode(),
        capture_output=True,
        check=False,
        cwd="/",
        **owner,
    )
    output = done.stderr.decode(errors="replace")
    error = ERROR.search(output)
    if error is not None:
        return error[1], []
    if done.returncode != 0:
        ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        return f"{' '.join(output.split()) or 'PostgreSQL does not recover'} ({ended})", []
    return None, [json.loads(answer) for answer in re.findall(r'"<<(\[.*\])>>"', done.stdout.decode(errors="replace"))]
