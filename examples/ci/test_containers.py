"""A store that runs in a container, by Testcontainers: its folder is on a simulated disk of the host."""

import os

import pytest

postgres = pytest.importorskip("testcontainers.postgres")
psycopg = pytest.importorskip("psycopg")


@pytest.mark.disk("970-evo-1tb@0..512MiB", crash="explore")
def test_commits_survive(disk):
    with disk.mounted("ext4") as folder:
        # The container's user is another than the host's.
        os.chmod(folder, 0o777)
        container = postgres.PostgresContainer("postgres:16-alpine", driver=None)
        container.with_volume_mapping(str(folder), "/var/lib/postgresql", "rw")
        container.with_env("PGDATA", "/var/lib/postgresql/base").with_env("POSTGRES_INITDB_ARGS", "-k --wal-segsize=1")
        with container as running, psycopg.connect(running.get_connection_url(), autocommit=True) as base:
            base.execute("CREATE TABLE entries (number int PRIMARY KEY)")
            for number in range(20):
                base.execute("INSERT INTO entries VALUES (%s)", (number,))
                disk.mark(number)

    def check(folder, marks):
        again = postgres.PostgresContainer("postgres:16-alpine", driver=None)
        again.with_volume_mapping(str(folder), "/var/lib/postgresql", "rw")
        again.with_env("PGDATA", "/var/lib/postgresql/base")
        with again as running, psycopg.connect(running.get_connection_url()) as base:
            (there,) = base.execute("SELECT count(*) FROM entries").fetchone()
        assert there >= len(marks)

    # A container takes seconds to come up: few states, so it has minutes.
    disk.explore(check, budget="5m")
