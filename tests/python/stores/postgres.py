"""PostgreSQL, run as the user of that name, since it refuses to run as root."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headstack as hs
from stores.model import Rows, written
from stores.verdicts import BrokenError, Kind

AS_POSTGRES: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": [], "cwd": "/"}
PATIENCE_S = 60
SMALL = {
    "shared_buffers": "1MB",
    "max_connections": "5",
    "autovacuum": "off",
    "wal_buffers": "64kB",
    "max_wal_size": "4MB",
    "min_wal_size": "2MB",
    "checkpoint_timeout": "30s",
    "bgwriter_delay": "10ms",
    "listen_addresses": "",
    "log_min_messages": "fatal",
}


def binary(name: str) -> str:
    """Returns a program of the newest installed version."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    if not found:
        raise hs.RunError(f"PostgreSQL's {name} is not installed")
    return str(found[-1])


def options(settings: dict[str, str]) -> list[str]:
    return [word for name, value in (SMALL | settings).items() for word in ("-c", f"{name}={value}")]


def prepare(folder: Path) -> None:
    """Creates a cluster with checksums and small log segments, without the contents of template databases.

    These are never opened, and each state would copy them.
    """
    shutil.chown(folder, "postgres")
    words = ["-D", str(folder / "base"), "-k", "--wal-segsize=1", "--no-sync", "--no-instructions"]
    words += ["-E", "UTF8", "-A", "trust"]
    subprocess.run([binary("initdb"), *words], check=True, stdout=subprocess.DEVNULL, **AS_POSTGRES)
    # The database created last is the one in use.
    *templates, _ = sorted((folder / "base" / "base").iterdir(), key=lambda path: int(path.name))
    for template in templates:
        for file in template.iterdir():
            file.unlink()


def run(folder: Path, settings: dict[str, str], transactions: int, acknowledge: Callable[[int], None]) -> None:
    with tempfile.TemporaryDirectory(prefix="headstack-pg-") as name:
        shutil.chown(name, "postgres")
        words = ["-D", str(folder / "base"), "-k", name, *options(settings)]
        server = subprocess.Popen([binary("postgres"), *words], stderr=subprocess.DEVNULL, **AS_POSTGRES)
        try:
            deadline = time.monotonic() + PATIENCE_S
            while subprocess.run([binary("pg_isready"), "-q", "-h", name], cwd="/").returncode != 0:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("PostgreSQL does not come up")
                time.sleep(0.05)
            command = [binary("psql"), "-h", name, "-XAtq", "-v", "ON_ERROR_STOP=1", "postgres"]
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **AS_POSTGRES
            ) as client:
                assert client.stdin is not None
                assert client.stdout is not None
                client.stdin.write("CREATE TABLE entries (key text PRIMARY KEY, value text);\n")
                for number in range(1, transactions + 1):
                    client.stdin.write(transaction(number))
                    client.stdin.flush()
                    if client.stdout.readline().strip() != str(number):
                        raise RuntimeError("PostgreSQL has lost its client")
                    acknowledge(number)
        finally:
            # Fast shutdown: connections are closed, dirty data are written.
            server.send_signal(2)
            server.wait(PATIENCE_S)


def transaction(number: int) -> str:
    """Returns a transaction as SQL, which prints its number when it is committed."""
    rows = ", ".join(f"('{key.decode()}', '{text(key, value)}')" for key, value in written(number).items())
    upsert = f"INSERT INTO entries VALUES {rows} ON CONFLICT (key) DO UPDATE SET value = excluded.value;"
    # Full page writes occur after checkpoints: have some during the test.
    checkpoint = "CHECKPOINT;\n" if number % 2 == 0 else ""
    return f"BEGIN; {upsert} COMMIT;\n{checkpoint}\\echo {number}\n"


def text(key: bytes, value: bytes) -> str:
    return value.hex() if key.startswith(b"key") else value.decode()


QUERY = "SELECT string_agg(key || ':' || value, ' ' ORDER BY key) AS entries FROM entries\n"


def read(folder: Path, settings: dict[str, str]) -> Rows:
    """Reads by a single-user server, which recovers and runs one query."""
    if not (folder / "base" / "PG_VERSION").exists():
        raise BrokenError(Kind.CORRUPT, "no cluster")
    (folder / "base" / "postmaster.pid").unlink(missing_ok=True)
    command = [binary("postgres"), "--single", "-D", str(folder / "base"), *options({}), "-c", "fsync=off", "postgres"]
    done = subprocess.run(command, input=QUERY, capture_output=True, text=True, timeout=PATIENCE_S, **AS_POSTGRES)
    if 'relation "entries" does not exist' in done.stderr:
        return {}
    wrong = re.search(r"(?:FATAL|PANIC|ERROR): *(.*)", done.stderr)
    # On a panic it kills itself by a signal, and prints the reason.
    if done.returncode < 0 and wrong is None:
        raise BrokenError(Kind.DIED, f"signal {-done.returncode}")
    if done.returncode != 0 or wrong is not None:
        raise BrokenError(Kind.CORRUPT, wrong[1] if wrong else f"exit code {done.returncode}")
    answer = re.search(r'entries = "([^"]*)"', done.stdout)
    if answer is None:
        return {}
    pairs = (entry.split(":") for entry in answer[1].split())
    return {k.encode(): bytes.fromhex(v) if k.startswith("key") else v.encode() for k, v in pairs}
